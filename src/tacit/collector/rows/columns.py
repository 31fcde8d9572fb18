"""Public columns of uploads: conversion to the stored Arrow types, and which values fit.

Everything is vectorised over whole columns, so that a bulk upload costs no Python loop over its rows.
"""

from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Mask
from tacit.core.extras import load
from tacit.hosting.problems import Problem
from tacit.wire.rows import MAX_NUMBER, MAX_TEXT, Rows

REPORT, MEMBER = "report", "member"
"""Reserved columns of an upload, beside the public ones."""

EPOCH = date(1970, 1, 1).toordinal()
_DAYS = (date.min.toordinal() - EPOCH, date.max.toordinal() - EPOCH)
_DAY_MILLISECONDS = 86_400_000


@lru_cache(maxsize=256)
def schema_of(rows: Rows, width: int) -> Any:
    """The Arrow schema of segments: the report as `width` bytes, then the public columns in the document's order."""
    # Imported here, because the SQL engine needs pyarrow, which collectors without rows need not have.
    from tacit.sql.engine.public import arrow_type

    pa = load("pyarrow")
    columns = [(column.name, arrow_type(column.type)) for column in rows.columns]
    return pa.schema([(REPORT, pa.binary(width)), *columns])


def report_array(data: bytes, width: int) -> Any:
    """A fixed-size binary column over concatenated reports, without copying them."""
    pa = load("pyarrow")
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(data) // width, [None, pa.py_buffer(data)])


def fitted(column: Any, kind: str, name: str) -> tuple[Any, Mask]:
    """Convert a column of an upload to the stored type; returns it with the mask of values that fit.

    Values that do not fit become NULL here; the caller refuses their rows. A Problem if the whole type is wrong.
    """
    found = _FITTED[kind](column)
    if found is None:
        # The name comes from the document, but the type from the sender: nested types spell out field names, so only
        # the first word is echoed.
        told = str(column.type).partition("<")[0].partition("[")[0][:20]
        raise Problem("malformed", f"batch: column {name} is {told}, must be of a type that holds {kind}")
    return found


def _nulls(column: Any) -> Mask:
    return column.is_null().to_numpy(zero_copy_only=False)


def _kept(values: npt.NDArray[Any], nulls: Mask, fits: Mask, type_: Any) -> tuple[Any, Mask]:
    """A column with NULL where values are NULL or do not fit, and the mask of rows that are acceptable."""
    pa = load("pyarrow")
    # Values that do not fit are zeroed too, so that nothing of them stays in the buffer under the NULL mask.
    array = pa.array(np.where(fits, values, values.dtype.type(0)), mask=nulls | ~fits)
    return array.cast(type_), fits | nulls


def _integers(column: Any) -> tuple[Any, Mask] | None:
    pa = load("pyarrow")
    if not pa.types.is_integer(column.type):
        return None
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    return _kept(values, _nulls(column), (values >= -MAX_NUMBER) & (values <= MAX_NUMBER), pa.int64())


def _numbers(column: Any) -> tuple[Any, Mask] | None:
    pa = load("pyarrow")
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return _kept(values, _nulls(column), np.abs(values) <= MAX_NUMBER, pa.float64())


def _texts(column: Any) -> tuple[Any, Mask] | None:
    pa, pc = load("pyarrow"), load("pyarrow.compute")
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    fits = pc.fill_null(pc.less_equal(pc.utf8_length(column), MAX_TEXT), True)
    return pc.if_else(fits, column.cast(pa.string()), None), fits.to_numpy(zero_copy_only=False)


def _booleans(column: Any) -> tuple[Any, Mask] | None:
    return (column, np.ones(len(column), np.bool_)) if load("pyarrow").types.is_boolean(column.type) else None


def _dates(column: Any) -> tuple[Any, Mask] | None:
    pa = load("pyarrow")
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
