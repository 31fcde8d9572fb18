"""The demo of a shuffled collection: all parties in threads for most tests, as processes where that is the point."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from tests.service.shuffled import Shuffling, shuffling
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.cli import cli
from tacit.client import Patience
from tacit.demo.shuffled import respondents, run
from tacit.demo.shuffled.parties import DemoParties, shuffler_at

FIELDS = ["reports", "failures", "coverage", "triple", "delta", "seconds"]
PHASES = ["publish", "upload", "release", "answers", "verify"]


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shuffling]:
    with shuffling(tmp_path_factory.mktemp("parties")) as made:
        yield made


@pytest.fixture(autouse=True)
def in_threads(parties: Shuffling, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parties in this process instead of ones that are started: real, over HTTP, and there at once."""

    @contextmanager
    def threads(data: Path, port: int) -> Generator[DemoParties]:
        assert data.is_dir() and port == 0
        identity = parties.collector.shuffle.desk.identity
        named = tuple(shuffler_at(url) for url in parties.urls)
        yield DemoParties(parties.url, parties.client.token, identity, named, parties.relay)

    monkeypatch.setattr(run, "processes", threads)


def test_a_crowd_goes_through_all_parties_and_its_answers_are_checked():
    told = CliRunner().invoke(cli, ["demo", "--shuffle", "--once", "--json", "--n", "200"])
    assert told.exit_code == 0, told.output
    assert len(told.stdout.splitlines()) == 1
    line = json.loads(told.stdout)
    assert list(line) == FIELDS and list(line["seconds"]) == PHASES
    # Seven of twelve intervals or fewer would be a failure, which a correct demo shows but once in a million times.
    assert (line["reports"], line["failures"]) == (200, 0) and line["coverage"] > 0.5
    assert line["triple"] == {"collector": "3.14", "others": "4", "local": "4"}
    assert line["delta"] == "0.00000001"
    assert "200 respondents, 6 fakes beside them" in told.stderr
    # Ten of them are the collector's spot checks.
    assert "all shufflers signed the same 210 uploads" in told.stderr
    assert "3 of 3 shufflers have signed that they erased" in told.stderr
    assert "Ctrl-C" not in told.stderr


def failing(capsys: pytest.CaptureFixture[str], n: int) -> tuple[list[str], dict[str, Any]]:
    """What is wrong with a demo of few respondents, and its line of JSON; another n makes another collection."""
    wrong = run.run_shuffled(None, 0, n, 1, as_json=True, stay=None)
    return wrong, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_lost_report_is_noticed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    send = run.send_sealed
    monkeypatch.setattr(run, "send_sealed", lambda url, id, values, advance: send(url, id, values[1:], advance))
    wrong, line = failing(capsys, 20)
    assert any("20 reports sent, 19 stored, 19 counted" in text for text in wrong)
    assert line["failures"] == len(wrong) and line["reports"] == 19


@pytest.mark.slow
def test_a_transcript_that_is_not_valid_is_noticed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def other(url: str, timeout: float) -> Any:
        reply = urlopen(url, timeout=timeout)
        read = reply.read
        reply.read = lambda: read().replace(b'"n":31', b'"n":32')
        return reply

    monkeypatch.setattr(run, "urlopen", other)
    wrong, line = failing(capsys, 21)
    assert any("the transcript is not valid" in text for text in wrong)
    assert line["failures"] == len(wrong) and line["reports"] == 21


