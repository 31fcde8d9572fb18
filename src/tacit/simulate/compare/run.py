"""Run a comparison over several epsilons: the rows of `tacit compare`, whose fields `spec/compare.md` describes."""

from collections.abc import Callable, Sequence
from typing import Any

from tacit.device.numbers.budget import as_epsilon
from tacit.errors import InvalidSpec
from tacit.simulate.compare.data import AttributeRecords, CountedValues, read_counted, read_records
from tacit.simulate.compare.histogram import compare_histogram
from tacit.simulate.compare.outcome import DEFAULT, Advance, Contender
from tacit.simulate.compare.ranges import compare_ranges
from tacit.simulate.compare.tables import compare_tables

ERRORS = {
    "histogram": "mean squared error of a share",
    "ranges": "root mean squared error over all ranges",
    "marginals": "squared error of a table, summed over its cells, mean over tables",
}
"""The tasks, and what the error of each is."""

Data = CountedValues | AttributeRecords
Compare = Callable[[Any, str, Sequence[int], Advance | None], list[Contender]]


def read_data(path: str, task: str, columns: Sequence[str] = ()) -> Data:
    """Read a file as the task needs it."""
    if task == "marginals":
        return read_records(path, columns=columns)
    if len(columns) > 1:
        raise InvalidSpec(f"compare: {task} is about one column, {len(columns)} are named; or compare marginals")
    return read_counted(path, column=columns[0] if columns else None, ranges=task == "ranges")


def compare(
    data: Data, task: str, epsilons: Sequence[str], *, seeds: int = 5, k: int = 2, advance: Advance | None = None
) -> list[dict[str, Any]]:
    """Return a row per method and epsilon, the least error of every epsilon first."""
    if task not in ERRORS:
        raise InvalidSpec(f"compare: task is {task[:40]!r}, must be one of {', '.join(ERRORS)}")
    rows: list[dict[str, Any]] = []
    for epsilon in epsilons:
        as_epsilon(epsilon)
        found = _contenders(data, task, epsilon, range(1, seeds + 1), k, advance)
        about = {"task": task, "n": data.n, "seeds": seeds}
        made = [contender.to_row(epsilon, **about) for contender in found]
        base = next(row["error"] for row in made if row["method"] == DEFAULT)
        # How every method compares with what a user gets; an error of zero compares with nothing.
        for row in made:
            row["relative"] = row["error"] / base if base > 0 else None
        rows += sorted(made, key=lambda row: row["error"])
    return rows


def _contenders(
    data: Data, task: str, epsilon: str, seeds: Sequence[int], k: int, advance: Advance | None
) -> list[Contender]:
    if isinstance(data, AttributeRecords):
        return compare_tables(data.rows, data.sizes, epsilon, seeds, k=k, advance=advance)
    if task == "ranges":
        return compare_ranges(data.counts, epsilon, seeds, advance=advance)
    return compare_histogram(data.counts, epsilon, seeds, ordered=data.ordered, advance=advance)
