"""The collector over real HTTP: what clients and operators see, and what strangers get."""

import json
import logging
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from tests.service.memory import MemoryStore
from tests.service.plain import SHUFFLE, Client, binary, draft, http_client, plain_app, serving, wait_for, wide_draft
from tests.service.served import first_token, free_port
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.cli import cli
from tacit.collector.server import make_app
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.device.numbers.canonical import digest
from tacit.errors import StorageFull, StorageUnavailable
from tacit.hosting.limits import Limits, RateLimit
from tacit.hosting.problems import KINDS, TYPE_PREFIX
from tacit.wire.batch import Batch, Block, batch_to_json, encode_batch, new_batch_id

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def client():
    with serving(plain_app()) as made:
        yield made


def problem(response: httpx.Response) -> str:
    """The kind of a problem document, which must be a whole one."""
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    kind = body["type"].removeprefix(TYPE_PREFIX)
    assert KINDS[kind] == (response.status_code, body["title"])
    assert body["status"] == response.status_code
    assert body["detail"]
    return kind


def test_every_kind_of_problem_is_in_the_specification():
    text = (ROOT / "spec" / "errors.md").read_text(encoding="utf-8")
    listed = re.findall(r"^### ([a-z_]+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(KINDS)


def test_publish_upload_and_answer(client: Client):
    mine = client.publish(draft(title="Whole way"))
    document = client.http.get(f"/c/{mine}/document.json")
    assert digest(document.json()) == mine
    assert "immutable" in document.headers["cache-control"]
    sent = client.send(mine, binary(mine, bytes([0] * 6 + [1] * 3 + [2])))
    assert (sent.status_code, sent.json()) == (201, {"accepted": 10, "rejected": [], "duplicate": False})
    answers = client.answers(mine)
    assert [row["raw"]["estimate"] for row in answers["questions"][0]["rows"]] == pytest.approx([0.6, 0.3, 0.1])
    status = client.status(mine)
    assert list(status.pop("days").values()) == [10]
    assert status == {
        "id": mine, "state": "published", "damaged": False, "reports": 10, "rejected": {}, "minimum_cohort": 5,
        "plan": None,
    }  # fmt: skip


def test_the_three_forms_of_a_batch(client: Client):
    mine = client.publish(draft(title="Forms"))
    batch = Batch(mine, new_batch_id(), (Block(0, 2, bytes([0, 1])),))
    twin = json.dumps(batch_to_json(batch, (1,))).encode()
    assert client.send(mine, encode_batch(batch)).status_code == 201
    for media_type in ("application/json", "text/plain;charset=UTF-8", "Application/JSON; charset=utf-8"):
        again = client.send(mine, twin, media_type)
        assert (again.status_code, again.json()["duplicate"]) == (200, True)
    assert client.status(mine)["reports"] == 2


def test_bad_uploads_are_problems(client: Client):
    mine = client.publish(draft(title="Bad"))
    good = binary(mine, bytes([1]))
    assert problem(client.send(mine, b"garbage")) == "malformed"
    assert problem(client.send(mine, good[:-1])) == "width"
    assert problem(client.send(mine, binary("00" * 32, bytes([1])))) == "wrong_collection"
    assert problem(client.send(mine, b"[" * 50_000, "application/json")) == "malformed"
    assert problem(client.send(mine, good, "application/xml")) == "unsupported_media_type"
    assert problem(client.send(mine, good, Content_Encoding="gzip")) == "unsupported_media_type"
    assert problem(client.send("00" * 32, good)) == "not_found"
    assert problem(client.send("draft-" + "0" * 32, good)) == "not_found"
    assert problem(client.http.put(f"/c/{mine}/reports", content=good)) == "method_not_allowed"
    client.api("POST", f"/collections/{mine}/close")
    assert problem(client.send(mine, good)) == "closed"
    counts = client.status(mine)["rejected"]
    assert counts == {"malformed": 2, "width": 1, "wrong_collection": 1, "closed": 1}
    metrics = client.http.get("/metrics").text
    assert 'tacit_rejected_total{reason="closed"} 1' in metrics


def test_reports_of_a_shuffled_collection_do_not_come_from_devices():
    # The real catalogue: the mechanism without noise fits no word.
    with serving(make_app(MemoryStore())) as client:
        identity = client.api("GET", "/shuffle/identity").json()["identity"]
        terms = SHUFFLE | {"collector": {"name": "Pets", "identity": identity}}
        mine = client.publish(draft(title="Shuffled", shuffle=terms))
        document = client.http.get(f"/c/{mine}/document.json").json()
        assert (digest(document), document["version"], document["shuffle"]) == (mine, 2, terms)
        good = binary(mine, bytes([1]))
        # The first upload finds the collection on disk, the second one in memory, where the short way begins.
        for _ in range(2):
            assert problem(client.send(mine, good)) == "shuffled"
        assert client.status(mine)["rejected"] == {"shuffled": 2}
        assert 'tacit_rejected_total{reason="shuffled"} 2' in client.http.get("/metrics").text


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/c/../api/v1/tokens",
        "/c/%2e%2e/reports",
        "/c//reports",
        "/api/v1/collections/..%2f..",
        "/c/\u00e9/reports",
    ],
)
def test_odd_paths_are_nothing_special(client: Client, path: str):
    for method in ("GET", "POST"):
        response = client.http.request(method, path, content=b"x")
        assert response.status_code in (401, 404, 405), (method, path, response.status_code)


