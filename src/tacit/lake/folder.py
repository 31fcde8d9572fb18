"""Folders of report files, and the file `_tacit.json` in them that says which ones count.

The manifest has the fields of a file's own metadata (see `about`) and, optionally, `files`: a list of entries, with
file name, rows, bytes, SHA-256 and memory each. Where it is there, only the files in it count; a file that it names
must be there. A folder without a manifest, such as one that another program writes, counts as a whole. Names that
begin with an underscore or a dot are not data, as in Spark and Hive.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any, cast

from tacit.errors import ReportRejected
from tacit.lake.about import About, object_of, read_about
from tacit.lake.entries import SUFFIX, SegmentEntry, entry_of
from tacit.lake.files import ReportFile
from tacit.lake.place import LakePlace, place_of

MANIFEST = "_tacit.json"


def dump_manifest_file(about: About, entries: Iterable[SegmentEntry]) -> bytes:
    """The manifest of some files; the same files give the same bytes."""
    fields = about.to_json() | {"files": [asdict(entry) for entry in entries]}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def put_manifest(place: LakePlace, about: About, entries: Iterable[SegmentEntry]) -> None:
    """Publish which files of a place count."""
    place.put(MANIFEST, dump_manifest_file(about, entries))


def read_manifest(place: LakePlace) -> tuple[About, list[SegmentEntry] | None] | None:
    """What the manifest of a place says of its files, and those that count (None for all); None if there is none."""
    data = place.get(MANIFEST)
    if data is None:
        return None
    name = place.at(MANIFEST)
    files = object_of(data, name).get("files")
    try:
        entries = None if files is None else [entry_of(item) for item in cast("list[dict[str, Any]]", files)]
    except (TypeError, ValueError, KeyError):
        raise ReportRejected(f"{name}: the list of files is damaged; nothing was counted") from None
    return read_about(data, name), entries


def find_files(url: str) -> list[ReportFile]:
    """The report files that count at a URL or path: a file, or a folder with all folders in it.

    ReportRejected if there is none, if one that a manifest names is missing, or if it has another size.
    """
    place = place_of(url)
    info = place.system.get_file_info(place.path)
    if info.is_file:
        return [ReportFile(place.system, info.path, info.size)]
    # One listing of everything, then folder by folder: each may have a manifest of its own.
    folders: dict[str, list[Any]] = {}
    for found in place.files():
        if not _is_hidden(found.path[len(place.path) :]):
            folders.setdefault(found.path.rpartition("/")[0], []).append(found)
    files = [
        file for folder in sorted(folders) for file in _counting(LakePlace(url, place.system, folder), folders[folder])
    ]
    if not files:
        raise ReportRejected(f"{place.url}: there is no {SUFFIX} file that counts in this folder; nothing was counted")
    return files


def _is_hidden(path: str) -> bool:
    """Whether a name on the way to a file says that it is not data; a manifest is looked at as an exception."""
    *above, name = (part for part in path.split("/") if part)
    return any(part.startswith(("_", ".")) for part in above) or (name != MANIFEST and name.startswith(("_", ".")))


def _counting(folder: LakePlace, found: Sequence[Any]) -> list[ReportFile]:
    """The files of one folder that count."""
    sizes = {PurePosixPath(info.path).name: info.size for info in found}
    manifest = read_manifest(folder) if sizes.pop(MANIFEST, None) is not None else None
    about, entries = (None, None) if manifest is None else manifest
    if entries is None:
        names = sorted(name for name in sizes if name.endswith(SUFFIX))
        return [ReportFile(folder.system, folder.at(name), sizes[name], about) for name in names]
    # All entries before anything is counted: the size is a cheap check, and the checksum follows when a file is read.
    for entry in entries:
        if sizes.get(entry.file) != entry.bytes:
            raise ReportRejected(
                f"{folder.at(entry.file)}: the file is missing, or has another size than the manifest says; "
                "nothing was counted"
            )
    return [ReportFile(folder.system, folder.at(entry.file), entry.bytes, about) for entry in entries]
