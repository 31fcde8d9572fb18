"""Spark against the embedded engine: part of `make bench-scale`, or python benchmarks/scale_spark.py --reports N.

Both sides read the same files in processes of their own. Starting Spark is measured by a small job and told apart:
the targets are about the time of the work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from lines import Row
from timing import wall_seconds

from tacit import OLH
from tacit.catalog import CATALOG
from tacit.collector.collections.publish import Planner
from tacit.core.members import as_bytes
from tacit.lake.about import About
from tacit.lake.count import survey, tally_files
from tacit.lake.files import put_table
from tacit.lake.folder import find_files, put_manifest
from tacit.lake.layout import fixed_binary, reports_of, schema_of
from tacit.lake.place import place_of
from tacit.simulate.coins import SimulationCoins
from tacit.sql.segments import SegmentCache, SegmentedTable
from tacit.tasks.table import TASKS

REPORTS = 1_000_000
MOST = 1.5
MASTER = "local-cluster[2,1,1024]"
FILE_ROWS = 1 << 22
RESPONDENTS = 1 << 13
MECHANISM = OLH(size=1024, epsilon="1")
QUERY = "SELECT SUM(hours) FROM people WHERE age BETWEEN 20 AND 59 AND income BETWEEN 30 AND 79"
DRAFT: dict[str, Any] = {
    "title": "People",
    "epsilon": "2",
    "minimum_cohort": 100,
    "rows": {"table": "people", "columns": [{"name": "hours", "type": "number"}]},
    "queries": [QUERY],
    "questions": [
        {"name": "age", "text": "How old are you?", "domain": {"kind": "integers", "low": 0, "high": 99}},
        {"name": "income", "text": "What do you earn?", "domain": {"kind": "integers", "low": 0, "high": 99}},
    ],
}


def write_reports(folder: Path, n: int) -> None:
    """Random OLH reports, in files of four million."""
    place, about, rng, entries = place_of(str(folder)), About(MECHANISM), np.random.default_rng(15), []
    for start in range(0, n, FILE_ROWS):
        reports = np.empty(min(FILE_ROWS, n - start), MECHANISM.report_dtype)
        reports["seed"] = rng.integers(0, 1 << 32, len(reports), dtype=np.uint32)
        reports["bucket"] = rng.integers(0, MECHANISM.g, len(reports), dtype=np.uint8)
        table = pa.table([fixed_binary(as_bytes(reports))], schema_of(MECHANISM))
        entries.append(put_table(place, table, about))
    put_manifest(place, about, entries)


def write_rows(folder: Path, n: int) -> None:
    """Rows with two private dimensions; the reports of some thousand respondents, again and again."""
    planned: Any = Planner(CATALOG, TASKS, takes_rows=True, check_shuffled=lambda *_: None).plan(
        DRAFT | {"respondents": n}
    )[0]
    mechanism, rng, entries = planned.mechanism, np.random.default_rng(16), []
    place, about = place_of(str(folder)), About(mechanism, planned.to_json())
    # Drawing reports takes longer than counting them; the engine does not look whether it has met a row before.
    answers = rng.integers(0, 100, (min(n, RESPONDENTS), 2))
    values = np.array([mechanism.family.of_answers(row) for row in answers.tolist()])
    members, payloads = mechanism.split_batch(mechanism.privatize(values, SimulationCoins(1)))
    for start in range(0, n, 1 << 20):
        size = min(1 << 20, n - start)
        again = np.arange(size) % len(values)
        columns = {"member": members[again], "report": fixed_binary(as_bytes(payloads[again]))}
        table = pa.table(columns | {"hours": np.round(rng.gamma(4, 5, size), 1)})
        entries.append(put_table(place, table, about))
    put_manifest(place, about, entries)


class _Segment:
    """A report file, as the embedded engine reads segments."""

    def __init__(self, file: Any, mechanism: Any) -> None:
        self._file, self._mechanism, self.key = file, mechanism, file.name
        self.n = file.footer().metadata.num_rows

    def load(self) -> tuple[Any, Any]:
        table = self._file.opened().read()
        return table, reports_of(self._mechanism, table)


def embedded_tally(folder: Path, _: Any) -> Any:
    files = find_files(str(folder))
    return int(tally_files(files, survey(files)[0]).n)


def embedded_query(folder: Path, _: Any) -> Any:
    from tacit.sql.documents import design_of, table_schema
    from tacit.wire.document import Collection

    files = find_files(str(folder))
    about, _rows = survey(files)
    collection = Collection.from_json(about.document, CATALOG)
    schema = table_schema(*zip(*((q.name, q.domain) for q in collection.questions), strict=True), "people")
    design = design_of(about.mechanism, schema)
    segments = [_Segment(file, about.mechanism) for file in files]
    table = SegmentedTable(schema, design, [("hours", "number")], segments, SegmentCache(0))
    return table.query(QUERY).cells()[0].estimate


def spark_tally(folder: Path, session: Any) -> Any:
    from tacit.distributed.spark.lakes import read_lake

    return int(read_lake(session, [str(folder)]).tally().n)


def spark_query(folder: Path, session: Any) -> Any:
    from tacit.distributed.spark.lakes import read_lake

    return read_lake(session, [str(folder)]).table().query(QUERY).cells()[0].estimate


WORK: dict[str, tuple[Callable[[Path, Any], Any], bool]] = {
    "embedded_tally": (embedded_tally, False),
    "embedded_query": (embedded_query, False),
    "spark_tally": (spark_tally, True),
    "spark_query": (spark_query, True),
}


def measure(name: str, folder: Path, small: Path) -> dict[str, Any]:
    """Run one side in this process: seconds of start-up (with a job over a few rows) and of the work."""
    work, needs_spark = WORK[name]
    from tacit.distributed.spark.sessions import session

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    begun = wall_seconds()
    with session(MASTER) if needs_spark else nullcontext() as opened:
        work(small, opened)
        started, cpu = wall_seconds(), tree_seconds(os.getpid())
        answer = work(folder, opened)
        return {
            "start": started - begun, "work": wall_seconds() - started, "cpu": tree_seconds(os.getpid()) - cpu,
            "answer": answer, "executor": executor_bytes(os.getpid()),
        }  # fmt: skip


def tree(pid: int) -> Iterator[int]:
    """A process and all that it started, as far as they are still there."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            yield from tree(int(child))


