"""Public columns as Arrow keeps them: one type for each kind of column, and which values of an upload fit it.

Whole columns are looked at, never single values, so that a bulk upload costs no loop over its rows.
"""

from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.collector.problems import Problem
from tacit.tasks.analytics.imports import arrow, compute
from tacit.tasks.analytics.public import arrow_type
from tacit.wire.rows import MAX_NUMBER, MAX_TEXT, Rows

Mask = npt.NDArray[np.bool_]

REPORT, MEMBER = "report", "member"
"""Columns of an upload beside the public ones."""

EPOCH = date(1970, 1, 1).toordinal()
_DAYS = (date.min.toordinal() - EPOCH, date.max.toordinal() - EPOCH)
_DAY_MILLISECONDS = 86_400_000


@lru_cache(maxsize=256)
def schema_of(rows: Rows, width: int) -> Any:
    """How rows are kept: the report in the mechanism's layout, then the public columns in their order."""
    pa = arrow()
    columns = [(column.name, arrow_type(column.type)) for column in rows.columns]
    return pa.schema([(REPORT, pa.binary(width)), *columns])


def report_array(data: bytes, width: int) -> Any:
    """Reports that lie end to end as a column."""
    pa = arrow()
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(data) // width, [None, pa.py_buffer(data)])


def fitted(column: Any, kind: str, name: str) -> tuple[Any, Mask]:
    """A column of an upload in the type that is kept, and which of its values may be; others are null."""
    found = _FITTED[kind](column)
    if found is None:
        # The name is one of the document's; the type is the sender's, and is told in one word.
        told = str(column.type).partition("<")[0].partition("[")[0][:20]
        raise Problem("malformed", f"batch: column {name} is {told}, must be of a type that holds {kind}")
    return found


def _nulls(column: Any) -> Mask:
    return column.is_null().to_numpy(zero_copy_only=False)


def _kept(values: npt.NDArray[Any], nulls: Mask, fits: Mask, type_: Any) -> tuple[Any, Mask]:
    pa = arrow()
    array = pa.array(np.where(fits, values, values.dtype.type(0)), mask=nulls | ~fits)
    return array.cast(type_), fits | nulls


def _integers(column: Any) -> tuple[Any, Mask] | None:
    pa = arrow()
    if not pa.types.is_integer(column.type):
        return None
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    return _kept(values, _nulls(column), (values >= -MAX_NUMBER) & (values <= MAX_NUMBER), pa.int64())


def _numbers(column: Any) -> tuple[Any, Mask] | None:
    pa = arrow()
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return _kept(values, _nulls(column), np.abs(values) <= MAX_NUMBER, pa.float64())


def _texts(column: Any) -> tuple[Any, Mask] | None:
    pa, pc = arrow(), compute()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    fits = pc.fill_null(pc.less_equal(pc.utf8_length(column), MAX_TEXT), True)
    return pc.if_else(fits, column.cast(pa.string()), None), fits.to_numpy(zero_copy_only=False)


def _booleans(column: Any) -> tuple[Any, Mask] | None:
    return (column, np.ones(len(column), np.bool_)) if arrow().types.is_boolean(column.type) else None


def _dates(column: Any) -> tuple[Any, Mask] | None:
    pa = arrow()
    if pa.types.is_date32(column.type):
        days = column.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    elif pa.types.is_date64(column.type):
        days = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) // _DAY_MILLISECONDS
    else:
        return None
    fits = (days >= _DAYS[0]) & (days <= _DAYS[1])
    array, fits = _kept(days, _nulls(column), fits, pa.int32())
    return array.cast(pa.date32()), fits


_FITTED = {"integer": _integers, "number": _numbers, "text": _texts, "boolean": _booleans, "date": _dates}
