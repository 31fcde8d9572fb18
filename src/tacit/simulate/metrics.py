"""Scores of a list of found values against the truth: F1, normalised cumulative rank (NCR), variance of the hits."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np


def true_top(counts: Mapping[Any, float], k: int) -> list[Any]:
    """Return the k values of largest count, most frequent first; ties are broken by the value."""
    return sorted(counts, key=lambda value: (-counts[value], value))[:k]


def f1_score(truth: Iterable[Hashable], found: Iterable[Hashable]) -> float:
    """Return the harmonic mean of precision and recall; 0 without a hit.

    >>> f1_score([2, 3, 4, 5], [1, 2, 3])
    0.5714285714285714
    """
    want, got = set(truth), set(found)
    hits = len(got & want)
    return 2 * hits / (len(got) + len(want)) if hits else 0.0


def ncr_score(truth: Sequence[Hashable], found: Iterable[Hashable]) -> float:
    """Return the normalised cumulative rank: k points for rank 1 down to 1 for rank k, over the best possible sum.

    >>> ncr_score(["a", "b", "c"], ["a", "x"])
    0.5
    """
    k, got = len(truth), set(found)
    points = sum(k - rank for rank, value in enumerate(truth) if value in got)
    return points / (k * (k + 1) / 2) if k else 0.0


def hit_variance(truth: Mapping[Any, float], found: Mapping[Any, float]) -> float | None:
    """Return the mean squared error of the estimated counts over the hits; None without a hit.

    Only hits count, so a method with few hits is scored on easy values.

    >>> hit_variance({"a": 10, "b": 5}, {"a": 12.0, "x": 3.0})
    4.0
    """
    hits = [value for value in truth if value in found]
    return float(np.mean([(found[value] - truth[value]) ** 2 for value in hits])) if hits else None
