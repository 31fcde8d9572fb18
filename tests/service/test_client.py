"""The client against a small HTTP server that speaks the protocol, and misbehaves on demand."""

import json
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from typing import Any

import pytest
from tests.service.memory import MemoryStore
from tests.service.waiting import PATIENT_SECONDS

from tacit.client import AlreadyAnswered, Ledger, Patience, Respondent, Transport, Unreachable
from tacit.collector.collections.publish import create_draft, publish
from tacit.collector.http.app import App
from tacit.collector.server import running
from tacit.collector.service import Collector
from tacit.errors import InvalidSpec
from tacit.wire.batch import MEDIA_TYPE, decode_batch
from tacit.wire.document import Collection

VECTORS = json.loads((Path(__file__).parents[2] / "spec" / "vectors" / "documents.json").read_text(encoding="utf-8"))
DOCUMENT = VECTORS["good"][0]["document"]
ID = VECTORS["good"][0]["id"]
FOREIGN = "f" * 64
SOLD = next(vector for vector in VECTORS["good"] if vector["name"] == "rows")


@dataclass
class Script:
    """What the server has seen, and what it will do next: a status, "drop", "truncate", "page" or "redirect"."""

    documents: dict[str, bytes]
    steps: list[Any] = field(default_factory=list[Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    uploads: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])
    batches: set[bytes] = field(default_factory=set[bytes])
    waits: list[float] = field(default_factory=list[float])
    url: str = ""

    def respondent(self, store: Any = None, attempts: int = 4) -> Respondent:
        patience = Patience(attempts=attempts, timeout_seconds=PATIENT_SECONDS)
        return Respondent(store, transport=Transport(patience, pause=self.waits.append))


def handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (script.headers | (headers or {})).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            step = script.steps.pop(0) if script.steps else 200
            document = script.documents.get(self.path.split("/")[2])
            if step != 200:
                self.reply(step, b"{}")
            elif document is None:
                self.reply(404, b'{"title": "not found"}')
            else:
                self.reply(200, document)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            script.uploads.append((dict(self.headers), body))
            step = script.steps.pop(0) if script.steps else 201
            if step == "drop_before":
                self.close_connection = True
                self.connection.close()
                return
            if step in (201, "drop", "truncate"):
                self.store(body, step)
            elif step == "page":
                self.reply(200, b"<h1>Please log in</h1>")
            elif step == "redirect":
                self.reply(303, b"", {"Location": f"{script.url}/c/{ID}/document.json"})
            elif step == "rejected":
                self.reply(201, b'{"accepted": 0, "rejected": [{"index": 0, "reason": "range"}], "duplicate": false}')
            else:
                self.reply(step, b'{"type": "about:closed", "title": "closed"}')

        def store(self, body: bytes, step: Any) -> None:
            batch = body[36:52]
            duplicate = batch in script.batches
            script.batches.add(batch)
            receipt = json.dumps({"accepted": 1, "rejected": [], "duplicate": duplicate}).encode()
            if step == 201:
                self.reply(200 if duplicate else 201, receipt)
            elif step == "truncate":
                self.send_response(201)
                self.send_header("Content-Length", str(len(receipt) + 10))
                self.end_headers()
                self.wfile.write(receipt)
            # Otherwise the batch is stored and the connection ends without a word.

    return Handler


