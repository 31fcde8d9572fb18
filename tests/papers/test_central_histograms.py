"""Central histograms against print: HAY's figures and claims, and the centralised table of the range paper.

Sources: Hay, Rastogi, Miklau and Suciu, VLDB 2010, Figure 2 and section 5; Cormode, Kulkarni and Srivastava, VLDB 2019,
Figure 6 (Kulkarni, dissertation, Table 5.4). Simulations use Laplace noise, as the sources do. Real histograms are
found through TACIT_DATA and never downloaded; the sources' own data sets are not public, so degree sequences of the
same sizes stand in for them.
"""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.papers.conftest import Beside

from tacit.central.histograms import HayL, HayS, whole_prefixes
from tacit.central.privelet import Privelet
from tacit.central.trees import CDPHH, HayH
from tacit.central.workload import mean_range_variance

pytestmark = pytest.mark.papers

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
DATA = Path(os.environ.get("TACIT_DATA", "data"))
REAL = ("NETTRACE", "SEARCHLOGS", "HEPTH", "INCOME")


def real(name: str) -> I64:
    path = DATA / f"{name}.n4096.npy"
    if not path.exists():
        pytest.skip(f"{path.name} is not in TACIT_DATA")
    return np.load(path).astype(np.int64)


def power_law(cells: int, exponent: float, top: int) -> I64:
    """Quantiles of a power law: a degree sequence with few distinct values."""
    ranks = (np.arange(cells) + 0.5) / cells
    return np.floor(np.minimum(top, ranks ** (-1 / (exponent - 1)))).astype(np.int64)


# Table 5.4: average variance of a range at epsilon 1. Print is of simulations; the second number is the exact value.
TABLE_5_4 = {
    "wavelet": ((221.62, 221.13), (306.31, 305.95), (410.29, 410.29), (536.32, 536.14)),
    "hh16": ((79.23, 79.23), (164.48, 163.48), (185.94, 185.99), (213.87, 214.14)),
    "hh2": ((220.06, 220.06), (305.54, 305.54), (409.48, 410.58), (535.63, 537.18)),
}


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("method", TABLE_5_4)
def test_average_range_variances(method: str, column: int, beside: Beside) -> None:
    """Exact to the digits given; within 0.7 % of print, whose third row is not even ordered like the exact one."""
    size = 2 ** (8 + column)
    printed, exact = TABLE_5_4[method][column]
    if method == "wavelet":
        wavelet = Privelet(size=size, epsilon="1")
        noise = 2.0 * (1 + wavelet.heights) ** 2
        got = mean_range_variance(lambda q: wavelet.variance_of(q, node_variance=noise), size)
    else:
        tree = CDPHH(size=size, epsilon="1", fanout=int(method.removeprefix("hh")))
        got = mean_range_variance(lambda q: tree.variance_of(q, node_variance=2.0 * tree.levels**2), size)
    beside(f"Kulkarni, Table 5.4 (central), {method}, D = {size}", x=["average variance"], unit="counts squared",
           printed={method: [printed]}, found={method: [got]}, tolerance="within 0.7 %")  # fmt: skip
    assert round(got, 2) == exact
    assert abs(got / printed - 1) < 0.007


def test_figure_2_errors_vanish_inside_runs() -> None:
    """20 counts of 10, one of 14, four of 18, epsilon 1: 3,000 draws give every mean square to about 5 %.

    Print shows a plot: least error in the middle of the run of tens, most at its ends, total far below 25 x 2.
    """
    true = np.repeat([10, 14, 18], [20, 1, 4])
    method, rng = HayS(epsilon="1"), np.random.default_rng(1)
    errors = np.mean([(method.infer(method.release(true, rng)) - true) ** 2 for _ in range(3000)], axis=0)
    run = errors[:20]
    assert 7 <= int(run.argmin()) <= 12
    assert run[[0, -1]].min() > 1.9 * run[1:-1].max() > 3 * run[8:12].max()
    assert errors.sum() < 0.3 * 25 * 2  # measured: 12.8


