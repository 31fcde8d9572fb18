"""Replies that an operator's client cannot take as they are, from a server that sends bytes as told."""

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread

import pytest

from tacit.client.operator import Operator, Refused
from tacit.client.transport import Unreachable
from tacit.errors import InvalidQuery


@contextmanager
def replying(reply: bytes) -> Generator[Operator]:
    """An operator of a server that answers one request with these bytes and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(reply)

        thread = Thread(target=serve)
        thread.start()
        yield Operator(f"http://127.0.0.1:{listener.getsockname()[1]}", "token")
        thread.join()


@pytest.mark.parametrize(
    "reply",
    [
        b"",  # The server dies before it answers.
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1, 2",  # And in the middle of an answer.
        b"nothing that HTTP knows\r\n\r\n",
    ],
    ids=["nothing", "half", "noise"],
)
def test_a_reply_that_breaks_off_is_unreachable(reply: bytes) -> None:
    with replying(reply) as operator, pytest.raises(Unreachable, match="cannot be reached"):
        operator.tables()


def test_a_refused_query_keeps_its_code_and_position() -> None:
    problem = {
        "type": "urn:tacit:problem:invalid_query", "title": "Invalid query", "detail": "no such column",
        "code": "42703", "position": 8,
    }  # fmt: skip
    body = json.dumps(problem).encode()
    reply = b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with replying(reply) as operator, pytest.raises(InvalidQuery) as caught:
        operator.query("c", "SELECT x", 0.95)
    assert (caught.value.code, caught.value.position) == ("42703", 8)


def test_a_page_that_is_not_json_is_refused() -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"
    with replying(reply) as operator, pytest.raises(Refused, match="JSON"):
        operator.tables()
