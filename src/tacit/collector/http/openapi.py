"""The OpenAPI 3.1 description of the HTTP interface, built as data from the same constants as the code."""

import json
from functools import cache
from typing import Any

from tacit import __version__
from tacit.collector.answers.series import PARAMETERS as SERIES_PARAMETERS
from tacit.collector.http.openapi_schemas import CONFIDENCE, OBJECT, SCHEMAS, TEAM_NAME, TEXT, WHOLE, fields, ref
from tacit.collector.ingest.imports import MEDIA_TYPE as TALLY
from tacit.collector.rows.arrow_stream import MEDIA_TYPE as ARROW
from tacit.hosting.problems import MEDIA_TYPE
from tacit.post.frequencies.methods import NAMES
from tacit.tasks.marginals.joint import JOINT
from tacit.tasks.table import TASKS, queries_of
from tacit.wire.batch import MEDIA_TYPE as BATCH
from tacit.wire.schema import definitions
from tacit.wire.tokens import TOKEN_MOST

LETTER = "application/vnd.tacit.letter"
PARQUET = "application/vnd.apache.parquet"
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 64}}
_LEVEL = {"name": "level", "in": "query", "schema": CONFIDENCE}
_POST = {"name": "post", "in": "query", "schema": {"type": "string", "enum": list(NAMES)}}
_BATCH_NAME = {
    "name": "Tacit-Batch",
    "in": "header",
    "description": "the batch id of an Arrow stream of reports with rows",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
}
_RETRY = {
    "Retry-After": {
        "description": "seconds, with 429 (the token asks for too much at once) and 503 (too much, or too slow, now)",
        "schema": {"type": "integer", "minimum": 1},
    }
}
_UNFINISHED = {
    "name": "unfinished",
    "in": "query",
    "description": "answer 200 with `problem` instead of 422 if the draft cannot exist as it is now",
    "schema": {"type": "boolean", "default": False},
}
_FOR_TEAM = {"name": "team", "in": "query", "description": "the team that gets the draft", "schema": TEAM_NAME}
_INVITATION = {"name": "Tacit-Invitation", "in": "header", "schema": {"type": "string", "maxLength": TOKEN_MOST}}


def _bytes(media_type: str) -> dict[str, Any]:
    """Binary content of a media type, as OpenAPI 3.1 describes it."""
    return {media_type: {"schema": {"contentMediaType": media_type}}}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": ref(name)}}


def _operation(
    summary: str, answer: str | None, *, status: int = 200, body: str | None = None, public: bool = False, **more: Any
) -> dict[str, Any]:
    """One operation: its success response, and problem documents for 4XX and 5XX."""
    content: dict[str, Any] = {"content": _json(answer)} if answer else {}
    responses: dict[str, Any] = {
        str(status): {"description": "as asked"} | content,
        "4XX": {"description": "refused", "headers": _RETRY, "content": {MEDIA_TYPE: {"schema": ref("Problem")}}},
        "5XX": {"description": "not now", "headers": _RETRY, "content": {MEDIA_TYPE: {"schema": ref("Problem")}}},
    }
    operation: dict[str, Any] = {"summary": summary, "responses": responses | more.pop("responses", {})} | more
    if body:
        operation["requestBody"] = {"required": True, "content": _json(body)}
    return operation if public else operation | {"security": [{"bearer": []}]}


def _reports() -> dict[str, Any]:
    headers = [_ID, _INVITATION, _BATCH_NAME]
    operation = _operation("Send a batch of reports", "Receipt", status=201, public=True, parameters=headers)
    operation["requestBody"] = {
        "required": True,
        "content": _bytes(BATCH) | _json("Batch") | {"text/plain": {"schema": TEXT}} | _bytes(ARROW),
    }
    operation["responses"]["200"] = {"description": "sent before; counted once", "content": _json("Receipt")}
    return operation


def _tokens() -> dict[str, Any]:
    """Where tokens are signed: for an invitation, or for the bearer of a token that may report."""
    operation = _operation(
        "Sign an anonymous token blindly", "BlindSignature", status=201, body="BlindedToken", public=True,
        parameters=[_ID, _INVITATION], security=[{}, {"bearer": []}],
    )  # fmt: skip
    operation["responses"]["200"] = {"description": "signed before", "content": _json("BlindSignature")}
    return operation


def _import() -> dict[str, Any]:
    operation = _operation("Count a tally made elsewhere", "Imported", status=201, parameters=[_ID])
    operation["requestBody"] = {"required": True, "content": _bytes(TALLY)}
    operation["responses"]["200"] = {"description": "imported before; counted once", "content": _json("Imported")}
    return operation


def _plain(summary: str, media_type: str, *, public: bool = False, **more: Any) -> dict[str, Any]:
    schema = more.pop("schema", OBJECT if media_type == "application/json" else TEXT)
    operation = _operation(summary, None, public=public, **more)
    operation["responses"]["200"] = {"description": "as asked", "content": {media_type: {"schema": schema}}}
    return operation


