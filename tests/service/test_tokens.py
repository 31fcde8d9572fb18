"""Anonymous tokens: one person, one report, and nothing that is kept connects the two."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.service.plain import Client, binary, draft, serving

from tacit.cli import cli
from tacit.client import AlreadyAnswered, Ledger, Patience, Respondent, TokenRefused, Transport, Unreachable
from tacit.client.transport import Reply
from tacit.collector.http.app import App
from tacit.collector.http.tokens import COST
from tacit.collector.ports import CLOSED, DUPLICATE, SPENT, STORED, CollectionRecord, NewBatch, Store
from tacit.collector.server import make_app
from tacit.collector.store.sqlite.store import FILE, SqliteStore
from tacit.device.numbers.blind_rsa import blind, cover, finalize
from tacit.device.numbers.coins import SystemCoins
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.hosting.limits import Limits
from tacit.hosting.sqlite import open_reader
from tacit.shuffle.crypto.blind_signer import BlindSigner
from tacit.wire.document import Collection
from tacit.wire.tokens import AnonymousToken, token_message

Open = Callable[[], Store]
A = "a" * 64


@dataclass
class Survey:
    """A collection with tokens on a running collector."""

    app: App
    client: Client
    id: str

    @property
    def address(self) -> str:
        return f"{self.client.http.base_url}/c/{self.id}"

    @property
    def document(self) -> Collection:
        return Collection.from_json(self.client.http.get(f"/c/{self.id}/document.json").json())

    def invite(self, count: int = 1) -> list[str]:
        return self.client.api("POST", f"/collections/{self.id}/invitations", {"count": count}).json()["invitations"]

    def numbers(self) -> dict[str, int]:
        return self.client.api("GET", f"/collections/{self.id}/tokens").json()

    def ask(self, blinded: bytes, **headers: str) -> Any:
        return self.client.http.post(f"/c/{self.id}/tokens", json={"blinded": blinded.hex()}, headers=headers)

    def token(self, invitation: str) -> AnonymousToken:
        """A token, as a device gets one."""
        terms, nonce = self.document.tokens, SystemCoins().words(4)
        assert terms is not None
        blinding = blind(terms.public, token_message(self.id, nonce), SystemCoins())
        answer = bytes.fromhex(self.ask(blinding.blinded, **{"Tacit-Invitation": invitation}).json()["signature"])
        return AnonymousToken(nonce, finalize(terms.public, token_message(self.id, nonce), answer, blinding))

    def send(self, given: str, batch: bytes | None = None) -> Any:
        return self.client.send(self.id, binary(self.id, b"\x01", batch=batch), Tacit_Invitation=given)

    def kind(self, given: str) -> tuple[int, str]:
        refused = self.send(given)
        return refused.status_code, refused.json()["type"].removeprefix("urn:tacit:error:")


@pytest.fixture
def survey(tmp_path: Path) -> Iterator[Survey]:
    app = make_app(SqliteStore(tmp_path / "data"), Limits(requests_per_second=0))
    with serving(app) as client:
        yield Survey(app, client, client.publish(draft(tokens=True, minimum_cohort=1)))


class Losing(Transport):
    """A network that loses replies after the request was answered."""

    def __init__(self, lost: int, instead: Reply = Reply(0)) -> None:  # noqa: B008 - a frozen value
        super().__init__(Patience(attempts=1), pause=lambda _: None)
        self._lost, self._instead = lost, instead

    def _once(self, request: Any, most: int) -> Any:
        reply = super()._once(request, most)
        if request.data is not None and self._lost:
            self._lost -= 1
            return self._instead
        return reply


def test_a_document_pins_the_key_and_older_documents_have_their_old_ids(survey: Survey) -> None:
    document = survey.document
    assert (document.version, document.invitations, document.id) == (3, True, survey.id)
    assert document.tokens is not None and document.tokens.public.modulus.bit_length() == 2048
    # Two collections of one draft have two keys, so that a token of one is none of the other.
    other = survey.client.publish(draft(tokens=True))
    assert other != survey.id
    assert survey.client.publish(draft(retention_days=77)) == survey.client.publish(draft(retention_days=77))


def test_a_report_comes_with_a_token_and_the_ledger_forgets_it(survey: Survey, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json")
    respondent = Respondent(ledger)
    (invitation,) = survey.invite()
    assert respondent.answer(survey.address, {"pet": "dog"}, invitation=invitation).state == "sent"
    assert survey.numbers() == {"issued": 1, "used": 1}
    kept = ledger.read()
    assert (kept.tokens, kept.entries[0].invitation) == ({}, "")
    with pytest.raises(AlreadyAnswered):
        respondent.answer(survey.address, {"pet": "dog"}, invitation=survey.invite()[0])
    assert survey.numbers() == {"issued": 1, "used": 1} and survey.client.status(survey.id)["reports"] == 1


def test_an_interrupted_device_asks_again_for_the_same_token(survey: Survey, tmp_path: Path) -> None:
    ledger, (invitation,) = tmp_path / "ledger.json", survey.invite()
    with pytest.raises(Unreachable, match="nothing was drawn"):
        Respondent(ledger, transport=Losing(1)).answer(survey.address, {"pet": "cat"}, invitation=invitation)
    assert not Ledger(ledger).read().entries
    # Signed, and killed before the report: the token is in the ledger, and needs no invitation any more.
    Respondent(ledger).redeem(survey.address, invitation)
    (kept,) = Ledger(ledger).read().tokens.values()
    assert set(kept) == {"token"}
    # The reply to the report is lost: the same bytes again count once.
    respondent = Respondent(ledger, transport=Losing(1))
    assert respondent.answer(survey.address, {"pet": "cat"}).state == "pending"
    assert [receipt.state for receipt in respondent.flush()] == ["sent"]
    assert survey.numbers() == {"issued": 1, "used": 1} and survey.client.status(survey.id)["reports"] == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(429, b'{"title": "Too many requests"}'),  # The collector is busy.
        Reply(403, b"<html>"),  # Some other server answers.
    ],
    ids=["busy", "stranger"],
)
def test_being_told_to_come_later_loses_no_token_that_was_signed(survey: Survey, tmp_path: Path, reply: Reply) -> None:
    ledger, (invitation,) = tmp_path / "ledger.json", survey.invite()
    for lost in (Losing(1), Losing(1, reply)):
        with pytest.raises(Unreachable, match="same invitation"):
            Respondent(ledger, transport=lost).redeem(survey.address, invitation)
    Respondent(ledger).redeem(survey.address, invitation)
    assert survey.numbers() == {"issued": 1, "used": 0}


def test_nobody_reports_without_a_token_of_this_collection(survey: Survey) -> None:
    first, second = survey.invite(2)
    token = survey.token(first)
    assert survey.kind("") == survey.kind(second) == (403, "token")
    forged = AnonymousToken(token.nonce, bytes([token.signature[0] ^ 1]) + token.signature[1:])
    other = AnonymousToken(bytes(32), token.signature)
    assert survey.kind(forged.text) == survey.kind(other.text) == (403, "token")
    neighbour = Survey(survey.app, survey.client, survey.client.publish(draft(tokens=True)))
    assert neighbour.kind(token.text) == (403, "token")
    batch = bytes(range(16))
    assert [survey.send(token.text, batch).status_code for _ in range(2)] == [201, 200]
    assert survey.kind(token.text) == (403, "token")
    assert survey.client.status(survey.id)["reports"] == 1
    survey.app.collector.flush_rejections()
    assert survey.client.status(survey.id)["rejected"] == {"token": 5, "duplicate": 1}


def test_an_invitation_is_redeemed_for_one_message(survey: Survey) -> None:
    (invitation,), terms = survey.invite(), survey.document.tokens
    assert terms is not None
    first, second = (blind(terms.public, b"x", SystemCoins()).blinded for _ in range(2))
    head = {"Tacit-Invitation": invitation}
    replies = [survey.ask(message, **head) for message in (first, first, second)]
    assert [reply.status_code for reply in replies] == [201, 200, 403]
    assert replies[0].json() == replies[1].json()
    assert survey.ask(first).status_code == survey.ask(first, **{"Tacit-Invitation": "inv_guess"}).status_code == 403
    assert survey.ask(b"\xff" * 256, **head).status_code == survey.ask(b"\1", **head).status_code == 400
    # Whoever may report without a limit may have signatures for those whom it vouches for.
    made = survey.client.api("POST", "/tokens", {"scope": "reporter", "collection": survey.id}).json()["token"]
    assert survey.ask(second, Authorization=f"Bearer {made}").status_code == 201
    assert survey.ask(second, Authorization="Bearer tct_wrong").status_code == 401
    assert survey.client.http.post(f"/c/{survey.id}/tokens", content=b"[").status_code == 400
    assert survey.client.http.options(f"/c/{survey.id}/tokens").status_code == 204


def test_asking_again_and_again_is_limited(tmp_path: Path) -> None:
    """A signature costs far more than a report; whoever holds an operator's token may ask for many."""
    app = make_app(SqliteStore(tmp_path / "data"), Limits(requests_per_second=1e-6, burst=2 * COST + 1))
    with serving(app) as client:
        survey = Survey(app, client, client.publish(draft(tokens=True)))
        (invitation,) = survey.invite()
        assert survey.document.tokens is not None
        blinded = blind(survey.document.tokens.public, b"m", SystemCoins()).blinded
        asked = [survey.ask(blinded, **{"Tacit-Invitation": invitation}).status_code for _ in range(3)]
        assert asked == [201, 200, 429]
        assert survey.ask(blinded, Authorization=f"Bearer {client.token}").status_code == 201


