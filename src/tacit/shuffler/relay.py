"""The relay: takes encapsulated requests from respondents and passes them to gateways, which never learn from whom.

    POST /r        an upload: its parts, packed, one for each gateway in the order of the session document. The reply
                   has a response of each; 503, with zeros in its place, if one of them did not answer
    POST /r/{k}    a question to the k-th gateway (from 1), or a single part
    GET  /healthz

Bodies are passed on, and nothing else of a request. The relay sees addresses, sizes and times; what is inside is sealed
for the gateway. It keeps nothing. Parts of several respondents that wait for the same gateway travel together.
Relay and gateway must have different operators: one who runs both knows who sent what.
"""

import asyncio
import http.client
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tacit.errors import InvalidSpec, ReportRejected, StorageUnavailable
from tacit.hosting.limits import Limits, RateLimit
from tacit.hosting.logs import set_up_logs
from tacit.hosting.problems import Problem
from tacit.hosting.reading import Reading
from tacit.hosting.serving import listen, server_config, server_url
from tacit.hosting.tls import TlsFiles, trusting
from tacit.shuffle.crypto.ohttp import REQUEST_TYPE, RESPONSE_TYPE
from tacit.shuffle.protocol.relayed import ANSWER_BYTES, NO_RESPONSE, RESPONSE_BYTES, pack, responses, unpack
from tacit.shuffler.http import ANYBODY, MAX_PACKED, MAX_UPLOAD_BYTES, PACKED_TYPE, answer_problem, readable
from tacit.shuffler.post import connect

MAX_PARTS = 9
"""Shufflers of a session."""
_TIMEOUT_SECONDS = 30.0
_LANES = 4
"""Requests with uploads that are on their way to one gateway at a time."""
_MOST_WAITING = 4096
_PREFLIGHT = {
    **ANYBODY,
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": "Content-Type",
    "access-control-max-age": "86400",
}


class Target:
    """A gateway, and connections to it that are kept open: all respondents share them."""

    def __init__(self, url: str, trust: ssl.SSLContext | None = None) -> None:
        """Forward to the gateway of a shuffler at a base address; `trust` says whose certificates are believed."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
            raise InvalidSpec(f"relay: {url!r} must be the address of a shuffler, such as https://shuffler.example")
        self._parts, self._path, self._trust = parts, parts.path.rstrip("/") + "/gateway", trust
        self._idle: LifoQueue[http.client.HTTPConnection] = LifoQueue()
        self._waiting: deque[tuple[bytes, asyncio.Future[bytes | None]]] = deque()
        # Tasks that nobody else holds would be collected as garbage.
        self._lanes: set[asyncio.Task[None]] = set()
        self._busy = 0

    async def upload(self, part: bytes) -> bytes | None:
        """The gateway's response to a part of an upload, or None if there is none."""
        if len(self._waiting) >= _MOST_WAITING:
            return None
        told: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((part, told))
        # What comes while a request is on its way travels together in the next one, unless it is too much for one.
        if not self._busy or (len(self._waiting) >= MAX_PACKED and self._busy < _LANES):
            self._busy += 1
            lane = asyncio.create_task(self._carry())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return await told

    async def _carry(self) -> None:
        """Send what waits, many parts in one request, until nothing does."""
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_PACKED))]
                body, size = pack([part for part, _ in group]), len(group) * RESPONSE_BYTES
                content = await run_in_threadpool(self._exchange, "/uploads", body, PACKED_TYPE, (size,))
                answers = responses(content) if content is not None else [None] * len(group)
                for (_, told), answer in zip(group, answers, strict=True):
                    # Whoever has left meanwhile sends the same part again.
                    if not told.done():
                        told.set_result(answer)
        finally:
            # In the step in which nothing was found waiting: what is appended from now on starts a lane of its own.
            self._busy -= 1

    def forward(self, body: bytes) -> bytes | None:
        """The gateway's response to a request, or None if there is none of a right size."""
        return self._exchange("", body, REQUEST_TYPE, (RESPONSE_BYTES, ANSWER_BYTES))

    def _exchange(self, path: str, body: bytes, media_type: str, sizes: Sequence[int]) -> bytes | None:
        for _ in range(2):
            try:
                connection, is_fresh = self._idle.get_nowait(), False
            except Empty:
                connection, is_fresh = connect(self._parts, _TIMEOUT_SECONDS, self._trust), True
            try:
                connection.request("POST", self._path + path, body, {"Content-Type": media_type})
                response = connection.getresponse()
                content = response.read(max(sizes) + 1)
            except (OSError, http.client.HTTPException):
                connection.close()
                if is_fresh:
                    return None
                # A connection that was kept may have been closed by the other side meanwhile; a new one tells.
                continue
            # Whatever else a gateway answers could tell one respondent from another, and is not passed on.
            if response.status != 200 or len(content) not in sizes:
                connection.close()
                return None
            self._idle.put(connection)
            return content
        return None

    def close(self) -> None:
        """Close the connections that are kept."""
        while not self._idle.empty():
            self._idle.get().close()


