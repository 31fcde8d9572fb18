"""A collector, three shufflers and a relay, each with its own HTTP server in a thread, and drafts for them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from tests.service.memory import MemoryStore
from tests.service.plain import DRAFT, Client
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.client import Patience, Respondent, Transport
from tacit.collector.server import make_app, running
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.hosting.limits import Limits
from tacit.shuffler.http import ShufflerApp
from tacit.shuffler.joining import Offer
from tacit.shuffler.party_store import PartyStore
from tacit.shuffler.post import Courier
from tacit.shuffler.relay import RelayApp
from tacit.shuffler.server import listening, make_shuffler

FREE = Limits(body_bytes=1 << 20, requests_per_second=0)
HASTY = Patience(attempts=2, first_seconds=0.01, longest_seconds=0.05, timeout_seconds=PATIENT_SECONDS)
"""For tests in which somebody does not answer."""


def open_place(place: str) -> SqliteStore | PostgresStore:
    """The store of a folder or of an address of PostgreSQL."""
    return PostgresStore(place) if "host=" in place else SqliteStore(place)


def terms(identity: str, apps: Sequence[ShufflerApp], urls: Sequence[str], **changes: Any) -> dict[str, Any]:
    """Terms of a shuffled collection among running parties."""
    named = enumerate(zip(apps, urls, strict=True), 1)
    parties = [
        {"name": f"Shuffler {i}", "url": url, "identity": app.driver.store.identity.public.hex()}
        for i, (app, url) in named
    ]
    return {
        "mode": "osh",
        "collector": {"name": "Pets", "identity": identity},
        "shufflers": parties,
        "relay": None,
        "minimum": 20,
        "maximum": 10_000,
        "fakes": 30,
        "spot_checks": 0,
        "delta": "1e-6",
        "together": [],
    } | changes


@dataclass
class Shuffling:
    """All parties, running."""

    client: Client
    collector: Any
    url: str
    shufflers: list[Any]
    urls: list[str]
    relay: str

    def terms(self, **changes: Any) -> dict[str, Any]:
        return terms(self.collector.shuffle.desk.identity, self.shufflers, self.urls, **changes)

    def draft(self, *, epsilon: str = "4", invitations: bool = False, **changes: Any) -> dict[str, Any]:
        return DRAFT | {"epsilon": epsilon, "invitations": invitations, "shuffle": self.terms(**changes)}

    def publish(self, draft: dict[str, Any]) -> str:
        """Publish, and wait until respondents can take part."""
        mine = self.client.publish(draft)
        self.wait_for(mine, "COLLECTING")
        return mine

    def session(self, collection: str) -> Any:
        return self.client.api("GET", f"/collections/{collection}/session").json()

    def wait_for(self, collection: str, *states: str) -> Any:
        wait_until(lambda: self.state(collection) in states, lambda: self.session(collection))
        return self.session(collection)

    def state(self, collection: str) -> str:
        """The state of the latest session, without asking anybody over the network."""
        records = self.collector.shuffle.desk.party.sessions()
        return next((each.state for each in reversed(records) if each.session.collection == collection), "")

    def close(self, collection: str) -> None:
        reply = self.client.api("POST", f"/collections/{collection}/session/close")
        assert reply.status_code == 202, reply.text

    def address(self, collection: str) -> str:
        return f"{self.url}/c/{collection}"

    def answer(self, collection: str, answers: Sequence[str], **more: Any) -> list[Respondent]:
        """Everybody answers with an own device."""
        people = [Respondent(transport=Transport(HASTY)) for _ in answers]
        document = people[0].open(self.address(collection))
        for person, label in zip(people, answers, strict=True):
            receipt = person.answer(document, {"pet": label}, collector=self.url, **more)
            assert receipt.state == "sent", receipt.reason
        return people


@contextmanager
def shufflers_and_relay(folder: Path, count: int = 3) -> Generator[tuple[list[ShufflerApp], list[str], str]]:
    """Shufflers that work for everybody, their addresses, and that of a relay in front of them."""
    with ExitStack() as stack:
        stores = [PartyStore(folder / f"shuffler-{i}") for i in range(1, count + 1)]
        apps = [
            make_shuffler(each, f"Shuffler {i}", Offer(any_collector=True), limits=FREE, courier=courier_of(each))
            for i, each in enumerate(stores, 1)
        ]
        urls = [stack.enter_context(listening(app)) for app in apps]
        yield apps, urls, stack.enter_context(listening(RelayApp(urls, FREE)))


def courier_of(store: PartyStore) -> Courier:
    return Courier(store, patience=replace(HASTY, longest_seconds=0.2))


@contextmanager
def shuffling(folder: Path, store: Any = None, count: int = 3, pages: Any = None) -> Generator[Shuffling]:
    """All parties, until the block ends; the collector has pages where they are given."""
    with ExitStack() as stack:
        shufflers, urls, relay = stack.enter_context(shufflers_and_relay(folder, count))
        app = make_app(store or MemoryStore(), Limits(requests_per_second=0), pages=pages)
        token = app.collector.access.create("admin", label="tests")[0]
        server = stack.enter_context(running(app))
        http = stack.enter_context(httpx.Client(base_url=server.url, timeout=PATIENT_SECONDS))
        yield Shuffling(Client(http, token), app.collector, server.url, shufflers, urls, relay)
