"""Envelopes: only what was signed is believed, and two bodies for one place are evidence."""

from dataclasses import replace

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.envelope import Envelope, MessagePlace, check_envelope, enclose, is_evidence, is_repetition
from tacit.shuffle.crypto.signing import Identity, check_signature, is_signed

ONE, TWO = (Identity.draw(ReplayCoins(name)) for name in (b"one", b"two"))
PINNED = {"shuffler_1": ONE.public, "shuffler_2": TWO.public}
PLACE = MessagePlace(session="ab" * 32, attempt=1, round=2, phase="split", sender="shuffler_1", receiver="shuffler_2")
BODY = bytes(range(112))


def envelope(body: bytes = BODY, place: MessagePlace = PLACE, identity: Identity = ONE) -> Envelope:
    return enclose(place, body, rows=2, identity=identity)


def test_an_envelope_travels_as_json_and_is_believed():
    sent = envelope()
    assert sent.width == 56
    arrived = Envelope.from_json(sent.to_json())
    assert arrived == sent
    check_envelope(arrived, BODY, PINNED)


@pytest.mark.parametrize(
    ("name", "value"),
    [("session", "ac" * 32), ("attempt", 2), ("round", 1), ("phase", "reshare"), ("from", "shuffler_2"),
     ("to", "shuffler_1"), ("rows", 4), ("width", 28), ("body", "00" * 32), ("signature", "00" * 64)],
)  # fmt: skip
def test_no_field_can_be_changed(name: str, value: object):
    changed = Envelope.from_json({**envelope().to_json(), name: value})
    with pytest.raises(ProtocolViolation, match="not by its pinned key"):
        check_envelope(changed, BODY, PINNED)


def test_another_body_and_another_size_are_refused():
    with pytest.raises(ProtocolViolation, match="not the one that was signed"):
        check_envelope(envelope(), BODY[::-1], PINNED)
    with pytest.raises(ProtocolViolation, match="another size"):
        check_envelope(envelope(), BODY[:-1], PINNED)
    with pytest.raises(ProtocolViolation, match="equal width"):
        enclose(PLACE, BODY[:-1], rows=2, identity=ONE)


def test_a_signature_of_somebody_else_is_refused():
    with pytest.raises(ProtocolViolation, match="shuffler_1 is not by its pinned key"):
        check_envelope(envelope(identity=TWO), BODY, PINNED)
    with pytest.raises(ProtocolViolation, match="no pinned key"):
        check_envelope(envelope(), BODY, {"shuffler_2": TWO.public})


@pytest.mark.parametrize("change", [{"rows": "2"}, {"extra": 1}, {"attempt": True}])
def test_malformed_envelopes_are_refused(change: dict[str, object]):
    with pytest.raises(ProtocolViolation, match="fields must be"):
        Envelope.from_json({**envelope().to_json(), **change})


def test_the_same_message_again_is_a_repetition():
    assert is_repetition(envelope(), envelope())
    elsewhere = replace(PLACE, round=3)
    assert not is_repetition(envelope(), envelope(place=elsewhere))


def test_two_bodies_for_one_place_are_evidence_for_everybody():
    first, second = envelope(), envelope(BODY[::-1])
    with pytest.raises(ProtocolViolation, match="equivocation") as caught:
        is_repetition(first, second)
    shown = [Envelope.from_json(item) for item in caught.value.evidence]
    assert is_evidence(shown[0], shown[1], PINNED)
    # Nobody can be framed: both envelopes must carry the signature of the accused, for the same place.
    forged = replace(second, body="11" * 32)
    assert not is_evidence(first, forged, PINNED)
    assert not is_evidence(first, first, PINNED)
    assert not is_evidence(first, envelope(BODY[::-1], replace(PLACE, round=3)), PINNED)


def test_a_signature_is_good_for_one_purpose_and_one_document():
    signature = ONE.sign("ack", {"rows": 3})
    check_signature(PINNED, "shuffler_1", "ack", {"rows": 3}, signature)
    assert not is_signed(ONE.public, "erasure", {"rows": 3}, signature)
    assert not is_signed(ONE.public, "ack", {"rows": 4}, signature)
    assert not is_signed(ONE.public, "ack", {"rows": 3}, "not hexadecimal")
    # One text alone: the same bytes, written in another way, are refused.
    for text in (signature.upper(), f"{signature[:64]} {signature[64:]}", signature + "\n", f" {signature}"):
        assert text == signature or not is_signed(ONE.public, "ack", {"rows": 3}, text)
    with pytest.raises(InvalidSpec, match="32 bytes"):
        Identity(b"short")
