"""The ASGI application: the report route is dispatched directly, everything else goes through Starlette."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from hmac import compare_digest
from threading import Lock
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.collector.collections.origins import refuse_foreign
from tacit.collector.http.api import Api
from tacit.collector.http.openapi import openapi
from tacit.collector.http.query import Queries
from tacit.collector.http.reports import ReportRoute
from tacit.collector.http.shuffled import MESSAGES, ShuffledRoutes
from tacit.collector.http.tokens import TokenRoutes
from tacit.collector.service import Collector
from tacit.hosting.exposition import METRICS_TYPE
from tacit.hosting.limits import Limits
from tacit.hosting.problems import Problem, as_problem
from tacit.hosting.reading import Reading, RequestBody
from tacit.hosting.responses import (
    PREFLIGHT,
    SECURITY,
    closes,
    cors_headers,
    is_known,
    json_response,
    problem_response,
)

if TYPE_CHECKING:
    from tacit.collector.tables.tables import Tables

_OF_STATUS = {404: "not_found", 405: "method_not_allowed"}
_YEAR = 31_536_000
MOST_LETTER_BYTES, LETTER_SECONDS = 512 << 20, 600.0
"""Limits of one letter of a shuffler."""
_ANSWERED = "tacit.answered"
"""Key in the ASGI scope under which the exception that a request was answered with is noted."""


class PublicRoutes:
    """Routes that need no token of the collector: health, readiness, metrics, OpenAPI, and documents."""

    def __init__(self, collector: Collector, metrics_token: str = "") -> None:
        """Serve a collector; whoever reads its metrics has to show the token, if there is one."""
        self._collector, self._metrics_token = collector, metrics_token
        # A thread of its own: the readiness check must not wait behind other work when the server is busy.
        self._thread = ThreadPoolExecutor(1, "tacit-ready")

    def routes(self) -> list[BaseRoute]:
        """The Starlette routes."""
        return [
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.description),
            Route("/c/{id}/document.json", self.document, methods=["GET", "OPTIONS"]),
        ]

    async def health(self, request: Request) -> Response:
        """Liveness: the event loop runs; says nothing about the store."""
        del request
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Readiness: the store can be read and, as far as is known, written; 503 otherwise."""
        del request
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._collector.readiness.check)
        return json_response({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Counters for Prometheus."""
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._metrics_token and not compare_digest(shown.encode(), self._metrics_token.encode()):
            raise Problem("unauthorized", "send the token of TACIT_METRICS_TOKEN as 'Authorization: Bearer …'")
        return Response(await run_in_threadpool(self._collector.exposition), media_type=METRICS_TYPE)

    async def description(self, request: Request) -> Response:
        """The OpenAPI document."""
        del request
        return json_response(openapi(), headers={"access-control-allow-origin": "*"})

    async def document(self, request: Request) -> Response:
        """The canonical document of a published collection; immutable, so that it may be cached for ever."""
        active = await run_in_threadpool(self._collector.ingest.find, request.path_params["id"])
        origin, origins = request.headers.get("origin", ""), self._collector.origins.of(active)
        cors = cors_headers(origin.encode("latin-1"), origins)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_text([*PREFLIGHT, *cors]))
        try:
            refuse_foreign(origin, request.headers.get("host", ""), origins)
        except Problem as problem:
            return _readable(problem)
        # The id is the digest of the document, and so a perfect validator.
        etag = f'"{active.id}"'
        headers = {"cache-control": f"public, max-age={_YEAR}, immutable", "etag": etag} | _text(cors)
        if is_known(request.headers, etag):
            return Response(status_code=304, headers=headers)
        return Response(active.document, 200, headers, "application/json")


def _readable(problem: Problem) -> Response:
    """A refusal that every site may read: a script would otherwise not learn why it was refused."""
    response = problem_response(problem)
    response.headers.update({"access-control-allow-origin": "*", "vary": "Origin"})
    return response


def _text(headers: "list[tuple[bytes, bytes]]") -> dict[str, str]:
    return {key.decode(): value.decode("latin-1") for key, value in headers}


async def _problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        request.scope[_ANSWERED] = error
        return problem_response(as_problem(error))
    path: str = request.scope["path"]
    if error.status_code == 404 and path.endswith("/") and _methods(request, path.rstrip("/")):
        # A relative redirect: an absolute one would contain the Host header, which the client chooses.
        return RedirectResponse(quote(path.rstrip("/")), status_code=307)
    kind = _OF_STATUS.get(error.status_code, "malformed")
    response = problem_response(Problem(kind, "there is nothing at this address for this method"))
    if error.status_code == 405:
        response.headers["allow"] = ", ".join(sorted(_methods(request, path)))
    return response


def _methods(request: Request, path: str) -> set[str]:
    """All methods that some route allows at a path; Starlette's own 405 lists those of the first match only."""
    scope = {**request.scope, "path": path}
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    return {method for route in routes if route.matches(scope)[0] != Match.NONE for method in route.methods or ()}


Pages = Callable[..., "list[BaseRoute]"]
"""A factory of page routes from a collector and its catalogue; the command line passes the dashboard's."""


class App:
    """The ASGI application."""

    def __init__(
        self, collector: Collector, limits: Limits | None = None, extra: "list[BaseRoute] | None" = None,
        metrics_token: str = "",
    ) -> None:  # fmt: skip
        """Serve a collector; `extra` are the routes of the dashboard's pages."""
        bounds = limits or Limits()
        self.collector, self.reports = collector, ReportRoute(collector, bounds)
        self.reading = Reading(bounds)
        # Letters of shufflers are as long as all reports together. Strangers cannot send such: the signature of a
        # letter stands in front of it, and is verified before anything is held.
        self._letters = Reading(replace(bounds, body_bytes=MOST_LETTER_BYTES, body_seconds=LETTER_SECONDS))
        self._tables: Tables | None = None
        self._lock = Lock()
        api = [*Api(collector).routes(), *Queries(collector, lambda: self.tables).routes()]
        routes = [
            *PublicRoutes(collector, metrics_token).routes(),
            *ShuffledRoutes(collector).routes(),
            *TokenRoutes(collector, bounds).routes(),
            *api,
            *(extra or []),
        ]
        handler = cast("Callable[[Request, Exception], Awaitable[Response]]", _problem)
        site = Starlette(
            routes=routes,
            exception_handlers=dict.fromkeys((HTTPException, Problem, Exception), handler),
            lifespan=self._lifespan,
        )
        # Starlette would redirect to the host of the Host header, which the client chooses (open redirect).
        site.router.redirect_slashes = False
        self._site: ASGIApp = site

    @property
    def tables(self) -> "Tables":
        """The SQL tables of the collector; created on first use, because they import the SQL engine."""
        from tacit.collector.tables.tables import Tables

        # Locked, as requests come from several threads and there must be only one cache of segments.
        with self._lock:
            self._tables = self._tables or Tables(self.collector)
            return self._tables

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        """ASGI lifespan: start background work, and stop it cleanly (see `Collector.stop`) on shutdown."""
        del app
        await asyncio.to_thread(self.collector.start)
        try:
            yield
        finally:
            await asyncio.to_thread(self.collector.stop)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point: HTTP requests and lifespan; websockets are closed."""
        if scope["type"] == "http":
            reading = self._letters if scope["path"].endswith(MESSAGES) else self.reading
            upload = reading.upload(receive, scope["headers"])
            try:
                await self._request(scope, upload, send)
            finally:
                upload.close()
        elif scope["type"] == "lifespan":
            await self._site(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _request(self, scope: Scope, upload: RequestBody, send: Send) -> None:
        async def after_body(message: Message) -> None:
            """Delay the response until the rest of the body has been read or given up (see `RequestBody.drain`)."""
            if message["type"] == "http.response.start" and not upload.is_whole and not await upload.drain():
                message["headers"] = closes(message.get("headers", []))
            await send(message)

        path: str = scope["path"]
        if path.endswith("/reports") and path.startswith("/c/"):
            await self.reports(scope, upload, after_body, path[3:-8])
        else:
            await self._page(scope, upload, after_body)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def secured(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = message["headers"] = list(message.get("headers", []))
                present = {key.lower() for key, _ in headers}
                headers.extend(pair for pair in SECURITY if pair[0] not in present)
                self.collector.metrics.count("tacit_requests_total", _labels(scope, message["status"]))
            await send(message)

        try:
            await self._site(scope, receive, secured)
        except Exception as error:
            # Starlette's ServerErrorMiddleware re-raises exceptions that a handler has answered.
            if scope.get(_ANSWERED) is error:
                return
            # Once the response has begun it cannot be replaced: the server then closes the connection.
            problem = as_problem(error)
            if not started:
                await problem_response(problem)(scope, receive, secured)


def _labels(scope: Scope, status: int) -> str:
    """Labels of a request metric: only the first path segment, as ids would leak, and grow the number of series."""
    route = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
    known = route if route in _ROUTES else "other"
    return f'route="/{known}",status="{status}"'


_ROUTES = {"", "api", "c", "dashboard", "healthz", "js", "metrics", "openapi.json", "readyz", "static"}
