"""Where the PostgreSQL port listens, and how it is protected. Read at every start, so it needs no engine of SQL."""

import socket
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from tacit.collector.pg.messages import PgLimits
from tacit.errors import InvalidSpec
from tacit.hosting.serving import listen
from tacit.hosting.tls import TlsFiles

BACKLOG = 128
"""Connections that wait to be accepted."""


@dataclass(frozen=True)
class PgSettings:
    """Where the server listens, and how it is protected."""

    port: int
    host: str = "127.0.0.1"
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False
    """Take passwords in the clear from other machines, for networks that protect them otherwise."""
    limits: PgLimits = field(default_factory=PgLimits)

    def __post_init__(self) -> None:
        """Refuse to ask for tokens in the clear across a network."""
        if (self.cert is None) != (self.key is None):
            raise InvalidSpec("serve: --pg-cert and --pg-key go together")
        if self.cert is None and not self.insecure and not _is_loopback(self.host):
            raise InvalidSpec(
                f"serve: tokens would cross the network in the clear to {self.host}:{self.port}; give --pg-cert and "
                "--pg-key, or --pg-host 127.0.0.1, or (if the network itself is protected) --pg-insecure"
            )

    def context(self) -> ssl.SSLContext | None:
        """TLS, if there is a certificate."""
        if self.cert is None:
            return None
        assert self.key is not None
        return TlsFiles(self.cert, self.key).context()

    def listen(self) -> socket.socket:
        """A socket that listens; it is bound before anything is announced."""
        return self.listeners(1)[0]

    def listeners(self, sockets: int) -> list[socket.socket]:
        """One socket for each of several processes."""
        return listen(self.host, self.port, sockets, BACKLOG, option="--pg-port")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
