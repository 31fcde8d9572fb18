"""What `tacit tally` counts: .reports files, Parquet files, folders of them, and URLs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tacit.wire.files import Origin

_PARQUET = b"PAR1"


class TallyPart(NamedTuple):
    """What is added to others and written as one tally."""

    tally: Any
    domain: dict[str, Any] | None
    """The labels of the values, where there are some."""
    origin: "Origin | None" = None
    """Where the reports come from, if that is known."""


def origin_of(parts: "Sequence[Origin | None]") -> "Origin | None":
    """Where the reports of several tallies come from; None unless that is known of all of them.

    ReportRejected for a file that is counted in two of them, SpecMismatch for two collections.
    """
    from tacit.errors import ReportRejected, SpecMismatch
    from tacit.wire.files import Origin

    known = [part for part in parts if part is not None]
    if len({part.collection for part in known}) > 1:
        raise SpecMismatch("cannot merge tallies: their reports are of two collections; add those of one")
    files = [file for part in known for file in part.files]
    if len(set(files)) < len(files):
        raise ReportRejected("cannot merge tallies: a report file is counted in two of them; tally all files at once")
    return Origin(known[0].collection, tuple(files)) if len(known) == len(parts) else None


def is_lake(path: str) -> bool:
    """Whether a path is a folder, a URL or a Parquet file, whatever it is called; a .reports file is none."""
    if path == "-":
        return False
    # Nothing is opened at a URL here: that takes a file system, and credentials.
    if "://" in path or Path(path).is_dir():
        return True
    with Path(path).open("rb") as stream:
        return stream.read(len(_PARQUET)) == _PARQUET or path.endswith(".parquet")


def tally_lake(paths: list[str], total: Callable[[int], Callable[[int], None]]) -> TallyPart:
    """The tally of the Parquet files of all paths; `total` is told how many reports there are."""
    from tacit.lake.count import origin_of_files, survey, tally_files
    from tacit.lake.folder import find_files

    files = [file for path in paths for file in find_files(path)]
    about, rows = survey(files)
    return TallyPart(tally_files(files, about, total(rows)), about.domain, origin_of_files(files, about))
