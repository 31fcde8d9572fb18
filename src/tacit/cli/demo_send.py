"""The demo's respondents: noisy reports in binary batches, over several connections that are kept open."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from threading import local
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from tacit.catalog import CATALOG
from tacit.cli.demo_crowd import I64, Crowd
from tacit.client.transport import Address, Transport
from tacit.core.mechanism import Mechanism
from tacit.device.coins import SystemCoins
from tacit.errors import ReportRejected, SpecMismatch
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id
from tacit.wire.document import Collection

CONNECTIONS = 8
BATCH = 100
_TIMEOUT_SECONDS = 60

Job = tuple[Collection, I64]


def fetch_collection(url: str, collection: str) -> Collection:
    """A published document as a respondent fetches it; one that is not what its address says is refused."""
    made = Collection.from_json(Transport().fetch(Address.parse(f"{url}/c/{collection}")), CATALOG)
    if made.id != collection:
        raise SpecMismatch(f"collection {collection[:6]}: the document at this address is {made.id[:6]}")
    return made


def make_batch(collection: Collection, values: I64, coins: SystemCoins) -> bytes:
    """Perturb every answer on its own, and put the reports into one batch."""
    mechanism = collection.mechanism
    assert isinstance(mechanism, Mechanism)
    reports = mechanism.privatize(values, coins)
    blocks = (
        tuple(_by_member(reports)) if collection.policy == "one_of" else (Block(0, len(reports), reports.tobytes()),)
    )
    return encode_batch(Batch(collection.id, new_batch_id(), blocks))


def _by_member(reports: npt.NDArray[Any]) -> Iterator[Block]:
    """A block for every question that was drawn."""
    for member in np.unique(reports["member"]):
        payload = reports["payload"][reports["member"] == member]
        yield Block(int(member), len(payload), payload.tobytes())


class _Connections(local):
    """A connection and coins for every thread."""

    def __init__(self, url: str) -> None:
        self.connection = HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_SECONDS)
        self.coins = SystemCoins()

    def send(self, job: Job) -> int:
        """Send one batch and give the number of its reports, all of them accepted for the first time."""
        collection, values = job
        body = make_batch(collection, values, self.coins)
        self.connection.request("POST", f"/c/{collection.id}/reports", body, {"Content-Type": MEDIA_TYPE})
        reply = self.connection.getresponse()
        receipt = json.loads(reply.read())
        if reply.status != 201 or receipt != {"accepted": len(values), "rejected": [], "duplicate": False}:
            raise ReportRejected(
                f"collection {collection.id[:6]}: a batch of the demo was answered with {reply.status}"
            )
        return len(values)


def send_all(url: str, crowds: Sequence[Crowd], advance: Callable[[int], None]) -> int:
    """Send the reports of all respondents and give the number that was acknowledged."""
    connections, acknowledged = _Connections(url), 0
    jobs = [job for crowd in crowds for job in _jobs(crowd)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        try:
            for count in pool.map(connections.send, jobs):
                acknowledged += count
                advance(count)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)  # What was not begun when it was stopped is not sent.
    return acknowledged


def _jobs(crowd: Crowd) -> Iterator[Job]:
    for start in range(0, len(crowd.values), BATCH):
        yield crowd.collection, crowd.values[start : start + BATCH]
