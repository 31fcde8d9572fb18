"""Two baselines for tables: attributes encoded as bits (MR-BE), and the uniform table (MR-UNI).

Every attribute is written in ceil(log2 size) binary attributes, on which any method works; tables lose the codes that
no answer has. Wang's dissertation, section 6.3.3: worse than views over the attributes themselves, since tables of k
attributes become tables of many more bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tacit.arrays import I64
from tacit.post.views.table import checked_attributes, shape_of
from tacit.tasks.marginals.marginals import Marginals
from tacit.tasks.marginals.sources import F64


def bits_of(sizes: Sequence[int]) -> list[int]:
    """Return the number of bits of every attribute, at least one."""
    return [max(1, (size - 1).bit_length()) for size in sizes]


def as_bits(records: I64, sizes: Sequence[int]) -> I64:
    """Return rows of answers as rows of bits, the most significant bit of an attribute first."""
    bits = bits_of(sizes)
    columns = [records[:, a] >> shift & 1 for a, count in enumerate(bits) for shift in range(count - 1, -1, -1)]
    return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class BinaryEncoded:
    """Tables over attributes, from answers about their bits."""

    sizes: tuple[int, ...]
    answers: Marginals

    def table(self, attributes: Sequence[int]) -> F64:
        """Return the consistent table of the bits without unused codes, renormalised to one."""
        chosen = checked_attributes(self.sizes, attributes)
        bits = bits_of(self.sizes)
        starts = [0, *accumulate(bits)]
        places = [starts[a] + i for a in chosen for i in range(bits[a])]
        # Bits of an attribute are neighbouring axes, so a reshape merges them to one axis of 2^bits codes. Sizes that
        # are no power of two leave codes at its end that nobody has, but that noise gives some mass.
        whole = self.answers.table(places).consistent.reshape([1 << bits[a] for a in chosen])
        valid = whole[tuple(slice(size) for size in shape_of(self.sizes, chosen))]
        return valid / valid.sum() if valid.sum() > 0 else np.full(valid.shape, 1 / valid.size)


def uniform_sse(truth: F64) -> float:
    """Return the squared error of the uniform table; a method above it is worse than knowing nothing.

    >>> uniform_sse(np.array([.5, .5])), uniform_sse(np.array([1., 0.]))
    (0.0, 0.5)
    """
    return float(np.sum((truth - 1 / truth.size) ** 2))
