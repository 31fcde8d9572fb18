"""The demo's collector: the server of `tacit serve` in a process of its own, on loopback, while the demo runs."""

import logging
import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from tacit.collector.collections.access import Access
from tacit.collector.server import Settings, open_store, serve
from tacit.dashboard import routes
from tacit.errors import StorageUnavailable
from tacit.hosting.limits import Limits

_HOST = "127.0.0.1"
_START_SECONDS = 60
"""A start takes about a second; on a machine with much else to do, imports alone can take twenty."""
_STOP_SECONDS = 30
"""Time to drain open requests and close the store."""


@contextmanager
def collector(data: Path, port: int) -> Generator[tuple[str, str]]:
    """Run a collector over a folder, on this port or (if 0) any free one; yield its address and an admin token."""
    # Everybody in the crowd has the same address, which in a real collection would be a flood.
    settings = Settings(data=data, host=_HOST, port=_free_port(port), limits=Limits(requests_per_second=0))
    # Before the server starts, so that no second process writes to its database.
    token = _admin_token(data)
    # "spawn", since a forked child would inherit threads' locks and the caller's open connections.
    process = get_context("spawn").Process(target=_serve, args=(settings,), daemon=True)
    process.start()
    try:
        _await(process, settings)
        yield settings.url, token
    finally:
        process.terminate()
        process.join(_STOP_SECONDS)


def _admin_token(data: Path) -> str:
    """Create an admin token for this run, whoever used the folder before."""
    store = open_store(data)
    try:
        return Access(store).create("admin", label="demo")[0]
    finally:
        store.close()


def _free_port(port: int) -> int:
    """Return a port that can be bound: the given one, or any free one if 0; StorageUnavailable if it is taken."""
    # The port could be taken between this probe and the server's own bind; `_await` reports that case.
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            raise StorageUnavailable(f"demo: port {port} of {_HOST} cannot be used: {error.strerror}") from None
        return probe.getsockname()[1]


def _serve(settings: Settings) -> None:
    """Serve in the child process, until it is terminated or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the demo says when the collector ends.
    logging.disable(logging.INFO)
    Thread(target=_end_with_parent, daemon=True).start()
    serve(settings, _say_nothing, routes)


def _say_nothing(text: str) -> None:
    del text


def _end_with_parent() -> None:
    """Wait for the parent to end and then terminate, so that a killed demo leaves no collector behind."""
    # `daemon=True` ends the child only when the parent exits normally; SIGKILL leaves it running without this.
    demo = parent_process()
    assert demo is not None
    demo.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _await(process: Any, settings: Settings) -> None:
    """Wait until the collector answers; StorageUnavailable if its process ends or the start takes too long."""
    # Poll the readiness endpoint instead of sleeping: the port may be open before the store is.
    deadline = monotonic() + _START_SECONDS
    while process.is_alive() and monotonic() < deadline:
        try:
            urlopen(f"{settings.url}/readyz", timeout=5).close()
            return
        except (URLError, OSError):
            sleep(0.02)
    raise StorageUnavailable(f"demo: no collector could be started on {settings.host}:{settings.port}")
