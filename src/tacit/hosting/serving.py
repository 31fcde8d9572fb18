"""Listening: how uvicorn serves an application, and a server in a thread of this process."""

import errno
import socket
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any, TypeVar

import uvicorn

from tacit.errors import StorageUnavailable
from tacit.hosting.connection import ShortWay, connections
from tacit.hosting.limits import Limits
from tacit.hosting.tls import TlsFiles

BACKLOG = 2048
"""Connections that wait to be accepted."""
_PORT_SECONDS = 10
"""How long several processes wait for a port to become free."""
_GRACE_SECONDS = 20
"""How long a server that is told to stop waits for requests that have begun."""

AnyServer = TypeVar("AnyServer", bound=uvicorn.Server)


def server_url(host: str, port: int, *, is_secure: bool = False) -> str:
    """The address of a server."""
    scheme = "https" if is_secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def listen(
    host: str, port: int, sockets: int = 1, backlog: int = BACKLOG, *, who: str = "serve", option: str = "--port"
) -> list[socket.socket]:
    """So many sockets that listen on one port, among which the kernel divides connections.

    A server listens before it does anything else: a port that is taken must not cost a first token.
    """
    end = time.monotonic() + _PORT_SECONDS
    while True:
        try:
            # Once without sharing: a port that another server uses is refused, even if that one would share it.
            _bound(host, port, shared=False).close()
            made = [_bound(host, port, shared=sockets > 1) for _ in range(sockets)]
            for each in made:
                each.listen(backlog)
            return made
        except OSError as error:
            # The processes of a server that was killed may need a moment to notice.
            if sockets == 1 or time.monotonic() >= end:
                raise StorageUnavailable(f"{who}: {_no_port(host, port, option, error)}") from None
            time.sleep(0.05)


def _no_port(host: str, port: int, option: str, error: OSError) -> str:
    """Why a port cannot be listened on, and what to do about it."""
    if error.errno == errno.EADDRINUSE:
        other = port + 1 if port < 65535 else port - 1
        return (
            f"port {port} on {host} is taken by another program, maybe by another collector; stop that one, or take "
            f"another port: {option} {other}"
        )
    if error.errno == errno.EACCES:
        return f"port {port} on {host} is for the administrator alone; take one from 1024 on: {option} 8000"
    named = f"{option.replace('port', 'host')} 127.0.0.1 or {option.replace('port', 'host')} 0.0.0.0"
    return f"{host}:{port} is no address of this machine ({error.strerror or error}); write {named}"


def _bound(host: str, port: int, *, shared: bool) -> socket.socket:
    with ExitStack() as stack:
        made = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((host, port))
        stack.pop_all()
    return made


def server_config(
    app: Any, host: str, port: int, limits: Limits, *, short_way: ShortWay | None = None, trusted_proxies: str = "",
    tls: TlsFiles | None = None,
) -> uvicorn.Config:  # fmt: skip
    """How uvicorn serves an application: no access log, no headers about itself, deadlines for slow clients."""
    return uvicorn.Config(
        app,
        http=connections(short_way, limits, trusted_proxies),
        host=host,
        port=port,
        access_log=False,
        log_config=None,
        lifespan="on",
        server_header=False,
        date_header=False,
        ws="none",
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=trusted_proxies or None,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=BACKLOG,
        ssl_context_factory=None if tls is None else lambda config, default: tls.context(),
    )


@contextmanager
def in_thread(make: Callable[[int], AnyServer], host: str = "127.0.0.1") -> Generator[tuple[str, AnyServer]]:
    """Run a server on a free loopback port until the block ends; yields its address and itself."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        probe.listen(BACKLOG)
        # The socket stays open until the server listens on it, so that nobody else can take the port meanwhile.
        port = probe.getsockname()[1]
        server = make(port)
        thread = Thread(target=server.run, kwargs={"sockets": [probe]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        if not server.started:
            raise StorageUnavailable("serve: the server did not start")
        try:
            yield server_url(host, port, is_secure=server.config.is_ssl), server
        finally:
            server.should_exit = True
            thread.join()
