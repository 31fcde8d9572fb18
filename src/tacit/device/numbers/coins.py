"""Coins: where randomness comes from, one 64-bit word at a time.

`SystemCoins` (the operating system's entropy) is what real reports use and cannot be seeded. `ReplayCoins`
makes golden vectors. A kind of fixed cost takes the same number of words for every report; unary kinds draw
64 lanes at a time and stop when all lanes are decided, so they read ahead with `peek` and `skip`.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from hashlib import sha256, shake_128
from typing import NoReturn, SupportsIndex

_BLOCK_BYTES = 1 << 16
_DIRECT_BYTES = 1 << 12
KEY_BYTES = 32

Expand = Callable[[bytes, int], "bytes | memoryview"]
"""The SHAKE128 outputs of keys of 32 bytes, so many bytes each, one after the other."""


def expand_keys(keys: bytes, size: int) -> bytes:
    """Return `size` bytes of SHAKE128 for each of the keys, which stand one after the other."""
    starts = range(0, len(keys), KEY_BYTES)
    return b"".join(shake_128(keys[start : start + KEY_BYTES]).digest(size) for start in starts)


class Coins(ABC):
    """A stream of uniform 64-bit words, buffered so that readers may look ahead."""

    secure = False
    """Whether a client may use these coins for a real report."""

    def __init__(self) -> None:
        """Start with an empty buffer."""
        self._buffer = b""
        self._position = 0

    @abstractmethod
    def _draw(self, size: int) -> bytes:
        """At least `size` further bytes of the stream."""

    def _expanded(self, size: int, expand: "Expand") -> "bytes | memoryview":
        """As `_draw`, by the caller's way to expand keys; a source that expands none has no use for it."""
        del expand
        return self._draw(size)

    def peek(self, count: int, expand: "Expand | None" = None) -> memoryview:
        """The next `count` words as little-endian bytes, without consuming them.

        Who draws large batches may bring a fast `expand`, which does as `expand_keys`: the device knows none but that.
        """
        missing = 8 * count - (len(self._buffer) - self._position)
        if missing > 0:
            drawn = self._draw(missing) if expand is None else self._expanded(missing, expand)
            self._buffer = self._buffer[self._position :] + drawn
            self._position = 0
            if len(self._buffer) < 8 * count:
                raise OSError("coins: the source gave fewer words than it was asked for; no report is made of them")
        return memoryview(self._buffer)[self._position : self._position + 8 * count]

    def skip(self, count: int) -> None:
        """Consume `count` words that were looked at with `peek`; they are never seen again."""
        self._position += 8 * count

    def words(self, count: int, expand: "Expand | None" = None) -> bytes:
        """Consume `count` words, as little-endian bytes."""
        taken = bytes(self.peek(count, expand))
        self.skip(count)
        return taken

    def word(self) -> int:
        """Consume one word."""
        return int.from_bytes(self.words(1), "little")

    def uniform(self, m: int) -> int:
        """An integer in [0, m) from one word; its unevenness is counted in every realised epsilon."""
        # Scaling one word instead of rejecting some keeps the number of words fixed, whatever the word is.
        return self.word() * m >> 64

    def below(self, threshold: int) -> bool:
        """True with probability threshold/2^64, from one word."""
        return self.word() < threshold


_generation = 0
"""Grows in every forked child, so that a buffer filled before the fork is known for what it is."""


def _forked() -> None:
    global _generation
    _generation += 1


os.register_at_fork(after_in_child=_forked)


class SystemCoins(threading.local, Coins):
    """The operating system's entropy. Cannot be seeded, copied or shared: no word is ever used twice.

    Every thread has a buffer of its own, a forked child throws its parent's away, and copies are refused.

    Single reports read it directly. Large batches expand 32 fresh bytes to 64 KiB with SHAKE128, which is half
    as fast again as the kernel's own generator; every block has a new key.
    """

    secure = True

    def __init__(self) -> None:
        """Start with an empty buffer, once in every thread."""
        Coins.__init__(self)
        self._made_in = _generation

    def peek(self, count: int, expand: "Expand | None" = None) -> memoryview:
        """The next words; a buffer that was filled before a fork is thrown away first."""
        if self._made_in != _generation:
            self._buffer, self._position, self._made_in = b"", 0, _generation
        return super().peek(count, expand)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("SystemCoins cannot be copied or pickled: a copy would repeat its words; make new ones")

    def _draw(self, size: int) -> bytes:
        if size <= _DIRECT_BYTES:
            return os.urandom(max(size, min(_DIRECT_BYTES, 64 * size)))
        return expand_keys(_fresh_keys(size), _BLOCK_BYTES)

    def _expanded(self, size: int, expand: "Expand") -> "bytes | memoryview":
        return self._draw(size) if size <= _DIRECT_BYTES else expand(_fresh_keys(size), _BLOCK_BYTES)


def _fresh_keys(size: int) -> bytes:
    """A key from the operating system for every block of so many bytes."""
    return os.urandom(KEY_BYTES * -(-size // _BLOCK_BYTES))


class ReplayCoins(Coins):
    """Word i is the first 8 bytes, little-endian, of SHA-256(seed || i as u64le). For vectors and tests only."""

    def __init__(self, seed: bytes) -> None:
        """Start the stream of `seed` at word 0."""
        super().__init__()
        self._seed = bytes(seed)
        self._counter = 0

    def _draw(self, size: int) -> bytes:
        start = self._counter
        self._counter += -(-size // 8)
        words = (sha256(self._seed + i.to_bytes(8, "little")).digest()[:8] for i in range(start, self._counter))
        return b"".join(words)


class ScriptedCoins(Coins):
    """Exactly the given words, then an error: lets a test walk along the edges of a threshold."""

    def __init__(self, words: "list[int]") -> None:
        """Hold the words."""
        super().__init__()
        self._script = b"".join(word.to_bytes(8, "little") for word in words)

    def _draw(self, size: int) -> bytes:
        if len(self._script) < size:
            raise IndexError("scripted coins are used up")
        drawn, self._script = self._script, b""
        return drawn
