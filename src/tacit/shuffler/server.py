"""Running a shuffler: its folder, its address, its logs, and stopping in order."""

import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from tacit.errors import StorageUnavailable
from tacit.hosting.addresses import public_address
from tacit.hosting.clock import Clock
from tacit.hosting.limits import Limits
from tacit.hosting.logs import set_up_logs
from tacit.hosting.memory import keep_freed_memory
from tacit.hosting.serving import in_thread, listen, server_config, server_url
from tacit.hosting.tls import TlsFiles, trusting
from tacit.shuffler.driver import ShufflerDriver
from tacit.shuffler.http import ShufflerApp
from tacit.shuffler.joining import Offer
from tacit.shuffler.party_store import PartyStore
from tacit.shuffler.post import Courier, post_letter
from tacit.shuffler.relays import SessionRelays

Announce = Callable[[str], object]


@dataclass(frozen=True)
class ShufflerSettings:
    """Where a shuffler keeps its data and listens, and what it offers."""

    data: Path
    name: str
    offer: Offer = field(default_factory=Offer)
    host: str = "127.0.0.1"
    port: int = 8100
    public_url: str = ""
    trusted_proxies: str = ""
    limits: Limits = field(default_factory=lambda: Limits(body_bytes=1 << 20))
    relay_rate: float = 0.0
    """Uploads per second through one relay of a session; 0 for no limit."""
    relay_addresses: tuple[str, ...] = ()
    """Addresses that relays send from, beside those of their names."""
    tls: TlsFiles | None = None
    ca_file: Path | None = None
    """Whose certificates of other parties are believed; those that the system believes if there is none."""

    def __post_init__(self) -> None:
        """Refuse a public address that nobody could use."""
        object.__setattr__(self, "public_url", public_address(self.public_url))

    @property
    def url(self) -> str:
        """The address that respondents and other parties use."""
        return self.public_url or server_url(self.host, self.port, is_secure=self.tls is not None)


def make_shuffler(
    store: PartyStore, name: str, offer: Offer, *, limits: Limits | None = None, clock: Clock | None = None,
    courier: Courier | None = None, relays: SessionRelays | None = None, trust: ssl.SSLContext | None = None,
) -> ShufflerApp:  # fmt: skip
    """The application of a shuffler over its store; `trust` says whose certificates it believes."""
    drivers: list[ShufflerDriver] = []
    post = courier or Courier(
        store,
        send=partial(post_letter, trust=trust),
        refused=lambda session, receiver: drivers[0].refused(session, receiver),
    )
    drivers.append(ShufflerDriver(store, post, offer, clock=clock))
    return ShufflerApp(drivers[0], name, limits, relays=relays)


def serve_shuffler(settings: ShufflerSettings, announce: Announce = print) -> None:
    """Serve until stopped; SIGTERM and SIGINT finish running requests first."""
    set_up_logs()
    # Vectors of a round come and go by the dozen, each of megabytes.
    keep_freed_memory()
    trust = trusting(settings.ca_file)
    sockets = listen(settings.host, settings.port, who="shuffler")
    store = PartyStore(settings.data)
    relays = SessionRelays(store, rate=settings.relay_rate, more=settings.relay_addresses)
    app = make_shuffler(
        store, settings.name, settings.offer, limits=settings.limits, relays=relays, trust=trust
    )  # fmt: skip
    config = server_config(
        app, settings.host, settings.port, settings.limits, trusted_proxies=settings.trusted_proxies, tls=settings.tls
    )  # fmt: skip
    server = uvicorn.Server(config)
    announce(f"identity {store.identity.public.hex()}")
    announce(f"tacit shuffles at {settings.url}")
    server.run(sockets=sockets)
    if not server.started:
        raise StorageUnavailable(f"shuffler: could not start on {settings.host}:{settings.port}")


@contextmanager
def listening(app: Any, host: str = "127.0.0.1", *, tls: TlsFiles | None = None) -> Generator[str]:
    """Serve an application of this room in a thread until the block ends; yields its address."""
    limits = Limits(requests_per_second=0)
    with in_thread(lambda port: uvicorn.Server(server_config(app, host, port, limits, tls=tls)), host) as (url, _):
        yield url
