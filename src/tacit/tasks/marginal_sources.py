"""Where tables come from: agreeing views, Hadamard coefficients, or one oracle over all combinations.

A source answers for raw tables, which are linear in the reports and unbiased for everything that was asked, and for the
exact variance of any linear combination of their cells against all respondents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from math import prod, sqrt
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.core.moments import Moments
from tacit.device.coefficients import Coefficients
from tacit.post.marginal_components import Components, Structure
from tacit.post.marginal_table import Attributes, along_axes, margin, shape_of, subsets
from tacit.post.marginal_variance import Precision, Uncertainty

F64 = npt.NDArray[np.float64]
Share = Callable[[Attributes], F64]


class Source(Protocol):
    """What the answers of a collection are read from."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of answers of the attributes."""
        ...

    def raw(self, attributes: Attributes) -> F64:
        """The raw table of some attributes; what was not asked is completed by zero interactions."""
        ...

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Variance of `rows @ table`, the cells of the table in order."""
        ...

    def covariance(self, attributes: Attributes) -> F64:
        """The covariance matrix of the cells of a table."""
        ...

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """The smallest sets of attributes of a table whose interaction nobody was asked for, or answered."""
        ...

    def supposing(self, truth: Share) -> "Source":
        """The same source with the variances that it would have if the truth were this."""
        ...

    def step(self, attributes: Attributes) -> float:
        """What one report changes about a cell of a table; of several groups, that of the one with the most reports."""
        ...


def plugged(table: F64) -> F64:
    """A raw table as a distribution, to be plugged into variances."""
    positive = np.clip(table, 0, None)
    total = float(positive.sum())
    return positive / total if total > 0 else np.full(table.shape, 1 / table.size)


def polarised(linear: Callable[[F64], F64], cells: int) -> F64:
    """The matrix of a quadratic form, from its values at the cells and at sums of two of them."""
    eye = np.eye(cells)
    own = linear(eye)
    out = np.diag(own)
    for i in range(1, cells):
        out[i, :i] = out[:i, i] = (linear(eye[i] + eye[:i]) - own[i] - own[:i]) / 2
    return out


@dataclass(frozen=True, eq=False)
class FromViews:
    """Agreeing views: interactions averaged over the views that contain them."""

    structure: Structure
    precision: Sequence[Precision]
    components: Components
    respondents: float
    truth: Share | None = None
    _shares: dict[Attributes, F64] = field(default_factory=dict[Attributes, F64])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of answers of the attributes."""
        return self.structure.sizes

    def _share(self, attributes: Attributes) -> F64:
        if self.truth is not None:
            return self.truth(attributes)
        if attributes not in self._shares:
            self._shares[attributes] = plugged(self.components.table(attributes))
        return self._shares[attributes]

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Variances of linear answers."""
        return Uncertainty(self.structure, self.precision, self.respondents, self._share)

    def raw(self, attributes: Attributes) -> F64:
        """The table that agrees with all views."""
        return self.components.table(attributes)

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Exact; of what is known of the table."""
        return self.uncertainty.linear(attributes, rows)

    def covariance(self, attributes: Attributes) -> F64:
        """Exact; of what is known of the table."""
        return self.uncertainty.covariance(attributes)

    def supposing(self, truth: Share) -> "FromViews":
        """With this truth plugged in."""
        return replace(self, truth=truth)

    def step(self, attributes: Attributes) -> float:
        """That of the view with the most reports among those about any of the attributes."""
        views = zip(self.structure.views, self.precision, strict=True)
        about = [p.moments.step * p.scale for view, p in views if set(view) & set(attributes)]
        return min(about, default=0.0)

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """Minimal sets that no view with reports contains."""
        found: list[Attributes] = []
        for inner in subsets(attributes):
            covered = any(set(known) <= set(inner) for known in found)
            if not covered and self.components.component(inner) is None:
                found.append(inner)
        return found