def test_a_closed_collection_signs_nothing_and_has_no_key(survey: Survey) -> None:
    first, second = survey.invite(2)
    survey.token(first)
    survey.client.api("POST", f"/collections/{survey.id}/close")
    with pytest.raises(TokenRefused, match="takes no more"):
        Respondent().redeem(survey.address, second)
    assert survey.app.collector.store.issuing.key(survey.id) is None


def test_an_issuer_that_keeps_everything_links_nothing(survey: Survey, tmp_path: Path) -> None:
    """For every request and every token there is exactly one blinding that makes a pair of them: none is likelier."""
    seen: list[bytes] = []
    secret = survey.app.collector.store.issuing.key(survey.id)
    assert secret is not None
    tokens: list[AnonymousToken] = []
    for invitation in survey.invite(3):
        ledger = Ledger()
        respondent = Respondent(ledger, transport=_Seeing(seen))
        respondent.redeem(survey.address, invitation)
        token = AnonymousToken.parse(ledger.read().tokens[survey.id]["token"])
        assert token is not None
        tokens.append(token)
        assert respondent.answer(survey.address, {"pet": "cat"}).state == "sent"
    signer = BlindSigner.load(secret)
    key = signer.public
    for blinded in seen:
        for token in tokens:
            opened = pow(int.from_bytes(token.signature, "big"), key.exponent, key.modulus)
            ratio = int.from_bytes(blinded, "big") * pow(opened, -1, key.modulus) % key.modulus
            factor = int.from_bytes(signer.sign(ratio.to_bytes(key.width, "big")), "big")
            assert gcd(factor, key.modulus) == 1
            assert cover(opened, factor, key.exponent, key.modulus) == int.from_bytes(blinded, "big")
    _share_nothing(tmp_path / "data" / FILE)


