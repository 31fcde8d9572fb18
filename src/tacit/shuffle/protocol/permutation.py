"""The secret order of a round: hiders commit to seeds, reveal them to each other, and all compute the same permutation.

A round's key is SHA-256 over all hiders' seeds. Nobody can steer it: seeds are fixed by their commitments before any is
seen, and one honest seed makes the key unpredictable.

The order is the sorting order of 64-bit keys from the AES-256-CTR stream of the round's key. Law: the keys are
independent and uniform, so that every order of N distinct keys is equally likely; if any two keys are equal, all N are
drawn again from the next words of the stream. Given that the keys which are used are distinct, their joint law does not
change under permutation, hence each of the N! orders has probability exactly 1/N!. This replaces the exchange of rows
one by one with rejection sampling (Fisher and Yates): the same law, deterministic given the key whatever algorithm
sorts (distinct keys have one order), and a vector operation. A redraw has probability below N^2/2^65: 3e-8 for a
million rows. "Uniform" holds against whoever cannot tell AES-256 from random; there are more orders than keys.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from tacit.arrays import I64
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.stream import SEED_BYTES, AesStream

_LABEL = b"tacit permutation\x00"


def commit(seed: bytes) -> bytes:
    """What a hider shows of its seed before it has seen the others'."""
    return sha256(seed).digest()


def check_reveal(commitment: bytes, seed: bytes, who: str) -> None:
    """Raise ProtocolViolation unless a seed is the one that was committed to."""
    if len(seed) != SEED_BYTES or commit(seed) != commitment:
        raise ProtocolViolation(f"{who}: the revealed seed is not the one that it committed to; abort")


def round_key(session: bytes, attempt: int, round_number: int, seeds: Sequence[bytes]) -> bytes:
    """The key of a round, from the seeds of its hiders in the order of their numbers."""
    if len(set(seeds)) != len(seeds):
        # A copy of somebody's commitment passes the check of the reveal; an honest seed is never drawn twice.
        raise ProtocolViolation("two hiders of a round revealed the same seed; one has copied the other: abort")
    place = attempt.to_bytes(4, "big") + round_number.to_bytes(4, "big")
    return sha256(_LABEL + session + place + b"".join(seeds)).digest()


def permutation(key: bytes, count: int) -> I64:
    """The order of a round: place i of the result takes row order[i].

    >>> permutation(bytes(32), 5).tolist()
    [4, 1, 0, 3, 2]
    """
    # The key is used for this stream alone.
    stream = AesStream(key)
    while True:
        keys = stream.array(count)
        order = np.argsort(keys)
        ordered = keys[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order
