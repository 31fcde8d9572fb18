"""Products of hierarchies: shapes, privacy, exact least squares, exact variances and the planner."""

from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.catalog import parse
from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism
from tacit.device.catalog import device_of
from tacit.device.families.grid import Grid
from tacit.device.numbers.budget import as_budget
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue
from tacit.numeric.mean import OneBit
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.post.grids.grid import MOST_CELLS, MOST_RAGGED, decomposition, fit_grid
from tacit.post.grids.shape import GridShape, Heights
from tacit.post.trees.levels import Level
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.ranges.grid_plan import GridPlanner
from tacit.tasks.ranges.rectangles import Rectangles, solve_rectangles
from tacit.testing.laws import check_laws
from tacit.testing.statistics import assert_unbiased, assert_variance

F64 = npt.NDArray[np.float64]


def grid(sizes: Heights, fanouts: Heights, kind: type[Any], epsilon: str = "1.1", heights: Any = None) -> OneOf:
    """All members of a grid, or those of some heights, with one kind of oracle."""
    shape = GridShape(sizes, fanouts)
    asked = shape.every_height() if heights is None else heights
    members = tuple(kind(size=prod(shape.nodes(item)), epsilon=epsilon) for item in asked)
    return OneOf(family=Grid(sizes=sizes, fanouts=fanouts, heights=tuple(asked), mechanisms=members))


SMALL: dict[str, OneOf] = {
    "complete": grid((4, 4), (2, 2), GRR, heights=[(2, 1), (1, 1), (0, 0)]),
    "ragged": grid((3, 5), (2, 3), GRR, heights=[(2, 1), (1, 0), (0, 2)]),
    "three attributes": grid((2, 3, 2), (2, 2, 2), HRR, heights=[(1, 2, 0), (0, 1, 1), (0, 0, 0)]),
    "bits": grid((2, 3), (2, 3), OUE),
}


# The family.


def test_views_are_the_nodes_above_every_answer() -> None:
    m = SMALL["ragged"]
    for i, (s, t) in enumerate(((2, 1), (1, 0), (0, 2))):
        nodes = m.family.nodes(i)  # type: ignore[attr-defined]
        for a, b in product(range(3), range(5)):
            assert m.family.view(i)(5 * a + b) == a // 2**s * nodes[1] + b // 3**t
        assert m.family.view(i)(np.arange(15)).tolist() == [m.family.view(i)(v) for v in range(15)]


@pytest.mark.parametrize("name", SMALL)
def test_one_member_of_a_grid_keeps_the_laws(name: str) -> None:
    """Privacy, enumeration, batch, samples (false-alarm probability 1e-7 per value), monoid, weights, spec, empty."""
    assert len(check_laws(SMALL[name])) == 9


@pytest.mark.parametrize("name", SMALL)
def test_no_report_tells_two_combinations_apart_by_more_than_the_odds(name: str) -> None:
    m = SMALL[name]
    reports = m.all_reports()
    logs = np.array([m.log_prob(reports, value) for value in range(m.value_count)])
    assert np.allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)
    assert np.max(np.ptp(logs, axis=0)) == pytest.approx(m.realised_epsilon(), abs=1e-12)
    assert m.realised_odds() <= Fraction(m.odds, WORD)


def test_specs_go_round_trip_through_the_catalogue_and_the_device() -> None:
    for m in SMALL.values():
        assert parse(m.spec()) == m
        device = device_of(m.spec())
        assert device.digest == m.digest and not isinstance(device, Mechanism)
        assert device.privatize_one(1, ReplayCoins(b"y")) == m.privatize_one(1, ReplayCoins(b"y"))


