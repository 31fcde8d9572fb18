"""Tables as they are answered: the lower-order completion plus a part of the measured interaction.

    one attribute   the raw shares, shrunken towards even ones by James and Stein's rule, projected onto the simplex
    two             product of both + factor x measured interaction, projected, scaled to the shares of each
    three or more   maximum entropy with all tables of one attribute less + factor x measured interaction, likewise

The factor is near one where an association stands out of the noise and zero where it does not (`post.views.shrink`), so
that a table is never much worse than independence nor than what was measured. Where an interaction was not asked about,
the factor is zero by itself. Tables of two agree with each other on every attribute. Biased; raw tables are not.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from itertools import combinations
from math import comb, prod

import numpy as np

from tacit.arrays import F64
from tacit.core.patience import check
from tacit.post.views.answers import simplex
from tacit.post.views.nonneg import norm_sub_rows
from tacit.post.views.reconstruct import fit_entropy, rake
from tacit.post.views.shrink import MIXED, AssociationPrior, MeasuredInteraction, fit_prior, interaction_noise
from tacit.post.views.table import Attributes, centred, shape_of, subsets
from tacit.tasks.marginals.sources import EXACT_CELLS, TableSource, interaction_variance

MOST_FITTED = 2000
"""The prior is fitted to so many interactions at most, a random but always the same part of all."""

THIRD_SCALE = 0.1
"""The energy of an interaction of strength one, of three or more attributes; real ones are far weaker than of two."""

Local = tuple[Attributes, ...]


class ShrunkenTables:
    """All tables of a source, made when they are asked for and kept."""

    def __init__(self, source: TableSource) -> None:
        """Hold the source; nothing is computed yet."""
        self._source = source
        self._known: dict[Attributes, tuple[F64, bool]] = {}
        self._priors: dict[int, AssociationPrior] = {}
        self._factors: dict[Attributes, float] = {}
        self._covered: dict[Attributes, bool] = {}
        self._noise: dict[Attributes, tuple[float, float]] = {}

    def tables(self, wanted: Sequence[Attributes]) -> list[tuple[F64, bool]]:
        """Return tables, each with whether the margins that it was fitted to agree with each other."""
        self._make(wanted)
        return [self._known[attributes] for attributes in wanted]

    def share(self, attribute: int) -> F64:
        """Return the shares of one attribute."""
        return self.tables([(attribute,)])[0][0]

    def factor(self, attributes: Attributes) -> float:
        """Return the part of a measured interaction that is kept; 0 where it was not measured."""
        self._make([attributes])
        return self._factors.get(attributes, 0.0)

    def prior(self, order: int = 2) -> AssociationPrior:
        """Return the law of strengths that is fitted to the interactions of so many attributes."""
        if order not in self._priors:
            sets = self._some_sets(order)
            self._make(inner for one in sets for inner in combinations(one, order - 1))
            completions = self._completed(sets)
            measured = [self._measured(one, table) for one, (table, _) in zip(sets, completions, strict=True)]
            # Nothing is known from elsewhere about interactions of three and more, so few of them count as none.
            self._priors[order] = fit_prior(measured, law=MIXED if order == 2 else (0.0,))
        return self._priors[order]

    def is_covered(self, attributes: Attributes) -> bool:
        """Whether everything about some attributes was asked."""
        if attributes not in self._covered:
            self._covered[attributes] = not self._source.missing(attributes)
        return self._covered[attributes]

    def _some_sets(self, order: int) -> list[Attributes]:
        """Sets of attributes that were asked together, all of them or a sample."""
        m = len(self._source.sizes)
        if comb(m, order) <= MOST_FITTED:
            sets: Iterable[Attributes] = combinations(range(m), order)
        else:
            rng = np.random.default_rng(0)
            sets = sorted({tuple(sorted(rng.choice(m, order, replace=False).tolist())) for _ in range(MOST_FITTED)})
        return [one for one in sets if self.is_covered(one)]

    def _make(self, wanted: Iterable[Attributes]) -> None:
        """Make all tables that are not known yet, smaller ones first, those of one shape together."""
        missing = sorted({one for one in wanted if one not in self._known}, key=len)
        for attributes in missing:
            check()
            if len(attributes) < 2:
                self._known[attributes] = (self._alone(attributes) if attributes else np.ones(()), True)
        larger = [one for one in missing if len(one) > 1]
        for order in sorted({len(one) for one in larger}):
            some = [one for one in larger if len(one) == order]
            covered = [one for one in some if self.is_covered(one)]
            self._measure([one for one in covered if one not in self._known])
            self._complete([one for one in some if one not in self._known])

    def _alone(self, attributes: Attributes) -> F64:
        """The shares of one attribute: at most half the noise is taken off their distance from even shares."""
        raw = self._source.raw(attributes)
        even, degrees = 1 / len(raw), len(raw) - 1
        # James and Stein's constant, (degrees - 2)/degrees, is halved at least, as the projection shrinks as well.
        part = min(0.5, max(0.0, (degrees - 2) / degrees))
        energy = float(((raw - even) ** 2).sum())
        if part == 0 or energy == 0 or self._source.missing(attributes):
            return simplex(raw)
        noise = float(self._source.linear(attributes, np.eye(len(raw))).sum())
        return simplex(even + max(0.0, 1 - part * noise / energy) * (raw - even))

    def _complete(self, sets: Sequence[Attributes]) -> None:
        """Tables of which something was not asked: maximum entropy with the largest tables that were."""
        if sets:
            self._known |= dict(zip(sets, self._completed(sets), strict=True))

    def _measure(self, sets: Sequence[Attributes]) -> None:
        """Tables that were asked as a whole: completion and measured interaction."""
        if not sets:
            return
        prior, kept = self.prior(len(sets[0])), list[tuple[Attributes, F64]]()
        for one, (table, agrees) in zip(sets, self._completed(sets), strict=True):
            check()
            factor = self._factors[one] = prior.factor(self._measured(one, table))
            self._known[one] = (table, agrees)
            if factor > 0:
                kept.append((one, table + factor * self._interaction(one, table)))
        self._fit(kept)

    def _fit(self, tables: Sequence[tuple[Attributes, F64]]) -> None:
        """Make tables non-negative and scale them to those of one attribute less, those of one shape together."""
        by_shape: dict[tuple[int, ...], list[tuple[Attributes, F64]]] = {}
        for one, table in tables:
            by_shape.setdefault(table.shape, []).append((one, table))
        for shape, members in by_shape.items():
            stacked = norm_sub_rows(np.stack([table.ravel() for _, table in members])).reshape(-1, *shape)
            sides = list(combinations(range(len(shape)), len(shape) - 1))
            fitted = rake(stacked, [(axes, self._stacked([one for one, _ in members], axes)) for axes in sides])
            for (one, _), table, met in zip(members, fitted.tables, fitted.converged, strict=True):
                self._known[one] = (table, bool(met))

    def _interaction(self, attributes: Attributes, completion: F64) -> F64:
        return centred(self._source.raw(attributes) - completion, len(attributes))

    def _measured(self, attributes: Attributes, completion: F64) -> MeasuredInteraction:
        """Energy and noise of an interaction; the noise is that of a collection without any interactions."""
        found = self._interaction(attributes, completion)
        scale = THIRD_SCALE
        if len(attributes) == 2:
            scale = prod(1 - float(self.share(a) @ self.share(a)) for a in attributes)
        if attributes not in self._noise:
            self._noise[attributes] = self._noise_of(attributes, found.shape)
        return MeasuredInteraction(float((found**2).sum()), *self._noise[attributes], scale)

    def _noise_of(self, attributes: Attributes, shape: tuple[int, ...]) -> tuple[float, float]:
        """The noise of an interaction, and the directions that it is spread over."""
        if prod(shape) <= EXACT_CELLS:
            return interaction_noise(self._supposed.covariance(attributes), shape)
        return interaction_variance(self._supposed, attributes), float(prod(size - 1 for size in shape))

    @cached_property
    def _supposed(self) -> TableSource:
        """The source with the variances that it has if all attributes are independent: never at the noisy tables."""
        return self._source.supposing(lambda attributes: reduce(np.multiply.outer, map(self.share, attributes)))

    def _completed(self, sets: Sequence[Attributes]) -> list[tuple[F64, bool]]:
        """Tables of maximum entropy with what is known about parts of them, fitted together where they are alike."""
        waiting: dict[tuple[tuple[int, ...], Local], list[int]] = {}
        parts = [self._parts(one) for one in sets]
        self._make(inner for known in parts for inner in known)
        for i, (one, known) in enumerate(zip(sets, parts, strict=True)):
            # Axes within the table instead of attribute numbers: tables of different attributes share a batch.
            local = tuple(tuple(one.index(a) for a in inner) for inner in known)
            waiting.setdefault((shape_of(self._source.sizes, one), local), []).append(i)
        out: list[tuple[F64, bool]] = [(np.ones(()), True)] * len(sets)
        for (shape, local), members in waiting.items():
            check()
            targets = [(axes, self._stacked([sets[i] for i in members], axes)) for axes in local]
            fitted = fit_entropy(shape, targets, len(members))
            for i, table, met in zip(members, fitted.tables, fitted.converged, strict=True):
                out[i] = (table, bool(met))
        return out

    def _stacked(self, sets: Sequence[Attributes], axes: Attributes) -> F64:
        return np.stack([self._known[tuple(one[axis] for axis in axes)][0] for one in sets])

    def _parts(self, attributes: Attributes) -> list[Attributes]:
        """The largest parts of a table, without itself, that were asked as a whole; single attributes always count."""
        if self.is_covered(attributes):
            return list(combinations(attributes, len(attributes) - 1))
        found: list[Attributes] = []
        # Largest first, so that a part of something known is skipped.
        for inner in sorted(subsets(attributes), key=len, reverse=True):
            known = len(inner) == 1 or (1 < len(inner) < len(attributes) and self.is_covered(inner))
            if known and not any(set(inner) <= set(other) for other in found):
                found.append(inner)
        return sorted(found)
