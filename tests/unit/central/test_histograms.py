"""Central histograms: exact privacy, golden cases, least squares against dense algebra, exact variances, refusals."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.central.histograms import HayL, HayS, whole_counts, whole_prefixes
from tacit.central.noise import Geometric
from tacit.central.privelet import Privelet
from tacit.central.trees import CDPHH, HayH
from tacit.central.workload import mean_range_variance
from tacit.device.numbers.budget import as_epsilon
from tacit.device.numbers.coins import Coins, ScriptedCoins, SystemCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue
from tacit.post.frequencies.simplex import project_to_simplex
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_unbiased, assert_variance

F64 = npt.NDArray[np.float64]
TREES = [
    HayH(size=8, epsilon="1"),
    HayH(size=9, epsilon="1", fanout=3),
    HayH(size=11, epsilon="1", fanout=3),  # ragged
    HayH(size=2, epsilon="1"),
    CDPHH(size=8, epsilon="1"),
    CDPHH(size=21, epsilon="1", fanout=4),  # ragged
    CDPHH(size=5, epsilon="1", fanout=5),  # one level: flat
]


def ranges_as_queries(ranges: npt.ArrayLike, size: int) -> F64:
    """Half-open ranges [low, high) as rows of zeros and ones."""
    low, high = np.asarray(ranges, np.int64).reshape(-1, 2).T
    cells = np.arange(size)
    return ((cells >= low[:, None]) & (cells < high[:, None])).astype(np.float64)


def design_matrix(linear: HayH | Privelet) -> F64:
    """What every released number sees of every cell."""
    read = linear.nodes if isinstance(linear, HayH) else linear.coefficients
    columns = [np.concatenate(read(cell)) for cell in np.eye(linear.size, dtype=np.int64)]
    return np.stack(columns, axis=1).astype(np.float64)


def split(linear: HayH, y: F64) -> list[Any]:
    return np.split(y, np.cumsum(linear.sizes[: linear.levels])[:-1])


@pytest.mark.parametrize("linear", [*TREES, Privelet(size=8, epsilon="1"), Privelet(size=5, epsilon="1")], ids=repr)
def test_one_tuple_changes_as_many_numbers_as_the_noise_pays_for(linear: HayH | Privelet) -> None:
    """Exact privacy: the ratio of one changed number to the power of the largest column of the design."""
    sensitivity = int(np.abs(design_matrix(linear)).sum(axis=0).max())
    declared = linear.levels if isinstance(linear, HayH) else 1 + linear.heights
    assert sensitivity == declared
    ratio = Geometric(linear.epsilon, declared, ScriptedCoins([])).ratio
    assert ratio**sensitivity <= Fraction(as_epsilon(linear.epsilon).odds, WORD)


def test_sorting_does_not_raise_the_sensitivity() -> None:
    """Proposition 1, for every histogram of 4 cells with counts up to 3 and every tuple added."""
    for counts in np.ndindex(4, 4, 4, 4):
        for cell in range(4):
            more = np.array(counts)
            more[cell] += 1
            assert np.abs(np.sort(more) - np.sort(counts)).sum() == 1


class _Recorded(Coins):
    """Coins that give the middle word: noise of 0."""

    def _draw(self, size: int) -> bytes:
        return (WORD - 1).to_bytes(8, "little") * -(-size // 8)


def test_release_adds_noise_to_the_right_numbers() -> None:
    quiet = _Recorded()
    assert HayL(epsilon="1").release([3, 1, 2], quiet).tolist() == [3, 1, 2]
    assert HayS(epsilon="1").release([3, 1, 2], quiet).tolist() == [1, 2, 3]
    levels = HayH(size=5, epsilon="1").release([1, 2, 3, 4, 5], quiet)
    assert [level.tolist() for level in levels] == [[1, 2, 3, 4, 5], [3, 7, 5], [10, 5], [15]]
    assert len(CDPHH(size=5, epsilon="1").release([1, 2, 3, 4, 5], quiet)) == 3
    wavelet = Privelet(size=4, epsilon="1").release([1, 2, 3, 7], quiet)
    assert [level.tolist() for level in wavelet] == [[-1, -4], [-7], [13]]


@pytest.mark.parametrize(
    ("noisy", "expected"),
    [  # Hay et al., Table 2; its "distance" column (0, 2, 14, 14) is the squared distance.
        ([10, 11, 13], [10, 11, 13]),
        ([10, 13, 11], [10, 12, 12]),
        ([14, 9, 10], [11, 11, 11]),
        ([14, 9, 10, 15], [11, 11, 11, 15]),
    ],
)
def test_order_is_restored_as_printed(noisy: list[int], expected: list[int]) -> None:
    inferred = HayS(epsilon="1").infer(noisy)
    assert inferred.tolist() == expected
    distances = {(10, 13, 11): 2, (14, 9, 10): 14, (14, 9, 10, 15): 14}
    assert np.sum((inferred - noisy) ** 2) == distances.get(tuple(noisy), 0)


def test_inferred_order_is_the_closed_form_of_theorem_1() -> None:
    noisy = np.random.default_rng(3).normal(size=12)
    mean = [[noisy[i : j + 1].mean() if j >= i else np.inf for j in range(12)] for i in range(12)]
    closed = [max(min(mean[i][j] for j in range(max(i, k), 12)) for i in range(k + 1)) for k in range(12)]
    assert np.allclose(HayS(epsilon="1").infer(noisy), closed, atol=1e-12)


def test_sort_and_round() -> None:
    assert HayS(epsilon="1").sort_and_round([4, -3, 2]).tolist() == [0, 2, 4]
    assert whole_counts([-0.2, 1.4, 2.6]).tolist() == [0, 1, 3]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_inference_is_least_squares(tree: HayH) -> None:
    a = design_matrix(tree)
    y = np.random.default_rng(1).normal(size=len(a)) * 10
    nodes = tree.infer_nodes(split(tree, y))
    assert np.allclose(nodes[0], np.linalg.lstsq(a, y, rcond=None)[0], atol=1e-9)
    assert np.allclose(np.concatenate(nodes), a @ nodes[0], atol=1e-9)  # parents are sums of children


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_inference_is_unbiased_and_its_variance_exact(tree: HayH) -> None:
    a = design_matrix(tree)
    queries = np.random.default_rng(2).normal(size=(6, tree.size))
    operator = np.stack([tree.infer(split(tree, unit)) for unit in np.eye(len(a))], axis=1)
    assert np.allclose(operator @ a, np.eye(tree.size), atol=1e-9)
    assert np.allclose(tree.variance_of(queries, node_variance=1.0), ((queries @ operator) ** 2).sum(axis=1), atol=1e-9)
    covariance = np.linalg.inv(a.T @ a)  # Gauss-Markov: no linear unbiased estimate has less.
    least = np.einsum("qi,ij,qj->q", queries, covariance, queries)
    assert np.allclose(tree.variance_of(queries, node_variance=1.0), least, atol=1e-9)


def test_the_root_has_the_printed_closed_form() -> None:
    """H-[root] = (k-1)/(k^h - 1) sum over levels of k^i times the level's sum (complete trees)."""
    tree, k, h = HayH(size=27, epsilon="1", fanout=3), 3, 4
    levels = [np.random.default_rng(i).normal(size=size) for i, size in enumerate(tree.sizes)]
    closed = (k - 1) / (k**h - 1) * sum(k**i * level.sum() for i, level in enumerate(levels))
    assert np.isclose(tree.infer_nodes(levels)[-1][0], closed)


