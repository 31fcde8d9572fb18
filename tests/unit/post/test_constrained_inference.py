"""Constrained inference against dense linear algebra, on complete and ragged trees, and the variances that follow."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from tacit.core.statistics.moments import Moments
from tacit.errors import InvalidSpec
from tacit.post.trees.levels import Level, TreeShape, fit_levels
from tacit.post.trees.variance import TreeVariance

F64 = npt.NDArray[np.float64]
SHAPES = [(8, 2), (10, 2), (27, 3), (23, 3), (16, 4), (11, 4), (5, 7), (2, 2), (37, 2)]


def levels_of(size: int, fanout: int, rng: np.random.Generator, *, skip: int = -1) -> list[Level]:
    """Random estimates with mechanisms and numbers of reports of their own on every level."""
    shape = TreeShape(size, fanout)
    return [
        Level(
            height,
            rng.random(shape.nodes(height)) / shape.nodes(height),
            Moments(own=rng.random() + 2, other=rng.random() + 1, own_other=-0.1, other_other=0.2),
            1 / int(rng.integers(50, 500)),
        )
        for height in range(shape.top - 1, -1, -1)
        if height != skip
    ]


def solved(size: int, fanout: int, levels: Sequence[Level]) -> tuple[F64, F64]:
    """Leaves by generalised least squares under sum = 1, and the matrix that makes them from all estimates."""
    shape = TreeShape(size, fanout)
    rows, values, weights = [], [], []
    for level in levels:
        for node in range(shape.nodes(level.height)):
            row = np.zeros(size)
            row[node * fanout**level.height : (node + 1) * fanout**level.height] = 1
            rows.append(row)
            values.append(level.value[node])
            weights.append(1 / level.noise(shape.nodes(level.height)))
    h, w = np.array(rows), np.diag(weights)
    system = np.block([[h.T @ w @ h, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    inverse = np.linalg.inv(system)
    leaves = inverse @ np.concatenate([h.T @ w @ np.array(values), [1.0]])
    return leaves[:size], inverse[:size, :size] @ h.T @ w


def exact_variance(weights: F64, size: int, fanout: int, levels: Sequence[Level], respondents: int) -> float:
    leaves, matrix = solved(size, fanout, levels)
    coefficients, at = weights @ matrix, 0
    variance = -(weights**2 @ leaves - (weights @ leaves) ** 2) / (respondents - 1)
    for level in levels:
        nodes = TreeShape(size, fanout).nodes(level.height)
        a, at = coefficients[at : at + nodes], at + nodes
        masses = np.add.reduceat(leaves, np.arange(0, size, fanout**level.height))
        covariance = _covariance(level.moments, masses)
        spread = np.diag(masses) - np.outer(masses, masses)
        variance += level.scale * (a @ (covariance + respondents / (respondents - 1) * spread) @ a)
    return max(float(variance), 0.0)


def _covariance(moments: Moments, masses: F64) -> F64:
    """n times the covariance of an oracle's estimates, cell by cell, averaged over respondents."""
    cells = len(masses)
    total = np.zeros((cells, cells))
    for value, mass in enumerate(masses):
        one = np.full((cells, cells), moments.other_other)
        one[value, :] = one[:, value] = moments.own_other
        one[np.arange(cells), np.arange(cells)] = moments.other
        one[value, value] = moments.own
        total += mass * one
    return total


@pytest.mark.parametrize(("size", "fanout"), SHAPES)
def test_leaves_are_generalised_least_squares(size: int, fanout: int) -> None:
    rng = np.random.default_rng(size)
    for skip in (-1, 1):
        levels = levels_of(size, fanout, rng, skip=skip)
        if levels and min(level.height for level in levels) == 0:
            fit = fit_levels(size, fanout, levels)
            assert np.allclose(fit.leaves, solved(size, fanout, levels)[0])
            assert fit.leaves.sum() == pytest.approx(1)


@pytest.mark.parametrize(("size", "fanout"), SHAPES)
def test_variances_of_linear_answers_and_of_all_ranges_are_exact(size: int, fanout: int) -> None:
    rng = np.random.default_rng(size + 100)
    levels = levels_of(size, fanout, rng)
    respondents = sum(round(1 / level.scale) for level in levels)
    known = TreeVariance(fit_levels(size, fanout, levels), respondents)
    rows = rng.random((4, size))
    exact = [exact_variance(row, size, fanout, levels, respondents) for row in rows]
    assert np.allclose(known.linear(rows), exact)
    low, high = np.array([(a, b) for a in range(size + 1) for b in range(a, size + 1)]).T
    at = np.arange(size)
    dense = known.linear(((low[:, None] <= at) & (at < high[:, None])).astype(float))
    assert np.allclose(known.spans(low, high), dense, atol=1e-12)


