"""Chapter 7 of Wang's dissertation, worked out a second time from its formulas and held against the engine.

Nothing here uses the engine's own arithmetic: ranges are split, second moments of reports and closed forms of
variances are written down again. Answers in SQL are in test_spec_answers.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import ceil, exp, expm1, pi, prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.post.grids.shape import GridShape
from tacit.sql.design.consistency import Consistent
from tacit.sql.design.cover import cover_spans
from tacit.sql.design.levels import Design, capped, level_oracle, make_design
from tacit.sql.engine.plan import planned_design
from tacit.sql.engine.terms import exact_terms, expected_variance
from tacit.sql.schema.regions import corners

pytestmark = pytest.mark.papers
F64 = npt.NDArray[np.float64]
Range = tuple[int, int]


# What one report is worth.


def randomised(epsilon: float, values: int) -> tuple[float, float]:
    """Support probabilities of randomised response."""
    total = exp(epsilon) + values - 1
    return exp(epsilon) / total, 1 / total


def hashed(epsilon: float, buckets: int | None = None) -> tuple[float, float]:
    """Support probabilities of local hashing to round(e^eps) + 1 buckets."""
    g = buckets or max(2, round(exp(epsilon)) + 1)
    return exp(epsilon) / (exp(epsilon) + g - 1), 1 / g


def noises(p: float, q: float) -> tuple[float, float]:
    """s0 and s1: the variance of (support - q)/(p - q) without and with the value."""
    return q * (1 - q) / (p - q) ** 2, p * (1 - p) / (p - q) ** 2


def ideal(epsilon: float) -> float:
    """c = 4 e^eps/(e^eps - 1)^2, s0 of local hashing to e^eps + 1 buckets."""
    return 4 * exp(epsilon) / expm1(epsilon) ** 2


@pytest.mark.parametrize(("epsilon", "c"), [(0.2, 99.67), (0.5, 15.67), (1, 3.683), (2, 0.7241), (5, 0.02732)])
def test_the_constant(epsilon: float, c: float):
    assert ideal(epsilon) == pytest.approx(c, rel=2e-4)
    assert ((exp(epsilon) + 1) / expm1(epsilon)) ** 2 - 1 == pytest.approx(c, rel=2e-4)


@pytest.mark.parametrize("epsilon", ["0.1", "0.4", "0.5", "1", "1.7", "2", "3.3", "5"])
def test_levels_use_randomised_response_below_3_e_epsilon_plus_2_nodes(epsilon: str):
    """Within a node of the limit; buckets are those of least noise, so never more noise than round(e^eps) + 1."""
    e = float(epsilon)
    limit = 3 * exp(e) + 2
    for values in {2, 3, 5, int(limit) - 2, ceil(limit) + 2, 2000}:
        oracle = level_oracle(values, epsilon)
        p, q = float(oracle.p), float(oracle.q)
        small = 2 <= values < limit
        assert type(oracle).__name__ == ("GRR" if small else "OLH"), values
        assert (p, q) == pytest.approx(randomised(e, values) if small else hashed(e, round(1 / q)), rel=1e-12)
        assert small or noises(p, q)[0] <= noises(*hashed(e))[0] * (1 + 1e-12)


def test_sums_of_correlated_cells():
    """Randomised response on 8 values, epsilon 1, 4 of them with a share of 0.74, 400 reports: 0.0194, not 0.0295."""
    design = make_design("mg", GridShape((8,), (8,)), "1")
    inside, outside = exact_terms(design, np.array([[0], [7]]), corners((8,), [(0, 3)])).variance
    assert (0.74 * inside + 0.26 * outside) / 400 == pytest.approx(0.0194, abs=5e-5)
    assert 4 * noises(*randomised(1.0, 8))[0] / 400 == pytest.approx(0.0295, abs=5e-5)


# Ranges as nodes.


def split(low: int, high: int, fanout: int, top: int, padded: int = 0) -> list[tuple[int, int]]:
    """Height and number of every node of the canonical decomposition; `padded` is the domain's size if it is cut."""
    end = fanout**top if padded and high == padded - 1 else high + 1
    nodes: list[tuple[int, int]] = []
    for height in range(top + 1):
        while low < end and (low % fanout or height == top):
            nodes.append((height, low))
            low += 1
        while low < end and end % fanout:
            end -= 1
            nodes.append((height, end))
        low, end = low // fanout, end // fanout
    return nodes


