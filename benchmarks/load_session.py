"""A collector in a process of its own, and the load generator in another."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Time limits, after which a measurement has failed: of starting, of stopping, and of one run of the generator.
START_SECONDS = 30
STOP_SECONDS = 60
CLIENT_SECONDS = 300
TOKEN_LINE = "admin token, shown this once: "


class NotMeasured(Exception):
    """A measurement that did not come about; the message is one line and goes into the results."""


def progress(message: str) -> None:
    """Tell the person at the terminal what is being measured."""
    print(f"load: {message}", file=sys.stderr, flush=True)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve_command(folder: Path, port: int, workers: int = 1) -> list[str]:
    """`tacit serve` as an operator runs it, without a limit for one address, since all the load comes from one."""
    tacit = str(Path(sys.executable).with_name("tacit"))
    more = ["--rate", "1000000000", "--workers", str(workers)]
    return [tacit, "serve", "--data", str(folder), "--port", str(port), *more]


def with_raw_command(folder: Path, port: int) -> list[str]:
    """The collector with one more route, which does nothing."""
    return [sys.executable, str(HERE / "load_server.py"), str(folder), str(port)]


class Server:
    """A running collector."""

    def __init__(self, command: list[str], port: int, token: str) -> None:
        self.port, self.token = port, token
        self._begun = time.perf_counter()
        self._said = "nothing"
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.start_seconds = self._wait()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            if line.startswith(TOKEN_LINE):
                self.token = line.removeprefix(TOKEN_LINE).strip()
            elif line.strip():
                self._said = line.strip()

    def _wait(self) -> float:
        """Seconds from the start of the process to its first answer."""
        while time.perf_counter() - self._begun < START_SECONDS:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/healthz")[0] == 200:
                    return time.perf_counter() - self._begun
            if self._process.poll() is not None:
                self._reader.join(1)
                raise NotMeasured(f"the collector did not start; it said: {self._said}")
            time.sleep(0.01)
        raise NotMeasured(f"no answer within {START_SECONDS} s")

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """One request on a connection of its own, as an operator who is signed in."""
        headers = {"Authorization": f"Bearer {self.token}", "Cookie": f"tacit_session={self.token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of the API, which must be a success."""
        status, data = self.ask(method, f"/api/v1{path}", body)
        if status >= 300:
            raise NotMeasured(f"{method} {path} was answered with {status}")
        return json.loads(data)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def resident_bytes(self) -> int:
        """Memory of the process, as the operating system counts it."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return 1024 * int(line.split()[1])
        raise NotMeasured("the operating system does not tell the memory of a process")

    def stop(self) -> None:
        """Ask it to end, as an operator would."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()


@contextlib.contextmanager
def serving(folder: Path, *, raw: bool = False, token: str = "", workers: int = 1) -> Iterator[Server]:
    """Serve a folder until the block ends."""
    port = free_port()
    server = Server(with_raw_command(folder, port) if raw else serve_command(folder, port, workers), port, token)
    try:
        yield server
    finally:
        server.stop()


def load(job: dict[str, Any]) -> dict[str, Any]:
    """Run the load generator; every answer must be a success."""
    command = [sys.executable, str(HERE / "load_client.py")]
    # A fixed hash seed is for reproducible tests; the generator should run as any Python process does.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    try:
        done = subprocess.run(
            command, input=json.dumps(job), env=environment, capture_output=True, text=True, check=False,
            timeout=CLIENT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"the load was not taken within {CLIENT_SECONDS} s") from None
    if done.returncode != 0:
        raise NotMeasured((done.stderr.strip().splitlines() or ["the load generator failed"])[-1])
    result = json.loads(done.stdout)
    if set(result["statuses"]) - {"201", "204"}:
        raise NotMeasured(f"answers were {result['statuses']}")
    return result
