"""Which uploads take part (message M2): the slots that all shufflers have, sorted, and one root that all of them sign.

If fewer respondents are left than the certificate needs, the session ends here, before anything reaches the collector.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import lt
from typing import Any

from tacit.errors import ProtocolViolation, SessionAborted
from tacit.shuffle.crypto.merkle import HASH_BYTES, MerkleTree, is_included, leaf_hash
from tacit.shuffle.crypto.signing import Identity, check_signature
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.session import RESHARING, ShuffleSession

LABEL = "roster"


@dataclass(frozen=True)
class Roster:
    """Slots in ascending order, each once."""

    slots: tuple[bytes, ...]

    @classmethod
    def of(cls, slots: Iterable[bytes]) -> "Roster":
        """The roster of any collection of slots."""
        # Slots come in order and once each from databases and letters, so that nearly always both are only checked.
        ordered = sorted(slots)
        is_strict = all(map(lt, ordered, islice(ordered, 1, None)))
        return cls(tuple(ordered) if is_strict else tuple(dict.fromkeys(ordered)))

    @property
    def n(self) -> int:
        """How many respondents take part, spot checks included."""
        return len(self.slots)

    @cached_property
    def root(self) -> str:
        """The Merkle root of the slots, in hexadecimal."""
        return self._tree.root.hex()

    @cached_property
    def _tree(self) -> MerkleTree:
        return MerkleTree(self.slots)

    @property
    def leaves(self) -> bytes:
        """The hashes of all slots, end to end: what is published of them."""
        return b"".join(self._tree.hashes)

    def statement(self, session: ShuffleSession, attempt: int) -> dict[str, Any]:
        """What every shuffler signs."""
        return {"session": session.id, "attempt": attempt, "root": self.root, "n": self.n}

    def sign(self, session: ShuffleSession, attempt: int, identity: Identity) -> str:
        """The signature of a shuffler on the statement."""
        return identity.sign(LABEL, self.statement(session, attempt))

    def proof(self, slot: bytes) -> dict[str, Any]:
        """What shows a respondent that its slot took part."""
        index = bisect_left(self.slots, slot)
        if self.slots[index : index + 1] != (slot,):
            raise ProtocolViolation("roster: this slot did not take part")
        path = [node.hex() for node in self._tree.proof(index)]
        return {"slot": slot.hex(), "index": index, "path": path}


class SlotLeaves:
    """The hashes of all slots that took part, in the order of the roster: with them a receipt can be checked for ever.

    Slots are 128 random bits, so that a hash shows nothing of its slot; who knows a slot can look for its hash.
    """

    def __init__(self, content: bytes) -> None:
        """Take hashes end to end."""
        cut = range(0, len(content), HASH_BYTES)
        self._tree = MerkleTree(hashes=[content[i : i + HASH_BYTES] for i in cut])

    def check(self, root: str, n: int) -> None:
        """Raise ProtocolViolation unless these are n different slots under the root that was signed."""
        hashes = self._tree.hashes
        whole = all(len(each) == HASH_BYTES for each in hashes[-1:]) and len(set(hashes)) == n == len(hashes)
        if not whole or self._tree.root.hex() != root:
            raise ProtocolViolation(f"leaves: they are not the hashes of the {n} slots that shufflers signed")

    def proof(self, slot: bytes) -> dict[str, Any] | None:
        """What shows that a slot took part; None if it did not."""
        index = self._places.get(leaf_hash(slot))
        if index is None:
            return None
        return {"slot": slot.hex(), "index": index, "path": [node.hex() for node in self._tree.proof(index)]}

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {each: index for index, each in enumerate(self._tree.hashes)}


def agree(session: ShuffleSession, held: Sequence[Iterable[bytes]]) -> Roster:
    """The slots that every shuffler that takes uploads holds; SessionAborted if they are too few or too many."""
    # In a chain only the first hop sees uploads.
    takers = session.shuffler_count if session.mode in RESHARING else 1
    if len(held) != takers:
        raise SessionAborted(f"roster: {len(held)} of {takers} shufflers have sent their slots")
    roster = Roster.of(_common([list(slots) for slots in held]))
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


def _common(held: Sequence[list[bytes]]) -> list[bytes]:
    """The slots that all lists have, in the order of the first."""
    first, *others = held
    # Nearly always all shufflers hold the same; comparing lists is much cheaper than intersecting them.
    if all(slots == first for slots in others):
        return first
    shared = set(first).intersection(*others)
    return [slot for slot in first if slot in shared]


def check_statements(
    session: ShuffleSession, statement: Mapping[str, Any], signatures: Mapping[str, str], pinned: Mapping[str, bytes]
) -> None:
    """Raise ProtocolViolation unless every shuffler that takes uploads signed the same statement."""
    takers = session.shuffler_count if session.mode in RESHARING else 1
    for number in range(1, takers + 1):
        name = party_name(number)
        check_signature(pinned, name, LABEL, statement, signatures.get(name, ""))


def took_part(root: str, n: int, proof: Mapping[str, Any]) -> bool:
    """Whether a proof shows that a slot is in the roster with this root."""
    path = [bytes.fromhex(node) for node in proof["path"]]
    return is_included(bytes.fromhex(root), bytes.fromhex(proof["slot"]), proof["index"], n, path)