def test_ranges_of_the_examples():
    """[2, 7] of 8 with fan-out 2 is {2}, {3, 4}, {5, 6}, {7}; times [3, 8] it is 8 boxes, two of them at (2, 1)."""
    sides = [split(1, 6, 2, 3), split(2, 7, 2, 3)]
    assert sorted(sides[0]) == [(0, 1), (0, 6), (1, 1), (1, 2)]
    boxes = list(product(*sides))
    assert len(boxes) == 8
    assert sum((3 - a[0], 3 - b[0]) == (2, 1) for a, b in boxes) == 2


@pytest.mark.parametrize(("fanout", "top", "most", "average"), [
    (5, 1, 4, None), (5, 2, 11, 4.6), (5, 3, 19, 8.2), (4, 3, 14, None), (2, 5, 8, None),
    (3, 4, 13, None)])  # fmt: skip
def test_numbers_of_nodes(fanout: int, top: int, most: int, average: float | None):
    """At most 2 (b - 1) h - b (b - 1 for h = 1), the averages over all ranges, and the engine's own cover."""
    size, counts = fanout**top, list[int]()
    for low in range(size):
        for high in range(low, size):
            mine = split(low, high, fanout, top)
            found = cover_spans(((low, high),), size, fanout, list(range(top + 1))) or []
            assert {(h, int(v)) for h, nodes in found for v in nodes} == set(mine)
            counts.append(len(mine))
    assert max(counts) == most
    assert average is None or np.mean(counts) == pytest.approx(average, abs=0.05)


# Variances in closed form, per respondent (M2 = 1); all levels are hashed where trees are wide and epsilon small.


@dataclass(frozen=True)
class Box:
    """A box of nodes per dimension, and whether a respondent is inside of each side."""

    nodes: tuple[int, ...]
    inside: tuple[int, ...]

    @property
    def all(self) -> int:
        return prod(self.inside)


def flat(box: Box, epsilon: float, levels: int) -> float:
    """HIO: P K s0 + (K (s1 - s0 + 1) - 1) inside; MG with K = 1 (QA-SAMP for one node)."""
    s0, s1 = noises(*hashed(epsilon))
    return prod(box.nodes) * levels * s0 + (levels * (s1 - s0 + 1) - 1) * box.all


def split_budget(box: Box, epsilon: float, levels: int) -> float:
    """HI: P s0 + (s1 - s0) inside, at epsilon/K."""
    s0, s1 = noises(*hashed(epsilon / levels))
    return prod(box.nodes) * s0 + (s1 - s0) * box.all


def conjunction(box: Box, epsilon: float, each: int = 1) -> float:
    """SC at epsilon per report; SCO where one of `each` levels is drawn."""
    s0, s1 = noises(*hashed(epsilon))
    sides = zip(box.nodes, box.inside, strict=True)
    return prod(each * (p * s0 + i * (s1 - s0 + 1)) for p, i in sides) - box.all


def two_sided(method: str) -> tuple[Design, Any]:
    """64 x 64 values with fan-out 8, where every level has 8 nodes or more: the design, and its closed form."""
    epsilon, form = {
        "mg": ("0.5", lambda box: flat(box, 0.5, 1)),
        "hio": ("0.5", lambda box: flat(box, 0.5, 8)),
        "hiocap2": ("0.5", lambda box: flat(box, 0.5, 8)),
        "hi": ("2", lambda box: split_budget(box, 2, 8)),
        "sc": ("2", lambda box: conjunction(box, 2 / 4)),
        "sco": ("1", lambda box: conjunction(box, 1 / 2, 2)),
    }[method]  # fmt: skip
    return make_design(method, GridShape((64, 64), (8, 8)), epsilon), form


@pytest.mark.parametrize("method", ["mg", "hio", "hiocap2", "hi", "sc", "sco"])
def test_variances_in_two_dimensions(method: str):
    """Small boxes, whose complements need more nodes; the level of all roots is not asked, so K = 9 - 1."""
    design, form = two_sided(method)
    for sides in ([(3, 9), (20, 30)], [(8, 23), (1, 4)], [(60, 63), (7, 8)]):
        values = np.array(list(product(*((low, (low + 40) % 64) for low, _ in sides))))
        found = exact_terms(design, values, corners((64, 64), sides)).variance
        nodes = [high - low + 1 if method == "mg" else len(split(low, high, 8, 2)) for low, high in sides]
        wanted = [form(Box(tuple(nodes), inside)) for inside in product((1, 0), (1, 0))]
        assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("method", ["mg", "hio", "hi"])
