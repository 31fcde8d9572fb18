"""Message M6: the vectors of shufflers become words, in processes of their own where there are many.

Opening takes about 0.1 ms a row, and 1 ms where rows are encrypted: far too long for the event loop. It changes nothing
that is stored: a collector that is killed meanwhile opens the same vectors again.
"""

import multiprocessing
import os
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arrays import U8, U64, Mask
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.protocol.opening import OpenedRows, combine, open_rows, sift
from tacit.shuffle.protocol.sealing import SEALED_WORD_BYTES
from tacit.shuffle.protocol.session import OSH, OSH_Z, PEOS, ShuffleSession

CHUNK_ROWS = 5_000
"""Rows between two notes of progress; also what one process is given at a time."""
ALONE_ROWS = 20_000
"""Up to so many rows, starting processes takes longer than opening."""
MOST_PROCESSES = 4
_ENCRYPTED = 10
"""A row that is decrypted takes so many times as long as one that is opened."""

Note = Callable[[int], None]
"""Hears how many rows are open."""


def rows_of(session: ShuffleSession, outputs: Mapping[int, bytes], count: int) -> U8:
    """All rows in their new order, from what the last shufflers sent; `count` is what was agreed."""
    if session.mode in (OSH, OSH_Z):
        return combine(session, outputs, count)
    if session.mode == PEOS:
        from tacit.shuffle.protocol.peos import combine_encrypted

        return combine_encrypted(session, outputs, count)
    (body,) = outputs.values()
    if len(body) % SEALED_WORD_BYTES:
        raise ProtocolViolation(f"shuffler_{session.shuffler_count}: its rows are not {SEALED_WORD_BYTES} bytes each")
    return np.frombuffer(body, np.uint8).reshape(-1, SEALED_WORD_BYTES)


@dataclass(frozen=True)
class SessionKeys:
    """What a collector opens the rows of a session with; it can be handed to another process."""

    session: ShuffleSession
    seal_key: bytes = field(repr=False)
    dgk: Mapping[str, Any] | None = field(default=None, repr=False)
    """The private key of mode peos-dgk."""

    def open(self, rows: U8) -> tuple[U64, Mask]:
        """The words of rows, and which rows opened."""
        if self.dgk is None:
            return open_rows(self.session, HpkeKey(self.seal_key), rows)
        # Loaded for this mode alone, as the library for large integers is.
        from tacit.shuffle.crypto.dgk import DgkPrivateKey
        from tacit.shuffle.protocol.peos import open_encrypted

        return open_encrypted(DgkPrivateKey.from_json(self.dgk), rows)

    def opened(self, rows: U8, words: U64, right: Mask) -> OpenedRows:
        """What is kept of rows: where they are sealed, each sealed row once."""
        # Ciphertexts are made anew at every hop, so that copies of a row cannot be told by their bytes.
        if self.dgk is not None:
            return OpenedRows(words[right], len(rows), int(np.count_nonzero(~right)), 0)
        return sift(rows, words, right)

    @property
    def cost(self) -> int:
        """How long a row takes, in those of the other modes."""
        return 1 if self.dgk is None else _ENCRYPTED


def open_all(keys: SessionKeys, rows: U8, note: Note) -> OpenedRows:
    """Open every row, and leave out what does not open or came twice."""
    step = max(1, CHUNK_ROWS // keys.cost)
    pieces = [rows[i : i + step] for i in range(0, len(rows), step)]
    words, opened = [np.zeros(0, np.uint64)], [np.zeros(0, np.bool_)]
    done = 0
    # In order, so that rows and words stay together: duplicates are found by the sealed bytes of a row.
    for piece in _opened(keys, pieces, len(rows)):
        words.append(piece[0])
        opened.append(piece[1])
        done += len(piece[0])
        note(done)
    return keys.opened(rows, np.concatenate(words), np.concatenate(opened))


def _opened(keys: SessionKeys, pieces: list[U8], total: int) -> Generator[tuple[U64, Mask]]:
    if total * keys.cost <= ALONE_ROWS:
        yield from (keys.open(piece) for piece in pieces)
        return
    # Not forked: this process has threads, and a lock that one of them holds would stay locked in the child.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(MOST_PROCESSES, os.cpu_count() or 1), mp_context=context) as pool:
        waiting = [pool.submit(keys.open, piece) for piece in pieces]
        yield from (future.result() for future in waiting)
