"""The load generator: posts batches over keep-alive connections as fast as a server takes them (closed loop).

One process with epoll and the standard library alone, so that it takes little of the cores that the server needs.

    python benchmarks/load_client.py JOB

JOB is JSON: the port, the path, the beginning and the end of a body between which every request has an id of 16 random
bytes, the number of connections, and either seconds or a number of requests. Prints JSON: requests, seconds, how many
answers had which status, and percentiles of the time to an answer.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from collections import Counter
from time import perf_counter, sleep
from typing import Any

# Batch ids drawn from the operating system at a time.
IDS = 4096
# Without any answer for this long the run has failed.
QUIET_SECONDS = 30
PAUSE_SECONDS = 0.0001
"""Between two looks at the connections, of either route alike: being woken for every answer would slow the server."""
WARM_UP_SECONDS = 0.3


class Requests:
    """Requests that differ in the batch id alone."""

    def __init__(self, job: dict[str, Any]) -> None:
        begin, ends = bytes.fromhex(job["begin"]), [bytes.fromhex(end) for end in job["ends"]]
        self._ends, self._at, self._ids = ends, 0, b""
        size = len(begin) + 16 + len(ends[0])
        head = (
            f"POST {job['path']} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {job['media_type']}\r\n"
            f"Content-Length: {size}\r\n\r\n"
        )
        self._begin = head.encode() + begin

    def next(self) -> bytes:
        """A request that was never sent before."""
        at = self._at % IDS
        if at == 0:
            self._ids = os.urandom(16 * IDS)
        self._at += 1
        return self._begin + self._ids[16 * at : 16 * at + 16] + self._ends[self._at % len(self._ends)]


class Load:
    """Connections that each send a request as soon as the one before is answered."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._requests, self._poll = Requests(job), select.epoll()
        # By file descriptor: the connection, when its request was sent, and the beginning of a partial answer.
        self._open: dict[int, socket.socket] = {}
        self._sent: dict[int, float] = {}
        self._part: dict[int, bytes] = {}
        self._lengths: dict[bytes, int] = {}
        self._left = job.get("requests", 1 << 62)
        self._deadline = perf_counter() + job.get("seconds", 1e9) + WARM_UP_SECONDS
        self.statuses: Counter[str] = Counter()
        self.waits: list[float] = []
        for _ in range(job["connections"]):
            self._connect(job["port"])

    def _connect(self, port: int) -> None:
        link = socket.create_connection(("127.0.0.1", port), timeout=10)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open[link.fileno()] = link
        self._poll.register(link.fileno(), select.EPOLLIN)

    def run(self, seconds: float | None) -> dict[str, Any]:
        """Send until the time or the requests are over; a timed run does not count how it warms up."""
        begun, counted = perf_counter(), 0
        warm = seconds is None
        for place in self._open:
            self._send(place)
        while self._sent:
            counted += self._answers()
            now = perf_counter()
            if not warm and now - begun >= WARM_UP_SECONDS:
                begun, counted, warm = now, 0, True
                self.waits.clear()
            # Answers after the deadline are waited for and not counted.
            if now < self._deadline:
                ended = now
                total = counted
        del now
        return {"requests": total, "seconds": ended - begun, "statuses": self.statuses, **_percentiles(self.waits)}

    def _answers(self) -> int:
        sleep(PAUSE_SECONDS)
        ready = self._poll.poll(QUIET_SECONDS)
        if not ready:
            raise SystemExit(f"no answer within {QUIET_SECONDS} s")
        return sum(self._answer(place) for place, _ in ready)

    def _answer(self, place: int) -> bool:
        """Read what has come; True if an answer is complete."""
        data = self._part.pop(place, b"") + self._open[place].recv(65_536)
        if not data:
            raise SystemExit("the server closed a connection")
        if len(data) < self._length(data):
            self._part[place] = data
            return False
        now = perf_counter()
        self.waits.append(now - self._sent.pop(place))
        self.statuses[data[9:12].decode()] += 1
        if now < self._deadline:
            self._send(place)
        return True

    def _length(self, data: bytes) -> int:
        """The length of an answer by its headers, which are mostly the same."""
        head, separator, _ = data.partition(b"\r\n\r\n")
        if not separator:
            return len(data) + 1
        if head not in self._lengths:
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            self._lengths[head] = len(head) + 4 + int(fields.get(b"content-length", b"0"))
        return self._lengths[head]

    def _send(self, place: int) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        self._sent[place] = perf_counter()
        self._open[place].sendall(self._requests.next())


def _percentiles(waits: list[float]) -> dict[str, float]:
    ordered = sorted(waits) or [0.0]
    return {f"p{percent}": ordered[len(ordered) * percent // 100] for percent in (50, 99)}


if __name__ == "__main__":
    work = json.loads(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read())
    print(json.dumps(Load(work).run(work.get("seconds"))))
