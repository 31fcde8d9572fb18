"""Who may write what to whom, and how large it may be."""

from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ProtocolViolation
from tacit.shuffle.protocol.parties import party_names
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffle.protocol.transcript import expected_places
from tacit.shuffler.letters import (
    ABORT,
    ATTEMPT,
    RosterStatement,
    address_of,
    check_route,
    largest_body,
    letter,
    place_of,
    read_head,
)

MADE = rehearse(ReplayCoins(b"parties"), n_max=100, fakes=10)
SESSION = MADE.session


@pytest.mark.parametrize("mode", ["osh", "ss"])
def test_every_message_of_a_session_is_allowed_and_fits(mode: str) -> None:
    session = rehearse(ReplayCoins(b"parties"), mode=mode, n_max=100, fakes=10).session
    places = expected_places(session, ATTEMPT)
    names = party_names(3)
    for place in places:
        check_route(session, names.index(place.receiver), place)
    widths = [largest_body(session, place) for place in places if place.phase in ("reshare", "hop")]
    assert set(widths) == {(100 + session.fake_rows) * (56 if mode == "osh" else 200)}


@pytest.mark.parametrize("mode", ["osh", "ss"])
def test_rows_and_seeds_have_the_places_of_the_protocol_and_no_others(mode: str) -> None:
    session = rehearse(ReplayCoins(b"parties"), mode=mode).session
    phases = ("commit", "reveal", "split", "reshare", "output", "hop")
    allowed = set()
    for phase, number, sender, receiver in product(phases, range(-1, 5), range(4), range(4)):
        place = place_of(session, phase, sender, receiver, number)
        with suppress(ProtocolViolation):
            check_route(session, receiver, place)
            allowed.add(place)
    assert allowed == set(expected_places(session, ATTEMPT))


@pytest.mark.parametrize(
    ("phase", "sender", "receiver"),
    [
        ("close", 1, 2),  # A shuffler does not close.
        ("ack", 2, 1),
        ("output", 2, 1),  # Rows in the clear are for the collector alone.
        ("slots", 1, 0),  # The collector is not shown slots.
        ("reveal", 1, 0),  # Nor seeds.
        ("split", 0, 1),
        ("nonsense", 1, 2),
    ],
)
def test_nobody_writes_what_is_not_theirs_to_write(phase: str, sender: int, receiver: int) -> None:
    with pytest.raises(ProtocolViolation, match="does not send that"):
        check_route(SESSION, receiver, place_of(SESSION, phase, sender, receiver))


def test_anybody_may_abort_but_only_in_their_own_name() -> None:
    for sender, receiver in ((0, 1), (1, 0), (1, 2)):
        check_route(SESSION, receiver, place_of(SESSION, ABORT, sender, receiver))
    place = place_of(SESSION, ABORT, 2, 1)
    for wrong in ({"sender": "shuffler_1"}, {"sender": "shuffler_4"}, {"attempt": 2}, {"session": "00" * 32}):
        with pytest.raises(ProtocolViolation, match="it is not for"):
            check_route(SESSION, 1, replace(place, **wrong))


def test_a_head_holds_the_envelope() -> None:
    made = letter(place_of(SESSION, "split", 3, 1), b"rows" * 2, MADE.identities[3], rows=2)
    size = int.from_bytes(made.head[:4], "big")
    assert size == len(made.head) - 4
    assert read_head(made.head[4:]) == made.envelope
    for wrong in (b"", b"[]", b"{", b'{"session":1}', b"[" * 100_000):
        with pytest.raises(ProtocolViolation):
            read_head(wrong)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"n":1,"root":"","signature":"","slots":{}}', b"[1]"])
def test_a_statement_has_its_fields(body: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        RosterStatement.read(letter(place_of(SESSION, "statement", 2, 1), body, MADE.identities[2]))


def test_letters_to_the_collector_go_to_its_collection() -> None:
    assert address_of(SESSION, 0) == f"https://collector.example/c/{SESSION.collection}/session/messages"
    assert address_of(SESSION, 2) == f"https://shuffler-2.example/s/{SESSION.id}/messages"
