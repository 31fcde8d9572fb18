"""POST /c/{id}/tokens: one blind signature for one invitation, or for whoever holds an operator's token."""

from typing import Any, cast

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tacit.collector.collections.access import REPORT
from tacit.collector.collections.active import Active
from tacit.collector.service import Collector
from tacit.hosting.limits import Limits, RateLimit
from tacit.hosting.problems import Problem
from tacit.hosting.responses import PREFLIGHT, cors_headers, json_response, problem_response, read_body

MOST_BYTES = 4096
"""A blinded message in JSON has about 530 bytes."""
COST = 20
"""Of a request in the limit of its address: a signature takes milliseconds, and whoever asks again gets it again."""


class TokenRoutes:
    """Where anonymous tokens are signed. No request here says anything of a report."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        """Serve a collector within limits."""
        self._collector, self._rate = collector, RateLimit(limits, collector.clock.seconds)

    def routes(self) -> list[BaseRoute]:
        """The Starlette routes."""
        return [Route("/c/{id}/tokens", self.sign, methods=["POST", "OPTIONS"])]

    async def sign(self, request: Request) -> Response:
        """A blind signature; refusals too can be read by pages that may send reports."""
        active = await run_in_threadpool(self._collector.ingest.find, request.path_params["id"])
        origin = request.headers.get("origin", "").encode("latin-1")
        cors = {key.decode(): value.decode("latin-1") for key, value in self._cors(active, origin)}
        if request.method == "OPTIONS":
            own = {key.decode(): value.decode("latin-1") for key, value in PREFLIGHT}
            return Response(status_code=204, headers=own | cors)
        try:
            signature, again = await self._signed(request, active)
        except Problem as problem:
            response = problem_response(problem)
            response.headers.update(cors)
            return response
        headers = {"cache-control": "no-store"} | cors
        return json_response({"signature": signature}, 200 if again else 201, headers)

    def _cors(self, active: Active, origin: bytes) -> list[tuple[bytes, bytes]]:
        return cors_headers(origin, self._collector.origins.of(active))

    async def _signed(self, request: Request, active: Active) -> tuple[str, bool]:
        invitation = request.headers.get("tacit-invitation", "")
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        trusted = kind.lower() == "bearer" and not invitation
        if not self._rate.allows(request.client.host if request.client else "", 1 if trusted else COST):
            raise Problem("rate_limited", "too many requests from one address", retry_seconds=1)
        fields = _fields(await read_body(request.receive))
        if trusted:
            await run_in_threadpool(self._collector.access.check, token.strip(), REPORT, active.id)
        return await run_in_threadpool(
            lambda: self._collector.issuing.sign(active, fields.get("blinded"), invitation, trusted=trusted)
        )


def _fields(body: bytes) -> dict[str, Any]:
    if len(body) > MOST_BYTES:
        raise Problem("too_large", f"a request for a token may have at most {MOST_BYTES} bytes")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict) or set(cast("dict[str, Any]", value)) != {"blinded"}:
        raise Problem("malformed", "tokens: the body must be a JSON object with the field blinded alone")
    return cast("dict[str, Any]", value)
