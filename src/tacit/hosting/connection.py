"""Uvicorn's HTTP connection with two additions: deadlines for slow clients, and a fast path for reports.

A client that is idle, or sends its headers byte by byte (slow loris), is disconnected. And a report request that has
arrived complete goes to the report route by a function call: an asyncio task would cost more than everything that the
route does. Whatever is out of the ordinary goes through uvicorn and ASGI as usual.

    data_received: the bytes of this head were parsed before (`KnownHeads`)  --yes--> its `Taker`, without the parser
           | no
    on_headers_complete: POST /c/{id}/reports?  --no--> `_begin_cycle`: uvicorn's own handling
           | yes: hold the request back (`_held`)
    on_message_complete in the same read, and a `Taker` accepts it  --yes--> answered later through `_Pending`
           | no
    `_let_go`: replay headers and body to uvicorn, as if nothing had happened
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf
from typing import Any, Protocol, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tacit.hosting.addresses import plain_host
from tacit.hosting.heads import END, KnownHeads, ParsedHead, Taker
from tacit.hosting.limits import Limits
from tacit.hosting.problems import MEDIA_TYPE, Problem

Header = tuple[bytes, bytes]
Answer = Callable[[bytes], None]
"""A callback that sends a whole response, such as `response_bytes` makes."""


def header_lines(headers: Iterable[Header]) -> bytes:
    """Headers encoded for HTTP/1.1."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def response_bytes(status: int, headers: bytes, body: bytes) -> bytes:
    """A whole response with encoded header lines, for a connection that stays open."""
    return STATUS_LINE[status] + headers + b"content-length: %d\r\n\r\n%b" % (len(body), body)


class ShortWay(Protocol):
    """The protocol of a fast-path route."""

    @property
    def limits(self) -> Limits:
        """Limits of requests."""
        ...

    def taker(self, path: bytes, head: Mapping[bytes, bytes], length: int) -> Taker | None:
        """Where requests with this head and a body of this length go; None to decline them.

        Of repeated headers `head` has the last; values may have blanks around them. What is decided here holds for a
        minute at most, as long as heads are known.
        """
        ...


class _Done:
    """A dummy for the asyncio event of uvicorn's request cycle, which nobody waits for here."""

    def set(self) -> None:
        """Do nothing."""