def signs_of(bits: int) -> F64:
    """The Hadamard matrix of an attribute: (-1)^popcount(mask AND value)."""
    at = np.arange(1 << bits)
    odd = np.bitwise_count(at[:, None] & at[None, :]) & 1
    return np.where(odd, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class FromSigns:
    """Hadamard coefficients, each from its own respondents: scaled to lie between -1 and 1."""

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
        """Numbers of answers of the attributes."""
        return self.family.sizes

    def _bits(self, attributes: Attributes) -> list[int]:
        return [self.family.masks[attribute].bit_length() for attribute in attributes]

    def _matrices(self, attributes: Attributes) -> list[F64]:
        pairs = zip(attributes, self._bits(attributes), strict=True)
        return [signs_of(bits)[:, : self.sizes[attribute]] for attribute, bits in pairs]

    def _places(self, attributes: Attributes) -> npt.NDArray[np.int64]:
        """The rank of the coefficient of every combination of masks; -1 for none, and where it is not asked."""
        shape = [1 << bits for bits in self._bits(attributes)]
        out = np.full(shape, -1, np.int64)
        for masks in product(*map(range, shape)):
            member = tuple((a, mask) for a, mask in zip(attributes, masks, strict=True) if mask)
            if 0 < len(member) <= self.family.k:
                out[masks] = self.family.rank(member)
        return out

    def raw(self, attributes: Attributes) -> F64:
        """The inverse transform of the table's coefficients."""
        places = self._places(attributes)
        theta = np.where(places >= 0, self.theta[places], 0.0)
        theta.flat[0] = 1.0
        return along_axes([matrix.T for matrix in self._matrices(attributes)], theta) / theta.size

    def _each(self, attributes: Attributes) -> tuple[F64, F64]:
        """The variance of every coefficient of a table, zero where it is not asked, and the table plugged in."""
        places = self._places(attributes).ravel()
        everybody = self.respondents / max(1.0, self.respondents - 1)
        # A coefficient that nobody answered adds nothing here; it is reported as missing instead.
        asked = (places >= 0) & np.isfinite(self.scale[places])
        scale = np.where(asked, self.scale[places], 0.0)
        share = self.truth(attributes) if self.truth else plugged(self.raw(attributes))
        theta = (
            along_axes(self._matrices(attributes), share).ravel() if self.truth else np.clip(self.theta[places], -1, 1)
        )
        return scale * (self.noise + everybody * (1 - theta**2)), share.ravel()

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Noise, sampling of groups, less the spread of the answer itself."""
        each, mass = self._each(attributes)
        tensor = np.moveaxis(rows.reshape(len(rows), *shape_of(self.sizes, attributes)), 0, -1)
        squares = along_axes(self._matrices(attributes), tensor).reshape(len(each), len(rows)) ** 2 / len(each) ** 2
        spread = (rows**2 @ mass - (rows @ mass) ** 2) / max(1.0, self.respondents - 1)
        return np.clip(each @ squares - spread, 0, None)

    def covariance(self, attributes: Attributes) -> F64:
        """The same as a matrix."""
        each, mass = self._each(attributes)
        signs = reduce(np.kron, self._matrices(attributes)) / len(each)
        spread = (np.diag(mass) - np.outer(mass, mass)) / max(1.0, self.respondents - 1)
        return (signs.T * each) @ signs - spread

    def supposing(self, truth: Share) -> "FromSigns":
        """With this truth plugged in."""
        return replace(self, truth=truth)

    def step(self, attributes: Attributes) -> float:
        """A sign that turns moves its coefficient by twice what an unbiased sign counts."""
        places = self._places(attributes)
        scale = self.scale[places[places >= 0]]
        return 2 * sqrt(self.noise + 1) * float(scale.min()) / places.size if scale.size else 0.0

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """More than k attributes together, or coefficients without reports."""
        if len(attributes) > self.family.k:
            return list(_of_size(attributes, self.family.k + 1))
        places = self._places(attributes)
        empty = np.argwhere((places >= 0) & ~np.isfinite(self.scale[places]))
        return sorted({tuple(a for a, mask in zip(attributes, row, strict=True) if mask) for row in empty.tolist()})


def _of_size(attributes: Attributes, size: int) -> list[Attributes]:
    return [inner for inner in subsets(attributes) if len(inner) == size]


@dataclass(frozen=True, eq=False)
class FromWhole:
    """One oracle over all combinations; tables are sums of its cells, with the total fixed at one."""

    shape: tuple[int, ...]
    whole: F64
    moments: Moments
    scale: float
    respondents: float
    fix_total: bool = True
    truth: Share | None = None
    combined: Callable[[F64], F64] | None = None
    """Variance of linear answers, of oracles whose error has more terms than the moments."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of answers of the attributes."""
        return self.shape

    def raw(self, attributes: Attributes) -> F64:
        """Sums of cells."""
        table = margin(self.whole, range(len(self.shape)), attributes)
        return table + (1 - table.sum()) / table.size if self.fix_total else table

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """From four sums over the cells: see `Moments.of_sums`."""
        if self.fix_total:
            rows = rows - rows.mean(axis=1, keepdims=True)
        times = prod(self.shape) / rows.shape[1]
        mass = self.truth(attributes).ravel() if self.truth else plugged(self.raw(attributes)).ravel()
        inner, squares = rows @ mass, rows**2 @ mass
        if self.combined is not None:
            noise = self.combined(self._spread(attributes, rows))
        else:
            sums = (times * rows.sum(axis=1), times * (rows**2).sum(axis=1), inner, squares)
            noise = self.moments.of_sums(*sums) * self.scale
        part = max(0.0, self.scale - 1 / max(1.0, self.respondents)) * self.respondents / max(1.0, self.respondents - 1)
        return np.clip(noise + part * (squares - inner**2), 0, None)

    def covariance(self, attributes: Attributes) -> F64:
        """From the variances of sums."""
        return polarised(lambda rows: self.linear(attributes, rows), prod(shape_of(self.shape, attributes)))

    def _spread(self, attributes: Attributes, rows: F64) -> F64:
        """Rows over the table's cells as rows over all combinations."""
        wide = [size if axis in attributes else 1 for axis, size in enumerate(self.shape)]
        full = np.broadcast_to(rows.reshape(len(rows), *wide), (len(rows), *self.shape))
        return full.reshape(len(rows), -1)

    def supposing(self, truth: Share) -> "FromWhole":
        """With this truth plugged in; terms beyond the moments hardly depend on it and are left out."""
        return replace(self, truth=truth, combined=None)

    def step(self, attributes: Attributes) -> float:
        """That of a cell."""
        del attributes
        return self.moments.step * self.scale

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """Everything was asked."""
        return [attributes] if not np.isfinite(self.scale) else []


@dataclass(frozen=True, eq=False)
class FromEach:
    """Every attribute reported on its own at a share of epsilon: the inverse of the product channel (INP-INV)."""

    sizes: tuple[int, ...]
    channels: Sequence[tuple[float, float]]
    """Probabilities (kept, moved to one other value) of every attribute."""
    seen: Share
    """The shares of reported combinations of some attributes."""
    n: float

    def _inverses(self, attributes: Attributes) -> list[F64]:
        out: list[F64] = []
        for attribute in attributes:
            p, q = self.channels[attribute]
            out.append((np.eye(self.sizes[attribute]) - q) / (p - q))
        return out

    def matrices(self, attributes: Attributes) -> list[F64]:
        """The channel of every attribute: reports are rows."""
        return [
            np.eye(self.sizes[a]) * (self.channels[a][0] - self.channels[a][1]) + self.channels[a][1]
            for a in attributes
        ]

    def raw(self, attributes: Attributes) -> F64:
        """The unbiased inverse."""
        return along_axes(self._inverses(attributes), self.seen(attributes))

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        """Per respondent, the mean square of the inverse less the square of what it stands for."""
        shape = shape_of(self.sizes, attributes)
        tensor = np.moveaxis(rows.reshape(len(rows), *shape), 0, -1)
        back = along_axes([matrix.T for matrix in self._inverses(attributes)], tensor).reshape(-1, len(rows))
        mean_square = self.seen(attributes).ravel() @ back**2
        return np.clip(mean_square - rows**2 @ self.raw(attributes).ravel(), 0, None) / max(1.0, self.n)

    def covariance(self, attributes: Attributes) -> F64:
        """The same as a matrix."""
        inverse = reduce(np.kron, self._inverses(attributes))
        seen = (inverse * self.seen(attributes).ravel()) @ inverse.T
        return (seen - np.diag(self.raw(attributes).ravel())) / max(1.0, self.n)

    def supposing(self, truth: Share) -> "FromEach":
        """With the reports that this truth would give on average."""

        def expected(attributes: Attributes) -> F64:
            return along_axes(self.matrices(attributes), truth(attributes))

        return replace(self, seen=expected)

    def step(self, attributes: Attributes) -> float:
        """A report that supports every answer of the cell, against one that supports none."""
        return 1 / (prod(p - q for p, q in (self.channels[a] for a in attributes)) * max(1.0, self.n))

    def missing(self, attributes: Attributes) -> list[Attributes]:
        """Everything was asked."""
        return [attributes] if not self.n else []


def moments_of(mechanism: Any) -> Moments:
    """The moments of an oracle."""
    found: Moments = mechanism.moments
    return found
