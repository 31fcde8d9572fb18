"""Messages of PostgreSQL's protocol, version 3: framing, limits, and what either side says.

A message is a letter, a length that counts itself, and a body. Nothing here waits or reads; a body is given whole, and
what does not fit it exactly is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct, error, pack
from typing import Any

VERSION_3 = 3 << 16
SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102

HEAD = Struct("!cI")
OPENING = Struct("!II")
"""A letter with a length; and the length with a code that begins a connection."""

_INT16, _INT32 = Struct("!h"), Struct("!i")


@dataclass(frozen=True)
class PgLimits:
    """What one connection, and all of them, may cost."""

    connections: int = 100
    connections_each: int = 50
    """Of one token."""
    strangers: int = 100
    """Connections that have not shown a token yet."""
    strangers_each: int = 10
    """Of these from one address, before those who linger have to leave."""
    lingering_seconds: float = 3.0
    opening_bytes: int = 10_000
    message_bytes: int = 1 << 20
    text_bytes: int = 20_000
    """Characters of one statement: no more than a query may have, so that a longer one is not even cut into words."""
    statements: int = 500
    portals: int = 20
    kept_bytes: int = 1 << 20
    """Of the texts of all prepared statements of a connection."""
    opening_seconds: float = 10.0
    """From the connection to a valid token."""
    idle_seconds: float = 8 * 3600.0
    message_seconds: float = 30.0
    """From the first byte of a message to its last."""
    write_seconds: float = 30.0
    cells_each: int = 1_000_000
    """Values that the open cursors of one token hold, in all of its sessions."""


class PgError(Exception):
    """A refusal with its SQLSTATE; one sentence that helps, never a traceback, never a payload."""

    def __init__(self, state: str, message: str, *, hint: str = "", fatal: bool = False, position: int = 0) -> None:
        """Refuse; a fatal refusal ends the connection. The position is a character of the text, from 1 on."""
        super().__init__(message)
        self.state, self.message, self.hint, self.fatal, self.position = state, message, hint, fatal, position


def malformed(what: str) -> PgError:
    """What was sent is not of the protocol, so nothing after it can be trusted."""
    return PgError("08P01", f"protocol violation: {what}", fatal=True)


class Body:
    """Reads the body of a message from its beginning."""

    def __init__(self, data: bytes) -> None:
        """The body is here already, so nothing that it claims can make anybody wait."""
        self._data, self._at = data, 0

    def take(self, length: int) -> bytes:
        """The next bytes."""
        if not 0 <= length <= len(self._data) - self._at:
            raise malformed("a message is shorter than it claims")
        self._at += length
        return self._data[self._at - length : self._at]

    def int16(self) -> int:
        """The next two bytes, as a number."""
        return _INT16.unpack(self.take(2))[0]

    def int32(self) -> int:
        """The next four bytes, as a number."""
        return _INT32.unpack(self.take(4))[0]

    def uint32(self) -> int:
        """The next four bytes, as a number without a sign."""
        return self.int32() & 0xFFFFFFFF

    def text(self) -> str:
        """Text up to a zero byte."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise malformed("text in a message has no end")
        found = self._data[self._at : end]
        self._at = end + 1
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise PgError("22021", "text must be UTF-8", hint="Set the client's encoding to UTF8.") from None

    def count(self) -> int:
        """A number of items, which is never negative."""
        found = self.int16()
        if found < 0:
            raise malformed("a number of items is negative")
        return found

    @property
    def left(self) -> int:
        """Number of bytes that are left."""
        return len(self._data) - self._at

    def end(self) -> None:
        """Say that there must be nothing more."""
        if self.left:
            raise malformed("a message is longer than its content")


@dataclass(frozen=True)
class SimpleQuery:
    """Statements to run at once."""

    sql: str


@dataclass(frozen=True)
class Parse:
    """A statement to prepare, with the types of its parameters as far as they are stated."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True)
class Bind:
    """Parameter values for a prepared statement, and the formats of the result columns."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Describe:
    """Asks for the columns of a statement (S) or a portal (P)."""

    kind: str
    name: str


@dataclass(frozen=True)
class Execute:
    """Asks for rows of a portal, all of them if the limit is 0."""

    portal: str
    limit: int


@dataclass(frozen=True)
class Close:
    """Forgets a statement (S) or a portal (P)."""

    kind: str
    name: str


@dataclass(frozen=True)
class Plain:
    """A message without content: Sync, Flush, Terminate, or what belongs to copying."""

    letter: str


Message = SimpleQuery | Parse | Bind | Describe | Execute | Close | Plain


def decode(letter: bytes, data: bytes) -> Message:
    """What a client says after it has been let in."""
    body = Body(data)
    found = _decode(letter, body)
    # Copying in and function calls are not supported, so that nobody reads what they carry.
    if not (isinstance(found, Plain) and found.letter in "dfcF"):
        body.end()
    return found