def test_variances_in_one_dimension(method: str):
    """Every range of 64 values, fan-out 8: the closed form of the range, or of the complement if that is smaller."""
    form = {"mg": lambda b: flat(b, 0.5, 1), "hio": lambda b: flat(b, 0.5, 2), "hi": lambda b: split_budget(b, 1, 2)}
    design = make_design(method, GridShape((64,), (8,)), "1" if method == "hi" else "0.5")
    for low, high in [(0, 7), (3, 3), (5, 20), (1, 62), (0, 62), (9, 40), (8, 63)]:
        nodes = [high - low + 1, 63 - high + low] if method == "mg" else [
            len(split(low, high, 8, 2)),
            sum(len(split(*rest, 8, 2)) for rest in ((0, low - 1), (high + 1, 63)) if rest[0] <= rest[1]),
        ]  # fmt: skip
        share = (high - low + 1) / 64
        both = [(1 - f) * form[method](Box((p,), (0,))) + f * form[method](Box((p,), (1,)))
                for p, f in zip(nodes, (share, 1 - share), strict=True)]  # fmt: skip
        assert expected_variance(design, corners((64,), [(low, high)])) <= min(both) * (1 + 1e-9)
        if nodes[0] <= 4:
            assert expected_variance(design, corners((64,), [(low, high)])) == pytest.approx(both[0], rel=1e-9)


def test_a_condition_on_some_dimensions_leaves_the_others_at_their_roots():
    """HIO pays K for dimensions that are not asked about, split-and-conjunction only in epsilon."""
    sides, values = [(3, 9), (0, 63)], np.array([[5, 1], [50, 1]])
    for method in ("hio", "sc"):
        design, form = two_sided(method)
        wanted = [form(Box((7, 1), (i, 1))) if method == "hio" else conjunction(Box((7,), (i,)), 0.5) for i in (1, 0)]
        assert exact_terms(design, values, corners((64, 64), sides)).variance == pytest.approx(wanted, rel=1e-9)


def second_moment(oracle: Any, given: dict[int, float], node: int, values: int) -> float:
    """E[(sum_v a_v W_v)^2] of a respondent at a node, for randomised response or hashing."""
    p, q, mine = float(oracle.p), float(oracle.q), given.get(node, 0.0)
    if type(oracle).__name__ == "OLH":
        s0, s1 = noises(p, q)
        return s0 * sum(a * a for a in given.values()) + (s1 - s0 + 1) * mine**2
    shift = q * sum(given.values())
    rest = sum((a - shift) ** 2 for v, a in given.items() if v != node)
    rest += shift**2 * (values - len(given.keys() | {node}))
    return (p * (mine - shift) ** 2 + q * rest) / (p - q) ** 2


@pytest.mark.parametrize("epsilon", ["0.7", "3"])
@pytest.mark.parametrize("method", ["mg", "mg2", "hio", "hiocap2", "hio_consistent", "wavelet", "quadtree",
                                    "hio_weighted"])  # fmt: skip
def test_the_general_variance(method: str, epsilon: str):
    """Coefficients make up the indicator, and sum_l E2_l/pi_l - (sum_l a)^2 is the variance, GRR and OLH levels."""
    sizes = (27, 10, 3)
    region = corners(sizes, [(2, 19), (3, 7), (0, 2)])
    design = planned_design(method, GridShape(sizes, (3, 4, 3)), epsilon, [region])
    cover: Any = design.covering.region(region)
    values = np.random.default_rng(5).integers(0, sizes, (40, 3))
    means, variances = np.full(40, cover.constant), np.zeros(40)
    for heights, part in cover.parts.items():
        given = dict(zip(part.nodes.tolist(), part.coefficients.tolist(), strict=True))
        oracle, share = design.member(heights)
        cells = prod(design.shape.nodes(heights))
        for t, node in enumerate(design.nodes_of(heights, values).tolist()):
            means[t] += given.get(node, 0.0)
            variances[t] += second_moment(oracle, given, node, cells) / share
    assert means == pytest.approx(region.holds(values).astype(float), abs=1e-9)
    terms = exact_terms(design, values, region)
    assert terms.variance == pytest.approx(variances - (means - cover.constant) ** 2, rel=1e-9)


@pytest.mark.slow_cases("0.5")
@pytest.mark.parametrize("epsilon", ["0.5", *(pytest.param(e, marks=pytest.mark.slow) for e in ("1", "2")), "5"])
def test_a_cover_is_never_worse_than_the_canonical_one(epsilon: str):
    """One dimension of 64 values, fan-out 4: a third of all ranges, values spread evenly."""
    design = make_design("hio", GridShape((64,), (4,)), epsilon)
    worst = max(expected_variance(design, corners((64,), [r])) / canonical(design, r) for r in every_range(64)[::3])
    assert worst <= 1 + 1e-9


