"""schemathesis over the OpenAPI document, against a real server: no fault, and every response as it is described.

Examples are the same in every run; `--hypothesis-seed=random` (or a number) tries others, `-m slow` many more.
"""

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from tests.service.memory import MemoryStore
from tests.service.plain import DRAFT, SHUFFLE, Client, binary, draft, serving
from tests.service.rows import json_batch

from tacit.catalog import parse
from tacit.collector.http.openapi import LETTER, PARQUET, openapi
from tacit.collector.ingest.imports import MEDIA_TYPE as TALLY
from tacit.collector.ports import CollectionRecord
from tacit.collector.rows.arrow_stream import MEDIA_TYPE as ARROW
from tacit.collector.server import make_app
from tacit.device.numbers.coins import SystemCoins
from tacit.hosting.limits import Limits
from tacit.wire.batch import MAGIC
from tacit.wire.batch import MEDIA_TYPE as BATCH
from tacit.wire.files import TALLY_MAGIC

# Bytes that begin like a batch, a stream of Arrow, a letter or a tally, and others; schemathesis makes none for types
# it does not know.
for media_type, start in ((BATCH, MAGIC), (ARROW, b"\xff\xff\xff\xff"), (LETTER, bytes(4)), (TALLY, TALLY_MAGIC)):
    schemathesis.openapi.media_type(media_type, st.binary() | st.binary().map(start.__add__))

DESCRIPTION = openapi()
SCHEMA = schemathesis.openapi.from_dict(DESCRIPTION)
OPERATIONS = [(method.upper(), path) for path, item in DESCRIPTION["paths"].items() for method in item]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    allow_header_conformance,
]
FEW, MANY = 4, 100
BAD = 2
"""Requests that break the schema, in the fast suite: their generator takes longest."""
AGE = {"name": "age", "text": "Age?", "domain": {"kind": "integers", "low": 0, "high": 63}, "task": "ranges"}
AGES = draft(title="Ages", questions=[AGE])
BASKET = {"name": "basket", "text": "What?", "domain": {"kind": "items", "labels": ["a", "b", "c"]}, "task": "items"}
BASKETS = draft(questions=[BASKET], minimum_cohort=1, k=1)
YEARS = {"name": "age", "text": "Age?", "domain": {"kind": "integers", "low": 0, "high": 9}}
PUBLIC = {"table": "people", "columns": [{"name": "os", "type": "text"}]}
PEOPLE = draft(title="People", questions=[YEARS], rows=PUBLIC, minimum_cohort=1)
HABITS = draft(
    title="Habits", policy="joint", minimum_cohort=1,
    questions=[{"name": name, "text": "?", "domain": {"kind": "booleans"}} for name in ("smokes", "runs")],
)  # fmt: skip
SELECTS = ("SELECT COUNT(*) FROM people WHERE age < 5", "EXPLAIN SELECT os, COUNT(*) FROM people GROUP BY os")
SUCCESS = {
    ("POST", "/api/v1/collections"): 201,
    ("DELETE", "/api/v1/collections/{id}"): 204,
    ("POST", "/api/v1/collections/{id}/invitations"): 201,
    ("POST", "/api/v1/tokens"): 201,
    ("POST", "/api/v1/tokens/{id}/rotate"): 201,
    ("DELETE", "/api/v1/tokens/{id}"): 204,
    ("POST", "/api/v1/webhooks"): 201,
    ("DELETE", "/api/v1/webhooks/{id}"): 204,
    ("POST", "/api/v1/webhooks/{id}/test"): 202,
    ("POST", "/c/{id}/reports"): 400,
    ("POST", "/c/{id}/tokens"): 201,
    ("POST", "/api/v1/collections/{id}/tallies"): 400,
    ("POST", "/api/v1/collections/{id}/session"): 409,
    ("POST", "/api/v1/collections/{id}/session/close"): 409,
    ("POST", "/api/v1/collections/{id}/session/abort"): 409,
    ("GET", "/c/{id}/session.json"): 404,
    ("GET", "/c/{id}/transcript.json"): 404,
    ("POST", "/c/{id}/session/messages"): 404,
}
"""What must come out at least once where it is not 200; no generator makes a batch or a tally of the right digest.

There are no shufflers here, so that no session is ever signed; see test_shuffled.py for those that are.
"""
HEALTH = list(HealthCheck)
WEBHOOK = {"url": "http://127.0.0.1:9/told", "events": ["closed"]}
"""Nobody listens at this address."""


