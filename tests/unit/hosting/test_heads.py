"""Heads that were parsed before: exactly the same bytes, of nobody in particular, for a minute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.hosting.heads import MOST, MOST_BYTES, KnownHeads, ParsedHead


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def request(*lines: str, body: bytes = b"report", path: str = "/c/a/reports") -> tuple[bytes, ParsedHead]:
    """A request, and what a parser says of it."""
    fields = ["Host: x", f"Content-Length: {len(body)}", *lines]
    headers = {name.lower().encode(): value.encode() for name, _, value in (line.partition(": ") for line in fields)}
    head = "\r\n".join([f"POST {path} HTTP/1.1", *fields, "", ""]).encode()
    return head + body, ParsedHead(path.encode(), headers, len(body), keep_alive=True)


def head_of(data: bytes) -> bytes:
    return data[: data.index(b"\r\n\r\n") + 4]


def test_a_head_is_known_by_all_its_bytes():
    known, (data, parsed) = KnownHeads(), request("Origin: https://example.org")
    assert known.get(head_of(data)) is None
    known.keep(data, parsed)
    assert known.get(head_of(data)) == parsed
    assert known.get(head_of(data).replace(b"Origin", b"origin")) is None
    assert known.get(head_of(data)[:-2]) is None


@pytest.mark.parametrize(
    "line",
    ["Cookie: a=b", "Authorization: Bearer a", "Tacit-Invitation: a", "X-Forwarded-For: 192.0.2.1", "Forwarded: for=a"],
)
def test_what_belongs_to_one_person_is_not_kept(line: str):
    known, (data, parsed) = KnownHeads(), request(line)
    known.keep(data, parsed)
    assert known.get(head_of(data)) is None


def test_a_body_must_be_what_follows_the_head_in_the_stated_length():
    known, (data, parsed) = KnownHeads(), request()
    chunked = request("Transfer-Encoding: chunked")
    others = [
        (data + b"POST", parsed),  # The beginning of another request came in the same read.
        (data[:-1], parsed),
        (data.replace(b"Content-Length", b"Content-length-"), ParsedHead(b"/", {}, 6, keep_alive=True)),
        chunked,
        # The parser takes nothing behind a request that closes, and must see it for that.
        (request("Connection: close")[0], replace(request("Connection: close")[1], keep_alive=False)),
    ]
    for given in others:
        known.keep(*given)
    assert all(known.get(head_of(given[0])) is None for given in others)


def test_heads_are_forgotten_after_a_minute():
    clock = Clock()
    known, (data, parsed) = KnownHeads(clock), request()
    known.keep(data, parsed)
    clock.now = 59.9
    assert known.get(head_of(data)) == parsed
    clock.now = 60.0
    assert known.get(head_of(data)) is None


def test_many_or_long_heads_take_little_memory():
    known = KnownHeads()
    long, parsed = request("A: " + "a" * MOST_BYTES)
    known.keep(long, parsed)
    assert known.get(head_of(long)) is None
    made = [request(f"A: {i}") for i in range(MOST + 1)]
    for given in made:
        known.keep(*given)
    assert sum(known.get(head_of(data)) is not None for data, _ in made) == 1