def tree_seconds(pid: int) -> float:
    """CPU time of a process and of all that it started; of those that have ended, if they were waited for."""
    spent = 0
    for each in tree(pid):
        spent += sum(int(word) for word in Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()[11:15])
    return spent / os.sysconf("SC_CLK_TCK")


def executor_bytes(pid: int) -> int:
    """The peak memory of the largest executor: Java and all Python workers, pages that they share counted twice."""
    peaks = [0]
    for each in tree(pid):
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{each}/cmdline").read_bytes():
            peaks.append(sum(_peak(one) for one in tree(each)))
    return max(peaks)


def _peak(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def measured(name: str, folder: Path, small: Path) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--side", name, "--folder", str(folder), "--small", str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(what: str, n: int, folder: Path, write: Callable[[Path, int], None]) -> Iterator[Row]:
    """Spark with two executors against the embedded engine, on the same files."""
    whole, small = folder / what, folder / f"{what}-small"
    if not whole.exists():
        write(whole, n)
    write(small, min(n, 20_000))
    here, there = (measured(f"{side}_{what}", whole, small) for side in ("spark", "embedded"))
    if abs(here["answer"] - there["answer"]) > 1e-9 * abs(there["answer"]):
        raise SystemExit(f"Spark says {here['answer']} and the embedded engine {there['answer']}")
    name = f"Spark {what} of {n:,} reports, two executors"
    for clock, note in (
        ("work", f"start-up, {here['start']:.0f} s, not counted"),
        ("cpu", "CPU time of all processes"),
    ):
        ratio = here[clock] / there[clock]
        told = f"{here[clock]:.1f} s", f"embedded {there[clock]:.1f} s"
        # The target is about time on the clock; CPU time is told because it is the same on a busy machine.
        target, met = (f"<= {MOST}", ratio <= MOST) if clock == "work" else ("-", None)
        yield Row(f"{name}; {note}", *told, f"{ratio:.2f}", target, met)
    peak = here["executor"]
    yield Row("its largest executor, Java and Python", f"{peak / 1e6:.0f} MB", "", "", "< 1000 MB", peak < 1e9)


WRITERS = {"tally": write_reports, "query": write_rows}


def lines(n: int, folder: Path) -> Iterator[Row]:
    """All lines, as they are measured; whoever calls this writes them down."""
    for what, write in WRITERS.items():
        yield from compare(what, n, folder, write)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=REPORTS)
    parser.add_argument("--side", choices=sorted(WORK), help="measure one side over --folder, and print JSON")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--small", type=Path)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(measure(given.side, given.folder, given.small)))
        return
    with tempfile.TemporaryDirectory(prefix="tacit-scale-", dir=given.folder) as folder:
        for row in lines(given.reports, Path(folder)):
            print(f"{row.line}: {row.tacit}, {row.baseline}, ratio {row.ratio} (target {row.target})", flush=True)


if __name__ == "__main__":
    main()
