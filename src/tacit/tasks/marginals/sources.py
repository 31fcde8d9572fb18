"""Where tables come from: one class per way of asking, all with the same interface (`TableSource`).

    FromViews   each respondent answers one view (CALM, MARG-*)             averages of overlapping views
    FromSigns   each respondent reports one Hadamard coefficient (INP-HT)   inverse transform
    FromWhole   one frequency oracle over all combinations (INP-*, FC)      sums of its cells
    FromEach    every attribute reported with a share of epsilon (INP-EM)   inverse of the product channel

A source gives raw tables, which are linear in the reports and unbiased for everything that was asked, and the exact
variance of any linear combination of their cells. The error is measured against the respondents, not a population: it
consists of the mechanism's noise and of having asked each question of a random group of them, without replacement.

Variances depend on the truth. `truth` is the table to plug in; without one, the raw table clipped to a distribution is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from math import prod, sqrt
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.statistics.moments import Moments
from tacit.device.families.coefficients import Coefficients
from tacit.post.views.components import Components, Structure
from tacit.post.views.table import Attributes, along_axes, centred, margin, shape_of, subsets
from tacit.post.views.variance import Precision, ViewVariance

EXACT_CELLS, _SAMPLED_CELLS = 64, 32
"""Up to so many cells the noise of an interaction is exact; beyond, it is that of some cells, spread evenly."""

Share = Callable[[Attributes], F64]
"""Gives the distribution of some attributes as a table with one axis per attribute."""


class TableSource(Protocol):
    """The interface of everything that tables of a collection can be read from."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of answers of every attribute."""
        ...

    def raw(self, attributes: Attributes) -> F64:
        """Return the raw table of some attributes; interactions that nobody was asked about are taken as zero."""
        ...

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Return the variance of `rows @ table`, one number per row; the cells of the table are in row-major order."""
        ...

    def covariance(self, attributes: Attributes) -> F64:
        """Return the covariance matrix of the cells of a table, in row-major order."""
        ...

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """Return the minimal sets of attributes whose interaction is unknown: not asked, or without reports."""
        ...

    def supposing(self, truth: Share) -> "TableSource":
        """Return the same source with the variances that it would have if the truth were this."""
        ...

    def step(self, attributes: Attributes) -> float:
        """Return how much one report moves a cell: the grid width that intervals allow for (continuity correction).

        With several groups of respondents it is that of the group with the most reports, the finest grid.
        """
        ...


def plugged(table: F64) -> F64:
    """Clip and normalise a raw table to a distribution, to be plugged into variances; uniform if nothing is left."""
    positive = np.clip(table, 0, None)
    total = float(positive.sum())
    return positive / total if total > 0 else np.full(table.shape, 1 / table.size)


def polarised(linear: Callable[[F64], F64], cells: int) -> F64:
    """Return the matrix of a quadratic form by polarisation: cov(i, j) = (var(i + j) - var(i) - var(j)) / 2."""
    eye = np.eye(cells)
    own = linear(eye)
    out = np.diag(own)
    for i in range(1, cells):
        out[i, :i] = out[:i, i] = (linear(eye[i] + eye[:i]) - own[i] - own[:i]) / 2
    return out


def interaction_variance(source: TableSource, attributes: Attributes) -> float:
    """Return the noise in the interaction of some attributes: the variance of its cells, summed.

    Of centred cells, not of cells: where single attributes are known better than the rest of a table, because they are
    asked alone or in other tables as well, the noise of a cell is not spread evenly over all directions.
    """
    shape = shape_of(source.sizes, attributes)
    cells = prod(shape)
    some = np.arange(cells) if cells <= EXACT_CELLS else np.linspace(0, cells - 1, _SAMPLED_CELLS).astype(np.int64)
    rows = np.zeros((len(some), cells))
    rows[np.arange(len(some)), some] = 1
    inner = centred(rows.reshape(-1, *shape), len(shape)).reshape(rows.shape)
    return cells * float(source.linear(attributes, inner).mean())


@dataclass(frozen=True, eq=False)
class FromViews:
    """Overlapping views made to agree: each interaction is the weighted average of the views that contain it."""

    structure: Structure
    precision: Sequence[Precision]
    components: Components
    respondents: float
    truth: Share | None = None
    _shares: dict[Attributes, F64] = field(default_factory=dict[Attributes, F64])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of answers of every attribute."""
        return self.structure.sizes

    def _share(self, attributes: Attributes) -> F64:
        """Return the distribution to plug into variances: the supposed truth, or the clipped estimate (cached)."""
        if self.truth is not None:
            return self.truth(attributes)
        if attributes not in self._shares:
            self._shares[attributes] = plugged(self.components.table(attributes))
        return self._shares[attributes]

    @cached_property
    def uncertainty(self) -> ViewVariance:
        """The variances of linear answers; set up once, since the weights of all views are needed for any of them."""
        return ViewVariance(self.structure, self.precision, self.respondents, self._share)

    def raw(self, attributes: Attributes) -> F64:
        """The table put together from the averaged interactions; it has the same margins as every other table."""
        return self.components.table(attributes)

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Return exact variances; interactions that no view contains are zero by definition and add none."""
        return self.uncertainty.linear(attributes, rows)

    def covariance(self, attributes: Attributes) -> F64:
        """Return the exact covariance matrix; interactions that no view contains add nothing to it."""
        return self.uncertainty.covariance(attributes)

    def supposing(self, truth: Share) -> "FromViews":
        """Return the source with this truth plugged into its variances."""
        return replace(self, truth=truth)

    def reach(self, attributes: Attributes) -> float:
        """Return the most that one report moves any cell of a raw table."""
        return self.uncertainty.reach(attributes)

    def step(self, attributes: Attributes) -> float:
        """Return the step of the view with the most reports among those that contain any of the attributes."""
        views = zip(self.structure.views, self.precision, strict=True)
        about = [p.moments.step * p.scale for view, p in views if set(view) & set(attributes)]
        return min(about, default=0.0)

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """Return the minimal sets that no view with reports contains."""
        # `subsets` comes by rising size, so a superset of a missing set is seen after it and is not minimal.
        minimal: list[Attributes] = []
        for inner in subsets(attributes):
            covered = any(set(known) <= set(inner) for known in minimal)
            if not covered and self.components.component(inner) is None:
                minimal.append(inner)
        return minimal


def signs_of(bits: int) -> F64:
    """Return the Hadamard matrix of an attribute of so many bits: (-1)^popcount(mask AND value), masks are rows."""
    at = np.arange(1 << bits)
    odd = np.bitwise_count(at[:, None] & at[None, :]) & 1
    return np.where(odd, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class FromSigns:
    """Hadamard coefficients, each estimated from its own group of respondents (INP-HT, FT).

    The coefficient of masks (u_1, ..., u_m) is E[(-1)^(popcount(u_1 & x_1) + ... )], between -1 and 1. A table of some
    attributes needs only the coefficients whose masks are zero elsewhere; all masks zero is the constant 1. An
    attribute whose size is not a power of two uses the first `size` columns of the next larger matrix.
    """

    family: Coefficients
    theta: F64
    noise: float
    """Variance of one respondent's unbiased sign, given the sign."""
    scale: F64
    """1/n of every coefficient's reports; infinite without any."""
    respondents: float
    truth: Share | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of answers of every attribute."""
        return self.family.sizes

    def _bits(self, attributes: Attributes) -> list[int]:
        return [self.family.masks[attribute].bit_length() for attribute in attributes]

    def _matrices(self, attributes: Attributes) -> list[F64]:
        pairs = zip(attributes, self._bits(attributes), strict=True)
        return [signs_of(bits)[:, : self.sizes[attribute]] for attribute, bits in pairs]

    def _places(self, attributes: Attributes) -> npt.NDArray[np.int64]:
        """The index of the coefficient of every combination of masks; -1 for the constant and those not asked."""
        shape = [1 << bits for bits in self._bits(attributes)]
        out = np.full(shape, -1, np.int64)
        for masks in product(*map(range, shape)):
            member = tuple((a, mask) for a, mask in zip(attributes, masks, strict=True) if mask)
            if 0 < len(member) <= self.family.k:
                out[masks] = self.family.rank(member)
        return out

    def raw(self, attributes: Attributes) -> F64:
        """Return the inverse Hadamard transform of the table's coefficients."""
        places = self._places(attributes)
        theta = np.where(places >= 0, self.theta[places], 0.0)
        theta.flat[0] = 1.0  # All masks zero: the total, which is known.
        return along_axes([matrix.T for matrix in self._matrices(attributes)], theta) / theta.size

    def _each(self, attributes: Attributes) -> tuple[F64, F64]:
        """The variance of every coefficient of a table (zero where it was not asked), and the table plugged in."""
        places = self._places(attributes).ravel()
        everybody = self.respondents / max(1.0, self.respondents - 1)
        # A coefficient that nobody answered adds nothing here; it is reported as missing instead.
        answered = (places >= 0) & np.isfinite(self.scale[places])
        scale = np.where(answered, self.scale[places], 0.0)
        share = self.truth(attributes) if self.truth else plugged(self.raw(attributes))
        theta = (
            along_axes(self._matrices(attributes), share).ravel() if self.truth else np.clip(self.theta[places], -1, 1)
        )
        return scale * (self.noise + everybody * (1 - theta**2)), share.ravel()

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Return noise plus sampling of groups, less the spread of the answer itself.

        Coefficients come from disjoint groups drawn without replacement from the same respondents. Treating the groups
        as independent overcounts by the variance of the answer among them, over (respondents - 1), which is subtracted.
        """
        each, mass = self._each(attributes)
        tensor = np.moveaxis(rows.reshape(len(rows), *shape_of(self.sizes, attributes)), 0, -1)
        squares = along_axes(self._matrices(attributes), tensor).reshape(len(each), len(rows)) ** 2 / len(each) ** 2
        spread = (rows**2 @ mass - (rows @ mass) ** 2) / max(1.0, self.respondents - 1)
        return np.clip(each @ squares - spread, 0, None)

    def covariance(self, attributes: Attributes) -> F64:
        """Return the covariance matrix behind `linear`, in closed form: S' diag(variances) S less the spread."""
        each, mass = self._each(attributes)
        signs = reduce(np.kron, self._matrices(attributes)) / len(each)
        spread = (np.diag(mass) - np.outer(mass, mass)) / max(1.0, self.respondents - 1)
        return (signs.T * each) @ signs - spread

    def supposing(self, truth: Share) -> "FromSigns":
        """Return the source with this truth plugged into its variances."""
        return replace(self, truth=truth)

    def step(self, attributes: Attributes) -> float:
        """The change of a cell when one reported sign flips: twice an unbiased sign, over its group and 2^bits."""
        places = self._places(attributes)
        scale = self.scale[places[places >= 0]]
        return 2 * sqrt(self.noise + 1) * float(scale.min()) / places.size if scale.size else 0.0

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """Return sets of more than k attributes, or, within k, those with a coefficient that nobody reported."""
        if len(attributes) > self.family.k:
            return list(_of_size(attributes, self.family.k + 1))
        places = self._places(attributes)
        empty = np.argwhere((places >= 0) & ~np.isfinite(self.scale[places]))
        return sorted({tuple(a for a, mask in zip(attributes, row, strict=True) if mask) for row in empty.tolist()})


