"""Types of numpy arrays, named once (every annotation in the package uses these), and indices of combinations."""

from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

Digits = TypeVar("Digits", I64, U64)


def flat_index(digits: Iterable[Digits], sizes: Iterable[int]) -> Digits:
    """Return the indices of combinations: mixed-radix numbers with a digit per attribute, the last one fastest.

    Digits of several shapes are broadcast. There must be one at least, below its size, and the sizes must multiply to
    no more than the type holds: nothing is checked here.

    >>> flat_index([np.array([0, 1]), np.array([2, 0])], [2, 3]).tolist()
    [2, 3]
    """
    pairs = zip(digits, sizes, strict=True)
    # Horner's scheme. The first size is not needed, so that a single attribute may fill the type.
    index, _ = next(pairs)
    for digit, size in pairs:
        # A Python integer takes on the type of the array that it multiplies.
        index = cast("Digits", index * size + digit)
    return index


def crossed_index(sides: Sequence[I64], sizes: Iterable[int]) -> I64:
    """Return the indices of all combinations of some values of every attribute, the last attribute fastest.

    >>> crossed_index([np.array([1]), np.array([0, 2])], [2, 3]).tolist()
    [3, 5]
    """
    return flat_index(np.ix_(*sides), sizes).reshape(-1)