def _document() -> dict[str, Any]:
    operation = _plain("The document", "application/json", public=True, schema=ref("document"), parameters=[_ID])
    operation["responses"]["304"] = {"description": "the client has it already, as its If-None-Match says"}
    return operation


_SERIES = [_ID, _LEVEL, *({"name": name, "in": "query", "schema": TEXT} for name in SERIES_PARAMETERS)]


def _query() -> dict[str, Any]:
    """The route of task queries; every task defines the parameters and the result of its own."""
    queries = {query.name: query for task in TASKS for query in queries_of(task)}
    names = sorted({name for query in queries.values() for name in query.parameters})
    known = {"type": "string", "enum": sorted(queries)}
    return _plain(
        "Ask a question's task: " + "; ".join(f"{query.name}: {query.about}" for query in queries.values()),
        "application/json",
        schema=fields({"question": TEXT, "query": TEXT, "n": WHOLE, "level": {"type": "number"}, "status": TEXT}),
        parameters=[
            _ID,
            {"name": "question", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 40}},
            {"name": "query", "in": "path", "required": True, "schema": known},
            _LEVEL,
            *({"name": name, "in": "query", "schema": TEXT} for name in names),
        ],
    )


def _joint() -> dict[str, Any]:
    """The route of queries about questions that were asked together; every query defines its own result."""
    names = sorted({name for query in JOINT for name in query.parameters})
    return _plain(
        "Ask about several questions: " + "; ".join(f"{query.name}: {query.about}" for query in JOINT),
        "application/json",
        schema=fields({"query": TEXT, "n": WHOLE, "level": {"type": "number"}, "status": TEXT}),
        parameters=[
            _ID,
            {"name": "query", "in": "path", "required": True, "schema": {"enum": [query.name for query in JOINT]}},
            _LEVEL,
            *({"name": name, "in": "query", "schema": TEXT} for name in names),
        ],
    )


def _records() -> dict[str, Any]:
    known = next(query for query in JOINT if query.name == "synthetic").parameters
    given = ({"name": name, "in": "query", "schema": TEXT} for name in known)
    return _plain("Synthetic records as CSV", "text/csv", parameters=[_ID, _LEVEL, *given])


def _collection_paths() -> dict[str, Any]:
    one = "/api/v1/collections/{id}"
    by_id: dict[str, Any] = {"parameters": [_ID]}
    parquet = _operation("Answers as Parquet", None, parameters=[_ID, _LEVEL, _POST])
    parquet["responses"]["200"]["content"] = _bytes(PARQUET)
    return {
        "/api/v1/collections": {
            "get": _operation("List collections", "Collections"),
            "post": _operation("Create a draft", "Collection", status=201, body="draft", parameters=[_FOR_TEAM]),
        },
        one: {
            "get": _operation("Show a draft or a document", "Collection", **by_id),
            "put": _operation("Change a draft", "Collection", body="draft", **by_id),
            "delete": _operation("Remove a draft", None, status=204, **by_id),
        },
        f"{one}/publish": {"post": _operation("Publish a draft", "Collection", **by_id)},
        f"{one}/close": {"post": _operation("Take no more reports", "Collection", **by_id)},
        f"{one}/team": {"put": _operation("Give a collection to a team", "Collection", body="Team", **by_id)},
        f"{one}/advance": {"post": _operation("Go to the next round of a plan", "PlanState", **by_id)},
        f"{one}/status": {"get": _operation("Counts and refusals", "Status", **by_id)},
        f"{one}/answers": {"get": _operation("Answers with intervals", "Answers", parameters=[_ID, _LEVEL, _POST])},
        f"{one}/integrity": {"get": _operation("Whether reports look forged", "Integrity", **by_id)},
        f"{one}/answers.csv": {"get": _plain("Answers as CSV", "text/csv", parameters=[_ID, _LEVEL, _POST])},
        f"{one}/answers.parquet": {"get": parquet},
        f"{one}/series": {"get": _operation("Windows with intervals", "Series", parameters=_SERIES)},
        f"{one}/series.csv": {"get": _plain("Windows as CSV", "text/csv", parameters=_SERIES)},
        f"{one}/questions/{{question}}/{{query}}": {"get": _query()},
        f"{one}/joint/{{query}}": {"get": _joint()},
        f"{one}/joint/synthetic.csv": {"get": _records()},
        f"{one}/invitations": {
            "post": _operation("Make invitations", "Invitations", status=201, body="InvitationCount", **by_id)
        },
        f"{one}/tokens": {"get": _operation("How many anonymous tokens there are", "TokenNumbers", **by_id)},
        f"{one}/origins": {
            "get": _operation("Sites that may embed it or send reports", "Origins", **by_id),
            "put": _operation("Allow sites beside the document's", "Origins", body="AddedOrigins", **by_id),
        },
        f"{one}/tallies": {"post": _import()},
        "/api/v1/plan": {
            "post": _operation("Predict the error of a draft", "Plan", body="draft", parameters=[_UNFINISHED])
        },
    }


