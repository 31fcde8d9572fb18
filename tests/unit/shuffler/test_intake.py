"""Uploads of many requests are stored together; outcomes and errors reach the right ones."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tacit.errors import Busy, StorageFull
from tacit.shuffler.intake import UploadWriter
from tacit.shuffler.party_store import PartyStore
from tacit.shuffler.party_uploads import NewUpload


class Slow(PartyStore):
    """A store whose transactions wait until they are told to go on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.gate, self.begun, self.groups = threading.Semaphore(0), threading.Semaphore(0), list[int]()
        self.error: Exception | None = None

    def add_uploads(self, uploads: Sequence[NewUpload]) -> list[str]:
        self.begun.release()
        self.gate.acquire()
        self.groups.append(len(uploads))
        if self.error is not None:
            raise self.error
        return [upload.refusal for upload in uploads]


def upload(name: str) -> NewUpload:
    return NewUpload("", b"", b"", refusal=name)


def test_what_gathers_during_a_transaction_is_one_group(tmp_path: Path) -> None:
    store = Slow(tmp_path)
    writer = UploadWriter(store, most_waiting=5, group=4)
    told = [writer.submit(upload("0"))]
    store.begun.acquire()
    told += [writer.submit(upload(str(i))) for i in range(1, 6)]
    with pytest.raises(Busy):
        writer.submit(upload("one too many"))
    told[2].cancel()
    for _ in range(3):
        store.gate.release()
    assert [future.result(300) for future in told if not future.cancelled()] == [[i] for i in "01345"]
    writer.stop()
    assert store.groups == [1, 3, 1]
    with pytest.raises(Busy):
        writer.submit(upload("after the end"))
    store.close()


def test_an_error_reaches_everybody_in_the_group_and_the_writer_goes_on(tmp_path: Path) -> None:
    store = Slow(tmp_path)
    writer = UploadWriter(store)
    store.error = StorageFull("no room")
    store.gate.release()
    with pytest.raises(StorageFull):
        writer.submit(upload("a")).result(300)
    assert isinstance(writer.failure, StorageFull)
    store.error = None
    store.gate.release()
    assert writer.submit(upload("b")).result(300) == ["b"]
    assert writer.failure is None
    writer.stop()
    store.close()


def test_uploads_of_one_request_stay_together_and_have_their_own_outcomes(tmp_path: Path) -> None:
    store = Slow(tmp_path)
    writer = UploadWriter(store, most_waiting=5, group=4)
    first = writer.submit(upload("0"))
    store.begun.acquire()
    told = [writer.submit(*map(upload, names)) for names in ("abc", "de")]
    # Uploads are counted, not requests.
    with pytest.raises(Busy):
        writer.submit(upload("one too many"))
    for _ in range(2):
        store.gate.release()
    assert [future.result(300) for future in (first, *told)] == [["0"], ["a", "b", "c"], ["d", "e"]]
    writer.stop()
    assert store.groups == [1, 5]
    store.close()