@dataclass(frozen=True)
class Site:
    """A running collector with something of everything in it."""

    client: Client
    store: MemoryStore
    session: requests.Session
    published: str
    closed: str
    ages: str
    invited: str
    people: str
    habits: str
    shuffled: str
    windowed: str
    admitted: str

    @property
    def url(self) -> str:
        return str(self.client.http.base_url).rstrip("/")

    def fresh_draft(self) -> str:
        """A draft that nobody has touched."""
        record = CollectionRecord(f"draft-{secrets.token_hex(16)}", "draft", json.dumps(DRAFT).encode())
        self.store.add_collection(record)
        return record.id

    def fresh_plan(self) -> str:
        """An adaptive plan whose first round has a report, so that it can be advanced."""
        first = self.client.publish(BASKETS | {"title": f"Baskets {secrets.token_hex(4)}"})
        device = parse(self.client.http.get(f"/c/{first}/document.json").json()["mechanism"])
        report = device.privatize_one((1,), SystemCoins())
        assert self.client.send(first, binary(first, report, width=len(report))).status_code == 201
        return first

    def fresh_token(self) -> str:
        return self.client.api("POST", "/tokens", {"scope": "analyst"}).json()["id"]

    def fresh_webhook(self) -> str:
        for webhook in self.client.api("GET", "/webhooks").json()["webhooks"]:
            self.client.api("DELETE", f"/webhooks/{webhook['id']}")
        return self.client.api("POST", "/webhooks", WEBHOOK).json()["id"]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    store = MemoryStore()
    app = make_app(store, Limits(requests_per_second=0), webhook_private=True)
    with serving(app) as client, requests.Session() as session:
        ids = [client.publish(draft(title=title, minimum_cohort=1)) for title in ("Open", "Done")]
        for mine in ids:
            assert client.send(mine, binary(mine, bytes([0, 1, 2] * 40))).status_code == 201
        client.api("POST", f"/collections/{ids[1]}/close")
        more = [client.publish(AGES), client.publish(draft(title="By invitation", invitations=True)), people(client)]
        more.append(client.publish(HABITS))
        assert client.send(more[-1], binary(more[-1], bytes([0, 1, 2, 3] * 10))).status_code == 201
        more.append(shuffled(client))
        # Windows that are over: their series is empty, and is one.
        windows = {"every": "day", "first": "2024-01-01", "count": 30, "per": 7}
        more.append(client.publish(draft(title="Again", windows=windows)))
        more.append(client.publish(draft(title="By token", tokens=True)))
        yield Site(client, store, session, *ids, *more)


def shuffled(client: Client) -> str:
    """A collection whose shuffler never answers."""
    identity = client.api("GET", "/shuffle/identity").json()["identity"]
    away = {"name": "Away", "url": "http://127.0.0.1:9", "identity": "5" * 64}
    terms = SHUFFLE | {"collector": {"name": "Pets", "identity": identity}, "shufflers": [away]}
    return client.publish(draft(title="Shuffled", shuffle=terms))


def people(client: Client) -> str:
    """A collection with a few rows."""
    mine = client.publish(PEOPLE)
    mechanism = parse(client.http.get(f"/c/{mine}/document.json").json()["mechanism"])
    body = json_batch(mine, mechanism, list(range(10)), [{"os": "ios"}] * 10)
    received = client.send(mine, body, "application/json")
    assert received.json()["accepted"] == 10, received.text
    return mine


