"""A pool of PostgreSQL connections that survives restarts of the server, and translation of its errors."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import LifoQueue
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from tacit.errors import StorageFull, StorageUnavailable

Connection = psycopg.Connection[tuple[Any, ...]]
Result = TypeVar("Result")

_ATTEMPTS = 3
_CONNECT_SECONDS = 10

# A server may have synchronous_commit = off, which acknowledges commits before they are durable. All other
# settings wait for the disk, and are left as they are.
_DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""


def connect(url: str) -> Connection:
    """A connection whose commits are durable."""
    connection = psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
    connection.execute(_DURABLE)
    return connection


@contextmanager
def explained() -> Generator[None]:
    """Translate PostgreSQL's errors into StorageFull and StorageUnavailable; those that a retry may cure stay."""
    try:
        yield
    except (errors.DeadlockDetected, errors.SerializationFailure):
        raise
    except errors.DiskFull as error:
        raise StorageFull("storage: the disk of the PostgreSQL server is full; make room, then go on") from error
    except (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction) as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> StorageUnavailable:
    return StorageUnavailable(f"storage: PostgreSQL does not answer as it should: {error}")


class Pool:
    """A fixed number of slots for connections, opened on first use and reopened when broken; `run` waits for a slot."""

    def __init__(self, url: str, *, size: int = 8) -> None:
        self._url = url
        # Last in, first out: a few connections stay warm, and None is a slot that was never opened.
        self._idle: LifoQueue[Connection | None] = LifoQueue()
        for _ in range(size):
            self._idle.put(None)
        self._size = size
        self._is_closed = False

    def run(self, work: Callable[[Connection], Result]) -> Result:
        """Run some work in one transaction, and retry it if the connection broke or the server chose it as a victim.

        If the connection broke during the commit, the work may run twice. That is harmless for every method of the
        port: batches are recognised as duplicates by their ids, and a fold finds nothing left to fold.
        """
        if self._is_closed:
            raise StorageUnavailable("storage: the connections to PostgreSQL are closed; open the store again")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with explained():
                    return self._once(work)
            except (errors.DeadlockDetected, errors.SerializationFailure, _Broken) as error:
                if attempt == _ATTEMPTS:
                    raise _unavailable(error) from error
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[Connection], Result]) -> Result:
        connection = self._idle.get()
        try:
            if connection is None or connection.closed:
                # None first: if connecting fails, the `except` below must not take the old closed connection for one
                # that broke during the work, which would be retried.
                connection = None
                connection = connect(self._url)
            with connection.transaction():
                return work(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if connection is not None and connection.closed:
                raise _Broken(str(error)) from error
            raise
        finally:
            self._idle.put(connection)

    def close(self) -> None:
        """Close all connections, once those lent are back."""
        self._is_closed = True
        lent = [self._idle.get() for _ in range(self._size)]
        for held in lent:
            if held is not None:
                held.close()
            self._idle.put(None)


class _Broken(Exception):
    """The connection broke during the work; a retry on a new one may succeed."""
