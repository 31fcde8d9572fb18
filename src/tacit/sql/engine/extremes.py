"""MIN and MAX of public expressions: the extreme among values that at least the minimum cohort of rows hold.

The extreme of a column is somebody's value: the oldest person's, the highest bill. A value that as many rows hold as
the minimum cohort asks for is nobody's own. So the rows are counted by value, as GROUP BY would, and values of fewer
rows are passed over; where no value has enough rows, the extreme is NULL.
"""

from collections.abc import Iterable
from typing import Any

from tacit.sql.engine.query import Query
from tacit.sql.parse.syntax import Aggregate, Extreme, Output, Select

ExtremeValues = dict[tuple[Any, ...], Any]
"""The extreme of every public group; groups without one are left out."""


class ExtremeCount:
    """One MIN or MAX: a count of rows by group and value, of which the extreme is taken."""

    def __init__(self, query: Query, extreme: Extreme) -> None:
        """The query that SELECT asks, and one of its extremes."""
        select = query.select
        count = Aggregate("count", None, extreme.condition, "COUNT(*)")
        # The value comes last in the key, also where it is one of the groups itself.
        groups = (*query.public, extreme.argument)
        self._is_group = extreme.argument in query.public
        self._place = query.public.index(extreme.argument) if self._is_group else -1
        self._largest = extreme.function == "max"
        self.query = Query(
            query.schema,
            Select((Output("n", count),), select.condition, tuple(dict.fromkeys(groups)), (), None, 0),
        )

    def values(self, rows: Iterable[tuple[tuple[Any, ...], int]], least: int) -> ExtremeValues:
        """The extreme value of every group, among those that at least `least` rows hold."""
        best: ExtremeValues = {}
        for key, count in rows:
            group, value = (key, key[self._place]) if self._is_group else (key[:-1], key[-1])
            if value is None or count < max(1, least):
                continue
            if group not in best or (_rank(value) > _rank(best[group])) == self._largest:
                best[group] = value
        return best


def _rank(value: Any) -> tuple[bool, Any]:
    """NaN is the largest number, as in PostgreSQL."""
    return value != value, value