@pytest.mark.parametrize(
    ("cells", "exponent", "top"),
    [(65_536, 2.5, 3000), (11_000, 2.2, 1500), (20_000, 1.8, 20_000)],
    ids=["network trace", "social graph", "search terms"],
)
def test_order_cuts_the_error_tenfold(cells: int, exponent: float, top: int) -> None:
    """Section 5.1: at least 10 times less than noise at epsilon 2, 1 and 0.1, less than sorting; more at small epsilon.

    Measured gains are 31 to 950; one release of ten thousands of cells is sharp enough for a factor of 10.
    """
    true, gains = power_law(cells, exponent, top), []
    for epsilon in ("2", "1", "0.1"):
        plain, sorted_, inferred = _sorted_errors(true, epsilon, releases=3)
        assert inferred < sorted_ < plain
        gains.append(plain / inferred)
    assert min(gains) > 10 and gains == sorted(gains)


@pytest.mark.parametrize("name", REAL)
def test_order_cuts_the_error_of_real_histograms(name: str) -> None:
    """Histograms of 4,096 bins, where section 5.1 has tens of thousands of counts: fewer equal ones, smaller gains.

    NETTRACE gains 57 times and more; the others, with 400 to 900 distinct counts, 4 to 9 times at epsilon 2 and 1, and
    about 10 and more at 0.1. Order beats sorting everywhere. Tolerance: two thirds of what was measured.
    """
    true = real(name)
    least = {"NETTRACE": (40, 38, 60), "SEARCHLOGS": (4.5, 5.8, 22), "HEPTH": (3.8, 5.6, 29), "INCOME": (2.6, 3.1, 6)}
    for epsilon, bound in zip(("2", "1", "0.1"), least[name], strict=True):
        plain, sorted_, inferred = _sorted_errors(true, epsilon, releases=5)
        assert plain / inferred > bound and inferred < sorted_


def _sorted_errors(true: I64, epsilon: str, *, releases: int) -> F64:
    """Squared errors of the release, of sort-and-round and of isotonic regression."""
    method, rng, ordered = HayS(epsilon=epsilon), np.random.default_rng(3), np.sort(true)
    total = np.zeros(3)
    for _ in range(releases):
        noisy = method.release(true, rng)
        answers = (noisy, method.sort_and_round(noisy), method.infer(noisy))
        total += [float(np.sum((answer - ordered) ** 2)) for answer in answers]
    return total


@pytest.fixture(scope="module")
def by_length() -> dict[int, F64]:
    """Exact variances over epsilon^-2 of flat, H~ and H- for ranges of 2^i of 2^16 units, over 20 random places."""
    tree, rng = HayH(size=1 << 16, epsilon="1"), np.random.default_rng(4)
    noise, found = 2.0 * tree.levels**2, {}
    for i in range(17):
        low = rng.integers(0, tree.size - (1 << i) + 1, 20)
        cells = np.arange(tree.size)
        queries = ((cells >= low[:, None]) & (cells < low[:, None] + (1 << i))).astype(np.float64)
        tiled = tree.tiles(np.stack([low, low + (1 << i)], axis=1)).mean() * noise
        found[i] = np.array([2.0 * (1 << i), tiled, tree.variance_of(queries, node_variance=noise).mean()])
    return found


def test_consistency_lowers_the_error_of_every_length(by_length: dict[int, F64]) -> None:
    """Section 5.2: H- below H~ everywhere, by 39 % for units, 70 % and more from 32 units on, 50 % at the root.

    The factor is exact and does not depend on epsilon or the data. The source sees the gap narrow most at the root;
    exactly, that is so among long ranges only.
    """
    gain = {i: 1 - after / tiled for i, (_, tiled, after) in by_length.items()}
    assert all(0.35 < g < 0.85 for g in gain.values())
    assert all(gain[i] > gain[16] for i in range(4, 16))
    assert abs(gain[16] - 0.5) < 1e-3