@dataclass(frozen=True)
class RelaySettings:
    """Where a relay listens, and whom it forwards to."""

    targets: tuple[str, ...]
    """Addresses of shufflers, in the order of the session document."""
    host: str = "127.0.0.1"
    port: int = 8200
    rate: float = 50.0
    """Requests per second of one address; 0 for no limit."""
    trusted_proxies: str = ""
    tls: TlsFiles | None = None
    ca_file: Path | None = None
    """Whose certificates of shufflers are believed; those that the system believes if there is none."""


def serve_relay(settings: RelaySettings, announce: Callable[[str], Any]) -> None:
    """Relay until stopped."""
    set_up_logs()
    host, port, rate, tls = settings.host, settings.port, settings.rate, settings.tls
    limits = Limits(
        body_bytes=MAX_PARTS * MAX_UPLOAD_BYTES, requests_per_second=rate, burst=max(1, int(10 * rate))
    )  # fmt: skip
    sockets = listen(host, port, who="relay")
    app = RelayApp(settings.targets, limits, trust=trusting(settings.ca_file))
    config = server_config(app, host, port, limits, trusted_proxies=settings.trusted_proxies, tls=tls)
    server = uvicorn.Server(config)
    announce(
        f"tacit relays at {server_url(host, port, is_secure=tls is not None)} to {len(settings.targets)} shufflers"
    )
    server.run(sockets=sockets)
    if not server.started:
        raise StorageUnavailable(f"relay: could not start on {host}:{port}")


class RelayApp:
    """The ASGI application of a relay."""

    def __init__(
        self, targets: Sequence[str], limits: Limits | None = None, *, trust: ssl.SSLContext | None = None
    ) -> None:
        """Forward to shufflers, by their base addresses, in the order of the session document."""
        bounds = limits or Limits(body_bytes=MAX_PARTS * MAX_UPLOAD_BYTES)
        self._targets: list[Target] = [Target(url, trust) for url in targets]
        self._numbered = {str(number): target for number, target in enumerate(self._targets, start=1)}
        self._rate, self._reading = RateLimit(bounds), Reading(bounds)
        methods = ["POST", "OPTIONS"]
        routes = [
            Route("/r", self.upload, methods=methods),
            Route("/r/{k}", self.forward, methods=methods),
            Route("/healthz", self.health),
        ]
        self._site = Starlette(
            routes=routes, exception_handlers={HTTPException: answer_problem}, lifespan=self._lifespan
        )
        self._site.router.redirect_slashes = False

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

    async def upload(self, request: Request) -> Response:
        """Pass every part to its gateway, and their responses back."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        try:
            parts = unpack(await self._body(request, MAX_PARTS * MAX_UPLOAD_BYTES))
            if not 1 <= len(parts) <= len(self._targets) or max(map(len, parts)) > MAX_UPLOAD_BYTES:
                raise ReportRejected(f"relay: there must be from 1 to {len(self._targets)} parts, none over "
                                     f"{MAX_UPLOAD_BYTES} bytes")  # fmt: skip
        except Problem as problem:
            return readable(problem)
        except ReportRejected as error:
            return readable(Problem("malformed", str(error)))
        pairs = zip(self._targets, parts, strict=False)
        answers = await asyncio.gather(*(target.upload(part) for target, part in pairs))
        content, is_whole = b"".join(answer or NO_RESPONSE for answer in answers), all(answers)
        # The same bytes are sent again later, to all gateways: those that have them already know the slot.
        headers = ANYBODY if is_whole else {**ANYBODY, "retry-after": "5"}
        return Response(content, 200 if is_whole else 503, headers, PACKED_TYPE)

    async def forward(self, request: Request) -> Response:
        """Pass a body on, and the response back."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        # Compared as text: whatever is no number of a gateway is never made one.
        target = self._numbered.get(request.path_params["k"])
        if target is None:
            return readable(Problem("not_found", "this relay has no such gateway"))
        try:
            body = await self._body(request)
        except Problem as problem:
            return readable(problem)
        content = await run_in_threadpool(target.forward, body)
        if content is None:
            return readable(Problem("unavailable", "the gateway does not answer; send again", retry_seconds=5))
        return Response(content, 200, ANYBODY, RESPONSE_TYPE)

    async def _body(self, request: Request, most: int = MAX_UPLOAD_BYTES) -> bytes:
        """The body of a request within the limits of its address."""
        if not self._rate.allows(request.client.host if request.client else ""):
            raise Problem("rate_limited", "too many requests from one address", retry_seconds=1)
        body = await request.body()
        if len(body) > most:
            raise Problem("too_large", f"a body may have at most {most} bytes here")
        return body

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
