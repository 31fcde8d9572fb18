"""Message M6: the vectors of shufflers become words, in processes of their own where there are many.

Opening takes about 0.1 ms a row, far too long for the event loop. It changes nothing that is stored: a collector that
is killed meanwhile opens the same vectors again.
"""

import multiprocessing
import os
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from tacit.arrays import U8, U64, Mask
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.protocol.opening import OpenedRows, combine, open_rows, sift
from tacit.shuffle.protocol.sealing import SEALED_WORD_BYTES
from tacit.shuffle.protocol.session import OSH, OSH_Z, RESHARING, ShuffleSession

CHUNK_ROWS = 5_000
"""Rows between two notes of progress; also what one process is given at a time."""
ALONE_ROWS = 20_000
"""Up to so many rows, starting processes takes longer than opening."""
MOST_PROCESSES = 4

Note = Callable[[int], None]
"""Hears how many rows are open."""


def rows_of(session: ShuffleSession, outputs: Mapping[int, bytes], count: int) -> U8:
    """All rows in their new order, from what the last shufflers sent; `count` is what was agreed."""
    if session.mode in (OSH, OSH_Z):
        return combine(session, outputs, count)
    if session.mode in RESHARING:
        raise ProtocolViolation(f"collector: it does not open mode {session.mode}")
    (body,) = outputs.values()
    if len(body) % SEALED_WORD_BYTES:
        raise ProtocolViolation(f"shuffler_{session.shuffler_count}: its rows are not {SEALED_WORD_BYTES} bytes each")
    return np.frombuffer(body, np.uint8).reshape(-1, SEALED_WORD_BYTES)


def open_all(session: ShuffleSession, key: HpkeKey, rows: U8, note: Note) -> OpenedRows:
    """Open every row, and leave out what does not open or came twice."""
    pieces = [rows[i : i + CHUNK_ROWS] for i in range(0, len(rows), CHUNK_ROWS)]
    words, opened = list[U64](), list[Mask]()
    done = 0
    # In order, so that rows and words stay together: duplicates are found by the sealed bytes of a row.
    for piece in _opened(session, key, pieces, len(rows)):
        words.append(piece[0])
        opened.append(piece[1])
        done += len(piece[0])
        note(done)
    empty: U64 = np.zeros(0, np.uint64)
    return sift(rows, np.concatenate([empty, *words]), np.concatenate([empty.astype(np.bool_), *opened]))


def _opened(session: ShuffleSession, key: HpkeKey, pieces: list[U8], total: int) -> Generator[tuple[U64, Mask]]:
    if total <= ALONE_ROWS:
        yield from (open_rows(session, key, piece) for piece in pieces)
        return
    # Not forked: this process has threads, and a lock that one of them holds would stay locked in the child.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(MOST_PROCESSES, os.cpu_count() or 1), mp_context=context) as pool:
        document, private = session.document, key.private
        waiting = [pool.submit(_open_piece, document, private, piece) for piece in pieces]
        yield from (future.result() for future in waiting)


def _open_piece(document: dict[str, Any], private: bytes, rows: U8) -> tuple[U64, Mask]:
    """What one process does."""
    return open_rows(ShuffleSession.from_json(document), HpkeKey(private), rows)
