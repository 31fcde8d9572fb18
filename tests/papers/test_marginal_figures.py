"""Figures 4.3 to 4.10 and Table 4.2 of Kulkarni's dissertation: joint distributions of binary attributes.

The data there (taxi trips, film ratings) is not at hand; stand-ins are made here, see docs/maths/marginals.md. Errors
are total-variation distances of raw tables, averaged over all tables of k attributes; the numbers beside are what the
literature's own formulas, or runs of them, give on the same stand-ins.
"""

from functools import cache, partial
from itertools import combinations
from math import comb, log, pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.papers.conftest import Beside

from tacit.core.mechanism import Mechanism
from tacit.core.statistics.moments import Moments
from tacit.device.families.coefficients import Coefficients
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRRT
from tacit.oracles.unary import SUE
from tacit.post.views.table import margin
from tacit.simulate.marginals import movie_like, simulate_tally, taxi_like, true_table
from tacit.tasks.marginals.association import naive_chi_square, wald_test
from tacit.tasks.marginals.dependence import chow_liu, spanning_tree, true_information
from tacit.tasks.marginals.each import most_likely
from tacit.tasks.marginals.marginals import Marginals
from tacit.tasks.marginals.methods import ask, make_method
from tacit.tasks.marginals.solve import expected_source
from tacit.tasks.marginals.solve import solve_marginals as solve_shrunken
from tacit.tasks.marginals.sources import FromSigns, FromWhole, TableSource

# Papers know no shrinkage: tables are made consistent as they have it.
solve_marginals = partial(solve_shrunken, shrink=False)

pytestmark = pytest.mark.papers

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
THREE = f"{log(3):.16f}"
STAND_IN = "Beside: the literature's formulas, or runs of them, on the stand-in. Within "
NAMES = ("inp_rr", "inp_ps", "inp_ht", "marg_rr", "marg_ps", "marg_ht")
ORACLES: dict[str, Any] = {"inp_rr": SUE, "inp_ps": GRR, "marg_rr": SUE, "marg_ps": GRR}


class Data:
    """Records of binary attributes, and their tables once each."""

    def __init__(self, records: I64) -> None:
        self.records, self.d = records, records.shape[1]
        # Tables are margins of the table of everything, which is much shorter than the records.
        self._whole = true_table(records, [2] * self.d, range(self.d))
        self._known: dict[tuple[int, ...], F64] = {}

    def share(self, table: tuple[int, ...]) -> F64:
        if table not in self._known:
            self._known[table] = margin(self._whole, range(self.d), table)
        return self._known[table]


@cache
def all_films() -> I64:
    return movie_like(1 << 18, 16, np.random.default_rng(1))


@cache
def films(d: int) -> Data:
    """Sixteen attributes; figures with fewer take the first ones."""
    return Data(all_films()[:, :d])


@cache
def taxis() -> Data:
    return Data(taxi_like(1 << 18, np.random.default_rng(1)))


def source_of(name: str, data: Data, k: int, epsilon: str, n: int, table: tuple[int, ...]) -> TableSource:
    """What a method would know of one table as the literature has it: every table from its own respondents.

    MARG-HT divides every coefficient of a table by its own respondents: INP-HT over k attributes, n/C(d, k) people.
    """
    d = data.d

    def truth(attributes: tuple[int, ...]) -> F64:
        return data.share(tuple(table[a] for a in attributes) if name.startswith("marg") else attributes)

    if name == "inp_ht":
        return expected_source(_signs(d, k, epsilon), n, truth, [2] * d)
    if name == "marg_ht":
        sign = GRR(size=2, epsilon=epsilon)
        family = Coefficients(sizes=(2,) * k, k=k, mechanisms=(sign,))
        scale = np.full(len(family), comb(d, k) * len(family) / n)
        return FromSigns(family, np.zeros(len(family)), float(1 / (sign.p - sign.q) ** 2 - 1), scale, n, truth)
    width, groups = (k, comb(d, k)) if name.startswith("marg") else (d, 1)
    moments = _moments(name, width, epsilon)
    return FromWhole((2,) * width, np.zeros((2,) * width), moments, groups / n, n, fix_total=False, truth=truth)


@cache
def _moments(name: str, width: int, epsilon: str) -> Moments:
    return ORACLES[name](size=1 << width, epsilon=epsilon).moments


