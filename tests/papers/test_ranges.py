"""Tables 5.2 and 5.3 of Kulkarni's dissertation (Figures 4 and 5 of its conference paper, VLDB 2019): ranges, prefixes.

Root mean squared error times 1000, N = 2^26 respondents. The tables are headed "MSE", which would be a thousandth of
what they print: `test_the_tables_are_roots` shows it. Columns are trees of fan-out 2, 4 and 16 with OUE levels under
constrained inference, all levels asked alike, and the Haar transform with HRR. The printed numbers are of five runs
whose errors are correlated over the ranges: the standard deviation of a cell is 5 to 7 % of it at D = 2^8 and 2 to 3 %
at 2^16 (measured over 80 and 12 groups of five runs), more for prefixes.
"""

import os
from math import exp, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.papers.conftest import Beside

from tacit.core.mechanism import Mechanism
from tacit.post.trees.levels import TreeShape
from tacit.simulate.population import rounded_counts
from tacit.simulate.ranges import all_ranges_mse, predicted_mse, prefixes_mse
from tacit.tasks.ranges.error import (
    Variances,
    Workload,
    first_pass,
    mean_variance,
    signed_variances,
    span_variances,
)
from tacit.tasks.ranges.plan import choose_ranges
from tacit.tasks.ranges.ranges import solve_ranges

pytestmark = pytest.mark.papers

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

N = 1 << 26
EPSILONS = ("0.2", "0.4", "0.6", "0.8", "1.0", "1.1", "1.2", "1.4")
COLUMNS = (2, 4, 16, 0)  # Fan-outs; 0 is the Haar transform.
DATA = Path(os.environ.get("TACIT_DATA", "data"))

# One row per epsilon, one number per column.
RANGES_2_8 = """
4.269 4.037 4.176 3.684
2.024 2.193 2.590 1.831
1.388 1.341 1.535 1.278
1.002 0.950 1.130 0.987
0.844 0.744 0.844 0.811
0.722 0.667 0.820 0.748
0.684 0.658 0.642 0.732
0.571 0.542 0.592 0.601"""
RANGES_2_16 = """
6.745 7.129 8.692 6.666
3.616 3.424 4.648 3.526
2.333 2.360 2.793 2.342
1.644 1.728 2.075 1.711
1.356 1.377 1.642 1.484
1.303 1.270 1.597 1.345
1.090 1.140 1.433 1.201
0.922 0.995 1.158 1.130"""
PREFIXES_2_8 = """
4.306 2.968 4.282 2.857
1.859 1.439 1.828 1.377
1.366 0.957 1.758 1.031
0.937 0.778 0.896 0.758
0.802 0.561 0.637 0.613
0.684 0.533 0.666 0.626
0.658 0.437 0.670 0.568
0.573 0.420 0.478 0.494"""
PREFIXES_2_16 = """
7.701 6.172 7.014 5.870
3.266 3.101 3.744 2.880
2.402 2.176 2.426 2.018
1.663 1.503 1.834 1.511
1.338 1.220 1.426 1.244
1.202 1.051 1.259 1.120
1.080 0.978 1.147 1.054
0.973 0.848 0.981 0.973"""
# The rows 0.2 and 0.4 of the largest domains; the other rows have a floor that does not depend on epsilon.
RANGES_2_20 = "10.043 10.493 11.511 9.285\n5.378 4.751 5.617 5.261"
RANGES_2_22 = "8.629 8.889 nan 8.422\n4.546 4.951 nan 4.470"


def table(text: str) -> F64:
    """Printed numbers, without the factor of a thousand."""
    return np.array([line.split() for line in text.strip().splitlines()], float) / 1000


def mechanism(size: int, fanout: int, epsilon: str) -> Mechanism:
    """What the tables ran: OUE levels or the Haar transform, levels asked alike."""
    return option(size, fanout, epsilon).mechanism


