"""The demo as it is run: a collector of its own, the crowd over HTTP, and answers that are checked."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner
from tests.service.waiting import PATIENT_SECONDS, wait_until

import tacit.demo.examples as asked
from tacit.cli import cli
from tacit.dashboard import COOKIE
from tacit.demo.check import FALSE_ALARM, LEVEL, fewest_covered
from tacit.demo.crowd import portions
from tacit.demo.examples import EXAMPLES, examples
from tacit.demo.joint import DemoPair, judge, plain

PYTHON = [sys.executable, "-P"]
TACIT = [*PYTHON, "-m", "tacit.cli"]
SMALL = ["demo", "--once", "--json", "--n", "3000"]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command whose temporary files go to a folder."""
    env = os.environ | {"TMPDIR": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENT_SECONDS, env=env)


def demo(folder: Path, change: str, *options: str) -> subprocess.CompletedProcess[str]:
    """The demo in a process where something was changed before."""
    program = f"{change}\nimport sys\nfrom tacit.cli import main\nsys.argv = ['tacit', *sys.argv[1:]]\nmain()"
    return run([*PYTHON, "-c", program, *SMALL, *options], folder)


@dataclass(frozen=True)
class Finished:
    """A demo that was run once, for several tests."""

    data: Path
    scratch: Path
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    data, scratch = tmp_path_factory.mktemp("kept") / "data", tmp_path_factory.mktemp("scratch")
    return Finished(data, scratch, run([*TACIT, *SMALL, "--data", str(data)], scratch))


def test_once_answers_are_checked_and_nothing_is_left(finished: Finished):
    done = finished.done
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert list(line) == ["reports", "collections", "interval_coverage", "reports_per_second", "joint", "sql"]
    assert line["reports"] == 3000
    assert line["collections"] == len(EXAMPLES) == 5
    assert fewest_covered(88) / 88 <= line["interval_coverage"] <= 1
    assert line["reports_per_second"] > 0
    assert line["joint"]["truly_dependent"] == [["home", "commute"], ["sleep", "mood"]]
    assert len(line["joint"]["tree"]) == 3
    assert {row["sql"] for row in line["sql"]} == {query.sql for query in EXAMPLES[-1].queries}
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in line["sql"])
    assert len(done.stdout.splitlines()) == 1
    assert "Languages at home" in done.stderr
    assert re.search(r"^[0-6] of 6 pairs go together, with 95 % confidence[:;] ", done.stderr, re.MULTILINE)
    assert re.search(r"^basic: count +\d+ +\d+ ± \d+ +(yes|no)$", done.stderr, re.MULTILINE)
    assert list(finished.scratch.iterdir()) == []


