"""Programs that print reports: what is asked of them, and what they do wrong."""

import fcntl
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.audit.conformance import check_conformance, vector_cases
from tacit.audit.presets import client_hash, conformance_command, preset_command
from tacit.audit.program import Program, read_reports, value_text
from tacit.errors import InvalidSpec, ProgramFailed, ReportRejected
from tacit.testing.examples import example

GRR = tacit.GRR(8, "1")


def program(tmp_path: Path, body: str, arguments: str = "{value} {runs}", **limits: Any) -> Program:
    (tmp_path / "client.py").write_text("import sys\n" + body, encoding="utf-8")
    return Program(f"{sys.executable} -S {tmp_path / 'client.py'} {arguments}", **limits)


def printed(source: Program, runs: int = 5) -> list[int]:
    return [int(report) for batch in source.sample(GRR, 3, runs) for report in batch]


def test_value_and_runs_are_put_into_the_command(tmp_path: Path) -> None:
    assert printed(
        program(tmp_path, "print('0' + sys.argv[1] + '\\n' * 1, end=''); print('05\\n' * (int(sys.argv[2]) - 1))")
    ) == [3, 5, 5, 5, 5]


def test_values_come_on_standard_input_without_runs(tmp_path: Path) -> None:
    assert printed(program(tmp_path, "for line in sys.stdin: print('%02X' % int(line), end='\\r\\n')", "")) == [3] * 5


def test_a_program_that_prints_one_report_is_started_again(tmp_path: Path) -> None:
    assert printed(program(tmp_path, "print('%02x' % int(sys.argv[1]))", "{value}"), 3) == [3, 3, 3]


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        ("print('0')", ReportRejected, "2 hexadecimal"),
        ("print('zz')", ReportRejected, "line 1"),
        ("print('08')", ReportRejected, "out of range"),
        ("print('01')", ProgramFailed, "printed 1 reports and was asked for 5"),
        ("print('01\\n' * 6, end='')", ProgramFailed, "printed 6"),
        ("print('01\\n' * 600)", ProgramFailed, "more than it was asked"),
        ("sys.exit('no luck')", ProgramFailed, "status 1: no luck"),
        ("pass", ProgramFailed, "printed 0"),
    ],
)
def test_what_a_program_does_wrong_is_said(tmp_path: Path, body: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        printed(program(tmp_path, body))


def test_a_program_that_hangs_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="stopped after"):
        printed(program(tmp_path, "import time\nwhile True: time.sleep(1)", timeout_seconds=0.2))


@pytest.mark.parametrize("after", ["sys.exit(subprocess.call(CHILD))", "subprocess.Popen(CHILD); print('01\\n' * 5)"])
def test_what_a_program_started_is_ended_with_it(tmp_path: Path, after: str) -> None:
    """The child holds the pipe, which nobody waits for, and a lock, which is free as soon as the child is gone."""
    lock, child = tmp_path / "lock", tmp_path / "child.py"
    body = f"import fcntl, time\nheld = open({str(lock)!r}, 'w')\nfcntl.flock(held, fcntl.LOCK_EX)\n"
    child.write_text(body + "while True: time.sleep(1)", encoding="utf-8")
    body = f"import subprocess\nCHILD = [{sys.executable!r}, '-S', {str(child)!r}]\n{after}"
    with pytest.raises(ProgramFailed, match="was stopped after"):
        printed(program(tmp_path, body, timeout_seconds=0.5))
    with lock.open("w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)


def test_commands_that_cannot_be_run_are_refused() -> None:
    with pytest.raises(ProgramFailed, match="cannot be started"):
        printed(Program("no-such-program-anywhere {value} {runs}"))
    with pytest.raises(ProgramFailed, match="zero byte"):
        printed(Program("echo {value} {runs} \0"))
    for wrong in ("", "echo 'open"):
        with pytest.raises(InvalidSpec):
            Program(wrong)
        with pytest.raises(InvalidSpec):
            check_conformance(wrong, [])
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidSpec, match="timeout"):
            Program("true", seconds)


def test_values_are_written_as_numbers_or_json() -> None:
    assert [value_text(value) for value in (7, (1, 2), "often")] == ["7", "[1,2]", "often"]


@pytest.mark.parametrize("kind", ["grr", "oue", "olh"])
def test_our_python_client_prints_valid_reports(kind: str) -> None:
    mechanism = example(kind, "1")
    (reports,) = Program(preset_command("python", mechanism)).sample(mechanism, 2, 50)
    assert len(reports) == 50 and mechanism.valid(reports).all()


def test_our_javascript_client_prints_valid_reports_in_node() -> None:
    mechanism = example("olh", "1")
    (reports,) = Program(preset_command("node", mechanism)).sample(mechanism, 2, 50)
    assert len(reports) == 50 and mechanism.valid(reports).all()
    assert len(client_hash()) == 64


def test_reading_is_strict() -> None:
    assert len(read_reports(GRR, b"")) == 0
    assert read_reports(GRR, b"00\n07").tolist() == [0, 7]


@pytest.mark.parametrize("name", ["python", "node"])
def test_our_clients_reproduce_golden_vectors(name: str) -> None:
    outcome = check_conformance(conformance_command(name), vector_cases(kinds=["grr", "padded"]))
    assert outcome.cases > 50 and not outcome.failures


def test_wrong_answers_to_vectors_are_named(tmp_path: Path) -> None:
    cases = vector_cases(kinds=["grr"])
    lines = {"wrong": '{"report": "ff", "words": 1}', "silent": "{}", "no JSON": "oops", "deep": "[" * 4000}
    for text in lines.values():
        (tmp_path / "client.py").write_text(f"import sys\nfor _ in sys.stdin: print({text!r})", encoding="utf-8")
        outcome = check_conformance(f"{sys.executable} -S {tmp_path / 'client.py'}", cases)
        assert len(outcome.failures) == outcome.cases == len(cases)
    with pytest.raises(ProgramFailed, match="answers"):
        check_conformance("true", cases)
    with pytest.raises(ProgramFailed, match="more than it was asked"):
        check_conformance("yes", cases)


def test_words_are_compared_where_they_are_printed() -> None:
    case = next(one for one in vector_cases(kinds=["grr"]) if "report" in one.expected)
    assert case.fits(case.expected) and case.fits({"report": case.expected["report"]})
    assert not case.fits(case.expected | {"words": 99})
    assert not case.fits({"error": "InvalidSpec"}) and not case.fits(None)


def test_vectors_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="no golden vectors"):
        vector_cases(tmp_path / "none")
    with pytest.raises(InvalidSpec, match="rot13"):
        vector_cases(kinds=["rot13"])
    assert json.dumps(check_conformance("true", []).to_json()) == '{"cases": 0, "conforms": true, "failures": []}'