@pytest.fixture
def script() -> Generator[Script]:
    documents = {ID: json.dumps(DOCUMENT).encode(), FOREIGN: json.dumps(DOCUMENT).encode(), "0" * 64: b"<html>"}
    script = Script(documents | {SOLD["id"]: json.dumps(SOLD["document"]).encode()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(script)) as server:
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield script
        server.shutdown()
        thread.join()


def page(script: Script) -> str:
    return f"{script.url}/c/{ID}"


def test_an_answer_arrives_once_as_a_binary_batch(script: Script) -> None:
    receipt = script.respondent().answer(page(script), {"colour": "red"})
    assert (receipt.state, receipt.collection, receipt.epsilon) == ("sent", ID, "1")
    ((headers, body),) = script.uploads
    assert headers["Content-Type"] == MEDIA_TYPE
    assert "Cookie" not in headers
    batch = decode_batch(body, [1])
    assert (batch.collection, batch.batch.hex(), batch.count) == (ID, receipt.batch, 1)


def test_an_answer_with_a_row_arrives_as_the_json_twin_the_same_at_every_attempt(script: Script) -> None:
    script.steps = [200, 503, "drop", 201]
    row = {"city": "caf\u00e9", "amount": 0.1}
    receipt = script.respondent().answer(f"{script.url}/c/{SOLD['id']}", {"colour": "red"}, row=row)
    assert receipt.state == "sent"
    assert {headers["Content-Type"] for headers, _ in script.uploads} == {"application/json"}
    ((body,),) = [{body for _, body in script.uploads}]
    twin = json.loads(body)
    assert (twin["collection"], twin["batch"]) == (SOLD["id"], receipt.batch)
    assert twin["reports"][0]["row"] == {
        "amount": 0.1,
        "items": None,
        "city": "caf\u00e9",
        "online": None,
        "day_1": None,
    }


def test_every_retry_sends_the_same_bytes_and_counts_once(script: Script) -> None:
    script.steps = [200, 503, "drop", "truncate", 201]
    receipt = script.respondent().answer(page(script), {"colour": "red"})
    assert receipt.state == "sent"
    assert len(script.uploads) == 4
    assert len({body for _, body in script.uploads}) == 1
    assert len(script.batches) == 1
    assert all(0.25 * 2**i <= wait <= 0.5 * 2**i for i, wait in enumerate(script.waits))


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 507])
def test_these_statuses_are_tried_again(script: Script, status: int) -> None:
    script.steps = [200, status]
    assert script.respondent().answer(page(script), {"colour": "red"}).state == "sent"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 415, 422])
def test_these_statuses_are_final(script: Script, status: int, tmp_path: Path) -> None:
    script.steps = [200, status]
    client = script.respondent(tmp_path / "ledger.json")
    receipt = client.answer(page(script), {"colour": "red"})
    assert (receipt.state, receipt.reason, len(script.uploads)) == ("refused", "closed", 1)
    assert client.flush() == []
    with pytest.raises(AlreadyAnswered):
        client.answer(page(script), {"colour": "red"})


def test_a_report_that_the_collector_cannot_use_is_refused(script: Script) -> None:
    script.steps = [200, "rejected"]
    receipt = script.respondent().answer(page(script), {"colour": "red"})
    assert (receipt.state, receipt.reason) == ("refused", "range")


def test_retry_after_is_honoured(script: Script) -> None:
    script.steps, script.headers = [200, 429], {"Retry-After": "17"}
    assert script.respondent().answer(page(script), {"colour": "red"}).state == "sent"
    assert script.waits == [17]


def test_a_long_retry_after_is_left_to_a_later_flush(script: Script, tmp_path: Path) -> None:
    script.steps, script.headers = [200, 503], {"Retry-After": "3600"}
    client = script.respondent(tmp_path / "ledger.json")
    assert client.answer(page(script), {"colour": "red"}).state == "pending"
    assert [receipt.state for receipt in client.flush()] == ["pending"]
    assert (len(script.uploads), script.waits) == (1, [])
    (entry,) = json.loads((tmp_path / "ledger.json").read_text(encoding="utf-8"))["entries"]
    assert time() + 3500 < entry["not_before"] < time() + 3700


