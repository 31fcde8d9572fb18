"""Mean variance of histograms over all ranges, without listing them. Not local."""

from collections.abc import Callable

import numpy as np

from tacit.arrays import F64

# Entries of (prefix, cell) arrays that are worked on at a time.
_CHUNK_CELLS = 1 << 22


def mean_range_variance(variance_of: Callable[[F64], F64], size: int) -> float:
    """Return the average variance over all size (size + 1)/2 ranges, from those of the prefixes and of their sum.

    A range is a difference of two of the size + 1 prefixes C_0 = 0, C_1, ..., and the sum over pairs of
    (C_y - C_x)^2 is (size + 1) sum C_x^2 - (sum C_x)^2.
    """
    cells, step = np.arange(size), max(1, _CHUNK_CELLS // size)
    total = 0.0
    for start in range(1, size + 1, step):
        ends = np.arange(start, min(start + step, size + 1))
        total += float(variance_of((cells < ends[:, None]).astype(np.float64)).sum())
    # Cell i is in the size - i prefixes that end after it: the weights of the sum of all prefixes.
    together = float(variance_of((size - cells)[None, :].astype(np.float64))[0])
    return ((size + 1) * total - together) / (size * (size + 1) / 2)
