"""A collector of this release on the data that the previous one wrote."""

import json
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from click.testing import CliRunner
from tests.service.plain import Client, draft, serving

from tacit.cli import cli
from tacit.collector.server import make_app
from tacit.collector.store.postgres import schema as postgres_schema
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite.schema import MIGRATIONS
from tacit.collector.store.sqlite.store import FILE, SqliteStore
from tacit.errors import StorageUnavailable
from tacit.hosting.clock import Clock

WRITTEN = Path(__file__).with_name("data") / "schema_3.sql"
PUBLISHED, DAY = "c821d74a871c16bb581b9e24f0469d942a01d85525b89f641ca13170172bac0a", 20_775
ADMIN, READER = "tct_" + "A" * 43, "tct_" + "R" * 43


class ThatDay(Clock):
    """The day on which the data were written, so that no retention ends."""

    def day(self) -> int:
        return DAY


def old_folder(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    connection = apsw.Connection(str(folder / FILE))
    connection.execute(WRITTEN.read_text(encoding="utf-8"))
    connection.close()
    return folder


def check(client: Client) -> None:
    """What there was is answered as before, to those who could ask before, and nobody is in a team."""
    client.token = ADMIN
    assert client.answers(PUBLISHED)["n"] == 100
    listed = client.api("GET", "/collections").json()["collections"]
    assert {(row["state"], row["team"]) for row in listed} == {("published", ""), ("draft", "")}
    assert [row["team"] for row in client.api("GET", "/tokens").json()["tokens"]][:2] == ["", ""]
    assert {entry["team"] for entry in client.api("GET", "/audit").json()["entries"]} == {""}
    read = client.api("GET", f"/collections/{PUBLISHED}/answers", token=READER)
    assert read.status_code == 200 and client.api("GET", "/tokens", token=READER).status_code == 403
    # What is old can be given to a team, and then its tokens reach it.
    made = client.api("POST", "/tokens", {"scope": "admin", "team": "zoo"}).json()["token"]
    assert client.api("GET", f"/collections/{PUBLISHED}", token=made).status_code == 403
    assert client.api("PUT", f"/collections/{PUBLISHED}/team", {"team": "zoo"}).json()["team"] == "zoo"
    # Anonymous tokens came later: a collection of now asks for them, and has a key.
    asking = client.publish(draft(tokens=True))
    assert client.api("GET", f"/collections/{asking}/tokens").json() == {"issued": 0, "used": 0}
    # Webhooks came later, and begin without any.
    assert client.api("GET", "/webhooks").json() == {"webhooks": []}
    assert client.api("GET", f"/collections/{PUBLISHED}", token=made).status_code == 200


def test_a_folder_of_the_previous_release_is_brought_up_to_date(tmp_path: Path) -> None:
    store = SqliteStore(old_folder(tmp_path / "data"))
    with serving(make_app(store, clock=ThatDay())) as client:
        check(client)


def test_a_backup_of_the_previous_release_is_restored_into_postgresql(tmp_path: Path, postgres: Any) -> None:
    backup = old_folder(tmp_path / "old") / FILE
    store = PostgresStore(postgres.url)
    store.restore(str(backup))
    with serving(make_app(store, clock=ThatDay())) as client:
        check(client)


def test_a_database_of_the_previous_release_is_brought_up_to_date(
    postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(postgres_schema, "MIGRATIONS", postgres_schema.MIGRATIONS[:2])
        with psycopg.connect(postgres.url) as connection:
            postgres_schema.migrate(connection)
            connection.execute(
                "INSERT INTO tacit.collections (id, state, document, published) VALUES ('x', 'draft', '{}', 0)"
            )
            connection.execute(
                "INSERT INTO tacit.tokens (hash, scope, collection, label, expires) VALUES ('h', 'admin', '', 'me', 0)"
            )
            connection.execute("INSERT INTO tacit.audit (day, actor, action, subject) VALUES (1, 'me', 'create', 'x')")
    store = PostgresStore(postgres.url)
    assert [(record.id, record.team) for record in store.collections()] == [("x", "")]
    assert [(token.label, token.team) for token in store.tokens()] == [("me", "")]
    assert [(entry.actor, entry.team) for entry in store.audit_log(5)] == [("me", "")]
    store.close()


@pytest.mark.slow
def test_the_previous_release_refuses_what_this_one_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteStore(old_folder(tmp_path / "data")).close()
    monkeypatch.setattr("tacit.collector.store.sqlite.schema.MIGRATIONS", MIGRATIONS[:3])
    with pytest.raises(StorageUnavailable, match=r"schema version \d+, this release knows versions up to 3"):
        SqliteStore(tmp_path / "data")
    # One that was running while the schema changed accepts no token: it would not know of teams.
    connection = apsw.Connection(str(tmp_path / "data" / FILE))
    assert "label" not in [row[1] for row in connection.execute("PRAGMA table_info(tokens)")]
    connection.close()


def test_teams_on_the_command_line(tmp_path: Path) -> None:
    where = ("--data", str(old_folder(tmp_path / "data")))

    def tacit(*words: str) -> str:
        done = CliRunner().invoke(cli, [*words, *where])
        assert done.exit_code == 0, done.output
        return done.output.strip()

    assert tacit("collection", "assign", PUBLISHED, "zoo") == f"{PUBLISHED} belongs to zoo"
    tacit("token", "create", "--scope", "analyst", "--team", "zoo", "--label", "press")
    assert "zoo" in tacit("token", "list")
    (tmp_path / "draft.json").write_text(json.dumps(draft()))
    made = tacit("collection", "publish", str(tmp_path / "draft.json"), "--team", "farm")
    store = SqliteStore(tmp_path / "data")
    record = store.collection(made)
    assert record is not None and record.team == "farm"
    store.close()
    assert tacit("collection", "assign", made) == f"{made} belongs to no team"
