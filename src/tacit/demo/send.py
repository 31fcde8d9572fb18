"""The demo's respondents: noisy reports in batches, over several connections that are kept open."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from threading import local
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from tacit.catalog import CATALOG
from tacit.client.transport import Address, Transport
from tacit.core.mechanism import Mechanism, Reports
from tacit.demo.crowd import Crowd
from tacit.device.numbers.coins import Coins, SystemCoins
from tacit.errors import ReportRejected, SpecMismatch
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id
from tacit.wire.document import Collection

CONNECTIONS = 8
BATCH = 100
ROWS = 1000
"""Rows of a table come in larger batches, as from a gateway."""
_TIMEOUT_SECONDS = 60

Body = tuple[bytes, dict[str, str]]
"""What is sent, and its headers."""


def fetch_collection(url: str, collection: str) -> Collection:
    """A published document as a respondent fetches it; one that is not what its address says is refused."""
    made = Collection.from_json(Transport().fetch(Address.parse(f"{url}/c/{collection}")), CATALOG)
    if made.id != collection:
        raise SpecMismatch(f"collection {collection[:6]}: the document at this address is {made.id[:6]}")
    return made


def make_batch(crowd: Crowd, coins: Coins) -> Body:
    """Perturb every answer on its own, and put the reports into one batch."""
    mechanism: Any = crowd.collection.mechanism
    values = crowd.values
    if crowd.collection.policy == "joint":
        values = np.array(mechanism.drawn_from.of_answers(values.T)).T
    reports = mechanism.privatize(values, coins)
    if crowd.collection.rows is not None:
        return _stream(mechanism, reports, crowd)
    blocks = tuple(_by_member(mechanism, reports))
    return encode_batch(Batch(crowd.collection.id, new_batch_id(), blocks)), {"Content-Type": MEDIA_TYPE}


def _by_member(mechanism: Mechanism, reports: Reports) -> Iterator[Block]:
    """A block for every question, or set of questions, that was drawn."""
    members, payloads = mechanism.split_batch(reports)
    for member in np.unique(members).tolist():
        some = payloads[members == member]
        yield Block(member, len(some), some.tobytes())


def _stream(mechanism: Mechanism, reports: Reports, crowd: Crowd) -> Body:
    """Reports beside their public columns, as an Arrow stream."""
    from tacit.collector.rows.arrow_stream import MEDIA_TYPE as ARROW
    from tacit.core.extras import load

    pa = load("pyarrow")
    columns: dict[str, Any] = dict(crowd.public)
    members, payloads = mechanism.split_batch(reports)
    if mechanism.drawn_from is not None:
        columns["member"] = members
    columns["report"] = pa.array([payload.tobytes() for payload in payloads], pa.binary())
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes(), {"Content-Type": ARROW, "Tacit-Batch": new_batch_id().hex()}


class _Connections(local):
    """A connection and coins for every thread."""

    def __init__(self, url: str, opened: list[HTTPConnection]) -> None:
        self.connection = HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_SECONDS)
        self.coins = SystemCoins()
        # Only its own thread can see a connection here; whoever made the list closes what all threads opened.
        opened.append(self.connection)

    def send(self, crowd: Crowd) -> int:
        """Send one batch and give the number of its reports, all of them accepted for the first time."""
        collection, count = crowd.collection.id, len(crowd.values)
        body, headers = make_batch(crowd, self.coins)
        self.connection.request("POST", f"/c/{collection}/reports", body, headers)
        reply = self.connection.getresponse()
        receipt = json.loads(reply.read())
        if reply.status != 201 or receipt != {"accepted": count, "rejected": [], "duplicate": False}:
            raise ReportRejected(f"collection {collection[:6]}: a batch of the demo was answered with {reply.status}")
        return count


def send_all(url: str, crowds: Sequence[Crowd], advance: Callable[[int], None]) -> int:
    """Send the reports of all respondents and give the number that was acknowledged."""
    opened = list[HTTPConnection]()
    connections, acknowledged = _Connections(url, opened), 0
    jobs = [job for crowd in crowds for job in _jobs(crowd)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        try:
            for count in pool.map(connections.send, jobs):
                acknowledged += count
                advance(count)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)  # What was not begun when it was stopped is not sent.
            for connection in opened:
                connection.close()
    return acknowledged


def _jobs(crowd: Crowd) -> Iterator[Crowd]:
    return crowd.parts(BATCH if crowd.collection.rows is None else ROWS)