def _session_paths() -> dict[str, Any]:
    """The routes of shuffled collections."""
    one = "/api/v1/collections/{id}/session"
    by_id: dict[str, Any] = {"parameters": [_ID]}
    public: dict[str, Any] = by_id | {"public": True}
    letter = _operation("A letter of a shuffler, signed by it", None, status=204, **public)
    session = {"name": "session", "in": "query", "schema": TEXT}
    transcript = _operation("What anybody can verify", "Transcript", parameters=[_ID, session], public=True)
    letter["requestBody"] = {"required": True, "content": _bytes(LETTER)}
    # The courier of a shuffler reads the status; the text is for whoever looks into its log.
    letter["responses"]["4XX"]["content"] |= {"text/plain": {"schema": TEXT}}
    return {
        "/api/v1/shuffle/identity": {"get": _operation("The key of the collector, for drafts", "ShuffleIdentity")},
        one: {
            "get": _operation("How the latest session is", "Session", **by_id),
            "post": _operation("Open another session", "Session", status=201, body="NewSession", **by_id),
        },
        f"{one}/close": {"post": _operation("Take no more reports, and shuffle", "Session", status=202, **by_id)},
        f"{one}/abort": {"post": _operation("Give a session up", "Session", **by_id)},
        "/c/{id}/session.json": {"get": _operation("The session that takes reports", "SignedSession", **public)},
        "/c/{id}/transcript.json": {"get": transcript},
        "/c/{id}/session/messages": {"post": letter},
    }


def _sql_paths() -> dict[str, Any]:
    """The routes of SQL over the rows of a collection."""
    # A GET query must fit into the request's head (see `Limits.head_bytes`); longer ones are posted.
    sql = {"name": "sql", "in": "query", "required": True, "schema": {"type": "string", "maxLength": 4000}}
    path = "/api/v1/collections/{id}/query"
    asked: dict[str, Any] = {"parameters": [_ID, sql, _LEVEL]}
    body: dict[str, Any] = {"requestBody": {"required": True, "content": _json("Query")}}
    words = "Answer a SELECT of aggregates over rows, or show its plan (EXPLAIN)"
    return {
        "/api/v1/tables": {"get": _operation("List the tables that SQL can be asked of", "Tables")},
        path: {
            "get": _operation(words, "Result", **asked),
            "post": _operation(words, "Result", body="Query", parameters=[_ID]),
        },
        f"{path}.csv": {
            "get": _plain("The same as CSV", "text/csv", **asked),
            "post": _plain("The same as CSV", "text/csv", parameters=[_ID], **body),
        },
    }


def _other_paths() -> dict[str, Any]:
    by_id: dict[str, Any] = {"parameters": [_ID]}
    return {
        "/healthz": {"get": _plain("The process lives", "application/json", public=True)},
        "/readyz": {"get": _plain("Reports can be stored", "application/json", public=True)},
        "/metrics": {"get": _plain("Counters for Prometheus", "text/plain", public=True)},
        "/openapi.json": {"get": _plain("This document", "application/json", public=True)},
        "/c/{id}/document.json": {"get": _document()},
        "/c/{id}/reports": {"post": _reports()},
        "/c/{id}/tokens": {"post": _tokens()},
        "/api/v1/tokens": {
            "get": _operation("List tokens", "Tokens"),
            "post": _operation("Make a token", "Token", status=201, body="NewToken"),
        },
        "/api/v1/tokens/{id}": {"delete": _operation("Revoke a token", None, status=204, **by_id)},
        "/api/v1/tokens/{id}/rotate": {"post": _operation("Rotate a token", "Token", status=201, **by_id)},
        "/api/v1/audit": {"get": _operation("Actions of operators", "Audit")},
        "/api/v1/webhooks": {
            "get": _operation("List webhooks", "Webhooks"),
            "post": _operation("Add a webhook; its secret is shown once", "Webhook", status=201, body="NewWebhook"),
        },
        "/api/v1/webhooks/log": {"get": _operation("Messages to webhooks", "Deliveries")},
        "/api/v1/webhooks/{id}": {"delete": _operation("Remove a webhook", None, status=204, **by_id)},
        "/api/v1/webhooks/{id}/test": {"post": _operation("Send a test message", None, status=202, **by_id)},
    }


@cache
def _parts() -> dict[str, Any]:
    """The JSON Schemas of documents and drafts from the specification, with references rewritten for OpenAPI."""
    # Round trip through text: that rewrites every nested $ref at once, and makes a copy that may be changed.
    return json.loads(json.dumps(definitions()).replace("#/$defs/", "#/components/schemas/"))


def openapi() -> dict[str, Any]:
    """The whole OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tacit collector", "version": __version__},
        "paths": _collection_paths() | _session_paths() | _sql_paths() | _other_paths(),
        "components": {
            "schemas": SCHEMAS | _parts(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
