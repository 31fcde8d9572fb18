"""Exact error of histograms over all ranges at once. Not local."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

_CHUNK_CELLS = 1 << 22


def ranges_as_queries(ranges: npt.ArrayLike, size: int) -> F64:
    """Half-open ranges [low, high) as rows of zeros and ones."""
    low, high = np.asarray(ranges, np.int64).reshape(-1, 2).T
    cells = np.arange(size)
    return ((cells >= low[:, None]) & (cells < high[:, None])).astype(np.float64)


def mean_range_variance(variance_of: Callable[[F64], F64], size: int) -> float:
    """The average variance over all size (size + 1)/2 ranges, from those of the prefixes and of their sum.

    A range is a difference of two of the size + 1 prefixes C_0 = 0, C_1, ..., and the sum over pairs of
    (C_y - C_x)^2 is (size + 1) sum C_x^2 - (sum C_x)^2.
    """
    cells, step = np.arange(size), max(1, _CHUNK_CELLS // size)
    total = 0.0
    for start in range(1, size + 1, step):
        ends = np.arange(start, min(start + step, size + 1))
        total += float(variance_of((cells < ends[:, None]).astype(np.float64)).sum())
    together = float(variance_of((size - cells)[None, :].astype(np.float64))[0])
    return ((size + 1) * total - together) / (size * (size + 1) / 2)
