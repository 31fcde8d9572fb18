"""PostgreSQL's protocol byte by byte, as somebody would speak it who means harm."""

from __future__ import annotations

import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager

from tests.service.pg_people import Served
from tests.service.waiting import PATIENT_SECONDS

SSL_REQUEST = struct.pack("!II", 8, 80877103)
_OPENING = struct.pack("!I", 196608) + b"user\0ann\0database\0tacit\0\0"
OPENING = struct.pack("!I", len(_OPENING) + 4) + _OPENING


@contextmanager
def raw(table: Served, *, opened: bool = False, token: str = "") -> Generator[socket.socket]:
    with socket.create_connection(("127.0.0.1", table.port), timeout=PATIENT_SECONDS) as found:
        if opened:
            found.sendall(OPENING)
            assert found.recv(9) == b"R\0\0\0\x08\0\0\0\x03"
            found.sendall(message(b"p", (token or table.token).encode() + b"\0"))
            until_ready(found)
        yield found


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has hung up, without waiting for it and with nothing to read before."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    finally:
        connection.settimeout(PATIENT_SECONDS)


def message(letter: bytes, body: bytes = b"") -> bytes:
    return letter + struct.pack("!I", len(body) + 4) + body


def until_ready(connection: socket.socket) -> bytes:
    found = b""
    while not found.endswith((b"Z\0\0\0\x05I", b"Z\0\0\0\x05T", b"Z\0\0\0\x05E")):
        part = connection.recv(65536)
        assert part, found
        found += part
    return found


def rest(connection: socket.socket) -> bytes:
    """Everything until the server hangs up."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found
