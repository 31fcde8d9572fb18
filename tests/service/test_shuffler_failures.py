"""Shufflers that crash, vanish or are late, and networks that lose and repeat: a shuffle goes on, or ends cleanly."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any

import pytest
from tests.service.shuffling import COINS, Cluster, Crash
from tests.service.waiting import wait_until

from tacit.errors import ProtocolViolation
from tacit.hosting.clock import Clock
from tacit.shuffle.protocol.opening import combine, open_rows
from tacit.shuffle.protocol.resharing import OUTPUT
from tacit.shuffle.protocol.roster import cut_slots
from tacit.shuffle.protocol.sealing import seal_upload
from tacit.shuffle.protocol.shares import as_rows
from tacit.shuffler.driver import ShufflerDriver
from tacit.shuffler.joining import Offer
from tacit.shuffler.letters import ABORT, ERASURE, LEAVES, STATEMENT, Letter
from tacit.shuffler.party_store import PartyStore
from tacit.shuffler.post import Courier, post_letter

WORDS = list(range(100, 108))
CRASHES = [
    Crash("COLLECTING", "closing", False),
    Crash("COLLECTING", "closing"),
    Crash("COLLECTING", "closed", False),
    Crash("COLLECTING", "closed"),
    Crash("FROZEN", "", False),
    Crash("FROZEN"),
    Crash("ROUND", "commit", False),
    Crash("ROUND", "commit"),
    Crash("ROUND", "reveal", False),
    Crash("ROUND", "reveal"),
    Crash("ROUND", "reshare", False),
    Crash("ROUND", "reshare"),
    Crash("SENT", "", False),
    Crash("SENT"),
    Crash("ERASED", "", False),
    Crash("ERASED"),
]
FAST = [Crash("ROUND", "reshare")]


def run_with_crash(folder: Path, mode: str, victim: int, crash: Crash) -> list[int]:
    """A session in which one shuffler kills itself once, and is started again; the words that came out."""
    with Cluster(folder, killable=(victim,)) as cluster:
        cluster.begin(mode)
        cluster.send_words(WORDS)
        process = cluster.processes[victim]
        process.kill()
        process.start(crash)
        cluster.collector.close()
        if crash.state == "ERASED":
            cluster.collector.wait_for_outputs()
            threading.Thread(target=cluster.collector.acknowledge, args=[cluster.collector.opened()]).start()
        process.wait_for_death()
        process.start()
        cluster.collector.wait_for_outputs()
        opened = cluster.collector.opened()
        if crash.state == "ERASED":
            wait_until(lambda: len(cluster.collector.heard(ERASURE)) == 3)
        else:
            cluster.collector.acknowledge(opened)
        cluster.wait_for_state("ERASED")
        assert not cluster.collector.violations
        return sorted(map(int, opened.words))


@pytest.mark.parametrize("crash", FAST, ids=str)
def test_a_killed_shuffler_goes_on_where_it_was(tmp_path: Path, crash: Crash) -> None:
    assert run_with_crash(tmp_path, "osh", 2, crash) == WORDS


@pytest.mark.slow
@pytest.mark.parametrize("crash", CRASHES, ids=str)
def test_a_shuffler_killed_in_any_phase_goes_on_where_it_was(tmp_path: Path, crash: Crash) -> None:
    assert run_with_crash(tmp_path, "osh", 1, crash) == WORDS


@pytest.mark.slow
@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("victim", [1, 2, 3])
def test_a_killed_hop_of_a_chain_goes_on_where_it_was(tmp_path: Path, victim: int, is_stored: bool) -> None:
    assert run_with_crash(tmp_path, "ss", victim, Crash("SENT", "", is_stored)) == WORDS


class Lossy:
    """A network that loses every third letter, and every third reply, so that letters are repeated."""

    def __init__(self) -> None:
        self._tries: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self.bodies: dict[tuple[str, str, str], set[bytes]] = {}

    def __call__(self, address: str, letter: Letter, timeout_seconds: float) -> int:
        place = letter.place
        with self._lock:
            tries = self._tries[str(place), place.receiver] = self._tries[str(place), place.receiver] + 1
            self.bodies.setdefault((str(place), place.receiver, place.session), set()).add(letter.head + letter.body)
        if tries == 1:
            return 0
        status = post_letter(address, letter, timeout_seconds)
        return 0 if tries == 2 else status


def test_lost_and_repeated_letters_change_nothing_and_are_sent_again_byte_for_byte(tmp_path: Path) -> None:
    network = Lossy()
    with Cluster(tmp_path, send={1: network, 2: network, 3: network}) as cluster:
        cluster.begin()
        cluster.send_words(WORDS)
        assert sorted(cluster.finish().words) == WORDS
    assert len(network.bodies) > 30
    assert all(len(bodies) == 1 for bodies in network.bodies.values())


class FakeClock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        # Near the clock of shufflers that run as processes, which refuse sessions that are over by theirs.
        self.time = float(int(time()))

    def clock(self) -> Clock:
        return Clock(seconds=lambda: self.time, now=lambda: self.time)


@pytest.fixture
def late() -> FakeClock:
    return FakeClock()


def silent(address: str, letter: Letter, timeout_seconds: float) -> int:
    """A party whose letters never arrive."""
    del address, letter, timeout_seconds
    return 0


def wake(cluster: Cluster, numbers: Iterator[int] | list[int]) -> None:
    for number in numbers:
        cluster.apps[number].driver.look()


def test_who_is_late_is_named_and_nothing_is_released(tmp_path: Path, late: FakeClock) -> None:
    with Cluster(tmp_path, clock=late.clock(), send={3: silent}) as cluster:
        session = cluster.begin(phase_seconds=60)
        cluster.send_words(WORDS)
        cluster.collector.close()
        waits = lambda n: cluster.store(n).session(session.id)  # noqa: E731
        wait_until(lambda: all(waits(n).progress.get("phase") == "closed" for n in (1, 2)))
        wake(cluster, [1, 2])
        late.time += 59
        wake(cluster, [1, 2])
        assert cluster.state(1)["state"] == "COLLECTING"
        late.time += 2
        wake(cluster, [1, 2])
        cluster.wait_for_state("ABORTED", [1, 2, 3])
        assert cluster.state(1)["blames"] == "shuffler_3"
        assert "late by more than 60 seconds" in cluster.state(1)["reason"]
        wait_until(lambda: {"shuffler_1", "shuffler_2"} <= set(cluster.collector.heard(ERASURE)))
        assert cluster.collector.phases() <= {ABORT, ERASURE}


class Mute:
    """A party whose letters of one phase never arrive; all others do."""

    def __init__(self, phase: str) -> None:
        self._phase = phase

    def __call__(self, address: str, letter: Letter, timeout_seconds: float) -> int:
        return 0 if letter.place.phase == self._phase else post_letter(address, letter, timeout_seconds)


LATE = [
    # Phase, who is late with it, who waits for it. The hiders of the first round are 1 and 2.
    ("slots", 2, (1, 3)),  # before the slots are agreed
    ("statement", 3, (1, 2)),  # agreed, but not by all
    ("commit", 2, (1,)),
    ("reveal", 1, (2,)),
    ("split", 3, (1, 2)),
    ("reshare", 2, (1, 3)),
]


@pytest.mark.parametrize(("phase", "guilty", "waiting"), LATE)
@pytest.mark.slow_cases(
    "statement-3-waiting1", "split-3-waiting4", "slots-2-waiting0", "commit-2-waiting2", "reshare-2-waiting5"
)
def test_who_is_late_in_any_phase_is_named_by_all_who_wait(
    tmp_path: Path, late: FakeClock, phase: str, guilty: int, waiting: tuple[int, ...]
) -> None:
    name = f"shuffler_{guilty}"
    with Cluster(tmp_path, clock=late.clock(), send={guilty: Mute(phase)}) as cluster:
        session = cluster.begin(phase_seconds=60)
        cluster.send_words(WORDS)
        cluster.collector.close()

        def missing(number: int) -> set[tuple[str, str]]:
            record = cluster.store(number).session(session.id)
            return {(kind, sender) for _, kind, sender in cluster.apps[number].driver.steps.missing(record)}

        # The phase too: a letter of an earlier one may be on its way, and others late behind it.
        wait_until(lambda: all(missing(n) == {(phase, name)} for n in waiting), lambda: [missing(n) for n in waiting])
        # Time counts from when a phase was seen first, so that it is looked at before and after.
        wake(cluster, list(waiting))
        late.time += 61
        wake(cluster, list(waiting))
        cluster.wait_for_state("ABORTED", list(waiting))
        for number in waiting:
            ending = cluster.store(number).session(session.id)
            assert ending is not None and not ending.ending.get("had_sent")
            # Whoever looks second may have heard from the first.
            assert ending.ending["blames"] == name and "late by more than 60 seconds" in ending.ending["reason"]
            assert cluster.store(number).slots(session.id) == b""
        assert OUTPUT not in cluster.collector.phases()


@pytest.mark.slow
def test_fewer_outputs_than_hiders_are_worth_nothing_and_shufflers_give_up_on_a_silent_collector(
    tmp_path: Path, late: FakeClock
) -> None:
    with Cluster(tmp_path, clock=late.clock(), send={3: Mute(OUTPUT)}) as cluster:
        session = cluster.begin(phase_seconds=60)
        cluster.send_words(WORDS)
        cluster.collector.close()
        state = lambda n: cluster.state(n)["state"]  # noqa: E731
        wait_until(lambda: [state(n) for n in (1, 2, 3)] == ["SENT"] * 3 and OUTPUT in cluster.collector.phases())
        outputs = {int(name[-1]): each.body for name, each in cluster.collector.heard(OUTPUT).items()}
        assert set(outputs) == {2}
        with pytest.raises(ProtocolViolation, match="missing: shuffler_3"):
            combine(session, outputs, len(WORDS))
        # One vector of two is uniform: it tells nothing, and no row of it opens.
        rows = as_rows(outputs[2], len(WORDS))
        assert not open_rows(session, cluster.collector.store.seal_key, rows)[1].any()
        # After the last letter a shuffler waits three phases for the acknowledgement.
        wake(cluster, [1, 2, 3])
        late.time += 179
        wake(cluster, [1, 2, 3])
        assert [state(n) for n in (1, 2, 3)] == ["SENT"] * 3
        late.time += 2
        wake(cluster, [1, 2])
        cluster.wait_for_state("ABORTED", [1, 2, 3])
        assert cluster.state(1)["blames"] == "collector"
        # Devices must not seal the same report again: the collector may have had all rows.
        assert all(cluster.state(n)["had_sent"] for n in (1, 2, 3))


def test_after_a_restart_what_was_stored_is_sent_byte_for_byte_and_nothing_is_drawn_again(tmp_path: Path) -> None:
    with Cluster(tmp_path, send={3: Mute("split")}) as cluster:
        session = cluster.begin()
        cluster.send_words(WORDS)
        cluster.collector.close()
        waits = lambda store: [each for each in store.waiting() if each.phase == "split"]  # noqa: E731
        wait_until(lambda: len(waits(cluster.store(3))) == 2)
        before = cluster.store(3)
        stored = {each: before.outgoing(each.number) for each in waits(before)}
        # The same folder again, as a process that starts would open it.
        after = PartyStore(tmp_path / "shuffler-3")
        try:
            driver = ShufflerDriver(after, Courier(after, is_idle=True), Offer(any_collector=True))
            driver.look()
            assert waits(after) == list(stored)
            for each, letter in stored.items():
                again = after.outgoing(each.number)
                assert letter is not None and again is not None
                assert (again.head, again.body) == (letter.head, letter.body)
            assert after.session(session.id) == before.session(session.id)
        finally:
            after.close()


@pytest.mark.slow
def test_a_shuffler_that_vanishes_in_the_rounds_ends_the_session(tmp_path: Path, late: FakeClock) -> None:
    with Cluster(tmp_path, clock=late.clock(), killable=(2,)) as cluster:
        session = cluster.begin(phase_seconds=60)
        cluster.send_words(WORDS)
        cluster.processes[2].kill()
        cluster.processes[2].start(Crash("ROUND", "reveal"))
        cluster.collector.close()
        cluster.processes[2].wait_for_death()
        # The third waits for the rows of both, the first for the seed of the second, or for its commitment: that letter
        # was stored before the process died, and may not have left.
        phase = lambda n: cluster.store(n).session(session.id).progress.get("phase")  # noqa: E731
        wait_until(lambda: phase(1) in ("commit", "reveal") and phase(3) == "reshare")

        def is_ended_by_time() -> bool:
            """A commitment that arrives now starts the first one's phase anew, so time passes until both have ended."""
            late.time += 61
            wake(cluster, [1, 3])
            return all(cluster.state(n).get("state") == "ABORTED" for n in (1, 3))

        wait_until(is_ended_by_time)
        assert cluster.state(3)["blames"] in ("shuffler_1", "shuffler_2")
        assert cluster.state(1)["blames"] == "shuffler_2"
        assert OUTPUT not in cluster.collector.phases()
        assert cluster.collector.phases() <= {STATEMENT, LEAVES, ABORT, ERASURE}