def test_a_relay_that_is_away_and_a_session_without_respondents_are_noticed(
    parties: Shuffling, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(respondents, "_PATIENCE", Patience(attempts=1))
    monkeypatch.setattr(parties, "relay", f"{parties.relay}/nowhere")
    terms = DemoParties.terms
    # Spot checks would wait for the relay to come back.
    monkeypatch.setattr(DemoParties, "terms", lambda self, n: terms(self, n) | {"spot_checks": 0})
    wrong, line = failing(capsys, 22)
    assert "22 respondents could not send, the first for: shuffler_1: status 404" in wrong[0]
    assert "the session was aborted: " in wrong[1] and "0 respondents, the certificate needs 19" in wrong[1]
    assert (line["reports"], line["failures"], line["coverage"]) == (0, 2, None)


def test_a_shuffler_that_does_not_sign_ends_it(parties: Shuffling, monkeypatch: pytest.MonkeyPatch):
    driver = parties.shufflers[1].driver
    monkeypatch.setattr(driver, "offer", replace(driver.offer, any_collector=False))
    told = CliRunner().invoke(cli, ["demo", "--shuffle", "--once", "--n", "200"])
    assert told.exit_code == 1 and "the session could not be opened" in str(told.exception)


def test_the_other_demo_needs_more_respondents():
    told = CliRunner().invoke(cli, ["demo", "--once", "--n", "999"])
    assert told.exit_code == 2 and "must be at least 1000" in told.stderr


class Started:
    """`tacit demo --shuffle` in a session of its own; temporary files go to a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.mark = uuid.uuid4().hex
        env = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1", "TACIT_DEMO_MARK": self.mark}
        words = [sys.executable, "-P", "-m", "tacit.cli", "demo", "--shuffle", *options]
        # A suite that runs in the background ignores Ctrl-C, and what it starts would as well.
        heard = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self.process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True
            )
        finally:
            signal.signal(signal.SIGINT, heard)

    def left(self) -> list[int]:
        """Processes of this demo that run."""
        found: list[int] = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                marked = f"TACIT_DEMO_MARK={self.mark}".encode() in (place / "environ").read_bytes()
                found += [int(place.name)] if marked else []
        return found

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.left()) >= count or self.process.poll() is not None, lambda: self.left())
        assert self.process.poll() is None

    def end(self, act: Callable[[], None]) -> tuple[str, str]:
        act()
        told = self.process.communicate(timeout=PATIENT_SECONDS)
        wait_until(lambda: not self.left(), lambda: self.left())
        return told


@contextmanager
def started(folder: Path, *options: str) -> Generator[Started]:
    made = Started(folder, *options)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()


linux = pytest.mark.skipif(not Path("/proc/self/environ").is_file(), reason="processes are looked up in /proc")


@linux
@pytest.mark.slow
def test_as_processes_it_ends_by_itself_and_leaves_nothing(tmp_path: Path):
    with started(tmp_path, "--once", "--json", "--n", "2000") as made:
        # The demo, a collector, a relay and three shufflers, and two processes of respondents.
        made.wait_for(8)
        output, errors = made.end(lambda: None)
    assert made.process.returncode == 0, errors
    line = json.loads(output)
    assert (line["reports"], line["failures"]) == (2000, 0)
    assert list(tmp_path.iterdir()) == []


@linux
@pytest.mark.slow
def test_ctrl_c_on_the_way_ends_all_processes(tmp_path: Path):
    with started(tmp_path, "--once", "--json") as made:
        made.wait_for(8)
        output, errors = made.end(lambda: os.killpg(made.process.pid, signal.SIGINT))
    assert made.process.returncode == 1 and output == "" and "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@linux
@pytest.mark.slow
def test_without_once_it_stays_until_it_is_told_to_stop_or_killed(tmp_path: Path):
    for how, kept in ((signal.SIGTERM, False), (signal.SIGKILL, True)):
        with started(tmp_path, "--n", "200") as made:
            assert made.process.stdout is not None
            told = ""
            for line in made.process.stdout:
                told += line
                if "Ctrl-C" in line:
                    break
            url = next(line.split()[1] for line in told.splitlines() if line.startswith("Dashboard"))
            assert urlopen(url, timeout=PATIENT_SECONDS).status == 200
            made.end(lambda how=how: made.process.send_signal(how))
        # Nobody is left to remove a folder after SIGKILL.
        assert bool(list(tmp_path.iterdir())) is kept
