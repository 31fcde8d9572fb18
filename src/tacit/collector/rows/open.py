"""Where a collector keeps sealed reports: in the folder of its store, or in a lake."""

from pathlib import Path

from tacit.collector.limits import Intervals
from tacit.collector.rows.lake_files import LakeFiles
from tacit.collector.rows.segments import SegmentFiles
from tacit.errors import InvalidSpec
from tacit.hosting.clock import Clock
from tacit.lake.entries import SUFFIX
from tacit.lake.place import place_of


def open_files(folder: Path | None, lake: str, clock: Clock, intervals: Intervals) -> SegmentFiles | LakeFiles:
    """The files of a lake where a URL is given, else the folder of segments of rows.

    InvalidSpec if rows were sealed into the folder before: manifests name files and not places.
    """
    if not lake:
        return SegmentFiles(folder, clock, intervals)
    if folder is not None and any(folder.glob(f"*/*{SUFFIX}")):
        raise InvalidSpec(
            f"lake: this collector has sealed rows into {folder}; go on without --lake, or begin a lake with a new "
            "database"
        )
    return LakeFiles(place_of(lake), clock, intervals)