def places(site: Site, method: str, path: str) -> "list[Callable[[], str]]":
    """Ids that lead somewhere, for the `{id}` of a path."""
    if "/tokens/" in path:
        return [site.fresh_token]
    if path.endswith("{id}/tokens"):
        return [lambda: site.admitted, lambda: site.admitted, lambda: site.published]
    if "/webhooks/" in path:
        return [site.fresh_webhook]
    if "/joint/" in path:
        return [lambda: site.habits, lambda: site.habits, lambda: site.published]
    if "/series" in path:
        return [lambda: site.windowed, lambda: site.windowed, lambda: site.published]
    if "/query" in path:
        return [lambda: site.people, lambda: site.people, lambda: site.published]
    if "{question}" in path or path.endswith("/invitations"):
        return [lambda: site.published, lambda: site.invited if path.endswith("/invitations") else site.ages] * 2
    if (method, path.rpartition("/")[2]) == ("POST", "session"):
        # To open one, all shufflers are asked for their keys, and this one never answers.
        return [lambda: site.published, lambda: site.closed]
    if "/session" in path or path.endswith("/transcript.json"):
        return [lambda: site.shuffled, lambda: site.shuffled, lambda: site.published]
    if path.endswith("/advance"):
        return [site.fresh_plan]
    others = [] if path.endswith("/close") else [lambda: site.published]
    return [site.fresh_draft, lambda: site.closed, *others]


@cache
def requests_for(method: str, path: str, mode: GenerationMode) -> Any:
    """The strategy of an operation; making one takes longer than drawing from it."""
    return SCHEMA[path][method].as_strategy(generation_mode=mode)


