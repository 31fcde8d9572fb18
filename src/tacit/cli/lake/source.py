"""What `tacit tally` counts: .reports files, Parquet files, folders of them, and URLs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

_PARQUET = b"PAR1"


def is_lake(path: str) -> bool:
    """Whether a path is a folder, a URL or a Parquet file, whatever it is called; a .reports file is none."""
    if path == "-":
        return False
    # Nothing is opened at a URL here: that takes a file system, and credentials.
    if "://" in path or Path(path).is_dir():
        return True
    with Path(path).open("rb") as stream:
        return stream.read(len(_PARQUET)) == _PARQUET or path.endswith(".parquet")


def tally_lake(paths: list[str], total: Callable[[int], Callable[[int], None]]) -> tuple[Any, dict[str, Any] | None]:
    """The tally of the Parquet files of all paths, and the labels of their values; `total` is told how many reports."""
    from tacit.lake.count import survey, tally_files
    from tacit.lake.folder import find_files

    files = [file for path in paths for file in find_files(path)]
    about, rows = survey(files)
    return tally_files(files, about, total(rows)), about.domain
