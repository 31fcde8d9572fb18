"""One collector of several processes on one machine: `tacit serve --workers N` (decision 0024).

    parent: watches (`hosting.crew`)
      |- process that writes   with a folder alone: batches of all workers in one transaction, folding, chores
      |- worker 1 .. N         HTTP, validating, answers, SQL; a listening socket each, the kernel divides connections

With PostgreSQL there is no process that writes: workers share the database as collectors on several machines do.
"""

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tacit.collector import server
from tacit.collector.collections.access import Access
from tacit.collector.http.app import App, Pages
from tacit.collector.ingest.handing import BatchReception, Handover
from tacit.collector.ports import Store
from tacit.collector.server import Announce, Settings
from tacit.collector.service import Sharing
from tacit.errors import InvalidSpec, StorageUnavailable
from tacit.hosting.clock import Clock
from tacit.hosting.crew import Crew, run_apart
from tacit.hosting.exposition import Board
from tacit.hosting.logs import set_up_logs
from tacit.hosting.serving import listen

MOST_WORKERS = 128


@dataclass(frozen=True)
class _Plan:
    """What every process of a collector needs to know."""

    settings: Settings
    board: Path
    pages: Pages | None
    open_store: Callable[..., Store]
    make_app: Callable[..., App]
    clock: Clock | None

    def app(self, worker: int, sharing: Sharing) -> App:
        """The application of one process, over a store that it opens itself."""
        settings = self.settings
        store = self.open_store(settings.data, settings.database, settings.segments, self.clock)
        return self.make_app(
            store, settings.limits, shard=settings.shard(worker), pages=self.pages, clock=self.clock,
            intervals=settings.intervals, sharing=sharing, **settings.wishes,
        )  # fmt: skip


class _Writing:
    """The job of the process that writes, on a folder."""

    name, is_first = "the process that writes", True

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._control, self._theirs = socket.socketpair()

    def prepare(self) -> Callable[[], None]:
        for end in (self._control, self._theirs):
            end.close()
        self._control, self._theirs = socket.socketpair()
        return self._run

    def started(self) -> None:
        self._theirs.close()

    def stop(self, pid: int) -> None:
        del pid
        self._control.shutdown(socket.SHUT_RDWR)

    def link(self) -> socket.socket:
        """A new connection to the process: the side of a worker."""
        mine, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"link"], [theirs.fileno()])
            except OSError:
                # It has just died: the worker finds its link closed, and is soon started again with all others.
                pass
        return mine

    def _run(self) -> None:
        # A terminal or a service manager tells all processes to stop at once. This one goes on until the workers have
        # handed on the last of what they took; then the parent closes the control socket.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        self._control.close()
        plan = self._plan
        workers = plan.settings.workers
        collector = plan.app(0, Sharing(workers, None, Board(plan.board, "writer"))).collector
        collector.start()
        reception = BatchReception(collector.writer, collector.touch)
        try:
            while links := socket.recv_fds(self._theirs, 16, 1)[1]:
                reception.welcome(socket.socket(fileno=links[0]))
        finally:
            collector.stop()


class _Worker:
    """The job of a process that takes requests."""

    is_first = False

    def __init__(self, plan: _Plan, number: int, listeners: list[socket.socket], writing: _Writing | None) -> None:
        self._plan, self._number, self._writing, self._listeners = plan, number, writing, listeners
        self.name = f"worker {number + 1}"
        self._link: socket.socket | None = None

    def prepare(self) -> Callable[[], None]:
        self._link = None if self._writing is None else self._writing.link()
        return self._run

    def started(self) -> None:
        if self._link is not None:
            self._link.close()

    def stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGTERM)

    def _run(self) -> None:
        plan, settings = self._plan, self._plan.settings
        intake = None if self._link is None else Handover(self._link)
        board = Board(plan.board, str(self._number + 1))
        # Those on PostgreSQL share no folder: each is as free as a collector of its own.
        app = plan.app(self._number, Sharing(1 if intake is None else settings.workers, intake, board))
        http, *pg = self._listeners
        made = server.make_server(app, settings, settings.pg, *pg)
        made.run(sockets=[http])
        if not made.started:
            raise StorageUnavailable("serve: a worker could not start")


def serve(
    settings: Settings,
    announce: Announce = print,
    pages: Pages | None = None,
    *,
    open_store: Callable[..., Store] = server.open_store,
    make_app: Callable[..., App] = server.make_app,
    clock: Clock | None = None,
) -> None:
    """Serve until stopped, with as many processes as the settings say; the arguments are those of `server.serve`."""
    if not 1 <= settings.workers <= MOST_WORKERS:
        raise InvalidSpec(f"serve: workers is {settings.workers}, must be from 1 to {MOST_WORKERS}")
    if settings.workers == 1:
        server.serve(settings, announce, pages, open_store=open_store, make_app=make_app, clock=clock)
        return
    set_up_logs()
    ports = _listen(settings)
    with TemporaryDirectory(prefix="tacit-workers-") as board:
        plan = _Plan(settings, Path(board), pages, open_store, make_app, clock)
        run_apart(partial(_prepare, plan, announce))
        writing = None if settings.data is None else _Writing(plan)
        workers = [_Worker(plan, i, sockets, writing) for i, sockets in enumerate(ports)]
        close = partial(_close, ports)
        Crew([*([] if writing is None else [writing]), *workers], close).run()


def _listen(settings: Settings) -> list[list[socket.socket]]:
    """The listening sockets of every worker."""
    # One socket each, open in the parent as well: connections to a worker that is being restarted wait for it.
    made = [listen(settings.host, settings.port, settings.workers)]
    if settings.pg is not None:
        settings.pg.context()  # A certificate that cannot be read is refused before anything is touched.
        made.append(settings.pg.listeners(settings.workers))
    return [list(sockets) for sockets in zip(*made, strict=True)]


def _close(ports: list[list[socket.socket]]) -> None:
    for sockets in ports:
        for each in sockets:
            each.close()


def _prepare(plan: _Plan, announce: Announce) -> None:
    """Create or upgrade the storage, and the first admin token, before several processes open it."""
    settings = plan.settings
    store = plan.open_store(settings.data, settings.database, settings.segments, plan.clock)
    try:
        token = Access(store, (plan.clock or Clock()).day).first_admin(settings.admin_token)
    finally:
        store.close()
    server.announce_start(settings, token, announce)
