"""Simulated collections about ranges, and the commands `tacit plan` and `tacit simulate ranges`."""

import json
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.errors import InvalidSpec
from tacit.simulate.ranges import all_ranges_mse, error_by_mass, simulate_ranges, some_ranges
from tacit.tasks.ranges.plan import choose_ranges


def test_all_ranges_from_the_errors_of_prefixes() -> None:
    error = np.random.default_rng(3).normal(size=21)
    brute = np.mean([(error[b] - error[a]) ** 2 for a in range(20) for b in range(a + 1, 21)])
    assert all_ranges_mse(error) == pytest.approx(brute)


def test_relative_errors_by_mass() -> None:
    truth, found = np.array([0.0, 0.1, 0.4, 1.0]), np.array([0.0, 0.2, 0.4, 1.0])
    low, high = some_ranges(3, 100, np.random.default_rng(0))
    assert len(low) == 6
    errors = error_by_mass(truth, found, low, high, (0.3, 0.9, 1.1))
    # Ranges of at least 0.3: 0-2 (0.4), 0-3 (1.0), 1-2 (0.3, off by a third), 1-3 (0.9, off by a ninth), 2-3 (0.6).
    assert errors[0.3] == pytest.approx((1 / 3 + 1 / 9) / 5)
    assert errors[0.9] == pytest.approx((1 / 9) / 2)
    assert errors[1.1] is None
    low, high = some_ranges(1000, 50, np.random.default_rng(0))
    assert len(low) == 50
    assert np.all(low < high)


def test_simulations_refuse_what_they_cannot_run() -> None:
    mechanism = choose_ranges(size=16, epsilon="1", n=100).pick.mechanism
    with pytest.raises(InvalidSpec, match="at least one run"):
        simulate_ranges(mechanism, np.ones(15, np.int64), runs=1, seed=1)
    with pytest.raises(InvalidSpec, match="at least one run"):
        simulate_ranges(mechanism, np.zeros(16, np.int64), runs=1, seed=1)


@pytest.mark.slow
def test_plan_on_the_command_line() -> None:
    run = CliRunner().invoke(
        cli, ["plan", "--task", "ranges", "--size", "256", "--epsilon", "1.1", "--n", str(1 << 26), "--json"]
    )
    assert run.exit_code == 0
    found = json.loads(run.output)
    tree4 = next(o for o in found["options"] if (o["method"], o.get("fanout"), o["oracle"]) == ("hh", 4, "oue"))
    signed = next(o for o in found["options"] if o["method"] == "haar")
    assert found["pick"]["rmse_weighted"] <= tree4["rmse_weighted"] < signed["rmse_weighted"] < 0.00076
    assert all(option["rmse_weighted"] <= option["rmse"] for option in found["options"])
    # The coefficients 11.800 and 9.571 per V and V1 are for noise alone, all levels alike.
    v = 4 * exp(1.1) / (exp(1.1) - 1) ** 2
    assert tree4["rmse"] == pytest.approx(sqrt(11.8 * v / (1 << 26)), rel=0.02)
    assert signed["rmse"] == pytest.approx(sqrt(9.571 * (v + 1) / (1 << 26)), rel=0.02)
    assert found["pick"]["spec"]["kind"] == "one_of"


@pytest.mark.slow_cases("ranges")
@pytest.mark.parametrize("task", ["ranges", "histogram"])
def test_plans_as_tables(task: str) -> None:
    given = ["plan", "--task", task, "--size", "100", "--epsilon", "1", "--n", "1000", "--target-error", "0.01"]
    run = CliRunner().invoke(cli, given)
    assert run.exit_code == 0
    assert "pick: " in run.output
    assert "n for 0.01" in run.output


def test_histograms_have_no_other_workload() -> None:
    given = ["plan", "--task", "histogram", "--size", "9", "--epsilon", "1", "--n", "10", "--workload", "prefixes"]
    assert CliRunner().invoke(cli, given).exit_code == 2


@pytest.mark.parametrize("kind", ["npy", "lines", "csv"])
def test_simulate_on_the_command_line(tmp_path: Path, kind: str) -> None:
    counts = np.arange(1, 33) * 20
    values = np.repeat(np.arange(32), counts)
    file = tmp_path / f"data.{kind}"
    if kind == "npy":
        np.save(file, counts)
    else:
        header = "age,other\n" if kind == "csv" else ""
        file.write_text(header + "".join(f"{value},x\n" if kind == "csv" else f"{value}\n" for value in values))
    given = ["simulate", "ranges", "--data", str(file), "--epsilon", "1.0", "--method", "auto", "--seed", "1", "--json"]
    run = CliRunner().invoke(cli, given + (["--column", "age"] if kind == "csv" else []))
    assert run.exit_code == 0
    found = json.loads(run.output)
    assert {"method", "rmse", "predicted_rmse", "seconds"} <= set(found)
    assert found["n"] == counts.sum()
    assert 0.3 < found["rmse"] / found["predicted_rmse"] < 3


@pytest.mark.parametrize(("array", "match"), [
    (np.array([1.5, 2]), "whole numbers"),
    (np.array([-1, 2]), "whole numbers"),
    (np.ones((2, 2)), "one row"),
    (np.array(["a"]), "one row"),
    (np.zeros(4, np.int64), "no respondents"),
])  # fmt: skip
def test_histograms_that_are_none(tmp_path: Path, array: np.ndarray, match: str) -> None:
    np.save(tmp_path / "bad.npy", array)
    run = CliRunner().invoke(cli, ["simulate", "ranges", "--data", str(tmp_path / "bad.npy"), "--epsilon", "1"])
    assert run.exit_code == 2
    assert match in run.output


def test_fanouts_belong_to_trees(tmp_path: Path) -> None:
    np.save(tmp_path / "ok.npy", np.ones(8, np.int64))
    given = ["simulate", "ranges", "--data", str(tmp_path / "ok.npy"), "--epsilon", "1", "--fanout", "2"]
    assert CliRunner().invoke(cli, given).exit_code == 2
    run = CliRunner().invoke(cli, [*given, "--method", "hh", "--oracle", "oue"])
    assert run.exit_code == 0
    assert "mean relative error" in run.output
