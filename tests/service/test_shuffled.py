"""A shuffled collection from its draft to its answers: collector, shufflers, a relay and respondents, over HTTP."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.service.plain import binary, draft
from tests.service.shuffled import HASTY, Shuffling, shuffling
from tests.service.waiting import wait_until

from tacit import GRR
from tacit.cli import cli
from tacit.client import AlreadyAnswered, Respondent, Transport, Unreachable
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.mechanisms.fakes import with_fakes
from tacit.shuffle.protocol.parties import COLLECTOR
from tacit.shuffle.protocol.resharing import OUTPUT
from tacit.shuffler.letters import letter, place_of

SHARES = {"cat": 0.5, "dog": 0.3, "fish": 0.2}


@dataclass
class Finished:
    """A collection that was answered and released, and what was seen on the way."""

    parties: Shuffling
    id: str
    people: list[Respondent]
    n: int
    status: Any
    """Of the session when it was released."""


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shuffling]:
    with shuffling(tmp_path_factory.mktemp("parties")) as made:
        yield made


@pytest.fixture(scope="module", params=[40, pytest.param(200, marks=pytest.mark.slow)])
def done(parties: Shuffling, request: pytest.FixtureRequest) -> Finished:
    n, mine = request.param, parties.publish(parties.draft())
    people = parties.answer(mine, [label for label, share in SHARES.items() for _ in range(round(share * n))])
    assert parties.session(mine)["uploads"] == {f"shuffler_{i}": n for i in (1, 2, 3)}
    parties.close(mine)
    return Finished(parties, mine, people, n, parties.wait_for(mine, "RELEASED", "ABORTED"))


def run(parties: Shuffling, *words: str) -> Result:
    place = ["--server", parties.url, "--token", parties.client.token]
    return CliRunner().invoke(cli, [*words, *place])


def test_respondents_are_counted_and_fakes_are_not(done: Finished) -> None:
    status, shown = done.status, done.parties.client.status(done.id)
    assert (status["state"], status["respondents"], status["fakes"], status["alarms"]) == ("RELEASED", done.n, 30, [])
    assert (status["rows"], status["opened_rows"]) == (done.n + 30, done.n + 30)
    assert (shown["reports"], shown["minimum_cohort"]) == (done.n, 20)
    # It stays open for further sessions, until its operator closes it.
    assert shown["state"] == "published"
    listed = done.parties.client.api("GET", "/collections").json()["collections"]
    assert [row["reports"] for row in listed if row["id"] == done.id] == [done.n]


def test_answers_are_those_of_the_crowd_with_the_epsilon_against_everybody(done: Finished) -> None:
    answers = done.parties.client.answers(done.id)
    assert (answers["status"], answers["n"], answers["questions"][0]["n"]) == ("ok", done.n, done.n)
    expected = with_fakes(GRR(size=3, epsilon="4"), 30).standard_error(done.n)
    for row in answers["questions"][0]["rows"]:
        raw = row["raw"]
        # Three values beyond 5.5 standard errors: a false alarm in 10^7 runs. That fakes are taken out is seen by `n`
        # and by the error, of which they are the larger part; their offset is tested by enumeration elsewhere.
        assert abs(raw["estimate"] - SHARES[row["value"]]) < 5.5 * raw["standard_error"]
        assert raw["standard_error"] == pytest.approx(expected, rel=0.1)
    claim = answers["shuffle"]
    assert claim["epsilon"] == {"collector": "3.643", "others": "3.667", "local": "4"}
    assert (claim["delta"], claim["roles_apart"], answers["epsilon"]) == ("0.000001", True, "4")
    table = run(done.parties, "collection", "export", done.id, "--format", "csv").stdout.splitlines()
    assert table[0].endswith("epsilon,shuffled_epsilon,shuffled_epsilon_others,shuffled_delta")
    assert f",{done.n},0.95," in table[1] and table[1].endswith(",4,3.643,3.667,0.000001")


def test_the_command_line_shows_a_session_and_its_claims(done: Finished) -> None:
    shown = run(done.parties, "collection", "session", done.id).stdout
    assert "state: released" in shown and f"respondents: {done.n}, fakes beside them: 30" in shown
    assert "3.643" in shown and "the collector and all other respondents" in shown
    told = json.loads(run(done.parties, "collection", "session", done.id, "--json").stdout)
    assert told["epsilon"]["local"] == "4"
    again = run(done.parties, "collection", "close-session", done.id)
    assert again.exit_code == 2 and "it takes no reports" in again.stderr
    identity = run(done.parties, "shuffle", "identity").stdout.strip()
    assert identity == done.parties.collector.shuffle.desk.identity


def published(done: Finished) -> Any:
    reply = done.parties.client.http.get(f"/c/{done.id}/transcript.json")
    assert reply.status_code == 200
    return reply.json()


def verified(file: Any, *options: str) -> Result:
    return CliRunner().invoke(cli, ["shuffle", "verify", "-", *options], input=json.dumps(file))


def test_anybody_can_verify_the_transcript_and_tampering_shows(done: Finished) -> None:
    wait_until(lambda: len(published(done)["transcript"]["erasures"]) == 3)
    file = published(done)
    good = verified(file)
    assert good.exit_code == 0, good.output
    assert f"all shufflers signed the same {done.n} uploads" in good.stdout
    assert "3 of 3 shufflers have signed that they erased" in good.stdout and "It does not prove" in good.stdout
    told = json.loads(verified(file, "--json").stdout)
    assert told["valid"] and told["collection"] == done.id and told["uploads"] == done.n

    def tampered(change: Any) -> Result:
        copy = json.loads(json.dumps(file))
        change(copy)
        return verified(copy, "--json")

    changes = {
        "roster": lambda copy: copy["transcript"]["roster"].update(n=done.n + 1),
        "rows": lambda copy: copy["transcript"].update(rows=done.n),
        "an envelope": lambda copy: copy["transcript"]["envelopes"][5].update(body="00" * 32),
        "one too few": lambda copy: copy["transcript"]["envelopes"].pop(),
        "ack": lambda copy: copy["transcript"]["ack"].update(failures=1),
        "erasure": lambda copy: copy["transcript"]["erasures"][0].update(attempt=2),
        "claim": lambda copy: copy["session"]["session"]["certificate"].update(epsilon="0.1"),
        "document": lambda copy: copy["document"].update(retention_days=1),
        "nothing": lambda copy: copy.pop("session"),
    }
    for name, change in changes.items():
        refused = tampered(change)
        assert refused.exit_code == 1 and json.loads(refused.stdout)["valid"] is False, name


def test_nobody_answers_twice_or_after_the_end(done: Finished) -> None:
    person = done.people[0]
    with pytest.raises(Unreachable, match=r"a session that takes reports cannot be fetched \(status 410\)"):
        person.answer(done.parties.address(done.id), {"pet": "dog"})
    with pytest.raises(Unreachable):
        Respondent(transport=Transport(HASTY)).answer(done.parties.address(done.id), {"pet": "dog"})
    # There is no other session, so that nothing is sealed again.
    assert person.flush() == []


def test_a_report_in_the_clear_is_refused(done: Finished) -> None:
    refused = done.parties.client.send(done.id, binary(done.id, bytes([1])))
    assert refused.json()["type"].endswith(":shuffled")


def test_too_few_respondents_end_a_session_and_take_part_in_the_next(parties: Shuffling) -> None:
    mine = parties.publish(parties.draft(fakes=0))
    (person,) = parties.answer(mine, ["cat"])
    (first,) = person._ledger.sealed()
    with pytest.raises(AlreadyAnswered) as twice:
        person.answer(parties.address(mine), {"pet": "dog"})
    assert (twice.value.receipt.session, twice.value.receipt.slot) == (first.receipt.session, first.receipt.slot)
    assert person.check(first.receipt).state == "waiting"
    # While the session goes on, it is neither replaced nor is its collection closed behind its back.
    for path in ("session", "close"):
        assert parties.client.api("POST", f"/collections/{mine}/{path}").status_code == 409
    parties.close(mine)
    status = parties.wait_for(mine, "ABORTED", "RELEASED")
    assert status["state"] == "ABORTED" and "1 respondents, the certificate needs 20" in status["note"]
    assert person.check(first.receipt).state == "aborted"
    assert person.flush() == []

    assert parties.client.api("POST", f"/collections/{mine}/session", {"days": 3}).status_code == 201
    status = parties.wait_for(mine, "COLLECTING")
    assert (status["sessions"], status["session"] != first.receipt.session) == (2, True)
    (receipt,) = person.flush()
    (second,) = person._ledger.sealed()
    # The same noisy bytes in fresh shares: one report on one answer, ever.
    assert (receipt.state, receipt.session) == ("sent", status["session"])
    assert (second.report, second.batch) == (first.report, first.batch)
    assert second.sealed is not None and first.sealed is not None
    assert second.sealed["slot"] != first.sealed["slot"]
    assert person.ledger().total == 4
    assert parties.session(mine)["uploads"] == {f"shuffler_{i}": 1 for i in (1, 2, 3)}
    assert parties.client.api("POST", f"/collections/{mine}/session/abort").json()["state"] == "ABORTED"
    assert parties.client.answers(mine)["status"] == "below_minimum_cohort"


def test_drafts_that_could_not_be_run_are_refused_before_they_are_published(parties: Shuffling) -> None:
    def refusal(**changes: Any) -> str:
        reply = parties.client.api("POST", "/collections", parties.draft(**changes))
        assert reply.status_code == 422, reply.text
        return reply.json()["detail"]

    other = {"name": "Pets", "identity": "c" * 64}
    assert "must be the key of this collector" in refusal(collector=other)
    assert "must be a multiple of 3 in mode osh" in refusal(fakes=31)
    assert "it needs spot_checks" in refusal(mode="peos-dgk", spot_checks=0)
    named = [{**party, "name": "Pets"} if i == 1 else party for i, party in enumerate(parties.terms()["shufflers"])]
    assert "have the same operator; say so in together" in refusal(shufflers=named)


def test_forecasts_count_the_noise_of_fakes(parties: Shuffling) -> None:
    def error(fakes: int) -> float:
        reply = parties.client.api("POST", "/plan", parties.draft(fakes=fakes) | {"respondents": 200})
        return reply.json()["questions"][0]["standard_error"]

    grr = GRR(size=3, epsilon="4")
    assert error(0) == pytest.approx(grr.standard_error(200))
    assert error(300) == pytest.approx(with_fakes(grr, 300).standard_error(200))
    assert error(300) > 1.5 * error(0)


def test_where_roles_are_together_nothing_is_claimed_beyond_the_local_epsilon(parties: Shuffling) -> None:
    mine = parties.publish(parties.draft(together=[["collector", "shuffler_1"]]))
    claim = parties.client.answers(mine)["shuffle"]
    assert claim["epsilon"] == {"collector": "4", "others": "4", "local": "4"} and not claim["roles_apart"]
    (person,) = parties.answer(mine, ["cat"])
    assert person.ledger().total == 4


@pytest.mark.slow
def test_letters_may_be_long_and_must_be_signed_by_a_shuffler_of_the_session(parties: Shuffling) -> None:
    mine = parties.publish(parties.draft(maximum=200_000))
    record = parties.collector.shuffle.desk.party.sessions()[-1]
    place, body = place_of(record.session, OUTPUT, 2, COLLECTOR, 2), bytes(56 * 100_000)

    def post(identity: Identity, sent: bytes = body) -> int:
        signed = letter(place, body, identity, rows=100_000)
        return parties.client.http.post(f"/c/{mine}/session/messages", content=signed.head + sent).status_code

    own = parties.shufflers[1].driver.store.identity
    assert post(parties.shufflers[0].driver.store.identity) == 403
    assert post(own, bytes(len(body) - 1)) == 400
    assert post(own, body[:-1] + b"x") == 403
    assert [post(own), post(own)] == [204, 204]
    # Another body for the same place: both are signed, and that is the end of the session.
    body = bytes([1]) * len(body)
    assert post(own, body) == 409
    status = parties.wait_for(mine, "ABORTED")
    assert status["blames"] == "shuffler_2" and "equivocation" in status["note"]
    assert post(own, body) == 410
    # Nobody else may send that much.
    refused = parties.client.send(mine, body)
    assert refused.status_code == 413


def test_collections_that_are_not_shuffled_have_no_sessions(parties: Shuffling) -> None:
    mine = parties.client.publish(draft())
    assert parties.client.api("GET", f"/collections/{mine}/session").status_code == 409
    for name in ("session", "transcript"):
        assert parties.client.http.get(f"/c/{mine}/{name}.json").status_code == 404
    assert "shuffle" not in parties.client.answers(mine)
    assert run(parties, "collection", "open-session", mine).exit_code == 2


def test_on_a_folder_the_identity_is_shown_and_sessions_are_left_to_servers(tmp_path: Path) -> None:
    words = ["shuffle", "identity", "--data", str(tmp_path)]
    first, second = (CliRunner().invoke(cli, words).stdout for _ in range(2))
    assert first == second and len(first.strip()) == 64
