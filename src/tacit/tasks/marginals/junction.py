"""Synthetic records from views by a junction tree, which uses larger tables than pairs where views have them.

    clique 1 = {0, 1, 2}   --{1}--   clique 2 = {1, 3}   --{1, 3}--   clique 3 = {1, 3, 4}
                         separator                       separator

    p(record) = p(x0, x1, x2) * p(x3 | x1) * p(x4 | x1, x3)

The tree is grown greedily. Next comes the attribute with the most mutual information, corrected for noise, with some
attributes of one earlier clique: the separator. Because the separator lies inside one clique (the running intersection
property), the cliques' tables fit together, and records have exactly these tables in expectation. Where nothing left
depends on what is drawn, the next pair starts a tree of its own; independent attributes are drawn on their own.

A Chow-Liu tree (`marginals.dependence`) is the special case in which every clique is a pair.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from tacit.arrays import I64
from tacit.core.patience import check
from tacit.post.views.table import Attributes, given_rows, margin
from tacit.tasks.marginals.marginals import Marginals, Table
from tacit.tasks.marginals.sources import F64, FromSigns, FromViews, FromWhole

Step = tuple[Attributes, Attributes]
"""A possible clique: the separator (attributes already drawn, conditioned on) and the attributes that are new."""


@dataclass(frozen=True)
class Clique:
    """Attributes drawn together (`new`), conditional on some that are drawn already (`given`, the separator)."""

    given: Attributes
    new: Attributes
    information: float
    """Total correlation of the new attributes and the separator, in nats, less the bias that noise adds."""


def known_views(answers: Marginals) -> list[Attributes]:
    """Return the largest sets of attributes that were asked together, in the numbering of the question.

    Where one report per attribute was made, every set could be used; pairs keep the tables small.
    """
    source, kept = answers.source, answers.kept
    if isinstance(source, FromViews):
        views: Iterable[Attributes] = source.structure.views
    elif isinstance(source, FromSigns):
        views = combinations(range(len(kept)), source.family.k)
    else:
        views = combinations(range(len(kept)), len(kept) if isinstance(source, FromWhole) else min(2, len(kept)))
    return [tuple(kept[a] for a in view) for view in views]


def junction_tree(answers: Marginals, views: Sequence[Attributes] | None = None) -> tuple[Clique, ...]:
    """Return the cliques in drawing order; every attribute is new in exactly one of them.

    Cliques are subsets of `views`, by default of the views that were asked. Views without reports are left out.
    """
    chosen = known_views(answers) if views is None else [tuple(sorted(view)) for view in views]
    # Greedy: one clique at a time until no step has information left; what remains is independent of everything.
    search = _Search(answers, chosen)
    cliques: list[Clique] = []
    while (best := search.best()) is not None:
        cliques.append(best)
        search.take(best)
    return (*cliques, *(Clique((), (a,), 0.0) for a in range(len(answers.sizes)) if a not in search.done))


class _Search:
    """The state of the greedy growth: which attributes are drawn, and which steps are possible next."""

    def __init__(self, answers: Marginals, views: Sequence[Attributes]) -> None:
        self._answers = answers
        tables = answers.tables(views)
        self._views = [set(v) for v, table in zip(views, tables, strict=True) if table.status == "covered"]
        self.done: set[int] = set()
        # Information per step: plugged in (cheap, too large), and corrected for noise (needs variances). Both are
        # caches.
        self._rough: dict[Step, float] = {}
        self._exact: dict[Step, float] = {}
        # Dictionaries without values are sets that keep their order, so that ties are broken the same way every run.
        self._starts: dict[Step, None] = {((), start): None for view in self._views for start in _starts(view)}
        self._steps: dict[Step, None] = {}

    def take(self, clique: Clique) -> None:
        """Record a clique as drawn, and list the steps whose separator lies inside it."""
        self.done.update(clique.new)
        members = {*clique.given, *clique.new}
        for view in self._views:
            # The separator must lie in this one clique, which is what keeps the running intersection property.
            shared, new = view & members, view - self.done
            if shared and new:
                self._steps |= {(separator, (a,)): None for separator in _conditions(shared) for a in new}
        self._steps, self._starts = (
            {step: None for step in steps if self.done.isdisjoint(step[1])} for steps in (self._steps, self._starts)
        )

    def best(self) -> Clique | None:
        """Return the best step that continues a tree, else the best start of a new one, else None."""
        return self._best(list(self._steps)) or self._best(list(self._starts))

    def _best(self, steps: Sequence[Step]) -> Clique | None:
        """Return the step with the most corrected information per link; None if no step has any.

        The correction only lowers a value, so the plugged-in one is an upper bound: steps are visited in its order, and
        the expensive correction stops as soon as no bound exceeds the best corrected value (branch and bound).
        """
        self._roughly([step for step in steps if step not in self._rough])
        best, most = None, 0.0
        for step in sorted(steps, key=lambda step: -self._rough[step]):
            # Sorted by the upper bound: nothing that follows can win.
            if self._rough[step] <= most:
                break
            if step not in self._exact:
                self._exact[step] = self._rough[step] - self._bias(step)
            if self._exact[step] > most:
                best, most = step, self._exact[step]
        return None if best is None else Clique(*best, most * _links(best))

    def _roughly(self, steps: Sequence[Step]) -> None:
        """Fill the cache of plugged-in information per link: the sum of the parts' entropies less the joint entropy."""
        tables = self._answers.tables([(*given, *new) for given, new in steps])
        for step, table in zip(steps, tables, strict=True):
            alone = sum(_entropy(margin(table.projected, table.attributes, part)) for part in _parts(step))
            self._rough[step] = (alone - _entropy(table.projected)) / _links(step)

    def _bias(self, step: Step) -> float:
        """Return the bias that noise adds to the plugged-in information per link."""
        check()
        whole, *parts = self._answers.tables([(*step[0], *step[1]), *_parts(step)])
        return max(0.0, _excess(whole) - sum(map(_excess, parts))) / _links(step)


