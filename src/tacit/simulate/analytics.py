"""Rehearse SQL over private columns: read a table, privatize some of its columns, query it, compare with the truth."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tacit.arrays import I64
from tacit.core.extras import load
from tacit.core.statistics.simulated import GeneratorCoins
from tacit.errors import InvalidSpec
from tacit.sql.connection import Connection
from tacit.sql.design.levels import Design
from tacit.sql.engine.linked import collect
from tacit.sql.engine.public import MAX_GROUPS, ArrowRows, RowEvaluator
from tacit.sql.engine.run import QueryAnswer
from tacit.sql.engine.source import ValueSource
from tacit.sql.open import choose_design, open_table, regions_of
from tacit.sql.parse.syntax import ColumnRef, Select
from tacit.sql.schema.faults import is_missing
from tacit.sql.schema.scales import ListedScale
from tacit.sql.schema.schema import Dimension, Schema, nearest_column

# A private column on the command line: its name, and for numbers a range, as in "age:0-99".
_PRIVATE = re.compile(r"\s*(?P<name>[^:]+?)\s*(?::\s*(?P<low>-?\d+)\s*-\s*(?P<high>-?\d+)\s*)?")
# Mixed into the seed, so that this stream differs from those of other simulations with the same seed.
_TAG = int.from_bytes(b"rows", "little")

MOST_FOUND = 1 << 16
"""How many different labels of a private column a rehearsal takes from the data, where none are declared."""


def read_rows(path: str, columns: Sequence[str] | None = None) -> Any:
    """Return the Arrow table of a CSV or Parquet file; names and text are stripped of white space around them."""
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
    """Return the schema of private columns such as `age:0-99,state`; without a range, the values are the data's."""
    dimensions: list[Dimension] = []
    for item in text.split(","):
        match = _PRIVATE.fullmatch(item)
        if match is None:
            raise InvalidSpec(f"--private: {item[:40]!r} must be a column, or a column and a range such as age:0-99")
        name = nearest_column(match["name"], table.column_names)
        if match["low"] is not None:
            dimensions.append(Dimension(name, low=int(match["low"]), high=int(match["high"])))
            continue
        dimensions.append(_labelled(name, table[name].unique().to_pylist()))
    return Schema(tuple(dimensions))


def _labelled(name: str, values: Sequence[Any]) -> Dimension:
    """A private column whose domain is the values of the data, without NULL: integers in order, or labels."""
    held = {value for value in values if not is_missing(value)}
    if len(held) > MOST_FOUND:
        raise InvalidSpec(
            f"{name}: the data has {len(held)} labels, at most {MOST_FOUND} are taken from it; "
            f"give a range such as {name}:0-99"
        )
    if held and all(isinstance(value, int) and not isinstance(value, bool) for value in held):
        return Dimension(name, scale=ListedScale(tuple(sorted(held))))
    return Dimension(name, labels=tuple(sorted({str(value) for value in held})))


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Rows whose private columns are known, so that answers can be compared with the truth."""

    schema: Schema
    rows: ArrowRows
    values: I64
    design: Design

    def collect(self, rng: np.random.Generator) -> Connection:
        """Return a connection to fresh reports on the private columns."""
        linked = collect(self.design, self.values, GeneratorCoins(rng), rng)
        return open_table(self.schema, self.rows, self.design, linked)

    def truth(self) -> Connection:
        """Return a connection that answers from the true values."""
        return self.collect_nothing().with_source(ValueSource(self.values))

    def collect_nothing(self) -> Connection:
        """Return a connection without reports, which can explain queries but not answer them."""
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
    """Return pairs (public column, private column) where the first determines the second, which then has no protection.

    A public column in which most values occur once or twice determines everything by chance; it is left out, and so is
    one with more values than GROUP BY takes.
    """
    public, schema = RowEvaluator(rehearsal.rows), rehearsal.schema
    pairs_found: list[tuple[str, str]] = []
    for name in rehearsal.rows.names:
        values = public.distinct(name)
        if 2 * values > rehearsal.rows.n or not 2 <= values <= MAX_GROUPS:
            continue
        codes, keys = public.groups([ColumnRef(name)])
        for column, place in zip(rehearsal.values.T, schema.kept, strict=True):
            # A functional dependency: as many (public, private) pairs as there are public values.
            pairs = np.unique(codes * schema.dimensions[place].size + column)
            if len(pairs) == len(keys) and len(np.unique(column)) > 1:
                pairs_found.append((name, schema.dimensions[place].name))
    return pairs_found


def simulate_analytics(rehearsal: Rehearsal, sql: str, *, seed: int) -> tuple[QueryAnswer, list[dict[str, Any]]]:
    """Return the answer from noisy reports, and a row per aggregate with the truth beside it."""
    rng = np.random.default_rng([_TAG, seed])
    connection = rehearsal.collect(rng)
    select = connection.parse(sql)
    answer = connection.query(select)
    # EXPLAIN has no true answer to compare with.
    if select.explain:
        return answer, [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    true = _true_rows(rehearsal, select)
    compared: list[dict[str, Any]] = []
    for row in answer.to_rows():
        key = repr(row.get("group")), row["aggregate"]
        compared.append(row | {"truth": true.get(key)})
    return answer, compared


def _true_rows(rehearsal: Rehearsal, select: Select) -> dict[tuple[str, str], Any]:
    """Return the true answers of all groups."""
    # Without LIMIT and OFFSET: the true order may cut off groups that the noisy order shows.
    rows = rehearsal.truth().query(replace(select, limit=None, offset=0)).to_rows()
    return {(repr(row.get("group")), row["aggregate"]): row["estimate"] for row in rows}
