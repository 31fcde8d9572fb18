"""Non-negative tables from views that agree: read off where a view covers them, fitted where none does."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.patience import check
from tacit.post.marginal_components import Components
from tacit.post.marginal_nonneg import norm_sub_rows
from tacit.post.marginal_reconstruct import Fitted, Targets
from tacit.post.marginal_table import Attributes, shape_of, subsets

F64 = npt.NDArray[np.float64]


def simplex(table: F64) -> F64:
    """A table without negative cells, by Norm-Sub. Biased."""
    return norm_sub_rows(table.reshape(1, -1)).reshape(table.shape)


def answer_tables(
    settled: Components, asked: Sequence[Attributes], fit: Callable[[Sequence[int], Targets, int], Fitted]
) -> list[tuple[F64, bool]]:
    """Covered tables are read off; others with the same shape and the same known margins are fitted together."""
    out: list[tuple[F64, bool]] = [(np.ones(()), True)] * len(asked)
    waiting: dict[Any, list[int]] = {}
    for i, attributes in enumerate(asked):
        known = _maximal(settled, attributes)
        if known == [attributes] or not attributes:
            out[i] = (simplex(settled.table(attributes)) if attributes else np.ones(()), True)
        else:
            local = tuple(tuple(attributes.index(a) for a in inner) for inner in known)
            waiting.setdefault((shape_of(settled.structure.sizes, attributes), local), []).append(i)
    for (shape, local), members in waiting.items():
        check()
        targets = [(axes, _stacked(settled, [asked[i] for i in members], axes)) for axes in local]
        fitted = fit(shape, targets, len(members))
        for i, table, met in zip(members, fitted.tables, fitted.converged, strict=True):
            out[i] = (table, bool(met))
    return out


def _stacked(settled: Components, asked: Sequence[Attributes], axes: Attributes) -> F64:
    return np.stack([simplex(settled.table(tuple(attributes[axis] for axis in axes))) for attributes in asked])


def _maximal(settled: Components, attributes: Attributes) -> list[Attributes]:
    """The largest subsets of a table that some view with reports contains."""
    found: list[Attributes] = []
    for inner in sorted(subsets(attributes), key=len, reverse=True):
        if inner and not any(set(inner) <= set(known) for known in found):
            if settled.component(inner) is not None:
                found.append(inner)
    return sorted(found)
