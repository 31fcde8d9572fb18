"""What all routes share: problem documents, bodies within limits, security headers, and the origins of a document."""

import asyncio
from collections.abc import Iterable
from time import monotonic
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Message, Receive, Send

from tacit.collector.limits import Limits
from tacit.collector.problems import MEDIA_TYPE, Problem

Header = tuple[bytes, bytes]

SECURITY: tuple[Header, ...] = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; object-src 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
"""On every response that does not state its own."""

encode_json = msgspec.json.encode


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer that nobody keeps."""
    return Response(encode_json(value), status, {"cache-control": "no-store"} | (headers or {}), "application/json")


def problem_response(problem: Problem) -> Response:
    """A problem document."""
    headers = {key.decode(): value.decode() for key, value in problem_headers(problem)}
    return Response(encode_json(problem.to_json()), problem.status, headers, MEDIA_TYPE)


def problem_headers(problem: Problem) -> list[Header]:
    """Headers that go with a problem."""
    headers: list[Header] = [(b"cache-control", b"no-store")]
    if problem.retry_seconds:
        headers.append((b"retry-after", str(problem.retry_seconds).encode()))
    if problem.kind == "unauthorized":
        headers.append((b"www-authenticate", b'Bearer realm="tacit"'))
    return headers


async def send_plain(send: Send, status: int, body: bytes, media_type: bytes, headers: Iterable[Header] = ()) -> None:
    """A whole response from bytes, without an intermediate object."""
    start: list[Header] = [(b"content-type", media_type), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def send_problem(send: Send, problem: Problem, headers: Iterable[Header] = ()) -> None:
    """A problem document from a raw route."""
    body = encode_json(problem.to_json())
    await send_plain(send, problem.status, body, MEDIA_TYPE.encode(), [*problem_headers(problem), *headers])


class Patience:
    """Ends requests whose bodies take too long, by looking around once in a while: cheaper than a timer for each."""

    def __init__(self, seconds: float) -> None:
        """Wait this long for a body, give or take a fifth."""
        self._seconds, self._waiting = seconds, dict[asyncio.Task[Any], float]()
        self._looking, self._ended = False, set[asyncio.Task[Any]]()

    def begin(self) -> "asyncio.Task[Any]":
        """Say that the running request waits for its body."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = monotonic() + self._seconds
        if not self._looking:
            self._look_again()
        return task

    def end(self, task: "asyncio.Task[Any]") -> bool:
        """Say that a request waits no longer; tells whether it waited too long."""
        self._waiting.pop(task, None)
        if task not in self._ended:
            return False
        self._ended.remove(task)
        task.uncancel()
        return True

    def _look_again(self) -> None:
        self._looking = True
        asyncio.get_running_loop().call_later(self._seconds / 5, self._look)

    def _look(self) -> None:
        now = monotonic()
        for task in [task for task, end in self._waiting.items() if end <= now]:
            del self._waiting[task]
            self._ended.add(task)
            task.cancel()
        self._looking = False
        if self._waiting:
            self._look_again()


async def read_body(receive: Receive, limits: Limits, stated: bytes | None, patience: Patience) -> bytes:
    """A request's body; too large a one or too slow a one is a problem."""
    if stated is not None and (not stated.isdigit() or int(stated[:20]) > limits.body_bytes):
        raise Problem("too_large", f"a body may have at most {limits.body_bytes} bytes")
    task = patience.begin()
    try:
        message = await receive()
        if not message.get("more_body", False):
            return _part(message, 0, limits)
        return await _rest(receive, _part(message, 0, limits), limits)
    except asyncio.CancelledError:
        if not patience.end(task):
            raise
        raise Problem("timeout", f"the body did not arrive within {limits.body_seconds:g} seconds") from None
    finally:
        patience.end(task)


async def _rest(receive: Receive, first: bytes, limits: Limits) -> bytes:
    parts, size = [first], len(first)
    while True:
        message = await receive()
        parts.append(_part(message, size, limits))
        size += len(parts[-1])
        if not message.get("more_body", False):
            return b"".join(parts)


def _part(message: Message, so_far: int, limits: Limits) -> bytes:
    if message["type"] == "http.disconnect":
        raise Problem("timeout", "the client left before its body was complete")
    body: bytes = message.get("body", b"")
    if so_far + len(body) > limits.body_bytes:
        raise Problem("too_large", f"a body may have at most {limits.body_bytes} bytes")
    return body


def cors_headers(origin: bytes, origins: tuple[str, ...]) -> list[Header]:
    """Headers that let the pages of a document's origins read the response."""
    if not origins:
        return []
    vary: list[Header] = [(b"vary", b"Origin")]
    if not origin or not ("*" in origins or origin.decode("latin-1") in origins):
        return vary
    return [(b"access-control-allow-origin", b"*" if "*" in origins else origin), *vary]


PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"Content-Type, Tacit-Batch, Tacit-Invitation"),
    (b"access-control-max-age", b"86400"),
)
