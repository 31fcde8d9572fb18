"""How the values of a domain are spelt: digits whose first ones are prefixes, and which prefixes can occur at all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from tacit.device.domain import Bits, Domain
from tacit.device.levels import node_count
from tacit.device.reals import Integers
from tacit.device.text import Text
from tacit.errors import InvalidSpec

U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

SHARED_BEGINNINGS = 3
"""Weight of the last group where values share beginnings, as texts do: their prefixes are common and easily found."""


@dataclass(frozen=True)
class Spelling:
    """Values below `size` as `digits` digits of base `fanout`."""

    size: int
    fanout: int
    digits: int
    possible: Callable[[U64, int], Mask] | None = None
    """Which prefixes of so many digits begin a value; None if all do."""
    last_weight: int = 1
    """How many times as many respondents the last group should get as another one."""

    def extend(self, prefixes: U64, length: int, to: int) -> U64:
        """All prefixes of `to` digits that begin with the given ones of `length` digits, and can occur."""
        step = np.uint64(self.fanout ** (to - length))
        longer = (prefixes[:, None] * step + np.arange(step, dtype=np.uint64)).reshape(-1)
        nodes = node_count(self.size, self.fanout, self.digits - to)
        if self.size != self.fanout**self.digits:
            longer = longer[longer < np.uint64(nodes)]
        return longer if self.possible is None else longer[self.possible(longer, to)]


def bit_strings(bits: int) -> Spelling:
    """Values of so many bits without structure."""
    return Spelling(1 << bits, 2, bits)


def values_below(size: int | None) -> Spelling:
    """So many values without structure, as bits."""
    if size is None or not 2 <= size <= 1 << 64:
        raise InvalidSpec("heavy hitters: size must be from 2 to 2^64")
    return Spelling(size, 2, (size - 1).bit_length())


def spelling_of(domain: Domain) -> Spelling:
    """The spelling of a domain whose values are found prefix by prefix."""
    if isinstance(domain, Bits):
        return bit_strings(domain.length)
    if isinstance(domain, Integers):
        return Spelling(domain.size, 2, max(1, (domain.size - 1).bit_length()))
    if isinstance(domain, Text) and domain.is_bytes:
        return _bytes(domain.length)
    if isinstance(domain, Text):
        return _texts(domain.fanout, domain.length)
    raise InvalidSpec(f"heavy hitters: the domain is {domain.kind}, must be text, bits or integers")


@lru_cache(maxsize=16)
def _bytes(length: int) -> Spelling:
    """Bytes are spelt bit by bit, so that steps need not be whole bytes."""
    possible = partial(utf8_prefixes, length=length)
    return Spelling(1 << 8 * length, 2, 8 * length, possible, SHARED_BEGINNINGS)


@lru_cache(maxsize=16)
def _texts(fanout: int, length: int) -> Spelling:
    return Spelling(fanout**length, fanout, length, _ended_prefixes(fanout), SHARED_BEGINNINGS)


def _ended_prefixes(fanout: int) -> Callable[[U64, int], Mask]:
    """Texts over an alphabet: nothing but the end follows an end."""

    def possible(prefixes: U64, digits: int) -> Mask:
        rest, good = prefixes, np.ones(len(prefixes), np.bool_)
        later = np.zeros(len(prefixes), np.bool_)
        for _ in range(digits):
            rest, digit = np.divmod(rest, np.uint64(fanout))
            good &= (digit != 0) | ~later
            later |= digit != 0
        return good

    return possible


_ENDED, _DEAD = 8, 9
_STARTS: tuple[tuple[int, int, int], ...] = (
    (0x01, 0x7F, 0), (0xC2, 0xDF, 1), (0xE0, 0xE0, 4), (0xE1, 0xEC, 2), (0xED, 0xED, 5), (0xEE, 0xEF, 2),
    (0xF0, 0xF0, 6), (0xF1, 0xF3, 3), (0xF4, 0xF4, 7), (0x00, 0x00, _ENDED),
)  # fmt: skip
_FOLLOW: tuple[tuple[int, int, int, int], ...] = (
    (1, 0x80, 0xBF, 0), (2, 0x80, 0xBF, 1), (3, 0x80, 0xBF, 2), (4, 0xA0, 0xBF, 1), (5, 0x80, 0x9F, 1),
    (6, 0x90, 0xBF, 2), (7, 0x80, 0x8F, 2), (_ENDED, 0x00, 0x00, _ENDED),
)  # fmt: skip
"""UTF-8 (RFC 3629, section 4) as an automaton: state 0 is between characters, 1 to 3 wait for as many bytes more, 4 to
7 are the first bytes whose second one is restricted, then the end, and what is no text."""


@lru_cache(maxsize=1)
def _automaton() -> U8:
    """next[state, byte]."""
    table = np.full((10, 256), _DEAD, np.uint8)
    for first, last, state in _STARTS:
        table[0, first : last + 1] = state
    for before, first, last, state in _FOLLOW:
        table[before, first : last + 1] = state
    return table


_MISSING = np.array([0, 1, 2, 3, 2, 2, 3, 3, 0, 1 << 7], np.uint8)
"""How many bytes every state still waits for; what is no text waits for more than there can be."""


def _begun(bits: int, room: int) -> Mask:
    """alive[state, beginning]: whether a byte that begins with these bits can come next, with `room` bytes after it."""
    alive: Mask = np.asarray(_MISSING[_automaton()] <= room)
    return np.logical_or.reduce(alive.reshape(10, 1 << bits, -1), axis=2)


def utf8_prefixes(prefixes: U64, digits: int, *, length: int) -> Mask:
    """Whether some text of at most `length` bytes of UTF-8, padded with zero bytes, begins with these bits."""
    whole, rest = divmod(digits, 8)
    state: U8 = np.zeros(len(prefixes), np.uint8)
    for place in range(whole):
        byte = (prefixes >> np.uint64(digits - 8 * (place + 1))) & np.uint64(0xFF)
        state = _automaton()[state, byte.astype(np.intp)]
    if rest == 0:
        return np.asarray(_MISSING[state] <= length - whole)
    begun = (prefixes & np.uint64((1 << rest) - 1)).astype(np.intp)
    return np.asarray(_begun(rest, length - whole - 1)[state, begun])
