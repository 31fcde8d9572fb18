"""Every mode of collectors, through a relay, by invitation, with spot checks; and a collector that is killed."""

import json
import os
import signal
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from tests.service.plain import DRAFT, Client
from tests.service.served import CONTEXT, free_port
from tests.service.shuffled import FREE, HASTY, Shuffling, open_place, shufflers_and_relay, shuffling, terms
from tests.service.shuffling import ShufflerProcess, request
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.cli import cli
from tacit.client import Respondent, Transport
from tacit.collector.collections.access import Access
from tacit.collector.ports import NewBatch
from tacit.collector.server import Settings, serve
from tacit.shuffler.party_store import PartyStore

CROWD = ["cat"] * 15 + ["dog"] * 6 + ["fish"] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "shufflers", "fakes", "spots"),
    [("relay", 1, 6, 0), ("ss", 3, 6, 4), ("osh", 3, 6, 4), ("osh-z", 3, 5, 4), ("peos-dgk", 3, 5, 4)],
)
def test_a_collection_by_invitation_through_a_relay(
    tmp_path: Path, mode: str, shufflers: int, fakes: int, spots: int
) -> None:
    with shuffling(tmp_path, count=shufflers) as parties:
        relay = {"name": "Relay", "url": parties.relay}
        made = parties.draft(mode=mode, fakes=fakes, spot_checks=spots, relay=relay, invitations=True, epsilon="12")
        mine = parties.publish(made)
        invitations = parties.client.api("POST", f"/collections/{mine}/invitations", {"count": len(CROWD)}).json()
        wait_until(lambda: not parties.collector.shuffle.desk.party.waiting())
        for invitation, answer in zip(invitations["invitations"], CROWD, strict=True):
            parties.answer(mine, [answer], invitation=invitation)
        # An invitation that was spent, and one that never was, are answered like all others and admit nobody.
        parties.answer(mine, ["fish"] * 3, invitation=invitations["invitations"][0])
        parties.answer(mine, ["fish"] * 3, invitation="inv_unknown")
        parties.close(mine)
        status = parties.wait_for(mine, "RELEASED", "ABORTED")
        assert (status["state"], status["respondents"], status["fakes"]) == ("RELEASED", len(CROWD), fakes), status
        assert status["alarms"] == []
        answers = parties.client.answers(mine)
        assert answers["n"] == len(CROWD)
        # At a local epsilon of 12 a report is wrong with probability 3e-5, so that only fakes make a difference.
        for row in answers["questions"][0]["rows"]:
            assert abs(row["raw"]["estimate"] - CROWD.count(row["value"]) / len(CROWD)) < 6 / len(CROWD)
        file = parties.client.http.get(f"/c/{mine}/transcript.json").json()
        assert file["transcript"]["roster"]["n"] == len(CROWD) + spots


