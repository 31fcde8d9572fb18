"""Simulated shuffled collections: errors as predicted for every method, with fakes and with real reports."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.shuffle.mechanisms.closed_forms import CentralTarget
from tacit.simulate.population import zipf_counts
from tacit.simulate.shuffle import ABOUT, draw_estimate, simulate_shuffle
from tacit.testing.statistics import assert_unbiased, assert_variance

COUNTS = zipf_counts(100, 200_000)
TARGET = CentralTarget("0.8", 1e-6, 200_000)


@pytest.mark.parametrize("method", ABOUT)
def test_every_method_has_the_error_that_was_predicted(method: str):
    """100 values and 8 runs: 5 % if the values are independent; within 30 %, six of those."""
    outcome = simulate_shuffle(method, COUNTS, TARGET, runs=8, seed=1)
    assert outcome.mse is not None and outcome.mse > 0
    if method == "uniform":
        assert outcome.predicted_mse is None
    else:
        assert outcome.mse == pytest.approx(outcome.predicted_mse, rel=0.3)
    assert json.dumps(outcome.to_row(), allow_nan=False)


def test_values_drawn_alone_and_whole_reports_have_the_same_error():
    """OLH, with and without fakes, drawn both ways against one exact variance; alpha 1e-7, 1.5 is rejected."""
    counts, rng = np.array([300, 200, 100, 50, 0]), np.random.default_rng(6)
    truth = counts / 650
    for oracle in (OLH(size=5, epsilon="2"), GRR(size=5, epsilon="2")):
        for fakes in (0, 200):
            for reports in (False, True):
                runs = [draw_estimate(oracle, counts, rng, fakes=fakes, reports=reports) for _ in range(140)]
                errors = np.array([estimate.value for estimate in runs])[:, :3] - truth[:3]
                variance = np.mean([estimate.variance for estimate in runs[:40]], axis=0)[:3]
                assert {estimate.n for estimate in runs} == {650}
                assert_unbiased(errors, variance)
                assert_variance(errors, variance, must_reject=1.5)


def test_a_method_that_cannot_be_planned_says_why_instead_of_an_error():
    outcome = simulate_shuffle("aue", COUNTS, CentralTarget("0.1", 1e-9, 200_000), runs=1, seed=1)
    assert outcome.mse is None and "must be at most 1/2" in outcome.notes[0]
    assert "has no fake reports" in simulate_shuffle("rap", COUNTS, TARGET, runs=1, seed=1, fakes=5).notes[0]
    with pytest.raises(InvalidSpec, match="must be one of sh_grr, solh"):
        simulate_shuffle("sue", COUNTS, TARGET, runs=1, seed=1)


def run(*arguments: str):
    return CliRunner().invoke(cli, ["simulate", "shuffle", *arguments])


def test_the_command_compares_all_methods_and_repeats_itself():
    command = ("--epsilon", "0.8", "--delta", "1e-6", "--size", "20", "--n", "50000", "--runs", "2", "--json")
    one, two = (json.loads(run(*command).stdout) for _ in range(2))
    assert [row["method"] for row in one["methods"]] == list(ABOUT)
    assert [row["mse"] for row in one["methods"]] == [row["mse"] for row in two["methods"]]
    shown = run(*command[:-1])
    assert shown.exit_code == 0 and "central epsilon 0.8" in shown.stdout and "not local" in shown.stdout


def test_the_command_mixes_fakes_in_and_reads_a_column(tmp_path):
    file = tmp_path / "values.csv"
    file.write_text("answer\n" + "0\n" * 3000 + "1\n" * 2000 + "3\n" * 1000)
    command = ("--epsilon", "1", "--delta", "0.001", "--data", str(file), "--column", "answer", "--json")
    result = json.loads(run(*command, "--method", "solh", "--fakes", "1000", "--reports").stdout)
    (row,) = result["methods"]
    assert (result["n"], result["size"], result["fakes"]) == (6000, 4, 1000)
    plain = json.loads(run(*command, "--method", "solh").stdout)["methods"][0]
    assert row["predicted_mse"] > plain["predicted_mse"]


def test_the_command_walks_trees(tmp_path):
    command = ("--tree", "--epsilon", "1", "--n", "200000", "--bits", "16", "--keep", "8", "--method", "solh")
    result = json.loads(run(*command, "--method", "aue", "--json").stdout)
    assert result["trees"][0]["oracle"] == "solh" and result["trees"][0]["hits"] > 5
    assert result["trees"][0]["policy"] in ("budget", "groups")
    shown = run(*command, "--policy", "groups")
    assert shown.exit_code == 0 and "groups" in shown.stdout
    once = json.loads(run(*command, "--at-once", "--json").stdout)["trees"]
    assert [tree["oracle"] for tree in once] == ["solh"] and once[0]["at_once"] and once[0]["hits"] > 5
    assert "must be one of solh, olh" in run("--tree", "--epsilon", "1", "--at-once", "--method", "rap").output
    file = tmp_path / "words.txt"
    file.write_text("ab\n" * 6000 + "cd\n" * 4000)
    refused = run("--tree", "--data", str(file), "--epsilon", "0.5", "--bits", "16", "--keep", "2", "--method", "aue")
    assert refused.exit_code == 0 and "aue: aue: 5000 respondents" in refused.stdout
    found = run(
        "--tree", "--data", str(file), "--epsilon", "1", "--delta", "0.01", "--bits", "16", "--method", "rap", "--json"
    )
    assert json.loads(found.stdout)["n"] == 10_000


def test_an_unknown_method_and_an_epsilon_above_one_are_refused():
    assert "must be one of sh_grr" in run("--epsilon", "1", "--size", "4", "--method", "nothing").output
    assert "at most 1" in str(run("--epsilon", "2", "--size", "4").exception)
    assert "--size is needed" in run("--epsilon", "1").output