def test_a_collector_that_forgets_to_close_does_not_leave_shares_about(tmp_path: Path, late: FakeClock) -> None:
    with Cluster(tmp_path, count=1, clock=late.clock()) as cluster:
        cluster.begin("relay", closes=int(late.time) + 4000, phase_seconds=60)
        cluster.send_words([1, 2])
        late.time += 4059
        wake(cluster, [1])
        assert cluster.state(1)["state"] == "COLLECTING"
        late.time += 2
        wake(cluster, [1])
        assert cluster.state(1)["blames"] == "collector"


@pytest.mark.parametrize("is_aborted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_secret_is_left_in_the_file(tmp_path: Path, is_aborted: bool) -> None:
    with Cluster(tmp_path) as cluster:
        session = cluster.begin()
        uploads = [seal_upload(session, word, COINS) for word in WORDS]
        for upload in uploads:
            cluster.upload(upload)
        store = cluster.store(1)
        held = store.uploads(session.id)
        secrets = [*cut_slots(held.slots), *(share.tobytes() for share in held.shares)]
        assert len(secrets) == 2 * len(WORDS)
        seen = watch_secrets(cluster)
        if is_aborted:
            cluster.collector.close()
            cluster.collector.wait_for_outputs()
            cluster.apps[1].driver.abort(session.id, "for a test")
        else:
            cluster.finish()
        cluster.wait_for_state("ERASED" if not is_aborted else "ABORTED", [1])
        secrets += seen
        assert len(seen) > 5
        files = [path for path in (tmp_path / "shuffler-1").iterdir() if path.name != "party.sqlite-shm"]
        content = b"".join(path.read_bytes() for path in files)
        assert session.id.encode() in content, "the session itself is not forgotten"
        assert [secret for secret in secrets if secret in content] == []


def watch_secrets(cluster: Cluster) -> list[bytes]:
    """Seeds, vectors and rosters that shuffler 1 keeps from now on."""
    driver, seen = cluster.apps[1].driver, list[bytes]()
    honest = driver.steps.make

    def make(record: Any) -> Any:
        change = honest(record)
        for name, content in (change.keep if change else {}).items():
            if name == "machine" and content:
                seed = json.loads(content)["seed"]
                seen.extend([seed.encode()] if seed else [])
            elif content and name in ("roster", "vector 0"):
                seen.append(content[:16])
        return change

    driver.steps.make = make
    return seen
