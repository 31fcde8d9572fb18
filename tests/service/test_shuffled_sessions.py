"""Sessions of one collection that follow each other, and what a restored backup does with one that goes on."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from tests.service.plain import DRAFT, Client
from tests.service.served import free_port
from tests.service.shuffled import HASTY, Shuffling, open_place, shufflers_and_relay, shuffling, terms
from tests.service.test_shuffled_modes import CROWD, collector, keys_of
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit import GRR
from tacit.cli import cli
from tacit.client import AlreadyAnswered, Respondent, Transport
from tacit.shuffle.mechanisms.fakes import with_fakes


def verified(file: Any, *options: str) -> Result:
    return CliRunner().invoke(cli, ["shuffle", "verify", "-", *options], input=json.dumps(file))


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True)
def test_sessions_follow_each_other_with_other_people_and_their_tallies_add_up(tmp_path: Path, place: str) -> None:
    with shuffling(tmp_path, open_place(place)) as parties:
        follow_each_other(parties)


def follow_each_other(parties: Shuffling) -> None:
    mine = parties.publish(parties.draft(epsilon="12", fakes=3, spot_checks=2))
    crowds = [["cat"] * 21, ["cat"] * 7 + ["dog"] * 14]
    everybody: list[Respondent] = []
    for number, crowd in enumerate(crowds, 1):
        everybody += parties.answer(mine, crowd)
        parties.close(mine)
        status = parties.wait_for(mine, "RELEASED", "ABORTED")
        assert (status["state"], status["respondents"], status["fakes"], status["alarms"]) == ("RELEASED", 21, 3, [])
        assert (status["sessions"], len(status["released"])) == (number, number)
        # Nothing is asked of those who took part: they would lose epsilon a second time, and the claim would not hold.
        wait_until(lambda: not parties.collector.shuffle.desk.party.sessions(only_live=True))
        if number < len(crowds):
            assert parties.client.api("POST", f"/collections/{mine}/session").status_code == 201
            parties.wait_for(mine, "COLLECTING")
            with pytest.raises(AlreadyAnswered):
                everybody[0].answer(parties.address(mine), {"pet": "dog"})
            assert everybody[0].flush() == []
    answers = parties.client.answers(mine)
    # The respondents of both sessions, without the fakes of either; epsilon is that of one session.
    assert (answers["n"], parties.client.status(mine)["reports"]) == (42, 42)
    expected = with_fakes(GRR(size=3, epsilon="12"), 6)
    assert answers["shuffle"]["epsilon"] == parties.session(mine)["epsilon"]
    for row in answers["questions"][0]["rows"]:
        # Six fakes among 48 reports: at epsilon 12 they are all that moves an estimate.
        assert abs(row["raw"]["estimate"] - {"cat": 28, "dog": 14, "fish": 0}[row["value"]] / 42) <= 6 / 42
        assert row["raw"]["standard_error"] == pytest.approx(expected.standard_error(42), rel=0.5)
    # Transcripts are of one session each, and every receipt is found in its own, whoever erased what.
    for person, session in zip((everybody[0], everybody[-1]), parties.session(mine)["released"], strict=True):
        file = parties.client.http.get(f"/c/{mine}/transcript.json", params={"session": session}).json()
        told = json.loads(verified(file, "--json").stdout)
        assert (told["valid"], told["session"], told["uploads"]) == (True, session, 23)
        (entry,) = person._ledger.sealed()
        assert entry.receipt.session == session
        found = person.check(entry.receipt)
        assert (found.state, found.respondents) == ("included", 23)
        slot = entry.receipt.slot
        assert "took part" in verified(file, "--slot", slot).stdout
        assert verified(file, "--slot", "00" * 16).exit_code == 1
    assert parties.client.api("POST", f"/collections/{mine}/close").status_code == 200
    assert parties.client.api("POST", f"/collections/{mine}/session").status_code == 409


class Operator:
    """An operator of a collector in a process of its own, wherever that is restored."""

    def __init__(self, http: httpx.Client, token: str) -> None:
        self.client, self.mine, self.told = Client(http, token), "", dict[str, Any]()

    def state(self) -> str:
        self.told = self.client.api("GET", f"/collections/{self.mine}/session").json()
        return self.told["state"]

    def wait_for(self, *states: str) -> None:
        wait_until(lambda: self.state() in states, lambda: self.told)

    def answered(self, url: str, answers: list[str]) -> list[tuple[Respondent, Any]]:
        people = [Respondent(transport=Transport(HASTY)) for _ in answers]
        document = people[0].open(f"{url}/c/{self.mine}")
        pairs = zip(people, answers, strict=True)
        return [(person, person.answer(document, {"pet": answer}, collector=url)) for person, answer in pairs]


@pytest.mark.slow
def test_a_restored_collector_goes_on_with_shufflers_that_never_stopped(tmp_path: Path) -> None:
    place, again, file, port = str(tmp_path / "data"), tmp_path / "again", tmp_path / "copy.sqlite", free_port()
    (token, identity), url = keys_of(place), f"http://127.0.0.1:{port}"
    with shufflers_and_relay(tmp_path) as (apps, urls, _), httpx.Client(base_url=url, timeout=PATIENT_SECONDS) as http:
        operator = Operator(http, token)
        with collector(place, tmp_path, port):
            shuffle = terms(identity, apps, urls, fakes=3, spot_checks=2)
            operator.mine = operator.client.publish(DRAFT | {"epsilon": "12", "shuffle": shuffle})
            operator.wait_for("COLLECTING")
            people = operator.answered(url, CROWD)
            saved = CliRunner().invoke(cli, ["backup", str(file), "--data", place])
            assert saved.exit_code == 0, saved.output
            # Who answers after the copy was made is in no database of the collector, but with the shufflers.
            people += operator.answered(url, ["fish"] * 3)
        # The process is gone, and so is its folder as far as anybody is concerned.
        made = CliRunner().invoke(cli, ["restore", str(file), "--data", str(again)])
        assert made.exit_code == 0, made.output
        assert keys_of(str(again))[1] == identity
        with collector(str(again), tmp_path, port):
            assert operator.state() == "COLLECTING"
            operator.client.api("POST", f"/collections/{operator.mine}/session/close")
            operator.wait_for("RELEASED", "ABORTED")
            told, n = operator.told, len(CROWD) + 3
            assert (told["state"], told["respondents"], told["fakes"]) == ("RELEASED", n, 3), told
            assert operator.client.answers(operator.mine)["n"] == n
            for person, receipt in (people[0], people[-1]):
                assert person.check(receipt).state == "included"
            wait_until(lambda: not any(app.driver.store.sessions(only_live=True) for app in apps))
