"""Spark against the embedded engine: part of `make bench-scale`, or python benchmarks/scale_spark.py --reports N.

Both sides read the same files in turns, so that a busy machine slows both; ratios are medians over the turns. Starting
Spark is measured by a small job and told apart: the targets are about the time of the work.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
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

REPORTS, TURNS = 1_000_000, 3
MOST = 1.5
EXECUTORS = 2
MASTER = f"local-cluster[{EXECUTORS},1,1024]"
FILE_ROWS, GROUP_ROWS = 1 << 22, 1 << 20
SMALL, SMALL_FILE_ROWS, WARM_JOBS = 20_000, 2_500, 100
"""Reports of the job that starts executors, in several files, so that each has one; and most runs of it."""
RESPONDENTS = 1 << 13
Work = Callable[[Path, Any], float]
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


def write_reports(folder: Path, n: int, file_rows: int = FILE_ROWS) -> None:
    """Random OLH reports, in files of four million."""
    place, about, rng, entries = place_of(str(folder)), About(MECHANISM), np.random.default_rng(15), []
    for start in range(0, n, file_rows):
        reports = np.empty(min(file_rows, n - start), MECHANISM.report_dtype)
        reports["seed"] = rng.integers(0, 1 << 32, len(reports), dtype=np.uint32)
        reports["bucket"] = rng.integers(0, MECHANISM.g, len(reports), dtype=np.uint8)
        table = pa.table([fixed_binary(as_bytes(reports))], schema_of(MECHANISM))
        entries.append(put_table(place, table, about))
    put_manifest(place, about, entries)


def write_rows(folder: Path, n: int, file_rows: int = GROUP_ROWS) -> None:
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
    for start in range(0, n, file_rows):
        size = min(file_rows, n - start)
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


def embedded_tally(folder: Path, _: Any) -> float:
    files = find_files(str(folder))
    return int(tally_files(files, survey(files)[0]).n)


def embedded_query(folder: Path, _: Any) -> float:
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


def spark_tally(folder: Path, session: Any) -> float:
    from tacit.distributed.spark.lakes import read_lake

    return int(read_lake(session, [str(folder)]).tally().n)


def spark_query(folder: Path, session: Any) -> float:
    from tacit.distributed.spark.lakes import read_lake

    return read_lake(session, [str(folder)]).table().query(QUERY).cells()[0].estimate


WORK: dict[str, tuple[Work, Work]] = {
    "tally": (embedded_tally, spark_tally),
    "query": (embedded_query, spark_query),
}


@dataclass(frozen=True)
class Spent:
    """What one run took, and what it answered."""

    clock: float
    cpu: float
    """Seconds of CPU time of this process and of all that it started."""
    answer: float


def spent(work: Work, folder: Path, session: Any) -> Spent:
    with TreeMeter(os.getpid()) as meter:
        clock = wall_seconds()
        answer = work(folder, session)
        clock = wall_seconds() - clock
    return Spent(clock, meter.seconds, answer)


class TreeMeter:
    """CPU time of a process and all that it starts, looked at again and again.

    A worker that ends takes its time with it unless its parent waits for it, and Spark's does not: so the last that
    was seen of every process counts, and a difference of two sums over those still there would not do. What looking
    costs, in a thread of this process, is left out.
    """

    EVERY = 0.2

    def __init__(self, pid: int) -> None:
        self._pid, self._over = pid, Event()
        self._first: dict[tuple[int, str], float] = {}
        self._last: dict[tuple[int, str], float] = {}
        self._own = 0.0
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> TreeMeter:
        self._first = dict(own_seconds(self._pid))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._last |= dict(own_seconds(self._pid))

    def _watch(self) -> None:
        while not self._over.wait(self.EVERY):
            self._last |= dict(own_seconds(self._pid))
        self._own = time.thread_time()

    @property
    def seconds(self) -> float:
        """What was spent between the beginning and the end."""
        return sum(last - self._first.get(key, 0.0) for key, last in self._last.items()) - self._own


def measure(what: str, folder: Path, small: Path, turns: int) -> dict[str, Any]:
    """Run both sides in turns: seconds of start-up (with a job over a few rows), and of the work of every turn."""
    from tacit.distributed.spark.sessions import session

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    begun, (embedded, spark) = wall_seconds(), WORK[what]
    # As the command of this name opens it.
    with session(MASTER, light=what == "tally") as opened:
        with_executors(lambda: spark(small, opened))
        start, found = wall_seconds() - begun, list[tuple[dict[str, Any], dict[str, Any]]]()
        for _ in range(turns):
            found.append((asdict(spent(embedded, folder, opened)), asdict(spent(spark, folder, opened))))
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
        peak = executor_bytes(os.getpid())
    return {"start": start, "turns": found, "executor": peak, "load": os.getloadavg()[0]}


def with_executors(job: Callable[[], float]) -> None:
    """Run a small job until every executor has started Python, which is start-up and no part of the work."""
    for _ in range(WARM_JOBS):
        job()
        executors = list(executors_of(os.getpid()))
        if len(executors) == EXECUTORS and all(len(list(tree(each))) > 1 for each in executors):
            return
    raise SystemExit(f"after {WARM_JOBS} jobs there are not {EXECUTORS} executors that have run one")


def executors_of(pid: int) -> Iterator[int]:
    """The Java processes of executors."""
    for each in tree(pid):
        with suppress(OSError):
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{each}/cmdline").read_bytes():
                yield each


def tree(pid: int) -> Iterator[int]:
    """A process and all that it started, as far as they are still there."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # It has just ended.
            for child in task.read_text().split():
                yield from tree(int(child))