@pytest.mark.parametrize("step", ["page", "redirect", "drop", "drop_before"])
def test_what_is_no_receipt_leaves_the_report_pending(script: Script, step: str, tmp_path: Path) -> None:
    script.steps = [200, *[step] * 4]
    receipt = script.respondent(tmp_path / "ledger.json").answer(page(script), {"colour": "red"})
    assert receipt.state == "pending"
    (flushed,) = script.respondent(tmp_path / "ledger.json").flush()
    assert (flushed.state, flushed.batch) == ("sent", receipt.batch)
    assert len({body for _, body in script.uploads}) == 1
    assert len(script.batches) == 1


def test_offline_answers_wait_until_the_collector_is_back(script: Script, tmp_path: Path) -> None:
    offline = script.respondent(tmp_path / "ledger.json", attempts=2)
    receipt = offline.answer(Collection.from_json(DOCUMENT), {"colour": "red"}, collector="http://127.0.0.1:9")
    assert receipt.state == "pending"
    assert offline.ledger().total == 1


def test_a_document_with_another_digest_is_not_answered(script: Script) -> None:
    client = script.respondent()
    with pytest.raises(InvalidSpec, match="do not answer"):
        client.answer(f"{script.url}/c/{FOREIGN}", {"colour": "red"})
    with pytest.raises(InvalidSpec):
        client.open(f"{script.url}/c/{'0' * 64}")
    assert script.uploads == []
    assert client.ledger().collections == ()


def test_a_document_that_is_not_there_is_said_to_be_so(script: Script) -> None:
    with pytest.raises(Unreachable, match="status 404"):
        script.respondent().open(f"{script.url}/c/{'1' * 64}")
    assert script.waits == []
    script.steps = [503, 200]
    assert script.respondent().open(page(script)).id == ID
    with pytest.raises(Unreachable, match="no reply"):
        script.respondent(attempts=1).open(f"http://127.0.0.1:9/c/{ID}")


COLOUR = {"kind": "categories", "name": "colour", "labels": ["red", "green"], "other": None}
QUESTIONS: list[dict[str, Any]] = [
    {"name": "colour", "text": {"en": "?"}, "domain": COLOUR},
    {"name": "smoker", "text": {"en": "?"}, "domain": {"kind": "booleans", "name": "smoker"}},
]
ROWS = {"table": "visits", "columns": [{"name": "city", "type": "text"}, {"name": "visits", "type": "integer"}]}


def assert_counted_once(draft: dict[str, Any], row: dict[str, Any] | None = None) -> None:
    """Three respondents, one of whom sends the report again, are three reports in a collector."""
    collector, ledger, transport = Collector(MemoryStore()), Ledger(), Transport(Patience(attempts=1))
    record = create_draft(collector.store, collector.planner, {"title": {"en": "?"}, "epsilon": "1"} | draft)
    id = publish(collector.store, collector.planner, record.id).id
    with running(App(collector, None, [])) as served:
        receipts = [
            Respondent(ledger if i == 0 else None, transport=transport).answer(
                f"{served.url}/c/{id}", {"colour": "red", "smoker": True}, row=row
            )
            for i in range(3)
        ]
        assert [receipt.state for receipt in receipts] == ["sent"] * 3, receipts
        # A device that never saw the acknowledgement sends the same bytes again.
        ledger.settle(ledger.read().entries[0], state="pending")
        assert [r.state for r in Respondent(ledger, transport=transport).flush()] == ["sent"]
        assert collector.store.stored_reports(id) == 3


@pytest.mark.parametrize("policy", ["single", "one_of", "all_of", "joint"])
def test_the_real_collector_takes_every_policy_and_counts_each_report_once(policy: str) -> None:
    assert_counted_once({"questions": QUESTIONS[: 1 if policy == "single" else 2], "policy": policy})


@pytest.mark.parametrize("questions", [1, 2])
@pytest.mark.parametrize("row", [None, {"city": "caf\u00e9", "visits": 3}], ids=["without", "with"])
def test_the_real_collector_takes_rows_and_counts_each_report_once(questions: int, row: dict[str, Any] | None) -> None:
    assert_counted_once({"questions": QUESTIONS[:questions], "rows": ROWS}, row)
