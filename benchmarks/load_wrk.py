"""Load as browsers make it, by wrk, which is written in C: what is measured is the server and not the generator.

One report a request, a fresh batch id in each, headers of a browser, a page of another origin. Beside the collector run
two bare servers (`bare_server.py`), each measured in turns with it, for what Python itself allows here.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from load_session import HERE, NotMeasured, Server, free_port, progress

from tacit.catalog import CATALOG
from tacit.device.numbers.coins import SystemCoins
from tacit.wire.batch import Batch, Block, batch_to_json, encode_batch
from tacit.wire.document import Collection

ORIGIN = "https://example.org"
CONNECTIONS = 64
# Different bodies that are sent in turns; only the batch id of every request is new.
POOL = 64
_ID = bytes(range(16))
_INSTALL_SECONDS = 300


def need_wrk() -> None:
    """Install wrk where that is possible; NotMeasured says what to do where it is not."""
    if shutil.which("wrk"):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        progress("installing wrk")
        command = ["apt-get", "install", "-y", "-q", "wrk"]
        subprocess.run(command, capture_output=True, check=False, timeout=_INSTALL_SECONDS)
    if not shutil.which("wrk"):
        raise NotMeasured("wrk is not installed; as root: apt-get install wrk")


def questions(number: int) -> dict[str, Any]:
    """A draft with so many questions of 64 values, of which a respondent answers one."""
    domain = {"kind": "integers", "low": 0, "high": 63}
    asked = [{"name": f"value_{i}", "text": "Which?", "domain": domain} for i in range(number)]
    draft = {"title": "Load", "epsilon": "1", "questions": asked, "origins": [ORIGIN]}
    return draft if number == 1 else draft | {"policy": "one_of"}


@dataclass(frozen=True)
class Shape:
    """What requests look like."""

    draft: dict[str, Any]
    each: int = 1
    """Reports in a batch."""
    as_json: bool = False
    """Whether in the JSON twin, as clients of before sent them."""
    connections: int = CONNECTIONS
    """How many clients send at the same time, each waiting for its acknowledgement."""


def publish(server: Server, shape: Shape) -> str:
    """Publish the collection that takes the load."""
    draft = server.api("POST", "/collections", shape.draft)["id"]
    return server.api("POST", f"/collections/{draft}/publish")["id"]


def _bodies(mechanism: Any, collection: str, shape: Shape) -> Iterator[bytes]:
    rng = np.random.default_rng(3)
    for _ in range(POOL):
        if mechanism.drawn_from is None:
            member, payload = 0, mechanism.privatize(rng.integers(0, 64, shape.each), SystemCoins()).tobytes()
        else:
            report = mechanism.privatize_one(rng.integers(0, 64, len(shape.draft["questions"])).tolist(), SystemCoins())
            member, payload = int.from_bytes(report[:4], "little"), report[4:]
        batch = Batch(collection, _ID, (Block(member, shape.each, payload),))
        twin = json.dumps(batch_to_json(batch, mechanism.payload_widths), separators=(",", ":")).encode()
        yield twin if shape.as_json else encode_batch(batch)


def write_job(server: Server, collection: str, shape: Shape, file: Path) -> None:
    """Write the file from which `browser.lua` makes its requests."""
    document = json.loads(server.ask("GET", f"/c/{collection}/document.json")[1])
    mechanism: Any = Collection.from_json(document, CATALOG).mechanism
    mark = _ID.hex().encode() if shape.as_json else _ID
    begins, ends = zip(*(body.split(mark) for body in _bodies(mechanism, collection, shape)), strict=True)
    # Members of two digits make a text longer; requests of one length are enough.
    ends = [end for end in ends if len(end) == len(ends[0])]
    lines = [f"/c/{collection}/reports", "text/plain", ORIGIN, "digits" if shape.as_json else "bytes", begins[0].hex()]
    file.write_text("\n".join([*lines, *(end.hex() for end in ends)]) + "\n")


@dataclass(frozen=True)
class Spent:
    """What a process and all its children have used: CPU seconds of its own and in the kernel, and thread switches."""

    user: float = 0.0
    kernel: float = 0.0
    switches: int = 0

    @classmethod
    def by(cls, pid: int) -> Spent:
        """So far, as the kernel counts it."""
        stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        tick = os.sysconf("SC_CLK_TCK")
        mine = cls(int(stat[11]) / tick, int(stat[12]) / tick, _switches(pid))
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return sum((cls.by(int(each)) for each in children), mine)

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(self.user + other.user, self.kernel + other.kernel, self.switches + other.switches)

    def since(self, before: Spent) -> Spent:
        """What was used after another look."""
        return Spent(self.user - before.user, self.kernel - before.kernel, self.switches - before.switches)


def _switches(pid: int) -> int:
    """How often a thread of a process stopped to wait for something: a lock, the disk, another thread, a request."""
    told = (Path(task, "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir())
    return sum(int(line.split()[1]) for text in told for line in text.splitlines() if line.startswith("voluntary"))


@dataclass
class Target:
    """A server under load, and what was measured of it."""

    name: str
    port: int
    pid: int
    rates: list[float] = field(default_factory=list[float])
    user: list[float] = field(default_factory=list[float])
    """CPU microseconds per request in the process itself, and below in the kernel."""
    kernel: list[float] = field(default_factory=list[float])
    switches: list[float] = field(default_factory=list[float])
    waits: list[float] = field(default_factory=list[float])
    answered: int = 0
    connections: int = CONNECTIONS

    def load(self, job: Path, seconds: float) -> None:
        """One run of wrk; every answer must be a success."""
        script, url = str(HERE / "browser.lua"), f"http://127.0.0.1:{self.port}"
        how = ["-t1", f"-c{self.connections}", f"-d{max(1, round(seconds))}s"]
        command = ["wrk", *how, "-s", script, url, "--", str(job)]
        before = Spent.by(self.pid)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 + 2 * seconds)
        spent = Spent.by(self.pid).since(before)
        try:
            told = json.loads(done.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            raise NotMeasured(f"wrk said: {(done.stderr.strip().splitlines() or ['nothing'])[-1]}") from None
        if told["refused"] or told["broken"] or not told["requests"]:
            raise NotMeasured(f"{self.name}: {told['refused']} refusals and {told['broken']} broken connections")
        self.rates.append(told["requests"] / told["seconds"])
        self.user.append(1e6 * spent.user / told["requests"])
        self.kernel.append(1e6 * spent.kernel / told["requests"])
        self.switches.append(spent.switches / told["requests"])
        self.waits.append(told["p99"])
        self.answered += told["requests"]
        progress(f"{self.name}: {self.rates[-1]:,.0f}/s, {self.user[-1]:.0f} + {self.kernel[-1]:.0f} us of CPU each")

    @property
    def rate(self) -> float:
        """Requests per second."""
        return statistics.median(self.rates)

    @property
    def microseconds(self) -> float:
        """CPU time per request."""
        return statistics.median(user + kernel for user, kernel in zip(self.user, self.kernel, strict=True))

    @property
    def shares(self) -> dict[str, float]:
        """Who spends it, per request: medians."""
        each = {"user": self.user, "kernel": self.kernel, "switches": self.switches}
        return {name: round(statistics.median(numbers), 2) for name, numbers in each.items()}


@contextmanager
def bare_servers() -> Iterator[list[Target]]:
    """The bare server, and the one that reads its requests."""
    started: list[subprocess.Popen[str]] = []
    targets: list[Target] = []
    try:
        for name, more in (("bare server", []), ("bare server that reads", ["reading"])):
            port = free_port()
            command = [sys.executable, str(HERE / "bare_server.py"), str(port), *more]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            (started[-1].stdout or sys.stdin).readline()
            targets.append(Target(name, port, started[-1].pid))
        yield targets
    finally:
        for process in started:
            process.terminate()
            process.wait()


def in_turns(targets: list[Target], job: Path, runs: int, seconds: float, connections: int = CONNECTIONS) -> None:
    """Measure several servers with the same requests, so that all meet the same state of the machine."""
    for target in targets:
        target.connections = connections
    for _ in range(runs):
        for target in targets:
            target.load(job, seconds)


def ratios(ours: Target, other: Target) -> tuple[float, float, float]:
    """Median, least and largest ratio of the rates, run by run."""
    each = sorted(a / b for a, b in zip(ours.rates, other.rates, strict=True))
    return statistics.median(each), each[0], each[-1]
