"""The area under the curve: exact on known shares, unbiased with the stated variance from reports."""

from typing import Any

import numpy as np
import pytest

from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism
from tacit.device.families.levels import Tree, node_count
from tacit.device.numbers.budget import as_budget
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE
from tacit.post.grids.grid import GridFit, fit_grid
from tacit.post.trees.levels import Level
from tacit.tasks.ranges.auc import Area, above, auc_of_labels, auc_of_two, below, covariances
from tacit.tasks.ranges.grid_plan import GridPlanner
from tacit.tasks.ranges.ranges import Ranges, solve_ranges
from tacit.tasks.ranges.rectangles import Rectangles, solve_rectangles
from tacit.testing.statistics import assert_unbiased, assert_variance

POWER = [(205, 1.8), pytest.param(410, 1.5, marks=pytest.mark.slow)]
"""Simulated collections, and the factor by which a wrong variance is certain to be noticed."""

rng = np.random.default_rng(11)
P, Q = (
    rng.multinomial(6000, rng.dirichlet(np.arange(1, 7))),
    rng.multinomial(5000, rng.dirichlet(np.arange(6, 0, -1))),
)
K = np.tri(6, k=-1) + np.eye(6) / 2
TRUTH = float(P @ K @ Q) / (6000 * 5000)


def test_the_area_counts_pairs_and_half_of_the_ties() -> None:
    positives, negatives = [3, 1, 1, 0], [0, 1, 2]
    wins = sum((a > b) + (a == b) / 2 for a in positives for b in negatives) / 12
    p, q = (np.bincount(scores, minlength=4) / len(scores) for scores in (positives, negatives))
    assert p @ below(q) == pytest.approx(wins) and q @ above(p) == pytest.approx(wins)


def known(linear: Any, leaves: Any, n: int = 100) -> Ranges:
    return Ranges(np.asarray(leaves), n, float(n), lambda low, high: np.zeros(len(low)), linear)


def test_the_variance_of_independent_cells_is_the_printed_one() -> None:
    """v (sum C-^2 + sum S+^2) + v^2 (pairs), with halves of ties; the estimate takes the last term off once."""
    v = 0.002
    p, q = P / 6000, Q / 5000
    found = auc_of_two(
        known(lambda rows: v * (rows**2).sum(axis=-1), p), known(lambda rows: v * (rows**2).sum(axis=-1), q)
    )
    assert found.value == pytest.approx(p @ K @ q)
    assert found.variance == pytest.approx(v * ((K @ q) ** 2).sum() + v * ((K.T @ p) ** 2).sum() - v**2 * (K**2).sum())


def test_covariances_are_recovered_from_variances_of_sums() -> None:
    factor = np.random.default_rng(1).normal(size=(9, 9))
    matrix = factor @ factor.T
    assert np.allclose(covariances(lambda rows: np.einsum("ij,jk,ik->i", rows, matrix, rows), 9), matrix)


def tree(size: int, kind: type[Any]) -> OneOf:
    heights = [t for t in range(9) if node_count(size, 2, t) > 1][::-1]
    members = tuple(kind(size=node_count(size, 2, t), epsilon="2") for t in heights)
    return OneOf(family=Tree(size=size, fanout=2, heights=tuple(heights), mechanisms=members))


@pytest.mark.slow_cases("tree")
@pytest.mark.parametrize(("runs", "power"), POWER)
@pytest.mark.parametrize("mechanism", [tree(6, OUE), GRR(size=6, epsilon="2")], ids=["tree", "flat"])
def test_two_collections_give_an_unbiased_area_with_the_stated_variance(
    mechanism: Mechanism, runs: int, power: float
) -> None:
    """Pairs of collections; false-alarm probability 1e-7 each, and `power` times the variance fails."""
    draw = np.random.default_rng(12)
    found = [auc_of_two(*(solve_ranges(mechanism, mechanism.simulate_tally(counts, draw)) for counts in (P, Q)))
             for _ in range(runs)]  # fmt: skip
    errors, stated = np.array([area.value for area in found]) - TRUTH, np.mean([area.variance for area in found])
    assert_unbiased(errors[:, None], np.array([stated]))
    assert_variance(errors, stated, must_reject=power)


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "power"), POWER)
def test_one_collection_with_labels_gives_the_same_area(runs: int, power: float) -> None:
    """False-alarm probability 1e-7 each, and `power` times the variance fails."""
    draw, mechanism = np.random.default_rng(13), GridPlanner((6, 2), 2).options(as_budget("2"), 11_000)[0].mechanism
    joint = np.stack([Q, P], axis=1).reshape(-1)
    found = [auc_of_labels(solve_rectangles((6, 2), mechanism, mechanism.simulate_tally(joint, draw)))
             for _ in range(runs)]  # fmt: skip
    errors, stated = np.array([area.value for area in found]) - TRUTH, np.mean([area.variance for area in found])
    assert_unbiased(errors[:, None], np.array([stated]))
    assert_variance(errors, stated, must_reject=power)


def labelled(share: float, n: int = 100_000) -> Rectangles:
    cells = np.full((4, 2), (1 - share) / 4)
    cells[:, 1] = share / 4
    level = Level(0, cells.reshape(-1), GRR(size=8, epsilon="3").moments, 1 / n)
    fit: GridFit = fit_grid((4, 2), (4, 2), {(0, 0): level}, respondents=float(n))
    return Rectangles(fit, n)


def test_without_enough_of_a_label_or_any_report_nothing_is_claimed() -> None:
    assert auc_of_labels(labelled(0.5)).value == pytest.approx(0.5, abs=0.01)
    assert auc_of_labels(labelled(0.0)).value is None
    assert auc_of_labels(labelled(1.0)).value is None
    none = solve_ranges(tree(6, OUE), tree(6, OUE).simulate_tally(np.zeros(6, np.int64), rng))
    row = auc_of_two(none, none).to_row()
    assert row == {"estimate": None, "standard_error": None, "low": 0.0, "high": 1.0}
    assert Area(0.99, 0.01).interval()[1] == 1.0


def test_different_scores_and_other_questions_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="same scores"):
        auc_of_two(known(None, P / 6000), known(None, np.ones(3) / 3))
    fit = fit_grid((4, 3), (4, 3), {}, respondents=1.0)
    with pytest.raises(InvalidSpec, match="two attributes"):
        auc_of_labels(Rectangles(fit, 1))
