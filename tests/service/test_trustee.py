"""Servers that perturb for others, and applications whose users decide: what is sent, kept, shown and counted."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import Client, draft, serving, wide_draft

from tacit.client import Delivery, Patience, Telemetry, Transport, Trustee
from tacit.collector.server import make_app
from tacit.errors import InvalidSpec, InvalidValue

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "trustee" / "send_arrow.py"
TWO = [
    {"name": "pet", "text": "Which?", "domain": {"kind": "categories", "labels": ["cat", "dog", "fish"]}},
    {"name": "old", "text": "Old?", "domain": {"kind": "booleans"}},
]


@pytest.fixture(scope="module")
def client() -> Any:
    with serving(make_app(MemoryStore())) as found:
        yield found


def address(client: Client, collection: str) -> str:
    return f"{client.http.base_url}/c/{collection}".replace("//c/", "/c/")


class Network:
    """The transport of a trustee, which can be cut."""

    def __init__(self) -> None:
        self.real, self.cut, self.bodies = Transport(Patience(attempts=1)), False, []

    def fetch(self, where: Any) -> Any:
        return self.real.fetch(where)

    def upload(self, where: Any, body: bytes, invitation: str = "", **rest: Any) -> Any:
        self.bodies.append(body)
        outcome = self.real.upload(where, body, invitation, **rest)
        # The reply is lost, and not the batch: the worst case, as sending again must not count again.
        return type(outcome)("pending") if self.cut else outcome


def test_batches_survive_a_crash_and_lost_replies_and_count_once(client: Client, tmp_path: Path) -> None:
    collection = client.publish(draft(questions=TWO, policy="one_of", epsilon="8"))
    network: Any = Network()
    first = Trustee(address(client, collection), outbox=tmp_path / "out", size=100, transport=network)
    network.cut = True
    people = [{"pet": "dog", "old": True}] * 250
    assert first.add_many(people) == Delivery(pending=3)  # One batch, then it and another.
    assert len(list((tmp_path / "out").glob("*.batch"))) == 2
    del first  # What was buffered is lost with the process; what was in the outbox is not.
    network.cut = False
    second = Trustee(address(client, collection), outbox=tmp_path / "out", size=100, transport=network)
    assert second.flush() == Delivery(sent=2)
    assert not list((tmp_path / "out").iterdir())
    assert second.add_many(people[:50]) == Delivery() and second.flush() == Delivery(sent=1)
    assert second.total == Delivery(sent=3) and second.flush() == Delivery()
    assert client.status(collection)["reports"] == 250
    assert len(network.bodies) == 3 + 2 + 1 and len(set(network.bodies)) == 3
    shares = {q["name"]: [row["raw"]["estimate"] for row in q["rows"]] for q in client.answers(collection)["questions"]}
    assert shares["pet"][1] > 0.9 and shares["old"][1] > 0.9


def test_wrong_answers_are_refused_before_anything_is_drawn(client: Client) -> None:
    trustee = Trustee(address(client, client.publish(draft())))
    for wrong in ({"pet": "horse"}, {}, {"pet": 3}):
        with pytest.raises(InvalidValue) as found:
            trustee.add(wrong)
        assert "horse" not in str(found.value)
    with pytest.raises(InvalidValue, match="no public columns"):
        trustee.add({"pet": "cat"}, row={"city": "Utrecht"})
    assert trustee.flush() == Delivery()


def test_public_columns_go_along(tmp_path: Path) -> None:
    from tacit.collector.store.sqlite.store import SqliteStore

    with serving(make_app(SqliteStore(tmp_path / "data"))) as client:
        rows = {"table": "people", "columns": [{"name": "city", "type": "text"}]}
        collection = client.publish(wide_draft(8, rows=rows, minimum_cohort=5))
        trustee = Trustee(address(client, collection), size=10)
        for value in range(20):
            trustee.add({"value": value % 8}, row={"city": "Utrecht"})
        assert client.status(collection)["reports"] == 20
        asked = {"sql": "SELECT city, COUNT(*) FROM people GROUP BY city"}
        found = client.api("POST", f"/collections/{collection}/query", asked).json()
        assert [row[0] for row in found["rows"]] == ["Utrecht"]


def test_collections_that_devices_must_answer_themselves(client: Client) -> None:
    with pytest.raises(InvalidSpec, match="by invitation"):
        Trustee(address(client, client.publish(draft(invitations=True))))


def test_arguments_and_refusals(client: Client, tmp_path: Path) -> None:
    collection = client.publish(draft())
    with pytest.raises(InvalidSpec, match="size is 0"):
        Trustee(address(client, collection), size=0)
    from tacit import ReplayCoins

    with pytest.raises(InvalidSpec, match="not secure"):
        Trustee(address(client, collection), coins=ReplayCoins(b"x"))
    trustee = Trustee(address(client, collection), outbox=tmp_path)
    trustee.add({"pet": "cat"})
    client.api("POST", f"/collections/{collection}/close")
    assert trustee.flush() == Delivery(refused=1)
    assert [path.suffix for path in tmp_path.iterdir()] == [".refused"] and trustee.flush() == Delivery()


def test_the_example_with_arrow(client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    collection = client.publish(draft(questions=TWO, epsilon="4"))
    pets = np.array(["cat", "dog", "fish"])[np.arange(1_200) % 3]
    pq.write_table(pa.table({"pet": pets, "old": np.arange(1_200) % 2 == 0, "name": pets}), tmp_path / "people.parquet")
    main = runpy.run_path(str(EXAMPLE))["main"]
    main(str(tmp_path / "people.parquet"), address(client, collection), str(tmp_path / "out"))
    assert capsys.readouterr().out == "3 batches sent, 0 pending, 0 refused\n"
    assert client.status(collection)["reports"] == 1_200


def test_telemetry_does_what_the_user_decides(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    places = [address(client, client.publish(draft(title=f"Pets {i}"))) for i in range(4)]
    counts = lambda: [client.status(place[-64:])["reports"] for place in places]  # noqa: E731
    kit = Telemetry(tmp_path / "app")
    assert kit.mode == "local"
    held = kit.report(places[0], {"pet": "cat"})
    assert held is not None and held.state == "held" and counts() == [0, 0, 0, 0]
    (shown,) = kit.shown()
    assert (shown.title, shown.state, shown.server) == ("Pets 0", "held", places[0].partition("/c/")[0])
    assert len(bytes.fromhex(shown.report)) == 1 and "cat" not in repr(shown)
    kit.set_mode("off")
    assert (
        kit.report(places[1], {"pet": "cat"}) is None and kit.release() == kit.flush() == [] and len(kit.shown()) == 1
    )
    # The decision is kept, and going on sends nothing of before by itself.
    again = Telemetry(tmp_path / "app")
    assert again.mode == "off"
    again.set_mode("on")
    sent = again.report(places[2], {"pet": "dog"})
    assert sent is not None and sent.state == "sent" and counts() == [0, 0, 1, 0]
    assert again.report(places[2], {"pet": "fish"}) == sent and again.flush() == []
    assert [receipt.state for receipt in again.release()] == ["sent"] and counts() == [1, 0, 1, 0]
    assert {entry.state for entry in again.shown()} == {"sent"}
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    assert again.mode == "off" and again.report(places[3], {"pet": "dog"}) is None


def test_telemetry_waits_for_a_network_and_takes_no_garbage_for_consent(client: Client, tmp_path: Path) -> None:
    place = address(client, client.publish(draft(title="Offline")))
    network: Any = Network()
    network.cut = True
    kit = Telemetry(tmp_path, transport=network)
    kit.set_mode("on")
    made = kit.report(place, {"pet": "dog"})
    assert made is not None and made.state == "pending"
    network.cut = False
    assert [receipt.state for receipt in kit.flush()] == ["sent"] and len(set(network.bodies)) == 1
    assert client.status(place[-64:])["reports"] == 1
    (tmp_path / "mode").write_text("yes please")
    assert kit.mode == "off"
    with pytest.raises(InvalidSpec, match="on, local, off"):
        kit.set_mode("maybe")


def test_telemetry_takes_the_folder_of_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    Telemetry("~/state").set_mode("on")
    assert (tmp_path / "state" / "mode").is_file()
    assert Telemetry(tmp_path / "state").mode == "on"
