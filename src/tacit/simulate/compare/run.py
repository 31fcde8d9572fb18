"""Run a comparison over several epsilons: the rows of `tacit compare`, whose fields `spec/compare.md` describes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.device.numbers.budget import as_epsilon
from tacit.errors import InvalidSpec, NoData
from tacit.simulate.baskets import Baskets, read_baskets
from tacit.simulate.compare.data import AttributeRecords, CountedValues, read_counted, read_records
from tacit.simulate.compare.histogram import compare_histogram
from tacit.simulate.compare.outcome import DEFAULT, Advance, Contender
from tacit.simulate.compare.ranges import compare_ranges
from tacit.simulate.compare.searches import compare_hitters, compare_itemsets
from tacit.simulate.compare.tables import compare_tables
from tacit.simulate.hitters import Population
from tacit.simulate.hitters_data import Columns, read_population, value_domain

ERRORS = {
    "histogram": "mean squared error of a share",
    "ranges": "root mean squared error over all ranges",
    "marginals": "squared error of a table, summed over its cells, mean over tables",
    "heavy-hitters": "1 - F1 of the k most frequent values",
    "itemsets": "1 - F1 of the k most frequent itemsets",
    "sql": "root mean squared error of the aggregates, in units of their true values",
}
"""The tasks, and what the error of each is."""

USUAL_K = {"marginals": 2, "heavy-hitters": 16, "itemsets": 32}
"""Attributes of a table, values and itemsets to look for, unless told."""

Data = Any
"""What a task is compared on: counts, records, a population, baskets, or a table with private columns; all have n."""


@dataclass(frozen=True)
class DataOptions:
    """How a file is to be read, where that is not plain from the task."""

    columns: tuple[str, ...] = ()
    values: str = "text"
    """Of heavy hitters: text, bits or integers."""
    bits: int = 64
    """Of heavy hitters: length of the values."""
    private: str | None = None
    sql: str | None = None
    """Of SQL: the private columns as in "age:0-99,state", and the query over the table t."""


def read_data(path: str, task: str, columns: Sequence[str] = (), options: DataOptions | None = None) -> Data:
    """Read a file as the task needs it."""
    given = options or DataOptions(tuple(columns))
    if task == "marginals":
        return read_records(path, columns=given.columns)
    if task == "itemsets":
        return read_baskets(path)
    if task == "sql":
        return _private_table(path, given)
    if len(given.columns) > 1:
        raise InvalidSpec(f"compare: {task} is about one column, {len(given.columns)} are named; or compare marginals")
    column = given.columns[0] if given.columns else None
    if task == "heavy-hitters":
        return _population(path, column, given)
    return read_counted(path, column=column, ranges=task == "ranges")


def _population(path: str, column: str | None, given: DataOptions) -> Population:
    domain = value_domain(given.values, given.bits)
    integers = given.values == "integers"
    found = read_population(path, domain, columns=Columns(column, None, ()), integers=integers).population
    if not found.n:
        raise NoData(f"{path}: holds no respondents with a value of the domain; see --values and --bits")
    return found


def _private_table(path: str, given: DataOptions) -> Data:
    if not given.private or not given.sql:
        raise InvalidSpec('compare: sql needs --private "age:0-99,state" and --sql "SELECT ... FROM t"')
    # SQL needs Arrow, which is an extra; the other tasks do without.
    from tacit.simulate.analytics import read_rows, read_schema
    from tacit.simulate.compare.queries import PrivateTable

    table = read_rows(path)
    return PrivateTable(table, read_schema(given.private, table), given.sql)


def compare(
    data: Data, task: str, epsilons: Sequence[str], *, seeds: int = 5, k: int | None = None,
    advance: Advance | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row per method and epsilon, the least error of every epsilon first."""
    if task not in ERRORS:
        raise InvalidSpec(f"compare: task is {task[:40]!r}, must be one of {', '.join(ERRORS)}")
    rows: list[dict[str, Any]] = []
    for epsilon in epsilons:
        as_epsilon(epsilon)
        found = _contenders(data, task, epsilon, range(1, seeds + 1), k or USUAL_K.get(task, 2), advance)
        about = {"task": task, "n": _respondents(data), "seeds": seeds}
        made = [contender.to_row(epsilon, **about) for contender in found]
        base = next(row["error"] for row in made if row["method"] == DEFAULT)
        # How every method compares with what a user gets; an error of zero compares with nothing.
        for row in made:
            row["relative"] = row["error"] / base if base > 0 else None
        rows += sorted(made, key=lambda row: row["error"])
    return rows


def _respondents(data: Data) -> int:
    return len(data.sets) if isinstance(data, Baskets) else data.n


def _contenders(
    data: Data, task: str, epsilon: str, seeds: Sequence[int], k: int, advance: Advance | None
) -> list[Contender]:
    if isinstance(data, AttributeRecords):
        return compare_tables(data.rows, data.sizes, epsilon, seeds, k=k, advance=advance)
    if isinstance(data, Population):
        return compare_hitters(data, epsilon, seeds, k=k, advance=advance)
    if isinstance(data, Baskets):
        return compare_itemsets(data, epsilon, seeds, k=k, advance=advance)
    if not isinstance(data, CountedValues):
        from tacit.simulate.compare.queries import compare_sql

        return compare_sql(data, epsilon, seeds, advance=advance)
    if task == "ranges":
        return compare_ranges(data.counts, epsilon, seeds, advance=advance)
    return compare_histogram(data.counts, epsilon, seeds, ordered=data.ordered, advance=advance)
