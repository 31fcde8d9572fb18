"""The JSON API of operators and analysts under /api/v1: authorisation and (de)serialisation, no logic of its own."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tacit.collector.answers.answer import to_csv, to_parquet
from tacit.collector.answers.ask import records_csv
from tacit.collector.answers.series import SeriesRequest, series_csv
from tacit.collector.collections import publish as publishing
from tacit.collector.collections.access import PREFIX, READ, WRITE, Bearer, check_team, token_id
from tacit.collector.collections.active import Active, parsed_json
from tacit.collector.http.downloads import disposition, file_name
from tacit.collector.http.webhooks import WebhookRoutes
from tacit.collector.http.work import answered
from tacit.collector.ingest.imports import MEDIA_TYPE as TALLY
from tacit.collector.ports import CollectionRecord, TokenRecord
from tacit.collector.service import Collector
from tacit.core.statistics.level import check_level
from tacit.errors import InvalidSpec, TacitError
from tacit.hosting.problems import Problem, problem_of
from tacit.hosting.responses import json_response, read_body

COOKIE = "tacit_session"
"""The session cookie of the dashboard: a token, HttpOnly, so that scripts cannot read it."""

CSRF_HEADER = "tacit-csrf"
"""Required with the cookie for every change: pages of other origins cannot set a custom header without CORS."""

# Actions in one response, the newest first; there is no paging.
MOST_AUDIT = 1000
_ONE = "/api/v1/collections/{id}"
_JSON = "application/json"


@dataclass(frozen=True)
class Call:
    """One authorised request, parsed."""

    bearer: Bearer
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any

    @property
    def id(self) -> str:
        """The id of the collection or token in the path."""
        return self.path.get("id", "")

    @property
    def given(self) -> dict[str, str]:
        """The query's own parameters: the query string without `level` and without the token of a share link."""
        # `share` is also a parameter of some queries, so it counts as a token only if it looks like one.
        own = {"level"} | ({"share"} if self.query.get("share", PREFIX).startswith(PREFIX) else set[str]())
        return {name: value for name, value in self.query.items() if name not in own}

    @property
    def level(self) -> float:
        """The confidence level of the query string, 0.95 by default."""
        return check_level(self.query.get("level", 0.95))

    @property
    def fields(self) -> dict[str, Any]:
        """The body as a JSON object; Problem `malformed` if it is something else."""
        body: object = self.body
        if not isinstance(body, dict):
            raise Problem("malformed", "the body must be a JSON object")
        return cast("dict[str, Any]", body)

    def fields_among(self, who: str, *names: str) -> dict[str, Any]:
        """The body, which may have these fields only: a misspelt field would silently count as absent."""
        fields = self.fields
        for unknown in sorted(fields.keys() - set(names)):
            raise InvalidSpec(f"{who}: unknown field '{unknown[:40]}', must be one of {', '.join(names)}")
        return fields


Handler = Callable[[Call], Response]


def token_of(request: Request, writes: bool) -> str:
    """The token of a request: Authorization header, else the dashboard's cookie, else (to read) a share link."""
    given = request.headers.get("authorization", "")
    if given:
        scheme, _, token = given.partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""
    cookie = request.cookies.get(COOKIE, "")
    if cookie and writes and not request.headers.get(CSRF_HEADER):
        raise Problem("forbidden", "a change by session cookie needs the header Tacit-CSRF")
    return cookie or ("" if writes else request.query_params.get("share", ""))


