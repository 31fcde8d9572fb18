"""Rehearse SQL over private columns: read rows, privatize some of their columns, ask, and compare with the truth."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.extras import load
from tacit.core.simulated import GeneratorCoins
from tacit.errors import InvalidSpec
from tacit.tasks.analytics.connection import Connection
from tacit.tasks.analytics.faults import is_missing
from tacit.tasks.analytics.imports import arrow, compute
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.linked import collect
from tacit.tasks.analytics.open import choose_design, open_table, regions_of
from tacit.tasks.analytics.public import MAX_GROUPS, ArrowRows, Public
from tacit.tasks.analytics.run import Answer
from tacit.tasks.analytics.scales import Listed
from tacit.tasks.analytics.schema import MAX_LABELS, Dimension, Schema, nearest_column
from tacit.tasks.analytics.source import ValueSource

I64 = npt.NDArray[np.int64]
_PRIVATE = re.compile(r"\s*(?P<name>[^:]+?)\s*(?::\s*(?P<low>-?\d+)\s*-\s*(?P<high>-?\d+)\s*)?")
_TAG = int.from_bytes(b"rows", "little")


def read_rows(path: str, columns: Sequence[str] | None = None) -> Any:
    """An Arrow table of a CSV or Parquet file; text loses the spaces around it."""
    pa, pc = arrow(), compute()
    csv, parquet = load("pyarrow.csv"), load("pyarrow.parquet")
    try:
        if path.endswith((".parquet", ".pq")):
            table = parquet.read_table(path)
        else:
            names = {} if columns is None else {"column_names": list(columns)}
            convert = csv.ConvertOptions(strings_can_be_null=True)
            table = csv.read_csv(path, csv.ReadOptions(**names), convert_options=convert)
    except pa.ArrowInvalid as error:
        raise InvalidSpec(f"{path}: {str(error).splitlines()[0][:200]}") from None
    for i, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            table = table.set_column(i, field.name.strip(), pc.utf8_trim_whitespace(table.column(i)))
    return table.rename_columns([name.strip() for name in table.column_names])


def read_schema(text: str, table: Any) -> Schema:
    """Private columns such as `age:0-99,state`; labels without a domain are those of the data."""
    dimensions: list[Dimension] = []
    for item in text.split(","):
        found = _PRIVATE.fullmatch(item)
        if found is None:
            raise InvalidSpec(f"--private: {item[:40]!r} must be a column, or a column and a range such as age:0-99")
        name = nearest_column(found["name"], table.column_names)
        if found["low"] is not None:
            dimensions.append(Dimension(name, low=int(found["low"]), high=int(found["high"])))
            continue
        dimensions.append(_labelled(name, table[name].unique().to_pylist()))
    return Schema(tuple(dimensions))


def _labelled(name: str, values: Sequence[Any]) -> Dimension:
    """A private column whose values are those of the data: whole numbers in their order, or labels."""
    held = {value for value in values if not is_missing(value)}
    if len(held) > MAX_LABELS:
        raise InvalidSpec(f"{name}: {len(held)} labels are too many; give a range such as {name}:0-99")
    if held and all(isinstance(value, int) and not isinstance(value, bool) for value in held):
        return Dimension(name, scale=Listed(tuple(sorted(held))))
    return Dimension(name, labels=tuple(sorted({str(value) for value in held})))


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Rows whose private columns are known, so that answers can be compared with the truth."""

    schema: Schema
    rows: ArrowRows
    values: I64
    design: Design

    def collect(self, rng: np.random.Generator) -> Connection:
        """A connection to fresh reports on the private columns."""
        linked = collect(self.design, self.values, GeneratorCoins(rng), rng)
        return open_table(self.schema, self.rows, self.design, linked)

    def truth(self) -> Connection:
        """A connection that knows everything."""
        return self.collect_nothing().with_source(ValueSource(self.values))

    def collect_nothing(self) -> Connection:
        """A connection without reports, which can explain queries but not answer them."""
        return Connection(self.schema, self.rows, ValueSource(self.values[:0]), self.design)


def rehearse(
    table: Any, schema: Schema, *, epsilon: str, queries: Sequence[str], method: str = "auto", fanout: int | None = None
) -> Rehearsal:
    """Choose a design for the queries, and take the private columns out of the rows."""
    names = [dimension.name for dimension in schema.dimensions]
    rows = ArrowRows(table.drop_columns(names))
    values = schema.indices({name: table[name].to_pylist() for name in names})
    workload = regions_of(schema, rows, queries)
    option = choose_design(schema, epsilon, workload, len(values), method=method, fanout=fanout)
    return Rehearsal(schema, rows, values, option.design)


def revealing(rehearsal: Rehearsal) -> list[tuple[str, str]]:
    """Public columns with the private ones that follow from them, in these rows; those are not protected at all.

    A column in which most values occur once or twice follows from nothing and reveals by chance; it is left out, and so
    is one of more values than GROUP BY takes.
    """
    public, schema = Public(rehearsal.rows), rehearsal.schema
    found: list[tuple[str, str]] = []
    for name in rehearsal.rows.names:
        values = public.distinct(name)
        if 2 * values > rehearsal.rows.n or not 2 <= values <= MAX_GROUPS:
            continue
        codes, keys = public.groups([name])
        for column, place in zip(rehearsal.values.T, schema.kept, strict=True):
            pairs = np.unique(codes * schema.dimensions[place].size + column)
            if len(pairs) == len(keys) and len(np.unique(column)) > 1:
                found.append((name, schema.dimensions[place].name))
    return found


def simulate_analytics(rehearsal: Rehearsal, sql: str, *, seed: int) -> tuple[Answer, list[dict[str, Any]]]:
    """The answer from noisy reports, and a row per aggregate with the truth beside it."""
    rng = np.random.default_rng([_TAG, seed])
    connection = rehearsal.collect(rng)
    answer = connection.query(sql)
    if connection.parse(sql).explain:
        return answer, [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    true = _true_rows(rehearsal, sql)
    found: list[dict[str, Any]] = []
    for row in answer.to_rows():
        key = repr(row.get("group")), row["aggregate"]
        found.append(row | {"truth": true.get(key)})
    return answer, found


def _true_rows(rehearsal: Rehearsal, sql: str) -> dict[tuple[str, str], Any]:
    """The true answers to all groups, whichever of them the noisy order puts first."""
    unlimited = re.sub(r"(?is)\s+(limit|offset)\s+\d+", "", sql)
    rows = rehearsal.truth().query(unlimited).to_rows()
    return {(repr(row.get("group")), row["aggregate"]): row["estimate"] for row in rows}
