"""Effect size and multiple testing: Cramér's V corrected for noise, and Holm's correction for many tests."""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from tacit.tasks.marginals.marginals import Table
from tacit.tasks.marginals.sources import F64

_LEAST_SHARE = 1e-4
"""A floor for expected shares: the division by them would magnify the noise of rare cells."""


def cramers_v(table: Table) -> float:
    """Cramér's V of a table of two attributes, from 0 to 1, less what the noise alone would show.

    The noise adds the variance of every interaction over its expected share; interactions are p_ij - p_i p_j with the
    margins taken as known, which they are much better than the cells.
    """
    p = table.projected
    expected = np.outer(p.sum(axis=1), p.sum(axis=0))
    rows, columns = p.shape
    scale = np.maximum(expected, _LEAST_SHARE)
    phi_squared = float(np.sum((p - expected) ** 2 / scale))
    # With known margins r and c, p_ij - r_i c_j is linear in the cells: (I - r 1') P (I - c 1')'. `turned` is the
    # Kronecker product of both factors, from flat cells to flat interactions.
    sides: list[F64] = [np.eye(size) - p.sum(axis=1 - i)[:, None] for i, size in enumerate(p.shape)]
    turned: F64 = np.einsum("ia,jb->ijab", *sides).reshape(p.size, p.size)
    variance = np.einsum("ij,jk,ik->i", turned, table.covariance(), turned).reshape(p.shape)
    noise = float(np.sum(variance / scale))
    return sqrt(min(1.0, max(0.0, phi_squared - noise) / (min(rows, columns) - 1)))


def rejected_together(p_values: Sequence[float], level: float) -> list[bool]:
    """Return which of many tests reject with the family-wise error rate at `level` (Holm, 1979).

    >>> rejected_together([0.01, 0.04, 0.02], 0.05)
    [True, True, True]
    >>> rejected_together([0.04, 0.04], 0.05)
    [False, False]
    """
    out = [False] * len(p_values)
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        # Step-down: the smallest p-value against level/m, the next against level/(m - 1), up to the first that fails.
        if p_values[i] >= level / (len(p_values) - rank):
            break
        out[i] = True
    return out
