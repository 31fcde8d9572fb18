"""Populations to simulate: how many respondents hold each value."""

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


def zipf_counts(size: int, n: int, *, exponent: float = 1.1) -> I64:
    """n respondents over `size` values with frequencies proportional to 1/rank^exponent, rounded to sum to n."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return rounded_counts(weights, n)


def rounded_counts(weights: npt.NDArray[np.float64], n: int) -> I64:
    """Integer counts proportional to `weights` that sum to n (largest remainders get the rest)."""
    exact = weights / weights.sum() * n
    counts = np.floor(exact).astype(np.int64)
    rest = n - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return counts


def respondents(counts: I64, rng: np.random.Generator) -> I64:
    """One value per respondent, in random order."""
    values = np.repeat(np.arange(len(counts)), counts)
    rng.shuffle(values)
    return values
