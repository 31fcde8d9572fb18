"""Populations to simulate: how many respondents hold each value."""

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64


def zipf_counts(size: int, n: int, *, exponent: float = 1.1) -> I64:
    """Return counts of n respondents over `size` values, proportional to 1/rank^exponent."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return rounded_counts(weights, n)


def rounded_counts(weights: npt.NDArray[np.float64], n: int) -> I64:
    """Return integer counts proportional to `weights` that sum to n (method of largest remainders)."""
    exact = weights / weights.sum() * n
    counts = np.floor(exact).astype(np.int64)
    rest = n - int(counts.sum())
    # The most negative difference is the largest remainder; a stable sort breaks ties by the index.
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return counts


def respondents(counts: I64, rng: np.random.Generator) -> I64:
    """Return one value per respondent, in random order."""
    values = np.repeat(np.arange(len(counts)), counts)
    rng.shuffle(values)
    return values