@cache
def _signs(d: int, k: int, epsilon: str) -> Mechanism:
    return make_method("ft", ask([2] * d, k, epsilon, 1 << 26))


def expected_tv(name: str, data: Data, k: int, epsilon: str, n: int, most: int = 40) -> float:
    """E[TV] = sqrt(2/pi)/2 times the sum of the cells' standard errors, against the respondents; normal limit."""
    tables = list(combinations(range(data.d), k))
    some = tables[:: max(1, len(tables) // most)]
    total = 0.0
    for table in some:
        at = tuple(range(k)) if name.startswith("marg") else table
        variance = source_of(name, data, k, epsilon, n, table).linear(at, np.eye(1 << k))
        total += sqrt(2 / pi) / 2 * float(np.sqrt(variance).sum())
    return total / len(some)


FIGURE_4_3 = {
    (4, 1): (0.0158, 0.0139, 0.0059, 0.0115, 0.0059, 0.0059),
    (4, 2): (0.0224, 0.0241, 0.0165, 0.0280, 0.0195, 0.0223),
    (4, 3): (0.0317, 0.0368, 0.0300, 0.0453, 0.0408, 0.0427),
    (8, 1): (0.0634, 0.2010, 0.0086, 0.0163, 0.0086, 0.0086),
    (8, 2): (0.0897, 0.3482, 0.0319, 0.0608, 0.0425, 0.0488),
    (8, 3): (0.1268, 0.5319, 0.0781, 0.1702, 0.1536, 0.1614),
    (16, 1): (1.01, 51, 0.0122, 0.0231, 0.0122, 0.0122),
    (16, 2): (1.43, 88, 0.0622, 0.1259, 0.0881, 0.1013),
    (16, 3): (2.03, 135, 0.2156, 0.5386, 0.4863, 0.5116),
}


def test_figure_4_3(beside: Beside):
    """All six methods, e^epsilon = 3, n = 2^16, to half a per cent plus one unit of the last digit.

    The stand-in has sixteen attributes, of which four and eight are the first ones, and errors are against the
    respondents: against the population, k = 1 at d = 4 would be 3.8 % larger (a term f(1 - f)/n of 3.6 in all), and
    with four attributes spread over the whole range 1 % (their signs are less far from zero).
    """
    found = {at: [expected_tv(name, films(at[0]), at[1], THREE, 1 << 16) for name in NAMES] for at in FIGURE_4_3}
    labels = [f"d={d} k={k}" for d, k in FIGURE_4_3]
    series = [
        {name: [rows[at][i] for at in FIGURE_4_3] for i, name in enumerate(NAMES)} for rows in (FIGURE_4_3, found)
    ]
    beside("Kulkarni, Figure 4.3", x=labels, printed=series[0], found=series[1], unit="TV", logarithmic=True,
           tolerance=STAND_IN + "half a per cent and one unit of the last digit")  # fmt: skip
    for at, wanted in FIGURE_4_3.items():
        for value, want in zip(found[at], wanted, strict=True):
            digit = 1 if want > 10 else 0.01 if want > 1 else 0.0001
            assert value == pytest.approx(want, rel=0.005, abs=digit), at
        errors = dict(zip(NAMES, found[at], strict=True))
        assert errors["inp_ht"] <= 1.001 * min(errors.values())
        if at[1] > 1:
            assert errors["marg_ps"] < errors["marg_rr"]


FIGURE_4_4 = {
    "inp_ht": (0.0042, 0.0157, 0.0386, 0.0754, 0.1263, 0.1919, 0.2775),
    "inp_rr": (0.0317, 0.0448, 0.0634, 0.0897, 0.1268, 0.1793, 0.2536),
    "marg_ps": (0.0042, 0.0210, 0.0765, 0.2265, 0.5511, 1.079, 1.614),
    "marg_ht": (0.0042, 0.0240, 0.0797, 0.1921, 0.3566, 0.5141, 0.5553),
    "marg_rr": (0.0081, 0.0303, 0.0850, 0.1889, 0.3368, 0.4754, 0.5076),
    "inp_ps": (0.10, 0.17, 0.27, 0.39, 0.56, 0.80, 1.13),
}


def test_figure_4_4(beside: Beside):
    """Eight attributes, k = 1 to 7, n = 2^18: INP-HT is best up to half of the attributes, then INP-RR with it.

    The dissertation states about 0.125 for the best method at k = 5.
    """
    found = {name: [expected_tv(name, taxis(), k, THREE, 1 << 18) for k in range(1, 8)] for name in FIGURE_4_4}
    printed = {name: list(row) for name, row in FIGURE_4_4.items()}
    beside("Kulkarni, Figure 4.4", x=range(1, 8), axis="k", printed=printed, found=found, unit="TV", logarithmic=True,
           tolerance=STAND_IN + "half a per cent and one unit of the last digit")  # fmt: skip
    for name, wanted in FIGURE_4_4.items():
        digit = 0.005 if name == "inp_ps" else 0.0001
        assert found[name] == pytest.approx(list(wanted), rel=0.005, abs=digit), name
    assert min(row[4] for row in found.values()) == pytest.approx(0.125, rel=0.02)
    for k in range(4):
        assert min(found, key=lambda name: found[name][k]) in ("inp_ht", "marg_ps", "marg_ht")[: 1 if k else 3]
    assert found["inp_rr"][6] < found["inp_ht"][6]


FIGURE_4_6 = {
    (8, 2): {"inp_ht": (0.0409, 0.0211, 0.0159, 0.0131), "marg_ps": (0.0652, 0.0303, 0.0212, 0.0162),
             "marg_ht": (0.0625, 0.0323, 0.0244, 0.0200)},
    (16, 3): {"inp_ht": (0.275, 0.142, 0.108, 0.089), "marg_ps": (0.842, 0.367, 0.243, 0.176),
              "marg_ht": (0.653, 0.338, 0.256, 0.211)},
}  # fmt: skip


@pytest.mark.parametrize(("d", "k"), list(FIGURE_4_6))
def test_figure_4_6(beside: Beside, d: int, k: int):
    """n = 2^18: INP-HT is best at every epsilon; MARG-PS overtakes MARG-HT as epsilon grows."""
    epsilons, wanted = ("0.4", "0.8", "1.1", "1.4"), FIGURE_4_6[d, k]
    found = {name: [expected_tv(name, films(d), k, e, 1 << 18) for e in epsilons] for name in wanted}
    printed = {name: list(row) for name, row in wanted.items()}
    beside(f"Kulkarni, Figure 4.6, d={d} k={k}", x=epsilons, axis="epsilon", printed=printed, found=found, unit="TV",
           tolerance=STAND_IN + "half a per cent and one unit of the last digit")  # fmt: skip
    for name, row in wanted.items():
        assert found[name] == pytest.approx(list(row), rel=0.005, abs=0.0001 if d == 8 else 0.0005), name
    for i in range(4):
        assert found["inp_ht"][i] == min(row[i] for row in found.values())
    assert found["marg_ht"][0] < found["marg_ps"][0]
    assert found["marg_ps"][-1] < found["marg_ht"][-1]


def test_an_error_halves_when_respondents_quadruple():
    """Section 4.4.2, all six methods, up to the respondents' own spread."""
    for name in NAMES:
        few, many = (expected_tv(name, taxis(), 2, THREE, n) for n in (1 << 14, 1 << 16))
        assert few / many == pytest.approx(2, rel=1e-3)


def collected(method: str, records: I64, epsilon: str, seed: int = 2) -> Marginals:
    sizes = [2] * records.shape[1]
    mechanism = make_method(method, ask(sizes, 2, epsilon, len(records)))
    return solve_marginals(
        mechanism, simulate_tally(mechanism, records, sizes, np.random.default_rng(seed)), sizes=sizes
    )


def distance(answers: Marginals, records: I64, tables: list[tuple[int, ...]]) -> float:
    sizes = [2] * records.shape[1]
    pairs = zip(answers.tables(tables), tables, strict=True)
    return float(np.mean([0.5 * np.abs(found.consistent - true_table(records, sizes, t)).sum() for found, t in pairs]))


def repeated(n: int, d: int) -> I64:
    return np.tile(taxi_like(n, np.random.default_rng(1)), (1, -(-d // 8)))[:, :d]


FIGURE_4_5 = {
    (8, "0.2"): (0.094, 0.047, 0.091), (8, "1.1"): (0.040, 0.010, 0.014),
    (16, "0.4"): (0.138, 0.050, 0.099), (16, "1.1"): (0.069, 0.021, 0.029),
    (24, "0.4"): (0.241, 0.083, 0.147), (24, "1.1"): (0.106, 0.029, 0.049),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("d", "epsilon"), list(FIGURE_4_5))
def test_figure_4_5(beside: Beside, d: int, epsilon: str):
    """Pairs, n = 2^19: EM is several times worse than INP-HT. One run each, so within a half; all methods non-negative.

    MARG-PS is far better than noted: its tables are made to agree here.
    """
    records = repeated(1 << 19, d)
    tables = list(combinations(range(d), 2))[:: max(1, comb(d, 2) // 40)]
    names = ("em", "ft", "marg_ps")
    found = [distance(collected(name, records, epsilon), records, tables) for name in names]
    beside(f"Kulkarni, Figure 4.5, d={d} epsilon={epsilon}", x=["n = 2^19"], unit="TV",
           printed={name: [x] for name, x in zip(names, FIGURE_4_5[d, epsilon], strict=True)},
           found={name: [x] for name, x in zip(names, found, strict=True)},
           tolerance=STAND_IN + "half; one run")  # fmt: skip
    for value, want in list(zip(found, FIGURE_4_5[d, epsilon], strict=True))[:2]:
        assert want / 1.5 < value < 1.5 * want
    assert found[0] > 1.5 * found[1]
    assert found[2] < FIGURE_4_5[d, epsilon][2]


@pytest.mark.slow
def test_stopping_em_early_is_much_worse():
    """Section 4.4.4, d = 8, epsilon 1.1, n = 2^19: 0.065 when it stops at changes of 1e-4, 0.040 at 1e-5."""
    records = repeated(1 << 19, 8)
    source: Any = collected("em", records, "1.1").source
    tables, sizes = list(combinations(range(8), 2)), [2] * 8
    found = []
    for omega in (1e-4, 1e-5):
        fits = [most_likely(source, table, omega=omega) for table in tables]
        errors = [np.abs(f.table - true_table(records, sizes, t)).sum() / 2 for f, t in zip(fits, tables, strict=True)]
        found.append(float(np.mean(errors)))
    assert found == pytest.approx([0.065, 0.040], rel=0.3)
    assert found[0] > 1.3 * found[1]


TABLE_4_2 = {
    (16, 8, 1, "0.2"): (3, 8), (18, 8, 2, "0.1"): (15, 28), (16, 8, 2, "0.2"): (3, 28), (16, 12, 2, "0.2"): (19, 66),
    (18, 16, 2, "0.1"): (120, 120), (18, 16, 2, "0.2"): (72, 120), (19, 24, 2, "0.2"): (276, 276),
}  # fmt: skip


@pytest.mark.slow
def test_table_4_2(beside: Beside):
    """How many tables EM leaves at its start: on the stand-in one run gave 1, 11, 1, 9, 120, 45 and 263 of them.

    The count depends on the data; what holds is the pattern: nearly all fail where d is large and epsilon small.
    """
    counts: list[int] = []
    for (log_n, d, k, epsilon), _ in TABLE_4_2.items():
        source: Any = collected("em", repeated(1 << log_n, d), epsilon).source
        tables = combinations(range(d), k)
        counts.append(sum(not most_likely(source, table, most=2).moved for table in tables))
    labels = [f"n=2^{n} d={d} k={k} epsilon={e}" for n, d, k, e in TABLE_4_2]
    wanted = [failed for failed, _ in TABLE_4_2.values()]
    beside("Kulkarni, Table 4.2", x=labels, printed={"stopped at once": wanted}, found={"stopped at once": counts},
           unit="tables", tolerance="all fail in row 5, nine tenths in row 7, fewer elsewhere")  # fmt: skip
    assert counts[4] == 120
    assert counts[6] >= 0.9 * 276
    for count, want, (_, total) in zip(counts, wanted, TABLE_4_2.values(), strict=True):
        assert count <= want + 0.1 * total


FIGURE_4_7 = {4: (0.0074, 0.0085, 0.031), 6: (0.0124, 0.0172, 0.038), 8: (0.0187, 0.043, 0.056)}


@pytest.mark.slow
def test_figure_4_7(beside: Beside):
    """Zipf 0.5 on shuffled combinations, n = 2^18, pairs, e^epsilon = 3: INP-HT, OLH and the sketch of five rows.

    OLH is as good as INP-HT at d = 4 and twice as bad at d = 8; the sketch is never competitive. Runs differ by a third
    (the sketch by its hash functions), so three runs are held to half.
    """
    n, names = 1 << 18, ("ft", "inp_olh", "inp_hcms")
    found: dict[str, list[float]] = {name: [] for name in names}
    for d, wanted in FIGURE_4_7.items():
        rng = np.random.default_rng(d)
        share = rng.permutation(np.arange(1, (1 << d) + 1) ** -0.5)
        flat = rng.choice(1 << d, n, p=share / share.sum())
        records = np.stack(np.unravel_index(flat, (2,) * d), axis=1).astype(np.int64)
        for name, want in zip(names, wanted, strict=True):
            runs = [raw_distance(name, records, seed) for seed in range(3)]
            found[name].append(float(np.mean(runs)))
            assert want / 1.5 < found[name][-1] < 1.5 * want, (name, d)
        assert found["ft"][-1] < found["inp_hcms"][-1]
    printed = {name: [row[i] for row in FIGURE_4_7.values()] for i, name in enumerate(names)}
    beside("Kulkarni, Figure 4.7", x=list(FIGURE_4_7), axis="d", printed=printed, found=found, unit="TV",
           tolerance=STAND_IN + "half; three runs")  # fmt: skip
    assert found["inp_olh"][2] > 1.7 * found["ft"][2]


def raw_distance(method: str, records: I64, seed: int) -> float:
    answers, sizes = collected(method, records, THREE, seed), [2] * records.shape[1]
    tables = list(combinations(range(len(sizes)), 2))
    errors = [np.abs(answers.source.raw(table) - true_table(records, sizes, table)).sum() / 2 for table in tables]
    return float(np.mean(errors))


FIGURE_4_8 = {
    (3, 4): (155315, 157350, 156699), (1, 2): (102125, 104587, 98816), (0, 7): (62838, 62613, 62175),
    (0, 6): (0.53, 100, 140), (2, 3): (0.41, 265, 542), (1, 3): (0.46, 597, 942),
}  # fmt: skip


@pytest.mark.slow
def test_figure_4_8(beside: Beside):
    """Chi-square as printed, n = 256 K, epsilon 1.1, medians of 15 runs; what was noted is a median of few runs.

    Single runs deviate by 5 to 11, 28 and 12 per cent for the dependent pairs, medians of 15 by a third of that: they
    are held to four such deviations. Independent pairs do not reproduce for either method: the statistic is far above
    3.84, below which it should be. That is why the Wald test exists; it rejects none of them more than twice at 1 %.
    """
    n = 1 << 18
    found: dict[str, list[float]] = {"none": [], "ft": [], "marg_ps": []}
    runs = [(taxi_like(n, np.random.default_rng(seed)), seed) for seed in range(15)]
    answers = {name: [collected(name, records, "1.1", seed) for records, seed in runs] for name in ("ft", "marg_ps")}
    for pair in FIGURE_4_8:
        found["none"].append(float(np.median([_chi_square(true_table(r, [2] * 8, pair), n) for r, _ in runs])))
        for name, every in answers.items():
            found[name].append(float(np.median([naive_chi_square(one.table(pair)).statistic for one in every])))
    printed = {name: [row[i] for row in FIGURE_4_8.values()] for i, name in enumerate(found)}
    beside("Kulkarni, Figure 4.8", x=[str(pair) for pair in FIGURE_4_8], axis="pair", printed=printed, found=found,
           unit="chi-square", logarithmic=True,
           tolerance=STAND_IN + "15, 37 and 17 % for the first three pairs")  # fmt: skip
    for name, row in found.items():
        for value, want, within in zip(row[:3], printed[name][:3], (0.15, 0.37, 0.17), strict=True):
            assert value == pytest.approx(want, rel=0.02 if name == "none" else within), name
    assert max(found["none"][3:]) < 3.84
    assert min(found["ft"][3:] + found["marg_ps"][3:]) > 3.84
    for one in answers["ft"][:1]:
        assert all(wald_test(one.table(pair)).rejects(1e-4) for pair in list(FIGURE_4_8)[:3])
    for pair in list(FIGURE_4_8)[3:]:
        assert sum(wald_test(one.table(pair)).rejects(0.01) for one in answers["ft"]) <= 2


def _chi_square(p: F64, n: int) -> float:
    expected = np.outer(p.sum(axis=1), p.sum(axis=0))
    return float(n * np.sum((p - expected) ** 2 / expected))


FIGURE_4_9 = {
    "0.4": (0.936, 0.822), "0.6": (0.966, 0.954), "0.8": (0.981, 0.969), "1.0": (1.000, 0.989), "1.4": (1.000, 0.996),
}  # fmt: skip


@pytest.mark.slow
def test_figure_4_9(beside: Beside):
    """Chow-Liu trees of ten attributes, 200,000 respondents: true information on the edges over the best tree's.

    Below epsilon 1 single trees deviate by up to 0.07, so what was noted (few runs) is met within 0.12 by means of six;
    from there on trees are nearly optimal.
    """
    n, sizes = 200_000, [2] * 10
    rng = np.random.default_rng(1)
    records = np.column_stack([taxi_like(n, rng), movie_like(n, 2, rng)])
    best = spanning_tree(10, {p: true_information(records, sizes, [p]) for p in combinations(range(10), 2)})
    most = true_information(records, sizes, best)
    found: dict[str, list[float]] = {"inp_ht": [], "marg_ps": []}
    for epsilon in FIGURE_4_9:
        for name, row in found.items():
            trees = [chow_liu(collected(name, records, epsilon, seed)) for seed in range(6)]
            row.append(float(np.mean([true_information(records, sizes, tree.edges) for tree in trees])) / most)
    printed = {name: [row[i] for row in FIGURE_4_9.values()] for i, name in enumerate(found)}
    beside("Kulkarni, Figure 4.9", x=list(FIGURE_4_9), axis="epsilon", printed=printed, found=found,
           unit="share of the best tree's information", tolerance=STAND_IN + "0.12 below 1, then 0.02")  # fmt: skip
    for name, row in found.items():
        for epsilon, value, want in zip(FIGURE_4_9, row, printed[name], strict=True):
            assert value > want - (0.02 if float(epsilon) >= 1 else 0.12), (name, epsilon)
    assert found["inp_ht"][-2] > 0.98


def test_figure_4_10(beside: Beside):
    """t Hadamard rows at once, n = 2^24, e^epsilon = 3: one is best, 1 : 1.06 : 1.44 : 2.25 at every size.

    That three rows look best at 2^12 values, as printed, cannot be reproduced.
    """
    sizes, wanted = (8, 9, 10, 12), (0.050, 0.099, 0.199, 0.797)
    found: dict[str, list[float]] = {}
    for t in range(1, 5):
        row = [HRRT(size=1 << d, epsilon=THREE, coefficients=t).moments.average(1 << d) for d in sizes]
        found[f"t={t}"] = [sqrt(2 / pi) / 2 * 2**d * sqrt(v / 2**24) for d, v in zip(sizes, row, strict=True)]
    beside("Kulkarni, Figure 4.10", x=[f"2^{d}" for d in sizes], axis="values", found=found, unit="TV",
           printed={"t=1": wanted}, tolerance=STAND_IN + "1 %", logarithmic=True)  # fmt: skip
    assert found["t=1"] == pytest.approx(list(wanted), rel=0.01)
    for i in range(len(sizes)):
        ratios = [found[f"t={t}"][i] / found["t=1"][i] for t in range(1, 5)]
        assert ratios == pytest.approx([1, 1.06, 1.44, 2.25], rel=0.01)


def test_sizes_of_reports():
    """Section 4.4: 256 combinations of eight attributes, 112 cells of pairs; INP-RR sends 28 and 3,855 times INP-HT."""
    assert comb(8, 2) * 4 == 112
    for d, ratio in ((8, 28), (16, 3855)):
        bits: Mechanism = make_method("inp_rr", ask([2] * d, 2, THREE, 1 << 20))
        assert bits.report_bits == 1 << d
        assert bits.report_bits // (d + 1) == ratio  # The dissertation charges d + 1 bits for a sign and its index.
        assert make_method("ft", ask([2] * d, 2, THREE, 1 << 20)).report_bits <= d + 1
