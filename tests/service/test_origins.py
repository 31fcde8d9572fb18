"""Sites beside the document: an operator's list that pages are judged by, over HTTP and on the command line."""

import json
from contextlib import closing
from typing import Any

import pytest
from click.testing import CliRunner
from tests.service.memory import MemoryStore
from tests.service.plain import serving

from tacit.cli import cli
from tacit.collector.collections.publish import create_draft, publish
from tacit.collector.server import make_app
from tacit.collector.service import Collector
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.dashboard import routes

DRAFT: dict[str, Any] = {
    "title": "Origins",
    "questions": [{"name": "yes", "text": "Yes?", "domain": {"kind": "booleans"}}],
    "epsilon": "1",
    "origins": ["https://first.example"],
}
SHOP = "https://shop.example"


@pytest.fixture(scope="module")
def running() -> Any:
    app = make_app(MemoryStore(), pages=routes)
    with serving(app) as client:
        client.http.headers["authorization"] = f"Bearer {client.token}"
        yield app.collector, client.http


@pytest.fixture
def served(running: Any) -> Any:
    """The collector of all tests, and a collection of one's own on it."""
    collector, http = running
    # Equal drafts would be one collection: no test looks at the retention.
    draft = DRAFT | {"retention_days": 1000 + len(collector.store.collections())}
    made = create_draft(collector.store, collector.planner, draft).id
    return collector, http, publish(collector.store, collector.planner, made).id


def allow(client: Any, collection: str, *origins: Any) -> Any:
    return client.put(f"/api/v1/collections/{collection}/origins", json={"origins": list(origins)})


def test_a_site_is_added_beside_the_document_which_stays(served: Any):
    collector, client, collection = served
    before = client.get(f"/c/{collection}/document.json").content
    refused = client.get(f"/c/{collection}/document.json", headers={"origin": SHOP})
    assert refused.status_code == 403 and refused.json()["type"] == "urn:tacit:error:origin"
    assert SHOP in refused.json()["detail"] and "tacit collection origins" in refused.json()["detail"]
    # Readable by the page that was refused, which would otherwise see a failed request and no reason.
    assert refused.headers["access-control-allow-origin"] == "*"
    assert allow(client, collection, SHOP).json() == {"document": ["https://first.example"], "added": [SHOP]}
    allowed = client.get(f"/c/{collection}/document.json", headers={"origin": SHOP})
    assert allowed.status_code == 200 and allowed.content == before
    assert allowed.headers["access-control-allow-origin"] == SHOP
    assert collector.find(collection).id == collection
    assert SHOP in client.get(f"/c/{collection}").headers["content-security-policy"]
    asked = client.options(f"/c/{collection}/reports", headers={"origin": SHOP})
    assert asked.headers["access-control-allow-origin"] == SHOP


def test_the_collectors_own_pages_and_programs_need_no_permission(served: Any):
    _, client, collection = served
    assert client.get(f"/c/{collection}/document.json").status_code == 200
    own = {"origin": str(client.base_url).rstrip("/")}
    assert client.get(f"/c/{collection}/document.json", headers=own).status_code == 200


def test_every_change_is_audited_and_can_be_taken_back(served: Any):
    collector, client, collection = served
    allow(client, collection, SHOP, "https://b.example")
    allow(client, collection, "https://b.example")
    noted = [entry.action for entry in collector.store.audit_log(3)]
    assert noted == [f"disallow {SHOP}", f"allow {SHOP}", "allow https://b.example"]
    assert client.get(f"/c/{collection}/document.json", headers={"origin": SHOP}).status_code == 403


@pytest.mark.parametrize("wrong", ["shop.example", "https://shop.example/", "HTTPS://shop.example", "", 7, None])
def test_what_is_no_origin_is_refused_by_its_rule(served: Any, wrong: Any):
    _, client, collection = served
    reply = allow(client, collection, wrong)
    assert reply.status_code == 422 and "web origin" in reply.json()["detail"]
    assert allow(client, collection, *(f"https://s{i}.example" for i in range(65))).status_code == 422


def test_scripts_can_be_imported_from_anywhere(served: Any):
    _, client, _ = served
    for path in ("/js/tacit.js", "/js/tacit-telemetry.js", "/js/embed.js"):
        assert client.get(path, headers={"origin": SHOP}).headers["access-control-allow-origin"] == "*"


def test_the_command_line_shows_and_changes_the_list(tmp_path: Any):
    store = SqliteStore(tmp_path)
    collector = Collector(store)
    collection = publish(store, collector.planner, create_draft(store, collector.planner, DRAFT).id).id
    store.close()

    def run(*options: str) -> Any:
        return CliRunner().invoke(cli, ["collection", "origins", collection, "--data", str(tmp_path), *options])

    assert json.loads(run("--add", SHOP, "--json").output) == {"document": ["https://first.example"], "added": [SHOP]}
    assert SHOP in run().output
    assert run("--remove", "https://first.example").exit_code == 2
    assert json.loads(run("--remove", SHOP, "--json").output)["added"] == []
    with closing(SqliteStore(tmp_path)) as again:
        assert [entry.actor for entry in again.audit_log(5)] == ["owner", "owner"]
