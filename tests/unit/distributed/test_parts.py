"""What every engine uses: parts that add, cells as rows, and partial sums of SQL that add exactly."""

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.distributed.crowds import reports_on

from tacit import __version__
from tacit.catalog import CATALOG
from tacit.core.compose import OneOf, Questions
from tacit.distributed.cells import rows_of, tally_of_rows
from tacit.distributed.parts import KERNEL, add_parts, count_part, joined, log_kernel, mechanism_of, spec_of
from tacit.distributed.row_sums import ExactSums, merge, pack, unpack
from tacit.distributed.spark.failures import explain
from tacit.errors import MissingExtra, Overflow, ReportRejected
from tacit.lake.layout import table_of
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE
from tacit.sql.engine.aggregate import GroupSums
from tacit.sql.engine.run import PartialSums
from tacit.sql.engine.weights import weights_of
from tacit.testing.examples import example
from tacit.wire.tallies import dump_tally

KINDS = [cls.kind for cls in CATALOG]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_parts_add_up_to_the_tally_of_all(kind: str, weighted: bool) -> None:
    mechanism = example(kind, "1")
    reports, weights = reports_on(mechanism, 90), np.arange(90) - 20 if weighted else None
    table = table_of(mechanism, reports, weights)
    spec = spec_of(mechanism)
    assert mechanism_of(spec).digest == mechanism.digest
    parts = [count_part(spec, table[start : start + 30].to_batches()) for start in (30, 0, 60)]
    whole = dump_tally(mechanism.tally(reports, weights))
    assert add_parts(spec, [add_parts(spec, parts[:2]), add_parts(spec, []), parts[2]]) == whole


def test_small_batches_are_joined_and_empty_ones_left_out() -> None:
    batches = [pa.record_batch({"x": pa.array(range(n), pa.int64())}) for n in (3, 0, 4, 2)]
    assert [table.num_rows for table in joined(batches, 5)] == [7, 2]
    assert list(joined([], 5)) == []


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_cells_as_rows_sum_to_the_same_tally(weighted: bool) -> None:
    shared = GRR(size=7, epsilon="1")
    mechanism = OneOf(family=Questions(mechanisms=(shared, OUE(size=9, epsilon="1"), shared)))
    reports, weights = reports_on(mechanism, 60), np.arange(60) - 30 if weighted else None
    cuts = [slice(0, 20), slice(20, 20), slice(20, 60)]
    tallies = [mechanism.tally(reports[cut], None if weights is None else weights[cut]) for cut in cuts]
    rows = pa.Table.from_batches([rows_of(tally) for tally in tallies])
    summed = rows.group_by(["array", "cell"]).aggregate([("count", "sum")]).rename_columns(["array", "cell", "count"])
    assert dump_tally(tally_of_rows(mechanism, summed)) == dump_tally(mechanism.tally(reports, weights))
    assert tally_of_rows(mechanism, rows[:0]).n == 0
    none = summed.set_column(2, "count", pa.nulls(len(summed), pa.int64()))
    with pytest.raises(Overflow, match="64 bits"):
        tally_of_rows(mechanism, none)


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_exact_sums_are_rounded_once(rows: list[tuple[float, float]]) -> None:
    parts = [ExactSums.of(np.array(row)) for row in rows]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    for place, found in enumerate(total.integers):
        exact = sum(Fraction(row[place]) for row in rows)
        assert found * Fraction(2) ** total.exponent == exact
    if all(abs(sum(Fraction(row[i]) for row in rows)) < 2**1023 for i in (0, 1)):
        assert total.rounded().tolist() == [float(sum(Fraction(row[i]) for row in rows)) for i in (0, 1)]


def partial(keys: list[tuple[Any, ...]], seed: int) -> PartialSums:
    """Sums of one aggregate over groups, of twelve rows each."""
    rng, n = np.random.default_rng(seed), 12 * len(keys)
    codes = np.arange(n) % len(keys)
    measure = rng.normal(1e6, 1e-3, n)
    asked = weights_of(measure, (), codes, len(keys), n)
    return PartialSums(tuple(keys), (GroupSums(1e6, np.bincount(codes), asked, rng.normal(0, 1e9, (3, 3, len(keys)))),))


def test_partial_sums_merge_to_the_same_bytes_in_any_order_and_tree() -> None:
    nan = float("nan")
    keys: list[list[tuple[Any, ...]]] = [
        [("a", date(2030, 1, 2)), (None, nan)],
        [(None, nan), ("b", datetime(2030, 1, 2, 3))],
        [("a", date(2030, 1, 2))],
    ]
    partials = [partial(some, seed) for seed, some in enumerate(keys)]
    parts = [pack([one]) for one in partials]
    assert merge(parts) == merge(parts[::-1]) == merge([parts[1], parts[2], parts[0]])
    (found,) = unpack(parts)
    assert len(found.keys) == 3
    place = next(i for i, key in enumerate(found.keys) if key[0] == "a")
    assert found.keys[place][1] == date(2030, 1, 2)
    expected = partials[0].sums[0].table[:, :, 0] + partials[2].sums[0].table[:, :, 0]
    assert found.sums[0].table[:, :, place].tolist() == expected.tolist()
    assert found.sums[0].n.sum() == 12 * 5
    # A partition without rows has neither groups nor sums, and changes nothing.
    (again,) = unpack([*parts, pack([PartialSums((), ())])])
    assert [sums.table.tolist() for sums in again.sums] == [sums.table.tolist() for sums in found.sums]


def test_a_worker_says_once_which_kernels_it_counts_with(capfd: pytest.CaptureFixture[str]) -> None:
    log_kernel.cache_clear()
    log_kernel()
    log_kernel()
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"tacit {__version__}: Python 3.") and ("the C kernels" in line) == (KERNEL == "c")


FAULTS = [
    ("Traceback ...\ntacit.errors.ReportRejected: grr 1: 3 of 3 reports\n\tat org...", ReportRejected, "grr 1: 3 of 3"),
    ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12", MissingExtra, "minor versions must be"),
    ("pickle ...\nModuleNotFoundError: No module named 'tacit'\n", MissingExtra, "no package tacit; pack the driver's"),
    ("[FAILED_READ_FILE.NO_HINT] reading file file:///x/2.parquet. SQL", ReportRejected, "file:///x/2.parquet: cannot"),
    ("[PARQUET_COLUMN_DATA_TYPE_MISMATCH] x", ReportRejected, "a file: has other columns"),
]


@pytest.mark.parametrize(("text", "kind", "words"), FAULTS, ids=["own", "python", "package", "file", "columns"])
def test_faults_of_executors_say_what_to_do(text: str, kind: type, words: str) -> None:
    found = explain(text)
    assert type(found) is kind and words in str(found)
    assert explain("java.lang.OutOfMemoryError: Java heap space") is None
