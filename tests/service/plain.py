"""A mechanism without noise and a collector around it: with unique values, any count of 2 is a double count."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any, ClassVar

import httpx
import numpy as np
from tests.service.memory import MemoryStore
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.catalog import CATALOG
from tacit.collector.http.app import App
from tacit.collector.server import make_app, running
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import CodeCounting, code_dtype, indices_below
from tacit.core.tally import count_reports
from tacit.device.base import Device
from tacit.hosting.limits import Limits
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.mean import MEAN
from tacit.tasks.task import Forecast, QuestionTask
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id


@dataclass(frozen=True, kw_only=True)
class NoNoiseDevice(Device):
    """Sends the value itself."""

    kind: ClassVar[str] = "no_noise"

    size: int

    def _check(self) -> None:
        self._integer("size", 2, 1 << 20)

    def privatize_one(self, value: Any, coins: Any) -> bytes:
        return self._index(value, self.size).to_bytes(code_dtype(self.size).itemsize, "little")

    def realised_odds(self) -> Fraction:
        return Fraction(1)


class NoNoise(NoNoiseDevice, CodeCounting):
    """Counts what was sent; for tests alone, since it protects nobody."""

    @property
    def codes(self) -> range:
        return range(self.size)

    @property
    def report_dtype(self) -> Any:
        return code_dtype(self.size)

    @property
    def report_bits(self) -> int:
        return (self.size - 1).bit_length()

    def privatize(self, values: Any, coins: Any) -> Any:
        return indices_below(self.size, self.kind, values).astype(self.report_dtype)

    def tally(self, reports: Any, weights: Any = None) -> Any:
        return count_reports(self, self.check_reports(reports), weights, self._count)

    def estimate(self, tally: Any, candidates: Any = None) -> Estimate:
        if tally.is_empty:
            return no_data(self.size)
        return Estimate(tally.cells / tally.total, np.zeros(self.size), tally.n)

    def log_prob(self, reports: Any, value: Any) -> Any:
        return np.where(reports == value, 0.0, -np.inf)

    def standard_error(self, n: int) -> float:
        return 0.0 / n


def _plan(domain: Any, budget: Any, n: int) -> NoNoise:
    del n
    return NoNoise(size=domain.size, epsilon=budget)


def _forecast(domain: Any, mechanism: Any, n: int) -> Forecast:
    del domain, mechanism, n
    return Forecast(0.0)


PLAIN = QuestionTask("histogram", _plan, HISTOGRAM.answer, _forecast)
"""A histogram without noise."""

DRAFT: dict[str, Any] = {
    "title": "Pets",
    "epsilon": "1",
    "minimum_cohort": 5,
    "questions": [
        {
            "name": "pet",
            "text": "Which pet?",
            "domain": {"kind": "categories", "labels": ["cat", "dog", "fish"]},
        }
    ],
}


SHUFFLE: dict[str, Any] = {
    "mode": "relay",
    "collector": {"name": "Pets", "identity": "c" * 64},
    "shufflers": [{"name": "Shuffler", "url": "https://shuffler.example", "identity": "5" * 64}],
    "relay": {"name": "Relay", "url": "https://relay.example"},
    "minimum": 100,
    "maximum": 1000,
    "fakes": 0,
    "spot_checks": 0,
    "delta": "1e-9",
    "together": [],
}
"""Terms of a shuffled collection."""


def draft(**changes: Any) -> dict[str, Any]:
    return DRAFT | changes


def wide_draft(size: int, **changes: Any) -> dict[str, Any]:
    """A question with many values, so that every report can be told apart."""
    domain = {"kind": "integers", "low": 0, "high": size - 1}
    return draft(questions=[{"name": "value", "text": "Which?", "domain": domain}], **changes)


def plain_app(store: Any = None, limits: Limits | None = None, **rest: Any) -> App:
    """An application that also knows the mechanism without noise; `rest` as for `make_app`."""
    return make_app(store or MemoryStore(), limits, catalog=(*CATALOG, NoNoise), tasks=(PLAIN, MEAN), **rest)


class Client:
    """An administrator's and a device's view of a running collector."""

    def __init__(self, http: httpx.Client, token: str) -> None:
        self.http, self.token, self._days = http, token, count(1000)

    def api(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> httpx.Response:
        held = self.token if token is None else token
        headers = {"Authorization": f"Bearer {held}"} if held else {}
        return self.http.request(method, f"/api/v1{path}", json=body, headers=headers)

    def publish(self, given: dict[str, Any]) -> str:
        """Publish a collection of one's own, and give its id.

        Equal documents are one collection, with the reports of every test that published it; so each gets another
        retention, which no test looks at unless it states one.
        """
        made = self.api("POST", "/collections", {"retention_days": next(self._days)} | given)
        assert made.status_code == 201, made.text
        done = self.api("POST", f"/collections/{made.json()['id']}/publish")
        assert done.status_code == 200, done.text
        return done.json()["id"]

    def send(self, collection: str, body: bytes, media_type: str = MEDIA_TYPE, **headers: str) -> httpx.Response:
        head = {"Content-Type": media_type} | {k.replace("_", "-"): v for k, v in headers.items()}
        return self.http.post(f"/c/{collection}/reports", content=body, headers=head)

    def answers(self, collection: str) -> Any:
        return self.api("GET", f"/collections/{collection}/answers").json()

    def status(self, collection: str) -> Any:
        return self.api("GET", f"/collections/{collection}/status").json()


def binary(collection: str, payload: bytes, *, width: int = 1, member: int = 0, batch: bytes | None = None) -> bytes:
    block = Block(member, len(payload) // width, payload)
    return encode_batch(Batch(collection, batch or new_batch_id(), (block,)))


def http_client(url: str) -> httpx.Client:
    """A client without TLS: reading the certificates of the world takes longer than to start a collector."""
    return httpx.Client(base_url=url, timeout=PATIENT_SECONDS, verify=False)


def wait_for(http: httpx.Client) -> None:
    """Until a server that was just started says that it is ready."""

    def is_ready() -> bool:
        with suppress(httpx.TransportError):
            return http.get("/readyz").status_code == 200
        return False

    wait_until(is_ready, "the server did not start")


@contextmanager
def serving(app: App) -> Generator[Client]:
    token = app.collector.access.create("admin", label="tests")[0]
    with running(app) as server, http_client(server.url) as http:
        yield Client(http, token)