class _Seeing(Transport):
    """What the issuer sees."""

    def __init__(self, seen: list[bytes]) -> None:
        super().__init__()
        self._seen = seen

    def post(self, url: str, body: bytes, media_type: str, headers: Any = None) -> Any:
        self._seen.append(bytes.fromhex(json.loads(body)["blinded"]))
        return super().post(url, body, media_type, headers)


def _share_nothing(file: Path) -> None:
    """No value that was kept at issuing is kept with reports, and neither has a time or an order."""
    db = open_reader(file, None)
    at_issue = {value for row in db.run("SELECT blinded, invitation FROM issued") for value in row}
    with_reports = {row[0] for table in ("used", "batches") for row in db.run(f"SELECT * FROM {table}")}
    assert len(db.run("SELECT hash FROM used")) == 3 and len(at_issue) == 6
    assert not at_issue & with_reports
    # WITHOUT ROWID: rows stand in the order of their hashes, and nothing tells which came first.
    for table, columns in (("issued", "collection blinded invitation"), ("used", "collection hash")):
        (made,) = db.run("SELECT sql FROM sqlite_schema WHERE name = ?", table)[0]
        assert "WITHOUT ROWID" in made
        assert " ".join(row[1] for row in db.run(f"PRAGMA table_info({table})")) == columns
    db.close()


def test_two_collectors_on_one_database_take_a_token_once(open_store: Open) -> None:
    stores = [open_store(), open_store()]
    stores[0].add_collection(CollectionRecord(A, "published", b"{}"))
    spent = [bytes([i]) * 32 for i in range(8)]

    def send(name: int) -> list[str]:
        batches = [NewBatch(A, bytes([name, i]) * 8, b"x", 1, {}, None, token) for i, token in enumerate(spent)]
        return list(stores[name % 2].add_batches(batches))

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(send, range(4)))
    for i in range(len(spent)):
        assert sorted(row[i] for row in outcomes) == sorted([STORED, SPENT, SPENT, SPENT])
    assert stores[0].stored_reports(A) == len(spent) and stores[1].issuing.numbers(A).used == len(spent)
    # Twice in one group, and the same batch again.
    one, other = (
        NewBatch(A, b"1" * 16, b"x", 1, {}, None, b"t" * 32),
        NewBatch(A, b"2" * 16, b"x", 1, {}, None, b"t" * 32),
    )
    assert stores[0].add_batches([one, other, one]) == [STORED, SPENT, DUPLICATE]
    assert stores[1].add_batches([other, one]) == [SPENT, DUPLICATE]