def test_bad_api_calls_are_problems(client: Client):
    assert problem(client.api("POST", "/collections", {"title": "x"})) == "invalid_spec"
    assert problem(client.api("POST", "/collections", [1])) == "invalid_spec"
    assert problem(client.api("POST", "/tokens", [1])) == "malformed"
    assert problem(client.api("GET", "/collections/" + "0" * 64)) == "not_found"
    assert problem(client.api("GET", "/collections/" + "0" * 64 + "/answers")) == "not_found"
    assert problem(client.api("PATCH", "/collections")) == "method_not_allowed"
    headers = {"Authorization": f"Bearer {client.token}"}
    raw = client.http.post("/api/v1/collections", content=b"{", headers=headers | {"Content-Type": "application/json"})
    assert problem(raw) == "malformed"
    form = client.http.post("/api/v1/collections", content=b"a=b", headers=headers | {"Content-Type": "text/plain"})
    assert problem(form) == "unsupported_media_type"
    mine = client.publish(draft(title="Levels"))
    for level in ("2", "0", "x", "nan"):
        assert problem(client.api("GET", f"/collections/{mine}/answers?level={level}")) == "invalid_spec"
    pending = client.api("POST", "/collections", draft()).json()["id"]
    assert problem(client.api("GET", f"/collections/{pending}/answers")) == "conflict"


def test_exports(client: Client):
    mine = client.publish(draft(title="Export"))
    client.send(mine, binary(mine, bytes([0] * 10)))
    text = client.api("GET", f"/collections/{mine}/answers.csv")
    assert text.headers["content-type"] == "text/csv; charset=utf-8"
    assert len(text.text.splitlines()) == 4
    assert client.api("GET", f"/collections/{mine}/answers.parquet").content[:4] == b"PAR1"


def test_only_the_origins_of_a_document_are_let_in(client: Client):
    mine = client.publish(draft(title="Origins", origins=["https://good.example"]))
    for origin, allowed in (("https://good.example", "https://good.example"), ("https://bad.example", None)):
        ask = client.http.options(f"/c/{mine}/reports", headers={"Origin": origin})
        assert ask.headers.get("access-control-allow-origin") == allowed
        read = client.http.get(f"/c/{mine}/document.json", headers={"Origin": origin})
        # A refusal can be read, so that a script learns why; the document cannot.
        assert (read.status_code, read.headers["access-control-allow-origin"]) == (
            (200, allowed) if allowed else (403, "*")
        )
        sent = client.send(mine, binary(mine, bytes([1])), Origin=origin)
        assert sent.headers.get("access-control-allow-origin") == allowed
    everyone = client.publish(draft(title="Everyone", origins=["*"]))
    refused = client.send(everyone, b"garbage", Origin="https://any.example")
    assert refused.headers["access-control-allow-origin"] == "*"


def test_pages_and_api_carry_security_headers(client: Client):
    for path in ("/healthz", "/api/v1/collections", "/nope", "/openapi.json"):
        headers = client.http.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_health_and_description(client: Client):
    assert client.http.get("/healthz").json() == {"status": "ok"}
    assert client.http.get("/readyz").json() == {"status": "ready"}
    description = client.http.get("/openapi.json").json()
    assert description["openapi"] == "3.1.0"
    assert "/c/{id}/reports" in description["paths"]
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(description)))
    assert references <= set(description["components"]["schemas"])