def run(site: Site, method: str, path: str, *, mode: GenerationMode, many: int, fixed: bool) -> Counter[int]:
    """Send generated requests to one operation, most of them to something that exists; count the statuses."""
    seen = Counter[int]()
    headers = {"Authorization": f"Bearer {site.client.token}"}
    checks = [*CHECKS, ignored_auth, unsupported_method] if many == MANY else CHECKS

    @settings(
        max_examples=many, deadline=None, derandomize=fixed, database=None, phases=[Phase.generate],
        suppress_health_check=HEALTH,
    )  # fmt: skip
    @given(requests_for(method, path, mode))
    def try_one(case: Any) -> None:
        turn, live = seen.total(), places(site, method, path)
        if "{id}" in path and turn % 4 < len(live):
            case.path_parameters["id"] = live[turn % 4]()
        if "{question}" in path and turn % 2:
            case.path_parameters |= {"question": "age", "query": ("cdf", "range")[turn % 4 // 2]}
            case.query = case.query if turn % 3 else {}
        if "/joint/" in path and turn % 2:
            case.query = {}
            if "{query}" in path:
                case.path_parameters |= {"query": "tree"}
        if "/series" in path and turn % 2:
            case.query = {"by": "week", "band": "true", "changes": "true"}
        if "/query" in path and turn % 2:
            setattr(case, "query" if method == "GET" else "body", {"sql": SELECTS[turn % 4 // 2]})
        if turn % 3 == 0 and path.endswith(("/collections", "/plan", "/{id}")) and case.body:
            case.body = draft(title=f"Title {turn}")
        if (method, path) == ("POST", "/api/v1/webhooks") and turn % 4 == 3:
            case.body = WEBHOOK
        if path.endswith("/invitations") and turn % 4 == 3:
            # JSON Schema takes 1.0 for an integer, and generators like it; collectors do not.
            case.body = {"count": 2}
        if path.startswith("/api/"):
            # Whatever a stranger sends, the first thing that is looked at is the token.
            stranger = case.call(base_url=site.url, session=site.session)
            assert stranger.status_code == 401
            case.validate_response(stranger, checks=CHECKS)
        response = case.call(base_url=site.url, session=site.session, headers=headers)
        seen[response.status_code] += 1
        case.validate_response(response, checks=checks, headers=headers)

    try_one()
    return seen


@pytest.fixture
def fixed(request: pytest.FixtureRequest) -> bool:
    """Whether the examples are the same as ever; a seed on the command line asks for others."""
    return request.config.getoption("--hypothesis-seed", None) is None


def modes(path: str) -> list[GenerationMode]:
    """Good requests and bad ones; a path without any parameter has no bad ones."""
    plain = path in ("/healthz", "/readyz", "/metrics", "/openapi.json")
    return [GenerationMode.POSITIVE] if plain else list(GenerationMode)


def check(site: Site, method: str, path: str, many: int, fixed: bool) -> None:
    for mode in modes(path):
        count = BAD if many == FEW and mode is GenerationMode.NEGATIVE else many
        seen = run(site, method, path, mode=mode, many=count, fixed=fixed)
        if mode is GenerationMode.POSITIVE:
            # A test that only ever saw refusals would say little about the answers.
            assert 401 not in seen, seen
            assert seen[SUCCESS.get((method, path), 200)] > 0, seen
    assert site.client.http.get("/readyz").status_code == 200


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[" ".join(pair) for pair in OPERATIONS])
def test_every_operation_answers_as_described(site: Site, method: str, path: str, fixed: bool):
    check(site, method, path, FEW, fixed)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[" ".join(pair) for pair in OPERATIONS])
def test_every_operation_answers_as_described_many_times(site: Site, method: str, path: str, fixed: bool):
    check(site, method, path, MANY, fixed)


def test_every_route_is_described():
    """Pages, which are for people, are not; everything else is."""
    app = make_app(MemoryStore())
    routes = {(method, route.path) for route in app._site.routes for method in route.methods or ()}
    described = {*OPERATIONS} - {("POST", "/c/{id}/reports")}
    assert {pair for pair in routes if pair[0] not in ("HEAD", "OPTIONS")} == described


def test_the_whole_description_is_valid_and_leaves_no_reference_open():
    text = json.dumps(DESCRIPTION)
    assert "#/$defs/" not in text
    SCHEMA.validate()


def test_binary_content_is_described_as_bytes(site: Site):
    """What is sent and answered in bytes is of a media type, and no text."""
    sent = DESCRIPTION["paths"]["/c/{id}/reports"]["post"]["requestBody"]["content"]
    path = "/api/v1/collections/{id}/answers.parquet"
    answered = DESCRIPTION["paths"][path]["get"]["responses"]["200"]["content"]
    for content, media_type in ((sent, BATCH), (sent, ARROW), (answered, PARQUET)):
        assert content[media_type] == {"schema": {"contentMediaType": media_type}}
    reply = site.client.api("GET", path.removeprefix("/api/v1").replace("{id}", site.published))
    assert (reply.headers["content-type"], reply.content[:4]) == (PARQUET, b"PAR1")
    batch = binary(site.published, bytes([0, 1]))
    assert site.client.send(site.published, batch, BATCH).status_code == 201


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return DESCRIPTION["components"]["schemas"][name] if name else schema


def bodies(site: Site) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """A body that is taken, by the name of its schema, with where it is sent."""
    one = f"/api/v1/collections/{site.published}"
    twin = {"collection": site.published, "batch": secrets.token_hex(16), "reports": [{"report": "01"}]}
    return {
        "draft": ("POST", "/api/v1/collections", draft()),
        "Query": ("POST", f"/api/v1/collections/{site.people}/query", {"sql": SELECTS[0]}),
        "Batch": ("POST", f"/c/{site.published}/reports", twin),
        "NewToken": ("POST", "/api/v1/tokens", {"scope": "analyst"}),
        "InvitationCount": ("POST", f"{one.replace(site.published, site.invited)}/invitations", {"count": 1}),
    }


def objects(schema: dict[str, Any], value: Any) -> "Iterator[tuple[dict[str, Any], dict[str, Any]]]":
    """Every object of a body with its schema, as far as properties and items lead."""
    found = resolved(schema)
    if isinstance(value, dict) and "properties" in found:
        yield found, value
        for name, inner in value.items():
            yield from objects(found["properties"].get(name, {}), inner)
    for item in value if isinstance(value, list) else ():
        yield from objects(found.get("items", {}), item)


@pytest.mark.parametrize("name", ["draft", "Query", "Batch", "NewToken", "InvitationCount"])
def test_a_schema_is_closed_exactly_where_other_fields_are_refused(site: Site, name: str):
    method, path, body = bodies(site)[name]
    headers = {"Authorization": f"Bearer {site.client.token}"}
    assert site.client.http.request(method, path, json=body, headers=headers).status_code in (200, 201)
    found = list(objects({"$ref": f"#/components/schemas/{name}"}, body))
    assert found
    for schema, value in found:
        value["extra"] = 1
        if name == "Batch":
            body["batch"] = secrets.token_hex(16)
        status = site.client.http.request(method, path, json=body, headers=headers).status_code
        del value["extra"]
        assert (schema.get("additionalProperties") is False) == (400 <= status < 500), (schema, status)
