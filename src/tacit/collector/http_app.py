"""The application: the report route in front, everything else behind it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import cast

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.collector.http_api import Api
from tacit.collector.http_common import (
    PREFLIGHT,
    SECURITY,
    cors_headers,
    json_response,
    problem_response,
)
from tacit.collector.http_query import Queries
from tacit.collector.http_reports import ReportRoute
from tacit.collector.limits import Limits
from tacit.collector.openapi import openapi
from tacit.collector.problems import Problem, as_problem
from tacit.collector.service import Collector
from tacit.collector.tables import Tables

_OF_STATUS = {404: "not_found", 405: "method_not_allowed"}
_YEAR = 31_536_000
_ANSWERED = "tacit.answered"
"""Where a request keeps the failure that it was answered with."""


class Public:
    """Routes that need no token."""

    def __init__(self, collector: Collector) -> None:
        """Speak for a collector."""
        self._collector = collector

    def routes(self) -> list[BaseRoute]:
        """Health, metrics, the API's description, and documents."""
        return [
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.description),
            Route("/c/{id}/document.json", self.document, methods=["GET", "OPTIONS"]),
        ]

    async def health(self, request: Request) -> Response:
        """The process lives."""
        del request
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """The store can be read and, as far as is known, written."""
        del request
        await run_in_threadpool(self._collector.readiness.check)
        return json_response({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Counters for Prometheus."""
        del request
        segments, size = await run_in_threadpool(self._collector.files.usage)
        gauges = {
            "tacit_batches_waiting": float(self._collector.writer.waiting),
            "tacit_segments": float(segments),
            "tacit_segment_bytes": float(size),
            "tacit_uptime_seconds": round(monotonic() - self._collector.started, 3),
        }
        return Response(self._collector.metrics.text(gauges), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def description(self, request: Request) -> Response:
        """The OpenAPI document."""
        del request
        return json_response(openapi(), headers={"access-control-allow-origin": "*"})

    async def document(self, request: Request) -> Response:
        """The canonical document of a published collection; it never changes, so everybody may keep it."""
        active = await run_in_threadpool(self._collector.ingest.find, request.path_params["id"])
        origin = request.headers.get("origin", "").encode("latin-1")
        cors = cors_headers(origin, active.collection.origins)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_text([*PREFLIGHT, *cors]))
        headers = {"cache-control": f"public, max-age={_YEAR}, immutable", "etag": f'"{active.id}"'}
        return Response(active.document, 200, headers | _text(cors), "application/json")


def _text(headers: "list[tuple[bytes, bytes]]") -> dict[str, str]:
    return {key.decode(): value.decode("latin-1") for key, value in headers}


async def _problem(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        kind = _OF_STATUS.get(error.status_code, "malformed")
        return problem_response(Problem(kind, "there is nothing at this address for this method"))
    request.scope[_ANSWERED] = error
    return problem_response(as_problem(error))


Pages = Callable[..., "list[BaseRoute]"]
"""Makes the routes of pages from a collector and its catalogue; the command line passes those of the dashboard."""


class App:
    """The ASGI application. Reports go straight to their route; the rest passes through Starlette."""

    def __init__(
        self, collector: Collector, limits: Limits | None = None, extra: "list[BaseRoute] | None" = None
    ) -> None:
        """Serve a collector; `extra` are the routes of pages."""
        bounds = limits or Limits()
        self.collector, self.reports = collector, ReportRoute(collector, bounds)
        self.tables = Tables(collector)
        api = [*Api(collector, bounds).routes(), *Queries(collector, bounds, self.tables).routes()]
        routes = [*Public(collector).routes(), *api, *(extra or [])]
        handler = cast("Callable[[Request, Exception], Awaitable[Response]]", _problem)
        self._site: ASGIApp = Starlette(
            routes=routes,
            exception_handlers=dict.fromkeys((HTTPException, Problem, Exception), handler),
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        """Folding runs while the server does; on the way out everything acknowledged is settled."""
        del app
        await asyncio.to_thread(self.collector.start)
        try:
            yield
        finally:
            await asyncio.to_thread(self.collector.stop)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the application."""
        if scope["type"] == "http":
            path: str = scope["path"]
            if path.endswith("/reports") and path.startswith("/c/"):
                await self.reports(scope, receive, send, path[3:-8])
                return
            await self._page(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._site(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

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
            # Starlette raises again what `_problem` has answered and noted.
            if scope.get(_ANSWERED) is error:
                return
            problem = as_problem(error)
            if not started:
                await problem_response(problem)(scope, receive, secured)


def _labels(scope: Scope, status: int) -> str:
    """Only the first part of the path: ids do not belong into metrics."""
    route = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
    known = route if route in _ROUTES else "other"
    return f'route="/{known}",status="{status}"'


_ROUTES = {"", "api", "c", "dashboard", "healthz", "js", "metrics", "openapi.json", "readyz", "static"}
