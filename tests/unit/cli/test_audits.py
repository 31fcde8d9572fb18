"""`tacit audit client`, `tacit audit report` and `tacit conformance`: what they print, and exit codes."""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.vectors.mutations import documents

import tacit
from tacit.cli import cli
from tacit.collector.collections.publish import Planner

# Randomised response over 8 values with an epsilon of its own; the answer, or a uniform other one.
CLIENT = """
import sys
from math import exp
from random import SystemRandom
coins = SystemRandom()
def report(value, keep=exp({epsilon}) / (exp({epsilon}) + 7)):
    other = coins.randrange(7)
    return value if coins.random() < keep else other + (other >= value)
if len(sys.argv) > 1:
    print("\\n".join(f"{{report(int(sys.argv[1])):02x}}" for _ in range(int(sys.argv[2]))))
else:
    for line in sys.stdin: print(f"{{report(int(line)):02x}}")
"""
GRR = ("--kind", "grr", "--size", "8", "--epsilon", "1")


def client(tmp_path: Path, epsilon: float, arguments: str = " {value} {runs}") -> str:
    path = tmp_path / f"client_{epsilon}.py"
    path.write_text(CLIENT.format(epsilon=epsilon), encoding="utf-8")
    return f"{sys.executable} -S {path}{arguments}"


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.mark.parametrize("arguments", [" {value} {runs}", pytest.param("", marks=pytest.mark.slow)])
def test_an_honest_client_stands_and_one_that_spends_more_is_refuted(tmp_path: Path, arguments: str) -> None:
    """A false alarm has probability 0.001; at epsilon 2.5 the bound of 2,000 runs is above 1.9 on average."""
    honest = run("audit", "client", *GRR, "--command", client(tmp_path, 1, arguments), "--runs", 2000, "--json")
    assert honest.exit_code == 0, honest.output
    found = json.loads(honest.output)
    assert not found["refuted"] and len(found["pairs"]) == 28 and 0.3 < found["epsilon_lower"] < 1 == found["declared"]
    wrong = run("audit", "client", *GRR, "--command", client(tmp_path, 2.5, arguments), "--runs", 2000, "--json")
    assert wrong.exit_code == 1
    assert json.loads(wrong.output)["refuted"] and json.loads(wrong.output)["epsilon_lower"] > 1


def test_pairs_and_the_table(tmp_path: Path) -> None:
    shown = run("audit", "client", *GRR, "--command", client(tmp_path, 2.5), "--runs", 2000, "--pairs", "0:1,0:7")
    assert shown.exit_code == 1 and "2 pairs" in shown.output and "REFUTED" in shown.output


@pytest.mark.parametrize(
    "wrong",
    [
        (*GRR,),
        (*GRR, "--command", "true", "--preset", "python"),
        (*GRR, "--command", "true", "--pairs", "0:8"),
        (*GRR, "--command", "true", "--pairs", "0"),
        ("--kind", "grr", "--command", "true"),
        ("--command", "true"),
        (*GRR, "--question", "habit", "--command", "true"),
    ],
)
def test_what_cannot_be_run_is_refused(wrong: tuple[str, ...]) -> None:
    assert run("audit", "client", *wrong).exit_code == 2


def test_a_program_that_fails_is_no_refutation(tmp_path: Path) -> None:
    from tacit.errors import ProgramFailed

    failed = run("audit", "client", *GRR, "--command", "false {value} {runs}")
    assert isinstance(failed.exception, ProgramFailed)  # `main` makes it one line and exit code 2.


def test_an_empty_command_is_none_of_our_clients() -> None:
    from tacit.errors import InvalidSpec

    for line in (("audit", "client", *GRR), ("conformance",)):
        assert isinstance(run(*line, "--command", "").exception, InvalidSpec)


def document(tmp_path: Path, policy: str) -> tuple[str, dict[str, Any]]:
    found = next(one for one in documents() if one["policy"] == policy and one["questions"][0]["task"] == "histogram")
    (tmp_path / "doc.json").write_text(json.dumps(found), encoding="utf-8")
    return str(tmp_path / "doc.json"), found


def test_a_question_of_a_document_is_audited(tmp_path: Path) -> None:
    path, found = document(tmp_path, "one_of")
    name = found["questions"][0]["name"]
    options = ("--preset", "python", "--runs", 500, "--pairs", "0:1", "--json")
    shown = run("audit", "client", "--document", path, "--question", name, *options)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["spec"]["kind"] in ("grr", "oue", "olh", "hrr", "ss", "cbr", "rue")
    assert run("audit", "client", "--document", path, "--question", "nobody", *options).exit_code != 0
    assert run("audit", "client", "--document", path, *options).exit_code != 0
    assert run("audit", "client", "--document", path, "--kind", "grr", *options).exit_code == 2


