"""Running the collector: opening its store, listening on its ports, writing logs, and stopping in order."""

import shlex
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from tacit.catalog import CATALOG
from tacit.collector.collections.active import Catalog
from tacit.collector.http.app import App, Pages
from tacit.collector.limits import FoldLimits, Intervals
from tacit.collector.pg.listen import PgSettings
from tacit.collector.ports import Store
from tacit.collector.service import Collector, Sharing
from tacit.errors import InvalidSpec, StorageUnavailable
from tacit.hosting.addresses import public_address
from tacit.hosting.clock import Clock
from tacit.hosting.limits import Limits
from tacit.hosting.logs import set_up_logs
from tacit.hosting.serving import in_thread, listen, server_config, server_url
from tacit.hosting.tls import TlsFiles
from tacit.tasks.table import TASKS
from tacit.tasks.task import Task

if TYPE_CHECKING:
    from tacit.collector.pg.server import PgServer

Announce = Callable[[str], object]
"""Where the lines for whoever starts the collector go."""


@dataclass(frozen=True)
class Settings:
    """Where the collector keeps its data and listens."""

    data: Path | None = None
    database: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str = ""
    trusted_proxies: str = ""
    """Addresses whose X-Forwarded-For is believed; empty for none."""
    limits: Limits = field(default_factory=Limits)
    intervals: Intervals = field(default_factory=Intervals)
    segments: Path | None = None
    """Folder for rows, with a database; collectors that share the one share the other."""
    lake: str = ""
    """URL at which reports are kept as files, if they are; collectors on one database share it."""
    pg: PgSettings | None = None
    """Where tables are served to clients of PostgreSQL, if they are."""
    admin_token: str = field(default="", repr=False)
    """The first admin token, if it is not to be drawn and shown at the first start."""
    metrics_token: str = field(default="", repr=False)
    """What whoever reads /metrics has to show; empty if everybody may."""
    tls: TlsFiles | None = None
    """Where the collector ends TLS itself."""
    workers: int = 1
    """Processes that take requests."""
    webhook_private: bool = False
    """Whether webhooks may have addresses inside this network."""

    def __post_init__(self) -> None:
        """Refuse a public address that could not be printed on a poster."""
        object.__setattr__(self, "public_url", public_address(self.public_url))

    def shard(self, worker: int = 0) -> str:
        """Where a process folds to; a folder has one place for all, as they wait for each other."""
        if self.data is not None:
            return "main"
        return f"{socket.gethostname()}:{self.port}" + (f"/{worker}" if worker else "")

    @property
    def wishes(self) -> dict[str, Any]:
        """What `make_app` is told beyond the usual."""
        given = {
            "lake": self.lake,
            "metrics_token": self.metrics_token,
            "webhook_private": self.webhook_private,
        }
        return {name: value for name, value in given.items() if value}

    @property
    def url(self) -> str:
        """The address that respondents and operators use."""
        return self.public_url or server_url(self.host, self.port, is_secure=self.tls is not None)


def open_store(
    data: Path | None, database: str = "", segments: Path | None = None, clock: Clock | None = None
) -> Store:
    """SQLite in a folder, or a PostgreSQL database with a folder for segments of rows."""
    day = (clock or Clock()).day
    if bool(data) == bool(database):
        raise InvalidSpec("give either a folder (--data) or a database address (--database)")
    if data is not None:
        if segments is not None:
            raise InvalidSpec("serve: --segments goes with --database; a folder (--data) holds its segments itself")
        from tacit.collector.store.sqlite.store import SqliteStore

        return SqliteStore(data, today=day)
    if not database.startswith(("postgresql://", "postgres://")):
        raise InvalidSpec("serve: the database must be an address such as postgresql://host/name")
    from tacit.collector.store.postgres.store import PostgresStore

    return PostgresStore(database, segments=segments, today=day)


def restore_store(file: Path, data: Path | None, database: str = "", segments: Path | None = None) -> None:
    """Fill an empty folder or database from a backup."""
    if data is None:
        store: Any = open_store(None, database, segments)
        try:
            store.restore(str(file))
        finally:
            store.close()
        return
    from tacit.collector.store.sqlite.store import SqliteStore

    SqliteStore.restore(file, data).close()


def make_app(
    store: Store,
    limits: Limits | None = None,
    *,
    catalog: Catalog = CATALOG,
    tasks: tuple[Task, ...] = TASKS,
    shard: str = "main",
    pages: Pages | None = None,
    clock: Clock | None = None,
    intervals: Intervals | None = None,
    folding: FoldLimits | None = None,
    lake: str = "",
    metrics_token: str = "",
    sharing: Sharing | None = None,
    webhook_private: bool = False,
) -> App:
    """The application over a store, with pages where they are given."""
    collector = Collector(
        store, catalog=catalog, tasks=tasks, shard=shard, clock=clock, intervals=intervals, folding=folding,
        lake=lake, sharing=sharing, webhook_private=webhook_private,
    )  # fmt: skip
    return App(collector, limits, pages(collector, catalog=catalog) if pages else [], metrics_token)