def _of_size(attributes: Attributes, size: int) -> list[Attributes]:
    return [inner for inner in subsets(attributes) if len(inner) == size]


@dataclass(frozen=True, eq=False)
class FromWhole:
    """One frequency oracle over all combinations; tables are sums of its cells, with the total fixed at one."""

    shape: tuple[int, ...]
    whole: F64
    moments: Moments
    scale: float
    respondents: float
    fix_total: bool = True
    """Whether tables are moved to sum to one, which takes variance off; the errors that papers print do without."""
    truth: Share | None = None
    combined: Callable[[F64], F64] | None = None
    """The variance of linear answers over all combinations, for oracles whose error is more than their moments say."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of answers of every attribute."""
        return self.shape

    def raw(self, attributes: Attributes) -> F64:
        """Return the sums of the oracle's cells; the error of the total is spread evenly over the table."""
        table = margin(self.whole, range(len(self.shape)), attributes)
        return table + (1 - table.sum()) / table.size if self.fix_total else table

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Return variances from four sums over the cells (see `Moments.of_sums`), without the huge table itself."""
        # Fixing the total projects the table onto sum one; on the query's side the projection removes each row's mean.
        if self.fix_total:
            rows = rows - rows.mean(axis=1, keepdims=True)
        # Every cell of the small table stands for this many cells of the oracle, all with the same weight.
        times = prod(self.shape) / rows.shape[1]
        mass = self.truth(attributes).ravel() if self.truth else plugged(self.raw(attributes)).ravel()
        inner, squares = rows @ mass, rows**2 @ mass
        if self.combined is not None:
            noise = self.combined(self._spread(attributes, rows))
        else:
            sums = (times * rows.sum(axis=1), times * (rows**2).sum(axis=1), inner, squares)
            noise = self.moments.of_sums(*sums) * self.scale
        # Only a part of the respondents may have answered: sampling without replacement (finite population correction).
        part = max(0.0, self.scale - 1 / max(1.0, self.respondents)) * self.respondents / max(1.0, self.respondents - 1)
        return np.clip(noise + part * (squares - inner**2), 0, None)

    def covariance(self, attributes: Attributes) -> F64:
        """Return the covariance matrix by polarisation of `linear`."""
        return polarised(lambda rows: self.linear(attributes, rows), prod(shape_of(self.shape, attributes)))

    def _spread(self, attributes: Attributes, rows: F64) -> F64:
        """Repeat rows over the table's cells along the other attributes, to rows over all combinations."""
        wide = [size if axis in attributes else 1 for axis, size in enumerate(self.shape)]
        full = np.broadcast_to(rows.reshape(len(rows), *wide), (len(rows), *self.shape))
        return full.reshape(len(rows), -1)

    def supposing(self, truth: Share) -> "FromWhole":
        """The source with this truth plugged in; terms beyond the moments hardly depend on it and are dropped."""
        return replace(self, truth=truth, combined=None)

    def step(self, attributes: Attributes) -> float:
        """Return the step of one cell of the oracle."""
        del attributes
        return self.moments.step * self.scale

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """Return nothing, since every combination was asked; the whole table without reports."""
        return [attributes] if not np.isfinite(self.scale) else []


