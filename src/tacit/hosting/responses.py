"""Helpers of all routes: JSON and problem responses, request bodies, security headers, and CORS."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Send

from tacit.hosting.problems import MEDIA_TYPE, Problem

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
"""Default security headers, added to every response that does not set its own."""

encode_json = msgspec.json.encode


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response that must not be cached."""
    return Response(encode_json(value), status, {"cache-control": "no-store"} | (headers or {}), "application/json")


def problem_response(problem: Problem) -> Response:
    """A problem document as a Starlette response."""
    headers = {key.decode(): value.decode() for key, value in problem_headers(problem)}
    return Response(encode_json(problem.to_json()), problem.status, headers, MEDIA_TYPE)


def problem_headers(problem: Problem) -> list[Header]:
    """Headers of a problem response: no caching, Retry-After, and the challenge of a 401."""
    headers: list[Header] = [(b"cache-control", b"no-store")]
    if problem.retry_seconds:
        headers.append((b"retry-after", str(problem.retry_seconds).encode()))
    if problem.kind == "unauthorized":
        headers.append((b"www-authenticate", b'Bearer realm="tacit"'))
    return headers


async def send_plain(send: Send, status: int, body: bytes, media_type: bytes, headers: Iterable[Header] = ()) -> None:
    """Send a whole response through plain ASGI, without the cost of a Starlette response object."""
    start: list[Header] = [(b"content-type", media_type), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def send_problem(send: Send, problem: Problem, headers: Iterable[Header] = ()) -> None:
    """Send a problem document through plain ASGI."""
    body = encode_json(problem.to_json())
    await send_plain(send, problem.status, body, MEDIA_TYPE.encode(), [*problem_headers(problem), *headers])


async def read_body(receive: Receive) -> bytes:
    """Read a request's body; `reading.RequestBody`, which is behind `receive`, enforces size and speed."""
    # Fast path: most bodies arrive in one message, and are returned without a copy.
    message = await receive()
    if not message.get("more_body", False):
        return message.get("body", b"")
    parts: list[bytes] = [message.get("body", b"")]
    while message.get("more_body", False):
        message = await receive()
        parts.append(message.get("body", b""))
    return b"".join(parts)


def closes(headers: Iterable[Header]) -> list[Header]:
    """Response headers with `Connection: close`."""
    return [*(pair for pair in headers if pair[0].lower() != b"connection"), (b"connection", b"close")]


def is_known(request_headers: Mapping[str, str], etag: str) -> bool:
    """Whether If-None-Match names this ETag, so that a 304 is enough."""
    given = request_headers.get("if-none-match", "")
    return given.strip() == "*" or etag in [item.strip().removeprefix("W/") for item in given.split(",")]


def cors_headers(origin: bytes, origins: tuple[str, ...]) -> list[Header]:
    """CORS headers that let pages of the document's origins read the response."""
    # Vary even without a match: a cache must not hand a response for one origin to another.
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
