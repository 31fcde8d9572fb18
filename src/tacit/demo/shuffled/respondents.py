"""The made-up crowd of a shuffled collection: each respondent perturbs, seals and sends through the relay on its own.

What a respondent does is what the client does, but for the ledger, which one device keeps for one person. The session
is fetched and verified once for all of them in a process.
"""

import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from multiprocessing import get_context
from threading import local
from typing import Any
from urllib.parse import urlsplit
from urllib.request import OpenerDirector, Request

from tacit.arrays import I64
from tacit.client.sealed.posting import SealedPost
from tacit.client.sealed.sealer import Sealer
from tacit.client.sealed.sealing import seal_report
from tacit.client.transport import Address, Patience, Transport
from tacit.demo.send import fetch_collection
from tacit.demo.serve import end_with_parent
from tacit.device.numbers.coins import SystemCoins
from tacit.shuffle.protocol.session import ShuffleSession
from tacit.wire.document import Collection

WORKERS = 2
CONNECTIONS = 48
"""Respondents of one process that are under way at the same time. Relays send together what waits for a shuffler, which
stores it with one sync: with few people under way everybody waits for the disk, and each costs more."""
ALONE = 2000
"""Fewer respondents than this are not worth the start of other processes."""
_PART = 500
"""Respondents between two steps of the progress bar; also what is still sent after Ctrl-C, for each process."""
_PATIENCE = Patience(attempts=10, timeout_seconds=60)

Sent = tuple[int, list[str]]
"""How many respondents tried, and what went wrong with those who failed."""


class KeptOpen(OpenerDirector):
    """Connections that stay open between requests, as one to each server: a crowd on one machine has no ports for all.

    For one thread.
    """

    def __init__(self) -> None:
        """Open nothing yet."""
        super().__init__()
        self._connections: dict[str, HTTPConnection] = {}

    def open(self, fullurl: str | Request, data: Any = None, timeout: float | None = None) -> HTTPResponse:
        """Send a request; statuses of errors are responses like others."""
        del data
        assert isinstance(fullurl, Request)
        host = urlsplit(fullurl.full_url).netloc
        connection = self._connections.setdefault(host, HTTPConnection(host, timeout=timeout))
        body: Any = fullurl.data
        try:
            connection.request(fullurl.get_method(), fullurl.selector, body, dict(fullurl.header_items()))
            return connection.getresponse()
        except (OSError, HTTPException):
            # The next attempt begins with a new connection.
            connection.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()


class _Devices(local):
    """Coins and connections of every thread."""

    def __init__(self, opened: list[KeptOpen]) -> None:
        self.coins, network = SystemCoins(), KeptOpen()
        self.post = SealedPost(Transport(_PATIENCE, opener=network), self.coins)
        # Only its own thread can see a connection here; whoever made the list closes what all threads opened.
        opened.append(network)


class Respondents:
    """Respondents of one collection, several at a time, in this process."""

    def __init__(self, url: str, collection: str) -> None:
        """Fetch and verify the document and its session, as every respondent would."""
        self._collection: Collection = fetch_collection(url, collection)
        sealer = Sealer(Transport(_PATIENCE), SystemCoins())
        self._session: ShuffleSession = sealer.agreed(self._collection, Address(url, collection)).session
        self._opened: list[KeptOpen] = []
        self._devices, self._pool = _Devices(self._opened), ThreadPoolExecutor(CONNECTIONS)

    def send(self, values: Sequence[int]) -> Sent:
        """Let one respondent answer with each value."""
        faults = [fault for fault in self._pool.map(self._answer, values) if fault]
        return len(values), faults

    def _answer(self, value: int) -> str:
        """Perturb, seal and send; returns what went wrong, or nothing."""
        mechanism, devices = self._collection.mechanism, self._devices
        report = mechanism.privatize_one(value, devices.coins)
        sealed = seal_report(self._session, mechanism, report, devices.coins)
        outcome = devices.post.send(sealed)
        return "" if outcome.state == "sent" else outcome.reason

    def close(self) -> None:
        """Begin nothing more, wait for those under way, and close their connections."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for network in self._opened:
            network.close()


def send_sealed(url: str, collection: str, values: I64, advance: Callable[[int], None]) -> list[str]:
    """Let the whole crowd answer; returns what went wrong."""
    faults: list[str] = []
    parts = [values[start : start + _PART].tolist() for start in range(0, len(values), _PART)]
    with _senders(url, collection, len(values)) as send:
        for count, wrong in send(parts):
            faults += wrong
            advance(count)
    return faults


@contextmanager
def _senders(url: str, collection: str, n: int) -> Generator[Callable[[list[list[int]]], Iterator[Sent]]]:
    """Respondents in this process if they are few, else in several."""
    with ExitStack() as stack:
        if n < ALONE:
            people = Respondents(url, collection)
            stack.callback(people.close)
            yield lambda parts: map(people.send, parts)
            return
        context = get_context("spawn")
        pool = ProcessPoolExecutor(WORKERS, context, _begin, (url, collection))
        # Parts that were not begun when the demo is stopped are not sent.
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        yield lambda parts: pool.map(_send_part, parts)


_PEOPLE: list[Respondents] = []
"""The respondents of a worker process."""


def _begin(url: str, collection: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    _PEOPLE.append(Respondents(url, collection))


def _send_part(values: list[int]) -> Sent:
    return _PEOPLE[0].send(values)
