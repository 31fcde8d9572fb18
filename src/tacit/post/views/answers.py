"""Answers from views that agree: tables are read off where a view covers them, and fitted where none does."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.patience import check
from tacit.post.views.components import Components
from tacit.post.views.nonneg import norm_sub_rows
from tacit.post.views.reconstruct import Fitted, Targets
from tacit.post.views.table import Attributes, shape_of, subsets


def simplex(table: F64) -> F64:
    """Return a table projected onto the simplex (Norm-Sub). Biased."""
    return norm_sub_rows(table.reshape(1, -1)).reshape(table.shape)


def answer_tables(
    settled: Components, wanted: Sequence[Attributes], fit: Callable[[Sequence[int], Targets, int], Fitted]
) -> list[tuple[F64, bool]]:
    """Return the wanted tables, each with whether its fit converged.

    Covered tables are read off; others with the same shape and the same known margins are fitted in one batch.
    """
    out: list[tuple[F64, bool]] = [(np.ones(()), True)] * len(wanted)
    waiting: dict[Any, list[int]] = {}
    for i, attributes in enumerate(wanted):
        known = _maximal(settled, attributes)
        if known == [attributes] or not attributes:
            out[i] = (simplex(settled.table(attributes)) if attributes else np.ones(()), True)
        else:
            # Axes within the table instead of attribute numbers: tables of different attributes share a batch.
            local = tuple(tuple(attributes.index(a) for a in inner) for inner in known)
            waiting.setdefault((shape_of(settled.structure.sizes, attributes), local), []).append(i)
    for (shape, local), members in waiting.items():
        check()
        targets = [(axes, _stacked(settled, [wanted[i] for i in members], axes)) for axes in local]
        fitted = fit(shape, targets, len(members))
        for i, table, met in zip(members, fitted.tables, fitted.converged, strict=True):
            out[i] = (table, bool(met))
    return out


def _stacked(settled: Components, tables: Sequence[Attributes], axes: Attributes) -> F64:
    """The margins of several tables on the same local axes, stacked."""
    return np.stack([simplex(settled.table(tuple(attributes[axis] for axis in axes))) for attributes in tables])


def _maximal(settled: Components, attributes: Attributes) -> list[Attributes]:
    """The largest subsets of a table that some view with reports contains."""
    maximal: list[Attributes] = []
    # Largest first, so that a subset of something known is skipped.
    for inner in sorted(subsets(attributes), key=len, reverse=True):
        if inner and not any(set(inner) <= set(known) for known in maximal):
            if settled.component(inner) is not None:
                maximal.append(inner)
    return sorted(maximal)