def _starts(view: set[int]) -> Iterable[Attributes]:
    """Return all pairs and the whole view: three attributes may depend on each other where no two do (x XOR y = z)."""
    every = tuple(sorted(view))
    return [*combinations(every, 2), every] if len(every) > 2 else [every]


def _links(step: Step) -> int:
    """Count the attributes that depend on another one; the first attribute of a tree depends on none."""
    return max(1, len(step[1]) - (not step[0]))


def _conditions(shared: set[int]) -> list[Attributes]:
    """Return the separators to try: single attributes, pairs, and all that a view shares with a clique.

    All subsets would be exponentially many, and larger separators thin out the tables they condition on.
    """
    every = tuple(sorted(shared))
    few = [separator for size in (1, 2) for separator in combinations(every, size)]
    return few if len(every) <= 2 else [*few, every]


def _parts(step: Step) -> list[Attributes]:
    """Return the parts that are independent under the null hypothesis: the separator, and every new attribute alone."""
    return [part for part in (step[0], *((a,) for a in step[1])) if part]


def _entropy(p: F64) -> float:
    seen = p[p > 0]
    return -float(np.sum(seen * np.log(seen)))


def _excess(table: Table) -> float:
    """Return by how much noise lowers the entropy of a table, to second order: half the sum of variance / share.

    The second derivative of -p ln p is -1/p, hence the formula (a delta method of second order). It diverges for empty
    cells; but the consistent table clips those at zero, so the standard error stands in for shares that are smaller.
    """
    variance = table.raw.variance
    share = np.maximum(table.projected.ravel(), np.sqrt(variance))
    return float(np.sum(variance / np.where(share > 0, share, 1.0))) / 2


def sample_cliques(answers: Marginals, cliques: Sequence[Clique], n: int, rng: np.random.Generator) -> I64:
    """Draw n synthetic records: ancestral sampling, clique by clique, each conditional on its separator."""
    out = np.zeros((n, len(answers.sizes)), np.int64)
    for clique in cliques:
        check()
        known, new = clique.given, clique.new
        table = answers.table([*known, *new])
        joint = np.transpose(table.consistent, [table.attributes.index(a) for a in (*known, *new)])
        shape = [answers.sizes[a] for a in known]
        # One row of conditional probabilities per combination of separator values; `at` is each record's row.
        conditional = given_rows(joint.reshape(prod(shape), -1))
        at = np.ravel_multi_index(tuple(out[:, a] for a in known), shape) if known else np.zeros(n, np.int64)
        drawn = np.unravel_index(draw_rows(conditional[at], rng), [answers.sizes[a] for a in new])
        for attribute, column in zip(new, drawn, strict=True):
            out[:, attribute] = column
    return out


def draw_rows(rows: F64, rng: np.random.Generator) -> I64:
    """Draw one index per row of probabilities, by inverting the cumulative sums of all rows at once."""
    # Scaling by the row's own sum makes rows that add up to 1 only within rounding safe; the last end is left out, so
    # the count of passed ends is at most the last index.
    ends = np.cumsum(rows, axis=1)
    return (rng.random((len(rows), 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1).astype(np.int64)
