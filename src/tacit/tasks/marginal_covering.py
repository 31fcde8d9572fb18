"""Covering designs: few sets of s attributes such that every k of m attributes are in one of them together.

Explicit constructions come first, then a greedy search with restarts whose superfluous sets are taken out again. The
lower bound is Schönheim's.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from tacit.core.patience import check
from tacit.errors import InvalidSpec

Block = tuple[int, ...]

MAX_SETS = 1 << 18
"""The most sets of k attributes that a search looks at one by one."""

_RESTARTS = 4
_TRIPLES_OF_16 = (
    "01d 024 029 038 05b 06a 07c 0ef 12c 134 137 15a 16b 18f 19e 239 25d 26e 27f 28a 28b 35e "
    "36a 3bc 3df 45f 46f 47c 489 4ad 4be 569 57d 58c 678 6cd 79a 7be 8de 9bd 9cf abf ace"
)
"""43 triples of hexadecimal digits that cover all pairs of 16, found by annealing: as few as the bound allows."""


def lower_bound(m: int, s: int, k: int) -> int:
    """Schönheim's bound: ceil(m/s ceil((m-1)/(s-1) ...)), k times.

    >>> lower_bound(8, 4, 3), lower_bound(16, 4, 3), lower_bound(16, 3, 2)
    (14, 140, 43)
    """
    bound = 1
    for i in range(k - 1, -1, -1):
        bound = -(-(m - i) * bound // (s - i))
    return bound


def covers(blocks: Iterable[Block], m: int, k: int) -> bool:
    """Whether every k of m attributes are together in some block."""
    seen = {inner for block in blocks for inner in combinations(sorted(block), k)}
    return len(seen) == comb(m, k)


@lru_cache(maxsize=64)
def cover_design(m: int, s: int, k: int) -> tuple[Block, ...]:
    """Blocks of s attributes that cover every k of m.

    >>> len(cover_design(8, 4, 3)), len(cover_design(16, 4, 2)), len(cover_design(6, 3, 3))
    (14, 20, 20)
    """
    if not 1 <= k <= s <= m:
        raise InvalidSpec(f"covering: k = {k}, s = {s} and m = {m} must not fall in this order")
    explicit = _explicit(m, s, k)
    if explicit is not None:
        return explicit
    if comb(m, k) > MAX_SETS:
        raise InvalidSpec(
            f"covering: {comb(m, k)} sets of {k} of {m} attributes are too many to cover; ask for smaller tables"
        )
    tries = (_pruned(_greedy(m, s, k, seed), k) for seed in range(_RESTARTS))
    return min(tries, key=len)


def _explicit(m: int, s: int, k: int) -> tuple[Block, ...] | None:
    """Everything, quadruples whose XOR is zero, the affine plane of order 4, or one block of all."""
    if s == m:
        return (tuple(range(m)),)
    if s == k and comb(m, k) <= MAX_SETS:
        return tuple(combinations(range(m), k))
    if k == 1:
        return tuple(tuple(sorted({(i + j) % m for j in range(s)})) for i in range(0, m, s))
    if (s, k) == (4, 3) and m >= 4 and m & (m - 1) == 0:
        pairs = ((a, b, c, a ^ b ^ c) for a, b, c in combinations(range(m), 3))
        return tuple(block for block in pairs if block[3] > block[2])
    if (m, s, k) == (16, 4, 2):
        return _affine_plane_of_4()
    if (m, s, k) == (16, 3, 2):
        return tuple(sorted(tuple(int(digit, 16) for digit in block) for block in _TRIPLES_OF_16.split()))
    return None


def _times_4(a: int, b: int) -> int:
    """Multiplication in the field of four elements, with x^2 = x + 1."""
    product = (a if b & 1 else 0) ^ (a << 1 if b & 2 else 0)
    return product ^ 7 if product & 4 else product


def _affine_plane_of_4() -> tuple[Block, ...]:
    """The lines of the plane over four elements: any two of 16 points are on exactly one of 20 lines."""
    lines = [
        tuple(sorted(4 * x + (_times_4(slope, x) ^ at) for x in range(4))) for slope in range(4) for at in range(4)
    ]
    lines += [tuple(4 * x + y for y in range(4)) for x in range(4)]
    return tuple(lines)


def _greedy(m: int, s: int, k: int, seed: int) -> list[Block]:
    """Blocks grown attribute by attribute by how many uncovered sets each would complete."""
    search = _Search(m, k, seed)
    while search.left:
        search.add(search.grow(s))
    return search.blocks


def balanced_views(m: int, s: int, k: int, count: int, *, seed: int = 0) -> tuple[Block, ...]:
    """So many different blocks that cover as many sets of k attributes as a greedy search finds, all used about alike.

    Sets of k are pairs where a block is smaller than that, and where there are too many to look at.
    """
    inner = k if k <= s and comb(m, k) <= MAX_SETS else min(2, s)
    search, taken = _Search(m, inner, seed), set[Block]()
    spare = combinations(range(m), s)
    while len(taken) < min(count, comb(m, s)):
        if not search.left:
            search.reopen()
        block = search.grow(s)
        if block in taken:
            block = search.other(s, taken) or next(one for one in spare if one not in taken)
        search.add(block)
        taken.add(block)
    return tuple(search.blocks)


def _pruned(blocks: Sequence[Block], k: int) -> tuple[Block, ...]:
    """Without blocks whose sets are all in others, the latest first."""
    times: dict[Block, int] = {}
    for block in blocks:
        for inner in combinations(block, k):
            times[inner] = times.get(inner, 0) + 1
    kept: list[Block] = []
    for block in reversed(blocks):
        inner = list(combinations(block, k))
        if all(times[one] > 1 for one in inner):
            for one in inner:
                times[one] -= 1
        else:
            kept.append(block)
    return tuple(sorted(kept))


_TRIES = 64
"""How often a block is drawn that was not taken before; then the first one that is left is."""


class _Search:
    """A growing list of blocks, and which sets of k attributes none of them covers yet."""

    def __init__(self, m: int, k: int, seed: int) -> None:
        self.m, self.k = m, k
        self.blocks: list[Block] = []
        self.used = np.zeros(m)
        self._every = np.array(list(combinations(range(m), k)), np.int64).reshape(-1, k)
        self._places = np.ravel_multi_index(tuple(self._every.T), (m,) * k)
        self._tie = np.random.default_rng(seed)
        self.reopen()

    def reopen(self) -> None:
        """Forget what was covered."""
        self._open = np.zeros((self.m,) * self.k, np.bool_)
        self._open[tuple(self._every.T)] = True
        self.left = len(self._every)

    def add(self, block: Block) -> None:
        """Take a block."""
        self.blocks.append(block)
        self.used[list(block)] += 1
        for inner in combinations(block, self.k):
            self.left -= int(self._open[inner])
            self._open[inner] = False

    def other(self, s: int, taken: "set[Block]") -> Block | None:
        """A block of attributes that were used least, with more and more chance until it is none of these."""
        for chance in np.linspace(0.5, 4.0, _TRIES):
            order = np.argsort(self.used + chance * self._tie.random(self.m), kind="stable")
            block = tuple(sorted(order[:s].tolist()))
            if block not in taken:
                return block
        return None

    def grow(self, s: int) -> Block:
        """A block of s attributes that covers many open sets; ties go to the attributes used least."""
        check()
        chosen = self._first()
        while len(chosen) < s:
            gain = self._gain(chosen) - 1e-4 * self.used + 1e-6 * self._tie.random(self.m)
            gain[chosen] = -np.inf
            chosen.append(int(np.argmax(gain)))
        return tuple(sorted(chosen))

    def _first(self) -> list[int]:
        """The open set whose attributes were used least."""
        # The sets themselves are far fewer than the m^k cells of the table.
        waiting = self._every[self._open.ravel()[self._places]]
        load = self.used[waiting].sum(axis=1) + 0.5 * self._tie.random(len(waiting))
        return [int(a) for a in waiting[int(np.argmin(load))]]

    def _gain(self, chosen: list[int]) -> npt.NDArray[np.float64]:
        """How many open sets every attribute would complete."""
        shape = comb(len(chosen), self.k - 1), self.k - 1
        inner = np.array(list(combinations(chosen, self.k - 1)), np.int64).reshape(shape)
        sets = np.empty((self.m, len(inner), self.k), np.int64)
        sets[:, :, :-1], sets[:, :, -1] = inner, np.arange(self.m)[:, None]
        sets.sort(axis=2)
        return self._open[tuple(np.moveaxis(sets, 2, 0))].sum(axis=1).astype(np.float64)
