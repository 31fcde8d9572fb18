"""The engine behind SQL over private columns: regions, covers, and exact moments of a respondent's terms."""

from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from tacit import kernels
from tacit.core.compose import AllOf
from tacit.core.mechanism import Mechanism
from tacit.core.statistics.simulated import GeneratorCoins
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.kernels import twin
from tacit.oracles.local_hash import OLH
from tacit.post.grids.shape import GridShape
from tacit.sql.design import levels as levels_module
from tacit.sql.design.consistency import Consistent
from tacit.sql.design.cover import cover_spans
from tacit.sql.design.levels import METHODS, Design, answers_of, capped, hi, hio, hiocap, make_design, mg, sc, sco
from tacit.sql.engine.linked import collect, link
from tacit.sql.engine.plan import options, planned_design, weighted
from tacit.sql.engine.terms import exact_terms, expected_variance, region_terms
from tacit.sql.schema.regions import (
    MAX_BOXES,
    Region,
    as_spans,
    corners,
    everything,
    nothing,
    outside,
    slab,
)
from tacit.sql.schema.schema import Dimension, Schema

SIZES = (5, 3, 4)


def all_cells(sizes: tuple[int, ...]) -> np.ndarray:
    """Every combination as a row of indices."""
    return np.indices(sizes).reshape(len(sizes), -1).T


def random_region(rng: np.random.Generator, sizes: tuple[int, ...], depth: int = 3) -> tuple[Region, np.ndarray]:
    """A random expression, as a region and as a mask over all cells."""
    cells = all_cells(sizes)
    if depth == 0:
        i = int(rng.integers(len(sizes)))
        low, high = sorted(rng.integers(0, sizes[i], 2).tolist())
        return slab(sizes, i, ((low, high),)), (low <= cells[:, i]) & (cells[:, i] <= high)
    a, x = random_region(rng, sizes, depth - 1)
    if rng.random() < 0.3:
        return ~a, ~x
    b, y = random_region(rng, sizes, depth - 1)
    return (a & b, x & y) if rng.random() < 0.5 else (a | b, x | y)


def test_regions_are_closed_under_and_or_not():
    rng, cells = np.random.default_rng(1), all_cells(SIZES)
    for _ in range(200):
        region, mask = random_region(rng, SIZES)
        assert np.array_equal(region.holds(cells), mask)
        # Disjoint boxes, so that volumes add up.
        assert region.volume == pytest.approx(mask.mean())
        assert region.is_full == mask.all() and region.is_empty == (not mask.any())


def test_sets_of_indices():
    assert as_spans([(3, 4), (0, 1), (5, 5), (9, 7), (2, 1)]) == ((0, 1), (3, 5))
    assert outside(((0, 1), (3, 5)), 7) == ((2, 2), (6, 6))
    assert outside((), 3) == ((0, 2),) and outside(((0, 2),), 3) == ()


def test_a_region_of_too_many_boxes_is_refused():
    boxes = tuple((((i, i),), ((i, i),)) for i in range(MAX_BOXES + 1))
    with pytest.raises(InvalidSpec, match="257 boxes"):
        Region((1000, 1000), boxes)


def test_the_decomposition_of_the_worked_example():
    """m = 8, b = 2: [2, 7] is {2}, {3, 4}, {5, 6}, {7}; with [3, 8] in a second dimension there are 4 x 2 boxes."""
    found = {height: nodes.tolist() for height, nodes in cover_spans(((1, 6),), 8, 2, [0, 1, 2, 3]) or []}
    assert found == {0: [1, 6], 1: [1, 2]}
    other = cover_spans(((2, 7),), 8, 2, [0, 1, 2, 3]) or []
    assert sum(len(nodes) for _, nodes in other) == 2


@pytest.mark.parametrize(("fanout", "height", "most", "average"), [(5, 2, 11, 4.6), (5, 3, 19, 8.2), (2, 5, 8, 3.3)])
def test_the_largest_and_the_average_number_of_nodes(fanout: int, height: int, most: int, average: float):
    """2 (b - 1) h - b at most."""
    size, counts = fanout**height, []
    for low in range(size):
        for high in range(low, size):
            if (low, high) != (0, size - 1):
                cover = cover_spans(((low, high),), size, fanout, list(range(height))) or []
                counts.append(sum(len(nodes) for _, nodes in cover))
    assert max(counts) == most == 2 * (fanout - 1) * height - fanout
    assert np.mean(counts) == pytest.approx(average, abs=0.06)