def test_the_worked_example_of_two_levels() -> None:
    """Kulkarni's dissertation, section 5.4.2, with the root at 1; both levels equally precise."""
    even = Moments(own=0.0, other=1.0)

    def level(height: int, value: list[float]) -> Level:
        nodes = len(value)
        return Level(height, np.array(value), even, 1 / (even.other * (1 - 1 / nodes) + 1 / nodes))

    fit = fit_levels(4, 2, [level(1, [0.5, 0.6]), level(0, [0.1, 0.3, 0.2, 0.5])])
    assert np.allclose(fit.leaves, [0.1083333, 0.3083333, 0.1416667, 0.4416667])


def differences(leaves: F64, height: int) -> F64:
    width = 2**height
    starts = range(0, len(leaves), 2 * width)
    return np.array([leaves[s : s + width].sum() - leaves[s + width : s + 2 * width].sum() for s in starts])


@pytest.mark.parametrize("size", [2, 5, 8, 11, 16, 33])
def test_signed_levels_are_the_haar_transform(size: int) -> None:
    leaves = np.random.default_rng(size).dirichlet(np.ones(size))
    shape = TreeShape(size, 2)
    levels = [
        Level(height, differences(leaves, height), Moments(own=3, other=4), 1 / (100 + height), signed=True)
        for height in range(shape.top)
    ]
    fit = fit_levels(size, 2, levels)
    assert np.allclose(fit.leaves, leaves)
    known = TreeVariance(fit, 1000)
    low, high = np.array([(a, b) for a in range(size + 1) for b in range(a, size + 1)]).T
    at = np.arange(size)
    dense = known.linear(((low[:, None] <= at) & (at < high[:, None])).astype(float))
    assert np.allclose(known.spans(low, high), dense, atol=1e-12)


def test_the_haar_example_of_the_dissertation() -> None:
    """Figure 5.1: differences at every height, and the mass of leaves 1 to 5."""
    leaves = np.array([0.1, 0.15, 0.23, 0.12, 0.2, 0.05, 0.07, 0.08])
    assert np.allclose(differences(leaves, 0), [-0.05, 0.11, 0.15, -0.01])
    assert np.allclose(differences(leaves, 1), [-0.10, 0.10])
    assert np.allclose(differences(leaves, 2), [0.20])
    assert leaves[1:6].sum() == pytest.approx(0.75)


def test_levels_that_nobody_answered_carry_no_weight() -> None:
    rng = np.random.default_rng(3)
    levels = levels_of(27, 3, rng)
    silent = [
        Level(level.height, np.zeros_like(level.value), level.moments, np.inf) if level.height == 1 else level
        for level in levels
    ]
    kept = [level for level in levels if level.height != 1]
    assert np.allclose(fit_levels(27, 3, silent).leaves, fit_levels(27, 3, kept).leaves)


def test_without_the_leaves_mass_is_spread_and_finer_answers_are_unknown() -> None:
    rng = np.random.default_rng(4)
    levels = levels_of(27, 3, rng, skip=0)
    fit = fit_levels(27, 3, levels)
    assert np.allclose(fit.leaves.reshape(9, 3), fit.leaves.reshape(9, 3)[:, :1])
    known = TreeVariance(fit, 500)
    variance = known.spans(np.array([0, 0, 1]), np.array([9, 1, 9]))
    assert np.isfinite(variance[0])
    assert np.isinf(variance[1:]).all()
    rows = np.zeros((2, 27))
    rows[0, :9] = rows[1, :1] = 1
    assert np.allclose(known.linear(rows), variance[:2])


def test_nobody_answered_anything() -> None:
    empty = [Level(0, np.zeros(4), Moments(own=1, other=1), np.inf)]
    fit = fit_levels(4, 4, empty)
    assert np.allclose(fit.leaves, 0.25)
    assert np.isinf(TreeVariance(fit, 0).spans(np.array([0]), np.array([1]))).all()


def test_signed_and_plain_levels_do_not_mix() -> None:
    plain = Level(0, np.zeros(4), Moments(own=1, other=1), 1.0)
    signed = Level(1, np.zeros(1), Moments(own=1, other=1), 1.0, signed=True)
    with pytest.raises(InvalidSpec, match="signed"):
        fit_levels(4, 2, [plain, signed])