def test_flat_counts_win_for_short_ranges(by_length: dict[int, F64]) -> None:
    """Flat beats H~ for short ranges; the source puts the crossover near 2,000 units, the exact one is in 2^11 .. 2^12.

    With consistency the crossover falls to 2^9 .. 2^10. At the root flat is worse by n/17^2 = 227; the source says
    n/log2(n)^2 = 256.
    """
    flat_wins = [i for i, (flat, tiled, _) in by_length.items() if flat < tiled]
    assert flat_wins == list(range(12))
    assert [i for i, (flat, _, after) in by_length.items() if flat < after] == list(range(10))
    assert round(by_length[16][0] / by_length[16][1]) == 227


def test_long_ranges_improve_as_printed(by_length: dict[int, F64]) -> None:
    """Section 5.2: larger ranges improve by 45 to 98 % over both rivals; exactly 78 to 79 % from 2^12 units to half."""
    for i in range(12, 16):
        flat, tiled, after = by_length[i]
        assert 0.77 < 1 - after / min(flat, tiled) < 0.8
        assert 0.45 < 1 - after / max(flat, tiled) < 0.98


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "0.1", "0.01"])
@pytest.mark.parametrize("name", REAL)
def test_trees_on_real_histograms(name: str, epsilon: str) -> None:
    """Section 5.2 on 4,096 bins, 10 releases of 300 ranges: inference helps at every length, and zeroing still more.

    Compared at lengths from 16 to 2,048, where the measured factors are 1.3 and more; top-down non-negativity, which
    is not in the source, beats the zeroed subtrees of the source on every data set.
    """
    true, rng = real(name), np.random.default_rng(5)
    tree, flat = HayH(size=4096, epsilon=epsilon), HayL(epsilon=epsilon)
    lengths, total = (16, 256, 2048), np.zeros((3, 5))
    for _ in range(10):
        released = tree.release(true, rng)
        nodes = tree.infer_nodes(released)
        zeroed, leaves = tree.zero_empty_subtrees(nodes), whole_prefixes(tree.nonnegative(nodes)[0])
        cells = [nodes[0], leaves, flat.release(true, rng)]
        for row, length in enumerate(lengths):
            low = rng.integers(0, 4096 - length + 1, 300)
            truth, *sums = [_range_sums(values, low, length) for values in (true, *cells)]
            answers = [tree.tile(levels, np.stack([low, low + length], 1)) for levels in (released, zeroed)]
            total[row] += [np.mean((answer - truth) ** 2) for answer in (*answers, *sums)]
    tiled, zeroed, inferred, nonnegative, plain = total.T
    assert np.all(inferred < tiled)
    assert np.all(zeroed < 1.1 * inferred) and np.all(nonnegative < zeroed)
    assert np.all(nonnegative[-1] < plain[-1])  # long ranges


def _range_sums(values: npt.NDArray[np.float64] | I64, low: I64, length: int) -> F64:
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return sums[low + length] - sums[low]


@pytest.mark.parametrize("name", ["NETTRACE"])
def test_sparse_cells_beat_flat_counts_although_the_tree_is_noisier(name: str) -> None:
    """Section 5.2: on sparse data H- can beat the flat histogram even for single cells; here at epsilon 0.01.

    Both non-negative integers; squared error over all cells of 5 releases, measured 0.45 of the flat one.
    """
    true, rng = real(name), np.random.default_rng(6)
    tree, flat = HayH(size=4096, epsilon="0.01"), HayL(epsilon="0.01")
    errors = np.zeros(2)
    for _ in range(5):
        leaves = whole_prefixes(tree.nonnegative(tree.infer_nodes(tree.release(true, rng)))[0])
        plain = np.clip(np.rint(flat.release(true, rng)), 0, None)
        errors += [np.sum((leaves - true) ** 2), np.sum((plain - true) ** 2)]
    assert errors[0] < 0.75 * errors[1]
