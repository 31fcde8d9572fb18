"""The demo as it is run: a collector of its own, the crowd over HTTP, and answers that are checked."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tacit.cli.demo_check import FALSE_ALARM, LEVEL, fewest_covered
from tacit.cli.demo_crowd import EXAMPLES, portions

PYTHON = [sys.executable, "-P"]
TACIT = [*PYTHON, "-m", "tacit.cli"]
SMALL = ["demo", "--once", "--json", "--n", "3000"]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command whose temporary files go to a folder."""
    env = os.environ | {"TMPDIR": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)


def demo(folder: Path, change: str, *options: str) -> subprocess.CompletedProcess[str]:
    """The demo in a process where something was changed before."""
    program = f"import sys; {change}; sys.argv = ['tacit', *sys.argv[1:]]; from tacit.cli import main; main()"
    return run([*PYTHON, "-c", program, *SMALL, *options], folder)


def test_once_answers_are_checked_and_nothing_is_left(tmp_path: Path):
    done = run([*TACIT, *SMALL], tmp_path)
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert list(line) == ["reports", "collections", "interval_coverage", "reports_per_second"]
    assert line["reports"] == 3000
    assert line["collections"] == len(EXAMPLES) == 3
    assert fewest_covered(27) / 27 <= line["interval_coverage"] <= 1
    assert line["reports_per_second"] > 0
    assert len(done.stdout.splitlines()) == 1
    assert "Languages at home" in done.stderr
    assert list(tmp_path.iterdir()) == []


WRONG_TRUTH = "from tacit.cli.demo_crowd import Crowd; Crowd.truths = property(lambda self, old=Crowd.truths.fget: {})"
BREAKAGES = {
    "two values are swapped": (
        WRONG_TRUTH.format("[truth[::-1] if len(truth) > 1 else truth for truth in old(self)]"),
        "standard errors from the truth",
    ),
    "a mean is off": (WRONG_TRUTH.format("[truth + 9 if len(truth) == 1 else truth for truth in old(self)]"), "'mean'"),
    "a batch is lost": (
        "import tacit.cli.demo_send as send; send._jobs = lambda crowd, old=send._jobs: list(old(crowd))[1:]",
        "1200 reports sent, 1100 stored, 1100 counted",
    ),
    "a batch is damaged": (
        "import tacit.cli.demo_send as send; make = send.make_batch; "
        "send.make_batch = lambda *given: make(*given)[:-1]",
        "ReportRejected",
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_what_is_wrong_is_noticed(name: str, tmp_path: Path):
    change, message = BREAKAGES[name]
    done = demo(tmp_path, change)
    assert done.returncode != 0
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def misses_tail(intervals: int, covered: int) -> Fraction:
    """Probability that fewer intervals than this contain their truth."""
    cells = range(covered)
    return sum((comb(intervals, k) * LEVEL**k * (1 - LEVEL) ** (intervals - k) for k in cells), Fraction(0))


@pytest.mark.parametrize("intervals", [1, 5, 27, 400])
def test_the_threshold_is_the_exact_binomial_tail(intervals: int):
    fewest = fewest_covered(intervals)
    assert misses_tail(intervals, fewest) <= FALSE_ALARM < misses_tail(intervals, fewest + 1)


@pytest.mark.parametrize("n", [1000, 1001, 99_999])
def test_every_respondent_answers_one_example(n: int):
    assert sum(portions(n)) == n


def test_a_folder_is_kept_and_not_used_twice(tmp_path: Path):
    folder, scratch = tmp_path / "kept", tmp_path / "scratch"
    scratch.mkdir()
    assert run([*TACIT, *SMALL, "--data", str(folder)], scratch).returncode == 0
    listed = run([*TACIT, "collection", "list", "--json", "--data", str(folder)], scratch)
    assert sum(row["reports"] for row in json.loads(listed.stdout)) == 3000
    again = run([*TACIT, *SMALL, "--data", str(folder)], scratch)
    assert again.returncode == 2
    assert "earlier demo" in again.stderr


def test_a_taken_port_is_refused(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run([*TACIT, *SMALL, "--port", str(taken.getsockname()[1])], tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("tacit: StorageUnavailable: demo: port")
    assert len(done.stderr.splitlines()) == 1


def test_too_few_respondents_are_refused(tmp_path: Path):
    assert run([*TACIT, "demo", "--n", "999"], tmp_path).returncode == 2


def start(folder: Path) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """The demo without --once, once it has said where to look."""
    env = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    command = [*TACIT, "demo", "--n", "1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    found: dict[str, Any] = {}
    for line in process.stdout:
        for name, pattern in (("url", r"Dashboard\s+(\S+)/dashboard"), ("token", r"token\s+(tct_\S+)")):
            if match := re.search(pattern, line):
                found[name] = match[1]
        if "Ctrl-C" in line:
            return process, found
    raise AssertionError(process.communicate()[1])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_it_stays_up_until_it_is_stopped(how: signal.Signals, tmp_path: Path):
    process, found = start(tmp_path)
    try:
        headers = {"Authorization": f"Bearer {found['token']}"}
        with urlopen(Request(f"{found['url']}/api/v1/collections", headers=headers), timeout=10) as reply:
            assert sum(row["reports"] for row in json.load(reply)["collections"]) == 1000
        process.send_signal(how)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0
    assert errors.split() == ["stopped"]
    assert list(tmp_path.iterdir()) == []


def test_a_killed_demo_leaves_no_collector_running(tmp_path: Path):
    process, found = start(tmp_path)
    process.kill()
    process.communicate(timeout=120)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            urlopen(f"{found['url']}/healthz", timeout=5).close()
            time.sleep(0.05)
        except OSError:
            return
    raise AssertionError("the collector is still there")