G2, G6 = (GRR(size=size, epsilon="1") for size in (2, 6))
SHAPE: dict[str, Any] = {"sizes": (2, 3), "fanouts": (2, 2), "heights": ((1, 1), (0, 0)), "mechanisms": (G2, G6)}
BAD_SHAPES: dict[str, dict[str, Any]] = {
    "sizes as a number": {"sizes": 6},
    "a size of one": {"sizes": (1, 6)},
    "a size as text": {"sizes": ("2", 3)},
    "a size as a truth": {"sizes": (True, 3)},
    "too many combinations": {"sizes": (1 << 21, 1 << 20)},
    "no attribute": {"sizes": (), "fanouts": ()},
    "four attributes": {"sizes": (2, 3, 2, 2), "fanouts": (2, 2, 2, 2)},
    "fewer fan-outs": {"fanouts": (2,)},
    "a fan-out of one": {"fanouts": (1, 2)},
    "heights of one attribute": {"heights": ((1,), (0, 0))},
    "heights that are flat": {"heights": (1, 0)},
    "a height below the answers": {"heights": ((1, 1), (0, -1))},
    "a height above the root": {"heights": ((2, 1), (0, 0))},
    "both roots": {"heights": ((1, 2), (0, 0))},
    "heights that rise": {"heights": ((0, 0), (1, 1)), "mechanisms": (G6, G2)},
    "heights twice": {"heights": ((0, 0), (0, 0)), "mechanisms": (G6, G6)},
    "mechanisms in another order": {"mechanisms": (G6, G2)},
    "no mechanisms": {"mechanisms": ()},
    "a mechanism of a number": {"mechanisms": (OneBit(top=1, epsilon="1"), G2)},
    "weights as a number": {"weights": 1},
}


