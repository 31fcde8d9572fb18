"""Where the PostgreSQL port listens, and how it is protected. Read at every start, so it needs no engine of SQL."""

import socket
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from tacit.collector.pg.messages import PgLimits
from tacit.errors import InvalidSpec, StorageUnavailable
from tacit.hosting.tls import TlsFiles


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
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=128)
        except OSError:
            raise StorageUnavailable(f"serve: could not listen on {self.host}:{self.port}") from None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
