"""The application: the report route in front, everything else behind it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from time import monotonic
from typing import cast
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.collector.http_api import Api
from tacit.collector.http_common import (
    PREFLIGHT,
    SECURITY,
    closes,
    cors_headers,
    is_known,
    json_response,
    problem_response,
)
from tacit.collector.http_query import Queries
from tacit.collector.http_reports import ReportRoute
from tacit.collector.limits import Limits
from tacit.collector.openapi import openapi
from tacit.collector.problems import Problem, as_problem
from tacit.collector.reading import Reading, Upload
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
        # A thread of its own, so that nothing that runs elsewhere delays the answer whether the store can be read.
        self._thread = ThreadPoolExecutor(1, "tacit-ready")

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
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._collector.readiness.check)
        return json_response({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Counters for Prometheus."""
        del request
        segments, size = await run_in_threadpool(self._collector.files.usage)
        gauges = {
            "tacit_batches_waiting": float(self._collector.writer.waiting),
            "tacit_jobs_running": float(self._collector.work.running),
            "tacit_jobs_waiting": float(self._collector.work.waiting),
            "tacit_damaged_collections": float(self._collector.damage.number),
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
        etag = f'"{active.id}"'
        headers = {"cache-control": f"public, max-age={_YEAR}, immutable", "etag": etag} | _text(cors)
        if is_known(request.headers, etag):
            return Response(status_code=304, headers=headers)
        return Response(active.document, 200, headers, "application/json")


def _text(headers: "list[tuple[bytes, bytes]]") -> dict[str, str]:
    return {key.decode(): value.decode("latin-1") for key, value in headers}


async def _problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        request.scope[_ANSWERED] = error
        return problem_response(as_problem(error))
    path: str = request.scope["path"]
    if error.status_code == 404 and path.endswith("/") and _methods(request, path.rstrip("/")):
        # A path alone, since whoever asks chooses the Host header.
        return RedirectResponse(quote(path.rstrip("/")), status_code=307)
    kind = _OF_STATUS.get(error.status_code, "malformed")
    response = problem_response(Problem(kind, "there is nothing at this address for this method"))
    if error.status_code == 405:
        response.headers["allow"] = ", ".join(sorted(_methods(request, path)))
    return response


def _methods(request: Request, path: str) -> set[str]:
    """The methods that some route takes at a path; Starlette itself looks at the first route that fits alone."""
    scope = {**request.scope, "path": path}
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    return {method for route in routes if route.matches(scope)[0] != Match.NONE for method in route.methods or ()}


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
        self.tables, self.reading = Tables(collector), Reading(bounds)
        api = [*Api(collector).routes(), *Queries(collector, self.tables).routes()]
        routes = [*Public(collector).routes(), *api, *(extra or [])]
        handler = cast("Callable[[Request, Exception], Awaitable[Response]]", _problem)
        site = Starlette(
            routes=routes,
            exception_handlers=dict.fromkeys((HTTPException, Problem, Exception), handler),
            lifespan=self._lifespan,
        )
        site.router.redirect_slashes = False  # It would redirect to wherever the Host header says.
        self._site: ASGIApp = site

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
            upload = self.reading.upload(receive, scope["headers"])
            try:
                await self._request(scope, upload, send)
            finally:
                upload.close()
        elif scope["type"] == "lifespan":
            await self._site(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _request(self, scope: Scope, upload: Upload, send: Send) -> None:
        async def after_body(message: Message) -> None:
            """Send what was answered once the body is read, also where the answer did not need it."""
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
