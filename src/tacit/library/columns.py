"""Values as people have them (lists, numpy, pandas, polars) as plain Python values, missing ones as None.

None of these libraries is imported: whoever passes a Series has loaded it already. No message shows a value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tacit.errors import InvalidValue

_MICROSECONDS = "datetime64[us]"
_WRITTEN = ("Interval", "Period")
"""Types of pandas that are labels as they are written: what `pandas.cut` gives, and months or quarters."""


@dataclass(frozen=True)
class Column:
    """One value per respondent; `categories` are those that a categorical type declares, in its order."""

    items: list[Any]
    categories: tuple[Any, ...] = ()
    is_ordered: bool = False

    @property
    def missing(self) -> int:
        """How many values are missing."""
        return sum(item is None for item in self.items)


def column_of(who: str, values: Any) -> Column:
    """Read the values of one column, or say what to give instead."""
    _refuse_shape(who, values)
    dtype: Any = getattr(values, "dtype", None)
    categories = _categories(dtype)
    items = [plain(item) for item in _listed(values)]
    return Column(items, tuple(plain(item) for item in categories), bool(getattr(dtype, "ordered", False)))


def _refuse_shape(who: str, values: Any) -> None:
    """Raise InvalidValue for what is no column."""
    hint, shape = "", getattr(values, "ndim", 1)
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or shape == 0:
        hint = "this is a single value: write [value]"
    if isinstance(values, Mapping) or hasattr(values, "columns"):
        hint = "this is a table: give one of its columns, such as table['age']"
        if who == "itemsets":
            hint = "this is a table: give a list per row, such as [list(table.columns[row]) for row in table.values]"
    elif isinstance(values, (set, frozenset)):
        hint = "a set holds every value once: give a list"
    elif shape > 1:
        hint = "this array has several columns: give one"
    if hint:
        raise InvalidValue(f"{who}: values must be a list, an array or a Series with one value per respondent; {hint}")


def _categories(dtype: Any) -> Sequence[Any]:
    """The categories of a pandas Categorical or a polars Enum; none for all other types."""
    # polars fills the categories of its own Categorical from the values of a process: there is nothing declared.
    declared: Any = None if type(dtype).__name__ == "Categorical" else getattr(dtype, "categories", None)
    return [] if declared is None else cast("Sequence[Any]", declared.to_list())


def _listed(values: Any) -> list[Any]:
    """All values as Python objects."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "M" and isinstance(values, np.ndarray):
        # Nanoseconds have no Python type, so that numpy would turn them into integers.
        return cast("list[Any]", values.astype(_MICROSECONDS).tolist())
    # pandas and polars spell it with an underscore, numpy without, and columns of Arrow tables in a way of their own.
    for name in ("to_list", "tolist", "to_pylist"):
        if hasattr(values, name):
            return cast("list[Any]", getattr(values, name)())
    return list(values)


def plain(value: Any) -> Any:
    """A Python value; None for every way of saying that there is none: NaN, NaT, NA."""
    # The usual case first: this runs once per value.
    if isinstance(value, (str, int)):
        return value
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.generic):
        return plain(value.astype(_MICROSECONDS).item() if isinstance(value, np.datetime64) else value.item())
    if type(value).__name__ in _WRITTEN:
        return str(value)
    if isinstance(value, float):
        # NaN is the only number that differs from itself. A column of whole numbers with gaps arrives as floats.
        return None if value != value else int(value) if value.is_integer() else value
    return value


def columns_of(who: str, table: Any) -> dict[str, Column]:
    """Read a table by its columns: a DataFrame, an Arrow table, a dictionary of columns, or a list of rows."""
    names: Any = getattr(table, "column_names", getattr(table, "columns", None))
    if names is not None and not isinstance(table, Mapping):
        return {str(name): column_of(who, table[name]) for name in names}
    if isinstance(table, Mapping):
        named = cast("Mapping[Any, Any]", table)
        return {str(name): column_of(who, values) for name, values in named.items()}
    rows: list[Any] = list(cast("Sequence[Any]", table)) if isinstance(table, (list, tuple)) else []
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidValue(f"{who}: values must be a table: a DataFrame, a dictionary of columns, or a list of rows")
    first = cast("Mapping[Any, Any]", rows[0])
    return {str(name): column_of(who, [row.get(name) for row in rows]) for name in first}
