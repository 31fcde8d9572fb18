"""The exact variance of tables from views that were made to agree, given the respondents.

The agreeing table puts on the cells of view i the coefficients p_i K_B, where p_i is the weight of the view, B the
attributes it shares with the table, and K_B the sum over the interactions a within B of E_a / P_a: E_a projects onto
the interaction and P_a is the weight of all views that contain it. K_B does not depend on the view, so that sums over
all views with the same B suffice, and those follow by inclusion and exclusion from sums over the views that contain
each interaction. As for the levels of a tree, every view was answered by a random part of everybody, and the parts are
disjoint: the spread of the answer itself is taken off once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tacit.arrays import F64
from tacit.core.statistics.moments import Moments
from tacit.post.views.components import Structure
from tacit.post.views.table import Attributes, margin, shape_of, subsets


def interaction(tensor: F64, attributes: Attributes, within: Attributes) -> F64:
    """Return the pure interaction of some attributes of a stack of tables, spread evenly over the others."""
    for axis, attribute in enumerate(attributes, start=1):
        mean = tensor.mean(axis=axis, keepdims=True)
        tensor = tensor - mean if attribute in within else np.broadcast_to(mean, tensor.shape)
    return tensor


@dataclass(frozen=True)
class Precision:
    """How well a view is known: the moments of its mechanism, and 1/n of its reports; infinite without any."""

    moments: Moments
    scale: float

    def noise(self, cells: float) -> float:
        """Return the variance per squared coefficient of a contrast of cells, with evenly spread respondents."""
        if not np.isfinite(self.scale):
            return np.inf
        return self.moments.contrast(cells) * self.scale


def view_weights(structure: Structure, precision: Sequence[Precision]) -> F64:
    """Return the weight of every view: one over the variance of its interactions, up to a common factor."""
    noise = [p.noise(cells) for p, cells in zip(precision, structure.cells, strict=True)]
    return 1 / (np.array(noise) * structure.cells)


@dataclass(frozen=True, eq=False)
class ViewVariance:
    """Variances of linear answers from agreeing views, against all respondents."""

    structure: Structure
    precision: Sequence[Precision]
    respondents: float
    share: Callable[[Attributes], F64]
    """The table that is plugged in for the truth."""

    @cached_property
    def weight(self) -> F64:
        """The weight of every view."""
        return view_weights(self.structure, self.precision)

    @cached_property
    def total(self) -> F64:
        """The weight behind every interaction."""
        return self.structure.sums(self.weight)

    @cached_property
    def _sums(self) -> F64:
        """Three sums per interaction over the views that contain it, with g = p^2/n for weight p and n reports.

        0: g times the coefficient of sum w^2 f in `Moments.of_sums` for contrasts; 1: g L times that of sum w^2, with L
        the view's cells; 2: g N/(N - 1), for the sampling of the view's respondents.
        """
        scale = np.array([p.scale if np.isfinite(p.scale) else 0.0 for p in self.precision])
        g = scale * self.weight**2
        m = [p.moments for p in self.precision]
        own = np.array([x.own - x.other - 2 * x.own_other + 2 * x.other_other for x in m])
        other = np.array([x.other - x.other_other for x in m])
        everybody = self.respondents / max(1.0, self.respondents - 1)
        rows = (g * own, g * other * self.structure.cells, g * everybody)
        return np.stack([self.structure.sums(row) for row in rows])

    def _exactly(self, inner: Attributes, attributes: Attributes) -> F64:
        """The sums over the views that share exactly `inner` with a table, by inclusion and exclusion."""
        rest = [attribute for attribute in attributes if attribute not in inner]
        out = np.zeros(3)
        for more in subsets(rest):
            place = self.structure.index.get(tuple(sorted(inner + more)))
            if place is not None:
                out += (-1) ** len(more) * self._sums[:, place]
        return out

    def _turned(self, coefficients: F64, inner: Attributes) -> F64:
        """Rows of coefficients times K_B: the sum of their known interactions, each over its weight."""
        tensor = coefficients.reshape(len(coefficients), *shape_of(self.structure.sizes, inner))
        out = np.zeros(tensor.shape)
        for within in subsets(inner):
            place = self.structure.index.get(within)
            if within and place is not None and self.total[place] > 0:
                out += interaction(tensor, inner, within) / self.total[place]
        return out.reshape(len(coefficients), -1)

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Return the variance of `rows @ table`, the cells of the table in order."""
        shape = shape_of(self.structure.sizes, attributes)
        tensor = rows.reshape(len(rows), *shape)
        variance = -self._spread(attributes, rows)
        for inner, sums in self._shared(attributes):
            # Views that share exactly `inner` with the table see the answer's margin on it, spread over their cells.
            cells = prod(shape_of(self.structure.sizes, inner))
            coefficients = margin(tensor, attributes, inner).reshape(len(rows), cells) * (cells / prod(shape))
            coefficients = self._turned(coefficients, inner)
            mass = self.share(inner).ravel()
            squares, square_mass = (coefficients**2).sum(axis=1), coefficients**2 @ mass
            variance += sums[0] * square_mass + sums[1] * squares / cells
            variance += sums[2] * (square_mass - (coefficients @ mass) ** 2)
        return np.clip(variance, 0, None)

    def reach(self, attributes: Attributes) -> float:
        """Return the most that one report, replaced by any other, moves any cell of a table.

        A report belongs to one view. It moves the estimate of a cell of the view by at most the step of its mechanism
        over the view's reports, and may move all cells at once.
        """
        cells, furthest = prod(shape_of(self.structure.sizes, attributes)), 0.0
        tensor = np.eye(cells).reshape(cells, *shape_of(self.structure.sizes, attributes))
        for place, (view, precision) in enumerate(zip(self.structure.views, self.precision, strict=True)):
            inner = tuple(sorted(set(view) & set(attributes)))
            if not inner or not np.isfinite(precision.scale):
                continue
            few = prod(shape_of(self.structure.sizes, inner))
            rows = self._turned(margin(tensor, attributes, inner).reshape(cells, few) * (few / cells), inner)
            # Every cell of the view takes the coefficient of its margin on what is shared.
            spread = float(np.abs(rows).sum(axis=1).max()) * float(self.structure.cells[place]) / few
            furthest = max(furthest, float(self.weight[place]) * precision.moments.step * precision.scale * spread)
        return furthest

    def covariance(self, attributes: Attributes) -> F64:
        """Return the covariance matrix of the cells of a table."""
        sizes = self.structure.sizes
        shape = shape_of(sizes, attributes)
        eye = np.eye(prod(shape))
        out = -self._spread_matrix(attributes, len(eye))
        for inner, sums in self._shared(attributes):
            cells = prod(shape_of(sizes, inner))
            turned = margin(eye.reshape(len(eye), *shape), attributes, inner).reshape(len(eye), cells)
            turned = self._turned(turned * (cells / len(eye)), inner)
            mass = self.share(inner).ravel()
            out += (turned * ((sums[0] + sums[2]) * mass + sums[1] / cells)) @ turned.T
            out -= sums[2] * np.outer(turned @ mass, turned @ mass)
        return out

    def _shared(self, attributes: Attributes) -> Iterator[tuple[Attributes, F64]]:
        """Subsets that are exactly what some views share with a table, with the sums over those views."""
        for inner in subsets(attributes):
            if inner and self.structure.index.get(inner) is not None:
                sums = self._exactly(inner, attributes)
                # Inclusion and exclusion leaves rounding errors where no view shares exactly this.
                if np.abs(sums).max() > 1e-12 * np.abs(self._sums[:, self.structure.index[inner]]).max():
                    yield inner, sums

    def _leaves_out(self, attributes: Attributes) -> bool:
        """Whether some interaction of a table is not known."""
        index = self.structure.index
        return any(a not in index or self.total[index[a]] <= 0 for a in subsets(attributes) if a)

    def _known(self, attributes: Attributes, rows: F64) -> F64:
        """Linear answers without their unknown interactions, which the table has set to zero."""
        if not self._leaves_out(attributes):
            return rows
        tensor = rows.reshape(len(rows), *shape_of(self.structure.sizes, attributes))
        known = [a for a in subsets(attributes) if a and a in self.structure.index]
        parts = (interaction(tensor, attributes, within) for within in known)
        return sum(parts, np.zeros(tensor.shape)).reshape(len(rows), -1)

    def _spread(self, attributes: Attributes, rows: F64) -> F64:
        """The variance of one respondent's contribution over n - 1, of the answer without its unknown interactions."""
        rows, mass = self._known(attributes, rows), self.share(attributes).ravel()
        return (rows**2 @ mass - (rows @ mass) ** 2) / max(1.0, self.respondents - 1)

    def _spread_matrix(self, attributes: Attributes, cells: int) -> F64:
        """`_spread` as a covariance matrix of the cells."""
        known, mass = self._known(attributes, np.eye(cells)), self.share(attributes).ravel()
        return ((known * mass) @ known.T - np.outer(known @ mass, known @ mass)) / max(1.0, self.respondents - 1)