def test_a_page_and_its_json(tmp_path: Path) -> None:
    path, found = document(tmp_path, "single")
    for name in ("audit.html", "audit.json"):
        shown = run("audit", "report", "--document", path, "-o", tmp_path / name)
        assert shown.exit_code == 0, shown.output
    assert json.loads((tmp_path / "audit.json").read_text())["document"]["questions"] == found["questions"]
    assert "Signature" in (tmp_path / "audit.html").read_text()
    refuted = run("audit", "report", *GRR, "--command", client(tmp_path, 3), "--runs", 1000, "-o", tmp_path / "r.json")
    assert refuted.exit_code == 1
    assert json.loads((tmp_path / "r.json").read_text())["clients"][0]["refuted"]


def test_a_page_on_all_questions_of_a_document(tmp_path: Path) -> None:
    asked = {"text": "Which?", "domain": {"kind": "categories", "labels": ["a", "b", "c"]}}
    draft = {"title": "T", "epsilon": "1", "questions": [asked | {"name": name} for name in ("pet", "town")]}
    found = Planner(tacit.CATALOG).plan(draft)[0].to_json()
    path = tmp_path / "doc.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    shown = run("audit", "report", "--document", path, "-o", tmp_path / "all.json")
    assert shown.exit_code == 0, shown.output
    page = json.loads((tmp_path / "all.json").read_text())
    names = [question["name"] for question in found["questions"]]
    assert len(names) > 1 and [one["question"] for one in page["questions"]] == names and page["holds"]
    assert page["guarantees"][0]["holds"] and page["mechanism"]["spec"]["kind"] == "one_of"
    assert run("audit", "report", "--document", path, "-o", tmp_path / "all.html").exit_code == 0
    text = (tmp_path / "all.html").read_text()
    assert all(f"<h1>{name}</h1>" in text for name in names) and text.count("Signature") == 1
    assert "All questions together" in text and "Enumerated: " in text


def test_files_of_a_program_are_named_by_their_hashes(tmp_path: Path) -> None:
    command = client(tmp_path, 1)
    options = ("--runs", 200, "--preset", "python", "--command", command, "-o", tmp_path / "audit.json")
    assert run("audit", "report", *GRR, *options).exit_code == 0
    preset, own = (one["files"] for one in json.loads((tmp_path / "audit.json").read_text())["clients"])
    assert own["client_1.py"] == sha256((tmp_path / "client_1.py").read_bytes()).hexdigest()
    assert len(preset["tacit.device"]) == 64


def test_conformance() -> None:
    shown = run("conformance", "--preset", "python", "--kind", "grr", "--json")
    assert shown.exit_code == 0 and json.loads(shown.output)["conforms"]
    command = f"{sys.executable} -S -c \"import sys; [print('{{}}') for _ in sys.stdin]\""
    assert run("conformance", "--command", command, "--kind", "grr").exit_code == 1
    assert run("conformance").exit_code == 2


def test_forged_reports_in_files_are_found_and_repaired(tmp_path: Path) -> None:
    from tacit.simulate.coins import SimulationCoins
    from tacit.simulate.poisoning.attacks import Attack, fake_reports
    from tacit.wire.files import REPORTS_MAGIC, Writer

    mechanism = tacit.OUE(32, "1")
    genuine = mechanism.privatize(np.arange(20_000) % 32, SimulationCoins(1))
    fakes = fake_reports(mechanism, Attack("mga", np.array([4, 9, 20, 30])), 800, 1)
    for name, reports in (("clean", genuine), ("forged", fakes)):
        with (tmp_path / f"{name}.reports").open("wb") as stream:
            writer = Writer(stream, REPORTS_MAGIC, mechanism)
            writer.block(reports.tobytes(), len(reports))
            writer.close()
    clean = run("integrity", tmp_path / "clean.reports", "--json")
    assert clean.exit_code == 0 and json.loads(clean.output)["state"] != "alarm"
    both = (tmp_path / "clean.reports", tmp_path / "forged.reports", "--repair", "rec_hist")
    found = json.loads(run("integrity", *both, "--json").output)
    assert found["state"] == "alarm" and found["hot"] == [4, 9, 20, 30]
    assert all(row["repaired"] < row["raw"] - 0.03 for row in found["repair"]["rows"])
    assert "pushed together: 4, 9, 20, 30" in run("integrity", *both).output
    assert run("integrity", tmp_path / "clean.reports", "--alpha", 2).exit_code == 2