def _serve(place: str, folder: Path, port: int, dies: bool) -> None:
    """What the process of a collector does: `tacit serve`, with a store that may kill it."""
    output = os.open(folder / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    store: Any = open_place(place)
    add = store.add_batches

    def add_and_die(batches: Sequence[NewBatch]) -> list[Any]:
        """After the reports of a session were stored, before anybody heard of it."""
        add(batches)
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    if dies:
        store.add_batches = add_and_die
    settings = Settings(database=place, port=port, limits=FREE)
    serve(settings, lambda line: None, open_store=lambda *rest: store)


@contextmanager
def collector(place: str, folder: Path, port: int, *, dies: bool = False) -> Generator[Any]:
    process = CONTEXT.Process(target=_serve, args=(place, folder, port, dies))
    process.start()
    try:
        wait_until(lambda: _is_up(port) or not process.is_alive(), lambda: (folder / "log").read_text()[-2000:])
        yield process
    finally:
        process.kill()
        process.join()


def _is_up(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENT_SECONDS).status_code == 200
    except httpx.HTTPError:
        return False


def keys_of(place: str) -> tuple[str, str]:
    """A token for an operator, and the identity of the collector of a place."""
    store = open_place(place)
    party = PartyStore(store.open_party())
    try:
        return Access(store).create("admin", label="tests")[0], party.identity.public.hex()
    finally:
        party.close()
        store.close()


@pytest.mark.slow
@pytest.mark.slow_cases("postgres")
def test_a_collector_that_is_killed_while_it_counts_goes_on_and_counts_once(tmp_path: Path, place: str) -> None:
    port, (token, identity) = free_port(), keys_of(place)
    url = f"http://127.0.0.1:{port}"
    # The mode that needs most of a collector, on the database that needs most.
    mode = {"mode": "peos-dgk", "spot_checks": 2} if "host=" in place else {}
    with shufflers_and_relay(tmp_path) as (apps, urls, _), httpx.Client(base_url=url, timeout=PATIENT_SECONDS) as http:
        client, shuffle = Client(http, token), terms(identity, apps, urls, fakes=3, **mode)
        with collector(place, tmp_path, port, dies=True) as process:
            mine = client.publish(DRAFT | {"epsilon": "12", "shuffle": shuffle})
            status: dict[str, Any] = {}

            def session() -> Any:
                status.update(client.api("GET", f"/collections/{mine}/session").json())
                return status["state"]

            wait_until(lambda: session() == "COLLECTING", lambda: status)
            people = [Respondent(transport=Transport(HASTY)) for _ in CROWD]
            document = people[0].open(f"{url}/c/{mine}")
            receipts = [
                person.answer(document, {"pet": answer}, collector=url)
                for person, answer in zip(people, CROWD, strict=True)
            ]
            client.api("POST", f"/collections/{mine}/session/close")
            process.join(PATIENT_SECONDS)
            assert process.exitcode == -signal.SIGKILL
        # Shufflers keep what they have until the collector says that it has it: they can show who took part.
        shown = people[0].check(receipts[0])
        assert (shown.state, shown.respondents) == ("shown", len(CROWD) + shuffle["spot_checks"])
        with collector(place, tmp_path, port):
            wait_until(lambda: session() == "RELEASED", lambda: status)
            assert (status["respondents"], status["fakes"]) == (len(CROWD), 3)
            assert (client.answers(mine)["n"], client.status(mine)["reports"]) == (len(CROWD), len(CROWD))
            assert people[0].check(receipts[0]).state == "included"
            # Shufflers have erased their slots, and the hashes that are published are enough.
            wait_until(lambda: not any(app.driver.store.sessions(only_live=True) for app in apps))
            assert people[1].check(receipts[1]).state == "included"


@pytest.mark.slow
def test_all_parties_are_processes_and_reports_are_encrypted(tmp_path: Path) -> None:
    place, port, crowd = str(tmp_path / "data"), free_port(), ["cat"] * 60 + ["dog"] * 40
    token, identity = keys_of(place)
    url = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        shufflers = [ShufflerProcess(tmp_path / f"shuffler-{number}") for number in range(3)]
        for each in shufflers:
            each.start()
            stack.callback(each.kill)
        keys = [json.loads(request(f"{each.url}/identity.json")[1])["identity"] for each in shufflers]
        named = [
            {"name": f"Shuffler {i}", "url": each.url, "identity": key}
            for i, (each, key) in enumerate(zip(shufflers, keys, strict=True))
        ]
        terms_of_all = terms(identity, [], [], mode="peos-dgk", shufflers=named, minimum=80, fakes=7, spot_checks=20)
        stack.enter_context(collector(place, tmp_path, port))
        client = Client(stack.enter_context(httpx.Client(base_url=url, timeout=PATIENT_SECONDS)), token)
        mine = client.publish(DRAFT | {"epsilon": "12", "shuffle": terms_of_all})

        def session() -> Any:
            return client.api("GET", f"/collections/{mine}/session").json()

        wait_until(lambda: session()["state"] == "COLLECTING", session)
        people = [Respondent(transport=Transport(HASTY)) for _ in crowd]
        document = people[0].open(f"{url}/c/{mine}")
        for person, answer in zip(people, crowd, strict=True):
            assert person.answer(document, {"pet": answer}, collector=url).state == "sent"
        client.api("POST", f"/collections/{mine}/session/close")
        wait_until(lambda: session()["state"] in ("RELEASED", "ABORTED"), session)
        status = session()
        assert (status["state"], status["respondents"], status["fakes"], status["alarms"]) == ("RELEASED", 100, 7, [])
        rows = client.answers(mine)["questions"][0]["rows"]
        # At a local epsilon of 12 a report is wrong with probability 3e-5: seven fakes make the difference.
        assert all(abs(row["raw"]["estimate"] - crowd.count(row["value"]) / 100) <= 0.08 for row in rows)
        wait_until(lambda: len(http_transcript(client, mine)["transcript"]["erasures"]) == 3)
        told = CliRunner().invoke(
            cli, ["shuffle", "verify", "-", "--json"], input=json.dumps(http_transcript(client, mine))
        )
        assert told.exit_code == 0 and json.loads(told.stdout)["uploads"] == 120, told.output


def http_transcript(client: Client, collection: str) -> Any:
    return client.http.get(f"/c/{collection}/transcript.json").json()


@pytest.mark.slow
def test_a_vector_that_was_altered_is_not_counted_and_the_same_reports_are_not_asked_for_again(tmp_path: Path) -> None:
    with shuffling(tmp_path) as parties:
        mine = parties.publish(parties.draft(fakes=0, minimum=5))
        parties.answer(mine, ["cat"] * 6)
        _flip_a_bit(parties)
        parties.close(mine)
        status = parties.wait_for(mine, "RELEASED", "ABORTED")
        assert status["state"] == "ABORTED" and "1 of 6 rows do not open" in status["note"]
        assert parties.client.answers(mine)["status"] == "below_minimum_cohort"
        again = parties.client.api("POST", f"/collections/{mine}/session")
        assert again.status_code == 409 and "have been seen" in again.json()["detail"]
        # The rows arrived, and that is what was acknowledged: shufflers have erased theirs.
        wait_until(lambda: not any(app.driver.store.sessions(only_live=True) for app in parties.shufflers))
        assert parties.client.http.get(f"/c/{mine}/transcript.json").json()["transcript"]["ack"]["failures"] == 1


def _flip_a_bit(parties: Shuffling) -> None:
    """Let a shuffler alter one row of what it hands over."""
    steps = parties.shufflers[1].driver.steps
    change = steps._change

    def altered(record: Any, after: Any, state: Any, outgoing: Sequence[Any], *rest: Any, **more: Any) -> Any:
        for each in outgoing:
            if each.phase == "output":
                each.body[0, 0] ^= 1
        return change(record, after, state, outgoing, *rest, **more)

    steps._change = altered
