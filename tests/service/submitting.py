"""A batch handed to the writer from any thread, with a future for its outcome; the collector has an event loop."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from tacit.collector.ingest.writer import BatchWriter
from tacit.collector.ports import NewBatch


def submit(writer: BatchWriter, batch: NewBatch) -> Future[str]:
    """The outcome of one batch; `Busy` if there is no room."""
    future: Future[Any] = Future()
    if not writer.submit_all([batch], [future], tell):
        raise writer.refusal()
    return future


def tell(waiters: Sequence[Any], outcomes: Sequence[str] | BaseException) -> None:
    for place, future in enumerate(waiters):
        if future.done():
            continue
        if isinstance(outcomes, BaseException):
            future.set_exception(outcomes)
        else:
            future.set_result(outcomes[place])