def own_seconds(pid: int) -> Iterator[tuple[tuple[int, str], float]]:
    """Of every process of a tree: its number and when it was started, and the CPU time of its own."""
    for each in tree(pid):
        with suppress(OSError):
            words = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
            yield (each, words[19]), (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def executor_bytes(pid: int) -> int:
    """The peak memory of the largest executor: Java and all Python workers, pages that they share counted twice."""
    return max((sum(map(_peak, tree(each))) for each in executors_of(pid)), default=0)


def _peak(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def measured(what: str, folder: Path, small: Path, turns: int) -> dict[str, Any]:
    """The same in a process of its own, so that what it started is its own too."""
    command = [sys.executable, __file__, "--measure", what, "--folder", str(folder), "--small", str(small)]
    done = subprocess.run([*command, "--turns", str(turns)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(what: str, n: int, folder: Path, turns: int) -> dict[str, Any]:
    """Spark with two executors against the embedded engine, on the same files."""
    whole, small = folder / what, folder / f"{what}-small"
    if not whole.exists():
        WRITERS[what](whole, n)
    WRITERS[what](small, min(n, SMALL), SMALL_FILE_ROWS)
    found = measured(what, whole, small, turns)
    for here, there in found["turns"]:
        if abs(here["answer"] - there["answer"]) > 1e-9 * abs(here["answer"]):
            raise SystemExit(f"Spark says {there['answer']} and the embedded engine {here['answer']}")
    return found


def median(found: dict[str, Any], clock: str, side: int) -> float:
    """Seconds of one side: 0 is the embedded engine, 1 Spark."""
    return statistics.median(pair[side][clock] for pair in found["turns"])


def rows_of(what: str, n: int, found: dict[str, Any]) -> Iterator[Row]:
    """The lines of the table."""
    name = f"Spark {what} of {n:,} {NOUN[what]}, two executors"
    for clock, note in (
        ("clock", f"start-up, {found['start']:.0f} s, not counted; load average {found['load']:.1f}"),
        ("cpu", "CPU time of all processes"),
    ):
        ratio = statistics.median(pair[1][clock] / pair[0][clock] for pair in found["turns"])
        told = f"{median(found, clock, 1):.1f} s", f"embedded {median(found, clock, 0):.1f} s"
        # The target is about time on the clock; CPU time is told because it is the same on a busy machine.
        target, met = (f"<= {MOST}", ratio <= MOST) if clock == "clock" else ("-", None)
        yield Row(f"{name}; {note}; median of {len(found['turns'])} turns", *told, f"{ratio:.2f}", target, met)
    peak = found["executor"]
    yield Row("its largest executor, Java and Python", f"{peak / 1e6:.0f} MB", "", "", "< 1000 MB", peak < 1e9)


def costs_of(what: str, n: int, found: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a report costs on both sides."""
    stored = sum(path.stat().st_size for path in folder.iterdir()) / n
    sides = {f"`tacit spark {what}`": median(found, "cpu", 1)}
    # What counts embedded is `tacit tally`, which is measured as a command.
    sides |= {"the embedded engine, SQL": median(found, "cpu", 0)} if what == "query" else {}
    return {name: {"cpu_microseconds": 1e6 * cpu / n, "stored_bytes": stored} for name, cpu in sides.items()}


WRITERS = {"tally": write_reports, "query": write_rows}
NOUN = {"tally": "reports", "query": "rows"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=REPORTS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", choices=sorted(WORK), help="one of both comparisons")
    parser.add_argument("--measure", choices=sorted(WORK), help="measure both sides over --folder, and print JSON")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--small", type=Path)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.folder, given.small, given.turns)))
        return
    with tempfile.TemporaryDirectory(prefix="tacit-scale-", dir=given.folder) as folder:
        for what in WORK if given.only is None else (given.only,):
            for row in rows_of(what, given.reports, compare(what, given.reports, Path(folder), given.turns)):
                print(f"{row.line}: {row.tacit}, {row.baseline}, ratio {row.ratio} (target {row.target})", flush=True)


if __name__ == "__main__":
    main()