def _decode(letter: bytes, body: Body) -> Message:
    match letter:
        case b"Q":
            return SimpleQuery(body.text())
        case b"P":
            name, sql = body.text(), body.text()
            return Parse(name, sql, tuple(body.uint32() for _ in range(body.count())))
        case b"B":
            return _bind(body)
        case b"D" | b"C":
            kind, name = body.take(1).decode("latin-1"), body.text()
            if kind not in "SP":
                raise malformed("only statements (S) and portals (P) can be described or closed")
            return Describe(kind, name) if letter == b"D" else Close(kind, name)
        case b"E":
            return Execute(body.text(), max(0, body.int32()))
        case b"S" | b"H" | b"X" | b"d" | b"c" | b"f" | b"F":
            return Plain(letter.decode())
        case _:
            raise malformed("a message begins with an unknown letter")


def _bind(body: Body) -> Bind:
    portal, statement = body.text(), body.text()
    formats = tuple(body.int16() for _ in range(body.count()))
    values: list[bytes | None] = []
    for _ in range(body.count()):
        length = body.int32()
        values.append(None if length == -1 else body.take(length))
    results = tuple(body.int16() for _ in range(body.count()))
    if any(item not in (0, 1) for item in (*formats, *results)):
        raise malformed("a format must be 0 (text) or 1 (binary)")
    return Bind(portal, statement, formats, tuple(values), results)


def decode_opening(data: bytes) -> dict[str, str]:
    """The settings with which a connection begins."""
    body, found = Body(data), dict[str, str]()
    while body.left > 1:
        name = body.text()
        found[name] = body.text()
    if body.left != 1 or body.take(1) != b"\0":
        raise malformed("the opening message has no end")
    return found


def encode(letter: str, body: bytes = b"") -> bytes:
    """Encode a message: type byte, length, body."""
    # The length counts its own four bytes, and not the letter.
    return HEAD.pack(letter.encode(), len(body) + 4) + body


def text(value: str) -> bytes:
    """Text with its end; a zero inside would end it early, so there is none."""
    return value.replace("\0", "").encode(errors="replace") + b"\0"


def notice(fields: dict[str, str], letter: str = "N") -> bytes:
    """A notice, or an error."""
    return encode(letter, b"".join(key.encode() + text(value) for key, value in fields.items() if value) + b"\0")


def encode_error(problem: PgError) -> bytes:
    """An error, with what to do about it."""
    severity = "FATAL" if problem.fatal else "ERROR"
    # S may be translated by servers and V never is, so that libraries look at V.
    said = {"S": severity, "V": severity, "C": problem.state, "M": problem.message, "H": problem.hint}
    return notice(said | {"P": str(problem.position or "")}, "E")


def encode_notice(message: str, hint: str = "") -> bytes:
    """Something that a reader of the answer should know."""
    return notice({"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": message, "H": hint})


def parameter_status(name: str, value: str) -> bytes:
    """The value of a setting, which libraries keep."""
    return encode("S", text(name) + text(value))


def backend_key(process: int, secret: int) -> bytes:
    """What a client shows to cancel its query from another connection."""
    return encode("K", pack("!II", process, secret))


def ready(status: str) -> bytes:
    """Everything is answered; I outside a transaction, T inside one, E inside one that failed."""
    return encode("Z", status.encode())


def complete(tag: str) -> bytes:
    """A statement is done."""
    return encode("C", text(tag))


def row_description(fields: Sequence[tuple[str, int, int]], formats: Sequence[int]) -> bytes:
    """Columns by name, type and width of the type."""
    parts = [pack("!h", len(fields))]
    for (name, oid, width), form in zip(fields, formats, strict=True):
        # A column of no table (0, 0), and -1 for a type without a modifier.
        parts.append(text(name) + pack("!IhIhih", 0, 0, oid, width, -1, form))
    return encode("T", b"".join(parts))


def parameter_description(types: Sequence[int]) -> bytes:
    """Types of parameters."""
    return encode("t", pack(f"!H{len(types)}I", len(types), *types))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """Encode a DataRow message."""
    parts = [pack("!h", len(values))]
    # NULL has the length -1 and no bytes, which tells it from empty text.
    parts += [b"\xff\xff\xff\xff" if value is None else _INT32.pack(len(value)) + value for value in values]
    return encode("D", b"".join(parts))


def negotiate_version(minor: int, refused: Sequence[str]) -> bytes:
    """Says which version is spoken, and which options of the protocol are not known."""
    return encode("v", pack("!iI", minor, len(refused)) + b"".join(text(name) for name in refused))


def spread(formats: Sequence[int], count: int) -> tuple[int, ...]:
    """A format for each of some items: none given means text, one given is for all."""
    if len(formats) in (0, 1):
        return (formats[0] if formats else 0,) * count
    if len(formats) != count:
        raise PgError("08P01", f"there are {len(formats)} formats for {count} items")
    return tuple(formats)


def unpacked(shape: str, data: bytes) -> Any:
    """One binary value; PgError where its width is another."""
    try:
        return Struct(shape).unpack(data)[0]
    except error:
        raise PgError("22P03", f"a binary parameter has {len(data)} bytes, which its type never has") from None
