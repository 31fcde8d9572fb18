"""Load a collector, in a process of its own on this machine, and measure; write `LOAD.md`. Linux.

    make bench-load                                     everything, about three minutes
    .venv/bin/python benchmarks/load.py --quick         small sizes: does it run?
    .venv/bin/python benchmarks/load.py --only single   one part (may be repeated)

Progress goes to standard error and the page to standard output. LOAD.md is written by a full run alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import uvicorn
from load_session import NotMeasured, Server, load, progress, serving
from load_wrk import Shape, Target, bare_servers, in_turns, need_wrk, questions, ratios, write_job
from load_wrk import publish as publish_shape
from results import processor, table

from tacit.catalog import CATALOG
from tacit.device.numbers.coins import SystemCoins
from tacit.wire.batch import MAGIC, MEDIA_TYPE
from tacit.wire.document import Collection

LOAD = Path(__file__).resolve().with_name("LOAD.md")
RATES = LOAD.with_name("rates.json")
"""Measured rates and costs, from which `capacity.py` computes."""
SIZE = 64
# Different bodies that are sent in turns; only the batch id of every request is new.
POOL = 64
MB = 1e6
DRAFT = {
    "title": "Load",
    "epsilon": "1",
    "questions": [{"name": "value", "text": "Which?", "domain": {"kind": "integers", "low": 0, "high": SIZE - 1}}],
}

INTRODUCTION = """\
# The collector under load

