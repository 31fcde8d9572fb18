"""Figures 6.4 to 6.9 of Wang's dissertation: CALM among the other methods, on stand-ins and on UCI Adult.

Click and purchase data is not at hand; binary attributes of three hidden classes stand in, so that orderings are tested
and not values. Adult is found through TACIT_DATA and never downloaded.
"""

import os
from functools import partial
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.papers.conftest import Beside

from tacit.baselines.marginals_binary import BinaryEncoded, as_bits, bits_of, uniform_sse
from tacit.baselines.priview import PriView
from tacit.core.mechanism import Mechanism
from tacit.device.numbers.coins import ReplayCoins
from tacit.simulate.marginals import all_tables, latent_classes, simulate_tally, true_table
from tacit.simulate.marginals import simulate_marginals as simulate_shrunken
from tacit.tasks.marginals.calm import sampling_error, select_views, views_of
from tacit.tasks.marginals.covering import balanced_views, cover_design
from tacit.tasks.marginals.dependence import classify_synthetic, majority, sample_table
from tacit.tasks.marginals.methods import adaptive_oracle, ask, make_method, one_of_views
from tacit.tasks.marginals.solve import solve_marginals as solve_shrunken

# Papers know no shrinkage: tables are made consistent as they have it.
solve_marginals = partial(solve_shrunken, shrink=False)
simulate_marginals = partial(simulate_shrunken, shrink=False)

pytestmark = pytest.mark.papers

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
DATA = Path(os.environ.get("TACIT_DATA", "data"))
EPSILONS = ("0.2", "0.6", "1", "1.4", "2")


def clicks(n: int, m: int) -> I64:
    return latent_classes(n, m, np.random.default_rng(1))


SETTINGS = [(8, 3, 16), (16, 3, 16), (32, 3, 16), (16, 6, 18), (32, 6, 18), (32, 8, 18)]


@pytest.mark.slow
@pytest.mark.parametrize(("m", "k", "log_n"), SETTINGS)
def test_figure_6_4(beside: Beside, m: int, k: int, log_n: int):
    """CALM is under the uniform table at every epsilon, and under FT, AM and FC where they exist.

    Two runs of 16 tables; AM as printed, every table from its own respondents (made to agree it comes within a factor
    of two at m = 8, see test_marginals). FT and FC up to sixteen attributes.
    """
    n, sizes = 1 << log_n, [2] * m
    records, tables = clicks(n, m), all_tables(m, k, 16, np.random.default_rng(3))
    methods = ["calm", "ft", "fc"] if k == 3 else ["calm", "fc"]
    found: dict[str, list[float | None]] = {name: [] for name in [*methods, "am", "uniform"]}
    for epsilon in EPSILONS:
        for name in methods:
            made = None if m > 16 and name != "calm" else make_method(name, ask(sizes, k, epsilon, n))
            found[name].append(None if made is None else native(made, records, sizes, tables, runs=2))
        found["am"].append(own_tables(records, k, epsilon) if comb(m, k) * 30 <= n and m <= 16 else None)
        found["uniform"].append(float(np.mean([uniform_sse(true_table(records, sizes, table)) for table in tables])))
    beside(f"Wang, Figure 6.4, m={m} k={k} n=2^{log_n}", x=EPSILONS, axis="epsilon", printed={}, found=found,
           unit="SSE", logarithmic=True, tolerance="order alone; the data is a stand-in")  # fmt: skip
    calm = np.array(found["calm"], np.float64)
    for name, row in found.items():
        others = np.array([np.nan if x is None else x for x in row])
        assert name == "calm" or not np.any(calm >= others), name


def own_tables(records: I64, k: int, epsilon: str) -> float:
    """The squared error of AM's tables, each from its own respondents alone."""
    sizes = [2] * records.shape[1]
    mechanism = make_method("am", ask(sizes, k, epsilon, len(records)))
    tally = simulate_tally(mechanism, records, sizes, np.random.default_rng(4))
    views = combinations(range(len(sizes)), k)
    pairs = list(zip(mechanism.estimate(tally), views, strict=True))[::7]  # type: ignore[call-overload]
    return float(np.mean([np.sum((e.value - true_table(records, sizes, t).ravel()) ** 2) for e, t in pairs]))


