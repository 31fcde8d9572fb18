"""Flat and sorted histograms of a trusted curator (HAY-L, HAY-S). Not local.

Hay, Rastogi, Miklau and Suciu, "Boosting the accuracy of differentially private histograms through consistency",
VLDB 2010. Neighbours differ by one tuple added or removed. `release` is the one step that costs privacy; everything
else reads what it returned and can be repeated freely.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.central.noise import Randomness, noise_of
from tacit.device.numbers.budget import as_epsilon
from tacit.errors import InvalidSpec, InvalidValue
from tacit.post.frequencies.isotonic import isotonic_regression

Noisy = npt.NDArray[Any]

MAX_CELLS = 1 << 24
# Counts and their noise stay exact in doubles, which hold integers up to 2^53.
_LARGEST = 1 << 52


def true_counts(counts: npt.ArrayLike, size: int | None = None) -> I64:
    """Return counts as int64; refused unless integers from 0 to 2^52 and `size` many. Errors do not show a count."""
    array = np.asarray(counts)
    if array.ndim != 1 or not 1 <= len(array) <= MAX_CELLS:
        raise InvalidValue(f"counts must be one list of 1 to {MAX_CELLS} numbers")
    if array.dtype.kind not in "iuf" or not np.all((array >= 0) & (array <= _LARGEST) & (array == np.floor(array))):
        raise InvalidValue("a count is not a whole number from 0 to 2^52")
    if array.sum(dtype=np.float64) > _LARGEST:
        raise InvalidValue("the counts sum to more than 2^52")
    if size is not None and len(array) != size:
        raise InvalidValue(f"there are {len(array)} counts, must be {size}, the size of the histogram")
    return array.astype(np.int64)


def whole_counts(values: npt.ArrayLike) -> I64:
    """Return the nearest non-negative integers. Biased; post-processing."""
    return np.rint(np.clip(values, 0, None)).astype(np.int64)


def whole_prefixes(values: npt.ArrayLike) -> I64:
    """Return integers by rounding prefix sums: every range of them is within one of that of the values.

    The values must not be negative.
    """
    # A range is a difference of two prefix sums, each rounded by at most a half.
    sums = np.rint(np.cumsum(values, dtype=np.float64)).astype(np.int64)
    return np.diff(sums, prepend=0)


@dataclass(frozen=True, kw_only=True)
class HayL:
    """HAY-L: one noisy count per cell. Not local.

    Privacy: epsilon for one tuple; sensitivity 1. Variance: 2 a/(1 - a)^2 a cell with a = e^-epsilon (2/epsilon^2 for
    Laplace noise), r times that for a range of r cells. Reference: Hay et al., section 2.1.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> HayL(epsilon="1").release([10, 0, 3], ReplayCoins(b"seed")).tolist()
    [10, 0, 2]
    """

    epsilon: str

    def __post_init__(self) -> None:
        """Refuse an epsilon that cannot be."""
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon).text)

    def release(self, counts: npt.ArrayLike, randomness: Randomness) -> Noisy:
        """Return noisy counts, unbiased: integers from coins, floats from a numpy generator."""
        true = true_counts(counts)
        return true + noise_of(self.epsilon, 1, randomness).draw(len(true))


@dataclass(frozen=True, kw_only=True)
class HayS:
    """HAY-S: the counts in ascending order, without saying whose they are. Not local.

    For degree sequences and frequencies of frequencies. Sorting keeps the sensitivity at 1 (Proposition 1), and the
    order, which is known, takes most of the noise away again. Reference: Hay et al., section 3.

    >>> HayS(epsilon="1").infer([14, 9, 10, 15]).tolist()
    [11.0, 11.0, 11.0, 15.0]
    """

    epsilon: str

    def __post_init__(self) -> None:
        """Refuse an epsilon that cannot be."""
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon).text)

    def release(self, counts: npt.ArrayLike, randomness: Randomness) -> Noisy:
        """Return the sorted counts with noise, unbiased and no longer in order."""
        true = np.sort(true_counts(counts))
        return true + noise_of(self.epsilon, 1, randomness).draw(len(true))

    def infer(self, noisy: npt.ArrayLike) -> F64:
        """Return the nearest ascending sequence (isotonic regression, Theorem 1); its expected error never grows."""
        return isotonic_regression(_numbers(noisy))

    def sort_and_round(self, noisy: npt.ArrayLike) -> I64:
        """Return the baseline HAY-SR: the released counts sorted, rounded to non-negative integers."""
        return whole_counts(np.sort(_numbers(noisy)))


def _numbers(noisy: npt.ArrayLike) -> F64:
    values = np.asarray(noisy, np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InvalidSpec("a noisy sequence must be one list of numbers, as `release` returns it")
    return values
