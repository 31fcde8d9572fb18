"""fsync for files and folders, and a lock on a folder.

A file that is to survive a power cut takes two of them: of the file, for its contents, and of its folder, for its name.
"""

import fcntl
import os
from pathlib import Path
from threading import Lock


def sync(path: Path) -> None:
    """fsync a file, or a folder (which makes the names in it durable)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> bool:
    """Create a folder that only its owner can read, durably; False if it exists."""
    if folder.is_dir():
        return False
    # Another process may create it at the same moment, which is fine; the parent is synced in any case.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sync(folder.parent)
    return True


class FolderLock:
    """A lock on a folder for the threads of all processes; the kernel releases what a killed process held."""

    def __init__(self, folder: Path) -> None:
        """Lock the folder itself, so that no file is needed for it."""
        self._threads, self._descriptor = Lock(), os.open(folder, os.O_RDONLY)

    def __enter__(self) -> None:
        """Wait for it."""
        # flock is held by the process, so that its threads need a lock of their own.
        self._threads.acquire()
        try:
            if self._descriptor >= 0:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        """Let others have it."""
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._threads.release()

    def close(self) -> None:
        """Release the folder; from now on it locks threads alone."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
