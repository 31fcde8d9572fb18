"""Handing batches to another process: workers take requests, and one process writes for all of them (decision 0024).

    worker                                                    process that writes
    BatchWriter -> Handover.add_batches  == batches ==>       BatchReception -> BatchWriter -> store
    outcomes    <-                      <== outcomes ==       <- commit

A frame is its length (4 bytes, little-endian) and MessagePack. A worker has one group on its way at a time; meanwhile
the next one gathers, and groups of several workers share a commit.
"""

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct

import msgspec

from tacit.collector.ingest.writer import BatchWriter, Waiter
from tacit.collector.ports import INVALID, NewBatch, Outcome
from tacit.errors import Busy, StorageFull, StorageUnavailable, TacitError

_LENGTH = Struct("<I")
_GONE = "storage: the process that writes has ended and is being started again; send the same batch again shortly"
_FAULTS: dict[str, type[TacitError]] = {error.__name__: error for error in (Busy, StorageFull, StorageUnavailable)}


class _Told(msgspec.Struct, array_like=True):
    """What became of a group: an outcome for each of its batches, or the fault that none of them survived."""

    outcomes: list[Outcome] = []
    fault: str = ""
    detail: str = ""


_encode = msgspec.msgpack.Encoder().encode
_read_batches = msgspec.msgpack.Decoder(list[NewBatch]).decode
_read_told = msgspec.msgpack.Decoder(_Told).decode


def _send(link: socket.socket, data: bytes) -> None:
    link.sendall(_LENGTH.pack(len(data)) + data)


def _receive(link: socket.socket) -> bytearray:
    """The next frame; EOFError if the other side has gone."""
    return _exactly(link, _LENGTH.unpack(_exactly(link, _LENGTH.size))[0])


def _exactly(link: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        got = link.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return data


class Handover:
    """A worker's side of a link. Used by one thread, the worker's own writer."""

    def __init__(self, link: socket.socket) -> None:
        """Hand on through a connected socket."""
        self._link = link

    def add_batches(self, batches: Sequence[NewBatch]) -> list[Outcome]:
        """Have batches stored and hear what became of each; durable when this returns."""
        try:
            _send(self._link, _encode(list(batches)))
            told = _read_told(_receive(self._link))
        except (OSError, EOFError):
            # Half a frame may have gone: nothing on this link can be understood any more.
            self._link.close()
            raise StorageUnavailable(_GONE) from None
        if told.fault:
            raise _FAULTS.get(told.fault, StorageUnavailable)(told.detail)
        return told.outcomes


class _Group:
    """The waiter of all batches of a group: sends the outcomes when the last one is known."""

    def __init__(self, link: socket.socket, batches: Sequence[NewBatch], touch: Callable[[str], None]) -> None:
        self._link, self._batches, self._touch = link, batches, touch
        self._outcomes: list[Outcome] = []
        self._fault: BaseException | None = None

    # Never cancelled: the worker may have died, but clients send again what it did not acknowledge.
    def cancelled(self) -> bool:
        return False

    def done(self) -> bool:
        return False

    def set_result(self, result: Outcome, /) -> None:
        """The outcome of the next batch."""
        self.tell([self], [result])

    def set_exception(self, exception: BaseException, /) -> None:
        """Give up the whole group."""
        self._reply(exception)

    def tell(self, waiters: "Sequence[Waiter]", outcomes: "Sequence[Outcome] | BaseException") -> None:
        """Outcomes of the next batches of the group; a group that is cut in two is committed in two."""
        if isinstance(outcomes, BaseException):
            none: list[Outcome] = [INVALID]
            self._fault = outcomes
            self._outcomes += none * len(waiters)
        else:
            self._outcomes += outcomes
        if len(self._outcomes) == len(self._batches):
            # After the commit: a fold that looked for them before it would find nothing, and not look again.
            for collection in {batch.collection for batch in self._batches}:
                self._touch(collection)
            self._reply(self._fault)

    def _reply(self, fault: BaseException | None) -> None:
        told = _Told(self._outcomes)
        if fault is not None:
            # Batches of the group that were stored all the same are recognised when they are sent again.
            known = type(fault).__name__ in _FAULTS
            told = _Told([], type(fault).__name__, str(fault) if known else "storage: an unexpected error")
        with suppress(OSError):
            _send(self._link, _encode(told))


class BatchReception:
    """The other side of all links: what workers hand on goes to one writer."""

    def __init__(self, writer: BatchWriter, touch: Callable[[str], None]) -> None:
        """Store through a writer; `touch` hears which collections have something to fold."""
        self._writer, self._touch = writer, touch

    def welcome(self, link: socket.socket) -> None:
        """Serve a link in a thread of its own until its worker has gone."""
        threading.Thread(target=self._serve, args=(link,), name="tacit-reception", daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with link, suppress(OSError, EOFError):
            while True:
                self._store(link, _read_batches(_receive(link)))

    def _store(self, link: socket.socket, batches: list[NewBatch]) -> None:
        group = _Group(link, batches, self._touch)
        if self._writer.submit_all(batches, [group] * len(batches), group.tell) < len(batches):
            group.set_exception(self._writer.refusal())
