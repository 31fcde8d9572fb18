"""How the values of a domain are spelt as digits, so that they can be found prefix by prefix.

A value below fanout^digits is a number in base `fanout`; its prefix of length l is the number of its first l digits.
Domains with structure (texts) also say which prefixes can occur, which removes candidates, and their noise, for free.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from tacit.arrays import U8, U64, Mask
from tacit.device.domains.domain import Bits, Domain
from tacit.device.domains.reals import Integers
from tacit.device.domains.text import Text
from tacit.device.families.levels import node_count
from tacit.errors import InvalidSpec

SHARED_BEGINNINGS = 3
"""The weight of the last group for texts: shared prefixes are frequent and easily found, whole values are not."""


@dataclass(frozen=True)
class Spelling:
    """A way to write the values below `size` as `digits` digits of base `fanout`."""

    size: int
    fanout: int
    digits: int
    possible: Callable[[U64, int], Mask] | None = None
    """A function that says which prefixes of so many digits begin a value; None if all do."""
    last_weight: int = 1
    """The weight of the last group in the draw of groups; all others have weight 1."""

    def extend(self, prefixes: U64, length: int, to: int) -> U64:
        """Return all prefixes of `to` digits that extend the given ones of `length` digits and can occur, sorted."""
        step = np.uint64(self.fanout ** (to - length))
        # Index of a child: the parent's times the number of children, plus its own place among them.
        longer = (prefixes[:, None] * step + np.arange(step, dtype=np.uint64)).reshape(-1)
        # The domain may end within the last prefix: drop extensions beyond the largest value.
        nodes = node_count(self.size, self.fanout, self.digits - to)
        if self.size != self.fanout**self.digits:
            # The domain ends inside the last node, so that the highest prefixes have no value.
            longer = longer[longer < np.uint64(nodes)]
        return longer if self.possible is None else longer[self.possible(longer, to)]

    def branches(self, length: int, to: int) -> int:
        """How many prefixes of `to` digits extend one of `length` digits that goes on with ordinary letters.

        Where some prefixes are impossible they are counted byte by byte (or digit by digit), each after a letter.
        """
        return self.fanout ** (to - length) if self.possible is None else _branches(self, length, to)


_UNIT = 8
_LETTER = 0x61
"""The byte that stands for what is before a prefix: `a`, which any text may follow."""


@lru_cache(maxsize=4096)
def _branches(spelling: Spelling, length: int, to: int) -> int:
    unit = _UNIT if spelling.fanout == 2 else 1
    if to - length > unit - length % unit:
        middle = length + unit - length % unit
        return _branches(spelling, length, middle) * _branches(spelling, middle, to)
    if spelling.fanout == 2:
        before = int((f"{_LETTER:08b}" * (length // _UNIT + 1))[:length] or "0", 2)
    else:
        before = sum(spelling.fanout**place for place in range(length))  # The digit 1, so many times.
    return len(spelling.extend(np.array([before], np.uint64), length, to))


def bit_strings(bits: int) -> Spelling:
    """Return the spelling of bit strings: binary digits, all values possible."""
    return Spelling(1 << bits, 2, bits)


def values_below(size: int | None) -> Spelling:
    """Return the spelling of so many values without structure, in binary."""
    if size is None or not 2 <= size <= 1 << 64:
        raise InvalidSpec("heavy hitters: size must be from 2 to 2^64")
    return Spelling(size, 2, (size - 1).bit_length())


def spelling_of(domain: Domain) -> Spelling:
    """Return the spelling of a domain; InvalidSpec for domains without useful prefixes."""
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
    """Return the spelling of byte strings: bit by bit, so that a group need not end at a whole byte."""
    possible = partial(utf8_prefixes, length=length)
    return Spelling(1 << 8 * length, 2, 8 * length, possible, SHARED_BEGINNINGS)


@lru_cache(maxsize=16)
def _texts(fanout: int, length: int) -> Spelling:
    return Spelling(fanout**length, fanout, length, _ended_prefixes(fanout), SHARED_BEGINNINGS)


def _ended_prefixes(fanout: int) -> Callable[[U64, int], Mask]:
    """Return the check for texts over an alphabet: digit 0 is the end, and only zeros may follow it."""

    def possible(prefixes: U64, digits: int) -> Mask:
        rest, good = prefixes, np.ones(len(prefixes), np.bool_)
        later = np.zeros(len(prefixes), np.bool_)
        # From the last digit to the first: a zero with a nonzero digit after it is an end inside a text.
        for _ in range(digits):
            # From the last digit to the first: digit 0 is the end of a text, and must not come before a letter.
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
    """Return the transition table next[state, byte] of the UTF-8 automaton."""
    table = np.full((10, 256), _DEAD, np.uint8)
    for first, last, state in _STARTS:
        table[0, first : last + 1] = state
    for before, first, last, state in _FOLLOW:
        table[before, first : last + 1] = state
    return table


_MISSING = np.array([0, 1, 2, 3, 2, 2, 3, 3, 0, 1 << 7], np.uint8)
"""The least number of bytes that complete each state; the dead state needs more than any length allows."""


def _begun(bits: int, room: int) -> Mask:
    """Return alive[state, bits]: whether some byte with these leading bits may follow, with `room` bytes after it."""
    # Bytes that share their leading bits are neighbours, so a reshape groups them and `or` asks for any of them.
    alive: Mask = np.asarray(_MISSING[_automaton()] <= room)
    return np.logical_or.reduce(alive.reshape(10, 1 << bits, -1), axis=2)


def utf8_prefixes(prefixes: U64, digits: int, *, length: int) -> Mask:
    """Return whether some UTF-8 text of at most `length` bytes, padded with zero bytes, begins with these bits."""
    # Run the automaton over the whole bytes; the bits of a begun byte are checked against all its completions.
    whole, rest = divmod(digits, 8)
    state: U8 = np.zeros(len(prefixes), np.uint8)
    for place in range(whole):
        byte = (prefixes >> np.uint64(digits - 8 * (place + 1))) & np.uint64(0xFF)
        state = _automaton()[state, byte.astype(np.intp)]
    if rest == 0:
        return np.asarray(_MISSING[state] <= length - whole)
    begun = (prefixes & np.uint64((1 << rest) - 1)).astype(np.intp)
    return np.asarray(_begun(rest, length - whole - 1)[state, begun])