def option(size: int, fanout: int, epsilon: str, workload: str = "ranges"):
    method, oracle = ("hh", "oue") if fanout else ("haar", "hrr")
    return choose_ranges(
        size=size, epsilon=epsilon, n=N, workload=workload, even_levels=True,
        methods=[method], fanouts=[fanout] if fanout else None, oracles=[oracle],
    ).pick  # fmt: skip


def expected(size: int, workload: str) -> F64:
    """The exact root mean squared errors on uniform data, shaped like a table."""
    return np.array([[option(size, fanout, e, workload).rmse for fanout in COLUMNS] for e in EPSILONS])


def noise_alone(size: int, fanout: int, epsilon: str) -> Variances:
    """First-pass variances per n with the constants V and V1 alone: for OUE levels beyond the size that is built."""
    odds, shape = exp(float(epsilon)), TreeShape(size, fanout or 2)
    constant = 4 * odds / (odds - 1) ** 2 + (fanout == 0)
    noise = [shape.top * constant] * shape.top
    return first_pass(shape, noise) if fanout else signed_variances(shape, noise, [0.0] * shape.top)


def test_the_tables_are_roots() -> None:
    """Read as mean squares, every cell would be at least a hundred times the expectation; read as roots all fit."""
    found = table(RANGES_2_8)
    assert np.all(found > 100 * expected(256, "ranges") ** 2)


NAMES = ("HH 2", "HH 4", "HH 16", "Haar")


def show(beside: Beside, source: str, printed: F64, found: F64, tolerance: str) -> None:
    """Note a table: epsilons down, methods across."""
    beside(
        source, x=EPSILONS, axis="epsilon", unit="RMSE x 1000", tolerance=tolerance, logarithmic=True,
        printed={name: printed[:, i] for i, name in enumerate(NAMES)},
        found={name: found[:, i] for i, name in enumerate(NAMES)},
    )  # fmt: skip


def test_table_5_2_small_domain(beside: Beside) -> None:
    """All 32 cells within 15 %, two to three standard deviations."""
    show(beside, "Kulkarni, Table 5.2, D = 2^8: all ranges", table(RANGES_2_8) * 1000, expected(256, "ranges") * 1000,
         "within 15 %; found is exact theory, the print is of five runs")  # fmt: skip
    assert table(RANGES_2_8) / expected(256, "ranges") == pytest.approx(np.ones((8, 4)), abs=0.15)


def test_table_5_2_large_domain(beside: Beside) -> None:
    """All 32 cells are 4 to 20 % below the error over all ranges.

    Not all starts can have been run: aligned starts lack the error of their left end. With a stride of 2^11 the
    squared error falls to about two thirds.
    """
    ratio = table(RANGES_2_16) / expected(1 << 16, "ranges")
    show(beside, "Kulkarni, Table 5.2, D = 2^16: all ranges", table(RANGES_2_16) * 1000,
         expected(1 << 16, "ranges") * 1000, "printed 4 to 20 % below theory: starts were strided")  # fmt: skip
    assert ratio.min() > 0.79
    assert ratio.max() < 0.97


@pytest.mark.parametrize(("size", "printed", "within"), [(1 << 8, PREFIXES_2_8, 0.2), (1 << 16, PREFIXES_2_16, 0.1)])
def test_table_5_3(size: int, printed: str, within: float, beside: Beside) -> None:
    """All columns but the first within 20 % at 2^8 and 10 % at 2^16, apart from one cell that is 38 % too high.

    The root of five runs has a standard deviation of 8 to 11 % at 2^8 and 4 to 5 % at 2^16. The column of fan-out 2 is
    printed 7 to 32 % too high; a noisy root and heights off by one in the first pass would explain a part of it.
    """
    ratio = table(printed) / expected(size, "prefixes")
    show(beside, f"Kulkarni, Table 5.3, D = {size}: all prefixes", table(printed) * 1000,
         expected(size, "prefixes") * 1000, f"within {within:.0%} but one cell; fan-out 2 printed high")  # fmt: skip
    assert np.count_nonzero(np.abs(ratio[:, 1:] - 1) > within) == (1 if size == 256 else 0)
    assert ratio[:, 1:].max() < 1.4
    assert ratio[:, 0].min() > 1.05
    assert ratio[:, 0].max() < 1.35


