"""Covering designs: few blocks of s attributes such that every k of the m attributes lie in one block together.

CALM takes the blocks as its views: every respondent answers one block, and a table of k attributes can be read off
directly where some block contains all of them. Fewer blocks mean more respondents per block.

    C(m=4, s=3, k=2)      attributes 0 1 2 3
                  block a            x x x .     covers 01 02 12
                  block b            x x . x     covers 01 03 13
                  block c            x . x x     covers 02 03 23     all six pairs are covered

Explicit constructions come first (they are optimal), then a greedy search with restarts and pruning. The lower bound is
Schönheim's (Pacific Journal of Mathematics, 1964), which also lets CALM skip a search that cannot win.
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
    """Return Schönheim's lower bound on the number of blocks: ceil(m/s ceil((m-1)/(s-1) ...)), nested k times.

    >>> lower_bound(8, 4, 3), lower_bound(16, 4, 3), lower_bound(16, 3, 2)
    (14, 140, 43)
    """
    # Each nesting level: the blocks through one fixed attribute must themselves cover the k-1 subsets of the others.
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
    """Return blocks of s attributes that cover every k of the m attributes; few, but not always the fewest possible.

    Results are cached, because planning asks for the same design many times. Seeds are fixed, so that the same request
    always leads to the same published views.

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
    # The greedy search depends on how ties are broken: take the smallest design of a few seeds.
    tries = (_pruned(_greedy(m, s, k, seed), k) for seed in range(_RESTARTS))
    return min(tries, key=len)


def _explicit(m: int, s: int, k: int) -> tuple[Block, ...] | None:
    """Return a known optimal design for these parameters, or None where the search has to find one."""
    if s == m:
        return (tuple(range(m)),)
    if s == k and comb(m, k) <= MAX_SETS:
        return tuple(combinations(range(m), k))
    if k == 1:
        # Consecutive runs of s attributes; the last run wraps around to keep all blocks the same size.
        return tuple(tuple(sorted({(i + j) % m for j in range(s)})) for i in range(0, m, s))
    if (s, k) == (4, 3) and m >= 4 and m & (m - 1) == 0:
        # Quadruples with XOR zero: three attributes determine the fourth, so every triple is in exactly one of them
        # (the Steiner quadruple system of the binary affine space).
        pairs = ((a, b, c, a ^ b ^ c) for a, b, c in combinations(range(m), 3))
        return tuple(block for block in pairs if block[3] > block[2])
    if (m, s, k) == (16, 4, 2):
        return _affine_plane_of_4()
    if (m, s, k) == (16, 3, 2):
        return tuple(sorted(tuple(int(digit, 16) for digit in block) for block in _TRIPLES_OF_16.split()))
    return None


def _times_4(a: int, b: int) -> int:
    """Multiply in the field of four elements, GF(4), whose polynomials are reduced by x^2 = x + 1."""
    # Carry-less multiplication of two 2-bit polynomials, then one reduction by x^2 + x + 1 = 0b111.
    product = (a if b & 1 else 0) ^ (a << 1 if b & 2 else 0)
    return product ^ 7 if product & 4 else product


def _affine_plane_of_4() -> tuple[Block, ...]:
    """Return the 20 lines of the affine plane over GF(4): any two of its 16 points are on exactly one line."""
    # Point (x, y) is attribute 4x + y. Lines y = slope * x + at come first, then the four vertical ones.
    lines = [
        tuple(sorted(4 * x + (_times_4(slope, x) ^ at) for x in range(4))) for slope in range(4) for at in range(4)
    ]
    lines += [tuple(4 * x + y for y in range(4)) for x in range(4)]
    return tuple(lines)


def _greedy(m: int, s: int, k: int, seed: int) -> list[Block]:
    """Grow blocks one by one until every set is covered; see `_Search.grow` for the greedy rule."""
    search = _Search(m, k, seed)
    while search.left:
        search.add(search.grow(s))
    return search.blocks


def balanced_views(m: int, s: int, k: int, count: int, *, seed: int = 0) -> tuple[Block, ...]:
    """Return `count` different blocks that cover many sets of k attributes and use all attributes about equally often.

    This is for plans whose budget of views is too small for a full cover. Pairs are covered in place of sets of k where
    a block is smaller than k, or where the sets of k are too many to enumerate.
    """
    inner = k if k <= s and comb(m, k) <= MAX_SETS else min(2, s)
    search, taken = _Search(m, inner, seed), set[Block]()
    spare = combinations(range(m), s)
    while len(taken) < min(count, comb(m, s)):
        if not search.left:
            # Everything is covered once and there is still budget: start a second round of covering.
            search.reopen()
        block = search.grow(s)
        if block in taken:
            block = search.other(s, taken) or next(one for one in spare if one not in taken)
        search.add(block)
        taken.add(block)
    return tuple(search.blocks)