def make_config(app: Any, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves an application."""
    reports = getattr(app, "reports", None)
    limits: Limits = getattr(reports, "limits", settings.limits)
    return server_config(app, settings.host, settings.port, limits, short_way=reports,
                         trusted_proxies=settings.trusted_proxies, tls=settings.tls)  # fmt: skip


class CollectorServer(uvicorn.Server):
    """The HTTP server and, beside it on the same loop, the one for clients of PostgreSQL."""

    def __init__(
        self, config: uvicorn.Config, pg: "PgServer | None" = None, listener: socket.socket | None = None
    ) -> None:
        super().__init__(config)
        self.pg, self._listener = pg, listener

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on the HTTP port and on the PostgreSQL port."""
        await super().startup(sockets)
        if self.pg is not None and self._listener is not None and self.started:
            await self.pg.start(self._listener)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut both servers down after their running requests."""
        if self.pg is not None:
            await self.pg.stop()
        await super().shutdown(sockets)


def make_server(
    app: Any, settings: Settings, pg: PgSettings | None, listener: socket.socket | None = None
) -> CollectorServer:
    """The server of an application; `listener` is for clients of PostgreSQL, where there are to be some."""
    config = make_config(app, settings)
    # Sessions of shuffled collections tell shufflers where to write to.
    if (collector := getattr(app, "collector", None)) is not None:
        collector.shuffle.url = settings.url
    if pg is None:
        return CollectorServer(config)
    # The engine of SQL is loaded only where it is used.
    from tacit.collector.pg.server import pg_server

    return CollectorServer(config, pg_server(app, pg), listener or pg.listen())


def serve(
    settings: Settings,
    announce: Announce = print,
    pages: Pages | None = None,
    *,
    open_store: Callable[..., Store] = open_store,
    make_app: Callable[..., App] = make_app,
    clock: Clock | None = None,
) -> None:
    """Serve until stopped; SIGTERM and SIGINT finish running requests first.

    Another store, application or clock takes the place of the usual one: `open_store` and `make_app` are called with
    the arguments of the functions of that name.
    """
    set_up_logs()
    if settings.pg is not None:
        settings.pg.context()  # A certificate that cannot be read is refused before anything is touched.
    sockets = listen(settings.host, settings.port)
    pg = None if settings.pg is None else settings.pg.listen()
    store = open_store(settings.data, settings.database, settings.segments, clock)
    app = make_app(
        store, settings.limits, shard=settings.shard(), pages=pages, clock=clock, intervals=settings.intervals,
        **settings.wishes,
    )  # fmt: skip
    server = make_server(app, settings, settings.pg, pg)
    announce_start(settings, app.collector.access.first_admin(settings.admin_token), announce)
    server.run(sockets=sockets)
    if not server.started:
        raise StorageUnavailable(f"serve: could not start on {settings.host}:{settings.port}")


def announce_start(settings: Settings, token: str | None, announce: Announce) -> None:
    """Say where the collector is, and the first admin token if it was made just now; it is never shown again."""
    if token is not None:
        # Set apart from logs that come before and after, on whichever stream those are.
        announce("\n" + "-" * 79)
        announce(f"admin token, shown this once: {token}")
        announce("Keep it: commands take it as TACIT_TOKEN or --token, the dashboard at its sign-in.")
        announce(f"If it is lost, make another on this machine: {another_token(settings)}")
        announce("-" * 79 + "\n")
    announce(f"tacit collects at {settings.url}")
    if settings.pg is not None:
        announce(f"tables for PostgreSQL clients at {settings.pg.host}:{settings.pg.port}, the password is a token")


def another_token(settings: Settings) -> str:
    """The command that makes another admin token; an address of a database may hold a password and is not repeated."""
    place = "--database ADDRESS" if settings.data is None else f"--data {shlex.quote(str(settings.data))}"
    return f"tacit token create --scope admin {place}"


@dataclass
class Running:
    """A collector that runs in a thread of this process, for tests and examples."""

    url: str
    app: Any
    pg: "PgServer | None" = None


@contextmanager
def running(app: Any, host: str = "127.0.0.1", pg: PgSettings | None = None) -> Generator[Running]:
    """Serve an application on a free loopback port until the block ends, and its tables on another."""

    def make(port: int) -> CollectorServer:
        return make_server(app, Settings(host=host, port=port), pg)

    with in_thread(make, host) as (url, server):
        yield Running(url, app, server.pg)
