"""Joint distributions of several attributes: any table over a few of them, asked for afterwards.

`solve_marginals` reads a tally of views, of Hadamard coefficients, of one oracle over all combinations or of one report
per attribute. Every table comes raw (linear, unbiased for what was asked, with exact variances) beside a consistent
version without negative cells, and says what of it was asked, what was completed, and what nobody was asked about.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from math import prod
from typing import Literal, get_args

import numpy as np

from tacit.core.estimate import Estimate, check_choice, no_data
from tacit.core.statistics.score import Law, law_between, placed
from tacit.errors import InvalidSpec
from tacit.post.frequencies.methods import Processed, find_method, hull
from tacit.post.views.answers import answer_tables, simplex
from tacit.post.views.components import Components
from tacit.post.views.nonneg import NonNegative, settle
from tacit.post.views.reconstruct import Fitted, Targets, fit_entropy, fit_least_squares, fit_linear_program
from tacit.post.views.table import Attributes, cell_labels, checked_attributes, margin, shape_of, subsets
from tacit.tasks.marginals.shrunken import ShrunkenTables
from tacit.tasks.marginals.sources import F64, FromEach, FromViews, Share, TableSource

Reconstruct = Literal["entropy", "least_squares", "linear_program"]
Status = Literal["covered", "independent", "reconstructed", "unseen", "no_data"]
_FITS: dict[Reconstruct, Callable[[Sequence[int], Targets, int], Fitted]] = {
    "entropy": fit_entropy, "least_squares": fit_least_squares, "linear_program": fit_linear_program,
}  # fmt: skip
_EYE_CELLS = 1 << 12


@dataclass(frozen=True, eq=False)
class Table:
    """The joint distribution of some attributes, raw and consistent, one axis per attribute.

    Take `raw` for statistics (unbiased, with variances), `consistent` for showing and for sampling (a distribution).
    """

    attributes: Attributes
    shape: tuple[int, ...]
    consistent: F64
    """Non-negative, summing to one, agreeing with the tables around it as well as may be. Biased."""
    status: Status
    """`covered`: all was asked. `independent`: two attributes that were not asked together. `reconstructed`: some
    interactions of more were not. `unseen`: no reports on an attribute."""
    missing: tuple[Attributes, ...]
    """The smallest sets of attributes whose interaction is not known."""
    agrees: bool
    """False where the margins that were fitted contradict each other."""
    source: TableSource
    n: int
    respondents: float

    @cached_property
    def cells(self) -> F64:
        """The unbiased cells alone, in the shape of the table: variances take much longer, and not all need them."""
        if self.status == "no_data" or self.n == 0:
            return np.zeros(self.shape)
        return (self.source.raw(self._varied) if self._varied else np.ones(1)).reshape(self.shape)

    @cached_property
    def raw(self) -> Estimate:
        """The unbiased table, cell by cell, with exact variances and covariances.

        Of a reconstructed table it is the least-squares completion: the variance is that of what was asked, noise and
        sampling, and says nothing about the interactions that were not.
        """
        labels = cell_labels(self.shape)
        if self.status == "no_data" or self.n == 0:
            return no_data(prod(self.shape), labels)
        inner = self._varied

        def linear(rows: F64) -> F64:
            return self.source.linear(inner, rows) if inner else np.zeros(len(rows))

        value = self.cells.ravel()
        cells = len(value)
        # One variance per cell is a query for a row of the identity; blocks of rows bound the memory of large tables.
        chunks = [linear(np.eye(cells)[i : i + _EYE_CELLS]) for i in range(0, cells, _EYE_CELLS)]
        variance = np.concatenate(chunks)
        if self.status == "unseen":
            variance = np.full(cells, np.inf)
        law = None if self.status == "unseen" or not inner else self._law
        return Estimate(value, variance, self.n, labels=labels, covariance=linear, effective=self.respondents, law=law)

    @cached_property
    def projected(self) -> F64:
        """The raw cells made a distribution and no more: for measures that take the noise off by themselves."""
        return simplex(self.cells)

    def interval(self, level: float = 0.95) -> tuple[F64, F64]:
        """Return intervals of the consistent cells, flat, which hold at least as often as the level says.

        Of a table that was asked as a whole they are the raw ones, cut to [0, 1] and stretched to hold the cell. Else
        they are what the parts that were asked allow (Fréchet's bounds), each part at a level that allows for all.
        """
        value = self.consistent.ravel()
        if self.status in ("covered", "unseen", "no_data") or not self._varied:
            consistent = replace(self.raw, value=value, covariance=None)
            return Processed(find_method("norm_sub"), self.raw, consistent).interval(level)
        return hull(self._allowed(level), (value, value))

    def _allowed(self, level: float) -> tuple[F64, F64]:
        """The least and the largest cells that agree with intervals of all parts that were asked as a whole."""
        parts = _asked_parts(self._varied, self.missing)
        each = 1 - (1 - level) / len(parts)
        ends = {part: self._part(part).interval(each) for part in parts}
        low, high = (
            {part: self._widened(part, np.clip(ends[part][side], 0, 1)) for part in parts} for side in range(2)
        )
        least = np.zeros(prod(self.shape))
        # Two parts that hold all attributes between them share at least what they have beyond one.
        for one, other in combinations(parts, 2):
            if set(one) | set(other) == set(self._varied):
                least = np.maximum(least, low[one] + low[other] - 1)
        return least, np.min([high[part] for part in parts], axis=0)

    def _part(self, attributes: Attributes) -> Estimate:
        """The raw table of some of the attributes, all of which were asked together."""
        shape = tuple(self.shape[self.attributes.index(a)] for a in attributes)
        flat = np.zeros(shape)
        return replace(self, attributes=attributes, shape=shape, consistent=flat, status="covered", missing=()).raw

    def _widened(self, attributes: Attributes, flat: F64) -> F64:
        """Numbers of a part, repeated over the cells of the whole table."""
        wide = [size if a in attributes else 1 for a, size in zip(self.attributes, self.shape, strict=True)]
        return np.broadcast_to(flat.reshape(wide), self.shape).ravel()

    @property
    def _law(self) -> Law | None:
        """The variance of a cell as a function of its true share, for score intervals; None if it is not finite.

        A parabola through the shares 0, 1/2 and 1. It is taken from the first cell, with all others evenly filled:
        answers of an attribute are treated alike.
        """
        first = np.eye(1, prod(self.shape))
        tables = [placed(first, share) for share in (0.0, 0.5, 1.0)]
        sides = [float(self._supposing(table).linear(self._varied, first)[0]) for table in tables]
        return law_between(*sides, step=self.step) if np.isfinite(sides).all() else None

    @property
    def _varied(self) -> Attributes:
        """The attributes with more than one answer."""
        return tuple(a for a, size in zip(self.attributes, self.shape, strict=True) if size > 1)

    def _supposing(self, truth: F64) -> TableSource:
        """The source with the variances that it would have if the truth were this table."""
        inner = truth.reshape([size for size in self.shape if size > 1])
        return self.source.supposing(partial(margin, inner, self._varied))

    @property
    def step(self) -> float:
        """How much one report moves a cell."""
        return self.source.step(self._varied) if self._varied else 0.0

    @cached_property
    def _covariance(self) -> F64:
        inner = self._varied
        return self.source.covariance(inner) if inner else np.zeros((1, 1))

    def covariance(self) -> F64:
        """The covariance matrix of the raw cells."""
        return self._covariance

    def covariance_at(self, truth: F64) -> F64:
        """The covariance matrix that the raw cells would have if the truth were this table."""
        return self._supposing(truth).covariance(self._varied) if self._varied else np.zeros((1, 1))


@dataclass(frozen=True, eq=False)
class Marginals:
    """The answers of one collection about several attributes: ask it for the table of any few of them.

    The source numbers only the attributes that were asked about, those with more than one answer:

        question    0   1   2   3        sizes = (2, 1, 3, 4), kept = (0, 2, 3)
        source      0   -   1   2        attribute 1 has one answer, so it is a known axis of length one
    """

    sizes: tuple[int, ...]
    source: TableSource
    n: int
    respondents: float
    kept: tuple[int, ...]
    """The attributes with more than one answer; the others are known exactly."""
    reconstruct: Reconstruct = "entropy"
    non_negative: NonNegative = "norm_sub"
    rounds: int = 3
    shrink: bool = True
    """Whether interactions are kept by how far they stand out of the noise; else as CALM's paper has it."""
    time_limit: float = 60.0
    """Seconds that maximum likelihood (method `em`) may take for all tables of a request."""
    advance: Callable[[int], None] | None = None
    """Told of every table that maximum likelihood has fitted."""

    def reach(self, attributes: Sequence[int]) -> float | None:
        """Return the most that one report moves any raw cell of a table; None where no views were asked."""
        asked = tuple(self.kept.index(one) for one in sorted(attributes) if one in self.kept)
        return self.source.reach(asked) if asked and isinstance(self.source, FromViews) else None

    def table(self, attributes: Iterable[int]) -> Table:
        """Return the table of some attributes; the axes are in rising order of attributes."""
        return self.tables([tuple(attributes)])[0]

    def tables(self, asked: Sequence[Sequence[int]]) -> list[Table]:
        """Return several tables at once, which is faster: those that no view covers are fitted together."""
        check_choice("marginals", "reconstruct", self.reconstruct, get_args(Reconstruct))
        sets = [checked_attributes(self.sizes, attributes) for attributes in asked]
        inner = [tuple(self.kept.index(a) for a in attributes if self.sizes[a] > 1) for attributes in sets]
        fitted = self._consistent(inner)
        return [self._table(*row) for row in zip(sets, inner, fitted, strict=True)]

    def _table(self, attributes: Attributes, inner: Attributes, made: tuple[F64, bool]) -> Table:
        """Put a table together: its status by what is missing, and its source under the question's numbering."""
        missing = self.source.missing(inner) if inner else []
        status: Status = "covered" if not missing else "independent" if len(inner) == 2 else "reconstructed"
        # A missing single attribute is worse than a missing interaction: not even its own shares are known.
        if any(len(unknown) == 1 for unknown in missing):
            status = "unseen"
        if self.n == 0:
            status = "no_data"
        named = tuple(tuple(self.kept[a] for a in unknown) for unknown in missing)
        shape = shape_of(self.sizes, attributes)
        source = _Renamed(self.source, {self.kept[a]: a for a in inner})
        table, agrees = made
        return Table(attributes, shape, table.reshape(shape), status, named, agrees, source, self.n, self.respondents)

    def _consistent(self, inner: Sequence[Attributes]) -> list[tuple[F64, bool]]:
        """Return, per set of attributes, a distribution and whether the fitted margins agree with each other."""
        if self.n == 0:
            shapes = [shape_of(self.source.sizes, a) for a in inner]
            return [(np.full(shape, 1 / prod(shape)), True) for shape in shapes]
        # Of one report per attribute the maximum likelihood table is non-negative by itself.
        if isinstance(self.source, FromEach):
            from tacit.tasks.marginals.each import fit_each

            # An empty set of attributes is a table of one cell, which needs no fit.
            fitted = iter(
                fit_each(self.source, [a for a in inner if a], time_limit=self.time_limit, advance=self.advance)
            )
            return [(next(fitted).table, True) if a else (np.ones(()), True) for a in inner]
        if self.shrink:
            return self.shrunken.tables(inner)
        if isinstance(self.source, FromViews):
            return answer_tables(self._settled, inner, _FITS[self.reconstruct])
        return [(simplex(self.source.raw(a)), True) if a else (np.ones(()), True) for a in inner]

    @cached_property
    def shrunken(self) -> ShrunkenTables:
        """The tables as they are answered, numbered as in the source."""
        return ShrunkenTables(self.source)

    @cached_property
    def _settled(self) -> Components:
        """The views' interactions after some rounds of removing negative cells and making the views agree again."""
        assert isinstance(self.source, FromViews)
        structure, weight = self.source.structure, self.source.uncertainty.weight
        return settle(structure, self.source.components, weight, method=self.non_negative, rounds=self.rounds)


@dataclass(frozen=True, eq=False)
class _Renamed:
    """A source under the attribute numbers of the question; `names` maps them to the source's own."""

    source: TableSource
    names: dict[int, int]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.source.sizes

    def _inner(self, attributes: Attributes) -> Attributes:
        return tuple(self.names[a] for a in attributes)

    def raw(self, attributes: Attributes) -> F64:
        return self.source.raw(self._inner(attributes))

    def linear(self, attributes: Attributes, rows: F64) -> F64:
        return self.source.linear(self._inner(attributes), rows)

    def covariance(self, attributes: Attributes) -> F64:
        return self.source.covariance(self._inner(attributes))

    def missing(self, attributes: Attributes) -> list[Attributes]:
        return self.source.missing(self._inner(attributes))

    def supposing(self, truth: Share) -> "TableSource":
        outer = {inner: attribute for attribute, inner in self.names.items()}
        renamed = self.source.supposing(lambda attributes: truth(tuple(outer[a] for a in attributes)))
        return replace(self, source=renamed)

    def step(self, attributes: Attributes) -> float:
        return self.source.step(self._inner(attributes))


def _asked_parts(attributes: Attributes, missing: Sequence[Attributes]) -> list[Attributes]:
    """The largest sets of attributes without an interaction that is missing."""
    found: list[Attributes] = []
    for inner in sorted(subsets(attributes), key=len, reverse=True):
        lacks = any(set(unknown) <= set(inner) for unknown in missing)
        if inner and not lacks and not any(set(inner) <= set(other) for other in found):
            found.append(inner)
    return found


def kept_attributes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the attributes with more than one answer; InvalidSpec where there is none."""
    varied = tuple(i for i, size in enumerate(sizes) if size > 1)
    if not varied or min(sizes) < 1:
        raise InvalidSpec("marginals: every attribute has one answer only; there is nothing to ask")
    return varied