Written by `make bench-load`. Absolute figures belong to one machine; compare the ratio, whose two sides were measured
in turns. One server process with the embedded database, every report acknowledged after a durable commit; server and
load generator share the cores. Reports are real ones, perturbed beforehand; every batch has a random id of its own.
"""
QUICK = "**A quick run: sizes are cut, so that the verdicts below mean nothing.**\n"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    line: str
    measured: str
    target: str
    met: bool | None
    also: str = ""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    runs: int = 5
    seconds: float = 2.0
    reports: int = 10_000_000
    asks: int = 20
    starts: int = 3

    def job(self, server: Server, **more: Any) -> dict[str, Any]:
        """A job of the load generator."""
        return {"port": server.port, "media_type": MEDIA_TYPE, "connections": 64, **more}


FULL, SMALL = Sizes(), Sizes(runs=3, seconds=0.5, reports=200_000, asks=5, starts=1)


def publish(server: Server) -> str:
    """Publish the collection that takes the load."""
    draft = server.api("POST", "/collections", DRAFT)["id"]
    return server.api("POST", f"/collections/{draft}/publish")["id"]


def batches(server: Server, collection: str, each: int) -> dict[str, Any]:
    """Return the parts of bodies with `each` reports: begin, then the batch id of the load generator, then an end."""
    document = server.ask("GET", f"/c/{collection}/document.json")[1]
    mechanism: Any = Collection.from_json(json.loads(document), CATALOG).mechanism
    values = np.random.default_rng(3).integers(0, SIZE, (POOL, each))
    ends = [bytes(4) + each.to_bytes(4, "little") + mechanism.privatize(row, SystemCoins()).tobytes() for row in values]
    begin = MAGIC + bytes.fromhex(collection)
    return {"path": f"/c/{collection}/reports", "begin": begin.hex(), "ends": [end.hex() for end in ends]}


def per_second(result: dict[str, Any]) -> float:
    """Requests per second of a run."""
    return result["requests"] / result["seconds"]


def single(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """Single-report posts against a raw route of the same server."""
    with serving(folder, raw=True) as server:
        collection = publish(server)
        posts = sizes.job(server, seconds=sizes.seconds, **batches(server, collection, 1))
        pairs: list[tuple[float, float]] = []
        waits: list[float] = []
        # In turns, so that both routes meet the same state of the machine; the verdict is on the ratio of each pair.
        for run in range(sizes.runs):
            raw = per_second(load(posts | {"path": "/raw"}))
            result = load(posts)
            pairs.append((raw, per_second(result)))
            waits.append(result["p99"])
            progress(f"single posts {run + 1}/{sizes.runs}: raw {pairs[-1][0]:,.0f}/s, reports {pairs[-1][1]:,.0f}/s")
    ratio = statistics.median(ours / raw for raw, ours in pairs)
    spread = f"{min(o / r for r, o in pairs):.2f} to {max(o / r for r, o in pairs):.2f}"
    raw, ours = (statistics.median(pair[i] for pair in pairs) for i in range(2))
    yield Row(
        f"single-report posts, 64 connections, median of {sizes.runs} runs in turns", f"{ours:,.0f}/s",
        ">= 0.4x the raw route", ratio >= 0.4, f"raw route {raw:,.0f}/s: {ratio:.2f}x ({spread})",
    )  # fmt: skip
    yield Row(
        "time to an acknowledgement, single posts, 99 of 100", f"{1e3 * statistics.median(waits):.1f} ms", "-", None
    )


def hundreds(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """Batches of 100."""
    with serving(folder) as server:
        posts = sizes.job(server, seconds=2 * sizes.seconds, **batches(server, publish(server), 100))
        rates: list[float] = []
        for run in range(3):
            rates.append(100 * per_second(load(posts)))
            progress(f"batches of 100, {run + 1}/3: {rates[-1]:,.0f} reports/s")
    rate = statistics.median(rates)
    also = f"{min(rates):,.0f} to {max(rates):,.0f}"
    name = "batches of 100, 64 connections, median of 3 runs"
    yield Row(name, f"{rate:,.0f} reports/s", ">= 150,000", rate >= 150_000, also)


def sampled(server: Server, work: Callable[[], Any]) -> list[int]:
    """The memory of a server at equal distances of time while something runs."""
    sizes: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        while not running.done():
            sizes.append(server.resident_bytes())
            time.sleep(0.1)
        running.result()
    return [*sizes, server.resident_bytes()]


def fold_rest(server: Server, collection: str, reports: int) -> float:
    """Wait until every report is in the answers; the seconds that took."""
    begun = time.perf_counter()
    while (n := server.api("GET", f"/collections/{collection}/answers")["n"]) < reports:
        if time.perf_counter() - begun > 60:
            raise NotMeasured(f"{n:,} of {reports:,} reports are in the answers after a minute")
    return time.perf_counter() - begun


def response_seconds(server: Server, path: str, times: int) -> tuple[float, float]:
    """Median and longest time of a page or an answer, in seconds."""
    spent: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        status, _ = server.ask("GET", path)
        spent.append(time.perf_counter() - begun)
        if status != 200:
            raise NotMeasured(f"GET {path.split('/')[1]} was answered with {status}")
    return statistics.median(spent), max(spent)


def millions(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """Many reports: is memory flat, is everything counted, are answers quick?"""
    name = f"{sizes.reports:,} reports in batches of 100"
    with serving(folder) as server:
        collection, token = publish(server), server.token
        posts = sizes.job(server, requests=sizes.reports // 100, **batches(server, collection, 100))
        begun = time.perf_counter()
        progress(name)
        memory = sampled(server, lambda: load(posts))
        seconds = time.perf_counter() - begun
        progress(f"taken in {seconds:.0f} s")
        folded = fold_rest(server, collection, sizes.reports)
        counted = server.api("GET", f"/collections/{collection}/status")["reports"]
        yield Row(f"{name}: counted", f"{counted:,}", f"{sizes.reports:,}", counted == sizes.reports,
                  f"taken in {seconds:.0f} s, in the answers {folded:.1f} s later")  # fmt: skip
        yield flat(name, memory)
        for what, path in (("answers", f"/api/v1/collections/{collection}/answers"),
                           ("dashboard page", f"/dashboard/collections/{collection}")):  # fmt: skip
            median, longest = response_seconds(server, path, sizes.asks)
            yield Row(f"{what} after {sizes.reports:,} reports, median of {sizes.asks}", f"{1e3 * median:.1f} ms",
                      "< 200 ms", median < 0.2, f"longest {1e3 * longest:.1f} ms")  # fmt: skip
    with serving(folder, token=token) as server:
        server.ask("GET", f"/api/v1/collections/{collection}/answers")
        yield Row(f"started again with {sizes.reports:,} reports, to the first answer",
                  f"{server.start_seconds:.2f} s", "< 3 s", server.start_seconds < 3)  # fmt: skip


def flat(name: str, memory: list[int]) -> Row:
    """Whether memory stays where it was after a tenth of the time."""
    # A tenth of the run is enough for caches and buffers to fill; what grows after that would grow for ever.
    early, peak = max(memory[: max(1, len(memory) // 10)]), max(memory)
    grown = (peak - early) / MB
    also = f"after a tenth {early / MB:.0f} MB, at the end {memory[-1] / MB:.0f} MB"
    line, target = f"{name}: memory of the server", "< 50 MB more than after a tenth"
    return Row(line, f"peak {peak / MB:.0f} MB", target, grown < 50, also)


def start(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """How long a new collector takes to its first answer, and its memory while nothing happens."""
    seconds: list[float] = []
    memory: list[int] = []
    for run in range(sizes.starts):
        with serving(folder / str(run)) as server:
            seconds.append(server.start_seconds)
            time.sleep(1)
            memory.append(server.resident_bytes())
            progress(f"start {run + 1}/{sizes.starts}: {seconds[-1]:.2f} s, {memory[-1] / MB:.0f} MB")
    spent, idle = statistics.median(seconds), max(memory) / MB
    yield Row(f"`tacit serve` to the first answer, median of {sizes.starts}", f"{spent:.2f} s", "< 3 s", spent < 3)
    yield Row("idle memory", f"{idle:.0f} MB", "< 150 MB", idle < 150)


def shaped(name: str, shape: Shape, sizes: Sizes, folder: Path, workers: int = 1) -> tuple[Target, list[Target]]:
    """Browser-shaped load on a collector, in turns with bare servers; notes the rate and what a report costs."""
    need_wrk()
    with bare_servers() as bare, serving(folder, workers=workers) as server:
        ours, collection = Target(name, server.port, server.pid), publish_shape(server, shape)
        write_job(server, collection, shape, folder / "job")
        in_turns([ours, *bare], folder / "job", sizes.runs, sizes.seconds, shape.connections)
        stored = (
            fold_rest(server, collection, shape.each * ours.answered)
            and server.api("GET", f"/collections/{collection}/status")["reports"]
        )
        # wrk abandons what is under way when its time is over; it may be stored without having been answered.
        most = ours.answered + sizes.runs * shape.connections
        if not shape.each * ours.answered <= stored <= shape.each * most:
            raise NotMeasured(f"{stored:,} reports are stored of {ours.answered:,} requests that were acknowledged")
    NOTED[name] = {
        "per_second": round(shape.each * ours.rate),
        "cpu_microseconds": round(ours.microseconds / shape.each, 2),
        "stored_bytes": round((folder / "tacit.sqlite").stat().st_size / stored, 2),
    }
    SHARES[name] = ours.shares
    if name == "one question":
        SHARES.update((each.name, each.shares) for each in bare)
    return ours, bare


SHARES: dict[str, dict[str, float]] = {}
"""What a request costs in the process, in the kernel and in thread switches, by name; goes to `RATES` as well."""
NOTED: dict[str, dict[str, float]] = {}
"""What goes to `RATES`, by name."""


def browsers(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """Single reports as browsers send them, one process, against bare servers."""
    cases = {
        "one question": Shape(questions(1)),
        "one question, 256 connections": Shape(questions(1), connections=256),
        "one of 8 questions": Shape(questions(8)),
        "one question, JSON of older clients": Shape(questions(1), as_json=True),
    }
    for name, shape in cases.items():
        ours, (bare, reading) = shaped(name, shape, sizes, folder / name.replace(" ", "_"))
        ratio, least, most = ratios(ours, bare)
        also = [
            f"bare server {bare.rate:,.0f}/s: {ratio:.2f}x ({least:.2f} to {most:.2f})",
            f"one that reads {reading.rate:,.0f}/s",
            f"CPU us each: {ours.microseconds:.0f}, bare {bare.microseconds:.0f}, reading {reading.microseconds:.0f}",
            f"99 of 100 within {1e3 * statistics.median(ours.waits):.1f} ms",
        ]
        yield Row(
            f"single reports of browsers by wrk, {name}, median of {sizes.runs} runs in turns", f"{ours.rate:,.0f}/s",
            "-" if shape.as_json else ">= 15,000/s, or 0.7x the bare server",
            None if shape.as_json else ours.rate >= 15_000 or ratio >= 0.7,
            "; ".join(also),
        )  # fmt: skip


def workers(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """The same with two workers and the process that writes, and batches of 100 with one process."""
    for name, shape, number in (
        ("one question, two workers", Shape(questions(1)), 2),
        ("batches of 100", Shape(questions(1), each=100), 1),
    ):
        ours, _ = shaped(name, shape, sizes, folder / name.replace(" ", "_"), number)
        what = "batches of browsers' headers" if shape.each > 1 else "single reports of browsers"
        yield Row(
            f"{what} by wrk, {name}, median of {sizes.runs} runs", f"{shape.each * ours.rate:,.0f} reports/s", "-",
            None,
            f"CPU {ours.microseconds / shape.each:.1f} us a report, over all processes",
        )  # fmt: skip


PARTS: dict[str, Callable[[Sizes, Path], Iterator[Row]]] = {
    "start": start,
    "single": single,
    "hundreds": hundreds,
    "millions": millions,
    "browsers": browsers,
    "workers": workers,
}


def measure(name: str, sizes: Sizes, place: str | None) -> Iterator[Row]:
    """The rows of one part, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="tacit-load-", dir=place) as folder:
        try:
            yield from PARTS[name](sizes, Path(folder))
        except (NotMeasured, OSError) as error:
            yield Row(name, f"not measured: {error}", "-", None)