@pytest.mark.parametrize(("size", "fanout"), [(8, 2), (10, 3), (13, 5), (7, 7), (11, 2), (2, 2), (26, 5)])
def test_covers_hold_every_leaf_once_in_ragged_trees(size: int, fanout: int):
    top = GridShape((size,), (fanout,)).tops[0]
    for low in range(size):
        for high in range(low, size):
            held = np.zeros(size, int)
            for height, nodes in cover_spans(((low, high),), size, fanout, list(range(top + 1))) or []:
                for node in nodes.tolist():
                    held[node * fanout**height : (node + 1) * fanout**height] += 1
            assert np.array_equal(held, (np.arange(size) >= low) & (np.arange(size) <= high))


def every_region(sizes: tuple[int, ...]) -> list[Region]:
    rng = np.random.default_rng(5)
    single = [corners(sizes, list(ranges)) for ranges in product(*[[(0, s - 1), (1, s - 1), (0, 0)] for s in sizes])]
    return [*single, *(random_region(rng, sizes, 2)[0] for _ in range(6))]


def every_report(mechanism: Mechanism, answer: Any) -> tuple[np.ndarray, np.ndarray]:
    """All reports with their probabilities; those to several questions are combined."""
    if not isinstance(mechanism, AllOf):
        reports = mechanism.all_reports()
        return reports, np.exp(mechanism.log_prob(reports, answer))
    sides = [every_report(mechanism.member(i), item) for i, item in enumerate(answer)]
    places = np.indices([len(chances) for _, chances in sides]).reshape(len(sides), -1)
    found, total = np.zeros(places.shape[1], mechanism.report_dtype), np.ones(places.shape[1])
    for i, (reports, chances) in enumerate(sides):
        found[f"answer_{i}"] = reports[places[i]]
        total *= chances[places[i]]
    return found, total


def moments_by_enumeration(design: Design, region: Region, value: np.ndarray) -> tuple[float, float, float]:
    """Expectation of z, its variance, and the expectation of v, over all reports of one respondent."""
    reports, chances = every_report(design.mechanism, answers_of(design, value[None, :])[0].tolist())
    linked = link(design, reports)
    terms = region_terms(linked, region)
    chances = chances if linked.order is None else chances[linked.order]
    assert chances.sum() == pytest.approx(1)
    mean = float(chances @ terms.inside)
    return mean, float(chances @ terms.inside**2) - mean**2, float(chances @ terms.variance)


@pytest.mark.parametrize("method", METHODS)
def test_terms_are_unbiased_and_so_are_their_variances(method: str):
    """Exactly, over all reports: randomised response on all levels at this epsilon, and levels of unequal weight."""
    shape = GridShape((4, 3), (2, 3))
    design = make_design(method, shape, "6" if method not in ("hi", "sc") else "24")
    if method == "hio":
        design = hio(shape, "6", weights=tuple(range(1, len(shape.every_height()) + 1)))
    assert all(oracle.kind == "grr" for group in design.groups for oracle in group.oracles)
    checked = 0
    for region in every_region(shape.sizes):
        for value in (np.array([1, 0]), np.array([3, 2])):
            try:
                mean, variance, plugin = moments_by_enumeration(design, region, value)
            except InvalidSpec:
                assert method == "hiocap1"
                continue
            inside = float(region.holds(value[None, :])[0])
            assert mean == pytest.approx(inside, abs=1e-9)
            assert plugin == pytest.approx(variance, rel=1e-9, abs=1e-9)
            if not design.product or len(region.boxes) <= 1:
                exact = exact_terms(design, value[None, :], region)
                assert exact.inside[0] == pytest.approx(inside, abs=1e-9)
                assert exact.variance[0] == pytest.approx(variance, rel=1e-9, abs=1e-9)
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize("more", [0, 5])
def test_many_dimensions_are_a_grid_and_still_more_are_views_of_levels(more: int):
    shape = GridShape((4, 2, 3, 2) + (2,) * more, (2, 2, 3, 2) + (2,) * more)
    design = hiocap(shape, "6", 2)
    assert design.mechanism.spec()["family"]["kind"] == ("views" if more else "grid")
    assert len(design.places) == (14 if not more else 5 + 9 + 5 + 5 * 5 + 10)
    value, rest = np.array([2, 1, 0, 1] + [0] * more), [(0, 1)] * more
    for region in (
        corners(shape.sizes, [(1, 2), (0, 1), (0, 1), (0, 1), *rest]),
        corners(shape.sizes, [(0, 3), (1, 1), (0, 2), (0, 0), *rest]),
        slab(shape.sizes, 0, ((1, 3),)) | slab(shape.sizes, 2, ((0, 0),)),
    ):
        mean, variance, plugin = moments_by_enumeration(design, region, value)
        assert mean == pytest.approx(float(region.holds(value[None, :])[0]), abs=1e-9)
        assert plugin == pytest.approx(variance) == exact_terms(design, value[None, :], region).variance[0]


