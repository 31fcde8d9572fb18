"""What the CPU time of a browser's report is spent on, without the network: writes `steps.json`.

    .venv/bin/python benchmarks/steps.py            print the table
    .venv/bin/python benchmarks/steps.py --write    and keep the figures, for docs/scale.md

A loop of connections without sockets is fed what `browser.lua` sends. Each line adds a part of the way, in turns with
the others; time is the CPU time of the event loop's thread and of all other threads. What a server spends beyond the
last line is the kernel's work for sockets, and threads that wait for each other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import get_native_id
from typing import Any

import numpy as np
import uvloop
from load_wrk import CONNECTIONS, ORIGIN, questions
from results import processor, table
from uvicorn.server import ServerState

from tacit.collector.collections.publish import create_draft, publish
from tacit.collector.ports import STORED, NewBatch, Outcome
from tacit.collector.server import Settings, make_app, make_config, open_store
from tacit.collector.service import Sharing
from tacit.device.numbers.coins import SystemCoins
from tacit.hosting.connection import HttpConnection, Proxies, Watch
from tacit.hosting.heads import KnownHeads, ParsedHead
from tacit.hosting.limits import Limits
from tacit.lake.about import BatchSet
from tacit.wire.batch import Batch, Block, encode_batch

KEPT = Path(__file__).resolve().with_name("steps.json")
REPORTS, ROUNDS, POOL = 20_000, 5, 64
ID = bytes(range(16))
LIMITS = Limits(requests_per_second=1e9, burst=1 << 30)
ANSWER = b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n"
HEAD = (
    "POST /c/{id}/reports HTTP/1.1", "Host: 127.0.0.1:8000", "Connection: keep-alive", "Content-Length: {length}",
    'sec-ch-ua-platform: "Linux"',
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36",
    'sec-ch-ua: "Not)A;Brand";v="8", "Chromium";v="150"', "Content-Type: text/plain", "sec-ch-ua-mobile: ?0",
    "Accept: */*", f"Origin: {ORIGIN}", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty",
    f"Referer: {ORIGIN}/", "Accept-Encoding: gzip, deflate, br, zstd", "Accept-Language: en-US,en;q=0.9", "", "",
)  # fmt: skip
"""What `browser.lua` sends."""


class Forgetful(KnownHeads):
    """Every head is a new one."""

    def keep(self, request: bytes, parsed: ParsedHead) -> None:
        """Forget it."""


class Nowhere:
    """An intake that says at once that everything is stored."""

    def add_batches(self, batches: Sequence[NewBatch]) -> list[Outcome]:
        """Nothing is stored."""
        return [STORED] * len(batches)


class Answering:
    """A route that answers in the next turn of the loop, whatever was sent."""

    limits = LIMITS

    def taker(self, path: bytes, head: Any, length: int) -> Answering:
        """Take everything."""
        return self

    def take(self, data: bytes, start: int, address: str, answer: Callable[[bytes], None]) -> bool:
        """Answer soon."""
        asyncio.get_running_loop().call_soon(answer, ANSWER)
        return True


class Link:
    """A transport without a socket: what is written is an answer, after which the next request is sent."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self.connection: Any = None

    def write(self, data: bytes) -> None:
        """An answer has come."""
        if not data.startswith(b"HTTP/1.1 201"):
            raise RuntimeError(data.decode())
        self._crowd.answered(self)

    def send(self, request: bytes) -> None:
        """Send a request."""
        self.connection.data_received(request)

    def is_closing(self) -> bool:
        """Never."""
        return False

    def get_extra_info(self, name: str) -> Any:
        """Addresses of a loopback connection."""
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else None


