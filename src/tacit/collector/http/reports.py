"""POST /c/{id}/reports: the hot route. It is plain ASGI without Starlette, and has a fast path without a task.

    one block in one read --HttpConnection--> ReportTaker   fast path: no asyncio task, answered by callback
    everything else -------App-------------> __call__()    validated inline, or in a thread if it is large

Both hand batches to `Outcomes`, which groups them for the writer.
"""

from asyncio import get_running_loop, to_thread
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from time import perf_counter
from typing import overload
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from tacit.collector.collections.access import REPORT
from tacit.collector.collections.active import Active
from tacit.collector.ingest.outcomes import Outcomes
from tacit.collector.ingest.plain import PlainForm, plain_batch, plain_form
from tacit.collector.ingest.uploads import Form, JudgedBatch
from tacit.collector.ingest.writer import Callers, Waiter
from tacit.collector.limits import MOST_WAITING_BYTES
from tacit.collector.ports import INVALID, STORED, NewBatch, Outcome
from tacit.collector.rows.arrow_stream import MEDIA_TYPE as ARROW_TYPE
from tacit.collector.service import Collector
from tacit.errors import Busy
from tacit.hosting.connection import Answer, header_lines, response_bytes
from tacit.hosting.limits import Limits, RateLimit
from tacit.hosting.problems import MEDIA_TYPE as PROBLEM_TYPE
from tacit.hosting.problems import Problem, as_problem
from tacit.hosting.responses import (
    PREFLIGHT,
    Header,
    cors_headers,
    encode_json,
    problem_headers,
    read_body,
    send_plain,
    send_problem,
)
from tacit.wire.batch import MAGIC, MEDIA_TYPE, WINDOWED

Head = dict[bytes, bytes]

FORMS = {
    MEDIA_TYPE: Form.BINARY,
    "application/json": Form.JSON,
    "text/plain": Form.TEXT,
    ARROW_TYPE: Form.ARROW,
}
"""Content types of a batch. A page of another origin may send text/plain without a CORS preflight."""

_EXACT = {name.encode(): form for name, form in FORMS.items()}
_SHORT = {MEDIA_TYPE.encode(), b"text/plain"}
"""Content types of the fast path, as clients of this project write them."""
_IN_THREAD_BYTES = {Form.BINARY: 1 << 16, Form.JSON: 1 << 12, Form.ARROW: 0}
"""Bodies above these sizes are validated in a thread, so that they do not stall the event loop. JSON is slow to read,
so its limit is lower; Arrow always goes to a thread."""
# Few, so that validating large uploads does not crowd out the event loop and the writer.
_JUDGES = 2
_MOST_GATHERINGS = 256
_REPLY: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


_JSON = header_lines([(b"content-type", b"application/json"), *_REPLY])
_CREATED = b'{"accepted":%d,"rejected":[],"duplicate":false}'
"""The receipt of a batch whose reports were all stored, preformatted; `JudgedBatch.receipt` makes all others."""


# By the number of reports and the CORS headers, of which there are few: the origins that the documents allow.
@lru_cache(maxsize=1024)
def _created(accepted: int, cors: bytes) -> bytes:
    """The whole response to a batch whose reports were all stored."""
    return response_bytes(201, _JSON + cors, _CREATED % accepted)


@lru_cache(maxsize=256)
def _cors_lines(origin: bytes, origins: tuple[str, ...]) -> bytes:
    """The encoded CORS headers for an origin, blanks around it allowed."""
    return header_lines(cors_headers(origin.strip(b" \t"), origins))


