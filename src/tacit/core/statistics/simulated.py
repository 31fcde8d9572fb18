"""Simulated respondents and tallies, for mechanisms whose tally has no known distribution to draw from at once."""

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64
from tacit.device.numbers.coins import Coins

# Respondents that are simulated at a time, which bounds memory.
_CHUNK = 1 << 18
# Slots of the table that turns uniform numbers into members.
_SLOTS = 1 << 12
_DRAWS_PER_CELL = 4
"""Up to this many draws for every cell of a split, drawing one by one is faster than binomials."""


class GeneratorCoins(Coins):
    """Words of a numpy generator: fast, insecure, for simulated respondents alone."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Draw from the generator."""
        super().__init__()
        self._rng = rng

    def _draw(self, size: int) -> bytes:
        return self._rng.bytes(size)


def respondents_of(counts: I64, chunk: int = _CHUNK) -> Iterator[I64]:
    """Yield one value per respondent, in chunks and in the order of the values."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, chunk):
        stop = min(start + chunk, total)
        # The chunk holds values first .. last, of which the two at the edges may reach into neighbouring chunks.
        first, last = (int(np.searchsorted(ends, at, side="right")) for at in (start, stop - 1))
        held = np.minimum(ends[first : last + 1], stop)
        yield np.repeat(np.arange(first, last + 1), np.diff(held, prepend=start))


def split_counts(counts: I64, shares: npt.NDArray[np.float64], rng: np.random.Generator) -> I64:
    """Return a row per count: how many of its respondents draw each member, independently with these shares."""
    groups = len(shares)
    if int(counts.sum()) > _DRAWS_PER_CELL * len(counts) * groups:
        return rng.multinomial(counts, shares)
    # Few respondents over many cells: a multinomial would draw a binomial per cell, most of them of nothing.
    draw, out = _table(shares), np.zeros(len(counts) * groups, np.int64)
    for cells in respondents_of(counts):
        out += np.bincount(cells * groups + draw(rng.random(len(cells))), minlength=len(out))
    return out.reshape(len(counts), groups)


def _table(shares: npt.NDArray[np.float64]) -> Callable[[npt.NDArray[np.float64]], I64]:
    """A function from uniform numbers to members by table lookup; only slots that a bound divides need a search.

    members   |    0    |  1 |      2      |      bounds are cumulative shares
    slots     |  |  |  |  |  |  |  |  |  |  |     a slot is divided where a bound falls inside it
    """
    bounds = np.cumsum(shares)[:-1]
    slots = np.arange(_SLOTS) / _SLOTS
    first = np.searchsorted(bounds, slots, side="right")
    divided = first != np.searchsorted(bounds, slots + 1 / _SLOTS, side="right")

    def draw(uniform: npt.NDArray[np.float64]) -> I64:
        slot = (uniform * _SLOTS).astype(np.int64)
        chosen, unsure = first[slot], np.flatnonzero(divided[slot])
        chosen[unsure] = np.searchsorted(bounds, uniform[unsure], side="right")
        return chosen

    return draw


def simulate_each(mechanism: Any, counts: npt.ArrayLike, rng: np.random.Generator) -> Any:
    """Return the tally of simulated respondents, `counts[i]` of them with value i, each drawing its own report."""
    coins, chunks = GeneratorCoins(rng), respondents_of(np.asarray(counts, np.int64))
    first = next(chunks, None)
    if first is None:
        return mechanism.tally(mechanism.decode(b""))
    parts = (mechanism.tally(mechanism.privatize(values, coins)) for values in chain([first], chunks))
    return reduce(add, parts)
