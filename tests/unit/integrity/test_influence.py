"""Influence caps by brute force: no report moves an estimate further than is stated, and some report gets there.

Everything here is exact but for rounding: all reports of tiny mechanisms are tried.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.catalog import CATALOG
from tacit.core.mechanism import Oracle
from tacit.integrity.influence import influence_cap, reach_json
from tacit.post.trees.levels import Level, fit_levels
from tacit.post.trees.variance import TreeVariance
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.marginals.methods import one_of_views
from tacit.tasks.marginals.solve import solve_marginals
from tacit.testing.examples import example

ORACLES = [cls.kind for cls in CATALOG if issubclass(cls, Oracle) and cls.kind != "hrr_t"]
SEEDED = ("blh", "olh")
ROUNDING = 1e-9


def contributions(mechanism: Any) -> Any:
    """What every report that a device could send says about every value; dbitflip over all of its respondents."""
    options = {"estimator": "horvitz_thompson"} if mechanism.kind == "dbitflip" else {}
    # Seeds of hashes are too many to list; 500 of them show both contributions.
    listed = mechanism.kind not in SEEDED
    reports = mechanism.all_reports() if listed else mechanism.privatize(np.arange(500) % 5, SimulationCoins(1))
    tallies = (mechanism.tally(reports[i : i + 1]) for i in range(len(reports)))
    return np.array([mechanism.estimate(tally, **options).value for tally in tallies])


@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_no_report_of_any_oracle_moves_a_share_beyond_its_cap(kind: str, epsilon: str) -> None:
    mechanism = example(kind, epsilon)
    said = contributions(mechanism)
    cap = influence_cap(mechanism)
    assert cap is not None
    # Replacing is attained exactly.
    assert float(np.ptp(said)) == pytest.approx(cap.replaced)
    # Adding one to n = 50 reports that say any share within 0 and 1.
    shares = np.linspace(0, 1, 21)
    moved = np.abs(said.ravel()[:, None] - shares) / 51
    assert float(moved.max()) <= cap.one(50) * (1 + ROUNDING)
    assert float(moved.max()) * 51 == pytest.approx(cap.one(50) * 50)


def test_a_coalition_among_members_weighs_as_many_reports() -> None:
    assert reach_json(0.002, 1000) == {"one_report": 0.002, "coalition_share": 0.01, "coalition": pytest.approx(0.02)}


def test_ranges_move_as_far_as_stated_and_no_further() -> None:
    """All 2^4 + 2^8 reports of two levels take the place of all others; unary reports attain the reach of every row."""
    oracles = {1: tacit.OUE(size=4, epsilon="1"), 0: tacit.OUE(size=8, epsilon="1")}
    counts = {1: 30, 0: 50}

    def fitted(sums: dict[int, Any]) -> Any:
        levels = [
            Level(h, (sums[h] / counts[h] - float(m.q)) / float(m.p - m.q), m.moments, 1 / counts[h])
            for h, m in oracles.items()
        ]
        return fit_levels(8, 2, levels)

    rng = np.random.default_rng(2)
    sums = {h: rng.integers(5, 20, m.size).astype(float) for h, m in oracles.items()}
    rows = np.array([[1, 0, 0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0]], float)
    stated = TreeVariance(fitted(sums), 80).reach(rows)
    furthest = np.zeros(len(rows))
    for h, m in oracles.items():
        supports = np.array(list(product([0.0, 1.0], repeat=m.size)))
        answers = np.array([rows @ fitted(sums | {h: sums[h] + one}).leaves for one in supports])
        furthest = np.maximum(furthest, np.ptp(answers, axis=0))
    assert furthest == pytest.approx(stated)


@pytest.mark.parametrize(
    ("sizes", "views"),
    [
        pytest.param((2, 2, 2), [(0, 1), (1, 2)], id="small"),
        pytest.param((2, 2, 3), [(0, 1), (1, 2), (0, 2)], id="large", marks=pytest.mark.slow),
    ],
)
def test_joint_tables_move_as_far_as_stated_and_no_further(
    sizes: tuple[int, ...], views: list[tuple[int, ...]]
) -> None:
    """Every report of every view takes the place of another of its view; unary reports attain the reach."""
    rng = np.random.default_rng(4)
    mechanism = one_of_views(sizes, views, lambda cells: tacit.OUE(size=cells, epsilon="1"))
    reports = mechanism.privatize(rng.integers(0, sizes, (90, 3)), SimulationCoins(5))
    firsts = [int(np.argmax(reports["member"] == member)) for member in range(len(views))]
    all_cells = [sizes[one] * sizes[other] for one, other in views]
    tables: list[tuple[int, ...]] = [(0,), (2,), (0, 1), (1, 2)]
    furthest = np.zeros(len(tables))
    for cells, first in zip(all_cells, firsts, strict=True):
        seen: list[list[Any]] = [[] for _ in tables]
        for bits in range(2**cells):
            changed = reports.copy()
            changed["payload"][first, 0] = bits
            solved = solve_marginals(mechanism, mechanism.tally(changed))
            for k, table in enumerate(tables):
                seen[k].append(solved.table(table).raw.value)
        furthest = np.maximum(furthest, [float(np.ptp(np.array(values), axis=0).max()) for values in seen])
    stated = solve_marginals(mechanism, mechanism.tally(reports))
    assert furthest.tolist() == pytest.approx([stated.reach(table) for table in tables])
