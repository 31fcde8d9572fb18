"""Sealing a noisy report for the shufflers of a session that was verified, as what the ledger keeps of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tacit.device.base import Device
from tacit.device.numbers.coins import Coins
from tacit.shuffle.protocol.sealing import Encrypt, ShuffleUpload, seal_upload
from tacit.shuffle.protocol.session import ShuffleSession
from tacit.shuffle.protocol.words import encode_word


@dataclass(frozen=True)
class SealedPart:
    """What one shuffler is sent: its address, the key for requests through a relay, and the slot with its part."""

    url: str
    key: str
    body: str


@dataclass(frozen=True)
class SealedReport:
    """A report that was sealed for one session. The bytes never change: every attempt to send it sends the same."""

    session: str
    slot: str
    relay: str
    """The address of the relay that parts go through; empty if they go straight to the shufflers."""
    parts: tuple[SealedPart, ...]
    """In a chain one, for the first shuffler; else one for each."""
    shufflers: tuple[str, ...]
    """The addresses of all shufflers of the session."""
    enough: int
    """So many shufflers must say that the session was aborted before the report is sealed for another one."""
    proof: dict[str, Any] | None = None
    """What a shuffler showed about the slot, kept because shufflers erase theirs."""
    keys: tuple[str, ...] = ()
    """The keys of all shufflers, for questions through the relay."""
    took_part: bool = False
    """Whether `Respondent.check` has seen that it took part, so that it is never sealed again."""

    def to_json(self) -> dict[str, Any]:
        """The form that the ledger keeps."""
        lists = {"shufflers": list(self.shufflers), "keys": list(self.keys)}
        return {**vars(self), "parts": [dict(vars(part)) for part in self.parts], **lists}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """A report as the ledger kept it."""
        parts = tuple(SealedPart(**part) for part in kept["parts"])
        lists = {"shufflers": tuple(kept["shufflers"]), "keys": tuple(kept.get("keys", ()))}
        fields: dict[str, Any] = {**kept, "parts": parts, **lists}
        return cls(**fields)


def seal_report(session: ShuffleSession, mechanism: Device, report: bytes, coins: Coins) -> SealedReport:
    """Draw a word that decodes to the report, and seal it; the session must have been verified."""
    return seal_word_for(session, encode_word(mechanism, report, coins), coins)


def seal_word_for(session: ShuffleSession, word: int, coins: Coins) -> SealedReport:
    """Seal a word for a session; collectors do that for their spot checks."""
    upload = seal_upload(session, word, coins, encrypt=_encryption(session))
    # Whatever is needed to send it again is kept beside it, so that a retry asks nobody for a session.
    relay = "" if session.relay is None else session.relay["url"]
    # If t shufflers of r have to be honest, so many reach at least one who is.
    enough = session.shuffler_count - session.honest + 1
    urls, keys = zip(*((party.url, party.seal_key) for party in session.shufflers), strict=True)
    return SealedReport(upload.session, upload.slot.hex(), relay, _parts(session, upload), urls, enough, keys=keys)


def _parts(session: ShuffleSession, upload: ShuffleUpload) -> tuple[SealedPart, ...]:
    pairs = zip(session.shufflers, upload.parts, strict=False)
    return tuple(SealedPart(party.url, party.seal_key, (upload.slot + part).hex()) for party, part in pairs)


def _encryption(session: ShuffleSession) -> Encrypt | None:
    """How the last share is encrypted where the mode asks for that."""
    if session.dgk is None:
        return None
    from tacit.shuffle.crypto.dgk import public_key_of

    return public_key_of(session.dgk).encrypt