def test_designs_of_too_many_levels_are_refused():
    with pytest.raises(InvalidSpec, match="9999 combined levels are too many"):
        make_design("hio", GridShape((5**4,) * 4 + (6,) * 4, (5,) * 4 + (6,) * 4), "1")
    with pytest.raises(InvalidSpec, match="at most 256"):
        make_design("hi", GridShape((5**4,) * 4, (5,) * 4), "1")


def test_the_expected_variance_is_the_mean_over_all_cells():
    shape = GridShape((7, 3), (2, 3))
    cells = all_cells(shape.sizes)
    for method in METHODS:
        design = make_design(method, shape, "1")
        for region in (slab(shape.sizes, 0, ((2, 5),)), slab(shape.sizes, 1, ((0, 0), (2, 2)))):
            exact = exact_terms(design, cells, region).variance.mean()
            assert expected_variance(design, region) == pytest.approx(exact)


@pytest.fixture
def only_olh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dissertation uses local hashing on every level."""
    monkeypatch.setattr(levels_module, "level_oracle", lambda values, epsilon: OLH(size=values, epsilon=epsilon))


@pytest.mark.usefixtures("only_olh")
def test_the_closed_forms_of_the_dissertation():
    """HI: p s0 M2 + (s1 - s0) M2(range); HIO: h p s0 M2 + (h (s1 - s0 + 1) - 1) M2(range); SC and CONJ: products."""
    rng = np.random.default_rng(2)
    shape, region = GridShape((25, 25), (5, 5)), corners((25, 25), [(3, 11), (6, 7)])
    values, x = rng.integers(0, 25, (300, 2)), rng.gamma(2, 3, 300)
    nodes, total = 2 * (2 + 1 + 2), float(np.sum(x**2))
    inside = region.holds(values)
    box = float(np.sum(x[inside] ** 2))
    for design in (hio(shape, "2"), hi(shape, "2")):
        oracle = next(iter(design.groups)).oracles[0]
        s0, s1, k = oracle.moments.other, oracle.moments.own, len(design.places)
        terms = exact_terms(design, values, region)
        factor = k if len(design.groups) == 1 else 1
        expected = factor * nodes * s0 * total + (factor * (s1 - s0 + 1) - 1) * box
        assert float(np.sum(x**2 * terms.variance)) == pytest.approx(expected)
    design = sc(shape, "2")
    s0, s1 = (getattr(design.groups[0].oracles[0].moments, name) for name in ("other", "own"))
    sides = [slab(shape.sizes, i, box[i]).holds(values) for box in region.boxes for i in range(2)]
    second = prod(p * s0 + side * (s1 - s0 + 1) for p, side in zip((5, 2), sides, strict=True))
    expected = float(np.sum(x**2 * (second - inside)))
    assert float(np.sum(x**2 * exact_terms(design, values, region).variance)) == pytest.approx(expected)


def test_the_root_of_a_range_is_known():
    design = hio(GridShape((16,), (4,)), "1")
    linked = collect(design, np.zeros((50, 1), np.int64), GeneratorCoins(np.random.default_rng(1)), _rng())
    for region, value in ((everything((16,)), 1.0), (nothing((16,)), 0.0)):
        terms = region_terms(linked, region)
        assert np.all(terms.inside == value) and not terms.variance.any()


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_a_complement_is_used_where_it_needs_fewer_nodes():
    design = hio(GridShape((16,), (2,)), "1")
    found = design.covering.region(slab((16,), 0, ((1, 14),)))
    assert found is not None and found.constant == 1.0 and found.nodes == 2


def test_capped_levels_refuse_conditions_on_more_dimensions():
    design = hiocap(GridShape((4, 4), (4, 4)), "1", 1)
    linked = collect(design, np.zeros((9, 2), np.int64), GeneratorCoins(_rng()), _rng())
    with pytest.raises(InvalidSpec, match="2 private columns at once; constrain fewer"):
        region_terms(linked, corners((4, 4), [(0, 1), (2, 2)]))


@pytest.mark.parametrize(("most", "levels"), [(1, 20), (2, 186), (3, 926), (4, 2847)])
def test_numbers_of_capped_levels(most: int, levels: int):
    """Four ordinal dimensions of height 4 and four categorical ones; all levels would be 9,999."""
    shape = GridShape((5**4,) * 4 + (6,) * 4, (5,) * 4 + (6,) * 4)
    assert len(capped(shape, most)) == levels
    assert len(shape.every_height()) == 9999


@pytest.mark.slow_cases("4-3")
@pytest.mark.parametrize(("fanout", "height", "plain", "best"), [(4, 3, 5.91, 2.20), (2, 5, 3.28, 1.04)])
def test_consistency_saves_what_constrained_inference_promises(fanout: int, height: int, plain: float, best: float):
    """Mean noise over all ranges, in units of one node's, with the total known."""
    size = fanout**height
    shape = GridShape((size,), (fanout,))
    solved = Consistent(shape, dict.fromkeys(shape.every_height(), 1.0))
    noise, counts = [], []
    for low in range(size):
        for high in range(low, size):
            if (low, high) == (0, size - 1):
                continue
            found = solved.region(slab((size,), 0, ((low, high),)))
            assert found is not None
            noise.append(sum(float(np.sum(part.coefficients**2)) for part in found.parts.values()))
            cover = cover_spans(((low, high),), size, fanout, list(range(height))) or []
            counts.append(sum(len(nodes) for _, nodes in cover))
    assert np.mean(counts) == pytest.approx(plain, abs=0.005)
    assert np.mean(noise) == pytest.approx(best, abs=0.005)


