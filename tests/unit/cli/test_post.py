"""Post-processing from the command line: beside raw estimates, listed, and chosen by replay."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.post.frequencies.methods import NAMES


@pytest.fixture
def tally_file(tmp_path: Any) -> str:
    (tmp_path / "v.csv").write_text("v\n" + "\n".join(["0"] * 300 + ["1"] * 100) + "\n")
    for command in (
        f"privatize {tmp_path}/v.csv --kind grr --size 5 --epsilon 3 -o {tmp_path}/v.reports",
        f"tally {tmp_path}/v.reports -o {tmp_path}/v.tally",
    ):
        assert CliRunner().invoke(cli, command.split()).exit_code == 0
    return str(tmp_path / "v.tally")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, list(arguments))


def test_estimates_are_shown_raw_and_processed(tally_file: str) -> None:
    shown = json.loads(run("estimate", tally_file, "--post", "cls", "--json").output)
    assert shown["post"]["name"] == "norm_sub"
    assert shown["post"]["biased"] is True
    assert sum(row["processed"] for row in shown["estimates"]) == pytest.approx(1)
    assert all(row["processed_low"] <= row["processed"] <= row["processed_high"] for row in shown["estimates"])
    assert "processed" in run("estimate", tally_file, "--post", "power_ns").output
    refused = run("estimate", tally_file, "--post", "norm_sub", "--candidates", "1")
    assert refused.exit_code != 0
    assert "every value of the domain" in refused.output + str(refused.exception)
    few = json.loads(run("estimate", tally_file, "--post", "npmle", "--candidates", "0,1", "--json").output)
    assert few["post"]["name"] == "base_pos"
    unknown = run("estimate", tally_file, "--post", "magic")
    assert unknown.exit_code == 2
    assert "norm_sub" in unknown.output


def test_methods_are_listed_and_chosen(tally_file: str) -> None:
    listed = json.loads(run("post", "list", "--json").output)
    assert [row["name"] for row in listed["methods"]] == list(NAMES)
    assert all(name in run("post", "list").output for name in NAMES)
    for query in ("cells", "sets", "largest"):
        shown = json.loads(run("post", "select", tally_file, "--query", query, "--json").output)
        assert shown["pick"] == shown["scores"][0]["method"]
        assert (shown["rule"], shown["runs"]) == ("sure", 0)
        assert shown["seconds"] >= 0
    assert "pick:" in run("post", "select", tally_file).output


def test_the_largest_have_intervals_adjusted_for_selection(tally_file: str) -> None:
    whole = json.loads(run("estimate", tally_file, "--json").output)
    cut = json.loads(run("estimate", tally_file, "--top", "2", "--json").output)
    assert "adjusted_for_selection" not in whole
    assert cut["adjusted_for_selection"] is True
    before = {row["value"]: row for row in whole["estimates"]}
    assert [row["value"] for row in cut["estimates"]] == [0, 1]
    assert all(row["high"] - row["low"] > before[row["value"]]["high"] - before[row["value"]]["low"]
               for row in cut["estimates"])  # fmt: skip
    assert "adjusted for selection" in run("estimate", tally_file, "--top", "2").output


def test_simulations_show_the_processed_error() -> None:
    shown = json.loads(run("simulate", "oracle", "--size", "64", "--epsilon", "1", "--n", "3000",
                           "--post", "norm_sub", "--json").output)  # fmt: skip
    assert 0 < shown["post_rmse"] < shown["rmse"]
