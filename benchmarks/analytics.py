"""SQL over private columns: warm queries and batches over rows in memory, or over Parquet segments, and peak memory.

Run it with ``python benchmarks/analytics.py [--rows 1000000] [--segments 4] [--queries 100] [--cache-mb 1024]``.
Without --segments, all rows are one table in memory. Rows are written by a process of their own, so that the peak
memory is that of answering alone.
"""

import argparse
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.core.statistics.simulated import GeneratorCoins
from tacit.sql.design.levels import Design, hio
from tacit.sql.engine.linked import collect_reports
from tacit.sql.open import open_table
from tacit.sql.schema.schema import Dimension, Schema
from tacit.sql.segments import SegmentCache, SegmentedTable

SIZE = 1 << 10
SCHEMA = Schema((Dimension("a", low=0, high=SIZE - 1), Dimension("b", low=0, high=SIZE - 1)))
COLUMNS = [("x", "number"), ("os", "text")]


def make_design() -> Design:
    return hio(SCHEMA.shape(5), "2")


def write_segments(folder: Path, rows: int, count: int) -> None:
    design = make_design()
    for i in range(count):
        rng = np.random.default_rng([1, i])
        n = rows // count
        reports = collect_reports(design, rng.integers(0, SIZE, (n, 2)), GeneratorCoins(rng), rng)
        width = reports.dtype.itemsize
        # Reports as one column of fixed-size binary values, over the bytes of the numpy array.
        packed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), n, [None, pa.py_buffer(reports.tobytes())])
        table = pa.table({"x": rng.gamma(2, 3, n), "os": rng.choice(["ios", "win", "mac"], n), "report": packed})
        pq.write_table(table, folder / f"{i}.parquet")


@dataclass(frozen=True)
class File:
    """A segment in a file."""

    path: Path
    dtype: "np.dtype"

    @property
    def key(self) -> str:
        return self.path.name

    @property
    def n(self) -> int:
        return pq.read_metadata(self.path).num_rows

    def load(self):
        table = pq.read_table(self.path)
        column = table["report"].combine_chunks()
        # Depending on its version pyarrow returns an array or a chunked array of one chunk.
        raw = column.chunk(0) if hasattr(column, "chunk") else column
        reports = np.frombuffer(raw.buffers()[1], self.dtype, len(raw), raw.offset * self.dtype.itemsize)
        return table.drop_columns(["report"]), reports


def ranges(count: int, rng: np.random.Generator) -> list[str]:
    edges = np.sort(rng.integers(0, SIZE, (count, 2, 2)), axis=2).tolist()
    return [f"SELECT SUM(x) FROM t WHERE a BETWEEN {a} AND {b} AND b BETWEEN {c} AND {d}" for (a, b), (c, d) in edges]


def timed(connection, text: str) -> float:
    start = perf_counter()
    connection.query(text)
    return perf_counter() - start


def measure(connection, queries: int) -> None:
    rng = np.random.default_rng(1)
    print(f"first query, everything cold: {timed(connection, 'SELECT SUM(x) FROM t WHERE a < 7'):.2f} s")
    many = "SELECT SUM(x) FROM t WHERE a BETWEEN 157 AND 637 AND b BETWEEN 134 AND 761"
    nodes = connection.explain(many).steps[0].nodes
    print(f"a range of many nodes ({nodes}): {1e3 * timed(connection, many):.0f} ms")
    print(f"the same condition again, AVG: {1e3 * timed(connection, many.replace('SUM', 'AVG')):.0f} ms")
    grouped = many.replace("SELECT", "SELECT os,") + " GROUP BY os"
    print(f"the same condition by public groups, cold and warm: {1e3 * timed(connection, grouped):.0f} ms", end=", ")
    print(f"{1e3 * timed(connection, grouped):.0f} ms")
    used = process_time()
    seconds = np.array([timed(connection, text) for text in ranges(queries, rng)])
    used = (process_time() - used) / queries
    middle, high = np.quantile(seconds, [0.5, 0.95])
    print(f"{queries} random ranges: median {1e3 * middle:.0f} ms, 95 % below {1e3 * high:.0f} ms", end=", ")
    print(f"slowest {1e3 * seconds.max():.0f} ms; processor time {1e3 * used:.0f} ms each")
    start, used = perf_counter(), process_time()
    connection.queries(ranges(queries, rng))
    print(f"a batch of {queries} other random ranges: {perf_counter() - start:.2f} s", end=", ")
    print(f"processor time {process_time() - used:.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--segments", type=int, default=0)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--cache-mb", type=int, default=1024)
    parser.add_argument("--write", type=Path, help="Write segments into this folder and stop.")
    options = parser.parse_args()
    count = max(1, options.segments)
    if options.write:
        write_segments(options.write, options.rows, count)
        return
    with TemporaryDirectory() as folder:
        # Linux counts the peak of a process for good, so writing must not happen in the one that is measured.
        again = ["--rows", str(options.rows), "--segments", str(count), "--write", folder]
        subprocess.run([sys.executable, __file__, *again], check=True)
        design = make_design()
        files = [File(path, design.mechanism.report_dtype) for path in sorted(Path(folder).iterdir())]
        print(f"{options.rows:,} rows, {options.segments or 'no'} segments, HIO of {len(design.places)} levels")
        if options.segments:
            measure(
                SegmentedTable(SCHEMA, design, COLUMNS, files, SegmentCache(options.cache_mb << 20)), options.queries
            )
        else:
            measure(open_table(SCHEMA, files[0].load()[0], design, files[0].load()[1]), options.queries)


if __name__ == "__main__":
    main()
