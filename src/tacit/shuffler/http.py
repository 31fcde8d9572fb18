"""The HTTP interface of a shuffler.

    GET  /identity.json            name, identity, seal_key, modes, protocol: signed, for operators and collectors
    POST /sessions                 a signed session; the reply is the own signature (`joining`)
    GET  /s/{session}/status       state, signed, and number of uploads
    POST /s/{session}/uploads      slot, sealed part, token if one is needed; always 202, empty
    POST /gateway                  the same, or one of the two questions, inside Oblivious HTTP; responses of one size
    POST /gateway/uploads          many such uploads together, as a relay sends them
    POST /s/{session}/messages     letters of other parties (`post`)
    GET  /s/{session}/proof/{slot} that a slot takes part, from the agreement on slots to the erasure
    GET  /healthz /readyz /metrics

Respondents learn nothing from a reply but that it arrived, and neither does a relay: what was wrong with an upload is
counted, not told. Addresses are used for the rate limit alone (`hosting.limits`), and are in no log.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from tacit.errors import Busy, ProtocolViolation
from tacit.hosting.exposition import METRICS_TYPE, Tallies
from tacit.hosting.limits import Limits, RateLimit
from tacit.hosting.problems import Problem, as_problem
from tacit.hosting.reading import Reading
from tacit.hosting.responses import closes, json_response, problem_response
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.ohttp import RESPONSE_TYPE
from tacit.shuffle.protocol.relayed import unpack
from tacit.shuffle.protocol.session import ShuffleSession
from tacit.shuffle.protocol.status import signed_status
from tacit.shuffler.driver import ShufflerDriver
from tacit.shuffler.gateway import GatewayDoor
from tacit.shuffler.intake import UploadWriter
from tacit.shuffler.letters import LENGTH_BYTES, MAX_HEAD_BYTES, PROTOCOL, check_protocol, read_object
from tacit.shuffler.modes import read_upload
from tacit.shuffler.party_store import OPENING, SessionRecord
from tacit.shuffler.party_uploads import NewUpload
from tacit.shuffler.post import Reception
from tacit.shuffler.relays import SessionRelays

IDENTITY_LABEL = "shuffler"
MAX_SESSION_BYTES = 1 << 20
MAX_UPLOAD_BYTES = 4096
MAX_PACKED = 128
"""Uploads that a relay sends in one request."""
PACKED_TYPE = "application/octet-stream"
"""Of several encapsulated messages together."""
ANYBODY = {"access-control-allow-origin": "*"}
_PREFLIGHT = {
    **ANYBODY,
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "Content-Type",
    "access-control-max-age": "86400",
}
_HELP = {
    "tacit_shuffler_uploads_total": "Uploads, by outcome.",
    "tacit_shuffler_letters_total": "Letters of other parties, by status of the reply.",
    "tacit_shuffler_joined_total": "Requests to join a session, by status of the reply.",
}
_MINUTES = 600.0
_UNKNOWN = "unknown_session"


class ShufflerRoutes:
    """The routes, over a driver."""

    def __init__(
        self, driver: ShufflerDriver, writer: UploadWriter, name: str, limits: Limits,
        relays: SessionRelays | None = None,
    ) -> None:  # fmt: skip
        """Serve a driver; `name` is what its operator calls it."""
        self._driver, self._store, self._writer, self._name = driver, driver.store, writer, name
        self._reception = Reception(driver.store, driver.wake, driver.violated, driver.offer.most_bytes)
        self._rate, self._tallies = RateLimit(limits), Tallies(_HELP)
        self._sessions: dict[str, tuple[ShuffleSession, int, HpkeKey]] = {}
        self._door = GatewayDoor(driver.store, self._take, self._plain_status, self._proven)
        self._relays = relays or SessionRelays(driver.store)

    def routes(self) -> list[Route]:
        """The Starlette routes."""
        both = ["POST", "OPTIONS"]
        return [
            Route("/identity.json", self.identity),
            Route("/sessions", self.join, methods=["POST"]),
            Route("/s/{session}/status", self.status),
            Route("/s/{session}/uploads", self.upload, methods=both),
            Route("/gateway", self.gateway, methods=both),
            Route("/gateway/uploads", self.gateways, methods=["POST"]),
            Route("/s/{session}/messages", self.message, methods=["POST"]),
            Route("/s/{session}/proof/{slot}", self.proof),
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
        ]

    async def health(self, request: Request) -> Response:
        """Liveness."""
        del request
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Readiness: the database can be written."""
        del request
        await run_in_threadpool(self._store.probe)
        return json_response({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Counters and the numbers of sessions by state."""
        del request
        records = await run_in_threadpool(self._store.sessions)
        live = [record for record in records if not record.is_over]
        waiting = await run_in_threadpool(self._store.waiting)
        gauges = {
            "tacit_shuffler_sessions": float(len(live)),
            "tacit_shuffler_sessions_ended": float(len(records) - len(live)),
            "tacit_shuffler_letters_waiting": float(len(waiting)),
        }
        spent = {f"tacit_shuffler_cpu_{part}_seconds": each for part, each in self._store.meter.seconds().items()}
        return Response(self._tallies.text(gauges | spent), media_type=METRICS_TYPE)

    async def identity(self, request: Request) -> Response:
        """Who this is; the identity is compared out of band, the seal key is believed for its signature."""
        del request
        return json_response(await run_in_threadpool(self.identity_document), headers=ANYBODY)

    def identity_document(self) -> dict[str, Any]:
        """Name, keys, modes and version, signed."""
        return identity_document(self._driver, self._name)

    async def join(self, request: Request) -> Response:
        """Sign a session, or open it."""
        document = read_object(await _body(request, MAX_SESSION_BYTES), "session")
        try:
            # Collectors of the first version did not say which one they speak.
            check_protocol("collector", document.pop("protocol", 1))
            signature = await run_in_threadpool(self._driver.join, document)
        except Exception as error:
            self._tallies.count("tacit_shuffler_joined_total", f'status="{as_problem(error).status}"')
            raise
        self._tallies.count("tacit_shuffler_joined_total", 'status="200"')
        return json_response({"signature": signature})

    async def status(self, request: Request) -> Response:
        """State and counts of a session; nothing about single uploads."""
        record = await self._record(request.path_params["session"])
        counts = {"uploads": record.uploads, "is_open": record.is_open}
        ending = {name: record.ending[name] for name in ("reason", "blames") if name in record.ending}
        return json_response(self._signed(record) | counts | ending, headers=ANYBODY)

    def _signed(self, record: SessionRecord) -> dict[str, Any]:
        had_sent = bool(record.ending.get("had_sent"))
        return signed_status(self._store.identity, record.id, record.state, had_sent=had_sent)

    async def _record(self, session: str) -> SessionRecord:
        record = await run_in_threadpool(self._store.session, session)
        if record is None:
            raise Problem("not_found", "this session is not known here")
        return record

    async def _plain_status(self, session: str) -> dict[str, Any]:
        """What devices ask for through a relay: without the reason, whose length is anybody's choice."""
        return self._signed(await self._record(session))

    async def proof(self, request: Request) -> Response:
        """The path from a slot to the root that all shufflers signed."""
        proof = await self._proven(request.path_params["session"], request.path_params["slot"])
        return json_response(proof, headers=ANYBODY)

    async def _proven(self, session: str, slot: str) -> dict[str, Any]:
        try:
            wanted = bytes.fromhex(slot)
        except ValueError:
            raise Problem("not_found", "a slot is 32 hexadecimal digits") from None
        return await run_in_threadpool(self._prove, session, wanted)

    def _prove(self, session: str, slot: bytes) -> dict[str, Any]:
        roster = self._driver.roster(session)
        if roster is None:
            raise Problem("not_found", "there are no proofs before the slots are agreed or after they are erased")
        try:
            return roster.proof(slot) | {"root": roster.root, "n": roster.n}
        except ProtocolViolation:
            raise Problem("not_found", "this slot does not take part") from None

    # Uploads.

    async def upload(self, request: Request) -> Response:
        """An upload: 202, whatever becomes of it."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        await self._check_rate(request)
        await self._take((request.path_params["session"], await _body(request, MAX_UPLOAD_BYTES)))
        return Response(status_code=202, headers=ANYBODY)

    async def gateway(self, request: Request) -> Response:
        """An upload or a question inside Oblivious HTTP: responses of one size each."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        await self._check_rate(request)
        answer = await self._door.response(await _body(request, MAX_UPLOAD_BYTES))
        return Response(answer, 200, ANYBODY, RESPONSE_TYPE)

    async def gateways(self, request: Request) -> Response:
        """Uploads of several respondents that a relay sends together: a response for each, in their order."""
        sealed = unpack(await _body(request, MAX_SESSION_BYTES))
        if len(sealed) > MAX_PACKED:
            raise Problem("too_large", f"{len(sealed)} uploads came together, must be at most {MAX_PACKED}")
        await self._check_rate(request, len(sealed))
        return Response(b"".join(await self._door.uploads(sealed)), 200, media_type=PACKED_TYPE)

    async def _check_rate(self, request: Request, cost: int = 1) -> None:
        address = request.client.host if request.client else ""
        # All respondents behind a relay have its address, so that relays of sessions under way have their own limit.
        if not self._rate.allows(address, cost) and not await run_in_threadpool(self._relays.allow, address, cost):
            raise Problem("rate_limited", "too many requests from one address; send again later", retry_seconds=1)

    async def _take(self, *bodies: tuple[str, bytes]) -> None:
        """Store uploads, each to its session; what cannot be used takes the same way and is counted."""
        known = {session: await self._found(session) for session, _ in bodies}
        with self._store.meter.spent_on(OPENING):
            uploads = [
                read_upload(*place, body) if (place := known[session]) else NewUpload("", b"", b"", refusal=_UNKNOWN)
                for session, body in bodies
            ]
        for outcome in await asyncio.wrap_future(self._writer.submit(*uploads)):
            self._tallies.count("tacit_shuffler_uploads_total", f'outcome="{outcome}"')

    async def _found(self, session: str) -> tuple[ShuffleSession, int, HpkeKey] | None:
        return self._sessions.get(session) or await run_in_threadpool(self._find, session)

    def _find(self, session: str) -> tuple[ShuffleSession, int, HpkeKey] | None:
        """What is needed of a session for its uploads: it never changes, so that it is read once."""
        record = self._store.session(session)
        if record is None or record.is_over:
            return None
        wanted = record.session.parties[record.party].seal_key
        keys = [key for key in self._store.seal_keys() if key.public.hex() == wanted]
        if not keys:
            return None
        if len(self._sessions) >= 256:
            self._sessions.clear()
        return self._sessions.setdefault(session, (record.session, record.party, keys[0]))

    async def message(self, request: Request) -> Response:
        """A letter of another party."""
        reply = await self._reception.take(request.path_params["session"], request.stream())
        self._tallies.count("tacit_shuffler_letters_total", f'status="{reply.status}"')
        return Response(reply.detail, reply.status, media_type="text/plain") if reply.detail else Response(None, 204)


def identity_document(driver: ShufflerDriver, name: str) -> dict[str, Any]:
    """What a shuffler says about itself, signed by its identity."""
    store = driver.store
    document = {
        "name": name,
        "identity": store.identity.public.hex(),
        "seal_key": store.seal_key.public.hex(),
        "modes": list(driver.offer.modes),
        "protocol": PROTOCOL,
    }
    return {**document, "signature": store.identity.sign(IDENTITY_LABEL, document)}


async def _body(request: Request, most: int) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise Problem("too_large", f"a body may have at most {most} bytes here")
    return bytes(content)


def readable(problem: Problem) -> Response:
    """A problem that pages of other sites may read: they would take it for a broken connection otherwise."""
    response = problem_response(problem)
    response.headers.update(ANYBODY)
    return response


async def answer_problem(request: Request, error: Exception) -> Response:
    """What is answered in the place of an exception: always a problem document."""
    del request
    if isinstance(error, HTTPException):
        kind = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "malformed")
        return readable(Problem(kind, "there is nothing at this address for this method"))
    if isinstance(error, Busy):
        return readable(Problem("unavailable", str(error), retry_seconds=2))
    return readable(as_problem(error))


class ShufflerApp:
    """The ASGI application: Starlette behind limits on request bodies."""

    def __init__(
        self, driver: ShufflerDriver, name: str, limits: Limits | None = None, *, relays: SessionRelays | None = None
    ) -> None:
        """Serve a driver, which starts and stops with the application."""
        self.driver, self._writer = driver, UploadWriter(driver.store)
        small = limits or Limits(body_bytes=MAX_SESSION_BYTES)
        most = driver.offer.most_bytes + LENGTH_BYTES + MAX_HEAD_BYTES
        self._small = Reading(small)
        self._letters = Reading(Limits(body_bytes=most, body_seconds=_MINUTES, reading_bytes=2 * most))
        self.routes = ShufflerRoutes(driver, self._writer, name, small, relays)
        handler = cast("Callable[[Request, Exception], Awaitable[Response]]", answer_problem)
        self._site = Starlette(
            routes=self.routes.routes(),
            exception_handlers=dict.fromkeys((HTTPException, Problem, Exception), handler),
            lifespan=self._lifespan,
        )
        self._site.router.redirect_slashes = False

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        del app
        self.driver.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self.stop)

    def stop(self) -> None:
        """Write the queued uploads, finish the running step, and close."""
        self._writer.stop()
        self.driver.stop()
        self.driver.store.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] != "http":
            await self._site(scope, receive, send)
            return
        # Letters are large and come from few; everything that strangers send is small.
        reading = self._letters if scope["path"].endswith("/messages") else self._small
        upload = reading.upload(receive, scope["headers"])

        async def after_body(message: Message) -> None:
            """Delay the response until the rest of the body has been read or given up."""
            if message["type"] == "http.response.start" and not upload.is_whole and not await upload.drain():
                message["headers"] = closes(message.get("headers", []))
            await send(message)

        try:
            await self._site(scope, upload, after_body)
        except Exception:
            # Starlette raises again what its handler has answered; it has been logged without its text.
            return
        finally:
            upload.close()