def every_range(size: int) -> list[Range]:
    return [(low, high) for low in range(size) for high in range(low, size) if high - low < size - 1]


def canonical(design: Design, ends: Range) -> float:
    """The mean variance of the canonical nodes of a range of 64 values with fan-out 4."""
    total = 0.0
    for height in range(3):
        given = {node: 1.0 for h, node in split(*ends, 4, 3) if h == height}
        if given:
            oracle, share = design.member((height,))
            cells = 4 ** (3 - height)
            total += sum(second_moment(oracle, given, node, cells) for node in range(cells)) / cells / share
    return total - (ends[1] - ends[0] + 1) / 64


# The figures: standard deviations over the root of n M2, ideal hashing, canonical nodes, fan-out 5 and epsilon 2.


def height(size: int, fanout: int = 5) -> int:
    return next(h for h in range(40) if fanout**h >= size)


@cache
def mean_nodes(size: int, length: int, fanout: int = 5) -> float:
    """Over all places of a range."""
    places = range(size - length + 1)
    return float(np.mean([len(split(low, low + length - 1, fanout, height(size, fanout))) for low in places]))


def per_respondent(sizes: Sequence[int], volume: float, fanout: int = 5) -> dict[str, float]:
    """Variances of MG, HIO and HI for boxes whose sides are in proportion to the domains."""
    lengths = [max(1, round(volume ** (1 / len(sizes)) * size)) for size in sizes]
    nodes = prod(mean_nodes(size, length, fanout) for size, length in zip(sizes, lengths, strict=True))
    levels = prod(height(size, fanout) + (len(sizes) > 1) for size in sizes)
    share, c = prod(lengths) / prod(sizes), ideal(2.0)
    return {"mg": prod(lengths) * c + share, "hio": nodes * levels * c + (2 * levels - 1) * share,
            "hi": nodes * ideal(2.0 / levels) + share}  # fmt: skip


RATIOS = [
    ((1024,), [0.01, 0.05, 0.1, 0.25, 0.5, 0.8], [0.62, 1.05, 1.34, 1.94, 2.50, 2.87]),
    ((256, 256), [0.01, 0.05, 0.25, 0.8], [0.64, 1.22, 2.13, 3.04]),
    ((1024, 64), [0.01, 0.05, 0.25, 0.8], [0.72, 1.31, 2.28, 3.29]),
    ((256, 256, 64), [0.01, 0.5, 0.8], [0.91, 3.27, 3.67]),
]


@pytest.mark.parametrize(("sizes", "volumes", "ratios"), RATIOS)
def test_error_of_marginals_over_that_of_hierarchies(sizes: tuple[int, ...], volumes: list[float], ratios: list[float]):
    """To the printed digits, but for one unit in the last."""
    found = [per_respondent(sizes, volume) for volume in volumes]
    assert [sqrt(each["mg"] / each["hio"]) for each in found] == pytest.approx(ratios, abs=0.0101)


def test_normalised_errors_and_fanouts():
    """Mean |error| over the sum: a million and 45,000 rows; 1,024 is 4^5, which has 7 to 15 % less variance."""
    volumes, scale = [0.01, 0.1, 0.25, 0.8], sqrt(2 / pi)
    found = [per_respondent((1024,), volume) for volume in volumes]
    million = {"mg": [0.00215, 0.00686, 0.01087, 0.01944], "hi": [0.0090, 0.0132, 0.0143, 0.0168],
               "hio": [0.00345, 0.00512, 0.00559, 0.00679]}  # fmt: skip
    for name, wanted in million.items():
        assert [scale * sqrt(each[name] / 1e6) for each in found] == pytest.approx(wanted, rel=0.006)
    few = {"hio": [0.0163, 0.0241, 0.0264, 0.0320], "mg": [0.0101, 0.0324, 0.0512, 0.0917]}
    for name, wanted in few.items():
        assert [scale * sqrt(each[name] / 45e3) for each in found] == pytest.approx(wanted, rel=0.006)
    pairs = [(per_respondent((1024,), v, 4)["hio"], per_respondent((1024,), v)["hio"]) for v in (0.25, 0.8)]
    assert np.ravel(pairs) == pytest.approx([45.4, 49.1, 61.3, 72.3], rel=0.012)