@dataclass(frozen=True, eq=False)
class FromEach:
    """Every attribute reported on its own by GRR, at a share of epsilon: the inverse of the product channel (INP-INV).

    The joint channel is the Kronecker product of the attributes' channels, so it is inverted one axis at a time. The
    variance grows by the product of the attributes' factors: this is for a few attributes, or a large epsilon.
    """

    sizes: tuple[int, ...]
    channels: Sequence[tuple[float, float]]
    """Probabilities (kept, moved to one other value) of every attribute."""
    seen: Share
    """The shares of reported combinations of some attributes."""
    n: float

    def _inverses(self, attributes: Attributes) -> list[F64]:
        """Return the inverse of every attribute's channel."""
        out: list[F64] = []
        for attribute in attributes:
            # The channel is (p - q) I + q J with p + (size - 1) q = 1, so (I - q J) / (p - q) is its exact inverse.
            p, q = self.channels[attribute]
            out.append((np.eye(self.sizes[attribute]) - q) / (p - q))
        return out

    def matrices(self, attributes: Attributes) -> list[F64]:
        """Return the transition matrix of every attribute: entry [report, truth], p on the diagonal and q elsewhere."""
        return [
            np.eye(self.sizes[a]) * (self.channels[a][0] - self.channels[a][1]) + self.channels[a][1]
            for a in attributes
        ]

    def raw(self, attributes: Attributes) -> F64:
        """Return the unbiased inverse of the reported shares."""
        return along_axes(self._inverses(attributes), self.seen(attributes))

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Return, per respondent, the mean square of the inverse less the square of the true contribution, over n."""
        shape = shape_of(self.sizes, attributes)
        tensor = np.moveaxis(rows.reshape(len(rows), *shape), 0, -1)
        # A respondent who reported y contributes back[y]: the query pulled back through the inverse channel.
        back = along_axes([matrix.T for matrix in self._inverses(attributes)], tensor).reshape(-1, len(rows))
        mean_square = self.seen(attributes).ravel() @ back**2
        return np.clip(mean_square - rows**2 @ self.raw(attributes).ravel(), 0, None) / max(1.0, self.n)

    def covariance(self, attributes: Attributes) -> F64:
        """Return the covariance matrix behind `linear`, in closed form."""
        inverse = reduce(np.kron, self._inverses(attributes))
        seen = (inverse * self.seen(attributes).ravel()) @ inverse.T
        return (seen - np.diag(self.raw(attributes).ravel())) / max(1.0, self.n)

    def supposing(self, truth: Share) -> "FromEach":
        """Return the source with the reported shares that this truth would give on average."""

        def expected(attributes: Attributes) -> F64:
            return along_axes(self.matrices(attributes), truth(attributes))

        return replace(self, seen=expected)

    def step(self, attributes: Attributes) -> float:
        """Return the change of a cell when one report that supports all its answers becomes one that supports none."""
        return 1 / (prod(p - q for p, q in (self.channels[a] for a in attributes)) * max(1.0, self.n))

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """Return nothing, since every attribute was asked; the whole table without reports."""
        return [attributes] if not self.n else []


def moments_of(mechanism: Any) -> Moments:
    """Return the moments of an oracle; typed access, as mechanisms in general have none."""
    moments: Moments = mechanism.moments
    return moments
