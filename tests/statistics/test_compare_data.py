"""`tacit compare` in its fixed configuration on the public files of TACIT_DATA: nothing listed beats what is answered.

The commands are those of a user: epsilon 1, five seeds, which are fixed, so that a failure is a change of the code. A
setting is good if the error of the pick is within 5 % or two standard errors of the best method of the table. The
standard error is that of the difference of two means, taken for independent: draws are shared, which makes it smaller.
"""

import json
import os
import sys
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli import cli

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import compare

DATA = Path(os.environ.get("TACIT_DATA", "data"))
NUMBERS = {"epsilon", "error", "seconds", "n", "seeds"}
MAYBE = {
    "error_se", "relative", "bias", "coverage", "bits", "forecast", "forecast_low", "forecast_high"
}  # fmt: skip
TEXTS = {"method", "mechanism", "about", "task"}

SETTINGS = [
    ("NETTRACE.n4096.npy", "histogram"),
    ("kosarak_top128_one_item_per_user.csv", "histogram"),
    *(
        pytest.param(f"{name}.n4096.npy", task, marks=pytest.mark.slow)
        for name in ("NETTRACE", "INCOME", "HEPTH", "SEARCHLOGS")
        for task in ("histogram", "ranges")
        if (name, task) != ("NETTRACE", "histogram")
    ),
    pytest.param("nltcs.csv", "marginals", marks=pytest.mark.slow),
]


def run(file: Path, task: str) -> list[dict[str, Any]]:
    if not file.exists():
        pytest.skip(f"{file.name} is not in TACIT_DATA")
    given = ["compare", "--data", str(file), "--task", task, "--epsilon", "1", "--seeds", "5", "--json"]
    result = CliRunner().invoke(cli, given)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(("file", "task"), SETTINGS)
def test_nothing_listed_beats_what_is_answered(file: str, task: str) -> None:
    _is_best(run(DATA / file, task))


@pytest.mark.slow
def test_independence_does_not_beat_the_pick_on_the_census_data(tmp_path: Path) -> None:
    """Twelve questions of up to sixteen answers, hardly associated, of which pairs were asked at too low a forecast."""
    if not (DATA / "adult.data").exists():
        pytest.skip("adult.data is not in TACIT_DATA")
    records, file = compare.adult(), tmp_path / "adult.csv"
    np.savetxt(file, records.rows, "%d", ",", header=",".join(records.names), comments="")
    _is_best(run(file, "marginals"))


def _is_best(rows: list[dict[str, Any]]) -> None:
    _has_the_schema(rows)
    (pick,) = (row for row in rows if row["pick"])
    best = min((row for row in rows if not row["pick"]), key=lambda row: row["error"])
    slack = 2 * hypot(pick["error_se"], best["error_se"])
    assert pick["error"] - best["error"] <= max(0.05 * best["error"], slack), best["method"]
    # Intervals of one draw share its errors, and of five draws there are five; test_answers has the careful version.
    assert pick["coverage"] >= 0.9
    # The test has power: what the unbiased estimator answers is not good enough.
    raw = next(row for row in rows if row["method"] == "raw")
    assert raw["error"] > 1.05 * pick["error"]


def _has_the_schema(rows: list[dict[str, Any]]) -> None:
    """Every field of `spec/compare.md`, with its type."""
    for row in rows:
        assert row.keys() >= NUMBERS | MAYBE | TEXTS | {"pick"}
        assert all(isinstance(row[name], int | float) for name in NUMBERS)
        assert all(row[name] is None or isinstance(row[name], int | float) for name in MAYBE)
        assert all(isinstance(row[name], str) for name in TEXTS)
        assert isinstance(row["pick"], bool)