@pytest.mark.parametrize("volume", [0.01, 0.05, 0.1, 0.25, 0.5, 0.8])
def test_the_engine_is_no_noisier_than_the_figures(volume: float):
    """1,024 values, fan-out 5, epsilon 2: randomised response on small levels and complements save some variance."""
    length = round(volume * 1024)
    wanted = per_respondent((1024,), volume)
    for method in ("mg", "hio", "hi"):
        design = make_design(method, GridShape((1024,), (5,)), "2")
        places = np.linspace(0, 1024 - length, 24, dtype=int).tolist()
        found = [expected_variance(design, corners((1024,), [(low, low + length - 1)])) for low in places]
        assert np.mean(found) < 1.03 * wanted[method], method


def least_squares(size: int, fanout: int) -> F64:
    """The covariance of the leaves of a complete tree whose nodes have noise of variance 1, the total known."""
    normal = sum(np.kron(np.eye(size // width), np.ones((width, width))) for width in
                 (fanout**h for h in range(height(size, fanout))))  # fmt: skip
    centre = np.eye(size) - 1 / size
    return centre @ np.linalg.inv(normal + np.ones((size, size))) @ centre


def mean_over_ranges(covariance: F64) -> float:
    """The mean variance of all ranges, from corner sums: s_b' C s_b - 2 s_a' C s_b + s_a' C s_a."""
    sums = np.zeros((len(covariance) + 1,) * 2)
    sums[1:, 1:] = covariance.cumsum(0).cumsum(1)
    own = np.diag(sums)
    variances = own[:, None] + own[None, :] - 2 * sums
    low, high = np.triu_indices(len(sums), 1)
    return float(variances[low, high].mean())


@pytest.mark.parametrize(("fanout", "size", "printed"), [
    (5, 125, 2.99), (4, 64, 2.20), (2, 32, 1.04), pytest.param(2, 1024, 18.9 / 10, marks=pytest.mark.slow),
    pytest.param(4, 1024, 18.5 / 5, marks=pytest.mark.slow), pytest.param(32, 1024, 30.7 / 2, marks=pytest.mark.slow),
    (2, 256, 12.4 / 8), (4, 256, 11.8 / 4), (16, 256, 14.7 / 2), (2, 64, 7.3 / 6), (8, 64, 6.8 / 2)])  # fmt: skip
def test_constrained_inference(fanout: int, size: int, printed: float):
    """Mean variance over all ranges in nodes, and the engine's coefficients have that of least squares."""
    covariance = least_squares(size, fanout)
    assert mean_over_ranges(covariance) == pytest.approx(printed, rel=0.012)
    if size > 125:
        return
    solved = Consistent(GridShape((size,), (fanout,)), {(h,): 1.0 for h in range(height(size, fanout))})
    for low, high in every_range(size)[:: size * size // 20]:
        cover: Any = solved.region(corners((size,), [(low, high)]))
        noise = sum(float(part.coefficients @ part.coefficients) for part in cover.parts.values())
        assert noise == pytest.approx(covariance[low : high + 1, low : high + 1].sum(), rel=1e-9)


CAPPED = {("2", 1, 0): 0.079, ("sc", 1, 0): 0.229, ("2", 0, 1): 0.052, ("sc", 0, 1): 0.064, ("2", 1, 1): 0.079,
          ("sc", 1, 1): 1.84, ("2", 2, 0): 0.221, ("sc", 2, 0): 6.6, ("3", 0, 1): 0.116, ("4", 1, 0): 0.309,
          ("8", 1, 1): 0.594}  # fmt: skip


@pytest.mark.parametrize(("method", "ordinal", "labels"), CAPPED)
def test_errors_with_eight_dimensions(method: str, ordinal: int, labels: int):
    """4 of 625 values and 4 of labels: a million rows, epsilon 5, a tenth inside, 12 nodes a range; 9 % for those."""
    shape, share, nodes = GridShape((625,) * 4 + (6,) * 4, (5,) * 4 + (6,) * 4), 0.1, 12**ordinal
    levels = len(capped(shape, int(method))) if method != "sc" else 0
    assert levels in {"2": [186], "3": [926], "4": [2847], "8": [9999], "sc": [0]}[method]
    variance = nodes * levels * ideal(5.0) + (2 * levels - 1) * share
    if method == "sc":
        c = ideal(5.0 / 20)
        inside = (12 * c + 2) ** ordinal * (c + 2) ** labels - 1
        variance = (1 - share) * nodes * c ** (ordinal + labels) + share * inside
    wanted = CAPPED[method, ordinal, labels]
    assert sqrt(2 / pi * variance / 1e6) / share == pytest.approx(wanted, rel=0.09)
