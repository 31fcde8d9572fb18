"""Simulated collections about rectangles, and the commands `tacit plan --task rectangles` and `simulate rectangles`."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.errors import InvalidSpec
from tacit.simulate.rectangles import GridCrowd, box_shares, simulate_rectangles, some_rectangles
from tacit.tasks.ranges.grid_task import rectangle_options


def run(*words: str) -> str:
    found = CliRunner().invoke(cli, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout


def test_shares_of_boxes_from_sums_below_corners() -> None:
    rng = np.random.default_rng(1)
    cells = rng.random((5, 2, 7))
    low, high = some_rectangles(cells.shape, 40, rng)
    assert np.all(low <= high) and np.all(high < cells.shape)
    brute = [
        cells[tuple(slice(a, b + 1) for a, b in zip(*ends, strict=True))].sum() for ends in zip(low, high, strict=True)
    ]
    assert np.allclose(box_shares(cells, low, high), brute)


@pytest.mark.parametrize(
    ("runs", "close", "covers"), [(24, 0.6, 0.1), pytest.param(60, 0.5, 0.1, marks=pytest.mark.slow)]
)
def test_the_error_of_simulated_rectangles_is_the_stated_one(runs: int, close: float, covers: float) -> None:
    """40 rectangles a run. Answers of a run are correlated, so runs are the sample: each one's mean squared error over
    its mean variance has mean 1; six standard errors of the mean fail by chance with probability below 1e-6. If they
    are less than `close`, a variance that is stated too small by a factor of 1 / (1 - close) is noticed: 2.5, and 2 in
    the slow run.
    """
    counts = np.arange(1, 129).reshape(16, 8).astype(np.int64) * 20
    mechanism = rectangle_options((16, 8), "1", int(counts.sum()))[0].mechanism
    ratios: list[float] = []
    covered: list[float] = []
    for seed in range(runs):
        found = simulate_rectangles(mechanism, GridCrowd.of_table(counts), runs=1, seed=seed, sample=40)
        ratios.append((found.rmse / found.stated_rmse) ** 2)
        covered.append(found.coverage)
    spread = float(np.std(ratios, ddof=1)) / np.sqrt(runs)
    assert abs(np.mean(ratios) - 1) < 6 * spread < close
    deviation = float(np.std(covered, ddof=1)) / np.sqrt(runs)
    assert abs(np.mean(covered) - 0.95) < 6 * deviation < covers


def test_plans_of_rectangles_on_the_command_line() -> None:
    words = ("plan", "--task", "rectangles", "--sizes", "1024,1024", "--epsilon", "1", "--n", "200000")
    found = json.loads(run(*words, "--target-error", "0.01", "--json"))
    errors = [option["rmse"] for option in found["options"]]
    assert errors == sorted(errors) and found["pick"]["rmse"] == errors[0] and found["pick"]["spec"]["kind"] == "one_of"
    grid = next(option for option in found["options"] if option["method"] == "grid:2x2")
    assert grid["n_needed"] == pytest.approx(200_000 * (grid["rmse"] / 0.01) ** 2, rel=1e-3)
    # Grids of pairs are picked here; part of their error stays however many are asked.
    assert found["pick"]["method"].startswith("hdg:") and found["pick"]["n_needed"] is None
    assert found["pick"]["rmse"] == max(found["pick"]["rmse_between"]) < grid["rmse"] / 2
    shown = run(*words)
    assert found["pick"]["method"] in shown and "server operations" not in shown
    short = json.loads(run(*words, "--max-report-bits", "47", "--json"))
    assert all(option["report_bits"] <= 47 for option in short["options"]) and len(short["options"]) < len(errors)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--size", "64"), "--sizes 64,64 is needed"),
        (("--sizes", "64"), "must be two to 8 numbers"),
        (("--sizes", "1048576,1048577"), "must be at most 1099511627776"),
        (("--sizes", "8,8", "--workload", "points"), "for ranges"),
        (("--sizes", "8,8", "--max-report-bits", "1"), "leaves no way"),
        (("--sizes", "8,8", "--target-error", "0"), "above 0"),
    ],
)
def test_plans_that_are_refused(words: tuple[str, ...], said: str) -> None:
    found = CliRunner().invoke(cli, ["plan", "--task", "rectangles", "--epsilon", "1", "--n", "1000", *words])
    assert found.exit_code != 0
    assert said in found.output + str(found.exception)


def test_simulations_from_counts_and_from_rows_agree(tmp_path: Path) -> None:
    counts = np.random.default_rng(2).integers(1, 40, (8, 4))
    np.save(tmp_path / "counts.npy", counts)
    rows = [f"x,{a},{b}" for a, b in np.ndindex(8, 4) for _ in range(counts[a, b])]
    (tmp_path / "rows.csv").write_text("\n".join(["name,first,second", *rows]))
    ends = ("--epsilon", "2", "--rectangles", "50", "--json")
    one = json.loads(run("simulate", "rectangles", "--data", str(tmp_path / "counts.npy"), *ends))
    two = json.loads(
        run("simulate", "rectangles", "--data", str(tmp_path / "rows.csv"), "--columns", "first,second", *ends)
    )
    assert one | {"seconds": 0} == two | {"seconds": 0}
    assert one["sizes"] == [8, 4] and one["n"] == counts.sum() and one["rmse"] < 5 * one["predicted_rmse"]
    wide = run("simulate", "rectangles", "--data", str(tmp_path / "counts.npy"), "--sizes", "8,8", "--epsilon", "2")
    assert "[8, 8]" in wide


def test_simulations_refuse_what_they_cannot_run(tmp_path: Path) -> None:
    mechanism = rectangle_options((4, 4), "1", 100)[0].mechanism
    with pytest.raises(InvalidSpec, match="at least one run"):
        simulate_rectangles(mechanism, GridCrowd.of_table(np.zeros((4, 4), np.int64)), runs=1, seed=1)
    (tmp_path / "rows.csv").write_text("a,b\n1,secret\n")
    np.save(tmp_path / "line.npy", np.ones(4))
    np.save(tmp_path / "counts.npy", np.ones((4, 4), np.int64))
    for words, said in [
        (("rows.csv",), "other than whole numbers"),
        (("line.npy",), "two to eight axes"),
        (("counts.npy", "--sizes", "2,4"), "must not be below"),
        (("counts.npy", "--method", "no"), "--method is no way"),
    ]:
        asked = ["simulate", "rectangles", "--data", str(tmp_path / words[0]), *words[1:], "--epsilon", "1"]
        found = CliRunner().invoke(cli, asked)
        assert found.exit_code != 0 and said in found.output and "secret" not in found.output
