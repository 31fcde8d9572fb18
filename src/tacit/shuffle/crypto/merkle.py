"""Merkle trees (the hashes of RFC 6962): one hash for a list, and short proofs that an entry is in it.

>>> leaves = [b"a", b"b", b"c"]
>>> proof = inclusion_proof(leaves, 2)
>>> is_included(merkle_root(leaves), b"c", 2, 3, proof), is_included(merkle_root(leaves), b"x", 2, 3, proof)
(True, False)
"""

from collections.abc import Sequence
from hashlib import sha256

HASH_BYTES = 32


def leaf_hash(content: bytes) -> bytes:
    """What a tree has of an entry."""
    # Leaves and nodes are hashed with different first bytes, so that a node can never be shown as a leaf.
    return sha256(b"\x00" + content).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def _levels(hashes: Sequence[bytes]) -> list[list[bytes]]:
    """All levels from the hashes of leaves up; a node without a neighbour moves up as it is."""
    levels = [list(hashes)]
    # `_node` is written out: a shuffler hashes every slot, and a call costs as much as a hash.
    while len(level := levels[-1]) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        paired = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
        levels.append(paired + level[2 * len(paired) :])
    return levels


class MerkleTree:
    """All hashes of a list, for many proofs."""

    def __init__(self, leaves: Sequence[bytes] = (), *, hashes: Sequence[bytes] | None = None) -> None:
        """Hash a list, once; or take the hashes of its entries, where these are all that is known."""
        self._levels = _levels([leaf_hash(content) for content in leaves] if hashes is None else hashes)

    @property
    def hashes(self) -> list[bytes]:
        """The hashes of all entries, in their order."""
        return self._levels[0]

    @property
    def root(self) -> bytes:
        """The hash of the list."""
        return self._levels[-1][0] if self._levels[-1] else sha256(b"").digest()

    def proof(self, index: int) -> list[bytes]:
        """What proves that entry `index` is in the list: the neighbours on the way to the root."""
        proof: list[bytes] = []
        for level in self._levels[:-1]:
            if index ^ 1 < len(level):
                proof.append(level[index ^ 1])
            index >>= 1
        return proof


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """The hash of a list."""
    return MerkleTree(leaves).root


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """What proves that entry `index` is in a list."""
    return MerkleTree(leaves).proof(index)


def is_included(root: bytes, content: bytes, index: int, size: int, proof: Sequence[bytes]) -> bool:
    """Whether a proof shows that `content` is entry `index` of the list of `size` entries with this root."""
    # The size is part of the claim: without it, the same path could be read as one of another tree.
    if not 0 <= index < size:
        return False
    node, rest = leaf_hash(content), list(proof)
    while size > 1:
        if index ^ 1 < size:
            if not rest:
                return False
            other = rest.pop(0)
            node = _node(other, node) if index & 1 else _node(node, other)
        index, size = index >> 1, (size + 1) // 2
    return not rest and node == root
