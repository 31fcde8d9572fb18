"""The parties of a shuffled collection: a collector, a relay and three shufflers, each in a process of its own.

Here one program runs them all, which no respondent of a real collection should accept: what is claimed against the
collector holds if different organisations run them. They know of each other what such organisations would exchange:
addresses and keys.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tacit.client.operator import Operator
from tacit.demo.serve import HOST, DemoService, collector, free_ports, running, say_nothing
from tacit.hosting.limits import Limits
from tacit.hosting.serving import server_url
from tacit.shuffler.joining import Offer
from tacit.shuffler.relay import RelaySettings, serve_relay
from tacit.shuffler.server import ShufflerSettings, serve_shuffler

SHUFFLERS = 3
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class DemoParties:
    """Where everybody is, and the keys that the document pins."""

    url: str
    token: str
    identity: str
    """The collector's."""
    shufflers: tuple[dict[str, str], ...]
    """Name, address and identity of each, as documents state them."""
    relay: str

    @property
    def place(self) -> Operator:
        """The collector, as its operator sees it."""
        return Operator(self.url, self.token)

    def terms(self, n: int) -> dict[str, Any]:
        """Terms of a shuffled collection that expects n respondents."""
        return {
            "mode": "osh",
            "collector": {"name": "Collector", "identity": self.identity},
            "shufflers": list(self.shufflers),
            "relay": {"name": "Relay", "url": self.relay},
            # Some may stay away, and what is promised must hold without them.
            "minimum": max(2, n * 9 // 10),
            "maximum": 2 * n,
            # One for every hundred respondents and shuffler: enough to hide whose neighbours are all known.
            "fakes": SHUFFLERS * -(-n // 100),
            "spot_checks": 10,
            "delta": "1e-8",
            "together": [],
        }


@contextmanager
def processes(data: Path, port: int) -> Generator[DemoParties]:
    """Run all parties over folders in a folder; the collector on this port or (if 0) any free one."""
    with collector(data / "collector", port) as (url, token):
        identity = Operator(url, token).shuffle_identity()
        *ports, last = free_ports(SHUFFLERS + 1)
        services = [_shuffler(data, number, each, identity) for number, each in enumerate(ports, start=1)]
        urls = tuple(service.url for service in services)
        relay = DemoService("relay", server_url(HOST, last), _relay, (urls, last), ready="/healthz")
        with running([*services, relay]):
            named = tuple(shuffler_at(url) for url in urls)
            yield DemoParties(url, token, identity, named, relay.url)


def shuffler_at(url: str) -> dict[str, str]:
    """Name, address and identity of a shuffler, from itself; real operators tell each other their keys in person."""
    with urlopen(f"{url}/identity.json", timeout=_TIMEOUT_SECONDS) as reply:
        stated = json.loads(reply.read())
    return {"name": stated["name"], "url": url, "identity": stated["identity"]}


def _shuffler(data: Path, number: int, port: int, collector_key: str) -> DemoService:
    # All uploads come from the relay, and so from one address.
    limits = Limits(body_bytes=1 << 20, requests_per_second=0)
    name, offer = f"Shuffler {number}", Offer(frozenset({collector_key}))
    settings = ShufflerSettings(data / f"shuffler-{number}", name, offer, host=HOST, port=port, limits=limits)
    return DemoService(name.lower(), settings.url, _shuffle, (settings,))


def _shuffle(settings: ShufflerSettings) -> None:
    serve_shuffler(settings, say_nothing)


def _relay(targets: tuple[str, ...], port: int) -> None:
    serve_relay(RelaySettings(targets, HOST, port, rate=0), say_nothing)
