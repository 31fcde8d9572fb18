"""Connections to PostgreSQL that outlive a restart of the server, and its errors in the collector's words."""

from collections.abc import Callable
from queue import LifoQueue
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from tacit.errors import StorageFull, StorageUnavailable

Connection = psycopg.Connection[tuple[Any, ...]]
Result = TypeVar("Result")

_ATTEMPTS = 3
_CONNECT_SECONDS = 10

# A server may be configured to acknowledge commits that it has not written; ours must be durable.
_DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""


class Pool:
    """A few connections, opened when first needed and opened again when broken."""

    def __init__(self, url: str, *, size: int = 8) -> None:
        self._url = url
        self._idle: LifoQueue[Connection | None] = LifoQueue()
        for _ in range(size):
            self._idle.put(None)
        self._size = size
        self._is_closed = False

    def run(self, work: Callable[[Connection], Result]) -> Result:
        """Do some work in one transaction; again from the start if the connection broke or a deadlock was resolved.

        If it broke during the commit, the work may be done twice. That is harmless for every method of the port:
        batches are told from duplicates by their ids, and folding finds nothing left to fold.
        """
        if self._is_closed:
            raise StorageUnavailable("storage: the connections to PostgreSQL are closed; open the store again")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._once(work)
            except (errors.DeadlockDetected, errors.SerializationFailure, _Broken) as error:
                if attempt == _ATTEMPTS:
                    raise self._unavailable(error) from error
            except errors.DiskFull as error:
                raise StorageFull(
                    "storage: the disk of the PostgreSQL server is full; make room, then go on"
                ) from error
            except (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction) as error:
                raise self._unavailable(error) from error
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[Connection], Result]) -> Result:
        held = self._idle.get()
        try:
            if held is None or held.closed:
                held = None  # What was broken before is not what breaks now.
                held = self._connect()
            with held.transaction():
                return work(held)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if held is not None and held.closed:
                raise _Broken(str(error)) from error
            raise
        finally:
            self._idle.put(held)

    def _connect(self) -> Connection:
        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
        connection.execute(_DURABLE)
        return connection

    def _unavailable(self, error: Exception) -> StorageUnavailable:
        return StorageUnavailable(f"storage: PostgreSQL does not answer as it should: {error}")

    def close(self) -> None:
        """Close all connections, once those lent are back."""
        self._is_closed = True
        lent = [self._idle.get() for _ in range(self._size)]
        for held in lent:
            if held is not None:
                held.close()
            self._idle.put(None)


class _Broken(Exception):
    """The connection is gone; a new one may do."""
