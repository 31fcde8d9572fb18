"""`tacit simulate heavy-hitters`: files of values and counts, CSV columns, JSON, and refusals."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.device.domains.text import Text
from tacit.errors import InvalidSpec
from tacit.simulate.hitters import METHODS, Population, Search, simulate_hitters, syn
from tacit.simulate.hitters_data import Columns, read_population, value_domain
from tacit.tasks.hitters.plan import plan_pem
from tacit.tasks.hitters.spelling import spelling_of


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["simulate", "heavy-hitters", *arguments])


def test_made_up_data_gives_scores_and_a_list() -> None:
    result = run(
        "--data", "syn", "--n", "20000", "--bits", "24", "--epsilon", "4", "--k", "4", "--cap", "1e8", "--json"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {"f1", "ncr", "found", "seconds"} <= found.keys() and 0 <= found["f1"] <= 1
    assert {"value", "frequency", "low", "high"} <= found["found"][0].keys()
    assert len(found["found"][0]["value"]) == 24


def test_several_seeds_give_mean_and_spread_and_the_same_command_the_same_numbers() -> None:
    command = ("--data", "syn", "--n", "5000", "--bits", "16", "--epsilon", "4", "--k", "4", "--seeds", "3", "--json")
    one, two = (json.loads(run(*command).stdout) for _ in range(2))
    assert one["runs"] == 3 and "f1_sd" in one and len(one["f1_runs"]) == 3
    assert one["found"] == two["found"] and one["f1_runs"] == two["f1_runs"]


def test_counts_are_split_at_the_last_tab_and_spaces_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "words.txt.gz"
    path.write_bytes(gzip.compress(b" a \t30\nb\tc\t20\nplain\nplain\ntoo long for it\t3\nx\t-4\n"))
    read = read_population(str(path), value_domain("text", 64), columns=Columns())
    held = {read.population.domain.decode(int(v)): int(c) for v, c in
            zip(read.population.values, read.population.counts, strict=True)}  # fmt: skip
    assert held == {" a ": 30, "b\tc": 20, "plain": 2, "too long": 3, "x\t-4": 1}
    assert read.cut == 3 and read.skipped == 0


def test_columns_of_csv_files_with_and_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text('name,n\n"Ann, B",2\nBo,3\nbroken\nBo,x\n')
    read = read_population(str(path), value_domain("text", 64), columns=Columns("name", "n"))
    assert sorted(read.population.counts.tolist()) == [2, 3] and read.skipped == 2
    path = tmp_path / "names.txt"
    path.write_text("Ann,F,2\nAnn,M,1\nBo,M,3\n")
    domain = value_domain("text", 64, "lower")
    columns = Columns("name", "n", ("name", "sex", "n"))
    assert sorted(read_population(str(path), domain, columns=columns, lower=True).population.counts.tolist()) == [3, 3]
    assert read_population(str(path), domain, columns=columns).skipped == 6  # Capitals are not in the alphabet.


def test_bits_and_integers_of_files(tmp_path: Path) -> None:
    path = tmp_path / "values.txt"
    path.write_text("0110\n0110\n2\n")
    assert read_population(str(path), value_domain("bits", 4), columns=Columns()).population.values.tolist() == [6]
    path.write_text("18446744073709551615\n7\n-1\nx\n")
    read = read_population(str(path), value_domain("integers", 64), columns=Columns(), integers=True)
    assert sorted(read.population.values.tolist()) == [7, 2**64 - 1] and read.skipped == 2


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--data", "syn", "--epsilon", "1", "--method", "magic"), "must be one of pem"),
        (("--data", "syn", "--epsilon", "x"), "epsilon"),
        (("--data", "{file}", "--epsilon", "1", "--bits", "12"), "multiple of 8"),
        (("--data", "{file}", "--epsilon", "1", "--alphabet", "lower", "--length", "14"), "fit into 64 bits"),
        (("--data", "{file}", "--epsilon", "1", "--column", "b"), "there is no column"),
        (("--data", "{empty}", "--epsilon", "1"), "no respondents"),
        (("--data", "syn", "--epsilon", "1", "--method", "privtrie", "--n", "100"), "needs a threshold"),
        (("--data", "syn", "--epsilon", "1", "--method", "naive", "--n", "100"), "use pem"),
        (("--data", "syn", "--epsilon", "1", "--threshold", "0.0001", "--n", "1000"), "false prefixes multiply"),
    ],
)
def test_refusals_say_the_rule(tmp_path: Path, arguments: "tuple[str, ...]", word: str) -> None:
    (tmp_path / "file").write_text("a\nb\n")
    (tmp_path / "empty").write_text("")
    given = [text.format(file=tmp_path / "file", empty=tmp_path / "empty") for text in arguments]
    result = run(*given)
    assert result.exit_code != 0
    assert word in result.output + str(result.exception)


def test_a_list_that_is_part_noise_says_so(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("apple\t900\n" + "".join(f"w{i}\t1\n" for i in range(100)))
    result = run("--data", str(path), "--epsilon", "4", "--k", "8", "--cap", "1e8", "--json")
    found = json.loads(result.stdout)
    assert found["found"][0]["value"] == "apple" and any("surely no noise" in note for note in found["notes"])


@pytest.mark.parametrize("method", [method.name for method in METHODS if method.name not in ("naive", "pem1")])
def test_every_method_of_the_table_runs_and_finds_obvious_values(method: str) -> None:
    """Four values of a quarter each at epsilon 8: what any of the protocols must find."""
    values = np.array([0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x1111222233334444, 0xF00DCAFE12345678], np.uint64)
    population = Population(value_domain("bits", 64), values, np.full(4, 50_000))
    search = Search("8", 4, threshold=0.1 if method == "privtrie" else None, most_evaluations=1e9, groups=None)
    outcome = simulate_hitters(population, search, method, seed=1)
    # Two values in one channel lose one of them.
    assert outcome.f1 >= (0.5 if "hash" in method else 1.0)
    assert all(row["low"] <= 0.25 <= row["high"] or abs(row["frequency"] - 0.25) < 0.02 for row in outcome.found[:2])


def test_the_synthetic_population_has_the_stated_shares() -> None:
    population = syn(200_000, 64, 1)
    top = list(population.top(16).values())
    assert top[0] / 200_000 == pytest.approx(0.0488, abs=0.003) and top[-1] / 200_000 == pytest.approx(0.023, abs=0.002)


def plan(*arguments: str) -> Any:
    line = ["plan", "--task", "heavy-hitters", "--epsilon", "2", "--n", "100000", "--k", "16", *arguments]
    return CliRunner().invoke(cli, line)


@pytest.mark.slow
def test_a_plan_takes_bits_instead_of_a_size_of_twenty_digits() -> None:
    by_size, by_bits = (plan(*way, "--json") for way in (("--size", str(1 << 64)), ("--bits", "64")))
    assert by_bits.exit_code == 0, by_bits.output
    assert json.loads(by_size.stdout) == json.loads(by_bits.stdout)
    assert plan("--bits", "48").output.startswith("strings of 48 bits (2.81e+14), epsilon 2")


@pytest.mark.slow
def test_a_plan_for_text_is_the_one_that_a_collection_of_it_gets() -> None:
    domain = Text("w", "lower", 8)
    asked = json.loads(plan("--alphabet", "lower", "--length", "8", "--json").stdout)["pick"]["spec"]
    assert asked == plan_pem(spelling_of(domain), epsilon="2", n=100_000, k=16).mechanism.spec()
    digits = json.loads(plan("--alphabet", "9876543210-", "--length", "12", "--json").stdout)["pick"]["spec"]
    assert digits["family"]["size"] == str(12**12) or digits["family"]["size"] == 12**12


@pytest.mark.parametrize(
    "ways",
    [(), ("--size", "9", "--bits", "8"), ("--bits", "8", "--alphabet", "lower", "--length", "3"), ("--length", "3"),
     ("--alphabet", "lower"), ("--size", "9", "--length", "3")],
)  # fmt: skip
def test_a_plan_wants_its_domain_once(ways: tuple[str, ...]) -> None:
    result = plan(*ways)
    assert result.exit_code == 2
    assert "--bits 48" in result.output and "--alphabet lower --length 8" in result.output


def test_a_plan_names_the_longest_text_that_fits() -> None:
    result = plan("--alphabet", "lower", "--length", "14")
    assert isinstance(result.exception, InvalidSpec) and "from 1 to 13" in str(result.exception)


def test_bits_are_not_for_other_tasks() -> None:
    line = ["plan", "--task", "histogram", "--bits", "4", "--epsilon", "1", "--n", "100"]
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 2 and "task heavy-hitters" in result.output
