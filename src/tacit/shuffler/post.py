"""The post between parties: a courier that delivers the outbox until it is acknowledged, and the counter for arrivals.

Courier: one thread per party that letters wait for, so that a party that is down holds up nobody else. A letter is sent
byte for byte as it was stored, again and again with growing pauses, until one of these replies:

    204    stored, or known already: its body is dropped from the outbox
    409    the receiver has aborted, as the letter contradicts an earlier one; it is not sent again
    410    the session is over there; it is not sent again
    403    the receiver refuses this letter for good; it is not sent again, and `refused` is called

Everything else (no answer, 404 before the receiver has joined, 5xx) is tried again.

Reception: reads a letter from a stream of chunks. Head, route, size and signature are checked before a byte of the body
is read, so that strangers cannot make a party hold large bodies. A web handler is three lines:

    reply = await reception.take(session_id, request.stream())
    return Response(status_code=reply.status)
"""

import asyncio
import http.client
import logging
import ssl
import threading
from collections.abc import AsyncIterable, Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from tacit.client.transport import Patience
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.envelope import LABEL, Envelope, check_body
from tacit.shuffle.crypto.signing import check_signature
from tacit.shuffle.protocol.parties import party_names
from tacit.shuffler.letters import (
    LENGTH_BYTES,
    MAX_HEAD_BYTES,
    MEDIA_TYPE,
    Letter,
    address_of,
    check_route,
    largest_body,
    read_head,
)
from tacit.shuffler.party_store import PartyStore, SessionRecord, WaitingLetter

LOG = logging.getLogger("tacit.shuffler")
CHUNK_BYTES = 4 << 20
MOST_BODY_BYTES = 512 << 20
"""The largest body that a party holds in memory, whatever a session allows."""
DELIVERED, REFUSED, OVER = "delivered", "refused", "over"
_FINAL = {204: DELIVERED, 409: OVER, 410: OVER, 403: REFUSED}
_PATIENCE = Patience(first_seconds=0.2, longest_seconds=30.0, timeout_seconds=60.0)
_LAST_TRIES = 200
"""After so many failures a letter of a session that is over is dropped: nobody has to know any more."""


def _ignore(session: str, receiver: str) -> None:
    del session, receiver


def connect(url: SplitResult, timeout_seconds: float, trust: ssl.SSLContext | None = None) -> HTTPConnection:
    """A connection to the server of an address; `trust` says whose certificates are believed."""
    if url.scheme == "https":
        return http.client.HTTPSConnection(url.netloc, timeout=timeout_seconds, context=trust)
    return HTTPConnection(url.netloc, timeout=timeout_seconds)


def post_letter(address: str, letter: Letter, timeout_seconds: float, *, trust: ssl.SSLContext | None = None) -> int:
    """Post a letter once; returns the status, or 0 if there was no reply."""
    parts = urlsplit(address)
    # A connection of its own for every letter: they are few and large, and a kept one may be dead when it is needed.
    connection = connect(parts, timeout_seconds, trust)
    size = len(letter.head) + len(letter.body)
    headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(size)}
    try:
        connection.request("POST", parts.path, _chunks(letter), headers)
        response = connection.getresponse()
        response.read(CHUNK_BYTES)
        return response.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def _chunks(letter: Letter) -> Iterator[bytes | memoryview]:
    body = memoryview(letter.body)
    yield letter.head
    for start in range(0, len(body), CHUNK_BYTES):
        yield body[start : start + CHUNK_BYTES]