def test_the_upward_pass_has_the_printed_weights() -> None:
    """z[v] weighs the node's own count by (k^l - k^(l-1))/(k^l - 1), with l = 2 above the leaves."""
    z = HayH(size=3, epsilon="1", fanout=3).infer_nodes([np.zeros(3), np.array([1.0])])
    assert np.isclose(z[-1][0], (9 - 3) / (9 - 1))


def test_tiles_are_few_and_cover_the_range() -> None:
    for tree in TREES:
        counts = np.random.default_rng(4).integers(0, 9, tree.size)
        levels: list[Any] = tree.nodes(counts)
        ranges = [(a, b) for a in range(tree.size + 1) for b in range(a, tree.size + 1)]
        assert np.allclose(tree.tile(levels, ranges), [counts[a:b].sum() for a, b in ranges])
        deepest = max(1, 2 * (tree.fanout - 1) * (len(tree.sizes) - 1))
        assert tree.tiles(ranges).max() <= deepest


def test_tile_counts_of_known_ranges() -> None:
    tree = HayH(size=16, epsilon="1")
    assert tree.tiles([(0, 16), (1, 15), (0, 8), (3, 4), (5, 5), (2, 6)]).tolist() == [1, 6, 1, 1, 0, 2]


def test_all_but_the_ends_gains_as_stated() -> None:
    """Hay et al., section 4: error(H-) <= 3/(2 (h-1)(k-1)) error(H~) for all leaves but the first and the last."""
    for k, h in ((2, 4), (2, 8), (4, 4), (3, 5), (4, 8)):
        tree = HayH(size=k ** (h - 1), epsilon="1", fanout=k)
        query = [(1, tree.size - 1)]
        after = tree.variance_of(ranges_as_queries(query, tree.size), node_variance=1.0)[0]
        assert tree.tiles(query)[0] == 2 * (k - 1) * (h - 2) + k - 2
        assert after <= 3 / (2 * (h - 1) * (k - 1)) * tree.tiles(query)[0]


def test_subtrees_without_positive_estimate_become_zero() -> None:
    tree = HayH(size=4, epsilon="1")
    nodes = [np.array([5.0, -6, 2, 1]), np.array([-1.0, 3]), np.array([2.0])]
    zeroed = tree.zero_empty_subtrees(nodes)
    assert [level.tolist() for level in zeroed] == [[0, 0, 2, 1], [0, 3], [2]]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_nonnegative_trees_are_consistent_and_the_nearest_per_family(tree: HayH) -> None:
    rng = np.random.default_rng(5)
    nodes = tree.infer_nodes([rng.normal(0.5, 3, size) for size in tree.sizes[: tree.levels]])
    fitted = tree.nonnegative(nodes)
    assert min(level.min() for level in fitted) >= 0
    assert np.allclose(np.concatenate(fitted), design_matrix(tree) @ fitted[0])
    for k in range(tree.levels - 1):
        for i, total in enumerate(fitted[k + 1]):
            family = slice(i * tree.fanout, (i + 1) * tree.fanout)
            expected = project_to_simplex(nodes[k][family], total) if total > 0 else 0
            assert np.allclose(fitted[k][family], expected, atol=1e-12)