def strided(size: int, stride: int, fanout: int, epsilon: str) -> float:
    """The error over ranges that start at multiples of a stride, from 20,000 of them; all ends of a start count."""
    rng = np.random.default_rng(5)
    low = rng.integers(0, size // stride, 20_000) * stride
    high = rng.integers(low + 1, size + 1)
    found = span_variances(TreeShape(size, fanout or 2), noise_alone(size, fanout, epsilon), low, high)
    # Early starts have more ends.
    return sqrt(float(np.average(found, weights=size - low)) / N)


def test_table_5_2_largest_domains() -> None:
    """The rows of epsilon 0.2 and 0.4, within 13 %: all ranges at 2^20, and starts at multiples of 2^17 at 2^22.

    The text says that both were strided. At 2^20 that would be 10 to 34 % less than printed, so it is not what the
    printed rows show; the rows of larger epsilon do not fit either way.
    """
    for row, epsilon in enumerate(("0.2", "0.4")):
        for column, fanout in enumerate(COLUMNS):
            shape = TreeShape(1 << 20, fanout or 2)
            every = sqrt(mean_variance(shape, Workload("ranges"), noise_alone(1 << 20, fanout, epsilon)) / N)
            assert table(RANGES_2_20)[row, column] / every == pytest.approx(1, abs=0.13)
            if fanout != 16:
                some = strided(1 << 22, 1 << 17, fanout, epsilon)
                assert table(RANGES_2_22)[row, column] / some == pytest.approx(1, abs=0.13)


def test_strided_starts_lower_the_error() -> None:
    """The squared error over aligned starts is about 0.60 (2^22) and 0.63 (2^20) of that over all ranges."""
    for size, stride, factor in ((1 << 22, 1 << 17, 0.60), (1 << 20, 1 << 14, 0.63)):
        every = mean_variance(TreeShape(size, 2), Workload("ranges"), noise_alone(size, 2, "1.1")) / N
        assert strided(size, stride, 2, "1.1") ** 2 / every == pytest.approx(factor, abs=0.03)


def cauchy(size: int, n: int) -> I64:
    """The synthetic population: |Cauchy| around 0.4 of the domain with a tenth of it as scale, cut at the end."""
    edges = np.arange(size + 1.0)
    cumulative = np.arctan((edges - 0.4 * size) / (size / 10)) - np.arctan((-edges - 0.4 * size) / (size / 10))
    return rounded_counts(np.diff(cumulative), n)


def simulated(chosen: Mechanism, counts: I64, runs: int, seed: int) -> tuple[float, float]:
    """Root mean squared errors over all ranges and over all prefixes of simulated collections."""
    rng, truth = np.random.default_rng(seed), np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    errors = [solve_ranges(chosen, chosen.simulate_tally(counts, rng)).cumulative - truth for _ in range(runs)]
    return tuple(sqrt(np.mean([mse(error) for error in errors])) for mse in (all_ranges_mse, prefixes_mse))  # pyright: ignore


def test_one_cell_by_simulation() -> None:
    """Fan-out 4 at 1.1 on the synthetic population, N = 2^26, 100 runs: within 10 % of theory and of the print."""
    found, _ = simulated(mechanism(256, 4, "1.1"), cauchy(256, N), 100, 1)
    assert found == pytest.approx(option(256, 4, "1.1").rmse, rel=0.1)
    assert found == pytest.approx(0.667e-3, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("fanout", COLUMNS)
def test_tables_by_simulation(fanout: int, epsilon: str) -> None:
    """Every cell at D = 2^8 on the synthetic population: within 5 % of theory, 17 % of Table 5.2.

    300 runs of N = 2^26 respondents; for Haar, whose respondents are drawn one by one, of 2^17, scaled by the root.
    """
    n = N if fanout else 1 << 17
    row, column = EPSILONS.index(epsilon), COLUMNS.index(fanout)
    chosen, counts = mechanism(256, fanout, epsilon), cauchy(256, n)
    ranges, prefixes = (value * sqrt(n / N) for value in simulated(chosen, counts, 300, 11))
    assert ranges == pytest.approx(option(256, fanout, epsilon).rmse, rel=0.05)
    assert prefixes == pytest.approx(option(256, fanout, epsilon, "prefixes").rmse, rel=0.06)
    assert table(RANGES_2_8)[row, column] == pytest.approx(ranges, rel=0.17)


@pytest.mark.slow
@pytest.mark.parametrize("fanout", COLUMNS)
def test_large_domain_by_simulation(fanout: int) -> None:
    """D = 2^16 at epsilon 1.1: 40 runs, within 12 % of theory."""
    n = N if fanout else 1 << 20
    found, _ = simulated(mechanism(1 << 16, fanout, "1.1"), cauchy(1 << 16, n), 40, 12)
    assert found * sqrt(n / N) == pytest.approx(option(1 << 16, fanout, "1.1").rmse, rel=0.12)


THOUSAND = [
    ("flat", None, "oue"), ("flat", None, "grr"), ("flat", None, "hrr"), ("flat", None, "ss"),
    ("hh", 2, "oue"), ("hh", 4, "oue"), ("hh", 16, "oue"), ("hh", 2, "hrr"), ("hh", 4, "hrr"), ("hh", 16, "grr"),
    ("hh", 4, "olh"), ("hh", 2, "hrr_subspace"), ("hh", 4, "mixed"), ("hh", 6, "mixed"), ("haar", None, "hrr"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("method", "fanout", "oracle"), THOUSAND)
@pytest.mark.parametrize("even", [True, False])
def test_a_thousand_runs(method: str, fanout: int | None, oracle: str, even: bool) -> None:
    """The error over all ranges is within 3 % of the prediction: the standard error of its root is about 0.7 %.

    The population is the synthetic one; the prediction has it plugged in. A variance wrong by 8 % is rejected.
    """
    chosen = choose_ranges(
        size=256, epsilon="1", n=1 << 13, even_levels=even, methods=[method],
        fanouts=[fanout] if fanout else None, oracles=[oracle],
    ).pick.mechanism  # fmt: skip
    counts = cauchy(256, 1 << 13)
    found, _ = simulated(chosen, counts, 1000, 21)
    assert found == pytest.approx(sqrt(predicted_mse(chosen, counts)), rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["INCOME", "NETTRACE", "SEARCHLOGS", "HEPTH"])
@pytest.mark.parametrize(("method", "fanout", "oracle"), [("hh", 4, "oue"), ("hh", 2, "grr"), ("haar", None, "hrr")])
def test_real_histograms(name: str, method: str, fanout: int | None, oracle: str) -> None:
    """A thousand runs on real histograms, in 256 bins of 16: within 3 % of the prediction with the data plugged in.

    For Haar the histogram is scaled to at most 2^14 respondents, who are drawn one by one.
    """
    file = DATA / f"{name}.n4096.npy"
    if not file.exists():
        pytest.skip(f"{file.name} is not in TACIT_DATA")
    counts = np.load(file).astype(np.int64).reshape(256, 16).sum(axis=1)
    if method == "haar":
        counts = rounded_counts(counts.astype(np.float64), min(1 << 14, int(counts.sum())))
    chosen = choose_ranges(
        size=256, epsilon="1", n=int(counts.sum()), methods=[method],
        fanouts=[fanout] if fanout else None, oracles=[oracle],
    ).pick.mechanism  # fmt: skip
    found, _ = simulated(chosen, counts, 1000, 31)
    assert found == pytest.approx(sqrt(predicted_mse(chosen, counts)), rel=0.03)
