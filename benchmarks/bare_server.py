"""The least that a server in Python does for a request: uvloop and httptools, the answer 202, nothing stored.

    python benchmarks/bare_server.py PORT [reading]

What a collector reaches is compared with this. With `reading`, path, headers and body are gathered as well, which every
server must do that looks at a request before it answers.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httptools
import uvloop

ANSWER = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"


class Bare(asyncio.Protocol):
    """One connection: parse, answer."""

    def connection_made(self, transport: Any) -> None:
        """Begin to parse."""
        self.transport, self.parser = transport, httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Parse what has come."""
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Answer a whole request."""
        self.transport.write(ANSWER)


class Reading(Bare):
    """One connection: parse, gather the request, answer."""

    def on_message_begin(self) -> None:
        """Forget the request before."""
        self.url, self.body = b"", b""
        self.headers: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        """Keep the path."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body."""
        self.body += body


async def serve(port: int, protocol: type[Bare]) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", port, backlog=2048)
    print("bare", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), Reading if sys.argv[2:] == ["reading"] else Bare))
