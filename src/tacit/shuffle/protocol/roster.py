"""Which uploads take part (message M2): the slots that all shufflers have, sorted, and one root that all of them sign.

If fewer respondents are left than the certificate needs, the session ends here, before anything reaches the collector.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arrays import I64, U64, Mask
from tacit.errors import ProtocolViolation, SessionAborted
from tacit.kernels import sha256_rows
from tacit.shuffle.crypto.merkle import LEAF, MerkleTree
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.leaves import LABEL
from tacit.shuffle.protocol.sealing import SLOT_BYTES
from tacit.shuffle.protocol.session import RESHARING, ShuffleSession
from tacit.shuffle.protocol.shares import as_rows


@dataclass(frozen=True)
class Roster:
    """Slots in ascending order, each once, end to end."""

    content: bytes

    @classmethod
    def of(cls, slots: Iterable[bytes]) -> "Roster":
        """The roster of any collection of slots."""
        return cls(b"".join(sorted(set(slots))))

    @property
    def slots(self) -> list[bytes]:
        """The slots, one by one."""
        return cut_slots(self.content)

    @property
    def n(self) -> int:
        """How many respondents take part, spot checks included."""
        return len(self.content) // SLOT_BYTES

    @property
    def root(self) -> str:
        """The Merkle root of the slots, in hexadecimal."""
        return self._tree.root.hex()

    @cached_property
    def _tree(self) -> MerkleTree:
        return MerkleTree(self.leaves, hash_many)

    @cached_property
    def leaves(self) -> bytes:
        """The hashes of all slots, concatenated, as they are published."""
        return hash_many(LEAF, self.content, SLOT_BYTES)

    def _slot(self, index: int) -> bytes:
        return self.content[SLOT_BYTES * index : SLOT_BYTES * (index + 1)]

    def statement(self, session: ShuffleSession, attempt: int) -> dict[str, Any]:
        """What every shuffler signs."""
        return {"session": session.id, "attempt": attempt, "root": self.root, "n": self.n}

    def sign(self, session: ShuffleSession, attempt: int, identity: Identity) -> str:
        """The signature of a shuffler on the statement."""
        return identity.sign(LABEL, self.statement(session, attempt))

    def proof(self, slot: bytes) -> dict[str, Any]:
        """What shows a respondent that its slot took part."""
        index = bisect_left(range(self.n), slot, key=self._slot)
        if self._slot(index) != slot:
            raise ProtocolViolation("roster: this slot did not take part")
        path = [node.hex() for node in self._tree.proof(index)]
        return {"slot": slot.hex(), "index": index, "path": path}


def hash_many(first: int, rows: bytes, width: int) -> bytes:
    """What `merkle.hash_rows` does, many rows at a time."""
    return sha256_rows(first, as_rows(rows, len(rows) // width)).tobytes()


def cut_slots(content: bytes) -> list[bytes]:
    """Slots that were end to end, one by one."""
    return [content[i : i + SLOT_BYTES] for i in range(0, len(content), SLOT_BYTES)]


def order_of_slots(content: bytes) -> I64:
    """The order in which slots are sorted."""
    high, low = _halves(content)
    order = np.argsort(high)
    ordered = high[order]
    # Slots are random: that two begin alike is rare, and then all of them are compared whole.
    return np.lexsort((low, high)) if (ordered[1:] == ordered[:-1]).any() else order


def _halves(content: bytes) -> tuple[U64, U64]:
    """The two words of every slot, which sort like the slot itself."""
    words = np.frombuffer(content, ">u8").astype(np.uint64)
    return words[::2], words[1::2]


def is_ascending(content: bytes) -> bool:
    """Whether slots are sorted, each once."""
    high, low = _halves(content)
    rises: Mask = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
    return bool(rises.all())


def agree(session: ShuffleSession, held: Sequence[bytes]) -> Roster:
    """The slots that every shuffler that takes uploads holds; SessionAborted if they are too few or too many.

    `held` has the slots of each of them, end to end.
    """
    # In a chain only the first hop sees uploads.
    takers = session.shuffler_count if session.mode in RESHARING else 1
    if len(held) != takers:
        raise SessionAborted(f"roster: {len(held)} of {takers} shufflers have sent their slots")
    roster = _common(held)
    # Spot checks are the collector's own: nobody hides among them.
    respondents = roster.n - session.spot_checks
    if respondents < session.n_min:
        raise SessionAborted(
            f"roster: {max(0, respondents)} respondents, the certificate needs {session.n_min}; nothing was sent to "
            "the collector, and the reports can be sent again in another session"
        )
    if roster.n > session.n_max:
        raise SessionAborted(f"roster: {roster.n} uploads, the session takes at most {session.n_max}")
    return roster


def _common(held: Sequence[bytes]) -> Roster:
    """The slots that all shufflers have."""
    first, *others = held
    # Nearly always all hold the same slots and sent them in order; then none has to be looked at by itself.
    if all(slots == first for slots in others) and is_ascending(first):
        return Roster(first)
    return Roster.of(set(cut_slots(first)).intersection(*map(cut_slots, others)))
