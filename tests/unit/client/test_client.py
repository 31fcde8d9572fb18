"""The client without a network: coins, the ledger, addresses, and what a reply means."""

import json
import os
import re
import stat
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.client import AlreadyAnswered, Ledger, LedgerUnusable, Patience, Respondent
from tacit.client.ledger import HELD, PENDING, REFUSED, SENT, Kept, LedgerEntry
from tacit.client.respondent import _entry
from tacit.client.transport import Address, Outcome
from tacit.device.numbers.coins import Coins, ReplayCoins, ScriptedCoins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.wire.batch import MEDIA_TYPE, decode_batch
from tacit.wire.document import Collection

VECTORS = json.loads((Path(__file__).parents[3] / "spec" / "vectors" / "documents.json").read_text(encoding="utf-8"))
DOCUMENTS = {vector["name"]: Collection.from_json(vector["document"]) for vector in VECTORS["good"]}
BASE = "https://collector.example"


class SecureReplay(ReplayCoins):
    """Known coins that claim to be secure, so that the client can be held to the vectors."""

    secure = True


class Wire:
    """In place of a transport: notes every upload and answers from a script."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.script, self.uploads = list(outcomes), list[tuple[Address, bytes, str]]()
        self.media_types: list[str] = []

    def upload(self, address: Address, batch: bytes, invitation: str = "", *, media_type: str = MEDIA_TYPE) -> Outcome:
        self.uploads.append((address, batch, invitation))
        self.media_types.append(media_type)
        return self.script.pop(0) if self.script else Outcome("sent")


def respondent(store: Any = None, *outcomes: Outcome, coins: Coins | None = None) -> tuple[Respondent, Wire]:
    wire = Wire(*outcomes)
    return Respondent(store, coins=coins, transport=wire), wire  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("coins", [ReplayCoins(b"seed"), ScriptedCoins([1, 2, 3])])
def test_coins_that_can_be_repeated_are_refused(coins: Coins) -> None:
    with pytest.raises(InvalidSpec, match="not secure"):
        Respondent(coins=coins)


SHUFFLED = [vector for vector in VECTORS["good"] if vector["document"].get("shuffle")]
WINDOWED = [vector for vector in VECTORS["good"] if vector["document"].get("windows")]
# What needs an issuer to answer is in tests/service/test_tokens.py.
FRESH = [
    v for v in VECTORS["good"] if v["name"] not in ("memoised", "tokens") and v not in SHUFFLED and v not in WINDOWED
]
WITH_ROWS = [vector for vector in FRESH if vector["document"]["rows"]]


@pytest.mark.parametrize("vector", [v for v in FRESH if v not in WITH_ROWS], ids=lambda v: v["name"])
def test_what_is_uploaded_is_the_published_batch(vector: dict[str, Any]) -> None:
    for case in vector["cases"]:
        client, wire = respondent(coins=SecureReplay(bytes.fromhex(case["seed"])))
        client.answer(DOCUMENTS[vector["name"]], case["answers"], collector=BASE)
        ((address, batch, _),) = wire.uploads
        assert address.reports == f"{BASE}/c/{vector['id']}/reports"
        assert wire.media_types == [MEDIA_TYPE]
        # All but the batch id, which is always drawn afresh.
        assert (batch[:36] + batch[52:]).hex() == case["batch"][:72] + case["batch"][104:]


@pytest.mark.parametrize("vector", WITH_ROWS, ids=lambda v: v["name"])
def test_where_a_row_goes_along_the_published_twin_is_uploaded(vector: dict[str, Any]) -> None:
    for case in vector["cases"]:
        client, wire = respondent(coins=SecureReplay(bytes.fromhex(case["seed"])))
        receipt = client.answer(DOCUMENTS[vector["name"]], case["answers"], collector=BASE, row=case["row"])
        assert wire.media_types == ["application/json"]
        twin = json.loads(wire.uploads[0][1])
        assert twin == case["batch_json"] | {"batch": receipt.batch}
        assert list(twin["reports"][0]["row"]) == list(case["batch_json"]["reports"][0]["row"])


def test_a_row_is_kept_with_a_report_that_waits_and_sent_again_with_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    client, wire = respondent(path, Outcome("pending"))
    entry = client.prepare(DOCUMENTS["rows"], {"colour": "red"}, collector=BASE, row={"city": "Utrecht"})
    assert entry.row == {"amount": None, "items": None, "city": "Utrecht", "online": None, "day_1": None}
    assert client.release(entry.batch).state == "pending"
    again, later = respondent(path)
    assert [receipt.state for receipt in again.flush()] == ["sent"]
    assert later.uploads == wire.uploads
    assert later.media_types == ["application/json"]


@pytest.mark.parametrize(
    ("name", "row"),
    [("rows", {"price": 1}), ("rows", {"items": 1.5}), ("rows", "row"), ("one question", {"city": "Utrecht"})],
)
def test_a_wrong_row_is_refused_before_anything_is_kept(name: str, row: Any) -> None:
    ledger = Ledger()
    client, wire = respondent(ledger)
    with pytest.raises(InvalidValue, match=r"^row") as caught:
        client.answer(DOCUMENTS[name], {"colour": "red"}, collector=BASE, row=row)
    assert "Utrecht" not in str(caught.value)
    assert ledger.read().entries == []
    assert wire.uploads == []


@pytest.mark.parametrize("vector", SHUFFLED, ids=lambda v: v["name"])
def test_a_ledger_charges_the_local_epsilon_whatever_is_claimed_of_shufflers(vector: dict[str, Any]) -> None:
    collection, ledger = DOCUMENTS[vector["name"]], Ledger()
    report = collection.mechanism.privatize_one(0, ReplayCoins(b"seed"))
    ledger.record(collection.id, lambda kept: _entry(collection, report, BASE, ""), plan=collection.plan_id)
    assert ledger.spending().total == collection.mechanism.budget.declared == 1


def test_a_ledger_from_before_there_were_rows_is_read_and_sent(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    client, wire = respondent(path, Outcome("pending"))
    client.answer(DOCUMENTS["one question"], {"colour": "red"}, collector=BASE)
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["entries"][0].pop("row") is None
    path.write_text(json.dumps(kept), encoding="utf-8")
    again, later = respondent(path)
    assert [receipt.state for receipt in again.flush()] == ["sent"]
    assert (later.uploads, later.media_types) == (wire.uploads, [MEDIA_TYPE])


def test_a_second_answer_is_refused_with_the_first_receipt_and_draws_nothing() -> None:
    ledger = Ledger()
    client, wire = respondent(ledger)
    first = client.answer(DOCUMENTS["one question"], {"colour": "red"}, collector=BASE)
    before = ledger.read()
    with pytest.raises(AlreadyAnswered, match="answered already") as caught:
        client.answer(DOCUMENTS["one question"], {"colour": "café"}, collector=BASE)
    assert caught.value.receipt == first
    assert ledger.read() == before
    assert len(wire.uploads) == 1


def test_the_ledger_file_keeps_noise_alone_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    client, _ = respondent(path)
    client.answer(DOCUMENTS["free text"], {"word": "outspoken"}, collector=BASE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "outspoken" not in path.read_text(encoding="utf-8")
    assert sorted(os.listdir(tmp_path)) == ["ledger.json", "ledger.json.lock"]
    (entry,) = json.loads(path.read_text(encoding="utf-8"))["entries"]
    assert set(entry) == set(LedgerEntry.__dataclass_fields__)


def test_a_pending_report_survives_a_restart_and_is_sent_with_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    client, wire = respondent(path, Outcome("pending"))
    receipt = client.answer(DOCUMENTS["all of two"], {"colour": "red", "smoker": 1}, collector=BASE, invitation="abc")
    assert receipt.state == "pending"
    again, later = respondent(path)
    (flushed,) = again.flush()
    assert (flushed.state, flushed.batch) == ("sent", receipt.batch)
    assert later.uploads == wire.uploads
    assert "abc" not in path.read_text(encoding="utf-8")
    assert again.flush() == []


def test_a_collector_that_asked_for_time_is_left_alone(tmp_path: Path) -> None:
    client, wire = respondent(tmp_path / "ledger.json", Outcome("pending", not_before=1 << 40))
    client.answer(DOCUMENTS["one question"], {"colour": "red"}, collector=BASE)
    assert [receipt.state for receipt in client.flush()] == ["pending"]
    assert len(wire.uploads) == 1


def test_a_report_that_is_held_stays_here_and_costs_nothing_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    client, wire = respondent(path, Outcome("pending"))
    entry = client.prepare(DOCUMENTS["one question"], {"colour": "red"}, collector=BASE)
    assert entry.state == entry.receipt.state == "held"
    assert client.flush() == []
    spending = client.ledger()
    assert [(row.epsilon, row.state) for row in spending.collections] == [(1, "held")]
    assert spending.total == 0
    with pytest.raises(AlreadyAnswered) as caught:
        client.answer(DOCUMENTS["one question"], {"colour": "café"}, collector=BASE)
    assert caught.value.receipt == entry.receipt
    assert wire.uploads == []
    again, later = respondent(path, Outcome("pending"), Outcome("sent"))
    assert again.release(entry.batch).state == "pending"
    assert again.ledger().total == 1
    assert [receipt.state for receipt in again.flush()] == ["sent"]
    assert {batch[-1:].hex() for _, batch, _ in later.uploads} == {entry.report}
    for batch in (entry.batch, "00"):
        with pytest.raises(InvalidSpec, match="held"):
            again.release(batch)


def test_a_held_repetition_does_not_hide_what_was_spent() -> None:
    client, _ = respondent()
    client.answer(DOCUMENTS["memoised"], {"colour": "red"}, collector=BASE)
    client.prepare(DOCUMENTS["memoised"], {"colour": "red"}, collector=BASE)
    assert [(row.epsilon, row.state) for row in client.ledger().collections] == [(1, "sent")]
    assert client.ledger().total == 1


def test_both_clients_have_the_same_words_for_what_becomes_of_a_report() -> None:
    root = Path(__file__).parents[3] / "js"
    said = re.search(r"State = ([^;]+);", (root / "types" / "client.d.ts").read_text(encoding="utf-8"))
    assert said is not None
    assert re.findall(r'"(\w+)"', said[1]) == [HELD, PENDING, SENT, REFUSED]


def test_spending_is_listed_per_collection_and_in_all() -> None:
    client, _ = respondent(None, Outcome("sent"), Outcome("refused", "closed"))
    client.answer(DOCUMENTS["one question"], {"colour": "red"}, collector=BASE)
    client.answer(DOCUMENTS["a number"], {"age": 40}, collector=BASE)
    spending = client.ledger()
    assert [(row.epsilon, row.state) for row in spending.collections] == [(1, "sent"), (Fraction(1, 2), "refused")]
    assert spending.total == Fraction(3, 2)


def test_a_memoised_mechanism_repeats_itself_and_costs_epsilon_per_different_value(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    memoised = DOCUMENTS["memoised"]
    reports: list[bytes] = []
    for colour in ("red", "red", "café", "red"):
        client, wire = respondent(path)
        assert client.answer(memoised, {"colour": colour}, collector=BASE).state == "sent"
        reports.append(decode_batch(wire.uploads[0][1], [1]).blocks[0].payload)
    assert reports[0] == reports[1] == reports[3]
    assert client.ledger().total == 2
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert len(kept["secret"]) == 64
    assert len({entry["batch"] for entry in kept["entries"]}) == 4


def test_a_wrong_answer_is_refused_before_anything_is_kept() -> None:
    ledger = Ledger()
    client, wire = respondent(ledger)
    with pytest.raises(InvalidValue):
        client.answer(DOCUMENTS["a number"], {"age": 121}, collector=BASE)
    assert ledger.read().entries == []
    assert wire.uploads == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 2}', b'{"version": 1, "entries": [{}]}', b"\xff"])
def test_a_damaged_ledger_is_neither_used_nor_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.json"
    path.write_bytes(content)
    client, wire = respondent(path)
    with pytest.raises(LedgerUnusable, match=r"ledger\.json"):
        client.answer(DOCUMENTS["one question"], {"colour": "red"}, collector=BASE)
    assert path.read_bytes() == content
    assert wire.uploads == []


def test_many_threads_with_one_ledger_answer_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    outcomes: list[str] = []

    def answer() -> None:
        client, _ = respondent(path)
        try:
            outcomes.append(client.answer(DOCUMENTS["one question"], {"colour": "red"}, collector=BASE).state)
        except AlreadyAnswered:
            outcomes.append("refused")

    threads = [threading.Thread(target=answer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 7 + ["sent"]
    assert len(Ledger(path).read().entries) == 1


class Watched(Ledger):
    """A ledger that notes when the second thread has read it, or waits for the first to finish its change."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        self.reached = threading.Event()
        watched, mutex = self, self._mutex

        class Mutex:
            def __enter__(self) -> None:
                if threading.current_thread() is not threading.main_thread():
                    watched.reached.set()
                mutex.acquire()

            def __exit__(self, *_: object) -> None:
                mutex.release()

        self._mutex: Any = Mutex()

    def read(self) -> Kept:
        kept = super().read()
        if threading.current_thread() is not threading.main_thread():
            self.reached.set()
        return kept


