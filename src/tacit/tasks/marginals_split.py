"""AM with a divided budget: every respondent reports all tables of k attributes, each at its share of epsilon.

An experiment, not an offer: with G tables the noise of each grows like G^2 instead of G, so that giving every
respondent one table is always better (Wang's dissertation, section 6.1.4). `AllOf.estimate` gives the tables in turn.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb, prod

import numpy as np
import numpy.typing as npt

from tacit.core.compose import AllOf
from tacit.device.budget import Share
from tacit.device.compose import MAX_MEMBERS
from tacit.errors import InvalidSpec
from tacit.post.marginal_table import Attributes
from tacit.tasks.marginal_methods import Ask, adaptive_oracle

I64 = npt.NDArray[np.int64]


def split_views(question: Ask) -> list[Attributes]:
    """The tables that every respondent reports, in the order of the members."""
    return list(combinations(range(len(question.sizes)), question.k))


def split_tables(question: Ask) -> AllOf:
    """A mechanism that reports every table of k attributes at epsilon over their number."""
    groups = comb(len(question.sizes), question.k)
    if groups > min(MAX_MEMBERS, 1024):
        raise InvalidSpec(f"marginals: {groups} tables are too many for one respondent to report; use am or calm")
    views = split_views(question)
    share = Share(question.budget.to_spec(), f"1/{groups}") if groups > 1 else question.budget  # type: ignore[arg-type]
    members = tuple(adaptive_oracle(prod(question.sizes[a] for a in view), share) for view in views)
    return AllOf(epsilon=question.budget, members=members, state="members")


def cells_of(records: I64, sizes: Sequence[int], views: Sequence[Attributes]) -> I64:
    """What is reported about rows of answers: the cell of every view, one column each."""
    columns: list[I64] = []
    for view in views:
        cell = np.zeros(len(records), np.int64)
        for attribute in view:
            cell = cell * sizes[attribute] + records[:, attribute]
        columns.append(cell)
    return np.stack(columns, axis=1)