def _pruned(blocks: Sequence[Block], k: int) -> tuple[Block, ...]:
    """Drop blocks whose sets are all covered by others as well; later greedy blocks covered least, so they go first."""
    times: dict[Block, int] = {}
    for block in blocks:
        for inner in combinations(block, k):
            times[inner] = times.get(inner, 0) + 1
    needed: list[Block] = []
    for block in reversed(blocks):
        inner = list(combinations(block, k))
        # Superfluous if every set in it is covered once more elsewhere.
        if all(times[one] > 1 for one in inner):
            for one in inner:
                times[one] -= 1
        else:
            needed.append(block)
    return tuple(sorted(needed))


_TRIES = 64
"""Random attempts at a block that was not taken before; after these, the first unused one in order is taken."""


class _Search:
    """A growing list of blocks, and which sets of k attributes none of them covers yet."""

    def __init__(self, m: int, k: int, seed: int) -> None:
        self.m, self.k = m, k
        self.blocks: list[Block] = []
        self.used = np.zeros(m)
        self._every = np.array(list(combinations(range(m), k)), np.int64).reshape(-1, k)
        # `_open` is an m x ... x m array with k axes (one cell per ordered k-tuple); only the cells of sorted tuples
        # are used, and `_places` are their flat indices.
        self._places = np.ravel_multi_index(tuple(self._every.T), (m,) * k)
        self._tie = np.random.default_rng(seed)
        self.reopen()

    def reopen(self) -> None:
        """Mark every set of k attributes as uncovered again."""
        self._open = np.zeros((self.m,) * self.k, np.bool_)
        self._open[tuple(self._every.T)] = True
        self.left = len(self._every)

    def add(self, block: Block) -> None:
        """Append a block and mark the sets in it as covered."""
        self.blocks.append(block)
        self.used[list(block)] += 1
        for inner in combinations(block, self.k):
            self.left -= int(self._open[inner])
            self._open[inner] = False

    def other(self, s: int, taken: "set[Block]") -> Block | None:
        """Return an untaken block of rarely used attributes; the randomness grows from try to try. None if all fail."""
        for chance in np.linspace(0.5, 4.0, _TRIES):
            order = np.argsort(self.used + chance * self._tie.random(self.m), kind="stable")
            block = tuple(sorted(order[:s].tolist()))
            if block not in taken:
                return block
        return None

    def grow(self, s: int) -> Block:
        """Return a block of s attributes that covers many open sets; ties go to the attributes used least."""
        check()  # A search over many sets takes seconds: respect the caller's deadline.
        chosen = self._first()
        while len(chosen) < s:
            # A count of sets is an integer, so the balance (1e-4) and the random tie-break (1e-6) never outvote it.
            gain = self._gain(chosen) - 1e-4 * self.used + 1e-6 * self._tie.random(self.m)
            gain[chosen] = -np.inf
            chosen.append(int(np.argmax(gain)))
        return tuple(sorted(chosen))

    def _first(self) -> list[int]:
        """Return the uncovered set whose attributes were used least: the seed of a new block."""
        # The sets themselves are far fewer than the m^k cells of the table.
        waiting = self._every[self._open.ravel()[self._places]]
        load = self.used[waiting].sum(axis=1) + 0.5 * self._tie.random(len(waiting))
        return [int(a) for a in waiting[int(np.argmin(load))]]

    def _gain(self, chosen: list[int]) -> npt.NDArray[np.float64]:
        """Count, for every attribute, the uncovered sets that adding it to the chosen ones would cover."""
        # sets[a, i] = (the i-th (k-1)-subset of the chosen attributes) + a, sorted, to be looked up in `_open`.
        shape = comb(len(chosen), self.k - 1), self.k - 1
        inner = np.array(list(combinations(chosen, self.k - 1)), np.int64).reshape(shape)
        sets = np.empty((self.m, len(inner), self.k), np.int64)
        sets[:, :, :-1], sets[:, :, -1] = inner, np.arange(self.m)[:, None]
        sets.sort(axis=2)
        return self._open[tuple(np.moveaxis(sets, 2, 0))].sum(axis=1).astype(np.float64)