def test_too_much_is_413_and_counted():
    """At once, also where the piece that is too much is the last one: the server waits for no further piece.

    A body may take an hour here, so a server that did wait would keep the client past its own patience.
    """
    with serving(plain_app(limits=Limits(body_bytes=2000, body_seconds=3600, body_rate=0))) as client:
        mine = client.publish(draft())
        assert problem(client.send(mine, bytes(2001))) == "too_large"
        chunks = client.http.post(f"/c/{mine}/reports", content=iter([bytes(1500)] * 2),
                                  headers={"Content-Type": "application/json"})  # fmt: skip
        assert problem(chunks) == "too_large"
        assert client.status(mine)["rejected"] == {"too_large": 2}


def test_too_often_is_429_except_for_reporters():
    limits = Limits(requests_per_second=0.001, burst=3)
    with serving(plain_app(limits=limits)) as client:
        mine = client.publish(draft())
        statuses = [client.send(mine, binary(mine, bytes([1]))).status_code for _ in range(5)]
        assert statuses == [201, 201, 201, 429, 429]
        refused = client.send(mine, binary(mine, bytes([1])))
        assert problem(refused) == "rate_limited"
        assert refused.headers["retry-after"] == "1"
        token = client.api("POST", "/tokens", {"scope": "reporter", "collection": mine}).json()["token"]
        assert client.send(mine, binary(mine, bytes([1])), Authorization=f"Bearer {token}").status_code == 201


def test_addresses_are_forgotten_within_a_minute():
    now = [0.0]
    limit = RateLimit(Limits(requests_per_second=1, burst=2), lambda: now[0])
    assert [limit.allows("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert limit.allows("192.0.2.2")
    assert b"192.0.2" not in repr(vars(limit)).encode()
    now[0] = 1.0
    assert [limit.allows("192.0.2.1") for _ in range(2)] == [True, False]
    held = set(vars(limit)["_buckets"])
    now[0] = 61.0
    limit.allows("192.0.2.3")
    assert not held & set(vars(limit)["_buckets"])


def test_slow_bodies_time_out():
    with serving(plain_app(limits=Limits(body_seconds=0.3))) as client:
        mine = client.publish(draft())
        host, port = client.http.base_url.host, client.http.base_url.port
        with socket.create_connection((host, port), timeout=PATIENT_SECONDS) as connection:
            lines = [
                f"POST /c/{mine}/reports HTTP/1.1",
                "Host: x",
                "Content-Type: application/json",
                "Content-Length: 9",
            ]
            connection.sendall("\r\n".join([*lines, "", "["]).encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 408")
        # A machine may be too busy to send even a whole body in that time; then another one is sent.
        wait_until(lambda: client.send(mine, binary(mine, bytes([1]))).status_code == 201)


class FailingStore(MemoryStore):
    """A store whose disk is full, or gone."""

    failure: Exception | None = None

    def add_batches(self, batches):
        if self.failure is not None:
            raise self.failure
        return super().add_batches(batches)


def test_a_full_or_absent_disk_is_told_and_recovered_from():
    store = FailingStore()
    with serving(plain_app(store)) as client:
        mine = client.publish(draft())
        body = binary(mine, bytes([1]))
        store.failure = StorageFull("storage: full")
        full = client.send(mine, body)
        assert (problem(full), "retry-after" in full.headers) == ("storage_full", True)
        store.failure = StorageUnavailable("storage: away")
        assert problem(client.send(mine, body)) == "unavailable"
        store.failure = ZeroDivisionError("secret payload")
        assert problem(client.send(mine, body)) == "internal"
        store.failure = None
        assert client.send(mine, body).status_code == 201
        assert client.status(mine)["reports"] == 1


def test_nothing_of_a_report_is_logged(caplog: pytest.LogCaptureFixture):
    store = FailingStore()
    with caplog.at_level(logging.DEBUG), serving(plain_app(store)) as client:
        mine = client.publish(wide_draft(1 << 20))
        payload = (0xABCDE).to_bytes(4, "little")
        store.failure = ZeroDivisionError("secret payload")
        client.send(mine, binary(mine, payload, width=4), User_Agent="secret-agent")
        client.send(mine, b"secret payload", "application/json")
    own = [record.getMessage() for record in caplog.records if record.name.startswith(("tacit", "uvicorn"))]
    text = " ".join(own)
    assert "ZeroDivisionError" in text
    for trace in ("secret", payload.hex(), "127.0.0.1:", mine):
        assert trace not in text


def test_answers_survive_a_restart(tmp_path: Path):
    mine, body = "", b""
    for start in range(2):
        with serving(plain_app(SqliteStore(tmp_path))) as client:
            mine = client.publish(draft()) if start == 0 else mine
            body = body or binary(mine, bytes([0] * 6))
            assert client.send(mine, body).status_code == (201 if start == 0 else 200)
            assert client.send(mine, binary(mine, bytes([1] * 3))).status_code == 201
            assert client.answers(mine)["n"] == 9 + 3 * start
            assert client.status(mine)["reports"] == 9 + 3 * start


def test_unique_values_from_many_clients_are_each_counted_once(tmp_path: Path):
    size, each = 4096, 32
    with serving(plain_app(SqliteStore(tmp_path), Limits(requests_per_second=0))) as client:
        mine = client.publish(wide_draft(size, minimum_cohort=1))
        values = np.random.default_rng(2).permutation(size).astype("<u2").reshape(-1, each)
        bodies = [binary(mine, row.tobytes(), width=2) for row in values]
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda body: client.send(mine, body).status_code, bodies + bodies[::3]))
        assert statuses.count(201) == len(bodies)
        rows = client.answers(mine)["questions"][0]["rows"]
        assert {round(row["raw"]["estimate"] * size) for row in rows} == {1}
        assert client.status(mine)["rejected"] == {"duplicate": each * len(bodies[::3])}


def test_a_mechanism_of_tests_cannot_be_published_by_a_real_collector():
    document = plain_app().collector.planner.plan(draft())[0].to_json()
    with serving(make_app(MemoryStore())) as client:
        made = client.publish(draft())
        assert client.http.get(f"/c/{made}/document.json").json()["mechanism"]["kind"] == "grr"
        assert problem(client.api("POST", "/collections", document)) == "invalid_spec"


def test_serve_prints_its_token_once_and_stops_in_order(tmp_path: Path):
    port = free_port()
    command = [sys.executable, "-m", "tacit.cli", "serve", "--data", str(tmp_path / "d"), "--port", str(port)]
    outputs, mine = [], ""
    for start in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            with http_client(f"http://127.0.0.1:{port}") as http:
                wait_for(http)
                if start == 0:
                    token = first_token(process.stdout)
                    client = Client(http, token)
                    mine = client.publish(draft())
                    assert client.send(mine, binary(mine, bytes([0] * 7))).status_code == 201
                else:
                    assert Client(http, token).status(mine)["reports"] == 7
        finally:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=PATIENT_SECONDS)
        outputs.append(out)
        assert process.returncode in (0, -signal.SIGTERM)
        assert all(json.loads(line)["level"] == "info" for line in err.splitlines())
    assert "tct_" not in "".join(outputs)


