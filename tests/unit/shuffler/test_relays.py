"""Relays of sessions have a limit of their own; everybody else has that of one respondent."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.hosting.limits import Limits, RateLimit
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.relays import SessionRelays, addresses_of

MADE = rehearse(ReplayCoins(b"relays"), relay={"operator": "Post", "url": "https://post.example:8443/there"})
NAMES = {"post.example": {"192.0.2.7", "2001:db8::7"}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PartyStore]:
    made = PartyStore(tmp_path)
    made.add_session(MADE.signed, 1, "COLLECTING")
    yield made
    made.close()


class Names:
    """Names that are looked up, and how often."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, host: str) -> set[str]:
        self.asked.append(host)
        return NAMES.get(host, set())


def test_the_addresses_of_a_sessions_relay_and_added_ones_are_allowed(store: PartyStore) -> None:
    names, now = Names(), [0.0]
    relays = SessionRelays(store, more=["198.51.100.1"], resolve=names, seconds=lambda: now[0])
    assert relays.allow("198.51.100.1", 1) and names.asked == []
    assert relays.allow("192.0.2.7", 128) and relays.allow("2001:db8::7", 128)
    assert not relays.allow("192.0.2.8", 1) and not relays.allow("", 1)
    # A flood of strangers asks for names once a minute.
    assert names.asked == ["post.example"]
    store.end(MADE.session.id, PhaseChange(state="ABORTED"))
    assert relays.allow("192.0.2.7", 1)
    now[0] += 60
    assert not relays.allow("192.0.2.7", 1)


def test_a_relay_has_a_limit_where_one_is_set(store: PartyStore) -> None:
    now = [0.0]
    relays = SessionRelays(store, rate=10, resolve=Names(), seconds=lambda: now[0])
    assert relays.allow("192.0.2.7", 100) and not relays.allow("192.0.2.7", 1)
    now[0] += 1
    assert relays.allow("192.0.2.7", 10) and not relays.allow("192.0.2.7", 1)


def test_a_request_costs_as_much_as_there_is_in_it() -> None:
    limit = RateLimit(Limits(requests_per_second=1, burst=4), lambda: 0.0)
    assert limit.allows("a", 3) and not limit.allows("a", 2) and limit.allows("a") and not limit.allows("a")


def test_sessions_without_a_relay_name_nobody(tmp_path: Path) -> None:
    with_none = PartyStore(tmp_path)
    with_none.add_session(replace(MADE.signed, session=replace(MADE.session, relay=None)), 1, "COLLECTING")
    names = Names()
    assert not SessionRelays(with_none, resolve=names).allow("192.0.2.7", 1) and names.asked == []
    with_none.close()


def test_names_become_addresses() -> None:
    assert "127.0.0.1" in addresses_of("127.0.0.1")
    assert addresses_of("name.invalid") == set()
