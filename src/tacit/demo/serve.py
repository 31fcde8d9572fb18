"""The demo's servers: what `tacit serve` and others run, each in a process of its own, on loopback."""

import logging
import os
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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

HOST = "127.0.0.1"
_START_SECONDS = 60
"""A start takes about a second; on a machine with much else to do, imports alone can take twenty."""
_STOP_SECONDS = 30
"""Time to drain open requests and close the store."""


@dataclass(frozen=True)
class DemoService:
    """A server of the demo: what it is called, where it listens, and the function that serves until it is ended."""

    who: str
    url: str
    serve: Callable[..., None]
    given: tuple[Any, ...]
    """The arguments of `serve`; both must survive the way into another process."""
    ready: str = "/readyz"
    """The path that is answered as soon as the server works."""


@contextmanager
def running(services: Sequence[DemoService]) -> Generator[None]:
    """Run servers in processes of their own, which start side by side, until the block ends."""
    # "spawn", since a forked child would inherit threads' locks and the caller's open connections.
    context = get_context("spawn")
    # Not daemons, which may have no children: a collector opens many shuffled rows in processes of its own.
    processes = [context.Process(target=in_child, args=(service.serve, *service.given)) for service in services]
    try:
        for process in processes:
            process.start()
        for process, service in zip(processes, services, strict=True):
            _await(process, service)
        yield
    finally:
        _end([process for process in processes if process.pid is not None])


def _end(processes: Sequence[Any]) -> None:
    """Stop processes, all at the same time; one that does not end in time is killed."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(_STOP_SECONDS)
        if process.is_alive():
            process.kill()


@contextmanager
def collector(data: Path, port: int) -> Generator[tuple[str, str]]:
    """Run a collector over a folder, on this port or (if 0) any free one; yield its address and an admin token."""
    # Everybody in the crowd has the same address, which in a real collection would be a flood.
    settings = Settings(data=data, host=HOST, port=free_ports(1, port)[0], limits=Limits(requests_per_second=0))
    # Before the server starts, so that no second process writes to its database.
    token = _admin_token(data)
    with running([DemoService("collector", settings.url, _serve, (settings,))]):
        yield settings.url, token


def _admin_token(data: Path) -> str:
    """Create an admin token for this run, whoever used the folder before."""
    store = open_store(data)
    try:
        return Access(store).create("admin", label="demo")[0]
    finally:
        store.close()


def free_ports(count: int, first: int = 0) -> list[int]:
    """Return ports that can be bound, the first of them as given unless 0; StorageUnavailable if that one is taken."""
    # A port could be taken between this probe and the server's own bind; `_await` reports that case.
    with ExitStack() as stack:
        ports: list[int] = []
        for port in (first, *([0] * (count - 1))):
            probe = stack.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise StorageUnavailable(f"demo: port {port} of {HOST} cannot be used: {error.strerror}") from None
            ports.append(probe.getsockname()[1])
        return ports


def in_child(serve: Callable[..., None], *given: Any) -> None:
    """Do something in a child process, until it is terminated or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the demo says when its servers end.
    logging.disable(logging.INFO)
    end_with_parent()
    serve(*given)


def _serve(settings: Settings) -> None:
    serve(settings, say_nothing, routes)


def say_nothing(text: str) -> None:
    """Announce nothing: the demo itself says where its servers are."""
    del text


def end_with_parent() -> None:
    """End this process when its parent has ended, so that a killed demo leaves nothing running."""
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A parent that exits ends its children itself; one that gets SIGKILL leaves them running without this.
    demo = parent_process()
    assert demo is not None
    demo.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _await(process: Any, service: DemoService) -> None:
    """Wait until a server answers; StorageUnavailable if its process ends or the start takes too long."""
    # Poll the readiness endpoint instead of sleeping: the port may be open before the store is.
    deadline = monotonic() + _START_SECONDS
    while process.is_alive() and monotonic() < deadline:
        try:
            urlopen(service.url + service.ready, timeout=5).close()
            return
        except (URLError, OSError):
            sleep(0.02)
    raise StorageUnavailable(f"demo: no {service.who} could be started at {service.url}")