@pytest.mark.parametrize("name", [None, "ledger.json"])
def test_a_second_thread_waits_until_the_first_has_recorded_its_report(tmp_path: Path, name: str | None) -> None:
    """Without a lock the second thread reads before the first has written, whatever the scheduler does."""
    ledger = Watched(None if name is None else tmp_path / name)
    refused: list[AlreadyAnswered] = []

    def second() -> None:
        try:
            ledger.record(ID, lambda _: entry("b"))
        except AlreadyAnswered as error:
            refused.append(error)

    thread = threading.Thread(target=second)

    def first(_: Kept) -> LedgerEntry:
        thread.start()
        assert ledger.reached.wait(300)
        return entry("a")

    ledger.record(ID, first)
    thread.join()
    assert [kept.batch for kept in ledger.read().entries] == ["a"]
    assert [error.receipt.batch for error in refused] == ["a"]


def entry(batch: str, collection: str = "0" * 64, plan: str = "") -> LedgerEntry:
    return LedgerEntry(collection, BASE, {"en": "x"}, "1", batch, "00", plan=plan)


def test_neither_a_collection_nor_a_plan_is_answered_twice() -> None:
    ledger = Ledger()
    ledger.record("a" * 64, lambda _: entry("1", "a" * 64, "b" * 64), plan="b" * 64)
    for collection, plan in (("a" * 64, "c" * 64), ("d" * 64, "b" * 64), ("b" * 64, ""), ("e" * 64, "a" * 64)):
        with pytest.raises(AlreadyAnswered):
            ledger.record(collection, lambda _: entry("2"), plan=plan)
    ledger.record("d" * 64, lambda _: entry("2", "d" * 64), plan="e" * 64)


ID = "0" * 64


@pytest.mark.parametrize(
    ("url", "base"),
    [
        (f"https://a.example/c/{ID}", "https://a.example"),
        (f"http://127.0.0.1:8000/c/{ID}/document.json", "http://127.0.0.1:8000"),
        (f"https://a.example/team/c/{ID}/?lang=en#x", "https://a.example/team"),
    ],
)
def test_an_address_names_a_collector_and_a_digest(url: str, base: str) -> None:
    assert Address.parse(url) == Address(base, ID)


@pytest.mark.parametrize(
    "url", ["", ID, f"/c/{ID}", f"ftp://a.example/c/{ID}", f"file:///c/{ID}", "https://a.example/c/1", "https://a/d"]
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(InvalidSpec, match="address"):
        Address.parse(url)


def test_waits_double_up_to_the_longest_and_differ() -> None:
    patience = Patience(first_seconds=1, longest_seconds=8)
    for attempt, longest in enumerate([1, 2, 4, 8, 8, 8]):
        waits = [patience.wait_seconds(attempt) for _ in range(50)]
        assert all(longest / 2 <= wait <= longest for wait in waits)
        # Fifty waits among a thousand are all alike with probability below 10^-140.
        assert len(set(waits)) > 1
