"""Uploads with rows: every value has a row that follows from it, so that a row that went astray is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from tests.service.plain import PLAIN, NoNoise, wide_draft

from tacit.catalog import CATALOG
from tacit.collector.collections import publish
from tacit.collector.collections.publish import Planner
from tacit.collector.ports import Store
from tacit.collector.rows.arrow_stream import MEDIA_TYPE as ARROW
from tacit.collector.service import Collector
from tacit.wire.document import Collection

__all__ = ["ARROW"]

SIZE = 1 << 18
WIDTH = 4
COLUMNS = [
    {"name": "hours", "type": "number"},
    {"name": "visits", "type": "integer"},
    {"name": "os", "type": "text"},
    {"name": "paying", "type": "boolean"},
    {"name": "since", "type": "date"},
]
TYPES = {"hours": pa.float64(), "visits": pa.int64(), "os": pa.string(), "paying": pa.bool_(), "since": pa.date32()}


def publish_rows(store: Store, size: int = SIZE, columns: Sequence[dict[str, str]] = COLUMNS, **changes: Any) -> str:
    """Publish a question without noise beside public columns; returns the id."""
    draft = wide_draft(size, minimum_cohort=1) | changes
    rows = {"table": "visits", "columns": list(columns)}
    return publish.publish_document(store, _with_rows(json.dumps(draft), json.dumps(rows))).id


@cache
def _with_rows(draft: str, rows: str) -> Collection:
    """Planned once for all tests: it takes the labels of all values."""
    catalog = (*CATALOG, NoNoise)
    document = Planner(catalog, (PLAIN,)).plan(json.loads(draft))[0].to_json() | {"rows": json.loads(rows)}
    return Collection.from_json(document, catalog)


def row(value: int) -> dict[str, Any]:
    """The row that belongs to a value; now and then something in it is null."""
    return {
        "hours": value / 8 if value % 5 else None,
        "visits": value * 1000,
        "os": ["ios", "Ändroid", "web 😀"][value % 3],
        "paying": None if value % 7 == 0 else value % 2 == 0,
        "since": str(date(2020, 1, 1) + timedelta(days=value % 3000)),
    }


def twin(collection: str, values: Iterable[int], batch: bytes, *, width: int = WIDTH) -> bytes:
    """The JSON form."""
    reports = [{"report": value.to_bytes(width, "little").hex(), "row": row(value)} for value in values]
    return json.dumps({"collection": collection, "batch": batch.hex(), "reports": reports}).encode()


def table(values: Iterable[int], *, width: int = WIDTH) -> pa.Table:
    """The columns of the Arrow form."""
    given = list(values)
    rows = [row(value) for value in given]
    arrays = {
        name: pa.array([r[name] and date.fromisoformat(r[name]) if name == "since" else r[name] for r in rows], kind)
        for name, kind in TYPES.items()
    }
    return pa.table({"report": pa.array([v.to_bytes(width, "little") for v in given], pa.binary()), **arrays})


def stream(columns: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    most = options.pop("max_chunksize", None)
    with pa.ipc.new_stream(sink, columns.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(columns, max_chunksize=most)
    return sink.getvalue().to_pybytes()


def sealed_values(collector: Collector, collection: str) -> list[int]:
    """Every value that is sealed, sorted, after a look at its row."""
    found: list[int] = []
    for segment in collector.segments(collection):
        columns, reports = segment.load()
        assert columns.num_rows == len(reports) == segment.n
        values = np.asarray(reports).astype(np.int64).tolist()
        rows = columns.to_pylist()
        for value, seen in zip(values, rows, strict=True):
            assert {**seen, "since": str(seen["since"])} == row(value)
        found += values
    return sorted(found)