def test_consistency_refuses_large_domains():
    with pytest.raises(InvalidSpec, match="must be at most 4096"):
        make_design("hio_consistent", GridShape((1024, 1024), (4, 4)), "1")


def test_weights_follow_the_workload():
    shape = GridShape((64, 64), (4, 4))
    workload = [corners(shape.sizes, [(5, 40), (0, 63)]), corners(shape.sizes, [(17, 22), (0, 63)])]
    even = hio(shape, "1")
    drawn = weighted(even, workload)
    gain = [sum(expected_variance(d, region) for region in workload) for d in (even, drawn)]
    assert gain[1] < 0.5 * gain[0]
    assert min(drawn.groups[0].shares) > 0.001
    with pytest.raises(InvalidSpec, match="no weights"):
        weighted(sc(shape, "1"), workload)


@pytest.mark.parametrize("sizes", [(16, 16), (13, 9), (8, 8, 3), (27, 5)])
@pytest.mark.parametrize("method", ["quadtree", "wavelet"])
def test_cubes_and_wavelets_make_up_every_region(sizes: tuple[int, ...], method: str):
    """Coefficients of the nodes of every cell, and the constant, add up to the indicator of the region."""
    shape = GridShape(sizes, tuple(2 if size > 5 else size for size in sizes))
    design, cells, rng = make_design(method, shape, "1"), all_cells(sizes), np.random.default_rng(3)
    for _ in range(25):
        region, mask = random_region(rng, sizes)
        if not region.is_full and not region.is_empty:
            assert exact_terms(design, cells, region).inside == pytest.approx(mask.astype(float), abs=1e-9)


def test_cubes_need_as_many_nodes_as_a_box_has_edges():
    """A range that is one value short at every side: a few nodes by dimension, thousands of cubes."""
    shape = GridShape((256, 256), (2, 2))
    region = corners(shape.sizes, [(1, 254), (1, 254)])
    cubes = make_design("quadtree", shape, "1").covering.region(region)
    haar = make_design("wavelet", shape, "1").covering.region(region)
    assert cubes is not None and haar is not None
    assert cubes.nodes > 4 * 200 and haar.nodes < 32 * 32


@pytest.mark.slow
def test_differences_of_siblings_beat_nodes_and_nodes_beat_cubes():
    """Random ranges at epsilon 2; the numbers of docs/maths/analytics.md, from a part of its workload."""
    rng, shape = np.random.default_rng(1), GridShape((256, 256), (4, 4))
    drawn = [[tuple(sorted(rng.integers(0, 256, 2).tolist())) for _ in range(2)] for _ in range(40)]
    workload = [corners(shape.sizes, ranges) for ranges in drawn]

    def mean(method: str, shape: GridShape = shape) -> float:
        design = planned_design(method, shape, "2", workload)
        return float(np.mean([expected_variance(design, region) for region in workload[:10]]))

    found = {name: mean(name) for name in ("hio", "hio_weighted", "wavelet", "wavelet_weighted")}
    assert 2 * found["wavelet"] < found["hio"] and 1.8 * found["wavelet_weighted"] < found["hio_weighted"]
    assert mean("quadtree_weighted", GridShape((256, 256), (2, 2))) > 2 * found["wavelet_weighted"]


