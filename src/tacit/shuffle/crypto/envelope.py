"""Signed envelopes around what parties send each other.

An envelope names its place (session, attempt, round, phase, from, to) and the SHA-256 of its body. A place is used
once: the same bytes again are a repetition, other bytes are equivocation, and two signed envelopes prove it to all.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> identity = Identity.draw(ReplayCoins(b"one"))
    >>> here = {"session": "00" * 32, "attempt": 1, "round": 0, "phase": "split"}
    >>> place = MessagePlace(**here, sender="shuffler_1", receiver="shuffler_2")
    >>> envelope = enclose(place, b"rows" * 2, rows=2, identity=identity)
    >>> check_envelope(envelope, b"rows" * 2, {"shuffler_1": identity.public})
    >>> check_envelope(envelope, b"rowz" * 2, {"shuffler_1": identity.public})
    Traceback (most recent call last):
    tacit.errors.ProtocolViolation: split of round 0 from shuffler_1: the body is not the one that was signed
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.signing import Identity, check_signature, is_signed

LABEL = "envelope"


@dataclass(frozen=True, kw_only=True)
class MessagePlace:
    """Where a message belongs; one body per place, ever."""

    session: str
    attempt: int
    round: int
    phase: str
    sender: str
    receiver: str

    def __str__(self) -> str:
        return f"{self.phase} of round {self.round} from {self.sender}"


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """What was signed about a body, and the signature."""

    place: MessagePlace
    rows: int
    width: int
    body: str
    """SHA-256 of the body, in hexadecimal."""
    signature: str

    @property
    def document(self) -> dict[str, Any]:
        """What the signature is on."""
        place = self.place
        return {
            "session": place.session,
            "attempt": place.attempt,
            "round": place.round,
            "phase": place.phase,
            "from": place.sender,
            "to": place.receiver,
            "rows": self.rows,
            "width": self.width,
            "body": self.body,
        }

    def to_json(self) -> dict[str, Any]:
        """The envelope as it travels."""
        return {**self.document, "signature": self.signature}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """An envelope as it arrived; fields of the wrong type or name are refused."""
        wanted = {"session": str, "attempt": int, "round": int, "phase": str, "from": str, "to": str,
                  "rows": int, "width": int, "body": str, "signature": str}  # fmt: skip
        # True is an integer to Python; only exact types have one canonical form.
        if set(document) != set(wanted) or any(type(document[name]) is not kind for name, kind in wanted.items()):
            raise ProtocolViolation(f"envelope: the fields must be {', '.join(wanted)}, each of its type")
        place = MessagePlace(
            session=document["session"],
            attempt=document["attempt"],
            round=document["round"],
            phase=document["phase"],
            sender=document["from"],
            receiver=document["to"],
        )
        rest = {name: document[name] for name in ("rows", "width", "body", "signature")}
        return cls(place=place, **rest)


def enclose(place: MessagePlace, body: bytes | memoryview, *, rows: int, identity: Identity) -> Envelope:
    """Sign a body of `rows` rows of equal width for its place."""
    width, rest = divmod(len(body), rows) if rows else (0, len(body))
    if rest:
        raise ProtocolViolation(f"{place}: {len(body)} bytes are not {rows} rows of equal width")
    plain = Envelope(place=place, rows=rows, width=width, body=sha256(body).hexdigest(), signature="")
    signature = identity.sign(LABEL, plain.document)
    return Envelope(place=place, rows=rows, width=width, body=plain.body, signature=signature)


def check_envelope(envelope: Envelope, body: bytes | memoryview, pinned: Mapping[str, bytes]) -> None:
    """Raise ProtocolViolation unless the sender signed exactly this body, of the stated size."""
    check_signature(pinned, envelope.place.sender, LABEL, envelope.document, envelope.signature)
    check_body(envelope, body)


def check_body(envelope: Envelope, body: bytes | memoryview) -> None:
    """Raise ProtocolViolation unless a body is the one of an envelope whose signature was checked before."""
    # The size is looked at before hashing, so that a long body of a stranger costs nothing.
    if len(body) != envelope.rows * envelope.width:
        raise ProtocolViolation(f"{envelope.place}: the body has another size than was signed")
    if sha256(body).hexdigest() != envelope.body:
        raise ProtocolViolation(f"{envelope.place}: the body is not the one that was signed")


def is_repetition(first: Envelope, second: Envelope) -> bool:
    """Whether a second envelope for a place says the same; ProtocolViolation with both as evidence if it does not.

    Both must have been checked. Envelopes for different places are neither: False.
    """
    if first.place != second.place:
        return False
    # The signature itself may differ; what counts is what was signed.
    if first.document != second.document:
        raise ProtocolViolation(
            f"{first.place}: two different bodies were signed for the same place (equivocation); abort, and keep both",
            evidence=(first.to_json(), second.to_json()),
        )
    return True


def is_evidence(first: Envelope, second: Envelope, pinned: Mapping[str, bytes]) -> bool:
    """Whether two envelopes convince somebody who trusts the pinned keys alone that their sender equivocated."""
    # Both signatures are checked again: an accusation must convince without trust in the accuser.
    key = pinned.get(first.place.sender, b"")
    return (
        first.place == second.place
        and first.document != second.document
        and all(is_signed(key, LABEL, each.document, each.signature) for each in (first, second))
    )
