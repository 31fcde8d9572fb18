"""Random bytes by the gigabyte: 32 bytes of entropy expanded by AES-256 in counter mode.

Shares and masks of a million rows are hundreds of megabytes. The stream of a key is AES-256-CTR over zeros, the
counter starting at zero; it is indistinguishable from uniform for whoever lacks the key. Everything that is proven
here about "uniform" shares and permutations therefore holds against adversaries that cannot break AES-256.
"""

import os
from typing import NoReturn, Self, SupportsIndex

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from tacit.arrays import U8, U64
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec

SEED_BYTES = 32
_ZEROS = memoryview(bytes(1 << 20))


class AesStream(Coins):
    """The AES-256-CTR stream of a 32-byte seed, as coins and as rows of bytes.

    Whoever draws from it takes the next bytes: words, rows and arrays are cut from the same stream, in order.

    >>> stream = AesStream(bytes(32))
    >>> stream.rows(2, 8).shape, len(stream.words(3))
    ((2, 8), 24)
    >>> AesStream(bytes(32)).rows(1, 16).tobytes().hex()
    'dc95c078a2408989ad48a21492842087'
    """

    def __init__(self, seed: bytes) -> None:
        """Start the stream of a seed; a seed is used for one stream only."""
        super().__init__()
        if len(seed) != SEED_BYTES:
            raise InvalidSpec(f"stream: the seed has {len(seed)} bytes, must have {SEED_BYTES}")
        self._cipher = Cipher(AES(bytes(seed)), CTR(bytes(16))).encryptor()
        self._process = os.getpid()

    @classmethod
    def from_system(cls) -> Self:
        """A stream that nobody can repeat, from the operating system's entropy."""
        stream = cls(os.urandom(SEED_BYTES))
        stream.secure = True
        return stream

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("AesStream cannot be copied or pickled: a copy would repeat its bytes; make a new one")

    def _draw(self, size: int) -> bytes:
        self._refuse_fork()
        # Exactly what is missing, so that nothing is left in the buffer and rows continue where words ended.
        return self._cipher.update(bytes(size))

    def _refuse_fork(self) -> None:
        # A forked child has the parent's key and place: both would draw the same masks.
        if self.secure and os.getpid() != self._process:
            raise TypeError("AesStream cannot be used after a fork: it would repeat its bytes; make a new one")

    def fill(self, target: memoryview) -> None:
        """Write the next bytes of the stream over all of `target`, a megabyte at a time."""
        self._refuse_fork()
        # What was looked at with `peek` and not taken comes first: the stream has no gaps.
        held = self._buffer[self._position :][: len(target)]
        self._position += len(held)
        target[: len(held)] = held
        for start in range(len(held), len(target), len(_ZEROS)):
            piece = target[start : start + len(_ZEROS)]
            self._cipher.update_into(_ZEROS[: len(piece)], piece)

    def rows(self, count: int, width: int) -> U8:
        """The next count x width bytes, as a matrix."""
        drawn = np.empty((count, width), np.uint8)
        if drawn.size:
            self.fill(drawn.data.cast("B"))
        return drawn

    def array(self, count: int) -> U64:
        """The next `count` words, as an array."""
        return self.rows(count, 8).view("<u8").reshape(count)