@pytest.mark.parametrize("changed", BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_shapes_that_cannot_exist_are_refused_by_name(changed: dict[str, Any]) -> None:
    assert len(Grid(**SHAPE)) == 2
    with pytest.raises(InvalidSpec, match=r"^grid: "):
        Grid(**(SHAPE | changed))


@pytest.mark.parametrize("value", [6, -1, 918273645, True, "1", 1.0, None, [1, 1], float("nan")])
def test_values_outside_are_refused_without_being_shown(value: Any) -> None:
    family = Grid(**SHAPE)
    for act in (lambda: family.view(0)(value), lambda: OneOf(family=family).privatize_one(value, ReplayCoins(b""))):
        with pytest.raises(InvalidValue) as raised:
            act()
        assert "918273645" not in str(raised.value)
    with pytest.raises(InvalidValue):
        family.view(0)(np.array([0, 6]))


# Least squares.

SHAPES = [
    ((4, 8), (2, 2)),
    ((9, 4), (3, 4)),
    ((5, 7), (2, 3)),
    ((3, 4, 5), (2, 2, 3)),
    ((4, 2, 4), (2, 2, 4)),
    ((11,), (3,)),
]


def told(shape: GridShape, rng: np.random.Generator, heights: list[Heights] | None = None) -> dict[Heights, Level]:
    """Random values of every member, with reports of unequal numbers."""
    found: dict[Heights, Level] = {}
    for item in shape.every_height() if heights is None else heights:
        nodes = prod(shape.nodes(item))
        kind = GRR if nodes < 6 else OUE
        found[item] = Level(
            0, rng.dirichlet(np.ones(nodes)), kind(size=nodes, epsilon="1").moments, 1 / rng.integers(50, 400)
        )
    return found


def dense(shape: GridShape, levels: dict[Heights, Level]) -> tuple[F64, F64]:
    """Constrained generalised least squares by the book: the cells, and the coefficients of every value in them."""
    design = np.concatenate([shape.sums(np.eye(shape.cells), item).T for item in levels])
    weight = np.concatenate([np.full(len(level.value), 1 / level.noise(len(level.value))) for level in levels.values()])
    ones = np.ones((shape.cells, 1))
    system = np.block([[design.T @ (weight[:, None] * design), ones], [ones.T, np.zeros((1, 1))]])
    inverse = np.linalg.inv(system)
    values = np.concatenate([level.value for level in levels.values()])
    cells = inverse @ np.append(design.T @ (weight * values), 1.0)
    return cells[:-1], inverse[:-1, :-1] @ (design.T * weight)


@pytest.mark.parametrize(("sizes", "fanouts"), SHAPES)
def test_the_fit_is_constrained_generalised_least_squares(sizes: Heights, fanouts: Heights) -> None:
    shape, rng = GridShape(sizes, fanouts), np.random.default_rng(3)
    levels = told(shape, rng)
    fit = fit_grid(sizes, fanouts, levels, respondents=9000.0)
    cells, coefficients = dense(shape, levels)
    assert np.allclose(fit.leaves, cells, atol=1e-12)
    assert fit.leaves.sum() == pytest.approx(1)
    row = rng.normal(size=(1, shape.cells))
    found = np.concatenate([c[0] for _, _, c in fit.coefficients(row)])
    assert np.allclose(found, row[0] @ coefficients, atol=1e-12)


@pytest.mark.parametrize(("sizes", "fanouts"), SHAPES)
def test_variances_are_those_of_single_respondents_added_up(sizes: Heights, fanouts: Heights) -> None:
    """Every member's covariance, written out cell by cell, plus that of drawing disjoint groups without replacement."""
    shape, rng = GridShape(sizes, fanouts), np.random.default_rng(4)
    levels = told(shape, rng)
    everybody = float(sum(round(1 / level.scale) for level in levels.values()))
    fit = fit_grid(sizes, fanouts, levels, respondents=everybody)
    row, mass = rng.normal(size=shape.cells), fit.leaves
    variance = 0.0
    reach = np.zeros(shape.cells)
    for item, level, coefficients in fit.coefficients(row[None, :]):
        c, f, m = coefficients[0], shape.sums(mass, item), level.moments
        noise = 0.0
        for v, share in enumerate(f):
            own = np.zeros(len(c))
            own[v] = 1.0
            covariance = np.full((len(c), len(c)), m.other_other) + (m.own_other - m.other_other) * (own[:, None] + own)
            np.fill_diagonal(covariance, np.where(own == 1, m.own, m.other))
            noise += share * float(c @ covariance @ c)
        z = shape.spread(c, item)
        reach += z
        spread = float(z**2 @ mass - (z @ mass) ** 2) * everybody / (everybody - 1)
        variance += level.scale * (noise + spread)
    variance -= float(reach**2 @ mass - (reach @ mass) ** 2) / (everybody - 1)
    assert fit.linear(row[None, :])[0] == pytest.approx(max(0.0, variance), rel=1e-9)


def test_decompositions_are_the_printed_one_and_cover_every_rectangle_once() -> None:
    """[2, 22] of 32 values: nodes [2,3], [4,7], [8,15], [16,19], [20,21] and [22,22]."""
    found = decomposition(GridShape((32,), (2,)), (2,), (22,))
    nodes = {(t, node) for (t,), marks in found.items() for node in np.flatnonzero(marks).tolist()}
    assert nodes == {(1, 1), (2, 1), (3, 1), (2, 4), (1, 10), (0, 22)}
    shape = GridShape((5, 7), (2, 3))
    sides = [list(combinations_with_replacement(range(size), 2)) for size in shape.sizes]
    for ends in product(*sides):
        low, high = zip(*ends, strict=True)
        pieces = decomposition(shape, low, high)
        covered = sum(shape.spread(marks, item) for item, marks in pieces.items())
        assert np.array_equal(covered, shape.corner(low, high))


def test_the_number_of_nodes_stays_within_the_bound() -> None:
    """At most (2 (B - 1) h)^2 nodes in two dimensions."""
    shape = GridShape((16, 16), (2, 2))
    sides = list(combinations_with_replacement(range(16), 2))
    most = max(sum(int(marks.sum()) for marks in decomposition(shape, (a, c), (b, d)).values())
               for (a, b), (c, d) in product(sides[::3], sides[::3]))  # fmt: skip
    assert most <= (2 * 4) ** 2


def test_what_nobody_was_asked_for_is_unknown_and_the_rest_is_not() -> None:
    for sizes, fanouts in (((4, 4), (2, 2)), ((5, 4), (2, 2))):
        shape = GridShape(sizes, fanouts)
        margins = [(shape.tops[0], 0), (0, shape.tops[1])]
        fit = fit_grid(sizes, fanouts, told(shape, np.random.default_rng(5), margins), respondents=500.0)
        rows = np.array(
            [shape.corner((0, 1), (sizes[0] - 1, 2)), shape.corner((1, 0), (2, 3)), shape.corner((1, 1), (2, 2))]
        )
        assert np.isfinite(fit.linear(rows)).tolist() == [True, True, False]
        assert rows[0] @ fit.leaves == pytest.approx(fit.members[margins[0]].value[1:3].sum() + 0, abs=0.2)
        nothing = fit_grid(sizes, fanouts, {}, respondents=0.0)
        assert np.allclose(nothing.leaves, 1 / shape.cells)
        assert np.isinf(nothing.linear(np.eye(shape.cells)[:1]))[0]


def test_too_many_cells_and_signed_members_are_refused() -> None:
    with pytest.raises(InvalidSpec, match=str(MOST_CELLS)):
        fit_grid((128, 64), (2, 2), {}, respondents=1.0)
    with pytest.raises(InvalidSpec, match=str(MOST_RAGGED)):
        fit_grid((40, 40), (2, 2), {}, respondents=1.0)
    level = Level(0, np.zeros(4), OUE(size=4, epsilon="1").moments, 0.1, signed=True)
    with pytest.raises(InvalidSpec, match="signed"):
        fit_grid((2, 2), (2, 2), {(0, 0): level}, respondents=1.0)


# From reports to rectangles.

WAYS: dict[str, tuple[Heights, Mechanism]] = {
    "flat": ((4, 6), OUE(size=24, epsilon="1.1")),
    "complete grr": ((4, 4), grid((4, 4), (2, 2), GRR)),
    "ragged oue": ((5, 4), grid((5, 4), (3, 2), OUE)),
    "olh without roots": ((4, 4), grid((4, 4), (2, 4), OLH, heights=[(1, 0), (0, 0)])),
    "three attributes": ((2, 4, 2), grid((2, 4, 2), (2, 2, 2), HRR, heights=[(1, 1, 0), (0, 2, 1), (0, 0, 0)])),
}


POWER = [(305, 1.6), pytest.param(710, 1.35, marks=pytest.mark.slow)]
"""Simulated collections, and the factor by which a wrong variance is certain to be noticed."""


@pytest.mark.parametrize(("runs", "power"), POWER)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow_cases(
    "complete grr-305-1.6", "three attributes-305-1.6", "ragged oue-305-1.6", "olh without roots-305-1.6"
)
def test_rectangles_are_unbiased_with_the_stated_variance(way: str, runs: int, power: float) -> None:
    """Errors over simulated collections; false-alarm probability 1e-7 each, and `power` times the variance fails.

    Stated variances differ by a few per cent between collections and take most of the time: every 20th is averaged.
    """
    (sizes, mechanism), n, rng = WAYS[way], 3000, np.random.default_rng(7)
    joint = rng.multinomial(n, rng.dirichlet(np.full(prod(sizes), 0.4)))
    low = [tuple(0 for _ in sizes), tuple(size // 3 for size in sizes), (0, *(1 for _ in sizes[1:]))]
    high = [tuple(size // 2 for size in sizes), tuple(size // 2 for size in sizes), tuple(size - 1 for size in sizes)]
    shape = GridShape(sizes, sizes)
    corners = np.array([shape.corner(*pair) for pair in zip(low, high, strict=True)])
    solved = [solve_rectangles(sizes, mechanism, mechanism.simulate_tally(joint, rng)) for _ in range(runs)]
    values = np.array([corners @ run.fit.leaves for run in solved])
    answers = [run.rectangles(low, high) for run in solved[::20]]
    assert np.array_equal(values[::20], [answer.value for answer in answers])
    errors, stated = values - corners @ joint / n, np.mean([a.variance for a in answers], axis=0)
    assert_unbiased(errors, stated)
    for i in range(len(low)):
        assert_variance(errors[:, i], stated[i], must_reject=power)


@pytest.mark.parametrize(("runs", "power"), POWER)
@pytest.mark.slow
def test_decomposed_answers_are_unbiased_with_their_own_variance_and_worse(runs: int, power: float) -> None:
    """False-alarm probability 1e-7 each, and `power` times the variance fails."""
    m, n, rng = grid((4, 4), (2, 2), OUE), 4000, np.random.default_rng(8)
    joint = rng.multinomial(n, rng.dirichlet(np.full(16, 0.4)))
    fits = [solve_rectangles((4, 4), m, m.simulate_tally(joint, rng)).fit for _ in range(runs)]
    found = np.array([fit.decomposed((1, 0), (3, 2)) for fit in fits])
    row = GridShape((4, 4), (2, 2)).corner((1, 0), (3, 2))
    errors = found[:, 0] - row @ joint / n
    assert_unbiased(errors[:, None], np.array([found[:, 1].mean()]))
    assert_variance(errors, found[:, 1].mean(), must_reject=power)
    assert np.mean([fit.linear(row[None, :])[0] for fit in fits[::20]]) < found[:, 1].mean() / 2
    assert fits[0].decomposed((0, 0), (3, 3)) == (1.0, 0.0)
    with pytest.raises(InvalidSpec, match="consistent"):
        solve_rectangles((4, 4), SMALL["complete"], SMALL["complete"].simulate_tally(joint, rng)).fit.decomposed(
            (0, 0), (3, 0)
        )


def collected() -> Rectangles:
    m = grid((5, 4), (2, 2), GRR)
    return solve_rectangles((5, 4), m, m.tally(m.privatize(np.arange(20).repeat(50), SimulationCoins(1))))


def test_a_free_attribute_and_everything() -> None:
    found = collected()
    margin = found.rectangles([(1, 0), (0, 0)], [(2, 3), (4, 3)])
    assert margin.value[1] == 1.0 and margin.variance[1] == 0.0
    assert margin.value[0] == pytest.approx(found.fit.leaves.reshape(5, 4)[1:3].sum())
    cells = found.nodes((0, 0))
    both = cells.combine(found.fit.shape.corner((1, 0), (2, 3)))
    assert both.variance[0] == pytest.approx(margin.variance[0])
    assert found.nodes((3, 1)).value.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        ((0, 0), (5, 0), "outside"),
        ((-1, 0), (1, 1), "outside"),
        ((2, 0), (1, 3), "above"),
        ((0,), (1, 1), "attributes"),
    ],
)
def test_bad_rectangles_are_refused(low: Any, high: Any, word: str) -> None:
    with pytest.raises(InvalidSpec, match=word):
        collected().rectangles([low], [high])


def test_no_reports_give_no_data_and_other_mechanisms_are_refused() -> None:
    m = grid((5, 4), (2, 2), GRR)
    empty = solve_rectangles((5, 4), m, m.simulate_tally(np.zeros(20, np.int64), np.random.default_rng(1)))
    assert not empty.rectangles([(0, 0)], [(1, 1)]).has_data
    bit = OneBit(top=3, epsilon="1")
    with pytest.raises(InvalidSpec, match="onebit"):
        solve_rectangles((2, 2), bit, bit.tally(bit.privatize([1], SimulationCoins(1))))


# The planner.


def average(sizes: Heights, option: Any, n: int) -> float:
    """n times the variance averaged over every single rectangle, on evenly spread answers."""
    shape = option.shape
    even = np.full(shape.cells, 1 / shape.cells)
    levels = {
        item: Level(0, shape.sums(even, item), oracle.moments, 1 / (n * share))
        for item, oracle, share in zip(option.heights, option.oracles, option.shares, strict=True)
    }
    fit = fit_grid(sizes, shape.fanouts, levels, respondents=float(n))
    sides = [[((a <= np.arange(size)) & (np.arange(size) <= b)).astype(float)
              for a, b in combinations_with_replacement(range(size), 2)] for size in sizes]  # fmt: skip
    rows = np.array([reduce(np.kron, parts) for parts in product(*sides)])
    return n * float(fit.linear(rows).mean())


@pytest.mark.parametrize("sizes", [(4, 8), (5, 3), (2, 4, 3)])
def test_expected_errors_are_the_average_over_all_rectangles(sizes: Heights) -> None:
    options = GridPlanner(sizes, len(sizes)).options(as_budget("1"), 5000)
    assert [option.error for option in options] == sorted(option.error for option in options)
    for option in (options[0], options[-1]):
        assert option.error == pytest.approx(average(sizes, option, 5000), rel=1e-9)


def test_closed_form_and_solved_errors_agree_in_complete_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.tasks.ranges.grid_plan._SOLVED_CELLS", 0)
    for sizes in ((4, 8), (2, 4, 4)):
        for option in GridPlanner(sizes, len(sizes)).options(as_budget("1"), 10**7):
            if option.shape.complete:
                assert option.error == pytest.approx(average(sizes, option, 10**7), rel=1e-5)


def test_plans_are_publishable_and_beat_asking_for_cells() -> None:
    options = GridPlanner((16, 16), 2).options(as_budget("1"), 10_000)
    mechanism = options[0].mechanism
    assert parse(mechanism.spec()) == mechanism and mechanism.value_count == 256
    flat = OUE(size=256, epsilon="1")
    spent = {(0, 0): Level(0, np.full(256, 1 / 256), flat.moments, 1e-4)}
    rows = np.kron(*[np.linalg.cholesky(GridPlanner((16, 16), 2)._answers(16, 0)).T] * 2)  # pyright: ignore
    alone = 10_000 * fit_grid((16, 16), (16, 16), spent, respondents=1e4).linear(rows).sum()
    assert options[0].error < 0.6 * alone
    with pytest.raises(InvalidSpec, match="too many"):
        GridPlanner((128, 128), 2).options(as_budget("1"), 100)