def sync_milliseconds(place: str | None) -> tuple[float, float]:
    """The time of making 4 kB durable on the disk that is used: the median, and what nine of ten take at most."""
    spent: list[float] = []
    with tempfile.TemporaryFile(dir=place, buffering=0) as file:
        for _ in range(200):
            file.write(bytes(4096))
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            spent.append(time.perf_counter() - begun)
    return 1e3 * statistics.median(spent), 1e3 * sorted(spent)[len(spent) * 9 // 10]


def page(rows: list[Row], quick: bool, place: str | None) -> str:
    """The whole page."""
    sync, slow = sync_milliseconds(place)
    verdict = {True: "yes", False: "**no**", None: "-"}
    facts = [
        f"- Machine: {processor()}, {len(os.sched_getaffinity(0))} cores, {platform.machine()}; a sync of 4 kB takes "
        f"{sync:.2f} ms, 9 of 10 at most {slow:.2f} ms; load average {os.getloadavg()[0]:.1f} at the end",
        f"- Python {platform.python_version()}, uvicorn {uvicorn.__version__}, SQLite {apsw.sqlite_lib_version()}",
        "- Command: `make bench-load`",
    ]
    header = ("line", "measured", "target", "met", "also")
    cells = [(row.line, row.measured, row.target, verdict[row.met], row.also) for row in rows]
    return "\n".join([INTRODUCTION, *([QUICK] if quick else []), *facts, "", *table(header, cells)]) + "\n"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a smoke test")
    parser.add_argument("--only", action="append", choices=list(PARTS), metavar="NAME",
                        help=f"one of: {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--folder", help="where to put the databases; by default where temporary files go")
    return parser.parse_args()


def main() -> int:
    """Run the chosen parts; the status is 1 if one of them could not be measured."""
    options = arguments()
    sizes = SMALL if options.quick else FULL
    rows = [row for name in options.only or PARTS for row in measure(name, sizes, options.folder)]
    text = page(rows, options.quick, options.folder)
    print(text)
    if not options.quick and NOTED:
        kept: dict[str, Any] = json.loads(RATES.read_text()) if RATES.exists() else {}
        machine = f"{processor()}, {len(os.sched_getaffinity(0))} cores"
        kept |= {"command": "make bench-load", "machine": machine, "load": round(os.getloadavg()[0], 1)}
        kept |= {"rates": kept.get("rates", {}) | NOTED, "shares": kept.get("shares", {}) | SHARES}
        RATES.write_text(json.dumps(kept, indent=1) + "\n")
    if not options.quick and not options.only:
        LOAD.write_text(text)
        progress(f"wrote benchmarks/{LOAD.name}")
    return int(any(row.measured.startswith("not measured") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
