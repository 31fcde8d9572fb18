"""PriView: noisy views of a trusted curator, made to agree, and tables from them. Not local.

Qardaji, Yang and Li, "PriView: practical differentially private release of marginal contingency tables", SIGMOD 2014.
The central reference that CALM is measured against: its error falls with n, not with the root of n. Neighbours differ
by one tuple added or removed; each tuple is in one cell of every view, so the sensitivity is the number of views.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tacit.arrays import F64, I64
from tacit.central.histograms import true_counts
from tacit.central.noise import Randomness, noise_of
from tacit.device.numbers.budget import as_epsilon
from tacit.errors import InvalidSpec
from tacit.post.views.answers import answer_tables
from tacit.post.views.components import Components, structure_of
from tacit.post.views.nonneg import settle
from tacit.post.views.reconstruct import fit_entropy
from tacit.post.views.table import Attributes, checked_attributes, shape_of


@dataclass(frozen=True, eq=False)
class PriViewTables:
    """The released views, after agreement and non-negativity; any table from them is post-processing."""

    sizes: tuple[int, ...]
    raw: Components
    settled: Components

    def table(self, attributes: Sequence[int]) -> F64:
        """Return the shares of all combinations of some attributes; maximum entropy where no view covers them."""
        return answer_tables(self.settled, [checked_attributes(self.sizes, attributes)], fit_entropy)[0][0]


@dataclass(frozen=True, kw_only=True)
class PriView:
    """PriView over given views. Not local.

    Privacy: epsilon for one tuple added or removed; sensitivity t, the number of views. Variance: 2 t^2/epsilon^2 a
    cell of a view (Laplace). The number of tuples is taken as known. Reference: Qardaji et al., section 4.
    """

    epsilon: str
    sizes: tuple[int, ...]
    views: tuple[Attributes, ...]

    def __post_init__(self) -> None:
        """Raise InvalidSpec for an invalid epsilon or view."""
        as_epsilon(self.epsilon)
        if not self.views:
            raise InvalidSpec("priview: views is empty, must name at least one set of attributes")
        for view in self.views:
            checked_attributes(self.sizes, view)

    def release(self, records: I64, randomness: Randomness) -> PriViewTables:
        """Release noisy views of rows of answers, made to agree."""
        noise = noise_of(self.epsilon, len(self.views), randomness)
        n = max(1, len(records))
        tables: list[F64] = []
        for view in self.views:
            shape = shape_of(self.sizes, view)
            flat = np.ravel_multi_index(tuple(records[:, a] for a in view), shape)
            counts = true_counts(np.bincount(flat, minlength=prod(shape)))
            tables.append(((counts + noise.draw(counts.size)) / n).reshape(shape))
        structure = structure_of(self.sizes, self.views)
        # All cells have the same noise, so the margin of a view with many cells is noisier: weight by 1/cells.
        weight = 1 / structure.cells
        raw = structure.average(structure.grouped(tables), weight)
        return PriViewTables(self.sizes, raw, settle(structure, raw, weight))