def test_collections_from_the_command_line(tmp_path: Path, client: Client):
    file = tmp_path / "draft.yaml"
    file.write_text(
        'title: From YAML\nepsilon: 1.5\nquestions:\n- {name: pet, text: "Pet?", domain: {kind: booleans}}\n'
    )
    folder = tmp_path / "data"
    SqliteStore(folder).close()
    environment = {"TACIT_SERVER": str(client.http.base_url), "TACIT_TOKEN": client.token}

    def run(*words: str) -> str:
        result = CliRunner().invoke(cli, ["collection", *words], env=environment)
        assert result.exit_code == 0, result.output
        return result.stdout

    for place in ([], ["--data", str(folder)]):
        made = run("create", str(file), *place).strip()
        mine = run("publish", made, *place).strip()
        assert re.fullmatch("[0-9a-f]{64}", mine)
        assert mine in run("list", *place)
        assert json.loads(run("show", mine, *place))["document"]["epsilon"] == "1.5"
        assert json.loads(run("export", mine, *place))["status"] == "below_minimum_cohort"
        assert run("export", mine, "--format", "csv", *place).startswith("question,")
        assert "closed" in run("close", mine, *place)
    refused = CliRunner().invoke(cli, ["collection", "show", "0" * 64], env=environment)
    assert (refused.exit_code, "no such collection" in refused.output) == (2, True)


def test_a_backup_is_restored_whole(tmp_path: Path):
    with serving(plain_app(SqliteStore(tmp_path / "here"))) as client:
        mine = client.publish(draft())
        assert client.send(mine, binary(mine, bytes([0] * 6))).status_code == 201
        copy = str(tmp_path / "copy.sqlite")
        assert CliRunner().invoke(cli, ["backup", copy, "--data", str(tmp_path / "here")]).exit_code == 0
        assert client.send(mine, binary(mine, bytes([0] * 6))).status_code == 201
    assert CliRunner().invoke(cli, ["restore", copy, "--data", str(tmp_path / "there")]).exit_code == 0
    with serving(plain_app(SqliteStore(tmp_path / "there"))) as client:
        assert client.answers(mine)["n"] == 6
