"""Counts by private groups come with a better one beside: biased, nearer to the truth, with an interval that holds."""

import numpy as np
import pyarrow as pa
import pytest

from tacit.device.domains.domain import Categories
from tacit.oracles.local_hash import OLH
from tacit.simulate.coins import SimulationCoins
from tacit.sql.connection import Connection
from tacit.sql.design.levels import answers_of
from tacit.sql.documents import design_of, table_schema
from tacit.sql.engine.better import CLIPPED
from tacit.sql.open import open_table

CITIES, ROWS = 64, 20_000


def shares() -> np.ndarray:
    falling = 1 / np.arange(1.0, CITIES + 1) ** 1.3
    return falling / falling.sum()


@pytest.fixture(scope="module")
def crowd() -> tuple[Connection, np.ndarray]:
    """A table of one private column of many values, and how many rows hold each."""
    schema = table_schema(["city"], [Categories("city", tuple(f"c{i:02}" for i in range(CITIES)))], "people")
    design = design_of(OLH(size=CITIES, epsilon="1"), schema)
    values = np.random.default_rng(1).choice(CITIES, ROWS, p=shares())
    reports = design.mechanism.privatize(answers_of(design, values[:, None]), SimulationCoins(1))
    public = pa.table({"half": np.arange(ROWS) % 2})
    return open_table(schema, public, design, reports), np.bincount(values, minlength=CITIES)


def test_counts_by_private_groups_have_a_better_one(crowd: tuple[Connection, np.ndarray]) -> None:
    table, truth = crowd
    cells = table.query("SELECT city, COUNT(*) FROM people GROUP BY city").cells()
    raw, better = np.array([c.estimate for c in cells]), np.array([c.better.estimate for c in cells])
    assert {c.better.method for c in cells} <= {"npmle", "power_ns"} and (better >= 0).all()
    assert better.sum() == pytest.approx(ROWS)
    # Noise of 64 cells against few large ones: a half is a wide margin for a fixed seed.
    assert ((better - truth) ** 2).sum() < ((raw - truth) ** 2).sum() / 2
    held = [c.better.low <= count <= c.better.high for c, count in zip(cells, truth, strict=True)]
    assert np.mean(held) > 0.85
    assert all(c.better.low <= c.better.estimate <= c.better.high for c in cells)
    assert cells[0].to_row()["better"]["method"] == cells[0].better.method


def test_part_of_the_groups_is_not_scaled_up_and_single_counts_are_clipped(
    crowd: tuple[Connection, np.ndarray],
) -> None:
    table, _ = crowd
    part = table.query("SELECT city, COUNT(*) FROM people WHERE city <> 'c00' GROUP BY city").cells()
    estimated = [cell for cell in part if cell.better]
    assert estimated and sum(cell.better.estimate for cell in estimated) <= ROWS * (1 + 1e-9)
    single = [table.query(f"SELECT COUNT(*) FROM people WHERE city = 'c{i}'").cells()[0] for i in range(40, 64)]
    negative = [cell for cell in single if cell.estimate < 0]
    assert negative and all(cell.better.estimate == 0 and cell.better.method == CLIPPED for cell in negative)
    assert table.query("SELECT COUNT(*) FROM people").cells()[0].better is None
    assert table.query("SELECT AVG(half) FROM people WHERE city = 'c00'").cells()[0].better is None


def test_many_public_groups_take_the_usual_method(crowd: tuple[Connection, np.ndarray]) -> None:
    table, _ = crowd
    cells = table.query("SELECT half, city, COUNT(*) FROM people GROUP BY half, city").cells()
    assert len(cells) == 2 * CITIES and all(cell.better is not None for cell in cells)
