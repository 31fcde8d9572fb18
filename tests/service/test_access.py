"""Tokens, invitations and the audit log: who may do what, and what is kept of it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.service.memory import MemoryStore
from tests.service.plain import Client, draft, plain_app, serving

from tacit.catalog import CATALOG
from tacit.cli import cli
from tacit.collector.collections.access import SCOPES, WRITE, Access, hash_token, new_token, token_id
from tacit.collector.collections.publish import Planner, publish_document
from tacit.collector.server import Settings, make_app
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.errors import InvalidSpec
from tacit.hosting.problems import Problem


def test_only_the_hash_of_a_token_is_kept():
    store = MemoryStore()
    token, record = Access(store).create("admin", label="me")
    assert token.startswith("tct_")
    assert len(token) == 4 + 43
    assert record.hash == hash_token(token)
    assert token.encode() not in repr(store.tokens()).encode()


def test_a_token_ends_on_its_day():
    days = [100]
    access = Access(MemoryStore(), lambda: days[0])
    token, _ = access.create("analyst", days=7)
    for day, holds in ((100, True), (106, True), (107, False), (10_000, False)):
        days[0] = day
        assert (access.bearer(token) is not None) == holds


def test_the_first_start_makes_one_admin_token():
    access = Access(MemoryStore())
    token = access.first_admin()
    assert token is not None
    assert access.bearer(token).scope == "admin"
    assert access.first_admin() is None


def test_rotation_replaces_a_token_and_the_last_admin_stays():
    access = Access(MemoryStore())
    token, record = access.create("admin")
    fresh, kept = access.rotate(token_id(record))
    assert access.bearer(token) is None
    assert access.bearer(fresh).scope == "admin"
    with pytest.raises(Problem, match="last admin"):
        access.revoke(token_id(kept))
    access.create("admin")
    access.revoke(token_id(kept))
    assert access.bearer(fresh) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"scope": "root"},
        {"scope": None},
        {"scope": ["admin"]},
        {"scope": "reader"},  # for all collections
        {"scope": "admin", "label": "x" * 81},
        {"scope": "admin", "label": "a\nb"},
        {"scope": "admin", "days": -1},
        {"scope": "admin", "days": 1.5},
        {"scope": "admin", "collection": 5},
    ],
    ids=repr,
)
def test_tokens_that_cannot_exist_are_refused(bad: dict):
    with pytest.raises(InvalidSpec):
        Access(MemoryStore()).create(bad.pop("scope"), **bad)


@pytest.fixture(scope="module")
def client():
    with serving(plain_app()) as made:
        yield made


def test_every_scope_may_do_what_it_says_and_no_more(client: Client):
    mine, other = client.publish(draft(title="Mine")), client.publish(draft(title="Other"))
    tokens = {}
    for scope in SCOPES:
        limited = {"collection": mine} if scope in ("reader", "reporter") else {}
        made = client.api("POST", "/tokens", {"scope": scope, "label": scope} | limited)
        assert made.status_code == 201
        tokens[scope] = made.json()["token"]
    tokens |= {"none": "", "wrong": "tct_" + "A" * 43}
    order = ("admin", "analyst", "reader", "reporter")
    wanted = {
        ("GET", f"/collections/{mine}/answers"): (200, 200, 200, 403),
        ("GET", f"/collections/{other}/status"): (200, 200, 403, 403),
        ("GET", "/collections"): (200, 200, 200, 403),
        ("POST", "/collections"): (201, 403, 403, 403),
        ("GET", "/tokens"): (200, 403, 403, 403),
        ("GET", "/audit"): (200, 403, 403, 403),
        ("POST", "/plan"): (200, 200, 200, 403),
        ("POST", f"/collections/{mine}/close"): (200, 403, 403, 403),
    }
    for (method, path), statuses in wanted.items():
        for scope, status in (dict(zip(order, statuses, strict=True)) | {"none": 401, "wrong": 401}).items():
            body = draft() if method == "POST" else None
            assert client.api(method, path, body, token=tokens[scope]).status_code == status, (method, path, scope)
    listed = client.api("GET", "/collections", token=tokens["reader"]).json()["collections"]
    assert [item["id"] for item in listed] == [mine]


def test_a_share_link_reads_and_never_writes(client: Client):
    mine = client.publish(draft(title="Shared"))
    share = client.api("POST", "/tokens", {"scope": "reader", "collection": mine}).json()["token"]
    assert client.http.get(f"/api/v1/collections/{mine}/answers", params={"share": share}).status_code == 200
    assert client.http.post(f"/api/v1/collections/{mine}/close", params={"share": client.token}).status_code == 401


def test_a_session_cookie_needs_the_csrf_header_to_change_anything(client: Client):
    cookie = {"Cookie": f"tacit_session={client.token}"}
    assert client.http.get("/api/v1/tokens", headers=cookie).status_code == 200
    refused = client.http.post("/api/v1/collections", json=draft(), headers=cookie)
    assert refused.status_code == 403
    allowed = client.http.post("/api/v1/collections", json=draft(), headers=cookie | {"Tacit-CSRF": "1"})
    assert allowed.status_code == 201


def test_operators_leave_a_trace_and_reports_do_not(client: Client):
    mine = client.publish(draft(title="Traced", invitations=True))
    client.api("POST", f"/collections/{mine}/invitations", {"count": 3})
    client.api("POST", f"/collections/{mine}/close")
    entries = client.api("GET", "/audit").json()["entries"][:3]
    assert [entry["action"] for entry in entries] == ["close", "invite 3", "publish"]
    assert {entry["actor"] for entry in entries} == {"tests"}
    assert {entry["subject"] for entry in entries} == {mine}


def test_tokens_are_listed_rotated_and_revoked_by_their_public_name(client: Client):
    made = client.api("POST", "/tokens", {"scope": "analyst", "label": "Ann", "days": 30}).json()
    assert made["token"] not in client.api("GET", "/tokens").text
    fresh = client.api("POST", f"/tokens/{made['id']}/rotate").json()
    assert client.api("GET", "/collections", token=made["token"]).status_code == 401
    assert client.api("GET", "/collections", token=fresh["token"]).status_code == 200
    assert client.api("DELETE", f"/tokens/{fresh['id']}").status_code == 204
    assert client.api("DELETE", f"/tokens/{fresh['id']}").status_code == 404


def test_the_last_admin_of_everything_stays_while_others_administer_one_collection():
    store = MemoryStore()
    access = Access(store)
    token = access.first_admin()
    collection = publish_document(store, Planner(CATALOG).plan(draft())[0]).id
    access.create("admin", collection=collection)
    (whole,) = [record for record in access.tokens() if not record.collection]
    with pytest.raises(Problem, match="last admin"):
        access.revoke(token_id(whole))
    assert access.bearer(token) is not None


def test_where_only_admins_of_single_collections_are_left_a_start_makes_a_new_admin():
    store = MemoryStore()
    access = Access(store)
    collection = publish_document(store, Planner(CATALOG).plan(draft())[0]).id
    access.create("admin", collection=collection)
    token = access.first_admin()
    assert token is not None and access.bearer(token).may(WRITE)
    assert access.first_admin() is None


def test_the_first_token_may_be_chosen_and_one_that_was_revoked_does_not_come_back():
    access, chosen = Access(MemoryStore()), new_token()
    assert access.first_admin(chosen) is None and access.bearer(chosen).may(WRITE)
    fresh, _ = access.create("admin")
    access.revoke(token_id(access.tokens()[0]))
    assert access.first_admin(chosen) is None
    assert access.bearer(chosen) is None and access.bearer(fresh) is not None
    for weak in ("secret", "tct_short", chosen + "x", "tct_" + "é" * 43):
        with pytest.raises(InvalidSpec, match="43 characters"):
            access.first_admin(weak)


def run_tacit(*words: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    found = CliRunner().invoke(cli, words, env=env)
    assert found.exit_code == code, found.output
    return found.output


def test_tokens_from_the_command_line_while_the_collector_runs(tmp_path: Path):
    where = ("--data", str(tmp_path))
    run_tacit("token", "list", *where, code=2)  # There is no collector in this folder yet.
    with serving(make_app(SqliteStore(tmp_path))) as client:
        made = run_tacit("token", "create", "--scope", "analyst", "--label", "press", "--days", "3", *where).strip()
        assert client.api("GET", "/collections", token=made).status_code == 200
        listed = json.loads(run_tacit("token", "list", "--json", *where))["tokens"]
        assert [row["scope"] for row in listed] == ["admin", "analyst"] and made not in str(listed)
        name = listed[1]["id"]
        assert name in run_tacit("token", "list", *where)
        run_tacit("token", "revoke", name, *where)
        assert client.api("GET", "/collections", token=made).status_code == 401
        assert "last admin" in run_tacit("token", "revoke", listed[0]["id"], *where, code=1)
        assert "no such token" in run_tacit("token", "revoke", "0" * 16, *where, code=1)
        run_tacit("token", "create", "--scope", "reader", *where, code=1)
        done = [(entry["actor"], entry["action"]) for entry in client.api("GET", "/audit").json()["entries"]]
        assert {("owner", "create token analyst"), ("owner", "revoke token")} <= set(done)
    run_tacit("token", "list", code=2)


def test_settings_do_not_show_the_first_token(tmp_path: Path):
    chosen = new_token()
    assert chosen not in repr(Settings(data=tmp_path, admin_token=chosen))
