"""Routes of shuffled collections that need no token: sessions, transcripts, and letters of shufflers."""

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tacit.collector.collections.active import Active
from tacit.collector.service import Collector
from tacit.hosting.problems import Problem
from tacit.hosting.responses import PREFLIGHT, cors_headers, json_response

MESSAGES = "/session/messages"
"""How the address ends that shufflers write to."""


class ShuffledRoutes:
    """What respondents and shufflers ask of a collector."""

    def __init__(self, collector: Collector) -> None:
        """Serve a collector."""
        self._collector = collector

    def routes(self) -> list[BaseRoute]:
        """The Starlette routes."""
        return [
            Route("/c/{id}/session.json", self.session, methods=["GET", "OPTIONS"]),
            Route("/c/{id}/transcript.json", self.transcript, methods=["GET", "OPTIONS"]),
            Route(f"/c/{{id}}{MESSAGES}", self.take, methods=["POST"]),
        ]

    async def session(self, request: Request) -> Response:
        """The session that takes reports now, with the signatures of all parties."""
        return await self._shown(request, lambda active: self._collector.shuffle.of(active).session_json(active))

    async def transcript(self, request: Request) -> Response:
        """What everybody may check about a session after its end: the latest, or the one that `session` names."""
        session = request.query_params.get("session", "")
        return await self._shown(request, lambda active: self._collector.shuffle.of(active).transcript(active, session))

    async def _shown(self, request: Request, find: Callable[[Active], dict[str, Any]]) -> Response:
        active = await self._find(request)
        origin = request.headers.get("origin", "").encode("latin-1")
        cors = cors_headers(origin, self._collector.origins.of(active))
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_text([*PREFLIGHT, *cors]))
        return json_response(await run_in_threadpool(find, active), headers=_text(cors))

    async def take(self, request: Request) -> Response:
        """A letter of a shuffler. It is known by its signature, before its body is read."""
        active = await self._find(request)
        desk = await run_in_threadpool(self._collector.shuffle.of, active)
        # As a stream: what is not signed by a shuffler of the session is refused before its body is read.
        reply = await desk.take(active.id, request.stream())
        return Response(reply.detail, reply.status, media_type="text/plain")

    async def _find(self, request: Request) -> Active:
        active = await run_in_threadpool(self._collector.ingest.find, request.path_params["id"])
        if active.collection.shuffle is None:
            raise Problem("not_found", "the collection is not shuffled, so it has no sessions")
        return active


def _text(headers: "list[tuple[bytes, bytes]]") -> dict[str, str]:
    return {key.decode(): value.decode("latin-1") for key, value in headers}
