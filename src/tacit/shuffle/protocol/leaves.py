"""What is known of the slots that took part when the slots themselves are erased: their hashes and what was signed."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.merkle import HASH_BYTES, HashRows, MerkleTree, hash_at, hash_rows, is_included, leaf_hash
from tacit.shuffle.crypto.signing import check_signature
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.session import RESHARING, ShuffleSession

LABEL = "roster"


class SlotLeaves:
    """The hashes of all slots that took part, in the order of the roster: with them a receipt can be checked for ever.

    Slots are 128 random bits, so that a hash shows nothing of its slot; who knows a slot can look for its hash.
    """

    def __init__(self, content: bytes, hashing: HashRows = hash_rows) -> None:
        """Take hashes end to end; `hashing` is for the tree above them."""
        self._content, self._hashing = content, hashing

    @cached_property
    def _tree(self) -> MerkleTree:
        return MerkleTree(self._content, self._hashing)

    def check(self, root: str, n: int) -> None:
        """Raise ProtocolViolation unless these are n different slots under the root that was signed."""
        whole = len(self._content) == n * HASH_BYTES and len(self._places) == n
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
        return {hash_at(self._content, index): index for index in range(len(self._content) // HASH_BYTES)}


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