class ReportRoute:
    """POST /c/{id}/reports."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        """Serve a collector within limits."""
        self._collector, self._ingest, self.limits = collector, collector.ingest, limits
        self._rate = RateLimit(limits, collector.clock.seconds)
        self._metrics, self._outcomes = collector.metrics, Outcomes(collector.writer, self._count_stored)
        # For takers, which call them for every report.
        self.allows, self.queue = self._rate.allows, self._outcomes.add_unjudged
        self._gatherings = dict[Active, _Singles]()
        self._stored: list[tuple[str, int, float]] = []
        """Answered and not yet counted: under which id, how many reports, and when they had come."""
        # A pool of its own: large uploads must not take the threads of other routes.
        self._judges, self._judging_bytes = ThreadPoolExecutor(_JUDGES, "tacit-judge"), 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send, collection: str) -> None:
        """Answer one request; every exception becomes a problem document."""
        # A plain dict: of repeated headers the last one counts, which is fine for the few that are looked at here.
        head, cors = dict[bytes, bytes](scope["headers"]), list[Header]()
        try:
            # The token is checked only once the address is over its limit: that takes a database read.
            if not self._rate.allows(scope["client"][0] if scope.get("client") else ""):
                await self._admit(scope, head)
            active = self._collector.shelf.kept(collection) or await to_thread(self._ingest.find, collection)
            if origins := self._collector.origins.of(active):
                cors = cors_headers(head.get(b"origin", b""), origins)
            if scope["method"] == "OPTIONS":
                await send_plain(send, 204, b"", b"text/plain", [*PREFLIGHT, *cors])
                return
            if scope["method"] != "POST":
                cors.append((b"allow", b"POST, OPTIONS"))
                raise Problem("method_not_allowed", "send reports with POST")
            status, receipt = await self._take(scope, receive, head, active)
        except Exception as error:
            await send_problem(send, self.problem_of(error), cors)
            return
        await send_plain(send, status, receipt, b"application/json", [*_REPLY, *cors])

    async def _admit(self, scope: Scope, head: Head) -> None:
        """Problem `rate_limited`, unless the request has a token that allows reporting without a limit."""
        kind, _, token = head.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and token:
            bearer = await to_thread(self._collector.access.bearer, token.decode("latin-1"))
            if bearer is not None and bearer.may(REPORT, scope["path"].split("/")[2]):
                return
        raise Problem("rate_limited", "too many requests from one address; send larger batches", retry_seconds=1)

    async def _take(self, scope: Scope, receive: Receive, head: Head, active: Active) -> tuple[int, bytes]:
        """Read, validate and store a batch; returns status and receipt once it is durable."""
        form = _form(head)
        try:
            body = await read_body(receive)
        except Problem as problem:
            if problem.kind == "too_large":
                self._collector.rejections.add(active.id, problem.kind)
            raise
        begun = perf_counter()
        if form is Form.TEXT:
            form = Form.BINARY if body.startswith((MAGIC, WINDOWED)) else Form.JSON
        invitation = head.get(b"tacit-invitation", b"").decode("latin-1") or _from_query(scope)
        if form is Form.BINARY and len(body) <= _IN_THREAD_BYTES[form]:
            batch = plain_batch(active, body, invitation)
            if batch is not None:
                # INVALID means that some report is bad: the batch is then validated again, report by report.
                outcome = await self._outcomes.of_unjudged(active, batch)
                if outcome != INVALID:
                    return self.receipt(active, JudgedBatch(batch, batch.count), outcome, begun)
        named = head.get(b"tacit-batch", b"").decode("latin-1")
        return await self._take_other(active, body, form, (invitation, named), begun)

    async def _take_other(
        self, active: Active, body: bytes, form: Form, told: tuple[str, str], begun: float
    ) -> tuple[int, bytes]:
        """Validate and store an upload that is not in the common form, or has reports to refuse.

        `told` is the invitation and the batch id from the headers.
        """
        if len(body) > _IN_THREAD_BYTES[form]:
            upload = await self._judge_in_thread(active, body, form, told)
        else:
            upload = self._ingest.judge(active, body, form, *told)
        self._count_refused(upload)
        if upload.batch is None:
            return 201, encode_json(self._ingest.nothing_stored(active, upload))
        outcome = await self._outcomes.of(upload.batch)
        return self.receipt(active, upload, outcome, begun)

    async def _judge_in_thread(self, active: Active, body: bytes, form: Form, told: tuple[str, str]) -> JudgedBatch:
        """Validate in a thread; Busy (back-pressure) if too many bytes wait for that already."""
        if self._judging_bytes + len(body) > max(MOST_WAITING_BYTES, self.limits.body_bytes):
            raise Busy("collector: many batches wait to be read; send the same one again shortly")
        self._judging_bytes += len(body)
        try:
            loop = get_running_loop()
            return await loop.run_in_executor(self._judges, self._ingest.judge, active, body, form, *told)
        finally:
            self._judging_bytes -= len(body)

    def taker(self, path: bytes, head: Mapping[bytes, bytes], length: int) -> "ReportTaker | None":
        """Fast path of `HttpConnection`: where requests with this head go without an asyncio task.

        None for requests that must go through `__call__`.
        """
        # The id between "/c/" and "/reports". From the cache only: a database read would block the event loop.
        active = self._collector.shelf.kept(path[3:-8].decode("latin-1"))
        if active is None or b"content-encoding" in head or head.get(b"content-type") not in _SHORT:
            return None
        if length > min(_IN_THREAD_BYTES[Form.BINARY], self.limits.body_bytes):
            return None
        form = plain_form(active, length, head.get(b"tacit-invitation", b"").strip(b" \t").decode("latin-1"))
        return None if form is None else ReportTaker(self, active, form, head)

    def origins(self, active: Active) -> tuple[str, ...]:
        """The sites whose pages may read answers now."""
        return self._collector.origins.of(active)

    def gathering(self, active: Active) -> "_Singles":
        """Where single reports to a collection gather."""
        found = self._gatherings.get(active)
        if found is None:
            # All at once: whoever still gathers somewhere else makes one group more.
            if len(self._gatherings) >= _MOST_GATHERINGS:
                self._gatherings = {}
            found = self._gatherings[active] = _Singles(self._outcomes, active)
        return found

    def stored(self, under: str, reports: int, begun: Sequence[float]) -> None:
        """Note that batches of so many reports were stored as they came; all of a commit are counted together."""
        self._stored += [(under, reports, each) for each in begun]

    def _count_stored(self) -> None:
        """Count what was answered since the last time."""
        if not self._stored:
            return
        stored, self._stored, now = self._stored, [], perf_counter()
        self._metrics.stored(sum([reports for _, reports, _ in stored]), [now - begun for _, _, begun in stored])
        # Folding is asynchronous: a collection is only marked here.
        for collection in {under for under, _, _ in stored}:
            self._collector.touch(collection)

    def judge_again(self, ticket: "_Ticket") -> None:
        """Validate a batch with bad reports one by one, and store the good ones."""
        active = ticket.taker.active
        ticket.upload = upload = self._ingest.judge(active, ticket.body, Form.BINARY, ticket.taker.invitation)
        self._count_refused(upload)
        if upload.batch is None:
            ticket.reply(201, encode_json(self._ingest.nothing_stored(active, upload)))
        else:
            self._outcomes.add(upload.batch, ticket)

    def _count_refused(self, upload: JudgedBatch) -> None:
        for reason, reports in upload.refused.items():
            self._metrics.count("tacit_rejected_total", f'reason="{reason}"', reports)

    def problem_of(self, error: BaseException) -> Problem:
        """The problem of an exception; it is counted in the metrics."""
        problem = as_problem(error)
        self._metrics.count("tacit_rejected_total", f'reason="{problem.kind}"')
        return problem

    def receipt(self, active: Active, upload: JudgedBatch, outcome: Outcome, begun: float) -> tuple[int, bytes]:
        """Status and receipt after the commit; raises the Problem of a batch that was refused."""
        if outcome == STORED and not (upload.rejected or upload.bad_rows):
            status, receipt = 201, _CREATED % upload.accepted
        else:
            told = self._ingest.settle(active, upload, outcome)
            status, receipt = 200 if told["duplicate"] else 201, encode_json(told)
        under = active.id if upload.batch is None else upload.batch.collection
        self.settled(under, outcome, upload.accepted if outcome == STORED else 0, begun)
        return status, receipt

    def settled(self, under: str, outcome: Outcome, accepted: int, begun: float) -> None:
        """Note that a batch was decided about, which is stored under this id."""
        # Folding is asynchronous: the collection, or its window, is only marked here.
        self._collector.touch(under)
        self._metrics.batch(outcome, accepted, perf_counter() - begun)


class ReportTaker:
    """Requests to one collection with the same head."""

    __slots__ = ("_created", "_form", "_origin", "_origins", "_singles", "active", "invitation", "route")

    def __init__(self, route: ReportRoute, active: Active, form: PlainForm, head: Mapping[bytes, bytes]) -> None:
        """Take for a route what is in this form."""
        self.route, self.active, self._form = route, active, form
        self.invitation = head.get(b"tacit-invitation", b"").strip(b" \t").decode("latin-1")
        self._origin = head.get(b"origin", b"")
        self._origins: tuple[str, ...] | None = None
        self._created = b""
        self._singles = route.gathering(active) if form.is_single else None

    @property
    def cors(self) -> bytes:
        """The encoded CORS headers of an answer, by what is allowed now."""
        origins = self.route.origins(self.active)
        return _cors_lines(self._origin, origins) if origins else b""

    @property
    def created(self) -> bytes:
        """The whole response to a batch that was stored as it came."""
        # Nearly always the same tuple as before; operators add sites now and then.
        origins = self.route.origins(self.active)
        if origins is not self._origins:
            self._origins, self._created = origins, _created(self._form.count, self.cors)
        return self._created

    def take(self, data: bytes, start: int, address: str, answer: Answer) -> bool:
        """Queue a batch that is in the common form; `answer` is called when it is durable."""
        singles = self._singles
        if singles is not None:
            if not self._form.fits(data, start) or not self.route.allows(address):
                return False
            singles.add(data[start:], (self, perf_counter(), answer))
            return True
        batch = self._form.batch(data, start)
        # The rate limit comes last, as it takes a token; a refused address is handled in `ReportRoute.__call__`.
        if batch is None or not self.route.allows(address):
            return False
        self.route.queue(self.active, batch, _Ticket(self, data[start:], batch, answer, perf_counter()))
        return True

    def ticket(self, body: bytes, begun: float, answer: Answer) -> "_Ticket":
        """A waiter of its own for a body that was taken with many others."""
        batch = self._form.batch(body, 0)
        # It fitted when it was taken.
        assert batch is not None
        return _Ticket(self, body, batch, answer, begun)


_Caller = tuple[ReportTaker, float, Answer]
"""Who waits for a single report, since when, and how to answer."""


class _Singles:
    """Single reports to one collection that gather until they are handed on (`Gathering`)."""

    __slots__ = ("_bodies", "_callers", "_outcomes", "active")

    def __init__(self, outcomes: Outcomes, active: Active) -> None:
        self._outcomes, self.active = outcomes, active
        self._bodies, self._callers = list[bytes](), list[_Caller]()

    def add(self, body: bytes, caller: _Caller) -> None:
        if not self._bodies:
            self._outcomes.add_gathering(self)
        self._bodies.append(body)
        self._callers.append(caller)

    def __len__(self) -> int:
        return len(self._bodies)

    def take(self) -> "tuple[list[bytes], Callers]":
        bodies, callers = self._bodies, self._callers
        self._bodies, self._callers = [], []
        return bodies, _Callers(bodies, callers)


class _Callers(Callers):
    """Whoever sent single reports that are stored together."""

    __slots__ = ("_bodies", "_callers")

    def __init__(self, bodies: list[bytes], callers: list[_Caller]) -> None:
        self._bodies, self._callers = bodies, callers

    def __len__(self) -> int:
        return len(self._callers)

    @overload
    def __getitem__(self, place: int) -> Waiter: ...

    @overload
    def __getitem__(self, place: slice) -> "_Callers": ...

    def __getitem__(self, place: int | slice) -> "Waiter | _Callers":
        if isinstance(place, slice):
            return _Callers(self._bodies[place], self._callers[place])
        taker, begun, answer = self._callers[place]
        return taker.ticket(self._bodies[place], begun, answer)

    def stored(self) -> None:
        last, created = None, b""
        for taker, _, answer in self._callers:
            # Browsers of one release on one page have one taker, and get the same answer.
            if taker is not last:
                last, created = taker, taker.created
            answer(created)
        if last is not None:
            last.route.stored(last.active.id, 1, [begun for _, begun, _ in self._callers])


class _Ticket:
    """The waiter of a fast-path request: a future look-alike that writes the response when the outcome arrives."""

    __slots__ = ("_answer", "batch", "begun", "body", "taker", "upload")

    def __init__(self, taker: ReportTaker, body: bytes, batch: NewBatch, answer: Answer, begun: float) -> None:
        self.taker, self.begun, self.batch, self.body, self._answer = taker, begun, batch, body, answer
        self.upload: JudgedBatch | None = None
        """Only if it was validated report by report."""

    # Never cancelled: if the client disconnects, its batch is stored all the same, and the receipt is dropped.
    def cancelled(self) -> bool:
        return False

    def done(self) -> bool:
        return False

    def set_result(self, outcome: Outcome, /) -> None:
        route = self.taker.route
        if outcome == STORED and self.upload is None:
            self._answer(self.taker.created)
            route.stored(self.batch.collection, self.batch.count, [self.begun])
            return
        try:
            if outcome == INVALID:
                route.judge_again(self)
                return
            upload = self.upload or JudgedBatch(self.batch, self.batch.count)
            status, receipt = route.receipt(self.taker.active, upload, outcome, self.begun)
        except Exception as error:
            self.set_exception(error)
            return
        self.reply(status, receipt)

    def set_exception(self, exception: BaseException, /) -> None:
        problem = self.taker.route.problem_of(exception)
        headers: list[Header] = [(b"content-type", PROBLEM_TYPE.encode()), *problem_headers(problem)]
        self.reply(problem.status, encode_json(problem.to_json()), header_lines(headers))

    def reply(self, status: int, body: bytes, headers: bytes = _JSON) -> None:
        """Answer the request, so that the page that sent it may read it."""
        self._answer(response_bytes(status, headers + self.taker.cors, body))


def _form(head: Head) -> Form:
    media_type = head.get(b"content-type", b"")
    form = _EXACT.get(media_type) or FORMS.get(_media_type(media_type))
    if form is None:
        raise Problem("unsupported_media_type", f"a batch is one of {', '.join(FORMS)}")
    # Refused rather than decompressed: a small body could expand to gigabytes.
    if head.get(b"content-encoding", b"") not in (b"", b"identity"):
        raise Problem("unsupported_media_type", "a batch is sent without a content encoding; noise does not shrink")
    return form


def _media_type(header: bytes) -> str:
    return header.decode("latin-1").partition(";")[0].strip().lower()


def _from_query(scope: Scope) -> str:
    """The invitation from the query string, for beacons, which cannot send headers."""
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("invitation", [""])[0] if query else ""
