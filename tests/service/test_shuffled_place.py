"""Where a collector keeps its side of shuffles, and what it says if it cannot."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import SHUFFLE, Client, draft, serving
from tests.service.waiting import wait_until

from tacit.collector.server import make_app
from tacit.collector.service import Collector
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import MissingExtra
from tacit.hosting.clock import Clock
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffler.joining import Offer
from tacit.shuffler.letters import PROTOCOL
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.server import listening, make_shuffler


@pytest.mark.parametrize("library", ["cryptography", "gmpy2"])
def test_a_collector_without_the_extra_refuses_shuffled_drafts(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setattr("tacit.core.extras.is_installed", lambda module: module != library)
    collector = Collector(MemoryStore())
    with pytest.raises(MissingExtra, match=f"{library} is not installed; it comes with the extra 'shuffle'"):
        collector.planner.plan(draft(shuffle=SHUFFLE))
    # Everything else goes on.
    collector.planner.plan(draft())
    collector.stop()


def test_nothing_of_shuffles_is_made_for_plain_collections() -> None:
    store = MemoryStore()
    collector = Collector(store)
    collector.start()
    collector.planner.plan(draft())
    assert not collector.shuffle.is_open and not (store.segments / "shuffle.db").exists()
    collector.stop()


def test_the_identity_of_a_collector_is_made_once() -> None:
    store = MemoryStore()
    keys = []
    for _ in range(2):
        collector = Collector(store)
        keys.append(collector.shuffle.desk.identity)
        collector.stop()
    assert keys[0] == keys[1]


@contextmanager
def alone(folder: Path, offer: Offer, clock: Clock | None = None) -> Generator[tuple[Client, Any, dict[str, Any]]]:
    """A collector, one shuffler that offers this much, and the terms of both."""
    store = PartyStore(folder)
    app = make_app(MemoryStore(), clock=clock)
    with listening(make_shuffler(store, "North", offer)) as url, serving(app) as client:
        party = {"name": "North", "url": url, "identity": store.identity.public.hex()}
        me = {"name": "Pets", "identity": app.collector.shuffle.desk.identity}
        yield client, app.collector, SHUFFLE | {"collector": me, "shufflers": [party], "minimum": 5}


def noted(client: Client, collection: str, words: str) -> Any:
    """The status of a session, as soon as its note says this."""
    status: dict[str, Any] = {}

    def says() -> bool:
        status.update(client.api("GET", f"/collections/{collection}/session").json())
        return words in status["note"]

    wait_until(says, lambda: status)
    return status


def test_a_shuffler_that_does_not_work_for_this_collector_is_named_with_its_reason(tmp_path: Path) -> None:
    with alone(tmp_path, Offer()) as (client, _, terms):
        mine = client.publish(draft(shuffle=terms))
        status = noted(client, mine, "this shuffler does not work for the collector")
        assert status["state"] == "DRAFT" and "--collector" in status["note"]
        assert client.http.get(f"/c/{mine}/session.json").status_code == 404


def test_another_shuffler_at_the_address_and_a_mode_that_is_not_offered_are_noticed(tmp_path: Path) -> None:
    with alone(tmp_path, Offer(any_collector=True, modes=("osh",))) as (client, _, terms):
        mine = client.publish(draft(shuffle=terms))
        assert noted(client, mine, "it does not offer mode relay")["state"] == "none"
        other = [terms["shufflers"][0] | {"identity": "5" * 64}]
        mine = client.publish(draft(shuffle=terms | {"shufflers": other}))
        assert noted(client, mine, "it has another identity than the document names")["state"] == "none"
        opened = client.api("POST", f"/collections/{mine}/session")
        assert opened.status_code == 409 and "another identity" in opened.json()["detail"]


@pytest.mark.parametrize(("spoken", "older"), [(1, "update http://"), (9, "update this side")])
def test_a_shuffler_of_another_release_is_named_with_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoken: int, older: str
) -> None:
    monkeypatch.setattr("tacit.shuffler.http.PROTOCOL", spoken)
    with alone(tmp_path, Offer(any_collector=True)) as (client, _, terms):
        mine = client.publish(draft(shuffle=terms))
        note = noted(client, mine, f"it speaks version {spoken} of the protocol between parties")["note"]
        assert f"this side version {PROTOCOL}" in note and older in note


def test_a_collector_of_another_release_is_told_both_versions(tmp_path: Path) -> None:
    made = rehearse(ReplayCoins(b"old"))
    with listening(make_shuffler(PartyStore(tmp_path), "North", Offer(any_collector=True))) as url:
        reply = httpx.post(f"{url}/sessions", json=made.signed.to_json())
    assert reply.status_code == 403
    assert "collector: it speaks version 1 of the protocol" in reply.json()["detail"]


def test_a_shuffler_that_is_late_is_named_and_the_session_given_up(tmp_path: Path) -> None:
    times = [0.0]
    clock = Clock(seconds=lambda: times[0])
    with alone(tmp_path, Offer(any_collector=True), clock) as (client, collector, terms):
        mine = client.publish(draft(shuffle=terms))
        wait_until(lambda: client.http.get(f"/c/{mine}/session.json").status_code == 200)
        record = collector.shuffle.desk.party.sessions()[-1]
        # The shuffler has forgotten the session, as after a disk was lost: it takes the letter for another's.
        forgetful = PartyStore(tmp_path)
        forgetful.end(record.id, PhaseChange(state="ERASED"))
        forgetful.close()
        assert client.api("POST", f"/collections/{mine}/session/close").status_code == 202
        wait_until(lambda: noted(client, mine, "")["awaited"] == ["shuffler_1"])
        wait_until(lambda: not collector.shuffle.desk.party.waiting())
        # The clock of durations stands still until everything has been seen once.
        wait_until(lambda: _moved(times, lambda: client.api("GET", f"/collections/{mine}/session").json()))
        status = noted(client, mine, "shuffler_1: nothing arrived within")
        assert (status["state"], status["blames"]) == ("ABORTED", "shuffler_1")


def _moved(times: list[float], status: Callable[[], Any]) -> bool:
    times[0] += 700
    return status()["state"] == "ABORTED"