class Api:
    """The endpoints under /api/v1."""

    def __init__(self, collector: Collector) -> None:
        """Serve a collector."""
        self._collector, self._store = collector, collector.store

    def routes(self) -> list[BaseRoute]:
        """All endpoints, with the action that a token must allow."""
        one, tokens = _ONE, "/api/v1/tokens"
        return [
            self._route("GET", "/api/v1/collections", READ, self.list_collections, anything=True),
            self._route("POST", "/api/v1/collections", WRITE, self.create, heavy=True),
            self._route("GET", one, READ, self.show),
            self._route("PUT", one, WRITE, self.replace, heavy=True),
            self._route("DELETE", one, WRITE, self.delete),
            self._route("POST", f"{one}/publish", WRITE, self.publish, heavy=True),
            self._route("POST", f"{one}/close", WRITE, self.close),
            self._route("PUT", f"{one}/team", WRITE, self.assign),
            self._route("POST", f"{one}/advance", WRITE, self.advance, heavy=True),
            self._route("GET", f"{one}/status", READ, self.status),
            self._route("GET", f"{one}/session", READ, self.session),
            self._route("POST", f"{one}/session", WRITE, self.open_session, heavy=True),
            self._route("POST", f"{one}/session/close", WRITE, self.close_session),
            self._route("POST", f"{one}/session/abort", WRITE, self.abort_session),
            self._route("GET", "/api/v1/shuffle/identity", READ, self.shuffle_identity, anything=True),
            self._route("GET", f"{one}/answers", READ, self.answers, heavy=True),
            self._route("GET", f"{one}/integrity", READ, self.integrity, heavy=True),
            self._route("GET", f"{one}/answers.csv", READ, self.answers_csv, heavy=True),
            self._route("GET", f"{one}/answers.parquet", READ, self.answers_parquet, heavy=True),
            self._route("GET", f"{one}/series", READ, self.series, heavy=True),
            self._route("GET", f"{one}/series.csv", READ, self.series_csv, heavy=True),
            self._route("GET", f"{one}/questions/{{question}}/{{query}}", READ, self.ask, heavy=True),
            self._route("GET", f"{one}/joint/synthetic.csv", READ, self.synthetic_csv, heavy=True),
            self._route("GET", f"{one}/joint/{{query}}", READ, self.joint, heavy=True),
            self._route("POST", f"{one}/invitations", WRITE, self.invite),
            self._route("GET", f"{one}/tokens", READ, self.token_numbers),
            self._route("GET", f"{one}/origins", READ, self.origins),
            self._route("PUT", f"{one}/origins", WRITE, self.allow),
            self._route("POST", f"{one}/tallies", WRITE, self.import_tally, heavy=True, takes=TALLY),
            self._route("POST", "/api/v1/plan", READ, self.plan, anything=True, heavy=True),
            self._route("GET", tokens, WRITE, self.list_tokens),
            self._route("POST", tokens, WRITE, self.create_token),
            self._route("DELETE", f"{tokens}/{{id}}", WRITE, self.revoke_token),
            self._route("POST", f"{tokens}/{{id}}/rotate", WRITE, self.rotate_token),
            self._route("GET", "/api/v1/audit", WRITE, self.audit),
            *WebhookRoutes(self._collector, self._route).routes(),
        ]

    def _route(
        self, method: str, path: str, action: str, handler: Handler, *, anything: bool = False, heavy: bool = False,
        takes: str = _JSON,
    ) -> BaseRoute:  # fmt: skip
        """A route that checks the token, reads the body, and runs the handler in a thread.

        `anything` marks routes that a token limited to one collection may use too; `heavy` marks expensive ones, which
        run as jobs of the thread pool, with limits by token. `takes` is the media type of the body.
        """

        async def endpoint(request: Request) -> Response:
            given, query = dict(request.path_params), dict(request.query_params)
            token = token_of(request, method != "GET")
            collection = given.get("id", "") if path.startswith(_ONE) else ""
            # Authorised before the body is read, so that strangers cannot make the collector parse large bodies.
            bearer = await run_in_threadpool(self._bearer, token, action, collection, anything)
            body = await self._body(request, takes) if method in ("POST", "PUT") else None
            call = Call(bearer, given, query, body)
            if not heavy:
                return await run_in_threadpool(handler, call)
            work = self._collector.work
            seconds = work.limits.write_seconds if action == WRITE else work.limits.seconds
            job = work.submit(bearer.key, lambda: handler(call), seconds)
            return await answered(job, request.receive)

        return Route(path, cast("Callable[[Request], Awaitable[Response]]", endpoint), methods=[method])

    def _bearer(self, token: str, action: str, collection: str, anything: bool) -> Bearer:
        access = self._collector.access
        # A token for one collection may list (and sees that one only) or plan: it is checked against its own.
        if anything:
            held = access.bearer(token) if token else None
            collection = held.collection if held else ""
        return access.check(token, action, collection)

    async def _body(self, request: Request, takes: str) -> Any:
        data = await read_body(request.receive)
        if not data:
            return {}
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != takes:
            raise Problem("unsupported_media_type", f"send the body as {takes}")
        if takes != _JSON:
            return data
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Problem("malformed", "the body is not JSON") from None

    def list_collections(self, call: Call) -> Response:
        """Every collection that the token may read."""
        found = self._collector.summaries(lambda collection: call.bearer.may(READ, collection))
        return json_response({"collections": found})

    def _shown(self, record: CollectionRecord, status: int = 200) -> Response:
        name = "draft" if record.state == "draft" else "document"
        value = {"id": record.id, "state": record.state, "team": record.team, name: parsed_json(record.document)}
        headers = {"location": f"/api/v1/collections/{record.id}"} if status == 201 else None
        return json_response(value, status, headers)

    def _noted(self, call: Call, action: str, subject: str) -> None:
        self._collector.access.note(call.bearer, action, subject)

    def create(self, call: Call) -> Response:
        """Keep a new draft."""
        team = call.bearer.within(call.query.get("team", ""))
        record = publishing.create_draft(self._store, self._collector.planner, call.body, team)
        self._noted(call, "create", record.id)
        return self._shown(record, 201)

    def show(self, call: Call) -> Response:
        """A draft or a document."""
        return self._shown(publishing.find_record(self._store, call.id))

    def replace(self, call: Call) -> Response:
        """Change a draft."""
        record = publishing.replace_draft(self._store, self._collector.planner, call.id, call.body)
        self._noted(call, "replace", record.id)
        return self._shown(record)

    def delete(self, call: Call) -> Response:
        """Remove a draft."""
        publishing.delete_draft(self._store, call.id)
        self._noted(call, "delete", call.id)
        return Response(status_code=204)

    def publish(self, call: Call) -> Response:
        """Publish a draft."""
        record = self._collector.publish(call.id)
        self._noted(call, "publish", record.id)
        return self._shown(record)

    def close(self, call: Call) -> Response:
        """Close a published collection."""
        record = self._collector.close(call.id)
        self._noted(call, "close", record.id)
        return self._shown(record)

    def assign(self, call: Call) -> Response:
        """Give a collection to a team, or to none."""
        # It would leave the reach of whoever is in a team, and could enter that of another without being asked.
        if call.bearer.team or call.bearer.collection:
            raise Problem("forbidden", "only an admin token without a team and without a collection moves collections")
        team = check_team(call.fields_among("team", "team").get("team"))
        publishing.find_record(self._store, call.id)
        self._store.assign(call.id, team)
        self._noted(call, f"assign {team}".strip(), call.id)
        return self._shown(publishing.find_record(self._store, call.id))

    def advance(self, call: Call) -> Response:
        """Close the open round of an adaptive plan and publish the next."""
        state = self._collector.advance(call.id)
        self._noted(call, "advance", state["current"])
        return json_response(state)

    def status(self, call: Call) -> Response:
        """Counts of a collection."""
        return json_response(self._collector.status(call.id))

    def shuffle_identity(self, call: Call) -> Response:
        """The key that drafts of shuffled collections name as this collector's."""
        del call
        return json_response({"identity": self._collector.shuffle.desk.identity})

    def session(self, call: Call) -> Response:
        """How the latest session of a shuffled collection is."""
        active = self._collector.find(call.id)
        return json_response(self._collector.shuffle.of(active).status(active))

    def open_session(self, call: Call) -> Response:
        """Open another session after one that was aborted."""
        days = call.fields_among("session", "days")
        return self._session(call, "open session", lambda desk, active: desk.open(active, **days), 201)

    def close_session(self, call: Call) -> Response:
        """Let the shufflers begin: the session takes no more reports."""
        return self._session(call, "close session", lambda desk, active: desk.close(active), 202)

    def abort_session(self, call: Call) -> Response:
        """Give a session up; its respondents can take part in the next one."""
        reason = "given up by the operator of the collection"
        return self._session(call, "abort session", lambda desk, active: desk.abort(active, reason))

    def _session(self, call: Call, action: str, act: Callable[[Any, Active], Any], status: int = 200) -> Response:
        active = self._collector.find(call.id)
        desk = self._collector.shuffle.of(active)
        act(desk, active)
        self._noted(call, action, active.id)
        return json_response(desk.status(active), status)

    def _answers(self, call: Call) -> Any:
        return self._collector.answers(call.id, call.level, call.query.get("post"))

    def ask(self, call: Call) -> Response:
        """A query of a question's task."""
        given = call.given
        question, query = call.path["question"], call.path["query"]
        # The route has authorised the collection in the path only; the second one needs its own check.
        if "other" in given and not call.bearer.may(READ, given["other"]):
            raise Problem("forbidden", "the token does not allow reading the other collection")
        return json_response(self._collector.ask(call.id, question, query, given, call.level))

    def _joint(self, call: Call, query: str) -> dict[str, Any]:
        return self._collector.joint(call.id, query, call.given, call.level)

    def joint(self, call: Call) -> Response:
        """A query about questions that were asked together."""
        return json_response(self._joint(call, call.path["query"]))

    def synthetic_csv(self, call: Call) -> Response:
        """Synthetic records as CSV."""
        data = records_csv(self._joint(call, "synthetic")).encode()
        return _download(data, "text/csv; charset=utf-8", self._file(call, "synthetic", "csv"))

    def answers(self, call: Call) -> Response:
        """Answers as JSON."""
        named = disposition(self._file(call, "answers", "json"), "inline")
        return json_response(self._answers(call).to_json(), headers=named)

    def integrity(self, call: Call) -> Response:
        """Whether reports look forged, and how far forged ones could push."""
        return json_response(self._collector.integrity(call.id))

    def answers_csv(self, call: Call) -> Response:
        """Answers as CSV."""
        data = to_csv(self._answers(call)).encode()
        return _download(data, "text/csv; charset=utf-8", self._file(call, "answers", "csv"))

    def answers_parquet(self, call: Call) -> Response:
        """Answers as Parquet."""
        data = to_parquet(self._answers(call))
        return _download(data, "application/vnd.apache.parquet", self._file(call, "answers", "parquet"))

    def _series(self, call: Call) -> dict[str, Any]:
        return self._collector.series(call.id, SeriesRequest.from_query(call.given, call.level))

    def series(self, call: Call) -> Response:
        """The series of a collection with windows."""
        return json_response(self._series(call), headers=disposition(self._file(call, "series", "json"), "inline"))

    def series_csv(self, call: Call) -> Response:
        """The series as CSV."""
        data = series_csv(self._series(call)).encode()
        return _download(data, "text/csv; charset=utf-8", self._file(call, "series", "csv"))

    def _file(self, call: Call, what: str, end: str) -> str:
        return file_name(self._collector.find(call.id).collection.title, call.id, what, end)

    def invite(self, call: Call) -> Response:
        """Make single-use invitations."""
        count = call.fields_among("invitations", "count").get("count", 1)
        invitations = self._collector.invite(call.id, count)
        self._noted(call, f"invite {len(invitations)}", call.id)
        return json_response({"invitations": invitations}, 201)

    def token_numbers(self, call: Call) -> Response:
        """How many anonymous tokens were signed, and how many came with reports."""
        return json_response(self._collector.issuing.numbers(self._collector.find(call.id)))

    def origins(self, call: Call) -> Response:
        """The sites that may show a collection or send reports to it."""
        return json_response(self._collector.allowed(call.id))

    def allow(self, call: Call) -> Response:
        """Allow sites beside those of the document, which stays as it is."""
        wanted = call.fields_among("origins", "origins").get("origins")
        return json_response(self._collector.allow(call.bearer, call.id, wanted))

    def import_tally(self, call: Call) -> Response:
        """Count a tally that was made elsewhere."""
        if not isinstance(call.body, bytes):
            raise Problem("malformed", "the body must be a .tally file")
        found = self._collector.import_tally(call.id, call.body)
        if not found["duplicate"]:
            self._noted(call, f"import {found['reports']}", call.id)
        return json_response(found, 200 if found["duplicate"] else 201)

    def plan(self, call: Call) -> Response:
        """How precise the answers of a draft would be."""
        # Either a bare draft, or {"draft": ..., "respondents": n} to try other numbers of respondents.
        fields = call.fields
        inner = fields.get("draft")
        draft = cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields
        if draft is not fields and "respondents" in fields:
            draft = draft | {"respondents": fields["respondents"]}
        try:
            return json_response({"questions": self._collector.planner.predict(draft)})
        except TacitError as error:
            problem = problem_of(error)
            # While somebody still writes a draft, that it cannot exist yet is an answer, not a failed request.
            if problem.status != 422 or call.query.get("unfinished") != "true":
                raise
            return json_response({"questions": [], "problem": problem.to_json()})

    def list_tokens(self, call: Call) -> Response:
        """What is kept of every token, or of those of the token's team."""
        return json_response({"tokens": [_token(record) for record in self._collector.access.tokens(call.bearer)]})

    def create_token(self, call: Call) -> Response:
        """Make a token; it is shown this once."""
        options = dict(call.fields_among("token", "scope", "collection", "label", "days", "team"))
        token, record = self._collector.access.create(options.pop("scope", None), **options, by=call.bearer)
        self._noted(call, f"create token {record.scope}", token_id(record))
        return json_response(_token(record) | {"token": token}, 201)

    def rotate_token(self, call: Call) -> Response:
        """Replace a token by a fresh one."""
        token, record = self._collector.access.rotate(call.id, call.bearer)
        self._noted(call, "rotate token", token_id(record))
        return json_response(_token(record) | {"token": token}, 201)

    def revoke_token(self, call: Call) -> Response:
        """End a token."""
        self._collector.access.revoke(call.id, call.bearer)
        self._noted(call, "revoke token", call.id)
        return Response(status_code=204)

    def audit(self, call: Call) -> Response:
        """The latest actions of operators."""
        entries = self._collector.access.audit_log(call.bearer, MOST_AUDIT)
        return json_response({"entries": [dict(vars(entry)) for entry in entries]})


def _token(record: TokenRecord) -> dict[str, Any]:
    return {
        "id": token_id(record),
        "scope": record.scope,
        "collection": record.collection,
        "label": record.label,
        "expires": record.expires,
        "team": record.team,
    }


def _download(data: bytes, media_type: str, name: str) -> Response:
    return Response(data, 200, {"cache-control": "no-store"} | disposition(name), media_type)
