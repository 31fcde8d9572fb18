"""Teams: whoever holds a token of one reaches its collections alone, at every door."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from starlette.routing import Route
from tests.service.memory import MemoryStore
from tests.service.pg_people import served as served_tables
from tests.service.plain import Client, draft, plain_app, serving

from tacit.collector.collections.access import READ, REPORT, WRITE, Access, Bearer, check_team
from tacit.dashboard import routes
from tacit.errors import InvalidSpec
from tacit.hosting.problems import Problem

HEX = "0" * 64


@dataclass
class Two:
    """A collector of two teams, each with a published collection and a draft, and one collection of none."""

    client: Client
    app: Any
    tokens: dict[str, str]
    published: dict[str, str]
    drafts: dict[str, str]


@pytest.fixture(scope="module")
def two() -> Iterator[Two]:
    app = plain_app(pages=routes)
    with serving(app) as client:
        tokens, published, drafts = {"": client.token}, {}, {}
        for team in ("red", "blue"):
            tokens[team] = client.api("POST", "/tokens", {"scope": "admin", "team": team, "label": team}).json()[
                "token"
            ]
        for team, token in tokens.items():
            client.token = token
            published[team] = client.publish(draft(title=f"Of {team or 'nobody'}"))
            drafts[team] = client.api("POST", "/collections", draft(title=f"Later of {team}")).json()["id"]
        client.token = tokens[""]
        yield Two(client, app, tokens, published, drafts)


def test_what_is_made_belongs_to_the_team_of_the_token(two: Two) -> None:
    for team, token in two.tokens.items():
        shown = two.client.api("GET", f"/collections/{two.published[team]}", token=token).json()
        assert shown["team"] == team
    other = two.client.api("POST", "/collections?team=blue", draft(), token=two.tokens["red"])
    assert other.status_code == 403 and "red" in other.json()["detail"]
    chosen = two.client.api("POST", "/collections?team=blue", draft())
    assert chosen.json()["team"] == "blue"
    two.client.api("DELETE", f"/collections/{chosen.json()['id']}")


def test_lists_hold_what_is_the_teams_and_who_is_in_none_sees_all(two: Two) -> None:
    def listed(team: str) -> set[str]:
        reply = two.client.api("GET", "/collections", token=two.tokens[team]).json()
        return {row["id"] for row in reply["collections"]}

    assert listed("red") == {two.published["red"], two.drafts["red"]}
    assert listed("") == {*two.published.values(), *two.drafts.values()}


def calls(app: Any) -> Iterator[tuple[str, str]]:
    """Every route about one collection, as method and path."""
    for route in app._site.routes:
        if isinstance(route, Route) and "{id}" in route.path and not re.search("token|webhook", route.path):
            for method in sorted((route.methods or set()) - {"HEAD", "OPTIONS"}):
                yield method, route.path


def test_no_route_about_a_collection_answers_the_token_of_another_team(two: Two) -> None:
    """As if there was no such collection, for the API; and the pages of the dashboard say that there is none."""
    tried = 0
    for method, path in calls(two.app):
        for target in (two.published["blue"], two.drafts["blue"], two.published[""], HEX):
            place = re.sub(r"\{(\w+)(:path)?\}", "pet", path.replace("{id}", target))
            headers = {"Authorization": f"Bearer {two.tokens['red']}"}
            if place.startswith("/api/"):
                reply = two.client.http.request(method, place, json={} if method != "GET" else None, headers=headers)
                assert (reply.status_code, reply.json()["type"].rpartition(":")[2]) == (403, "forbidden"), (
                    method,
                    place,
                )
                tried += 1
            elif place.startswith("/dashboard/"):
                cookies = {"Cookie": f"tacit_session={two.tokens['red']}"}
                assert two.client.http.request(method, place, headers=cookies).status_code == 404, place
                tried += 1
    assert tried >= 4 * 20
    # Previews of drafts are for whoever may change them; what is published is for everybody, as its respondents are.
    cookies = {"Cookie": f"tacit_session={two.tokens['red']}"}
    assert two.client.http.get(f"/c/{two.drafts['blue']}/preview.json", headers=cookies).status_code == 404
    assert two.client.http.get(f"/c/{two.drafts['red']}/preview.json", headers=cookies).status_code == 200
    assert two.client.http.get(f"/c/{two.published['blue']}/document.json").status_code == 200


def test_a_query_that_compares_does_not_reach_into_another_team(two: Two) -> None:
    path = f"/collections/{two.published['red']}/questions/pet/auc?other={two.published['blue']}"
    assert two.client.api("GET", path, token=two.tokens["red"]).status_code == 403


def test_the_admin_of_a_team_makes_and_ends_tokens_of_it_alone(two: Two) -> None:
    red, client = two.tokens["red"], two.client
    names = {row["label"]: row["id"] for row in client.api("GET", "/tokens").json()["tokens"]}
    assert {row["team"] for row in client.api("GET", "/tokens", token=red).json()["tokens"]} == {"red"}
    for word, method in (("", "DELETE"), ("/rotate", "POST")):
        for label in ("blue", "tests"):
            assert client.api(method, f"/tokens/{names[label]}{word}", {}, token=red).status_code == 404
    assert client.api("POST", "/tokens", {"scope": "admin", "team": "blue"}, token=red).status_code == 403
    reader = {"scope": "reader", "collection": two.published["blue"]}
    assert client.api("POST", "/tokens", reader, token=red).status_code == 404
    made = client.api("POST", "/tokens", {"scope": "analyst"}, token=red).json()
    assert made["team"] == "red"
    assert client.api("GET", f"/collections/{two.published['red']}", token=made["token"]).status_code == 200
    assert client.api("GET", f"/collections/{two.published['blue']}", token=made["token"]).status_code == 403
    assert client.api("DELETE", f"/tokens/{made['id']}", token=red).status_code == 204


def test_the_audit_log_of_a_team_is_about_it_alone(two: Two) -> None:
    two.client.api("POST", f"/collections/{two.published['red']}/close", token=two.tokens[""])
    entries = two.client.api("GET", "/audit", token=two.tokens["red"]).json()["entries"]
    assert {entry["team"] for entry in entries} == {"red"}
    # What somebody without a team does to its collections is in it as well.
    assert {"tests", "red"} <= {entry["actor"] for entry in entries}
    assert two.published["blue"] not in str(entries)


def test_only_who_is_in_no_team_moves_collections(two: Two) -> None:
    path = f"/collections/{two.published['red']}/team"
    assert two.client.api("PUT", path, {"team": "blue"}, token=two.tokens["red"]).status_code == 403
    assert two.client.api("PUT", path, {"team": "No Team"}).status_code == 422
    assert two.client.api("PUT", path, {"team": "blue"}).json()["team"] == "blue"
    assert two.client.api("GET", f"/collections/{two.published['red']}", token=two.tokens["red"]).status_code == 403
    assert two.client.api("PUT", path, {"team": "red"}).status_code == 200
    assert two.client.api("PUT", f"/collections/{HEX}/team", {"team": "red"}).status_code == 404


def test_the_same_document_is_not_published_by_two_teams(two: Two) -> None:
    same = draft(title="Twice", retention_days=77)
    made = {
        team: two.client.api("POST", "/collections", same, token=two.tokens[team]).json() for team in ("red", "blue")
    }
    first = two.client.api("POST", f"/collections/{made['red']['id']}/publish", token=two.tokens["red"])
    second = two.client.api("POST", f"/collections/{made['blue']['id']}/publish", token=two.tokens["blue"])
    assert first.status_code == 200 and second.status_code == 409 and "another team" in second.json()["detail"]


@pytest.mark.parametrize("team", ["Red", "-red", "a" * 41, "a b", 7, None, "ä"])
def test_names_of_teams(team: Any) -> None:
    with pytest.raises(InvalidSpec, match="1 to 40 characters"):
        check_team(team)


def test_a_bearer_of_a_team_keeps_to_it_and_to_its_scope() -> None:
    teams = {"a": "red", "b": "blue", "c": ""}
    bearer = Bearer("analyst", "", "x", "k", "red", teams.get)
    assert [bearer.may(READ, name) for name in ("a", "b", "c", "d")] == [True, False, False, False]
    assert not bearer.may(WRITE, "a") and not bearer.may(REPORT, "a") and bearer.may(READ)
    assert Bearer("admin", "", "x").may(WRITE, "b")
    with pytest.raises(Problem, match="another"):
        bearer.within("blue")


def test_an_admin_of_a_team_is_not_the_last_admin_of_all() -> None:
    access = Access(MemoryStore())
    _, record = access.create("admin", label="first")
    access.create("admin", team="red")
    with pytest.raises(Problem, match="last admin"):
        access.revoke(record.hash.hex()[:16])


def test_tables_for_postgresql_are_those_of_the_team(tmp_path: Path) -> None:
    with served_tables(tmp_path) as table:
        api = table.client.api
        assert api("PUT", f"/collections/{table.collection}/team", {"team": "red"}).status_code == 200
        for team, seen in (("red", ["people"]), ("blue", []), ("", ["others", "people"])):
            token = api("POST", "/tokens", {"scope": "analyst", "team": team}).json()["token"]
            address = f"host=127.0.0.1 port={table.port} user=me dbname=tacit password={token}"
            with psycopg.connect(address, autocommit=True) as connection:
                found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
                assert [row[0] for row in found.fetchall()] == seen
            assert [row["name"] for row in api("GET", "/tables", token=token).json()["tables"]] == seen[::-1]
