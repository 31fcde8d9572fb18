"""A connection's bytes: reads with limits and patience, writes that wait for slow readers, and TLS from the middle."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, cast

_HELD_BYTES = 1 << 16
"""Beyond what is wanted, no more than this is taken from a client that sends ahead."""

_CLOSING_SECONDS = 5.0


class Closed(Exception):
    """The other side is gone."""


class Channel(asyncio.Protocol):
    """Both directions of one connection."""

    def __init__(self, begin: "Callable[[Channel], None]") -> None:
        """`begin` is told when the connection stands."""
        self._begin = begin
        self._transport: asyncio.Transport | None = None
        self._buffer, self._wanted = bytearray(), 0
        self._waiter: asyncio.Future[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._out = bytearray()
        self.gone = asyncio.Event()
        self.secure = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast("asyncio.Transport", transport)
        self._begin(self)

    def data_received(self, data: bytes) -> None:
        """Keep what came; a client that sends ahead waits."""
        self._buffer += data
        if len(self._buffer) > self._wanted + _HELD_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The other side has said everything; what has come may still be answered."""
        self.gone.set()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody listens any more."""
        del exc
        self.gone.set()
        self._may_write.set()
        self._wake()

    def pause_writing(self) -> None:
        """The other side reads slowly."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """The other side has caught up."""
        self._may_write.set()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def waiting(self) -> int:
        """Bytes that came and were not read."""
        return len(self._buffer)

    async def read(self, length: int, seconds: float) -> bytes:
        """Exactly so many bytes; Closed if they never come, TimeoutError if they come too slowly."""
        if len(self._buffer) < length:
            async with asyncio.timeout(seconds):
                await self._fill(length)
        found = bytes(self._buffer[:length])
        del self._buffer[:length]
        return found

    async def _fill(self, length: int) -> None:
        self._wanted = length
        while len(self._buffer) < length:
            if self.gone.is_set() or self._transport is None:
                raise Closed
            self._transport.resume_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._wanted = 0

    def write(self, data: bytes) -> None:
        """Say something with the next flush."""
        self._out += data

    @property
    def unsent(self) -> int:
        """Bytes that wait for a flush."""
        return len(self._out)

    async def flush(self, seconds: float) -> None:
        """Flush the write buffer; waits while the client reads slowly (back-pressure)."""
        data, self._out = bytes(self._out), bytearray()
        if self._transport is None or self._transport.is_closing():
            raise Closed
        self._transport.write(data)
        async with asyncio.timeout(seconds):
            await self._may_write.wait()

    async def start_tls(self, context: ssl.SSLContext, seconds: float) -> None:
        """Go on encrypted. Whatever came in the clear before is a trick, and ends the connection."""
        if self._buffer or self._transport is None:
            raise Closed
        self._transport.write(b"S")
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(
                self._transport, self, context, server_side=True, ssl_handshake_timeout=seconds
            )
        except (OSError, ssl.SSLError):
            raise Closed from None
        if secured is None:
            raise Closed
        self._transport, self.secure = secured, True

    def keep_alive(self, options: "tuple[tuple[str, int], ...]") -> None:
        """Let the system find out when the other side has vanished without a word."""
        found: Any = None if self._transport is None else self._transport.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in options:
                if hasattr(socket, name):
                    found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def close(self) -> None:
        """Flush the write buffer, then close the connection."""
        if self._transport is not None:
            if self._out and not self._transport.is_closing():
                self._transport.write(bytes(self._out))
            self._out = bytearray()
            self._transport.close()
            # Whoever neither reads what was said nor answers to the end of TLS must not hold the connection open.
            asyncio.get_running_loop().call_later(_CLOSING_SECONDS, self._transport.abort)

    def abort(self) -> None:
        """End at once."""
        if self._transport is not None:
            self._transport.abort()

    @cached_property
    def _address(self) -> IPv4Address | IPv6Address | None:
        peer: Any = None if self._transport is None else self._transport.get_extra_info("peername")
        try:
            address = ip_address(str(peer[0]).partition("%")[0])
        except (TypeError, IndexError, ValueError):
            return None
        return getattr(address, "ipv4_mapped", None) or address

    @property
    def origin(self) -> str:
        """Where the other side is: its address, or the network of 64 bits that one customer is commonly given."""
        found = self._address
        return f"{int(found) >> 64:x}::" if isinstance(found, IPv6Address) else str(found)

    @property
    def is_local(self) -> bool:
        """Whether the other side is on this machine."""
        return self._address is not None and self._address.is_loopback
