"""`tacit simulate time` and `tacit plan --task time`."""

import json

import pytest
from click.testing import CliRunner

from tacit.cli import cli


def run(*arguments: str):
    return CliRunner().invoke(cli, list(arguments))


def test_a_stream_is_followed_and_its_guarantee_stated() -> None:
    result = run(
        "simulate", "time", "--data", "synthetic:lns", "--n", "20000", "--windows", "40", "--epsilon", "1", "--run",
        "10", "--method", "lpu", "--smooth", "--seeds", "2", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    row = json.loads(result.output)
    assert {"mse", "mse_sd", "coverage", "guarantee", "online", "afterwards"} <= row.keys()
    assert row["mse"] == pytest.approx(10 / 20_000 * 0.96, rel=0.5)
    assert row["online"]["mse"] < row["mse"]
    assert row["meaning"].keys() == {"mse", "mse_sd", "coverage", "online", "afterwards"}
    assert "never of the filter" in row["meaning"]["mse"]
    guarantee = row["guarantee"]
    assert (guarantee["run"], guarantee["lifetime"]) == (1.0, 4.0)
    assert guarantee["enumerated"]["run"] == pytest.approx(1.0)
    assert guarantee["largest_charge_of_a_run"] == 1.0


@pytest.mark.parametrize("method", ["lbu", "lsp", "lpd", "lpa", "lbd", "lba"])
def test_every_method_of_the_comparison_runs(method: str) -> None:
    options = ("--n", "2000", "--windows", "12", "--epsilon", "1", "--run", "4", "--method", method)
    result = run("simulate", "time", "--data", "synthetic:sin", *options)
    assert result.exit_code == 0 and "words" in result.output, result.output


def test_a_crowd_of_devices_is_audited() -> None:
    options = ("--n", "3000", "--windows", "42", "--epsilon", "1", "--run", "7", "--size", "4")
    result = run("simulate", "time", "--devices", *options, "--json")
    assert result.exit_code == 0, result.output
    row = json.loads(result.output)
    assert row["devices"]["violations_right_clock"] == 0
    assert row["devices"]["counted"] > 10_000
    assert {"mse", "coverage", "band_coverage", "change_alarms", "jump_alarms"} <= row["meaning"].keys() & row.keys()
    # One draw would say 0 or 1 of a band.
    assert (row["data"], row["seeds"]) == ("synthetic:flat", 10)


@pytest.mark.parametrize("arguments", [("--data", "lns"), ("--devices", "--method", "lbu")])
def test_what_cannot_be_simulated_is_refused(arguments: tuple[str, ...]) -> None:
    assert run("simulate", "time", "--epsilon", "1", "--n", "100", *arguments).exit_code == 2


def test_a_plan_compares_inside_one_guarantee() -> None:
    given = ("--size", "16", "--n", "1000000", "--epsilon", "1", "--every", "day", "--run", "30")
    row = json.loads(run("plan", "--task", "time", *given, "--json").output)
    assert row["guarantee"]["name"] == "run" and row["guarantee"]["run_windows"] == 30
    assert row["pick"]["method"] == "lpu" and row["pick"]["rmse"] == pytest.approx(0.00982, rel=1e-3)
    assert [option["method"] for option in row["options"]] == ["lsp", "lpu", "lbu"]
    assert "any 30 days in a row" in run("plan", "--task", "time", *given).output


def test_options_of_time_are_refused_elsewhere_and_needed_there() -> None:
    assert run("plan", "--task", "histogram", "--size", "4", "--n", "10", "--epsilon", "1", "--run", "3").exit_code == 2
    assert run("plan", "--task", "time", "--size", "4", "--n", "10", "--epsilon", "1").exit_code == 2
