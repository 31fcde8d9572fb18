"""One benchmark run: the sizes, and the processes that measure Tacit and its peers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.environments import PeerUnavailable, run_job

HERE = Path(__file__).resolve().parent
WORKER_SECONDS = 300


class NotMeasured(Exception):
    """A measurement that did not come about; the message is one line and goes into the results."""


def progress(message: str) -> None:
    """Tell the person at the terminal what is being measured."""
    print(f"bench: {message}", file=sys.stderr, flush=True)


@dataclass
class Session:
    """What the lines of one run share. Peers are measured once per job and remembered."""

    quick: bool = False
    _peers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def size(self, full: int) -> int:
        """The number of reports to use where the full benchmark uses `full`."""
        return max(1000, full // 100) if self.quick else full

    @property
    def repeats(self) -> int:
        """How many runs a median is taken of."""
        return 3 if self.quick else 5

    def work(self, job: str, *, threads: int | None = 1, **arguments: Any) -> dict[str, float]:
        """Run a job of `worker.py` with this many threads (None: as many as Tacit takes by itself)."""
        progress(f"tacit {job} {' '.join(f'{key}={value}' for key, value in arguments.items())}")
        environment = {key: value for key, value in os.environ.items() if key != "TACIT_THREADS"}
        if threads is not None:
            environment["TACIT_THREADS"] = str(threads)
        request = json.dumps({"job": job, **arguments})
        output = checked([sys.executable, str(HERE / "worker.py"), request], environment)
        return json.loads(output.splitlines()[-1])

    def peer(self, peer: str, what: str, mechanism: str, d: int, *, seconds: float = 3.0) -> dict[str, Any]:
        """Run a job in the environment of a peer; an answer with "error" says why there is no rate."""
        budget = 0.5 if self.quick else seconds
        job = {
            "what": what, "mechanism": mechanism, "n": self.size(100_000), "d": d,
            "epsilon": 1.0, "seconds": budget,
        }  # fmt: skip
        key = f"{peer} {what} {mechanism} {d}"
        if key not in self._peers:
            progress(f"{peer} {what} {mechanism} d={d}")
            self._peers[key] = _answer(peer, job)
        return self._peers[key]

    def answers(self, peer: str) -> list[dict[str, Any]]:
        """Everything that a peer has answered so far."""
        return [answer for key, answer in self._peers.items() if key.startswith(f"{peer} ")]


def _answer(peer: str, job: dict[str, Any]) -> dict[str, Any]:
    try:
        return run_job(peer, job)
    except PeerUnavailable as error:
        progress(f"{peer}: {error}")
        return {"error": str(error)}


def checked(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """Return what a command prints, or raise NotMeasured with the last line of its complaint."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=WORKER_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"no answer within {WORKER_SECONDS} s") from None
    except OSError as error:
        raise NotMeasured(str(error.strerror)) from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotMeasured(lines[-1].strip() if lines else f"exit status {done.returncode}")
    return done.stdout
