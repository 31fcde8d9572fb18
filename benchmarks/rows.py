"""Rows into a running collector: a million of them in bulk over HTTP, sealed, and the memory that this takes.

    python benchmarks/rows.py [ROWS] [COLUMNS]

The collector runs in a process of its own on a temporary folder, and seals in the background as always; one client
sends Arrow streams of 2^15 rows, each acknowledged after its commit. Printed: rows a second from the first byte to the
last acknowledgement, and of reading all segments; the bytes on the disk; and the collector's memory at its peak.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from session import progress

BATCH_ROWS = 1 << 15
DOMAIN = 1 << 10


def publish(folder: Path, columns: int) -> str:
    """A private number of 2^10 values beside public columns, in an empty folder; returns its id."""
    from tacit.catalog import CATALOG
    from tacit.collector.collections.publish import Planner, publish_document
    from tacit.collector.server import open_store

    kinds = ("number", "integer", "text", "boolean", "date")
    public = [{"name": f"c{i}", "type": kinds[i % len(kinds)]} for i in range(columns)]
    question = {"name": "age", "text": "Age?", "domain": {"kind": "integers", "low": 0, "high": DOMAIN - 1}}
    draft = {"title": "Rows", "epsilon": "2", "questions": [question], "rows": {"table": "t", "columns": public}}
    store = open_store(folder)
    try:
        return publish_document(store, Planner(CATALOG).plan(draft | {"respondents": 10**6})[0]).id
    finally:
        store.close()


def bodies(folder: Path, collection: str, rows: int) -> list[bytes]:
    """Streams of noisy reports with their public columns."""
    from tacit.catalog import CATALOG
    from tacit.collector.collections.active import Shelf
    from tacit.collector.rows.columns import report_array
    from tacit.collector.server import open_store
    from tacit.simulate.coins import SimulationCoins

    store = open_store(folder)
    active = Shelf(store, CATALOG).find(collection)
    store.close()
    assert active is not None and active.collection.rows is not None
    rng = np.random.default_rng(7)
    streams: list[bytes] = []
    for start in range(0, rows, BATCH_ROWS):
        n = min(BATCH_ROWS, rows - start)
        reports = active.mechanism.privatize(rng.integers(0, DOMAIN, n), SimulationCoins(start))
        # Families send the drawn member in a column of its own, beside the payload.
        payload = reports["payload"] if active.sampled else reports
        columns: dict[str, Any] = {"report": report_array(payload.tobytes(), active.widths[0])}
        if active.sampled:
            columns["member"] = pa.array(reports["member"])
        for column in active.collection.rows.columns:
            columns[column.name] = column_of(column.type, n, rng)
        streams.append(stream(pa.table(columns)))
    return streams


def column_of(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Values as measures and attributes of customers have them."""
    if kind == "number":
        return pa.array(rng.exponential(5, n).round(2))
    if kind == "integer":
        return pa.array(rng.integers(0, 10**6, n))
    if kind == "text":
        return pa.array(np.array(["ios", "android", "web", "television"])[rng.integers(0, 4, n)])
    if kind == "boolean":
        return pa.array(rng.random(n) < 0.3)
    return pa.array(rng.integers(15_000, 20_000, n).astype(np.int32)).cast(pa.date32())


def stream(table: Any) -> bytes:
    """An Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def send(port: int, collection: str, streams: list[bytes]) -> float:
    """Send all, one after the other; returns the seconds to the last acknowledgement."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    begun = time.perf_counter()
    for body in streams:
        head = {"Content-Type": "application/vnd.apache.arrow.stream", "Tacit-Batch": os.urandom(16).hex()}
        connection.request("POST", f"/c/{collection}/reports", body, head)
        reply = connection.getresponse()
        text = reply.read()
        assert reply.status == 201 and not json.loads(text)["rejected"], text[:300]
    return time.perf_counter() - begun


def peak_bytes(pid: int) -> int:
    """The most memory that a process had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    return 0


def serve(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """A collector on a folder, once it answers."""
    command = [str(Path(sys.executable).with_name("tacit")), "serve", "--data", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return process
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the collector did not start")


def wait_until_sealed(port: int, batches: int) -> float:
    """Wait until the collector has folded so many batches in the background; returns the seconds."""
    begun = time.perf_counter()
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        if f"tacit_folded_batches_total {batches}" in lines:
            return time.perf_counter() - begun
        time.sleep(0.05)


def read_back(folder: Path, collection: str, rows: int) -> tuple[float, int, int]:
    """Read all segments in a new process; the seconds, their number and bytes."""
    from tacit.collector.server import open_store
    from tacit.collector.service import Collector

    collector = Collector(open_store(folder))
    begun = time.perf_counter()
    segments = collector.segments(collection)
    read = sum(len(segment.load()[1]) for segment in segments)
    seconds = time.perf_counter() - begun
    assert read == rows, (read, rows)
    collector.stop()
    return seconds, len(segments), sum(segment.entry.bytes for segment in segments)


def main(rows: int = 10**6, columns: int = 5) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name:
        folder, port = Path(name) / "data", 18_000 + os.getpid() % 10_000
        collection = publish(folder, columns)
        progress(f"{rows:,} rows of {columns} public columns")
        streams = bodies(folder, collection, rows)
        size = sum(map(len, streams))
        process = serve(folder, port)
        try:
            before = peak_bytes(process.pid)
            seconds = send(port, collection, streams)
            sealing = wait_until_sealed(port, len(streams))
            peak = peak_bytes(process.pid)
        finally:
            process.terminate()
            process.wait()
        reading, segments, stored = read_back(folder, collection, rows)
    print(f"rows {rows:,}, columns {columns}, uploads {len(streams)} of {size / len(streams) / 1e6:.2f} MB")
    print(f"acknowledged        {rows / seconds:12,.0f} rows/s ({size / seconds / 1e6:.0f} MB/s)")
    print(f"sealed              {sealing:.2f} s after the last acknowledgement")
    print(f"read and checked    {rows / reading:12,.0f} rows/s")
    print(f"on the disk         {segments} segments, {stored / 1e6:.1f} MB ({stored / rows:.1f} bytes a row)")
    print(f"collector memory    {peak / 1e6:.0f} MB at its peak, {before / 1e6:.0f} MB before")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
