"""The demo as it is run: a collector of its own, the crowd over HTTP, and answers that are checked."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import serving
from tests.service.waiting import PATIENT_SECONDS, wait_until

import tacit.demo.examples as asked
from tacit.cli import main
from tacit.collector.server import make_app
from tacit.dashboard import COOKIE, routes
from tacit.demo import command, joint, send, table
from tacit.demo.check import FALSE_ALARM, LEVEL, fewest_covered
from tacit.demo.crowd import Crowd, portions
from tacit.demo.examples import EXAMPLES, examples
from tacit.demo.joint import DemoPair, judge, plain
from tacit.hosting.limits import Limits

PYTHON = [sys.executable, "-P"]
TACIT = [*PYTHON, "-m", "tacit.cli"]
ONE_EXAMPLE = """
import sys
import tacit.demo.examples as asked
from tacit.cli import main

asked.EXAMPLES = asked.EXAMPLES[:1]
sys.argv = ["tacit", *sys.argv[1:]]
main()
"""
BRIEFLY = [*PYTHON, "-c", ONE_EXAMPLE, "demo", "--n", "3000"]
"""The demo with a small crowd and its first example alone: for tests of how it starts and ends."""
PLACES = {
    "url": r"Dashboard\s+(\S+)/dashboard",
    "token": r"token\s+(tct_\S+)",
    "joint": r"(http\S+/dashboard/collections/\w{64})$",
    "sql": r"(http\S+/dashboard/query\?collection=\w{64})$",
}


class Demo:
    """A demo without --once, in a process of its own; temporary files go to a folder."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        env = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
        # A suite that runs in the background ignores Ctrl-C, and what it starts would as well.
        heard = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self.process = subprocess.Popen(
                [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
            )
        finally:
            signal.signal(signal.SIGINT, heard)
        self.told, self.places = "", dict[str, str]()
        self._listen()
        self.line = json.loads(self.process.stdout.readline())  # pyright: ignore[reportOptionalMemberAccess]

    def _listen(self) -> None:
        """Until it has said where to look and how to stop it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.told += line
            found = ((name, re.search(pattern, line)) for name, pattern in PLACES.items())
            self.places |= {name: match[1] for name, match in found if match}
            if "Ctrl-C" in line:
                return
        raise AssertionError(self.told)

    def read(self, url: str, **headers: str) -> tuple[str, bytes]:
        """The address at which a page was found, and the page."""
        with urlopen(Request(url, headers=headers), timeout=PATIENT_SECONDS) as reply:
            return reply.url, reply.read()

    def stop(self, how: signal.Signals) -> tuple[str, str]:
        """What is still said after a signal."""
        self.process.send_signal(how)
        return self.process.communicate(timeout=PATIENT_SECONDS)


@dataclass(frozen=True)
class Finished:
    """A whole demo that was run, looked at and stopped once, for several tests."""

    line: dict[str, Any]
    told: str
    after: tuple[str, str]
    returncode: int
    collections: list[dict[str, Any]]
    asked_for: list[str]
    """Addresses of pages, and where each was found."""
    found: list[str]
    data: Path
    scratch: Path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    data, scratch = tmp_path_factory.mktemp("kept") / "data", tmp_path_factory.mktemp("scratch")
    demo = Demo(scratch, [*TACIT, "demo", "--n", "3000", "--data", str(data)])
    try:
        token, pages = demo.places["token"], [demo.places["joint"], demo.places["sql"]]
        api = demo.read(f"{demo.places['url']}/api/v1/collections", Authorization=f"Bearer {token}")[1]
        found = [demo.read(page, Cookie=f"{COOKIE}={token}")[0] for page in pages]
        after = demo.stop(signal.SIGINT)
    finally:
        demo.process.kill()
        demo.process.wait()
    collections = json.loads(api)["collections"]
    return Finished(demo.line, demo.told, after, demo.process.returncode, collections, pages, found, data, scratch)


def test_answers_are_checked_and_shown(finished: Finished):
    line = finished.line
    assert list(line) == ["reports", "collections", "interval_coverage", "reports_per_second", "joint", "sql"]
    assert line["reports"] == 3000
    assert line["collections"] == len(EXAMPLES) == 5
    assert fewest_covered(88) / 88 <= line["interval_coverage"] <= 1
    assert line["reports_per_second"] > 0
    assert line["joint"]["truly_dependent"] == [["home", "commute"], ["sleep", "mood"]]
    assert len(line["joint"]["tree"]) == 3
    assert {row["sql"] for row in line["sql"]} == {query.sql for query in EXAMPLES[-1].queries}
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in line["sql"])
    assert "Languages at home" in finished.told
    assert re.search(r"^[0-6] of 6 pairs go together, with 95 % confidence[:;] ", finished.told, re.MULTILINE)
    assert re.search(r"^basic: count +\d+ +\d+ ± \d+ +(yes|no)$", finished.told, re.MULTILINE)


def test_it_stays_up_until_ctrl_c_and_leaves_nothing(finished: Finished):
    assert sum(row["reports"] for row in finished.collections) == 3000
    assert finished.found == finished.asked_for
    assert finished.returncode == 0
    assert finished.after[0] == "" and finished.after[1].split() == ["stopped"]
    assert list(finished.scratch.iterdir()) == []


@pytest.mark.slow
def test_sigterm_ends_it_as_ctrl_c_does(tmp_path: Path):
    demo = Demo(tmp_path, BRIEFLY)
    try:
        assert demo.stop(signal.SIGTERM)[1].split() == ["stopped"]
    finally:
        demo.process.kill()
        demo.process.wait()
    assert demo.process.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_killed_demo_leaves_no_collector_running(tmp_path: Path):
    demo = Demo(tmp_path, BRIEFLY)
    demo.process.kill()
    demo.process.communicate(timeout=PATIENT_SECONDS)

    def is_gone() -> bool:
        try:
            demo.read(f"{demo.places['url']}/healthz")
        except OSError:
            return True
        return False

    wait_until(is_gone, "the collector is still there")


Said = tuple[int, str, str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Runs the command line in this process; gives its exit code and what it wrote."""

    def run_it(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["tacit", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return run_it


@pytest.fixture
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector in this process instead of one that is started: real, over HTTP, and there at once."""

    @contextmanager
    def collector(data: Path | None, port: int) -> Iterator[tuple[str, str]]:
        with serving(make_app(MemoryStore(), Limits(requests_per_second=0), pages=routes)) as client:
            yield str(client.http.base_url), client.token

    monkeypatch.setattr(command, "_collector", collector)


def far_from_the_truth(patch: pytest.MonkeyPatch) -> None:
    truths, true_table, cells = Crowd.truths.fget, joint._true_table, table._cells
    assert truths is not None
    far = {"low": 2e4, "high": 2e4, "estimate": 2e4, "standard_error": 9}
    others = property(lambda crowd: [truth[::-1] if len(truth) > 1 else truth + 9 for truth in truths(crowd)])
    patch.setattr(Crowd, "truths", others)
    patch.setattr(joint, "_true_table", lambda *given: true_table(*given)[::-1])
    patch.setattr(table, "_cells", lambda found: {name: cell | far for name, cell in cells(found).items()})


def lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(send, "_jobs", lambda crowd: list(crowd.parts(100))[1:])


def damaged(patch: pytest.MonkeyPatch) -> None:
    make = send.make_batch
    patch.setattr(send, "make_batch", lambda *given: (make(*given)[0][:-1], make(*given)[1]))


def mixed_up(patch: pytest.MonkeyPatch) -> None:
    make = send.make_batch
    patch.setattr(send, "make_batch", lambda crowd, coins: make(replace(crowd, values=crowd.values[::-1]), coins))


BREAKAGES = {
    "estimates are far from the truth": (
        far_from_the_truth,
        [
            "'English' of question 'language' is",
            "'mean' of question 'hours' is",
            "'never, over 45 min' of question 'home and commute' is",
            "'basic: count' of question 'SELECT plan, COUNT(*) FROM",
            "standard errors from the truth",
        ],
    ),
    "batches are lost": (
        lost,
        ["6000 reports sent, 5900 stored, 5900 counted", "'SELECT plan, COUNT(*) FROM members WHERE back_pain = TRUE "
         "GROUP BY plan' was not answered over all rows and groups"],
    ),
    "a batch is damaged": (damaged, ["ReportRejected"]),
    "rows have the reports of others": (mixed_up, ["'false: avg' of question 'SELECT back_pain, AVG(visits)"]),
}  # fmt: skip


@pytest.mark.usefixtures("at_hand")
def test_once_ends_by_itself(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Said]):
    monkeypatch.setattr(asked, "EXAMPLES", EXAMPLES[:1])
    code, output, errors = run("demo", "--once", "--json", "--n", "3000")
    assert code == 0 and "Ctrl-C" not in errors
    assert len(output.splitlines()) == 1 and json.loads(output)["reports"] == 3000


@pytest.mark.slow_cases("estimates are far from the truth", "rows have the reports of others", "batches are lost")
@pytest.mark.usefixtures("at_hand")
@pytest.mark.parametrize("name", BREAKAGES)
def test_what_is_wrong_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Said]):
    change, messages = BREAKAGES[name]
    change(monkeypatch)
    code, _, errors = run("demo", "--once", "--json", "--n", "20000")
    assert code != 0
    for message in messages:
        assert message in errors


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


@pytest.mark.slow
def test_a_folder_is_kept_and_not_used_twice(finished: Finished, run: Callable[..., Said]):
    code, listed, _ = run("collection", "list", "--json", "--data", str(finished.data))
    assert code == 0 and sum(row["reports"] for row in json.loads(listed)) == 3000
    code, _, errors = run("demo", "--once", "--n", "3000", "--data", str(finished.data))
    assert code == 2 and "earlier demo" in errors


def test_a_taken_port_is_refused(run: Callable[..., Said]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, errors = run("demo", "--once", "--n", "3000", "--port", str(taken.getsockname()[1]))
    assert code == 2
    assert errors.startswith("tacit: StorageUnavailable: demo: port")
    assert len(errors.splitlines()) == 1


def test_too_few_respondents_are_refused(run: Callable[..., Said]):
    assert run("demo", "--n", "999")[0] == 2
