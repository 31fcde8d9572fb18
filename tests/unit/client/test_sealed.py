"""Reports of shuffled collections without a network: verified sessions, sealed bytes, retries, and proofs of slots."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.client import AlreadyAnswered, Ledger, Respondent, Unreachable
from tacit.client.transport import Reply
from tacit.device.numbers.coins import ReplayCoins, SystemCoins
from tacit.errors import CertificateRefused, InvalidSpec, MissingExtra, ProtocolViolation, TacitError
from tacit.shuffle.crypto.bhttp import BinaryRequest
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.ohttp import Gateway
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.relayed import ACCEPTED, NO_RESPONSE, answer_message, unpack
from tacit.shuffle.protocol.roster import Roster
from tacit.shuffle.protocol.sealing import SLOT_BYTES, open_part, word_info
from tacit.shuffle.protocol.session import ShuffleSession, SignedSession
from tacit.shuffle.protocol.status import signed_status
from tacit.shuffle.protocol.words import decode_word
from tacit.wire.batch import invitation_hash
from tacit.wire.document import Collection
from tacit.wire.sessions import make_session

VECTORS = json.loads((Path(__file__).parents[3] / "spec" / "vectors" / "documents.json").read_text(encoding="utf-8"))
DOCUMENTS = {vector["name"]: vector["document"] for vector in VECTORS["good"]}
COINS = ReplayCoins(b"parties of sealed reports")
IDENTITIES = [Identity.draw(COINS) for _ in range(4)]
KEYS = [HpkeKey.draw(COINS) for _ in range(4)]
BASE = "https://collector.example"


def collection(name: str = "shuffled by sharing", **changes: Any) -> Collection:
    document = json.loads(json.dumps(DOCUMENTS[name]))
    terms = document["shuffle"]
    for party, identity in zip([terms["collector"], *terms["shufflers"]], IDENTITIES, strict=False):
        party["identity"] = identity.public.hex()
    return Collection.from_json(document | {"shuffle": terms | {"fakes": 0} | changes})


def open_session(asked: Collection, **changes: Any) -> ShuffleSession:
    assert asked.shuffle is not None
    keys = [key.public.hex() for key in KEYS[: len(asked.shuffle.shufflers) + 1]]
    return replace(make_session(asked, url=BASE, seal_keys=keys, closes=2**40), **changes)


def publish(session: ShuffleSession) -> dict[str, Any]:
    parties = enumerate(IDENTITIES[: session.shuffler_count + 1])
    return SignedSession(
        session=session, signatures={party_name(i): session.sign(each) for i, each in parties}
    ).to_json()


class Network:
    """In place of a transport: pages by address, and everything that was posted."""

    def __init__(self, pages: dict[str, Any] | None = None) -> None:
        self.pages, self.posted = pages or {}, list[tuple[str, bytes, str]]()
        self.answer: Callable[[str, bytes], Reply] = lambda url, body: Reply(202)

    def fetch_json(self, url: str, what: str, most: int = 0) -> Any:
        if url not in self.pages:
            raise Unreachable(f"{what} cannot be fetched (status 404)")
        return self.pages[url]

    def fetch(self, address: Any) -> Any:
        return self.fetch_json(address.document, "the document")

    def post(self, url: str, body: bytes, media_type: str) -> Reply:
        self.posted.append((url, body, media_type))
        return self.answer(url, body)


def network_of(asked: Collection, session: ShuffleSession) -> Network:
    address = f"{BASE}/c/{asked.id}"
    return Network({f"{address}/document.json": asked.to_json(), f"{address}/session.json": publish(session)})


def respondent(network: Network, ledger: Ledger | None = None) -> Respondent:
    return Respondent(ledger, transport=network)  # pyright: ignore[reportArgumentType]


ASKED = collection()
SESSION = open_session(ASKED)


def word_of(session: ShuffleSession, bodies: list[bytes]) -> int:
    """What the parties together find in the parts of one report."""
    shares = [
        open_part(session, i, KEYS[i], body[:SLOT_BYTES], body[SLOT_BYTES : SLOT_BYTES + 104])
        for i, body in enumerate(bodies, 1)
    ]
    sealed = LAYOUTS["osh"].join(shares)
    return int.from_bytes(KEYS[0].open(sealed, info=word_info(session)), "little")


def test_the_report_in_the_ledger_is_what_is_sealed_and_every_attempt_sends_the_same_bytes() -> None:
    network, ledger = network_of(ASKED, SESSION), Ledger()
    network.answer = lambda url, body: Reply(0 if "second" in url else 202)
    person = respondent(network, ledger)
    receipt = person.answer(ASKED, {"colour": "red"}, collector=BASE, invitation="inv_x")
    assert (receipt.state, receipt.session, len(receipt.slot)) == ("pending", SESSION.id, 32)
    assert receipt.reason == "shuffler_2: no reply"
    (entry,) = ledger.read().entries
    urls, bodies, kinds = zip(*network.posted, strict=True)
    assert list(urls) == [f"{party.url}/s/{SESSION.id}/uploads" for party in SESSION.shufflers]
    assert set(kinds) == {"application/octet-stream"}
    assert decode_word(ASKED.mechanism, word_of(SESSION, list(bodies))).hex() == entry.report
    assert {body[:SLOT_BYTES].hex() for body in bodies} == {receipt.slot}
    assert all(body.endswith(invitation_hash("inv_x")) for body in bodies)
    # The same bytes again, and nothing is drawn or charged a second time.
    network.answer = lambda url, body: Reply(202)
    before = network.posted[:]
    assert [again.state for again in person.flush()] == ["sent"]
    assert network.posted[len(before) :] == before
    assert person.ledger().total == ASKED.mechanism.budget.declared


def test_a_held_report_is_sealed_and_not_sent_before_it_is_released() -> None:
    network = network_of(ASKED, SESSION)
    person = respondent(network)
    entry = person.prepare(ASKED, {"colour": "red"}, collector=BASE)
    assert (entry.state, network.posted, person.flush()) == ("held", [], [])
    assert person.release(entry.batch).state == "sent" and len(network.posted) == 3


def refusals() -> dict[str, tuple[Any, type[TacitError]]]:
    wrong = publish(SESSION)
    wrong["signatures"][1]["signature"] = wrong["signatures"][2]["signature"]
    small = replace(SESSION, certificate={**SESSION.certificate, "epsilon": "0.001"})
    return {
        "no session": (None, Unreachable),
        "wrong signature": (wrong, ProtocolViolation),
        "smaller claim": (publish(small), CertificateRefused),
        "another collection": (publish(replace(SESSION, collection="0" * 64)), ProtocolViolation),
        "closed": (publish(replace(SESSION, closes=1)), Unreachable),
    }


@pytest.mark.parametrize("name", refusals())
def test_a_session_that_is_not_as_it_must_be_is_refused_before_anything_is_drawn(name: str) -> None:
    published, error = refusals()[name]
    network, ledger = network_of(ASKED, SESSION), Ledger()
    network.pages[f"{BASE}/c/{ASKED.id}/session.json"] = published
    if published is None:
        del network.pages[f"{BASE}/c/{ASKED.id}/session.json"]
    for act in (respondent(network, ledger).answer, respondent(network, ledger).prepare):
        with pytest.raises(error):
            act(ASKED, {"colour": "red"}, collector=BASE)
    assert (ledger.read().entries, network.posted) == ([], [])


class RelayInFront:
    """What a relay and the shufflers behind it answer; `seen` has (number, request) of all that reached a shuffler."""

    def __init__(self, pages: dict[str, Any] | None = None) -> None:
        self.pages, self.seen, self.dead = pages or {}, list[tuple[int, BinaryRequest]](), set[int]()

    def __call__(self, url: str, body: bytes) -> Reply:
        if not url.endswith("/r"):
            return Reply(200, self._pass(int(url[-1]), body))
        parts = enumerate(unpack(body), start=1)
        answers = [NO_RESPONSE if i in self.dead else self._pass(i, part) for i, part in parts]
        return Reply(503 if self.dead else 200, b"".join(answers))

    def _pass(self, number: int, body: bytes) -> bytes:
        inner, answer = Gateway(KEYS[number].public[0], KEYS[number]).open(body)
        asked = BinaryRequest.from_bytes(inner)
        self.seen.append((number, asked))
        page = self.pages.get(f"{number} {asked.path}")
        found = answer_message(404 if page is None else 200, json.dumps(page).encode())
        return answer.seal(ACCEPTED if asked.method == "POST" else found, SystemCoins())


RELAYED = collection(relay={"name": "Relay", "url": "https://relay.example"})
RELAYED_SESSION = open_session(RELAYED)


def test_all_parts_go_through_the_relay_in_one_request_and_only_shufflers_can_answer() -> None:
    network, relay = network_of(RELAYED, RELAYED_SESSION), RelayInFront()
    network.answer = relay
    receipt = respondent(network).answer(RELAYED, {"colour": "red"}, collector=BASE)
    assert receipt.state == "sent"
    assert [url for url, _, _ in network.posted] == ["https://relay.example/r"]
    assert [number for number, _ in relay.seen] == [1, 2, 3]
    assert {request.path for _, request in relay.seen} == {f"/s/{RELAYED_SESSION.id}/uploads"}
    assert decode_word(RELAYED.mechanism, word_of(RELAYED_SESSION, [request.content for _, request in relay.seen]))
    # Whatever is answered, the relay sees the same size.
    respondent(network).answer(RELAYED, {"colour": "blue"}, collector=BASE)
    assert len({len(body) for _, body, _ in network.posted}) == 1
    # A relay that answers by itself is not believed.
    for reply in (Reply(200, b"x" * 3 * 96), Reply(200, b"<html>")):
        network.answer = lambda url, body, reply=reply: reply
        forged = respondent(network).answer(RELAYED, {"colour": "red"}, collector=BASE)
        assert (forged.state, forged.reason[:55]) == (
            "pending",
            "shuffler_1: the relay did not bring an answer of the sh",
        )


def test_a_shuffler_that_was_away_gets_the_same_bytes_and_so_do_the_others() -> None:
    network, relay = network_of(RELAYED, RELAYED_SESSION), RelayInFront()
    network.answer, relay.dead = relay, {2}
    person = respondent(network)
    receipt = person.answer(RELAYED, {"colour": "red"}, collector=BASE)
    assert (receipt.state, receipt.reason) == (
        "pending",
        "shuffler_2: the relay did not bring an answer of the shuffler",
    )
    relay.dead = set()
    assert [each.state for each in person.flush()] == ["sent"]
    contents = {number: {request.content for i, request in relay.seen if i == number} for number in (1, 2, 3)}
    assert [len(contents[number]) for number in (1, 2, 3)] == [1, 1, 1]
    assert [number for number, _ in relay.seen] == [1, 3, 1, 2, 3]


def test_questions_go_through_the_relay_too_and_look_all_the_same() -> None:
    network, relay, ledger = network_of(RELAYED, RELAYED_SESSION), RelayInFront(), Ledger()
    network.answer = relay
    person = respondent(network, ledger)
    receipt = person.answer(RELAYED, {"colour": "red"}, collector=BASE)
    network.posted.clear()
    assert person.check(receipt).state == "waiting"
    roster = Roster.of([bytes.fromhex(receipt.slot), bytes(16), bytes([255] * 16)])
    proof = roster.proof(bytes.fromhex(receipt.slot)) | {"root": roster.root, "n": 3}
    relay.pages[f"2 /s/{RELAYED_SESSION.id}/proof/{receipt.slot}"] = proof
    assert person.check(receipt).state == "shown"
    # A relay cannot answer by itself, but whoever holds the seal keys could: what counts is the identity.
    relay.pages |= {f"{i} /s/{RELAYED_SESSION.id}/status": {"state": "ABORTED", "had_sent": False} for i in (1, 2, 3)}
    assert person.check(receipt).state == "shown"
    relay.pages |= {f"{i} /s/{RELAYED_SESSION.id}/status": status(RELAYED_SESSION, "ABORTED", i) for i in (1, 2)}
    assert person.check(receipt).state == "aborted"
    asked = {(request.method, request.path.split("/")[3]) for _, request in relay.seen[3:]}
    assert asked == {("GET", "status"), ("GET", "proof")}
    # Straight questions would have been looked up among the pages, and are not there.
    assert {url[:-1] for url, _, _ in network.posted} == {"https://relay.example/r/"}
    assert len({len(body) for _, body, _ in network.posted}) == 1
    # A ledger of an earlier release has no keys beside the parts: then those of the parts are used.
    (entry,) = ledger.read().entries
    assert entry.sealed is not None
    ledger.settle(entry, sealed={name: value for name, value in entry.sealed.items() if name != "keys"})
    assert person.check(receipt).state == "aborted"


def status(session: ShuffleSession, state: str, number: int, *, had_sent: bool = False) -> dict[str, Any]:
    """What a shuffler says of a session."""
    return signed_status(IDENTITIES[number], session.id, state, had_sent=had_sent)


def status_page(network: Network, session: ShuffleSession, state: str, *numbers: int, had_sent: bool = False) -> None:
    for number in numbers:
        page = f"{session.parties[number].url}/s/{session.id}/status"
        network.pages[page] = status(session, state, number, had_sent=had_sent)


def test_after_an_abort_the_same_report_is_sealed_for_the_next_session_and_only_then() -> None:
    network, ledger = network_of(ASKED, SESSION), Ledger()
    person = respondent(network, ledger)
    first = person.answer(ASKED, {"colour": "red"}, collector=BASE)
    following = open_session(ASKED, closes=2**41)
    network.pages[f"{BASE}/c/{ASKED.id}/session.json"] = publish(following)
    # The collector alone is not believed, nor with one shuffler: that may be the one it colludes with.
    assert person.flush() == []
    status_page(network, SESSION, "ABORTED", 1)
    status_page(network, SESSION, "ERASED", 2, 3)
    assert person.flush() == []
    # Nor a shuffler whose last rows had left it: the collector may have seen all reports before it gave up.
    status_page(network, SESSION, "ABORTED", 3, had_sent=True)
    assert person.flush() == []
    status_page(network, SESSION, "ABORTED", 3)
    (before,) = ledger.read().entries
    (receipt,) = person.flush()
    (after,) = ledger.read().entries
    assert (receipt.state, receipt.session) == ("sent", following.id)
    assert (after.report, after.batch) == (before.report, before.batch) and receipt.slot != first.slot
    bodies = [body for url, body, _ in network.posted if following.id in url]
    assert decode_word(ASKED.mechanism, word_of(following, bodies)).hex() == before.report
    assert person.ledger().total == ASKED.mechanism.budget.declared
    with pytest.raises(AlreadyAnswered):
        person.answer(ASKED, {"colour": "blue"}, collector=BASE)


def forged_statuses() -> dict[str, Callable[[int], Any]]:
    """What the operator of a collection could put in the place of what shufflers say, by their numbers."""
    other = replace(SESSION, closes=2**39)
    plain = {"session": SESSION.id, "state": "ABORTED", "had_sent": False}
    return {
        "no signature": lambda i: plain,
        "a signature of another type": lambda i: plain | {"signature": 5},
        "its own signature": lambda i: plain | {"signature": IDENTITIES[0].sign("status", plain)},
        "the signature of one shuffler for all": lambda i: status(SESSION, "ABORTED", 1),
        "another purpose": lambda i: plain | {"signature": IDENTITIES[i].sign("session", plain)},
        "another session": lambda i: status(other, "ABORTED", i) | {"session": SESSION.id},
        "another state": lambda i: status(SESSION, "ERASED", i) | {"state": "ABORTED"},
        "rows had been sent": lambda i: status(SESSION, "ABORTED", i, had_sent=True) | {"had_sent": False},
    }


@pytest.mark.parametrize("name", forged_statuses())
def test_an_abort_that_the_pinned_shufflers_did_not_sign_moves_no_report(name: str) -> None:
    network, ledger = network_of(ASKED, SESSION), Ledger()
    person = respondent(network, ledger)
    receipt = person.answer(ASKED, {"colour": "red"}, collector=BASE)
    network.pages[f"{BASE}/c/{ASKED.id}/session.json"] = publish(open_session(ASKED, closes=2**41))
    for number in (1, 2, 3):
        network.pages[f"{SESSION.parties[number].url}/s/{SESSION.id}/status"] = forged_statuses()[name](number)
    assert person.flush() == [] and person.check(receipt).state == "waiting"
    (entry,) = ledger.read().entries
    assert entry.sealed is not None and entry.sealed["session"] == SESSION.id
    # Without the document nobody's identity is known, and nothing is believed.
    status_page(network, SESSION, "ABORTED", 1, 2, 3)
    document = network.pages.pop(f"{BASE}/c/{ASKED.id}/document.json")
    assert person.flush() == [] and person.check(receipt).state == "waiting"
    network.pages[f"{BASE}/c/{ASKED.id}/document.json"] = document
    assert person.check(receipt).state == "aborted"


def test_a_slot_that_a_shuffler_shows_is_kept_until_the_transcript_is_published() -> None:
    network, ledger = network_of(ASKED, SESSION), Ledger()
    person = respondent(network, ledger)
    receipt = person.answer(ASKED, {"colour": "red"}, collector=BASE)
    assert person.check(receipt).state == "waiting"
    roster = Roster.of([bytes.fromhex(receipt.slot), bytes(16), bytes([255] * 16)])
    page = f"{SESSION.parties[2].url}/s/{SESSION.id}/proof/{receipt.slot}"
    good = roster.proof(bytes.fromhex(receipt.slot)) | {"root": roster.root, "n": 3}
    for bad in (good | {"root": "0" * 64}, good | {"path": ["zz"]}, good | {"slot": "0" * 32}, [], good | {"n": "3"}):
        network.pages[page] = bad
        assert person.check(receipt).state == "waiting"
    network.pages[page] = good
    shown = person.check(receipt)
    assert (shown.state, shown.respondents, shown.took_part) == ("shown", 3, False)
    del network.pages[page]
    assert person.check(receipt).state == "shown"
    # Once it is certain that a report took part it stays so, whoever cannot be reached: it is never sealed again.
    (entry,) = ledger.read().entries
    assert entry.sealed is not None and not entry.sealed["took_part"]
    ledger.settle(entry, sealed=entry.sealed | {"took_part": True})
    assert person.check(receipt).state == "shown"
    (entry,) = ledger.read().entries
    assert entry.sealed is not None and entry.sealed["took_part"]
    with pytest.raises(InvalidSpec, match="no report with this batch id was sealed"):
        person.check(replace(receipt, batch="0" * 32))
    address = f"{BASE}/c/{ASKED.id}/transcript.json?session={SESSION.id}"
    network.pages[address] = {"session": publish(SESSION), "transcript": {}}
    with pytest.raises((ProtocolViolation, InvalidSpec)):
        person.check(receipt)


def test_without_the_extra_nothing_is_drawn_and_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tacit.client.sealed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.x25519", None)
    for name in [name for name in sys.modules if name.startswith(("tacit.shuffle.crypto", "tacit.shuffle.protocol"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "tacit.wire.sessions")
    ledger = Ledger()
    with pytest.raises(MissingExtra, match=r"nothing was drawn: python -m pip install 'tacit\[shuffle\]'"):
        respondent(network_of(ASKED, SESSION), ledger).answer(ASKED, {"colour": "red"}, collector=BASE)
    assert ledger.read().entries == []


def test_a_plain_document_is_answered_without_numpy_and_cryptography() -> None:
    program = f"""
import json, sys
from tacit.client import Respondent
from tacit.client.transport import Outcome
from tacit.wire.document import Collection

class Wire:
    def upload(self, *given, **named):
        return Outcome("sent")

document = Collection.from_json(json.loads({json.dumps(json.dumps(DOCUMENTS["one question"]))}))
receipt = Respondent(transport=Wire()).answer(document, {{"colour": "red"}}, collector="{BASE}")
print(receipt.state, *sorted({{"numpy", "cryptography", "tacit.shuffle"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "sent\n"
