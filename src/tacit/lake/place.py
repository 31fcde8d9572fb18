"""Places of report files: a local folder, or a prefix in an object store that pyarrow has a file system for.

A URL names both: `lake`, `/srv/lake`, `file:///srv/lake`, `s3://bucket/lake?region=eu-west-1`. Credentials and endpoint
of S3 come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL, ...), as other tools read
them, or the endpoint from the URL: `s3://bucket/lake?endpoint_override=localhost:9000&scheme=http`.
"""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.core.extras import load
from tacit.errors import InvalidSpec, StorageUnavailable
from tacit.hosting.durable import make_folder, sync

PART = ".part"
"""The suffix of a local file that is being written."""


@dataclass(frozen=True)
class LakePlace:
    """A folder of files, local or in an object store. A file appears whole or not at all, and is durable then."""

    url: str
    """As it was given, for messages."""
    system: Any
    path: str

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine, with rename and fsync."""
        return self.system.type_name == "local"

    def inner(self, name: str) -> "LakePlace":
        """A place inside of this one."""
        return LakePlace(f"{self.url.partition('?')[0].rstrip('/')}/{name}", self.system, self.at(name))

    def at(self, name: str) -> str:
        """The path of a file."""
        return f"{self.path.rstrip('/')}/{name}"

    def put(self, name: str, data: Any) -> None:
        """Write a file; what had this name is replaced."""
        with explained(self.at(name)):
            if self.is_local:
                self._put_local(name, data)
                return
            # An object appears when its upload is complete, which closing does.
            with self.system.open_output_stream(self.at(name)) as stream:
                stream.write(data)

    def _put_local(self, name: str, data: Any) -> None:
        folder = Path(self.path)
        part = folder / f"{secrets.token_hex(8)}{PART}"
        try:
            if make_folder(folder):
                sync(folder.parent)
            with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # Contents are durable first, then the name appears at once, then the name is made durable.
            part.replace(folder / name)
            sync(folder)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def get(self, name: str) -> bytes | None:
        """The bytes of a file; None if there is none of this name."""
        try:
            with explained(self.at(name)), self.system.open_input_stream(self.at(name)) as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is fine."""
        with explained(self.at(name)), suppress(FileNotFoundError):
            self.system.delete_file(self.at(name))

    def files(self) -> list[Any]:
        """All files in it and in folders inside of it, as pyarrow describes them; none if it does not exist."""
        selector = load("pyarrow.fs").FileSelector(self.path, allow_not_found=True, recursive=True)
        with explained(self.path):
            return [info for info in self.system.get_file_info(selector) if info.is_file]


def place_of(url: str) -> LakePlace:
    """The place of a URL or of a path; InvalidSpec if there is no file system for it."""
    fs, pa = load("pyarrow.fs"), load("pyarrow")
    if "://" not in url:
        # A path as it was typed: from_uri takes absolute paths alone.
        return LakePlace(url, fs.LocalFileSystem(), url)
    try:
        system, path = fs.FileSystem.from_uri(url)
    except (pa.ArrowException, ValueError, OSError) as error:
        # Credentials may stand in a URL, so that it is not echoed.
        scheme = url.partition("://")[0][:20]
        raise InvalidSpec(f"lake: there is no file system for this {scheme}: URL ({type(error).__name__})") from None
    return LakePlace(url.partition("?")[0].rpartition("@")[2], system, path)


@contextmanager
def explained(path: str) -> Generator[None]:
    """Translate what file systems raise to StorageUnavailable; a file that is not there stays FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, load("pyarrow").ArrowException) as error:
        raise StorageUnavailable(f"lake: cannot use {path}: {str(error).splitlines()[0][:200]}") from error