def test_the_plan_takes_the_least_variance():
    shape = GridShape((256, 256), (4, 4))
    small, large = corners(shape.sizes, [(9, 11), (4, 6)]), corners(shape.sizes, [(3, 200), (10, 250)])
    found = options([(4, shape)], "2", [small], 10_000, methods=("mg", "hio"))
    assert found[0].design.method == "mg"
    assert options([(4, shape)], "2", [large], 10_000, methods=("mg", "hio"))[0].design.method == "hio"
    best = options([(4, shape)], "2", [large], 10_000)
    assert best[0].design.method.endswith("_weighted") and best[0].variance < best[-1].variance
    assert options([(4, shape)], "2", [], 10_000, methods=("hio_weighted",))[0].design.method == "hio"
    with pytest.raises(InvalidSpec, match="must be one of auto, hio"):
        options([(4, shape)], "2", [small], 10_000, methods=("magic",))


@pytest.mark.parametrize("design", [hio, mg, hi, sc, sco])
def test_the_mechanism_spends_epsilon_and_no_more(design):
    mechanism = design(GridShape((9, 4), (3, 4)), "1").mechanism
    assert mechanism.holds() and mechanism.budget.to_spec() == "1"


def test_reports_of_a_document_are_linked_row_by_row():
    """`privatize` on devices and `collect` in a simulation end in the same kind of answers."""
    shape, rng = GridShape((9, 4), (3, 4)), _rng()
    values = np.stack([rng.integers(0, 9, 4000), rng.integers(0, 4, 4000)], axis=1)
    design = hio(shape, "4")
    reports = design.mechanism.privatize(answers_of(design, values), GeneratorCoins(rng))
    linked = link(design, reports)
    assert linked.order is not None and sorted(linked.order.tolist()) == list(range(4000))
    region = corners(shape.sizes, [(2, 5), (1, 2)])
    terms = region_terms(linked, region)
    error = terms.inside.sum() - region.holds(values).sum()
    assert abs(error) < 6 * np.sqrt(exact_terms(design, values, region).variance.sum())  # 2e-9 by chance.
    broken = reports.copy()
    broken["member"][7] = 1000
    with pytest.raises(ReportRejected):
        link(design, broken)


def test_hash_matches_are_the_same_in_c_and_numpy():
    rng = np.random.default_rng(9)
    for n, g, most in ((0, 2, 9), (1, 3, 1 << 20), (1031, 9, 1 << 40), (700, 57, 1 << 63)):
        seeds = rng.integers(1 << 32, size=n, dtype=np.uint32)
        buckets = rng.integers(g, size=n).astype(np.uint32)
        for d in (0, 1, 3, 4, 5, 64):
            values = np.sort(rng.integers(most, size=d, dtype=np.uint64))
            found = kernels.hash_matches(seeds, buckets, g, values)
            assert np.array_equal(found, twin.hash_matches(seeds, buckets, g, values))
            assert int(found.sum()) == int(kernels.hash_support(seeds, buckets, g, values, None).sum())


def test_private_values_outside_their_domain_are_refused_without_being_shown():
    schema = Schema((Dimension("age", low=0, high=9), Dimension("state", labels=("CA", "NY"))))
    assert schema.indices({"age": [3, 4.0], "state": ["NY", " CA "]}).tolist() == [[3, 1], [4, 0]]
    for wrong in ({"age": [77, 4], "state": ["NY", "CA"]}, {"age": [1, 2], "state": ["NY", "Nowhere"]}):
        with pytest.raises(InvalidValue, match=r"1 of 2 rows are (above the domain|none of its labels)") as caught:
            schema.indices(wrong)
        assert "77" not in str(caught.value) and "Nowhere" not in str(caught.value)
    for values in ([None, 1], ["x", 1], [1.5, 1], [float("nan"), 1]):
        with pytest.raises(InvalidValue):
            schema.indices({"age": values, "state": ["NY", "CA"]})


def test_columns_with_one_value_are_known():
    schema = Schema((Dimension("age", low=0, high=9), Dimension("planet", labels=("earth",))))
    assert schema.kept == (0,) and schema.shape(3).sizes == (10,)
    with pytest.raises(InvalidSpec, match="nothing to protect"):
        Schema((Dimension("planet", labels=("earth",)),))
    with pytest.raises(InvalidSpec, match="a name of its own"):
        Schema((Dimension("a", high=3), Dimension("a", high=3)))
    with pytest.raises(InvalidSpec, match="must be different"):
        Dimension("a", labels=("x", "x"))
    with pytest.raises(InvalidSpec, match="range such as"):
        replace(Dimension("a", high=3), high=-1)
