"""The error of tables as they will be answered, before anybody is asked: noise, sampling, and what is not measured.

For two attributes with shares p_a, p_b, g = sum p^2 and a law of the strength of association phi^2:

    squared error = g_b e_a + g_a e_b + e_a e_b + E[S V / (S + V)],   S = phi^2 (1 - g_a)(1 - g_b)

e_a is the error of the shares of a alone, V that of the measured interaction; of a pair that is not measured the last
term is E[S], the error of taking it for independent. Of larger tables the terms of every attribute and every pair are
multiplied by the g of the others; interactions of three attributes are not in it, real ones being far weaker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from math import inf, prod, sqrt

import numpy as np

from tacit.arrays import F64
from tacit.core.mechanism import Mechanism
from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.post.views.shrink import STRONG, WEAK, linear_risk
from tacit.post.views.table import Attributes
from tacit.tasks.marginals.solve import expected_source
from tacit.tasks.marginals.sources import FromViews, TableSource, interaction_variance

LAWS: dict[str, tuple[float, ...] | None] = {"weak": WEAK, "mixed": None, "strong": STRONG}
"""Laws of the strength of association by name; mixed: either may be."""

EVENNESS_OF_TWO, EVENNESS = 0.65, 0.33
"""Sums of squared shares that are supposed: of yes-or-no questions, and of others (if they have answers enough)."""


def law_of(association: str | Sequence[float]) -> tuple[float, ...] | None:
    """Return a law of strengths: weak, strong, the strengths phi^2 that a pilot found, or None if nothing is known."""
    if isinstance(association, str):
        if association not in LAWS:
            raise InvalidSpec(f"marginals: association is {association[:40]!r}, must be one of {', '.join(LAWS)}")
        return LAWS[association]
    law = tuple(float(strength) for strength in association)
    if not law or not all(0 <= strength <= 1 for strength in law):
        raise InvalidSpec("marginals: association must be strengths from 0 to 1, at least one, or weak, mixed, strong")
    return law


def typical_shares(size: int) -> F64:
    """Return shares of one large answer and others alike, whose squares sum to what real questions have.

    >>> typical_shares(2).round(3).tolist(), round(float((typical_shares(9) ** 2).sum()), 3)
    ([0.774, 0.226], 0.33)
    """
    wanted = max(1 / size, EVENNESS_OF_TWO if size == 2 else EVENNESS)
    # x^2 + (1 - x)^2/(size - 1) = wanted, the larger root.
    x = 1 / size + sqrt(max(0.0, (wanted - 1 / size) * (1 - 1 / size)))
    return np.append(x, np.full(size - 1, (1 - x) / (size - 1)))


@dataclass(frozen=True, eq=False)
class TableForecast:
    """The expected estimates of a mechanism from n respondents whose attributes have typical shares."""

    sizes: tuple[int, ...]
    source: TableSource

    @classmethod
    def of(cls, mechanism: Mechanism, sizes: Sequence[int], n: float) -> "TableForecast":
        """The forecast for about n respondents; attributes with one answer must be left out."""
        shares = [typical_shares(size) for size in sizes]

        def typical(attributes: Attributes) -> F64:
            return reduce(np.multiply.outer, (shares[a] for a in attributes), np.ones(()))

        return cls(tuple(sizes), expected_source(mechanism, max(2.0, n), typical, sizes))

    @cached_property
    def _evenness(self) -> list[float]:
        return [float((typical_shares(size) ** 2).sum()) for size in self.sizes]

    @cached_property
    def _alone(self) -> dict[int, float]:
        return {}

    @cached_property
    def _noise(self) -> dict[Attributes, float]:
        return {}

    def alone(self, attribute: int) -> float:
        """Return the error of the shares of one attribute: less than its variance, as shares are projected."""
        if attribute not in self._alone:
            check()
            noise, room = self._spread(attribute), 1 - self._evenness[attribute]
            self._alone[attribute] = room if noise == inf else noise * room / max(noise + room, 1e-300)
        return self._alone[attribute]

    def _spread(self, attribute: int) -> float:
        """The variance of the raw shares of one attribute, summed; infinite where nobody is asked about it."""
        if self._is_missing((attribute,)):
            return inf
        answers = self.sizes[attribute]
        # Of typical shares all answers but the first are alike.
        rows = np.eye(answers)[[0, -1]]
        return float(self.source.linear((attribute,), rows) @ [1, answers - 1])

    def noise(self, pair: Attributes) -> float:
        """Return the noise in the interaction of two attributes; infinite where it is not measured."""
        if pair not in self._noise:
            check()
            self._noise[pair] = inf if self._is_missing(pair) else interaction_variance(self.source, pair)
        return self._noise[pair]

    def _is_missing(self, attributes: Attributes) -> bool:
        return isinstance(self.source, FromViews) and bool(self.source.missing(attributes))

    def covers(self, attributes: Attributes) -> bool:
        """Whether a table is measured as a whole."""
        return not self._is_missing(attributes)

    def squared_error(self, attributes: Attributes, law: Sequence[float] = WEAK) -> float:
        """Return the squared error of a table, summed over its cells, under a law of the strength of association."""
        even = {a: self._evenness[a] for a in attributes}

        def others(*inner: int) -> float:
            return prod(even[a] for a in attributes if a not in inner)

        total = sum(self.alone(a) * others(a) for a in attributes)
        for a, b in combinations(attributes, 2):
            scale = (1 - even[a]) * (1 - even[b])
            total += (self.alone(a) * self.alone(b) + linear_risk(self.noise((a, b)), scale, law)) * others(a, b)
        return total