def test_an_invitation_is_redeemed_once_on_every_database(open_store: Open) -> None:
    store = open_store()
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    store.issuing.add_key(A, b"secret")
    store.add_invitations(A, [b"i" * 32])
    ask = store.issuing.issue
    assert ask(A, b"m" * 32, b"i" * 32) == STORED and ask(A, b"m" * 32, b"i" * 32) == DUPLICATE
    assert ask(A, b"n" * 32, b"i" * 32) == ask(A, b"m" * 32, b"j" * 32) == SPENT
    assert ask(A, b"o" * 32, b"") == STORED and store.issuing.numbers(A).issued == 2
    # An invitation that was redeemed sends no report by itself any more.
    assert store.add_batches([NewBatch(A, b"1" * 16, b"x", 1, {}, b"i" * 32)]) == [SPENT]
    store.close_collection(A)
    assert (
        store.issuing.key(A) is None and ask(A, b"p" * 32, b"") == CLOSED and ask(A, b"m" * 32, b"i" * 32) == DUPLICATE
    )
    store.drop_reports(A)
    assert store.issuing.numbers(A).issued == store.issuing.numbers(A).used == 0


def test_a_refused_token_is_not_used_up(open_store: Open) -> None:
    store = open_store()
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    assert store.add_batches([NewBatch(A, b"1" * 16, b"x", 1, {}, b"unknown" * 4, b"t" * 32)]) == [SPENT]
    assert store.add_batches([NewBatch(A, b"2" * 16, b"x", 1, {}, None, b"t" * 32)]) == [STORED]


def test_tokens_go_with_a_backup(open_store: Open, tmp_path: Path, make_store: Callable[[str], Store]) -> None:
    store = open_store()
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    store.issuing.add_key(A, b"secret")
    store.issuing.issue(A, b"m" * 32, b"")
    store.add_batches([NewBatch(A, b"1" * 16, b"x", 1, {}, None, b"t" * 32)])
    store.backup(str(tmp_path / "copy" / FILE))
    copy = SqliteStore(tmp_path / "copy")
    assert copy.issuing.key(A) == b"secret" and copy.issuing.issue(A, b"m" * 32, b"") == DUPLICATE
    assert copy.add_batches([NewBatch(A, b"2" * 16, b"x", 1, {}, None, b"t" * 32)]) == [SPENT]
    copy.close()


def test_drafts_and_documents_with_tokens_that_cannot_be(client: Client) -> None:
    assert client.api("POST", "/collections", draft(tokens=1)).status_code == 422
    windows = {"every": "day", "first": "2030-01-01", "count": 3, "per": 1}
    assert client.api("POST", "/collections", draft(tokens=True, windows=windows)).status_code == 422
    plain = client.publish(draft())
    assert client.api("GET", f"/collections/{plain}/tokens").status_code == 409
    assert client.http.post(f"/c/{plain}/tokens", json={"blinded": "00" * 256}).status_code == 409
    with pytest.raises(InvalidSpec, match="without tokens"):
        Respondent().redeem(f"{client.http.base_url}/c/{plain}", "inv_x")


def test_an_issuer_that_signs_with_another_key_is_found_out(survey: Survey) -> None:
    other = BlindSigner.draw()
    survey.app.collector.issuing.sign = lambda active, blinded, *_, **__: (  # type: ignore[method-assign]
        other.sign(bytes.fromhex(blinded)).hex() if int(blinded, 16) < other.public.modulus else "00" * 256,
        False,
    )
    with pytest.raises(ProtocolViolation, match="no signature"):
        Respondent().answer(survey.address, {"pet": "cat"}, invitation=survey.invite()[0])


def test_the_command_line_publishes_invites_and_counts(tmp_path: Path) -> None:
    run = CliRunner().invoke
    file, data = tmp_path / "draft.json", ["--data", str(tmp_path / "data")]
    SqliteStore(tmp_path / "data").close()
    file.write_text(json.dumps(draft()), encoding="utf-8")
    id = run(cli, ["collection", "publish", str(file), "--tokens", *data]).output.strip()
    made = run(cli, ["collection", "invite", id, "--count", "3", *data]).output.split()
    assert len(made) == 3 and all(one.startswith("inv_") for one in made)
    assert run(cli, ["collection", "tokens", id, *data]).output == "0 tokens were signed, 0 came with reports\n"