def test_nonnegative_leaves_what_is_nonnegative() -> None:
    tree = HayH(size=5, epsilon="1")
    nodes = [level.astype(np.float64) for level in tree.nodes([3, 0, 1, 4, 2])]
    assert [level.tolist() for level in tree.nonnegative(nodes)] == [level.tolist() for level in nodes]


def test_rounded_prefixes_keep_every_range_within_one() -> None:
    values = np.random.default_rng(6).exponential(0.4, 200)
    counts = whole_prefixes(values)
    drift = np.concatenate([[0.0], np.cumsum(counts - values)])
    assert counts.min() >= 0 and np.ptp(drift) <= 1


@pytest.mark.parametrize("size", [8, 5])
def test_privelet_inverts_its_coefficients_and_knows_its_variance(size: int) -> None:
    wavelet = Privelet(size=size, epsilon="1")
    counts = np.random.default_rng(1).integers(0, 50, size)
    coefficients = wavelet.coefficients(counts)
    assert np.allclose(wavelet.infer(coefficients), counts)
    lengths = np.cumsum([len(level) for level in coefficients])
    operator = np.stack([wavelet.infer(np.split(unit, lengths[:-1])) for unit in np.eye(lengths[-1])], axis=1)
    queries = np.random.default_rng(2).normal(size=(5, size))
    assert np.allclose(wavelet.variance_of(queries, node_variance=1.0), ((queries @ operator) ** 2).sum(axis=1))


@pytest.mark.parametrize("linear", [HayH(size=12, epsilon="1", fanout=3), Privelet(size=12, epsilon="1")], ids=repr)
def test_mean_range_variance_is_the_mean_over_all_ranges(linear: HayH | Privelet) -> None:
    ranges = [(a, b) for a in range(12) for b in range(a + 1, 13)]
    listed = linear.variance_of(ranges_as_queries(ranges, 12)).mean()
    assert np.isclose(mean_range_variance(linear.variance_of, 12), listed)


@pytest.mark.slow_cases("linear0", "linear1")
@pytest.mark.parametrize(
    "linear", [HayH(size=8, epsilon="1"), CDPHH(size=8, epsilon="1"), Privelet(size=8, epsilon="1")]
)
def test_released_errors_fit_the_exact_variance(linear: Any) -> None:
    """950 releases of one histogram, five ranges; false-alarm probability 1e-7 each, 1.3 times is rejected.

    Errors are sums of a few integer draws, nearly normal; the chi-square of 950 has a little more spread than it
    assumes (kurtosis of the sums at most 1), which the bound 1.3 leaves room for.
    """
    counts, coins = np.array([5, 0, 0, 9, 2, 2, 7, 1]), SimulationCoins(7)
    errors = np.stack([linear.infer(linear.release(counts, coins)) for _ in range(950)]) - counts
    queries = ranges_as_queries([(0, 8), (1, 7), (0, 1), (3, 4), (2, 6)], 8)
    answers, variance = errors @ queries.T, linear.variance_of(queries)
    assert_unbiased(answers, variance)
    for k in range(len(queries)):
        assert_variance(answers[:, k], np.full(950, variance[k]))


@pytest.mark.parametrize(
    "counts",
    [[], [[1, 2]], [-1, 2], [0.5, 1], [float("nan")], ["a"], [1 << 60], [1 << 51] * 3, 3],
    ids=repr,
)
def test_bad_counts_are_refused(counts: Any) -> None:
    with pytest.raises(InvalidValue, match="count"):
        HayL(epsilon="1").release(counts, SystemCoins())


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="size is 1"):
        HayH(size=1, epsilon="1")
    with pytest.raises(InvalidSpec, match="fanout is 1"):
        HayH(size=8, epsilon="1", fanout=1)
    with pytest.raises(InvalidSpec, match="size is 1"):
        Privelet(size=1, epsilon="1")
    with pytest.raises(InvalidSpec, match="epsilon"):
        HayS(epsilon="0")
    with pytest.raises(InvalidValue, match="3 counts, must be 4"):
        HayH(size=4, epsilon="1").release([1, 2, 3], SystemCoins())
    with pytest.raises(InvalidSpec, match="levels must have"):
        HayH(size=4, epsilon="1").infer([np.zeros(4)])
    with pytest.raises(InvalidSpec, match="total last"):
        Privelet(size=4, epsilon="1").infer([np.zeros(4)])
    with pytest.raises(InvalidValue, match="0 <= low <= high <= 4"):
        HayH(size=4, epsilon="1").tiles([(3, 2)])
    with pytest.raises(InvalidSpec, match="as `release` returns it"):
        HayS(epsilon="1").infer([float("nan")])
