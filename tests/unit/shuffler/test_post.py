"""Letters are delivered until they are acknowledged, byte for byte, and taken whatever way they are cut up."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep

import pytest

from tacit.client.transport import Patience
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ProtocolViolation
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffler.letters import Letter, address_of, letter, place_of
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.post import Courier, PostReply, Reception

MADE = rehearse(ReplayCoins(b"parties"))
ID = MADE.session.id
AT_ONCE = Patience(first_seconds=0, longest_seconds=0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PartyStore]:
    made = PartyStore(tmp_path)
    made.add_session(MADE.signed, 1, "ROUND")
    yield made
    made.close()


def write(store: PartyStore, *receivers: int) -> list[Letter]:
    letters = [
        letter(place_of(MADE.session, "commit", 1, to), bytes([to]) * 32, MADE.identities[1]) for to in receivers
    ]
    store.commit(ID, PhaseChange(state="ROUND", letters=letters))
    return letters


class Network:
    """Replies with given statuses in turn, the last one for ever, and notes what it was given."""

    def __init__(self, **statuses: Sequence[int]) -> None:
        self._statuses, self._lock = {name: list(given) for name, given in statuses.items()}, threading.Lock()
        self.seen: list[tuple[str, str, bytes]] = []

    def __call__(self, address: str, letter: Letter, timeout_seconds: float) -> int:
        with self._lock:
            receiver = letter.place.receiver
            self.seen.append((receiver, address, letter.head + letter.body))
            left = self._statuses.get(receiver, [204])
            return left.pop(0) if len(left) > 1 else left[0]


def wait(holds: Callable[[], bool]) -> None:
    end = monotonic() + 300
    while not holds():
        assert monotonic() < end
        sleep(0.002)


def test_a_letter_is_sent_again_until_it_is_acknowledged(store: PartyStore) -> None:
    network = Network(shuffler_2=[0, 503, 404, 204])
    courier = Courier(store, patience=AT_ONCE, send=network)
    (sent,) = write(store, 2)
    courier.wake()
    wait(lambda: not store.waiting())
    courier.stop()
    assert network.seen == [("shuffler_2", address_of(MADE.session, 2), sent.head + sent.body)] * 4


def test_a_party_that_is_away_holds_up_nobody_else(store: PartyStore) -> None:
    network = Network(shuffler_2=[0])
    courier = Courier(store, patience=Patience(first_seconds=60, longest_seconds=60), send=network)
    write(store, 2, 3)
    courier.wake()
    wait(lambda: [each.receiver for each in store.waiting()] == ["shuffler_2"])
    # Each party has a thread of its own, so that the one who is away may be tried later than the other.
    wait(lambda: "shuffler_2" in [receiver for receiver, _, _ in network.seen])
    courier.wake()
    courier.stop()
    assert [receiver for receiver, _, _ in network.seen].count("shuffler_2") == 1


@pytest.mark.parametrize(("status", "is_told"), [(403, True), (409, False), (410, False)])
def test_a_final_answer_is_not_asked_for_again(store: PartyStore, status: int, is_told: bool) -> None:
    told: list[tuple[str, str]] = []
    network = Network(shuffler_2=[status])
    courier = Courier(store, patience=AT_ONCE, send=network, refused=lambda *who: told.append(who))
    write(store, 2)
    courier.wake()
    wait(lambda: not store.waiting())
    courier.stop()
    assert len(network.seen) == 1
    assert told == ([(ID, "shuffler_2")] if is_told else [])


def test_the_last_letters_of_a_session_that_is_over_are_given_up_some_time(store: PartyStore) -> None:
    network = Network(shuffler_2=[0])
    courier = Courier(store, patience=AT_ONCE, send=network)
    last = letter(place_of(MADE.session, "abort", 1, 2), b"{}", MADE.identities[1])
    store.end(ID, PhaseChange(state="ABORTED", letters=[last]))
    courier.wake()
    wait(lambda: not store.waiting())
    courier.stop()
    assert len(network.seen) > 100


def take(store: PartyStore, sent: bytes, size: int = 1 << 20, **options: object) -> tuple[PostReply, list[str]]:
    told: list[str] = []

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(sent), size):
            yield sent[start : start + size]

    def violated(session: str, party: str, error: ProtocolViolation) -> None:
        told.append(f"{party} {len(error.evidence)}")

    reception = Reception(store, told.append, violated, **options)  # type: ignore[arg-type]
    return asyncio.run(reception.take(ID, chunks())), told


def from_two(body: bytes = b"x" * 32, phase: str = "commit") -> bytes:
    made = letter(place_of(MADE.session, phase, 2, 1), body, MADE.identities[2])
    return made.head + made.body


@pytest.mark.parametrize("size", [1, 3, 100, 1 << 20])
def test_a_letter_may_arrive_in_any_pieces(store: PartyStore, size: int) -> None:
    assert take(store, from_two(), size) == (PostReply(204), [ID])
    assert take(store, from_two(), size) == (PostReply(204), [])
    assert store.body(place_of(MADE.session, "commit", 2, 1)) == b"x" * 32


def test_a_contradiction_is_told_with_its_evidence(store: PartyStore) -> None:
    take(store, from_two())
    reply, told = take(store, from_two(b"y" * 32))
    assert (reply.status, told) == (409, ["shuffler_2 2"])


def test_a_body_is_not_read_before_its_head_was_checked(store: PartyStore) -> None:
    read = 0

    async def endless(start: bytes) -> AsyncIterator[bytes]:
        nonlocal read
        yield start
        while True:
            read += 1
            yield bytes(1000)

    async def status(start: bytes) -> int:
        reception = Reception(store, lambda _: None, lambda *_: None, most_bytes=31)
        return (await reception.take(ID, endless(start))).status

    made = letter(place_of(MADE.session, "commit", 2, 1), b"x" * 32, MADE.identities[2])
    forged = letter(place_of(MADE.session, "commit", 2, 1), b"x" * 32, MADE.identities[3])
    # The first is larger than this party takes, whatever the session allows.
    for start in (made.head, forged.head, (1 << 20).to_bytes(4, "big")):
        assert asyncio.run(status(start)) in (400, 403)
    assert read == 0


def test_what_arrives_after_the_end_is_answered_but_not_kept(store: PartyStore) -> None:
    store.end(ID, PhaseChange(state="ABORTED"))
    assert take(store, from_two()) == (PostReply(410, "this session is over"), [])
    assert store.arrived(ID) == set()