FAR_FROM_THE_TRUTH = """
import tacit.demo.joint as joint
import tacit.demo.table as table
from tacit.demo.crowd import Crowd

truths, true_table, cells = Crowd.truths.fget, joint._true_table, table._cells
Crowd.truths = property(lambda crowd: [truth[::-1] if len(truth) > 1 else truth + 9 for truth in truths(crowd)])
joint._true_table = lambda *given: true_table(*given)[::-1]
table._cells = lambda found: {name: cell | {"low": 2e4, "high": 2e4, "estimate": 2e4, "standard_error": 9}
                              for name, cell in cells(found).items()}
"""
LOST = """
import tacit.demo.send as send

send._jobs = lambda crowd: list(crowd.parts(100))[1:]
"""
DAMAGED = """
import tacit.demo.send as send

make = send.make_batch
send.make_batch = lambda *given: (make(*given)[0][:-1], make(*given)[1])
"""
MIXED_UP = """
import tacit.demo.send as send
from dataclasses import replace

make = send.make_batch
send.make_batch = lambda crowd, coins: make(replace(crowd, values=crowd.values[::-1]), coins)
"""
BREAKAGES = {
    "estimates are far from the truth": (
        FAR_FROM_THE_TRUTH,
        [
            "'English' of question 'language' is",
            "'mean' of question 'hours' is",
            "'never, over 45 min' of question 'home and commute' is",
            "'basic: count' of question 'SELECT plan, COUNT(*) FROM",
            "standard errors from the truth",
        ],
    ),
    "batches are lost": (
        LOST,
        ["6000 reports sent, 5900 stored, 5900 counted", "'SELECT plan, COUNT(*) FROM members WHERE back_pain = TRUE "
         "GROUP BY plan' was not answered over all rows and groups"],
    ),
    "a batch is damaged": (DAMAGED, ["ReportRejected"]),
    "rows have the reports of others": (MIXED_UP, ["'false: avg' of question 'SELECT back_pain, AVG(visits)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKAGES)
def test_what_is_wrong_is_noticed(name: str, tmp_path: Path):
    change, messages = BREAKAGES[name]
    done = demo(tmp_path, change, "--n", "20000")
    assert done.returncode != 0
    for message in messages:
        assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def pair(**given: Any) -> DemoPair:
    """Two questions that plainly go together, as they should be found, but for what is given."""
    found: dict[str, Any] = {"names": ("sleep", "mood"), "linked": True, "truth": 0.4, "high": 0.45}
    found |= {"standard_error": 0.03, "p_value": 1e-30, "dependent": True, "in_tree": True}
    return DemoPair(**found | given)


APART: dict[str, Any] = {
    "names": ("home", "mood"),
    "linked": False,
    "truth": 0.0,
    "high": 0.01,
    "standard_error": 0.003,
}
APART |= {"p_value": 0.3, "dependent": False, "in_tree": False}


@pytest.mark.parametrize(
    ("changed", "other", "message"),
    [
        ({}, {}, ""),
        ({"dependent": False}, {}, "sleep and mood plainly go together, which was not found"),
        ({"in_tree": False}, {}, "no line of the tree joins them"),
        ({}, {"dependent": True, "p_value": 0.001}, ""),  # one collection of a thousand
        ({}, {"dependent": True, "p_value": 1e-12}, "home and mood were drawn independently"),
        ({"truth": 0.05, "dependent": False, "in_tree": False}, {}, ""),  # too weak to be seen for sure
        ({"dependent": False, "in_tree": False}, {"high": 0.2}, ""),  # too few reports for that
    ],
)
def test_verdicts_are_held_to_what_is_plain(changed: dict[str, Any], other: dict[str, Any], message: str):
    found = judge([pair(**changed), pair(**APART | other)])
    assert message in found[0] if message else not found
    assert len(found) == bool(message)


def test_a_pair_is_plain_beyond_the_noise_of_the_others():
    assert plain([pair(), pair(**APART)]) == [pair()]
    assert plain([pair(standard_error=0.1), pair(**APART)]) == []


def missed_pairs(pairs: int, more_than: int) -> Fraction:
    """Probability that more pairs of intervals than this miss their truth, if both of a pair do or none."""
    missed = range(more_than + 1, pairs + 1)
    return sum((comb(pairs, k) * (1 - LEVEL) ** k * LEVEL ** (pairs - k) for k in missed), Fraction(0))


@pytest.mark.parametrize("intervals", [26, 27, 88, 400])
def test_the_threshold_is_the_exact_binomial_tail(intervals: int):
    pairs, missed = (intervals + 1) // 2, (intervals - fewest_covered(intervals)) // 2
    assert missed_pairs(pairs, missed) <= FALSE_ALARM < missed_pairs(pairs, missed - 1)


def test_few_intervals_may_all_miss():
    assert [fewest_covered(intervals) for intervals in range(5)] == [0] * 5


@pytest.mark.parametrize("n", [1000, 1001, 99_999])
def test_every_respondent_answers_one_example(n: int):
    assert sum(portions(n, EXAMPLES)) == sum(portions(n, EXAMPLES[:-1])) == n


def test_there_is_no_table_without_the_libraries_for_it(monkeypatch: pytest.MonkeyPatch):
    assert examples() == EXAMPLES
    monkeypatch.setattr(asked, "find_spec", lambda name: None if name == "sqlglot" else name)
    assert examples() == EXAMPLES[:-1]


def test_a_folder_is_kept_and_not_used_twice(finished: Finished):
    listed = CliRunner().invoke(cli, ["collection", "list", "--json", "--data", str(finished.data)])
    assert sum(row["reports"] for row in json.loads(listed.stdout)) == 3000
    again = run([*TACIT, *SMALL, "--data", str(finished.data)], finished.scratch)
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


PLACES = {
    "url": r"Dashboard\s+(\S+)/dashboard",
    "token": r"token\s+(tct_\S+)",
    "joint": r"(http\S+/dashboard/collections/\w{64})$",
    "sql": r"(http\S+/dashboard/query\?collection=\w{64})$",
}


def start(folder: Path) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """The demo without --once, once it has said where to look."""
    env = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    command = [*TACIT, "demo", "--n", "3000"]
    # A suite that runs in the background ignores Ctrl-C, and what it starts would as well.
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    finally:
        signal.signal(signal.SIGINT, heard)
    assert process.stdout is not None
    found: dict[str, Any] = {}
    for line in process.stdout:
        for name, pattern in PLACES.items():
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
        with urlopen(Request(f"{found['url']}/api/v1/collections", headers=headers), timeout=PATIENT_SECONDS) as reply:
            assert sum(row["reports"] for row in json.load(reply)["collections"]) == 3000
        for page in ("joint", "sql"):
            with urlopen(
                Request(found[page], headers={"Cookie": f"{COOKIE}={found['token']}"}), timeout=PATIENT_SECONDS
            ) as reply:
                assert reply.url == found[page]
        process.send_signal(how)
        _, errors = process.communicate(timeout=PATIENT_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert errors.split() == ["stopped"]
    assert list(tmp_path.iterdir()) == []


def test_a_killed_demo_leaves_no_collector_running(tmp_path: Path):
    process, found = start(tmp_path)
    process.kill()
    process.communicate(timeout=PATIENT_SECONDS)

    def is_gone() -> bool:
        try:
            urlopen(f"{found['url']}/healthz", timeout=PATIENT_SECONDS).close()
        except OSError:
            return True
        return False

    wait_until(is_gone, "the collector is still there")