def test_figure_6_4_b_in_order(beside: Beside):
    """Sixteen attributes, k = 3, epsilon 0.2: printed 0.0055 for CALM and 0.2266 for FT, a ratio of 41.

    Raw FT has 0.93 by its exact variance, so that the printed one was post-processed; noise alone makes k NE of CALM
    0.096, so that 0.0055 needs data that is nearly known beforehand. The order holds, with at least a factor of three.
    """
    n, sizes = 1 << 16, [2] * 16
    records, question = clicks(n, 16), ask(sizes, 3, "0.2", n)
    calm, ft = (simulate_marginals(make_method(name, question), records, sizes, k=3, runs=3, seed=3, most_tables=60)
                for name in ("calm", "ft"))  # fmt: skip
    beside("Wang, Figure 6.4b, epsilon 0.2", x=["CALM", "FT"], printed={"SSE": [0.0055, 0.2266]},
           found={"SSE": [calm.mean_sse, ft.mean_sse]}, unit="SSE", tolerance="order alone")  # fmt: skip
    assert 3 * calm.mean_sse < ft.mean_sse < ft.uniform_sse
    assert ft.predicted_sse == pytest.approx(0.93, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("m", [8, 16])
def test_em_is_often_worse_than_uniform(m: int):
    """Section 6.3.2: with a share of epsilon per attribute EM knows hardly more than nothing."""
    records, sizes = clicks(1 << 16, m), [2] * m
    em = simulate_marginals(make_method("em", ask(sizes, 3, "0.2", 1 << 16)), records, sizes, k=3, most_tables=12)
    calm = simulate_marginals(make_method("calm", ask(sizes, 3, "0.2", 1 << 16)), records, sizes, k=3, most_tables=12)
    assert em.mean_sse > 0.5 * em.uniform_sse
    assert em.mean_sse > 2 * calm.mean_sse


def adult(columns: dict[int, int | None]) -> tuple[I64, list[int]]:
    """Columns of UCI Adult as codes; numeric ones in so many quantiles, others with at most so many common answers."""
    file = DATA / "adult.data"
    if not file.exists():
        pytest.skip(f"{file.name} is not in TACIT_DATA")
    rows = [line.strip().split(", ") for line in file.read_text().splitlines() if line.count(",") == 14]
    rows = [row for row in rows if "?" not in row]
    codes = [_codes(np.array([row[column] for row in rows]), most) for column, most in columns.items()]
    return np.stack(codes, axis=1), [int(column.max()) + 1 for column in codes]


def _codes(values: npt.NDArray[np.str_], most: int | None) -> I64:
    if all(value.lstrip("-").isdecimal() for value in values[:50]):
        numbers = values.astype(np.float64)
        steps = np.unique(np.quantile(numbers, np.arange(1, most or 4) / (most or 4)))
        return np.unique(np.searchsorted(steps, numbers, side="right"), return_inverse=True)[1].astype(np.int64)
    _, found, counts = np.unique(values, return_inverse=True, return_counts=True)
    place = np.argsort(np.argsort(-counts))[found]
    return (place if most is None else np.minimum(place, most - 1)).astype(np.int64)


@pytest.mark.slow
def test_figure_6_5_on_adult(beside: Beside):
    """Eight attributes of Adult with three answers each, k = 3, n = 2^16: CALM is best, also against its own bits (BE).

    FT draws only coefficients of at most three attributes here (1,788 instead of 14,892), which is why it is not as bad
    as printed; it stays worse than CALM by an order of magnitude at small epsilon.
    """
    records, sizes = adult({0: 3, 1: 3, 3: 3, 5: 3, 6: 3, 7: 3, 8: 3, 4: 3})
    assert sizes == [3] * 8
    records = records[np.random.default_rng(1).integers(0, len(records), 1 << 16)]
    tables = all_tables(8, 3, 24, np.random.default_rng(2))
    found: dict[str, list[float]] = {name: [] for name in ("calm", "be", "ft", "fc", "am", "uniform")}
    for epsilon in EPSILONS:
        question = ask(sizes, 3, epsilon, len(records))
        for name in ("calm", "ft", "fc"):
            found[name].append(native(make_method(name, question), records, sizes, tables))
        found["be"].append(encoded(records, sizes, tables, epsilon))
        found["am"].append(own_three(records, sizes, epsilon))
        found["uniform"].append(float(np.mean([uniform_sse(true_table(records, sizes, t)) for t in tables])))
    beside("Wang, Figure 6.5, Adult", x=EPSILONS, axis="epsilon", printed={}, found=found, unit="SSE",
           logarithmic=True, tolerance="order alone")  # fmt: skip
    for i, epsilon in enumerate(EPSILONS):
        assert found["calm"][i] < min(row[i] for name, row in found.items() if name != "calm"), epsilon


def native(mechanism: Mechanism, records: I64, sizes: list[int], tables: list[tuple[int, ...]], runs: int = 1) -> float:
    """The squared error of consistent tables, in the mean over them and over runs."""
    truth, total, rng = [true_table(records, sizes, table) for table in tables], 0.0, np.random.default_rng(5)
    for _ in range(runs):
        answers = solve_marginals(mechanism, simulate_tally(mechanism, records, sizes, rng), sizes=sizes)
        pairs = zip(answers.tables(tables), truth, strict=True)
        total += sum(float(np.sum((found.consistent - true) ** 2)) for found, true in pairs)
    return total / runs / len(tables)


def encoded(records: I64, sizes: list[int], tables: list[tuple[int, ...]], epsilon: str) -> float:
    bits = as_bits(records, sizes)
    wide = [2] * bits.shape[1]
    k = sum(sorted(bits_of(sizes))[-3:])
    mechanism = make_method("calm", ask(wide, k, epsilon, len(bits)))
    answers = BinaryEncoded(tuple(sizes), solve_marginals(mechanism, simulate_tally(mechanism, bits, wide, _rng())))
    return float(np.mean([np.sum((answers.table(t) - true_table(records, sizes, t)) ** 2) for t in tables]))


def own_three(records: I64, sizes: list[int], epsilon: str) -> float:
    mechanism = make_method("am", ask(sizes, 3, epsilon, len(records)))
    estimates = mechanism.estimate(simulate_tally(mechanism, records, sizes, _rng()))  # type: ignore[attr-defined]
    pairs = list(zip(estimates, combinations(range(len(sizes)), 3), strict=True))
    return float(np.mean([np.sum((e.value - true_table(records, sizes, t).ravel()) ** 2) for e, t in pairs]))


def _rng() -> np.random.Generator:
    return np.random.default_rng(6)


@pytest.mark.slow
def test_figure_6_6_on_adult(beside: Beside):
    """Income from five features, binary, respondents four times over; machines trained on 20,000 synthetic records.

    CALM comes near NoNoise as epsilon grows and stays below Majority from 0.6 on; the noise of a run is about 0.005.
    """
    pytest.importorskip("sklearn")
    records, sizes = adult({0: 2, 1: 2, 3: 2, 4: 2, 6: 2, 14: 2})
    rng = np.random.default_rng(1)
    order = rng.permutation(len(records))
    cut = len(order) * 4 // 5
    train, test = np.tile(records[order[:cut]], (4, 1)), records[order[cut:]]
    plain, most = classify_synthetic(train[:cut], test), majority(train[:, -1], test[:, -1])
    found: dict[str, list[float]] = {"calm": [], "fc": []}
    for epsilon in ("0.2", "0.6", "1", "1.4", "2"):
        for name, row in found.items():
            mechanism = make_method(name, ask(sizes, 6, epsilon, len(train)))
            answers = solve_marginals(mechanism, simulate_tally(mechanism, train, sizes, rng), sizes=sizes)
            row.append(classify_synthetic(sample_table(answers, range(6), 20_000, rng), test))
    levels = {"no noise": [plain] * 5, "majority": [most] * 5}
    beside("Wang, Figure 6.6, Adult", x=EPSILONS, axis="epsilon", printed={}, found=found | levels, unit="wrong labels",
           tolerance="NoNoise below CALM, CALM at most Majority")  # fmt: skip
    assert all(plain - 0.01 < value <= most + 0.005 for value in found["calm"][1:])
    assert found["calm"][-1] < plain + 0.6 * (most - plain) + 0.005


def with_views(records: I64, s: int, t: int, epsilon: str) -> float:
    """The squared error of all tables of three from t views of s attributes."""
    m = records.shape[1]
    sizes = [2] * m
    question = ask(sizes, 3, epsilon, len(records))
    views = balanced_views(m, s, 3, min(t, comb(m, s)))
    mechanism = one_of_views(sizes, views, lambda cells: adaptive_oracle(cells, question.budget))
    return simulate_marginals(mechanism, records, sizes, k=3, runs=3, seed=5, most_tables=30).mean_sse


@pytest.mark.slow
def test_figure_6_7(beside: Beside):
    """m = 8, k = 3, n = 2^16, epsilon 0.6: the error falls with the number of views, except where s is 1 or m.

    Small epsilon prefers small views. Sampling error at 32 views is 2^-11.
    """
    records, counts = clicks(1 << 16, 8), (2, 4, 8, 16, 28)
    found = {f"s={s}": [with_views(records, s, t, "0.6") for t in counts] for s in (1, 2, 3, 4, 6)}
    beside("Wang, Figure 6.7, epsilon 0.6", x=counts, axis="views", printed={}, found=found, unit="SSE",
           logarithmic=True, tolerance="order alone")  # fmt: skip
    for s in (2, 3, 4):
        assert found[f"s={s}"][-1] < found[f"s={s}"][0]
    assert found["s=1"][-1] == pytest.approx(found["s=1"][2], rel=0.3)  # Eight views of one attribute are all of them.
    by_size = {e: [with_views(records, s, 16, e) for s in (2, 6)] for e in ("0.2", "2")}
    assert by_size["0.2"][0] < by_size["0.2"][1]
    assert by_size["2"][1] / by_size["2"][0] < by_size["0.2"][1] / by_size["0.2"][0]
    assert sampling_error(2**16, 32) == 2**-11


@pytest.mark.slow
def test_figure_6_8(beside: Beside):
    """Views planned for tables of k' attributes, asked for tables of k; m = 16, n = 2^18. And PriView.

    k = 3 is answered alike by views for 3, 6 and 8. For k = 6 views for 3 are no better than those for 6. PriView,
    which trusts a curator, is at least an order of magnitude better.
    """
    n, sizes = 1 << 18, [2] * 16
    records = clicks(n, 16)
    found: dict[str, list[float]] = {}
    for k, planned in ((3, (3, 6, 8)), (6, (3, 6, 8))):
        for prime in planned:
            row = found.setdefault(f"k={k} planned for {prime}", [])
            for epsilon in ("0.6", "1.4"):
                plan = select_views(n=n, sizes=sizes, epsilon=float(epsilon), k=prime)
                budget = ask(sizes, 3, epsilon, n).budget
                mechanism = one_of_views(
                    sizes, views_of(plan, 16, prime), lambda cells, budget=budget: adaptive_oracle(cells, budget)
                )
                row.append(native(mechanism, records, sizes, all_tables(16, k, 24, np.random.default_rng(5)), runs=2))
    tables = all_tables(16, 3, 24, np.random.default_rng(5))
    row = found.setdefault("k=3 PriView, not local", [])
    for epsilon in ("0.6", "1.4"):
        central = PriView(epsilon=epsilon, sizes=tuple(sizes), views=cover_design(16, 4, 2))
        released = central.release(records, ReplayCoins(b"x"))
        row.append(float(np.mean([np.sum((released.table(t) - true_table(records, sizes, t)) ** 2) for t in tables])))
    beside("Wang, Figure 6.8", x=("0.6", "1.4"), axis="epsilon", printed={}, found=found, unit="SSE", logarithmic=True,
           tolerance="order alone")  # fmt: skip
    for i in range(2):
        threes = [found[f"k=3 planned for {prime}"][i] for prime in (3, 6, 8)]
        assert max(threes) < 3 * min(threes)
        assert found["k=6 planned for 6"][i] < 1.5 * found["k=6 planned for 3"][i]
        assert 10 * found["k=3 PriView, not local"][i] < min(threes)
