"""MR-BE and MR-UNI: baselines. Attributes as bits, and knowing nothing.

Every attribute is written in ceil(log2 size) binary attributes, on which any method works; tables lose the codes that
no answer has. Wang's dissertation, section 6.3.3: worse than views over the attributes themselves, since tables of k
attributes become tables of many more bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from tacit.post.marginal_table import checked_attributes, shape_of
from tacit.tasks.marginal_sources import F64
from tacit.tasks.marginals import Marginals

I64 = npt.NDArray[np.int64]


def bits_of(sizes: Sequence[int]) -> list[int]:
    """Bits of every attribute, at least one."""
    return [max(1, (size - 1).bit_length()) for size in sizes]


def as_bits(records: I64, sizes: Sequence[int]) -> I64:
    """Rows of answers as rows of bits, the most significant first."""
    bits = bits_of(sizes)
    columns = [records[:, a] >> shift & 1 for a, count in enumerate(bits) for shift in range(count - 1, -1, -1)]
    return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class BinaryEncoded:
    """Tables over attributes from answers about their bits."""

    sizes: tuple[int, ...]
    answers: Marginals

    def table(self, attributes: Sequence[int]) -> F64:
        """The consistent table of the bits, without codes that no answer has, scaled to one."""
        chosen = checked_attributes(self.sizes, attributes)
        bits = bits_of(self.sizes)
        starts = [0, *accumulate(bits)]
        places = [starts[a] + i for a in chosen for i in range(bits[a])]
        whole = self.answers.table(places).consistent.reshape([1 << bits[a] for a in chosen])
        kept = whole[tuple(slice(size) for size in shape_of(self.sizes, chosen))]
        return kept / kept.sum() if kept.sum() > 0 else np.full(kept.shape, 1 / kept.size)


def uniform_sse(truth: F64) -> float:
    """The squared error of the uniform table; a method above it is worse than knowing nothing.

    >>> uniform_sse(np.array([.5, .5])), uniform_sse(np.array([1., 0.]))
    (0.0, 0.5)
    """
    return float(np.sum((truth - 1 / truth.size) ** 2))
