"""Simulated tallies for mechanisms without an aggregate form: every respondent draws its own report."""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.device.coins import Coins

I64 = npt.NDArray[np.int64]
_CHUNK = 1 << 18
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
    """One value per respondent, in chunks and in the order of the values."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, chunk):
        stop = min(start + chunk, total)
        first, last = (int(np.searchsorted(ends, at, side="right")) for at in (start, stop - 1))
        held = np.minimum(ends[first : last + 1], stop)
        yield np.repeat(np.arange(first, last + 1), np.diff(held, prepend=start))


def split_counts(counts: I64, shares: npt.NDArray[np.float64], rng: np.random.Generator) -> I64:
    """How many of every count draw each member, by independent draws with these shares: a row per count."""
    groups = len(shares)
    if int(counts.sum()) > _DRAWS_PER_CELL * len(counts) * groups:
        return rng.multinomial(counts, shares)
    draw, out = _table(shares), np.zeros(len(counts) * groups, np.int64)
    for cells in respondents_of(counts):
        out += np.bincount(cells * groups + draw(rng.random(len(cells))), minlength=len(out))
    return out.reshape(len(counts), groups)


def _table(shares: npt.NDArray[np.float64]) -> Callable[[npt.NDArray[np.float64]], I64]:
    """Uniform numbers to members, by a table; only numbers in a slot that a bound divides are searched for."""
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
    """The tally of simulated respondents, `counts[i]` of them with value i, chunk by chunk."""
    coins, empty = GeneratorCoins(rng), mechanism.tally(mechanism.decode(b""))
    held = np.asarray(counts, np.int64)
    parts = (mechanism.tally(mechanism.privatize(values, coins)) for values in respondents_of(held))
    return reduce(add, parts, empty)