class _Pending:
    """A stand-in for uvicorn's RequestResponseCycle while a request is on the fast path; one for all of a connection.

    Uvicorn reads and sets these attributes when the client disconnects or the server shuts down.
    """

    __slots__ = ("_connection", "disconnected", "keep_alive", "response_complete")

    message_event = _Done()

    def __init__(self, connection: "HttpConnection") -> None:
        self._connection, self.keep_alive = connection, True
        self.disconnected, self.response_complete = False, True

    def answer(self, response: bytes) -> None:
        """Send the response, unless the client has gone."""
        self.response_complete = True
        if self.disconnected:
            return
        transport = self._connection.transport
        if self.keep_alive:
            transport.write(response)
        else:
            transport.write(response.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
            transport.close()
        self._connection.on_response_complete()


class Proxies:
    """The addresses of proxies whose X-Forwarded-For is believed, by uvicorn's own rules."""

    def __init__(self, trusted: str) -> None:
        """Trust these, comma-separated; none if it is empty."""
        self._trusted: Any = ProxyHeadersMiddleware(cast("Any", None), trusted).trusted_hosts if trusted else ()

    def address(self, peer: str, head: Mapping[bytes, bytes]) -> str:
        """The address of the client behind a peer; `head` must have no header twice."""
        told = head.get(b"x-forwarded-for")
        if told is None or peer not in self._trusted:
            return peer
        return self._trusted.get_trusted_client_address(told.decode("latin-1"))[0] or peer


def _plain_value(name: bytes, value: bytes) -> bytes:
    """A header value without blanks around it; a Host also without an empty port."""
    plain = value.strip(b" \t")
    return plain_host(plain) or plain if name == b"host" else plain


class Watch:
    """Checks the deadlines of all connections periodically, which is cheaper than a timer per connection."""

    def __init__(self, limits: Limits) -> None:
        """Check often enough for the shortest of the limits, at least once a second."""
        self.limits = limits
        self._pause = min(1.0, limits.head_seconds / 5, limits.idle_seconds / 5)
        self._looking = False

    def begin(self, loop: asyncio.AbstractEventLoop, connections: "set[Any]") -> None:
        """Start checking a set of connections; stops by itself when it is empty."""
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


class HttpConnection(HttpToolsProtocol):
    """Uvicorn's connection with a deadline for the head of the next request, and a fast path for reports."""

    def __init__(
        self, watch: Watch, short_way: ShortWay | None, proxies: Proxies, heads: KnownHeads, **settings: Any
    ) -> None:
        """Serve one client; `short_way` is the fast-path route, if any, and `heads` what all connections know."""
        super().__init__(**settings)
        self._watch, self._short_way, self._proxies, self._heads = watch, short_way, proxies, heads
        self._between = short_way is not None
        """Whether the parser has nothing of a request yet, so that one may go past it."""
        self._taken: ParsedHead | None = None
        self._pending, self._peer = _Pending(self), ""
        # What waits for the answer to a request: one object for all of them.
        self._answer: Answer = self._pending.answer
        self._head_bytes, self._held = 0, cast("bytes | None", None)
        self._head: dict[bytes, bytes] = {}
        self._fault = ""
        self.deadline = inf
        """When to disconnect the client, on the loop's clock; infinite while a request is being answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request's head."""
        super().connection_made(transport)
        self._peer = self.client[0] if self.client else ""
        self.deadline = self.loop.time() + self._watch.limits.head_seconds
        self._watch.begin(self.loop, cast("set[Any]", self.connections))

    def cut_off(self, now: float) -> None:
        """Close the connection; at the second call abort it, as the client does not even read what was sent."""
        if self.transport.is_closing():
            self.transport.abort()
        self.deadline = now + self._watch.limits.head_seconds
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Feed bytes to the parser, and limit the size of a request's head."""
        begins = self._between
        if begins and self._take_known(data):
            return
        self._taken = None
        # While the deadline runs, a head is being received; bytes of bodies are limited elsewhere.
        if self.deadline != inf:
            self._head_bytes += len(data)
        super().data_received(data)
        # The body did not arrive in the same read: not the common case, so uvicorn takes over.
        if self._held is not None:
            self._let_go()
        elif self._head_bytes > self._watch.limits.head_bytes:
            self.transport.close()
        elif begins and self._taken is not None:
            self._heads.keep(data, self._taken)

    def _take_known(self, data: bytes) -> bool:
        """Offer a request to the fast path if its head was parsed before; False if the parser has to see it."""
        end = data.find(END) + 4
        known = self._heads.get(data[:end])
        if known is None or len(data) - end != known.length or self.transport.is_closing() or not self._is_idle():
            return False
        # A head with a forwarded address is not kept, so that the client is the peer.
        return self._offer(known, data, end, self._peer)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed with a problem document instead of uvicorn's text, and close."""
        problem = Problem("malformed", self._fault or msg)
        body = json.dumps(problem.to_json()).encode()
        head = header_lines([(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close")])
        self.transport.write(STATUS_LINE[problem.status] + head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        self.transport.close()

    def on_message_begin(self) -> None:
        """The first byte of a request: start the deadline of its head."""
        # Uvicorn's method would also make the ASGI scope, which the fast path never needs (see `_begin_cycle`).
        self.url, self.headers, self._between = b"", [], False
        if self._is_idle():
            self.deadline = self.loop.time() + self._watch.limits.head_seconds

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self.headers.append((name.lower(), value))

    def _is_idle(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete

    def on_headers_complete(self) -> None:
        """Check the head; hold a report back until it is known whether its body came in the same read."""
        self.deadline, self._head_bytes, self._head = inf, 0, dict(self.headers)
        self._fault = self._fault_of_head()
        if self._fault:
            # An exception stops the parser: what follows a bad head must not be read as a request (smuggling).
            raise ValueError(self._fault)
        path = self.url
        if (
            self._short_way is None
            or not (path.endswith(b"/reports") and path.startswith(b"/c/"))
            or b"expect" in self._head
            or not self._is_idle()
        ):
            self._begin_cycle()
        else:
            self._held = b""

    def _begin_cycle(self) -> None:
        """Hand the head of a request to uvicorn."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url = url
        # In place, as the ASGI scope refers to this list. HTTP allows blanks around values; httptools keeps trailing
        # ones.
        self.headers[:] = [(name, _plain_value(name, value)) for name, value in headers]
        self.expect_100_continue = any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in self.headers
        )
        super().on_headers_complete()

    def _fault_of_head(self) -> str:
        """Why a well-formed request head is refused; empty if it is fine."""
        host, parser = self._head.get(b"host"), cast("Any", self.parser)
        repeated = len(self._head) != len(self.headers) and sum(name == b"host" for name, _ in self.headers) > 1
        if repeated or (host is not None and plain_host(host.strip(b" \t")) is None):
            return "the Host header must name one host, such as example.org or 127.0.0.1:8000"
        if host is None and parser.get_http_version() == "1.1":
            return "a request of HTTP/1.1 needs the header Host"
        if parser.should_upgrade() and any(_announces_body(*header) for header in self.headers):
            # The parser would take the body for the upgraded protocol, or for the next request (smuggling).
            return "a request that asks for another protocol cannot have a body"
        return ""

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._held is None:
            super().on_body(body)
        else:
            self._held += body

    def on_message_complete(self) -> None:
        """The end of a request."""
        # After an upgrade the parser would not go on, so that no request may go past it either.
        self._between = self._short_way is not None and not cast("Any", self.parser).should_upgrade()
        if self._held is None:
            super().on_message_complete()
        elif self._take(self._held):
            self._held = None
        else:
            self._let_go()
            super().on_message_complete()

    def _let_go(self) -> None:
        """Hand the request that was held back to uvicorn."""
        held, self._held = self._held, None
        if not self.transport.is_closing():
            self._begin_cycle()
            if held:
                super().on_body(held)

    def _take(self, body: bytes) -> bool:
        parser = cast("Any", self.parser)
        # HTTP/1.0 has other rules for keeping connections open, so uvicorn handles it; and where a header comes twice,
        # the last one need not be the one that counts.
        if self._short_way is None or parser.get_method() != b"POST" or parser.get_http_version() != "1.1":
            return False
        if len(self._head) != len(self.headers):
            return False
        taker = self._short_way.taker(self.url, self._head, len(body))
        head = ParsedHead(self.url, self._head, len(body), parser.should_keep_alive(), taker)
        return self._offer(head, body, 0, self._proxies.address(self._peer, self._head))

    def _offer(self, head: ParsedHead, data: bytes, start: int, address: str) -> bool:
        """Offer a whole request, whose body begins at `start`, to the fast path; False if it declines."""
        if head.taker is None or not head.taker.take(data, start, address, self._answer):
            return False
        self.deadline, self._head_bytes, self._taken = inf, 0, head
        # Uvicorn pipelines further requests behind an unfinished cycle, so order on the connection is kept.
        pending: Any = self._pending
        pending.response_complete, pending.keep_alive = False, head.keep_alive
        self.cycle = pending
        return True

    def on_response_complete(self) -> None:
        """Continue with a pipelined request, or start the idle deadline."""
        if self.pipeline:
            super().on_response_complete()
            return
        # Uvicorn's method would also start its keep-alive timer, which the deadline replaces.
        self.server_state.total_requests += 1
        if self.flow.read_paused and not self.transport.is_closing():
            self.flow.resume_reading()
        self.deadline = self.loop.time() + self._watch.limits.idle_seconds


def _announces_body(name: bytes, value: bytes) -> bool:
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ") != b"")


def connections(short_way: ShortWay | None, limits: Limits, trusted_proxies: str = "") -> Any:
    """The protocol factory for uvicorn's setting `http`."""
    return partial(HttpConnection, Watch(limits), short_way, Proxies(trusted_proxies), KnownHeads())
