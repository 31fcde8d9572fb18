"""One HTTP connection: a clock for clients that dawdle, and a short way for reports.

Uvicorn reads requests and runs the application. Two things are added to its connections. A client that sends nothing,
or its headers drop by drop, is cut off. And a report that has arrived whole goes to the report route without a task of
its own, which would cost more than everything the route does; whatever is out of the ordinary takes the usual way.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import Any, Protocol, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tacit.collector.addresses import plain_host
from tacit.collector.limits import Limits
from tacit.collector.problems import MEDIA_TYPE, Problem

Header = tuple[bytes, bytes]
Answer = Callable[[int, bytes, bytes], None]
"""Sends a whole response: status, headers as lines, body."""


def header_lines(headers: Iterable[Header]) -> bytes:
    """Headers as they are sent."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


class ShortWay(Protocol):
    """A route that answers through a call."""

    @property
    def limits(self) -> Limits:
        """How long and how much a client may send."""
        ...

    def take(self, path: bytes, headers: list[Header], body: bytes, address: str, answer: Answer) -> bool:
        """Take a request and answer it later in this event loop; False to have it go the usual way."""
        ...


class _Done:
    """Stands for an event that nobody waits for."""

    def set(self) -> None:
        """Do nothing."""


class _Pending:
    """Stands for uvicorn's object of a request and its response, while a request is on the short way."""

    __slots__ = ("disconnected", "keep_alive", "response_complete")

    message_event = _Done()

    def __init__(self, *, keep_alive: bool) -> None:
        self.disconnected, self.response_complete, self.keep_alive = False, False, keep_alive


def _plain_value(name: bytes, value: bytes) -> bytes:
    """The value of a header without blanks around it; a host also without an empty port, since addresses show it."""
    plain = value.strip(b" \t")
    return plain_host(plain) or plain if name == b"host" else plain


class Watch:
    """Looks at all connections once in a while: cheaper than a timer for each."""

    def __init__(self, limits: Limits) -> None:
        """Look often enough for the shortest of the limits."""
        self.limits = limits
        self._pause = min(1.0, limits.head_seconds / 5, limits.idle_seconds / 5)
        self._looking = False

    def begin(self, loop: asyncio.AbstractEventLoop, connections: "set[Any]") -> None:
        """Look after these connections as long as there are any."""
        if not self._looking:
            self._looking = True
            loop.call_later(self._pause, self._look, loop, connections)

    def _look(self, loop: asyncio.AbstractEventLoop, connections: "set[Any]") -> None:
        now = loop.time()
        for connection in [each for each in connections if each.deadline <= now]:
            connection.cut_off(now)
        self._looking = False
        if connections:
            self.begin(loop, connections)


class Connection(HttpToolsProtocol):
    """Uvicorn's connection with a deadline for the next request's head, and a short way for reports."""

    def __init__(self, watch: Watch, short_way: ShortWay | None, **settings: Any) -> None:
        """Serve one client; without a short way everything goes the usual one."""
        super().__init__(**settings)
        self._watch, self._short_way = watch, short_way
        self._head_bytes, self._held = 0, cast("bytes | None", None)
        self._fault = ""
        self.deadline = inf
        """When to cut the client off; never while a request is being answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.deadline = self.loop.time() + self._watch.limits.head_seconds
        self._watch.begin(self.loop, cast("set[Any]", self.connections))

    def cut_off(self, now: float) -> None:
        """Close; and if the client does not even take what was sent to it, drop it."""
        if self.transport.is_closing():
            self.transport.abort()
        self.deadline = now + self._watch.limits.head_seconds
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self.deadline != inf:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._held is not None:
            self._let_go()
        elif self._head_bytes > self._watch.limits.head_bytes:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Say that what arrived is no HTTP, in the words of every other refusal, and close."""
        problem = Problem("malformed", self._fault or msg)
        body = json.dumps(problem.to_json()).encode()
        head = header_lines([(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close")])
        self.transport.write(STATUS_LINE[problem.status] + head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        self.transport.close()

    def on_message_begin(self) -> None:
        """The first byte of a request: its head has so long to arrive."""
        super().on_message_begin()
        if self._is_idle():
            self.deadline = self.loop.time() + self._watch.limits.head_seconds

    def _is_idle(self) -> bool:
        return cast("Any", self.cycle) is None or self.cycle.response_complete

    def on_headers_complete(self) -> None:
        """Hold a report back until it is clear whether the rest of it has come along."""
        self.deadline, self._head_bytes = inf, 0
        # The application has the same list. HTTP allows blanks around values, and the parser leaves those at the end.
        self.headers[:] = [(name, _plain_value(name, value)) for name, value in self.headers]
        self._fault = self._fault_of_head()
        if self._fault:
            # An exception makes the parser stop here, so that nothing after this head is read as a request.
            raise ValueError(self._fault)
        path = self.url
        if (
            self._short_way is None
            or not (path.startswith(b"/c/") and path.endswith(b"/reports"))
            or self.expect_100_continue
            or not self._is_idle()
        ):
            super().on_headers_complete()
        else:
            self._held = b""

    def _fault_of_head(self) -> str:
        """Why a request that can be parsed is refused all the same; empty if it is not."""
        hosts = [plain_host(value) for name, value in self.headers if name == b"host"]
        parser = cast("Any", self.parser)
        if len(hosts) > 1 or None in hosts:
            return "the Host header must name one host, such as example.org or 127.0.0.1:8000"
        if not hosts and parser.get_http_version() == "1.1":
            return "a request of HTTP/1.1 needs the header Host"
        if parser.should_upgrade() and any(_announces_body(*header) for header in self.headers):
            # The parser takes what follows for the other protocol, or for the next request.
            return "a request that asks for another protocol cannot have a body"
        return ""

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        if self._held is None:
            super().on_body(body)
        else:
            self._held += body

    def on_message_complete(self) -> None:
        """The end of a request."""
        if self._held is None:
            super().on_message_complete()
        elif self._take(self._held):
            self._held = None
        else:
            self._let_go()
            super().on_message_complete()

    def _let_go(self) -> None:
        """Have the request that was held back go the usual way."""
        held, self._held = self._held, None
        if not self.transport.is_closing():
            super().on_headers_complete()
            if held:
                super().on_body(held)

    def _take(self, body: bytes) -> bool:
        parser = cast("Any", self.parser)
        if self._short_way is None or parser.get_method() != b"POST" or parser.get_http_version() != "1.1":
            return False
        pending = _Pending(keep_alive=parser.should_keep_alive())
        address = self.client[0] if self.client else ""
        if not self._short_way.take(self.url, self.headers, body, address, partial(self._answer, pending)):
            return False
        self.cycle = cast("Any", pending)
        return True

    def _answer(self, pending: _Pending, status: int, headers: bytes, body: bytes) -> None:
        pending.response_complete = True
        if pending.disconnected:
            return
        close = b"" if pending.keep_alive else b"connection: close\r\n"
        end = b"content-length: %d\r\n%b\r\n%b" % (len(body), close, body)
        self.transport.write(STATUS_LINE[status] + headers + end)
        if close:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for one."""
        if self.pipeline:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
        self.deadline = self.loop.time() + self._watch.limits.idle_seconds


def _announces_body(name: bytes, value: bytes) -> bool:
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ") != b"")


def connections(short_way: ShortWay | None, limits: Limits) -> Any:
    """What uvicorn makes its connections with."""
    return partial(Connection, Watch(limits), short_way)
