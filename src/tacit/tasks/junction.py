"""Synthetic records from views by a junction tree: more than pairs at a time, where views know more than pairs.

A tree of cliques is grown from the views: next comes the attribute that some of the attributes of one clique tell most
about, less what noise alone would show. Those it is given lie in one earlier clique, so the tables of all cliques fit
together, and records have exactly the cliques' tables (in expectation). Where nothing is left that the drawn ones tell
anything about, the next pair starts a tree of its own; attributes that depend on nothing are drawn on their own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from tacit.core.patience import check
from tacit.post.marginal_table import Attributes, given_rows, margin
from tacit.tasks.marginal_sources import F64, FromSigns, FromViews, FromWhole
from tacit.tasks.marginals import Marginals, Table

I64 = npt.NDArray[np.int64]
Step = tuple[Attributes, Attributes]
"""Attributes that are given, and those that are new."""


@dataclass(frozen=True)
class Clique:
    """Attributes that are drawn together, given some that are drawn already."""

    given: Attributes
    new: Attributes
    information: float
    """What the new ones have in common with each other and with the given ones, in nats, less what noise would show."""


def known_views(answers: Marginals) -> list[Attributes]:
    """The largest sets of attributes that were asked together; of one report per attribute, all pairs."""
    source, kept = answers.source, answers.kept
    if isinstance(source, FromViews):
        views: Iterable[Attributes] = source.structure.views
    elif isinstance(source, FromSigns):
        views = combinations(range(len(kept)), source.family.k)
    else:
        views = combinations(range(len(kept)), len(kept) if isinstance(source, FromWhole) else min(2, len(kept)))
    return [tuple(kept[a] for a in view) for view in views]


def junction_tree(answers: Marginals, views: Sequence[Attributes] | None = None) -> tuple[Clique, ...]:
    """Cliques in the order they are drawn, every attribute new in one of them; of the views that were asked, or these.

    Views that nobody answered are left out.
    """
    chosen = known_views(answers) if views is None else [tuple(sorted(view)) for view in views]
    search = _Search(answers, chosen)
    cliques: list[Clique] = []
    while (best := search.best()) is not None:
        cliques.append(best)
        search.take(best)
    return (*cliques, *(Clique((), (a,), 0.0) for a in range(len(answers.sizes)) if a not in search.done))


class _Search:
    """Which attributes are drawn, and what could be drawn next given which of them."""

    def __init__(self, answers: Marginals, views: Sequence[Attributes]) -> None:
        self._answers = answers
        asked = answers.tables(views)
        self._views = [set(v) for v, table in zip(views, asked, strict=True) if table.status == "covered"]
        self.done: set[int] = set()
        self._rough: dict[Step, float] = {}
        self._exact: dict[Step, float] = {}
        self._starts: dict[Step, None] = {((), start): None for view in self._views for start in _starts(view)}
        self._steps: dict[Step, None] = {}

    def take(self, clique: Clique) -> None:
        """Draw a clique's attributes, and list what can be drawn given some of them."""
        self.done.update(clique.new)
        members = {*clique.given, *clique.new}
        for view in self._views:
            shared, new = view & members, view - self.done
            if shared and new:
                self._steps |= {(given, (a,)): None for given in _conditions(shared) for a in new}
        self._steps, self._starts = (
            {step: None for step in steps if self.done.isdisjoint(step[1])} for steps in (self._steps, self._starts)
        )

    def best(self) -> Clique | None:
        """What is known most about, given what is drawn; else the pair that has most in common; else None."""
        return self._best(list(self._steps)) or self._best(list(self._starts))

    def _best(self, steps: Sequence[Step]) -> Clique | None:
        """The most information per attribute that is linked.

        Noise only ever takes information off, so a step is worked out only while its rough value leads.
        """
        self._roughly([step for step in steps if step not in self._rough])
        best, most = None, 0.0
        for step in sorted(steps, key=lambda step: -self._rough[step]):
            if self._rough[step] <= most:
                break
            if step not in self._exact:
                self._exact[step] = self._rough[step] - self._bias(step)
            if self._exact[step] > most:
                best, most = step, self._exact[step]
        return None if best is None else Clique(*best, most * _links(best))

    def _roughly(self, steps: Sequence[Step]) -> None:
        """Plugged-in information per link, of many steps at once."""
        tables = self._answers.tables([(*given, *new) for given, new in steps])
        for step, table in zip(steps, tables, strict=True):
            alone = sum(_entropy(margin(table.consistent, table.attributes, part)) for part in _parts(step))
            self._rough[step] = (alone - _entropy(table.consistent)) / _links(step)

    def _bias(self, step: Step) -> float:
        """What noise adds to the information per link."""
        check()
        whole, *parts = self._answers.tables([(*step[0], *step[1]), *_parts(step)])
        return max(0.0, _excess(whole) - sum(map(_excess, parts))) / _links(step)


def _starts(view: set[int]) -> Iterable[Attributes]:
    """Pairs, and the whole view: three attributes may depend on each other where no two of them do."""
    every = tuple(sorted(view))
    return [*combinations(every, 2), every] if len(every) > 2 else [every]


def _links(step: Step) -> int:
    """How many attributes are drawn given others; the first of a tree is given nothing."""
    return max(1, len(step[1]) - (not step[0]))


def _conditions(shared: set[int]) -> list[Attributes]:
    """Ones, pairs and all of what a view shares with a clique."""
    every = tuple(sorted(shared))
    few = [given for size in (1, 2) for given in combinations(every, size)]
    return few if len(every) <= 2 else [*few, every]


def _parts(step: Step) -> list[Attributes]:
    """What a step's information is held against: what is given, and every new attribute alone."""
    return [part for part in (step[0], *((a,) for a in step[1])) if part]


def _entropy(p: F64) -> float:
    seen = p[p > 0]
    return -float(np.sum(seen * np.log(seen)))


def _excess(table: Table) -> float:
    """By how much noise lowers the entropy of a table, about: half the sum of variance over share.

    Shares smaller than their error are cut off at zero, so that noise adds no more to them than the error itself.
    """
    variance = table.raw.variance
    share = np.maximum(table.consistent.ravel(), np.sqrt(variance))
    return float(np.sum(variance / np.where(share > 0, share, 1.0))) / 2


def sample_cliques(answers: Marginals, cliques: Sequence[Clique], n: int, rng: np.random.Generator) -> I64:
    """Synthetic records: every clique's new attributes given those that are drawn already."""
    out = np.zeros((n, len(answers.sizes)), np.int64)
    for clique in cliques:
        check()
        known, new = clique.given, clique.new
        table = answers.table([*known, *new])
        joint = np.transpose(table.consistent, [table.attributes.index(a) for a in (*known, *new)])
        shape = [answers.sizes[a] for a in known]
        given = given_rows(joint.reshape(prod(shape), -1))
        at = np.ravel_multi_index(tuple(out[:, a] for a in known), shape) if known else np.zeros(n, np.int64)
        drawn = np.unravel_index(draw_rows(given[at], rng), [answers.sizes[a] for a in new])
        for attribute, column in zip(new, drawn, strict=True):
            out[:, attribute] = column
    return out


def draw_rows(rows: F64, rng: np.random.Generator) -> I64:
    """One answer per row of probabilities."""
    ends = np.cumsum(rows, axis=1)
    return (rng.random((len(rows), 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1).astype(np.int64)
