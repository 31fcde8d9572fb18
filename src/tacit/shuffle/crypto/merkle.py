"""Merkle trees (the hashes of RFC 6962): one hash for a list, and short proofs that an entry is in it.

>>> leaves = [b"a", b"b", b"c"]
>>> proof = inclusion_proof(leaves, 2)
>>> is_included(merkle_root(leaves), b"c", 2, 3, proof), is_included(merkle_root(leaves), b"x", 2, 3, proof)
(True, False)
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

HASH_BYTES = 32
# Leaves and nodes are hashed with different first bytes, so that a node can never be shown as a leaf.
LEAF, NODE = 0, 1
_LEAF, _NODE = bytes([LEAF]), bytes([NODE])

HashRows = Callable[[int, bytes, int], bytes]
"""Hashes a first byte and each row of some width of a list of rows; both rows and hashes end to end."""


def leaf_hash(content: bytes) -> bytes:
    """What a tree has of an entry."""
    return sha256(_LEAF + content).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


def hash_rows(first: int, rows: bytes, width: int) -> bytes:
    """Hash row by row; `tacit.kernels` hashes many at a time."""
    mark, cut = bytes([first]), range(0, len(rows), width)
    return b"".join([sha256(mark + rows[i : i + width]).digest() for i in cut])


class MerkleTree:
    """All hashes of a list, for many proofs: the levels from the leaves to the root, each of them end to end."""

    def __init__(self, hashes: bytes, hashing: HashRows = hash_rows) -> None:
        """Take the hashes of entries, end to end; `hashing` may be a faster one."""
        levels = [hashes]
        while len(level := levels[-1]) > HASH_BYTES:
            # A node without a neighbour moves up as it is.
            paired = len(level) - len(level) % (2 * HASH_BYTES)
            levels.append(hashing(NODE, level[:paired], 2 * HASH_BYTES) + level[paired:])
        self._levels = levels

    @property
    def root(self) -> bytes:
        """The hash of the list."""
        return self._levels[-1] or sha256(b"").digest()

    def proof(self, index: int) -> list[bytes]:
        """What proves that entry `index` is in the list: the neighbours on the way to the root."""
        proof: list[bytes] = []
        for level in self._levels[:-1]:
            if neighbour := hash_at(level, index ^ 1):
                proof.append(neighbour)
            index >>= 1
        return proof


def hash_at(hashes: bytes, index: int) -> bytes:
    """One of many hashes that are end to end; nothing behind their end."""
    return hashes[HASH_BYTES * index : HASH_BYTES * (index + 1)]


def _tree(leaves: Sequence[bytes]) -> MerkleTree:
    return MerkleTree(b"".join(map(leaf_hash, leaves)))


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """The hash of a list."""
    return _tree(leaves).root


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """What proves that entry `index` is in a list."""
    return _tree(leaves).proof(index)


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
