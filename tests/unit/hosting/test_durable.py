"""The lock on a folder holds between threads and between descriptors, as between processes."""

import fcntl
import os
import threading
from pathlib import Path

import pytest

from tacit.hosting.durable import FolderLock


def test_another_descriptor_and_another_thread_wait(tmp_path: Path):
    lock = FolderLock(tmp_path)
    other = os.open(tmp_path, os.O_RDONLY)
    order: list[str] = []

    def second() -> None:
        with lock:
            order.append("second")

    with lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
    lock.close()
    with lock:  # A store that is closed twice takes it once more.
        lock.close()
