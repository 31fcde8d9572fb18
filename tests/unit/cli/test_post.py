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
    for query in ("full_domain", "subsets", "top_k"):
        shown = json.loads(
            run("post", "select", tally_file, "--query", query, "--runs", "5", "--k", "2", "--json").output
        )
        assert shown["pick"] == shown["scores"][0]["method"]
    assert "pick:" in run("post", "select", tally_file, "--runs", "3").output


def test_simulations_show_the_processed_error() -> None:
    shown = json.loads(run("simulate", "oracle", "--size", "64", "--epsilon", "1", "--n", "3000",
                           "--post", "norm_sub", "--json").output)  # fmt: skip
    assert 0 < shown["post_rmse"] < shown["rmse"]