class Courier:
    """Delivers what waits in the outbox of a store. `wake` after every change of the outbox."""

    def __init__(
        self,
        store: PartyStore,
        *,
        patience: Patience = _PATIENCE,
        send: Callable[[str, Letter, float], int] = post_letter,
        refused: Callable[[str, str], None] = _ignore,
        is_idle: bool = False,
    ) -> None:
        """Deliver for a store; `send` replaces the network in tests, `refused` hears of session and receiver.

        An idle courier leaves everything to another process.
        """
        self._store, self._patience, self._send, self._refused = store, patience, send, refused
        self._change, self._stopping = threading.Condition(), is_idle
        self._generation = 0
        self._threads: dict[str, threading.Thread] = {}

    def wake(self) -> None:
        """Read the outbox, and start a delivery thread for every receiver that has none."""
        waiting = self._store.waiting()
        with self._change:
            self._generation += 1
            self._change.notify_all()
            if self._stopping:
                return
            for item in waiting:
                name = _route(item)
                if name not in self._threads:
                    thread = threading.Thread(
                        target=self._deliver, args=(name,), name=f"post-{item.receiver}", daemon=True
                    )
                    self._threads[name] = thread
                    thread.start()

    def stop(self) -> None:
        """End all threads, each after the letter that it is sending."""
        with self._change:
            self._stopping = True
            self._change.notify_all()
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()

    def _deliver(self, name: str) -> None:
        """Deliver all letters of one session to one receiver, in order, until none waits."""
        failures = 0
        while True:
            with self._change:
                seen = self._generation
            item = next((each for each in self._store.waiting() if _route(each) == name), None)
            with self._change:
                if self._stopping or (item is None and seen == self._generation):
                    self._threads.pop(name, None)
                    return
            if item is None:
                continue
            failures = 0 if self._is_done(item, failures) else failures + 1
            if failures:
                # A change of the outbox is no reason to knock again at once where nobody is at home.
                self._pause(self._patience.wait_seconds(min(failures - 1, 20)))

    def _pause(self, seconds: float) -> None:
        with self._change:
            self._change.wait_for(lambda: self._stopping, timeout=seconds)

    def _is_done(self, item: WaitingLetter, failures: int) -> bool:
        """Try a letter once; whether nothing remains to be done about it."""
        record, letter = self._store.session(item.session), self._store.outgoing(item.number)
        if record is None or letter is None:
            return True
        number = party_names(record.session.shuffler_count).index(item.receiver)
        status = self._send(address_of(record.session, number), letter, self._patience.timeout_seconds)
        outcome = _FINAL.get(status) or (OVER if record.is_over and failures >= _LAST_TRIES else "")
        if not outcome:
            return False
        # Acknowledged after the reply: a crash in between sends the letter again, which the receiver knows already.
        self._store.acknowledge(item.number)
        if outcome == REFUSED and not record.is_over:
            LOG.warning("session %s: %s refused the letter %s", item.session[:16], item.receiver, item.phase)
            self._refused(item.session, item.receiver)
        return True


def _route(item: WaitingLetter) -> str:
    return f"{item.session} {item.receiver}"


class PostReply(NamedTuple):
    """What a letter is answered with."""

    status: int
    detail: str = ""


@dataclass(frozen=True)
class Reception:
    """Takes letters for a party. Callbacks run in a worker thread, after the letter is durable."""

    store: PartyStore
    arrived: Callable[[str], None]
    """Called with the session when a new letter is there."""
    violated: Callable[[str, str, ProtocolViolation], None]
    """Called with the session and the party that signed two different bodies for one place; aborts the session."""
    most_bytes: int = MOST_BODY_BYTES

    async def take(self, session: str, chunks: AsyncIterable[bytes]) -> PostReply:
        """Read a letter, check and store it; the status for its sender."""
        reader = _Reader(chunks)
        try:
            record = await asyncio.to_thread(self.store.session, session)
            if record is None:
                return PostReply(404, "this session is not known here")
            size = int.from_bytes(await reader.exactly(LENGTH_BYTES), "big")
            if not 0 < size <= MAX_HEAD_BYTES:
                return PostReply(400, f"the head of a letter has at most {MAX_HEAD_BYTES} bytes")
            envelope = read_head(await reader.exactly(size))
            self.check(record, envelope)
            if record.is_over:
                return PostReply(410, "this session is over")
            body = await reader.exactly(envelope.rows * envelope.width)
            await reader.end()
            return await asyncio.to_thread(self._store, record, Letter(envelope, body))
        except ProtocolViolation as error:
            return PostReply(403, str(error))
        except EOFError:
            return PostReply(400, "the letter is cut off, or something follows its end")

    def check(self, record: SessionRecord, envelope: Envelope) -> None:
        """Check all that can be said about a letter before its body is read."""
        session, place = record.session, envelope.place
        check_route(session, record.party, place)
        check_signature(record.pinned, place.sender, LABEL, envelope.document, envelope.signature)
        if envelope.rows < 0 or envelope.width < 0:
            raise ProtocolViolation(f"{place}: it states a negative size")
        if envelope.rows * envelope.width > min(largest_body(session, place), self.most_bytes):
            raise ProtocolViolation(f"{place}: the body is larger than the session allows")

    def _store(self, record: SessionRecord, letter: Letter) -> PostReply:
        check_body(letter.envelope, letter.body)
        try:
            is_new = self.store.take(letter)
        except ProtocolViolation as error:
            if not error.evidence:
                raise
            self.violated(record.id, letter.place.sender, error)
            return PostReply(409, str(error))
        if is_new:
            self.arrived(record.id)
        return PostReply(204)


class _Reader:
    """Takes exact numbers of bytes off a stream of chunks."""

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        self._chunks, self._held = aiter(chunks), bytearray()

    async def exactly(self, count: int) -> bytes:
        while len(self._held) < count:
            self._held += await self._next()
        taken = bytes(memoryview(self._held)[:count])
        del self._held[:count]
        return taken

    async def end(self) -> None:
        """EOFError unless nothing follows."""
        if self._held:
            raise EOFError
        try:
            while not await self._next():
                pass
        except EOFError:
            return
        raise EOFError

    async def _next(self) -> bytes:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            raise EOFError from None
