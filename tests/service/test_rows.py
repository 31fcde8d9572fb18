"""Reports with rows: read, judged one by one, stored once, and refused in words."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.service.conftest import Open
from tests.service.plain import Client, binary, draft, plain_app, serving, wide_draft
from tests.service.row_bodies import ARROW, publish_rows, row, sealed_values, stream, table, twin

from tacit.collector.ingest.uploads import Form
from tacit.collector.rows.columns import report_array
from tacit.collector.server import make_app
from tacit.collector.service import Collector
from tacit.collector.store.postgres.store import PostgresStore
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec
from tacit.hosting.limits import Limits
from tacit.wire.batch import new_batch_id
from tacit.wire.rows import Rows


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Client, Collector]]:
    app = plain_app(limits=Limits(requests_per_second=0))
    with serving(app) as made:
        yield made, app.collector


titles = iter(range(10**6))


def fresh(collector: Collector, **changes: Any) -> str:
    """A collection of its own."""
    return publish_rows(collector.store, **({"title": f"Visits {next(titles)}"} | changes))


def send_arrow(client: Client, collection: str, body: bytes, batch: bytes | None = None) -> Any:
    return client.send(collection, body, ARROW, Tacit_Batch=(batch or new_batch_id()).hex())


# Both forms, end to end.


def test_rows_of_both_forms_are_sealed_with_their_reports(running: tuple[Client, Collector]):
    client, collector = running
    mine = fresh(collector)
    assert client.send(mine, twin(mine, range(50), new_batch_id()), "application/json").json() == {
        "accepted": 50, "rejected": [], "duplicate": False,
    }  # fmt: skip
    assert client.send(mine, twin(mine, range(50, 60), new_batch_id()), "text/plain").status_code == 201
    reply = send_arrow(client, mine, stream(table(range(60, 500)), max_chunksize=100))
    assert (reply.status_code, reply.json()["accepted"]) == (201, 440)
    assert client.status(mine)["reports"] == 500
    assert sealed_values(collector, mine) == list(range(500))
    assert client.status(mine)["reports"] == 500, "sealing changes nothing about the number of rows"


def test_the_same_batch_counts_once_whatever_its_form(running: tuple[Client, Collector]):
    client, collector = running
    mine, name = fresh(collector), new_batch_id()
    bodies = [(stream(table(range(9))), ARROW), (twin(mine, range(9), name), "application/json")]
    statuses = [client.send(mine, *body, Tacit_Batch=name.hex()).status_code for body in bodies * 2]
    assert statuses == [201, 200, 200, 200]
    assert sealed_values(collector, mine) == list(range(9))
    assert [client.send(mine, *body, Tacit_Batch=name.hex()).json()["duplicate"] for body in bodies] == [True, True]
    assert client.status(mine)["rejected"] == {"duplicate": 45}


@pytest.mark.parametrize("form", [Form.JSON, Form.ARROW])
def test_another_batch_under_the_same_id_is_not_said_to_be_stored(running: tuple[Client, Collector], form: Form):
    client, collector = running
    mine, name = fresh(collector), new_batch_id()

    def send(values: range) -> Any:
        if form is Form.ARROW:
            return send_arrow(client, mine, stream(table(values)), name).json()
        return client.send(mine, twin(mine, values, name), "application/json").json()

    assert send(range(1)) == {"accepted": 1, "rejected": [], "duplicate": False}
    assert send(range(1, 3)) == {"accepted": 0, "rejected": [], "duplicate": True}
    assert sealed_values(collector, mine) == [0]


def test_batches_sent_by_many_at_once_count_once(running: tuple[Client, Collector]):
    client, collector = running
    mine = fresh(collector)
    batches = [(new_batch_id(), stream(table(range(i * 20, i * 20 + 20)))) for i in range(10)]
    statuses: list[int] = []

    def send() -> None:
        for name, body in batches:
            statuses.append(send_arrow(client, mine, body, name).status_code)
            collector.folder.fold_all(mine, 1)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 30 + [201] * 10
    assert sealed_values(collector, mine) == list(range(200))


def test_one_of_several_questions_keeps_its_member(running: tuple[Client, Collector]):
    client, collector = running
    domains = [{"kind": "integers", "low": 0, "high": high} for high in (199, 99)]
    questions = [{"name": f"q{i}", "text": "?", "domain": domain} for i, domain in enumerate(domains)]
    mine = fresh(collector, questions=questions, policy="one_of")
    members = np.array([1, 0, 1, 0, 0], np.int64)
    columns = table(range(5), width=1).append_column("member", pa.array(members))
    assert send_arrow(client, mine, stream(columns)).json()["accepted"] == 5
    report = {"member": 1, "report": "07", "row": row(7)}
    body = json.dumps({"collection": mine, "batch": new_batch_id().hex(), "reports": [report]}).encode()
    assert client.send(mine, body, "application/json").status_code == 201
    # Whether the two uploads are sealed together or one after the other depends on how busy the machine is.
    loaded = [segment.load() for segment in collector.segments(mine)]
    rows = [
        (int(report["member"]), int(report["payload"][0]), visits)
        for columns, reports in loaded
        for report, visits in zip(reports, columns["visits"].to_pylist(), strict=True)
    ]
    assert sorted(rows) == [(0, 1, 1000), (0, 3, 3000), (0, 4, 4000), (1, 0, 0), (1, 2, 2000), (1, 7, 7000)]
    missing = send_arrow(client, mine, stream(table(range(5), width=1)))
    assert (missing.status_code, missing.json()["type"]) == (400, "urn:tacit:error:malformed")
    for bad in ([2, 0, 0, 0, 0], [-1, 0, 0, 0, 0], [None, 0, 0, 0, 0]):
        wrong = table(range(5), width=1).append_column("member", pa.array(bad, pa.int64()))
        assert send_arrow(client, mine, stream(wrong)).status_code == 400


@pytest.mark.parametrize("form", [Form.JSON, Form.ARROW])
@pytest.mark.slow_cases("postgres-Form.JSON", "sqlite-Form.ARROW", "postgres-Form.ARROW")
def test_a_report_with_a_row_spends_its_invitation(open_store: Open, form: Form):
    app = plain_app(open_store())
    with serving(app) as client:
        mine = fresh(app.collector, invitations=True)
        invitation = client.api("POST", f"/collections/{mine}/invitations", {"count": 1}).json()["invitations"][0]

        def send(values: range, name: bytes) -> Any:
            head = {"Tacit_Invitation": invitation, "Tacit_Batch": name.hex()}
            if form is Form.ARROW:
                return client.send(mine, stream(table(values)), ARROW, **head)
            return client.send(mine, twin(mine, values, name), "application/json", **head)

        assert send(range(2), new_batch_id()).json()["type"] == "urn:tacit:error:invitation"
        name = new_batch_id()
        assert [send(range(1), name).status_code, send(range(1), name).status_code] == [201, 200]
        assert send(range(1, 2), new_batch_id()).status_code == 403
        assert sealed_values(app.collector, mine) == [0]


def test_stores_take_rows_alike_and_count_refusals_with_the_batch(open_store: Open):
    app = plain_app(open_store())
    with serving(app) as client:
        mine = fresh(app.collector)
        columns = table(range(100)).set_column(1, "hours", pa.array([float("nan")] * 3 + [1.5] * 97))
        body, name = stream(columns), new_batch_id()
        for accepted in (97, 0, 0):
            reply = send_arrow(client, mine, body, name).json()
            assert (reply["accepted"], reply["duplicate"]) == (accepted, not accepted)
            assert reply["rejected"] == [{"index": i, "reason": "row"} for i in range(3)]
        assert client.status(mine)["rejected"] == {"row": 3, "duplicate": 194}
        assert 'tacit_rejected_total{reason="row"} 9' in client.http.get("/metrics").text
        assert sum(segment.n for segment in app.collector.segments(mine)) == 97


# Collections that do not take this.


def test_collections_take_rows_or_do_without(running: tuple[Client, Collector]):
    client, collector = running
    mine, plain = fresh(collector), client.publish(wide_draft(1 << 18, title=f"Plain {next(titles)}"))
    refused = [
        client.send(mine, binary(mine, bytes(4), width=4)),
        client.send(plain, twin(plain, range(3), new_batch_id()), "application/json"),
        send_arrow(client, plain, stream(table(range(3)))),
        client.send(mine, stream(table(range(3))), ARROW),
        client.send(mine, stream(table(range(3))), ARROW, Tacit_Batch="XYZ"),
        client.send(mine, stream(table(range(3))), ARROW, Tacit_Batch="A" * 32),
    ]
    assert [reply.status_code for reply in refused] == [400] * 6
    assert {reply.json()["type"] for reply in refused} == {"urn:tacit:error:malformed"}
    assert client.status(mine)["rejected"] == {"malformed": 4}
    assert client.status(plain)["rejected"] == {"malformed": 2}
    assert client.status(mine)["reports"] == client.status(plain)["reports"] == 0
    wrong = client.send(mine, twin(plain, range(3), new_batch_id()), "application/json")
    assert wrong.json()["type"] == "urn:tacit:error:wrong_collection"


def test_a_database_without_a_folder_for_rows_says_so(postgres: Any):
    app = plain_app(PostgresStore(postgres.url))
    with serving(app) as client:
        mine = fresh(app.collector)
        reply = send_arrow(client, mine, stream(table(range(3))))
        assert (reply.status_code, "--segments" in reply.json()["detail"]) == (503, True)
        with pytest.raises(InvalidSpec, match="--segments"):
            app.collector.segments(mine)


@pytest.mark.parametrize("name", ["report", "member"])
def test_columns_do_not_take_the_names_of_an_upload(name: str):
    with pytest.raises(InvalidSpec, match=name):
        Rows.from_json({"table": "t", "columns": [{"name": name, "type": "text"}]})


@pytest.mark.parametrize("name", ["pg_class", "pg_", "select", "user", "order", "table", "between"])
def test_neither_tables_nor_columns_take_words_of_sql(name: str):
    fine = {"table": "pages", "columns": [{"name": "selected", "type": "text"}]}
    assert Rows.from_json(fine).to_json() == fine
    for bad in (fine | {"table": name}, fine | {"columns": [{"name": name, "type": "text"}]}):
        with pytest.raises(InvalidSpec, match=f"'{name}' means something in SQL"):
            Rows.from_json(bad)


def test_an_upload_without_one_good_row_stores_nothing_and_is_counted(running: tuple[Client, Collector]):
    client, collector = running
    mine = fresh(collector)
    bad = table(range(4)).set_column(1, "hours", pa.array([float("nan")] * 4))
    assert send_arrow(client, mine, stream(bad)).json()["accepted"] == 0
    body = json.dumps({"collection": mine, "batch": "0" * 32, "reports": [{"report": "00000000", "row": 1}]})
    assert client.send(mine, body.encode(), "application/json").json()["rejected"] == [{"index": 0, "reason": "row"}]
    assert client.status(mine)["rejected"] == {"row": 5}


def test_pages_of_other_origins_may_name_their_batch(running: tuple[Client, Collector]):
    client, collector = running
    mine = fresh(collector, origins=["https://example.org"])
    asked = client.http.options(f"/c/{mine}/reports", headers={"Origin": "https://example.org"})
    assert "Tacit-Batch" in asked.headers["access-control-allow-headers"]


def test_reports_with_noise_are_sealed_as_they_were_made(open_store: Open):
    """A draft as an operator writes it, planned by the collector."""
    app = make_app(open_store())
    rows = {"table": "pets", "columns": [{"name": "hours", "type": "number"}]}
    with serving(app) as client:
        mine = client.publish(draft(rows=rows, title="Pets with rows"))
        active = app.collector.find(mine)
        made = active.mechanism.privatize(np.arange(300) % 3, ReplayCoins(b"x"))
        members, payload = (made["member"], made["payload"].tobytes()) if active.sampled else (None, made.tobytes())
        columns = pa.table({"report": report_array(payload, active.widths[0]), "hours": np.arange(300)})
        if members is not None:
            columns = columns.append_column("member", pa.array(members))
        assert send_arrow(client, mine, stream(columns)).json()["accepted"] == 300
        ((public, reports),) = [segment.load() for segment in app.collector.segments(mine)]
        order = public["hours"].to_numpy().astype(int)
        assert sorted(order) == list(range(300))
        assert reports.tobytes() == np.ascontiguousarray(made[order]).tobytes()
