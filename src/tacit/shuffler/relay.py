"""The relay: takes encapsulated requests from respondents and passes them to gateways, which never learn from whom.

`POST /r/{k}` sends the body, and nothing else of the request, to the k-th gateway (from 1), and returns the gateway's
response. The relay sees addresses, sizes and times; what is inside is sealed for the gateway. It keeps nothing.
Relay and gateway must have different operators: one who runs both knows who sent what.
"""

import http.client
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from queue import Empty, LifoQueue
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tacit.errors import InvalidSpec, StorageUnavailable
from tacit.hosting.limits import Limits, RateLimit
from tacit.hosting.logs import set_up_logs
from tacit.hosting.problems import Problem
from tacit.hosting.reading import Reading
from tacit.hosting.serving import server_config, server_url
from tacit.shuffle.crypto.ohttp import REQUEST_TYPE, RESPONSE_TYPE
from tacit.shuffle.protocol.relayed import RESPONSE_BYTES
from tacit.shuffler.http import ANYBODY, MAX_UPLOAD_BYTES, readable

_TIMEOUT_SECONDS = 30.0
_PREFLIGHT = {
    **ANYBODY,
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": "Content-Type",
    "access-control-max-age": "86400",
}


class Target:
    """A gateway, and connections to it that are kept open: all respondents share them."""

    def __init__(self, url: str) -> None:
        """Forward to the gateway of a shuffler at a base address."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
            raise InvalidSpec(f"relay: {url!r} must be the address of a shuffler, such as https://shuffler.example")
        self._parts, self._path = parts, parts.path.rstrip("/") + "/gateway"
        self._idle: LifoQueue[http.client.HTTPConnection] = LifoQueue()

    def forward(self, body: bytes) -> bytes | None:
        """The gateway's response to a body, or None if there is none of the right size."""
        for _ in range(2):
            try:
                connection, is_fresh = self._idle.get_nowait(), False
            except Empty:
                connection, is_fresh = self._connect(), True
            try:
                connection.request("POST", self._path, body, {"Content-Type": REQUEST_TYPE})
                response = connection.getresponse()
                content = response.read(RESPONSE_BYTES + 1)
            except (OSError, http.client.HTTPException):
                connection.close()
                if is_fresh:
                    return None
                # A connection that was kept may have been closed by the other side meanwhile; a new one tells.
                continue
            # Whatever else a gateway answers could tell one respondent from another, and is not passed on.
            if response.status != 200 or len(content) != RESPONSE_BYTES:
                connection.close()
                return None
            self._idle.put(connection)
            return content
        return None

    def close(self) -> None:
        """Close the connections that are kept."""
        while not self._idle.empty():
            self._idle.get().close()

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(self._parts.netloc, timeout=_TIMEOUT_SECONDS)


def serve_relay(
    targets: Sequence[str], host: str, port: int, *, rate: float, trusted_proxies: str, announce: Callable[[str], Any]
) -> None:
    """Relay until stopped."""
    set_up_logs()
    limits = Limits(body_bytes=MAX_UPLOAD_BYTES, requests_per_second=rate, burst=max(1, int(10 * rate)))
    app = RelayApp(targets, limits)
    server = uvicorn.Server(server_config(app, host, port, limits, trusted_proxies=trusted_proxies))
    announce(f"tacit relays at {server_url(host, port)} to {len(targets)} shufflers")
    server.run()
    if not server.started:
        raise StorageUnavailable(f"relay: could not start on {host}:{port}")


class RelayApp:
    """The ASGI application of a relay."""

    def __init__(self, targets: Sequence[str], limits: Limits | None = None) -> None:
        """Forward to shufflers, by their base addresses, in the order of the session document."""
        bounds = limits or Limits(body_bytes=MAX_UPLOAD_BYTES)
        self._targets: list[Target] = [Target(url) for url in targets]
        self._rate, self._reading = RateLimit(bounds), Reading(bounds)
        routes = [Route("/r/{k:int}", self.forward, methods=["POST", "OPTIONS"]), Route("/healthz", self.health)]
        self._site = Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        del app
        yield
        for target in self._targets:
            target.close()

    async def health(self, request: Request) -> Response:
        """Liveness."""
        del request
        return Response("ok", media_type="text/plain")

    async def forward(self, request: Request) -> Response:
        """Pass a body on, and the response back."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        if not self._rate.allows(request.client.host if request.client else ""):
            return readable(Problem("rate_limited", "too many requests from one address", retry_seconds=1))
        number = int(request.path_params["k"])
        if not 1 <= number <= len(self._targets):
            return readable(Problem("not_found", "this relay has no such gateway"))
        try:
            body = await request.body()
        except Problem as problem:
            return readable(problem)
        content = await run_in_threadpool(self._targets[number - 1].forward, body)
        if content is None:
            return readable(Problem("unavailable", "the gateway does not answer; send again", retry_seconds=5))
        return Response(content, 200, ANYBODY, RESPONSE_TYPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] != "http":
            await self._site(scope, receive, send)
            return
        upload = self._reading.upload(receive, scope["headers"])
        try:
            await self._site(scope, upload, send)
        finally:
            upload.close()
