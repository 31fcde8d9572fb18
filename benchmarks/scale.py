"""Counting report files at scale: `make bench-scale`, or python benchmarks/scale.py --reports 100000000.

    --only embedded --only command     these lines alone (embedded, command, spark-tally, spark-query)
    --results FILE.md                  not benchmarks/SCALE.md, for a trial or another size; costs go to FILE.json

Progress goes to standard error. Writes a lake of random OLH reports, counts it, and compares with the kernel on
reports in memory. Both sides are measured in turns on the same machine; the table goes to benchmarks/SCALE.md, and what
a report costs to scale.json, from which capacity_files.py writes its table of docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scale_spark
from lines import Row, rate
from timing import cpu_seconds, seconds_of, wall_seconds

from tacit import OLH
from tacit.core.members import as_bytes
from tacit.lake.about import About
from tacit.lake.count import survey, tally_files
from tacit.lake.export import FILE_REPORTS
from tacit.lake.files import GROUP_ROWS, put_table
from tacit.lake.folder import find_files, put_manifest
from tacit.lake.layout import fixed_binary, schema_of
from tacit.lake.place import place_of

HERE = Path(__file__).parent
RESULTS, COSTS = HERE / "SCALE.md", HERE / "scale.json"
"""Where a run without --results writes its table and its costs."""
REPORTS, TURNS = 4_000_000, 3
LEAST = 0.8
MECHANISM = OLH(size=1024, epsilon="1")


@dataclass
class Scale:
    """What every line measures: a lake of so many reports."""

    reports: int
    folder: Path
    turns: int = TURNS
    results: Path = RESULTS
    rows: list[Row] = field(default_factory=list)
    costs: dict[str, Any] = field(default_factory=dict)
    """By command, what a report costs: CPU microseconds of all processes, and bytes in Parquet."""

    @property
    def lake(self) -> Path:
        return self.folder / "lake"


def progress(message: str) -> None:
    """Tell the person at the terminal what is being measured."""
    print(f"scale: {time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def random_reports(n: int, rng: np.random.Generator) -> Any:
    """Reports with uniform seeds and buckets: counting them costs what counting any does."""
    reports = np.empty(n, MECHANISM.report_dtype)
    reports["seed"] = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    reports["bucket"] = rng.integers(0, MECHANISM.g, n, dtype=np.uint8)
    return reports


def write_lake(scale: Scale) -> None:
    """Files as `tacit reports export` writes them, but for the sorting: random reports have no order."""
    place, about, rng = place_of(str(scale.lake)), About(MECHANISM), np.random.default_rng(15)
    entries = []
    for start in range(0, scale.reports, FILE_REPORTS):
        reports = random_reports(min(FILE_REPORTS, scale.reports - start), rng)
        table = pa.table([fixed_binary(as_bytes(reports))], schema_of(MECHANISM))
        entries.append(put_table(place, table, about))
    put_manifest(place, about, entries)


def count_lake(scale: Scale) -> Any:
    files = find_files(str(scale.lake))
    return tally_files(files, survey(files)[0])


def count_in_memory(reports: Any, times: int) -> None:
    for _ in range(times):
        MECHANISM.tally(reports)


def embedded(scale: Scale) -> None:
    """`tally_files` against the kernel itself, which counts one batch in memory as often as the lake has batches."""
    times = max(1, scale.reports // GROUP_ROWS)
    batch = random_reports(GROUP_ROWS, np.random.default_rng(1))
    sides: dict[str, Callable[[], Any]] = {
        "kernel": lambda: count_in_memory(batch, times),
        "lake": lambda: count_lake(scale),
    }
    MECHANISM.tally(batch)
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for turn in range(scale.turns):
        for name, action in sides.items():
            progress(f"{name}, turn {turn + 1} of {scale.turns}")
            begun = cpu_seconds()
            spent[name].append((seconds_of(action, wall_seconds), cpu_seconds() - begun))
    counted = {"kernel": times * GROUP_ROWS, "lake": scale.reports}
    for i, clock in enumerate(("on the clock", "of CPU time")):
        kernel, lake = (counted[name] / sorted(pair[i] for pair in spent[name])[scale.turns // 2] for name in sides)
        scale.rows.append(_row(f"embedded count, per second {clock}", lake, kernel, f"median of {scale.turns} turns"))


def _row(line: str, here: float, baseline: float, note: str) -> Row:
    ratio = here / baseline
    return Row(f"{line}, {note}", rate(here), f"kernel {rate(baseline)}", f"{ratio:.2f}", f">= {LEAST}", ratio >= LEAST)


def command(scale: Scale) -> None:
    """`tacit tally` as a process: its time and its peak memory."""
    tacit = str(Path(sys.executable).with_name("tacit"))
    words = [tacit, "tally", str(scale.lake), "-o", str(scale.folder / "all.tally")]
    begun, before = wall_seconds(), os.times()
    peak = subprocess.run([sys.executable, str(HERE / "peak.py"), *words], capture_output=True, text=True, check=True)
    seconds, size, after = wall_seconds() - begun, int(peak.stdout), os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    stored = sum(path.stat().st_size for path in scale.lake.iterdir()) / scale.reports
    scale.costs["`tacit tally`"] = {"cpu_microseconds": 1e6 * cpu / scale.reports, "stored_bytes": stored}
    line = f"`tacit tally` of {scale.reports:,} reports, start included"
    scale.rows.append(
        Row(line, rate(scale.reports / seconds), f"{seconds:.1f} s, {cpu:.1f} s of CPU time", "", "-", None)
    )
    scale.rows.append(Row("its peak memory", f"{size / 1e6:.0f} MB", "", "", "< 1000 MB", size < 1e9))


def on_spark(scale: Scale, what: str) -> None:
    """Spark against the embedded engine, on the same files; one line says so where there is no Java."""
    if shutil.which("java") is None:
        scale.rows.append(Row(f"Spark {what}", "not measured: there is no Java", "", "", "-", None))
        return
    found = scale_spark.compare(what, scale.reports, scale.folder, scale.turns)
    scale.rows += scale_spark.rows_of(what, scale.reports, found)
    scale.costs |= scale_spark.costs_of(what, scale.reports, found, scale.folder / what)


def spark_tally(scale: Scale) -> None:
    """`tacit spark tally` against `tacit tally`."""
    (scale.folder / "tally").symlink_to(scale.lake)
    on_spark(scale, "tally")


def spark_query(scale: Scale) -> None:
    """A range SUM over two private dimensions, on Spark and embedded."""
    on_spark(scale, "query")


LINES: dict[str, Callable[[Scale], None]] = {
    "embedded": embedded,
    "command": command,
    "spark-tally": spark_tally,
    "spark-query": spark_query,
}
"""What is measured, in this order; all but the last over the same lake."""


def told_command(scale: Scale, only: Sequence[str]) -> str:
    """The command that measures this again."""
    words = ["python benchmarks/scale.py --reports", str(scale.reports), "--turns", str(scale.turns)]
    return " ".join([*words, *(f"--only {name}" for name in only)])


def write_results(scale: Scale, size: int, only: Sequence[str]) -> None:
    met = {True: "yes", False: "no", None: "-"}
    lines = [
        "# Report files at scale\n",
        f"Written by `make bench-scale` (here: `{told_command(scale, only)}`). Absolute\n"
        "figures belong to one machine; compare ratios, whose two sides were measured in turns.\n",
        f"- Machine: {platform.machine()}, {len(os.sched_getaffinity(0))} cores; load average "
        f"{os.getloadavg()[0]:.1f} at the end",
        f"- Python {platform.python_version()}, pyarrow {pa.__version__}",
        f"- {scale.reports:,} OLH reports (d = 1024), {size / 1e6:,.0f} MB of Parquet\n",
        "| line | measured | against | ratio | target | met |",
        "| --- | --- | --- | --- | --- | --- |",
        *(f"| {r.line} | {r.tacit} | {r.baseline} | {r.ratio} | {r.target} | {met[r.met]} |" for r in scale.rows),
    ]
    scale.results.write_text("\n".join(lines) + "\n", encoding="utf-8")
    kept = {
        "command": told_command(scale, only),
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "load": round(os.getloadavg()[0], 1),
        "costs": scale.costs,
    }
    costs = COSTS if scale.results == RESULTS else scale.results.with_suffix(".json")
    costs.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=REPORTS)
    parser.add_argument("--folder", type=Path, help="where the lake is written; a temporary folder by default")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", action="append", choices=list(LINES), default=[], help="may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table is written")
    given = parser.parse_args()
    names: list[str] = given.only or list(LINES)
    with tempfile.TemporaryDirectory(prefix="tacit-scale-", dir=given.folder) as folder:
        scale, size = Scale(given.reports, Path(folder), given.turns, given.results.resolve()), 0
        if names != ["spark-query"]:
            progress(f"writing {scale.reports:,} reports")
            write_lake(scale)
            size = sum(path.stat().st_size for path in scale.lake.iterdir())
        for name in names:
            progress(name)
            LINES[name](scale)
            # After each of them: at 10^9 reports the next one takes half an hour.
            write_results(scale, size, given.only)
        print(scale.results.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
