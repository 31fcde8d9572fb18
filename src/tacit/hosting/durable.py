"""fsync for files and folders.

A file that is to survive a power cut takes two of them: of the file, for its contents, and of its folder, for its name.
"""

import os
from pathlib import Path


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
