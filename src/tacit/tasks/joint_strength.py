"""How strongly two questions go together, and many tests at once."""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from tacit.tasks.marginal_sources import F64
from tacit.tasks.marginals import Table

_LEAST_SHARE = 1e-4
"""Cells that are expected to be rarer count as if they were this frequent, lest a division magnify their noise."""


def cramers_v(table: Table) -> float:
    """Cramér's V of a table of two attributes, from 0 to 1, less what the noise alone would show.

    The noise adds the variance of every interaction over its expected share; interactions are p_ij - p_i p_j with the
    margins taken as known, which they are much better than the cells.
    """
    p = table.consistent
    expected = np.outer(p.sum(axis=1), p.sum(axis=0))
    rows, columns = p.shape
    scale = np.maximum(expected, _LEAST_SHARE)
    found = float(np.sum((p - expected) ** 2 / scale))
    sides: list[F64] = [np.eye(size) - p.sum(axis=1 - i)[:, None] for i, size in enumerate(p.shape)]
    turned: F64 = np.einsum("ia,jb->ijab", *sides).reshape(p.size, p.size)
    variance = np.einsum("ij,jk,ik->i", turned, table.covariance(), turned).reshape(p.shape)
    noise = float(np.sum(variance / scale))
    return sqrt(min(1.0, max(0.0, found - noise) / (min(rows, columns) - 1)))


def rejected_together(p_values: Sequence[float], level: float) -> list[bool]:
    """Which of many tests reject at a level that holds for all of them together (Holm, 1979).

    >>> rejected_together([0.01, 0.04, 0.02], 0.05)
    [True, True, True]
    >>> rejected_together([0.04, 0.04], 0.05)
    [False, False]
    """
    out = [False] * len(p_values)
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[i] >= level / (len(p_values) - rank):
            break
        out[i] = True
    return out
