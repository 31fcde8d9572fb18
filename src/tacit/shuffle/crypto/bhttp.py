"""Binary HTTP messages (RFC 9292), of known length: the little that is put into encapsulated requests and responses.

>>> request = BinaryRequest("POST", "https", "shuffler.example", "/uploads", {"content-type": "text/plain"}, b"body")
>>> BinaryRequest.from_bytes(request.to_bytes()) == request, len(request.to_bytes()) % 64
(True, 0)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from tacit.errors import ReportRejected

_REQUEST, _RESPONSE = 0, 1
PADDED_TO = 64
"""Messages are filled up with zeros to a multiple of this, so that their size says little about what is in them."""
_LIMITS = ((0, 1 << 6), (1, 1 << 14), (2, 1 << 30), (3, 1 << 62))


def write_integer(value: int) -> bytes:
    """A variable-length integer (RFC 9000, section 16).

    >>> write_integer(37).hex(), write_integer(15293).hex(), write_integer(200).hex()
    ('25', '7bbd', '40c8')
    """
    size = next(size for size, limit in _LIMITS if value < limit)
    return (value | size << (8 * (1 << size) - 2)).to_bytes(1 << size, "big")


class _Reader:
    """Takes pieces off the front of a message."""

    def __init__(self, message: bytes) -> None:
        self._message, self._place = message, 0

    def take(self, count: int) -> bytes:
        piece = self._message[self._place : self._place + count]
        if len(piece) != count:
            _refuse("it ends too early")
        self._place += count
        return piece

    def integer(self) -> int:
        first = self.take(1)
        rest = self.take((1 << (first[0] >> 6)) - 1)
        return int.from_bytes(first + rest, "big") & ((1 << (8 * (1 + len(rest)) - 2)) - 1)

    def field(self) -> bytes:
        # A message may be cut off where all that follows would be empty (section 3.8).
        return self.take(self.integer()) if self._place < len(self._message) else b""

    def end(self) -> None:
        # Padding is zeros alone (section 3.8); anything else could carry a message past the size rule.
        if any(self._message[self._place :]):
            _refuse("something follows its end that is not padding")


def _sized(content: bytes) -> bytes:
    return write_integer(len(content)) + content


def _fields(headers: Mapping[str, str]) -> bytes:
    return _sized(b"".join(_sized(name.lower().encode()) + _sized(text.encode()) for name, text in headers.items()))


def _read_fields(section: bytes) -> dict[str, str]:
    reader, headers = _Reader(section), dict[str, str]()
    left = len(section)
    while left:
        name, text = reader.take(reader.integer()), reader.take(reader.integer())
        left -= len(_sized(name)) + len(_sized(text))
        # No message of this project repeats a field; what two values would mean is therefore not decided here.
        if name.decode("latin-1") in headers or left < 0:
            _refuse("a field comes twice or is longer than its section")
        headers[name.decode("latin-1")] = text.decode("latin-1")
    return headers


def padded(message: bytes, multiple: int = PADDED_TO) -> bytes:
    """The message with zeros up to the next multiple."""
    return message + bytes(-len(message) % multiple)


@dataclass(frozen=True)
class BinaryRequest:
    """A request: control data, header fields, content. Trailers are not used."""

    method: str
    scheme: str
    authority: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes = b""

    def to_bytes(self, *, multiple: int = PADDED_TO) -> bytes:
        """The message, padded."""
        control = b"".join(_sized(text.encode()) for text in (self.method, self.scheme, self.authority, self.path))
        return padded(bytes([_REQUEST]) + control + _fields(self.headers) + _sized(self.content) + b"\x00", multiple)

    @classmethod
    def from_bytes(cls, message: bytes) -> "BinaryRequest":
        """A request as it arrived; ReportRejected if it is none."""
        reader = _Reader(message)
        if reader.integer() != _REQUEST:
            _refuse("it is not a request of known length")
        method, scheme, authority, path = (reader.take(reader.integer()).decode("latin-1") for _ in range(4))
        headers, content = _read_fields(reader.field()), reader.field()
        _no_trailers(reader)
        return cls(method, scheme, authority, path, headers, content)


@dataclass(frozen=True)
class BinaryResponse:
    """A final response. Informational responses and trailers are not used.

    >>> BinaryResponse(202).to_bytes(multiple=1).hex()
    '0140ca000000'
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes = b""

    def to_bytes(self, *, multiple: int = PADDED_TO) -> bytes:
        """The message, padded."""
        start = bytes([_RESPONSE]) + write_integer(self.status)
        return padded(start + _fields(self.headers) + _sized(self.content) + b"\x00", multiple)

    @classmethod
    def from_bytes(cls, message: bytes) -> "BinaryResponse":
        """A response as it arrived; ReportRejected if it is none."""
        reader = _Reader(message)
        if reader.integer() != _RESPONSE:
            _refuse("it is not a response of known length")
        status = reader.integer()
        if not 200 <= status <= 599:
            _refuse("its status is not that of a final response")
        headers, content = _read_fields(reader.field()), reader.field()
        _no_trailers(reader)
        return cls(status, headers, content)


def _no_trailers(reader: _Reader) -> None:
    if reader.field():
        _refuse("it has trailers, which are not used here")
    reader.end()


def _refuse(reason: str) -> NoReturn:
    raise ReportRejected(f"binary HTTP message: {reason}")
