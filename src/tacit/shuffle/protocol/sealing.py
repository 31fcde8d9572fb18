"""What a respondent's client sends: its word, sealed and split so that no single party can read it (message M1).

    osh        seal the word for the collector, split the sealed bytes by exclusive or, seal each share for its shuffler
    osh-z      the same with a random word, and what is missing to the true one as a sum modulo 2^64 beside it
    peos-dgk   split the word itself modulo 2^64; the last share is encrypted under the collector's DGK key
    ss, relay  seal the word for the collector, then for the last shuffler, ... , then for the first: an onion

Every upload of a session has the same size. It needs the standard library and the sealing of `crypto` alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.hpke import OVERHEAD, HpkeKey, seal
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.session import OSH_Z, PEOS, RESHARING, ShuffleSession
from tacit.shuffle.protocol.words import WORD_BYTES

SLOT_BYTES = 16
SEALED_WORD_BYTES = WORD_BYTES + OVERHEAD
CIPHERTEXT_BYTES = 384
"""A DGK ciphertext of 3072 bits."""
_LABEL = b"tacit shuffle\x00"

Encrypt = Callable[[int, Coins], bytes]
"""Encrypts a 64-bit share under the collector's DGK key."""


def word_info(session: ShuffleSession) -> bytes:
    """What binds a sealed word to its session."""
    return _LABEL + b"word\x00" + session.id_bytes


def share_info(session: ShuffleSession, party: int, slot: bytes) -> bytes:
    """What binds a share to its session, shuffler and slot."""
    return _LABEL + b"share\x00" + session.id_bytes + bytes([party]) + slot


def hop_info(session: ShuffleSession, party: int) -> bytes:
    """What binds a layer of an onion to its session and hop."""
    return _LABEL + b"hop\x00" + session.id_bytes + bytes([party])


def seal_key(session: ShuffleSession, party: int) -> bytes:
    """The public key that one seals with for a party."""
    return bytes.fromhex(session.parties[party].seal_key)


def seal_word(session: ShuffleSession, word: int, coins: Coins) -> bytes:
    """A word that only the collector can read: 56 bytes."""
    return seal(seal_key(session, 0), word.to_bytes(WORD_BYTES, "little"), info=word_info(session), coins=coins)


def seal_onion(session: ShuffleSession, word: int, coins: Coins, *, first: int = 1) -> bytes:
    """A word in layers for shufflers `first` to r and the collector: 8 + 48 bytes per layer."""
    # From the inside out: the last shuffler's layer is the first around the sealed word.
    onion = seal_word(session, word, coins)
    for party in range(session.shuffler_count, first - 1, -1):
        onion = seal(seal_key(session, party), onion, info=hop_info(session, party), coins=coins)
    return onion


def onion_bytes(session: ShuffleSession, party: int) -> int:
    """The size of an onion when it arrives at a shuffler."""
    return SEALED_WORD_BYTES + OVERHEAD * (session.shuffler_count - party + 1)


def part_bytes(session: ShuffleSession) -> list[int]:
    """The size of the part for each shuffler."""
    if session.mode not in RESHARING:
        return [onion_bytes(session, 1)]
    sizes = [LAYOUTS[session.mode].width + OVERHEAD] * session.shuffler_count
    return [*sizes[:-1], CIPHERTEXT_BYTES + OVERHEAD] if session.mode == PEOS else sizes


@dataclass(frozen=True)
class SlotReceipt:
    """What a respondent keeps: with the root of all slots in the transcript it proves that the report took part."""

    session: str
    slot: str

    def to_json(self) -> dict[str, Any]:
        """The receipt as it is stored."""
        return {"session": self.session, "slot": self.slot}


@dataclass(frozen=True)
class ShuffleUpload:
    """One report on its way: a random slot, and a sealed part for each shuffler (one part in a chain)."""

    session: str
    slot: bytes
    parts: tuple[bytes, ...]

    @property
    def receipt(self) -> SlotReceipt:
        """What to keep."""
        return SlotReceipt(self.session, self.slot.hex())

    def to_bytes(self) -> bytes:
        """Slot and all parts, end to end, for one request through a relay."""
        return self.slot + b"".join(self.parts)

    @classmethod
    def from_bytes(cls, session: ShuffleSession, body: bytes) -> "ShuffleUpload":
        """An upload as it arrived; another size is refused."""
        sizes = part_bytes(session)
        if len(body) != SLOT_BYTES + sum(sizes):
            raise ProtocolViolation(f"upload: {len(body)} bytes, must be {SLOT_BYTES + sum(sizes)} in this session")
        parts: list[bytes] = []
        place = SLOT_BYTES
        for size in sizes:
            parts.append(body[place : place + size])
            place += size
        return cls(session.id, body[:SLOT_BYTES], tuple(parts))


def seal_upload(session: ShuffleSession, word: int, coins: Coins, *, encrypt: Encrypt | None = None) -> ShuffleUpload:
    """The upload of a word. The session must have been verified; coins are drawn in the order of the text.

    A retry after an aborted session sends a word of the *same* report, with fresh coins: a new report for the same
    answer would let the collector average the noise away.
    """
    # Random, not derived from the report or the person: it is all that shufflers know an upload by.
    slot = coins.words(SLOT_BYTES // 8)
    if session.mode not in RESHARING:
        return ShuffleUpload(session.id, slot, (seal_onion(session, word, coins),))
    shares = _shares(session, word, coins)
    if session.mode == PEOS:
        if encrypt is None:
            raise InvalidSpec("peos-dgk: give `encrypt`, which encrypts the last share under the collector's DGK key")
        shares[-1] = encrypt(int.from_bytes(shares[-1], "little"), coins)
    sealed = [
        seal(seal_key(session, party), share, info=share_info(session, party, slot), coins=coins)
        for party, share in enumerate(shares, start=1)
    ]
    return ShuffleUpload(session.id, slot, tuple(sealed))


def _shares(session: ShuffleSession, word: int, coins: Coins) -> list[bytes]:
    if session.mode == PEOS:
        row = word.to_bytes(WORD_BYTES, "little")
    elif session.mode == OSH_Z:
        # A uniform word inside, so that it says nothing about the true one without the sum beside it.
        random = coins.word()
        row = seal_word(session, random, coins) + ((word - random) % (1 << 64)).to_bytes(WORD_BYTES, "little")
    else:
        row = seal_word(session, word, coins)
    return LAYOUTS[session.mode].split(row, session.shuffler_count, coins)


def open_part(session: ShuffleSession, party: int, key: HpkeKey, slot: bytes, part: bytes) -> bytes:
    """The share that a shuffler finds in its part; OpenFailed if it is not for it, this slot and this session."""
    return key.open(part, info=share_info(session, party, slot))
