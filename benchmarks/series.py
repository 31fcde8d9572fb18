"""The series of a year of daily windows, as the page of a trend asks for it: time of the answer, memory, folding.

    python benchmarks/series.py [--devices 1000000] [--json]

Every device reports in one of 30 days, its slot, on 16 values with epsilon 1: a thirtieth of the devices a day. Reports
are stored in a new SQLite database and folded into the tallies of their windows; then the series is asked for with
band, changes and smoothing. Answers are timed once folded, the median of nine, wall clock and CPU.
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tacit.collector.answers.series import SeriesRequest
from tacit.collector.collections.publish import create_draft
from tacit.collector.limits import Intervals
from tacit.collector.ports import NewBatch, window_id
from tacit.collector.service import Collector
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.core.mechanism import Oracle
from tacit.hosting.clock import Clock
from tacit.simulate.coins import SimulationCoins

FIRST, DAYS, PER, SIZE = date(2030, 1, 7), 365, 30, 16
DRAFT: dict[str, Any] = {
    "title": "A year, day by day",
    "epsilon": "1",
    "questions": [
        {"name": "used", "text": "?", "domain": {"kind": "categories", "labels": [f"v{i}" for i in range(SIZE)]}}
    ],
    "minimum_cohort": 50,
    "retention_days": 3650,
    "windows": {"every": "day", "first": FIRST.isoformat(), "count": DAYS, "per": PER, "late": 2},
}


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds of a piece of work: wall clock and CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)


def filled(folder: Path, devices: int) -> tuple[Collector, str]:
    """A collector whose calendar is over, with all reports stored."""
    when = datetime.combine(FIRST, datetime.min.time(), UTC) + timedelta(days=DAYS + 5)
    today = when.date().toordinal() - date(1970, 1, 1).toordinal()
    clock = Clock(day=lambda: today, seconds=lambda: 0.0, now=when.timestamp)
    collector = Collector(SqliteStore(folder / "tacit.sqlite"), clock=clock, intervals=Intervals(confirm_drop=0.0))
    draft = create_draft(collector.store, collector.planner, DRAFT)
    found = collector.publish(draft.id).id
    mechanism = collector.find(found).mechanism
    assert isinstance(mechanism, Oracle)
    rng, each = np.random.default_rng(1), devices // PER
    for day in range(DAYS):
        reports = mechanism.privatize(rng.integers(0, SIZE, each), SimulationCoins(day)).tobytes()
        name = bytes(12) + day.to_bytes(4, "big")
        collector.store.add_batches([NewBatch(window_id(found, day), name, reports, each, {})])
    return collector, found


def measure(devices: int) -> dict[str, Any]:
    """The figures, by name."""
    with tempfile.TemporaryDirectory() as folder:
        collector, found = filled(Path(folder), devices)
        asked = SeriesRequest(band=True, changes=True, smooth="afterwards")
        folding, _ = timed(lambda: collector.series(found, asked))
        runs = [timed(lambda: collector.series(found, asked)) for _ in range(9)]
        collector.writer.stop()
    wall, cpu = (statistics.median(column) for column in zip(*runs, strict=True))
    return {
        "devices": devices,
        "reports": devices // PER * DAYS,
        "first_answer_ms": round(folding),
        "answer_ms": round(wall, 1),
        "answer_cpu_ms": round(cpu, 1),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="A series of 365 windows on 16 values")
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.devices)
    print(json.dumps(found) if given.json else "\n".join(f"{name:<18}{value:>14,}" for name, value in found.items()))


if __name__ == "__main__":
    main()