class Crowd:
    """Connections that send one report after the other, until all are sent and answered."""

    def __init__(self, requests: list[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._requests, self._loop, self._left = requests, loop, len(requests)
        self.done = loop.create_future()

    def answered(self, link: Link) -> None:
        """Send the next one in the next turn of the loop, as a socket would."""
        self._left -= 1
        if not self._left:
            self.done.set_result(None)
        elif self._requests:
            self._loop.call_soon(link.send, self._requests.pop())

    def begin(self, make: Callable[[], Any]) -> None:
        """Connect, and send one report each."""
        for _ in range(CONNECTIONS):
            link = Link(self)
            link.connection = make()
            link.connection.connection_made(link)
            self._loop.call_soon(link.send, self._requests.pop())


def requests_of(collection: str, mechanism: Any, number: int) -> list[bytes]:
    """Requests with fresh batch ids."""
    payloads = mechanism.privatize(np.random.default_rng(3).integers(0, 64, POOL), SystemCoins())
    bodies = [encode_batch(Batch(collection, ID, (Block(0, 1, each.tobytes()),))).split(ID) for each in payloads]
    head = "\r\n".join(HEAD).format(id=collection, length=len(bodies[0][0]) + 16 + len(bodies[0][1])).encode()
    return [head + bodies[i % POOL][0] + secrets.token_bytes(16) + bodies[i % POOL][1] for i in range(number)]


def thread_seconds() -> tuple[float, float]:
    """CPU time of this thread, and of all others of the process."""
    spent = {int(task): int(Path(f"/proc/self/task/{task}/schedstat").read_text().split()[0]) / 1e9
             for task in os.listdir("/proc/self/task")}  # fmt: skip
    mine = spent.pop(get_native_id())
    return mine, sum(spent.values())


async def measured(route: Any, known: KnownHeads, requests: list[bytes]) -> tuple[float, float]:
    """CPU microseconds of a report in this thread and in others."""
    loop, number = asyncio.get_running_loop(), len(requests)
    watch, proxies = Watch(LIMITS), Proxies("")
    settings: Any = {
        "config": make_config(None, Settings(limits=LIMITS)),
        "server_state": ServerState(),
        "app_state": {},
    }
    crowd = Crowd(requests, loop)
    before = thread_seconds()
    crowd.begin(lambda: HttpConnection(watch, route, proxies, known, _loop=loop, **settings))
    await crowd.done
    after = thread_seconds()
    return 1e6 * (after[0] - before[0]) / number, 1e6 * (after[1] - before[1]) / number


class Bench:
    """A collector in a folder, and the parts of the way of a report."""

    def __init__(self, folder: Path) -> None:
        store = open_store(folder)
        self.app = make_app(store, LIMITS)
        collector = self.app.collector
        self.id = publish(store, collector.planner, create_draft(store, collector.planner, questions(1)).id).id
        self.mechanism = collector.ingest.find(self.id).mechanism
        self.to_nowhere = make_app(store, LIMITS, sharing=Sharing(intake=Nowhere()))
        self.to_nowhere.collector.ingest.find(self.id)

    def steps(self) -> dict[str, Callable[[], Any]]:
        """What is measured, by name: each has all that the one before has."""
        route = Answering()
        return {
            "a head that is new: httptools, and all its headers gathered": lambda: self._run(route, Forgetful()),
            "a head that was parsed before": lambda: self._run(route, KnownHeads()),
            "and: batch and origin looked at, reports validated together, handed to the writer and back":
                lambda: self._run(self.to_nowhere.reports, KnownHeads()),
            "and: one durable transaction for all that waits": lambda: self._run(self.app.reports, KnownHeads()),
            "of that: hashes of the batch ids, which files of a lake state": hashes,
            "and: folded into the tally, ids sorted in": lambda: self._run(self.app.reports, KnownHeads(), fold=True),
        }  # fmt: skip

    def _run(self, route: Any, known: KnownHeads, *, fold: bool = False) -> tuple[float, float]:
        requests = requests_of(self.id, self.mechanism, REPORTS)
        folder = self.app.collector.folder
        folder.fold_all(self.id, 1e9)
        mine, others = uvloop.run(measured(route, known, requests))
        if fold:
            before = time.thread_time()
            folder.fold_all(self.id, 1e9)
            others += 1e6 * (time.thread_time() - before) / REPORTS
        return mine, others


def hashes() -> tuple[float, float]:
    """What the writer spends on the digests of batch ids, in groups as large as there are connections."""
    ids = [secrets.token_bytes(16) for _ in range(CONNECTIONS)]
    times = REPORTS // CONNECTIONS
    before = time.thread_time()
    for _ in range(times):
        BatchSet.of(ids)
    return 0.0, 1e6 * (time.thread_time() - before) / (times * CONNECTIONS)


def page(figures: dict[str, list[float]]) -> list[str]:
    """The table."""
    rows = [[name, f"{mine:.1f}", f"{others:.1f}"] for name, (mine, others) in figures.items()]
    return table(["part of the way", "event loop, CPU us a report", "other threads"], rows)


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the figures")
    options = parser.parse_args()
    spent: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="tacit-steps-") as folder:
        steps = Bench(Path(folder)).steps()
        for _ in range(ROUNDS):
            for name, step in steps.items():
                spent.setdefault(name, []).append(step())
    # The least of several runs: whatever else the machine does makes a run longer, never shorter.
    figures = {name: [round(min(each), 1) for each in zip(*runs, strict=True)] for name, runs in spent.items()}
    print("\n".join(page(figures)))
    if options.write:
        kept = {"machine": f"{processor()}, {len(os.sched_getaffinity(0))} cores", "steps": figures}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
