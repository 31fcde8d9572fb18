"""Oracles whose respondents share public hash functions: what their common collisions add to the error.

With a hash function per respondent, collisions are independent noise. With a pool of public functions, all
respondents of one value under one function collide with the same other values together, and that part of the error does
not average out over respondents. Here it is estimated from the tally and added to the variance.
"""

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, U32, U64
from tacit.core.mechanism import Oracle
from tacit.core.tally import Counts
from tacit.kernels import hash32

_CHUNK_RESPONDENTS = 1 << 20


def public_seeds(key: int, count: int) -> U32:
    """Return the seeds of the public hash functions 0 .. count-1 of a collection with public key `key`."""
    return seeds_at(key, np.arange(count, dtype=np.uint64))


def seeds_at(key: int, functions: U64) -> U32:
    """Return the seeds of some of the public hash functions."""
    return hash32(np.asarray([key], np.uint32), functions)


def respondents_of(counts: npt.ArrayLike) -> Iterator[U64]:
    """Yield the values of simulated respondents, `counts[i]` of them with value i, in chunks of bounded size."""
    true = np.asarray(counts, np.int64)
    values = np.repeat(np.arange(len(true), dtype=np.uint64), true)
    for start in range(0, len(values), _CHUNK_RESPONDENTS):
        yield values[start : start + _CHUNK_RESPONDENTS]


class SharedHashes(Oracle):
    """An oracle with public hash functions; two respondents with the same value w and function collide with x together.

    That adds sum over w of n_w (n_w - 1) / sharing to the variance of x. Given the published hash functions it
    is a fixed bias; over hash functions it is variance, and intervals contain it.
    """

    key: int

    @property
    @abstractmethod
    def sharing(self) -> float:
        """Hash functions times (cells - 1): ordered pairs of equal values over this are the added variance."""

    @property
    @abstractmethod
    def functions(self) -> int:
        """Number of public hash functions."""

    @abstractmethod
    def _equal_pairs(self, counts: Counts) -> tuple[float, float]:
        """Ordered pairs of respondents under one function: those with equal values (unbiased), and all."""

    @cached_property
    def seeds(self) -> U32:
        """The public seeds."""
        return public_seeds(self.key, self.functions)

    def collision_mass(self, counts: Counts) -> float:
        """Return the estimated probability that two respondents hold the same value, clipped to [0, 1].

        The centred table of a function has mean product 1 - 1/cells for two respondents of one value and 0 for
        others; its second moment, less the known part of each respondent with itself, is unbiased.
        """
        equal, pairs = self._equal_pairs(counts)
        return float(np.clip(equal / pairs, 0, 1)) if pairs > 0 else 1.0

    def _shared(self, frequency: F64, counts: Counts) -> F64:
        """Sum over other values w of n_w (n_w - 1) / n^2, with estimates plugged in.

        Pairs of a respondent with itself are taken off: 1/n of a count without weights, `variance_scale` with them.
        """
        scale = counts.variance_scale
        everything = self.collision_mass(counts) * (1 - scale)
        own = frequency - scale
        own *= frequency
        np.subtract(everything, own, out=own)  # In place: domains have millions of values.
        return np.maximum(own, 0, out=own)

    def _variance(self, frequency: F64, counts: Counts) -> F64:
        shared = self._shared(frequency, counts)
        shared /= counts.variance_scale * self.sharing
        shared += super()._variance(frequency, counts)
        return shared

    def _combined(self, rows: F64, frequency: F64, counts: Counts) -> F64:
        """n times the variance of linear combinations, common collisions included.

        Two cells x and y are correlated through one event: where they collide, respondents of y are counted for x and
        respondents of x for y. Over all pairs that is f_x f_y, the square of `row @ f` less its diagonal.
        """
        scale = counts.variance_scale
        alone = self._shared(frequency, counts) - frequency**2
        shared = np.clip(rows**2 @ alone + (rows @ frequency) ** 2, 0, None)
        return super()._combined(rows, frequency, counts) + shared / (scale * self.sharing)

    def exact_variance(self, counts: npt.ArrayLike) -> F64:
        """Return the variance of every estimated count when `counts` are the true ones, over coins and functions."""
        true = np.asarray(counts, np.float64)
        pairs = true * (true - 1)
        return true.sum() * self.moments.variance(true / true.sum()) + (pairs.sum() - pairs) / self.sharing


def centred_pairs(tables: F64, keep: float, total2: float) -> tuple[float, float]:
    """Return `SharedHashes._equal_pairs` from tables (functions x cells) in which true cells stand out by `keep`."""
    cells = tables.shape[1]
    sums = tables.sum(axis=1, keepdims=True)
    centred = (tables - sums / cells) / keep
    # Every respondent makes a pair with itself, whose part of the second moment is known and not wanted.
    itself = total2 * (cells - 1) / cells / keep**2
    equal = (np.sum(centred**2) - itself) * cells / (cells - 1)
    return float(equal), float(np.sum(sums**2) - total2)
