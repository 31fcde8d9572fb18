"""`.reports` and `.tally` files: round trips, and every kind of damage refused."""

import io
import json
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tacit
from tacit.core.mechanism import Oracle
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ReportRejected, TacitError
from tacit.testing.examples import example
from tacit.testing.laws import same_tally
from tacit.wire.files import REPORTS_MAGIC, TALLY_MAGIC, Reader, Writer, read_tally, report_blocks, write_tally

KINDS = [kind.kind for kind in tacit.CATALOG if issubclass(kind, Oracle) and hasattr(example(kind.kind, "1"), "size")]


def report_file(mechanism: Any, batches: list[npt.NDArray[Any]], **extra: Any) -> bytes:
    stream = io.BytesIO()
    writer = Writer(stream, REPORTS_MAGIC, mechanism, **extra)
    for reports in batches:
        writer.block(reports.tobytes(), len(reports))
    assert writer.close() == sum(map(len, batches))
    return stream.getvalue()


def read_reports(data: bytes) -> tuple[Any, bytes, int]:
    reader = Reader(io.BytesIO(data), REPORTS_MAGIC, "a.reports")
    found = b"".join(reports.tobytes() for reports in report_blocks(reader, at_least=3))
    return reader.header.mechanism, found, reader.n


def tally_file(tally: Any) -> bytes:
    stream = io.BytesIO()
    write_tally(stream, tally)
    return stream.getvalue()


@pytest.mark.parametrize("kind", [kind.kind for kind in tacit.CATALOG if issubclass(kind, Oracle)])
@given(sizes=st.lists(st.integers(0, 9), max_size=5))
@examples(10)
def test_report_files_round_trip(kind: str, sizes: list[int]):
    mechanism = example(kind, "1")
    coins = ReplayCoins(b"file")
    batches = [mechanism.privatize(np.arange(size) % 2, coins) for size in sizes]
    again, found, n = read_reports(report_file(mechanism, batches))
    assert again == mechanism
    assert found == b"".join(reports.tobytes() for reports in batches)
    assert n == sum(sizes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [0, 1, 23])
def test_tally_files_round_trip(kind: str, weighted: bool, n: int):
    mechanism: Any = example(kind, "1")
    reports = mechanism.privatize(np.arange(n) % mechanism.size, ReplayCoins(b"tally"))
    tally = mechanism.tally(reports, np.arange(n) + 1 if weighted else None)
    again, domain = read_tally(io.BytesIO(tally_file(tally)), "a.tally")
    assert domain is None and again.mechanism == mechanism
    assert same_tally(tally, again) and again.is_weighted == tally.is_weighted
    a, b = mechanism.estimate(tally + tally), mechanism.estimate(again + tally)
    assert np.array_equal(a.value, b.value) and np.array_equal(a.variance, b.variance)


@pytest.mark.parametrize("weighted", [False, True])
def test_logs_round_trip_or_are_refused_before_anything_is_written(weighted: bool):
    """A file that cannot be read again would lose reports."""
    mechanism = tacit.OLH(size=1 << 40, epsilon="1")
    parts = [mechanism.privatize(np.arange(n), ReplayCoins(b"log")) for n in (5, 0, 9)]
    tally = mechanism.tally(parts[0], np.arange(5) + 1 if weighted else None)
    for part in parts[1:]:
        tally = tally + mechanism.tally(part, np.arange(len(part)) + 1 if weighted else None)
    try:
        data = tally_file(tally)
    except TacitError:
        return
    again, _ = read_tally(io.BytesIO(data), "a.tally")
    assert (again.n, again.is_weighted) == (14, weighted)
    a, b = mechanism.estimate(tally, [3, 1 << 39]), mechanism.estimate(again, [3, 1 << 39])
    assert np.array_equal(a.value, b.value)


SMALL = tacit.GRR(size=4, epsilon="1")
SOME = SMALL.privatize(np.arange(6) % 4, ReplayCoins(b"small"))
FILES = {
    "reports": (report_file(SMALL, [SOME[:4], SOME[4:]]), read_reports),
    "tally": (tally_file(SMALL.tally(SOME)), lambda data: read_tally(io.BytesIO(data), "a.tally")),
    "weighted": (
        tally_file(SMALL.tally(SOME, [1, 2, 3, 4, 5, 6])), lambda data: read_tally(io.BytesIO(data), "a.tally")
    ),
    "log": (
        tally_file(tacit.OLH(size=1 << 40, epsilon="1").tally(
            tacit.OLH(size=1 << 40, epsilon="1").privatize([1, 2, 3], ReplayCoins(b"l"))
        )),
        lambda data: read_tally(io.BytesIO(data), "a.tally"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_at_any_byte_is_refused(name: str):
    data, read = FILES[name]
    read(data)
    for end in range(len(data)):
        with pytest.raises(ReportRejected, match=r"a\.(reports|tally)"):
            read(data[:end])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
def test_a_file_with_any_byte_changed_is_refused(name: str, flip: int):
    data, read = FILES[name]
    for place in range(len(data)):
        altered = bytearray(data)
        altered[place] ^= flip
        with pytest.raises(TacitError):
            read(bytes(altered))


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_more_behind_its_end_is_refused(name: str):
    data, read = FILES[name]
    for more in (b"\0", data):
        with pytest.raises(ReportRejected):
            read(data + more)


@pytest.mark.parametrize("foreign", [b"", b"PK\x03\x04" * 99, b"value\n1\n2\n", bytes(4096), b"\xff" * 4096])
@pytest.mark.parametrize("name", FILES)
def test_foreign_files_are_refused(name: str, foreign: bytes):
    with pytest.raises(ReportRejected):
        FILES[name][1](foreign)


def test_reports_are_no_tally_and_a_tally_is_no_report():
    with pytest.raises(ReportRejected, match=r"not a \.tally file"):
        FILES["tally"][1](FILES["reports"][0])
    with pytest.raises(ReportRejected, match=r"not a \.reports file"):
        FILES["reports"][1](FILES["tally"][0])


def forged(magic: bytes, header: Any, blocks: list[bytes], n: int) -> bytes:
    """A well-formed file with a right checksum around whatever content."""
    head = json.dumps(header).encode()
    data = magic + (1).to_bytes(2, "little") + len(head).to_bytes(4, "little") + head
    data += b"".join(len(block).to_bytes(4, "little") + block for block in blocks)
    data += bytes(4) + n.to_bytes(8, "little")
    return data + sha256(data).digest()


def header_of(mechanism: Any, **extra: Any) -> dict[str, Any]:
    return {"spec": mechanism.spec(), "digest": mechanism.digest} | extra


LAZY = tacit.OLH(size=1 << 40, epsilon="1")
SIX: dict[str, Any] = {"weighted": False, "shape": [4], "total": "6", "total_squared": "6"}


# A right checksum is no proof of right content: files from elsewhere are still checked.
FORGED = {
    "cells of another shape": (header_of(SMALL, state="counts", **SIX), [bytes(40)], 6),
    "half a cell": (header_of(SMALL, state="counts", **SIX), [bytes(31)], 6),
    "no totals": (header_of(SMALL, state="counts", weighted=False, shape=[4]), [bytes(32)], 6),
    "totals that are no numbers": (header_of(SMALL, state="counts", **SIX | {"total": "x"}), [bytes(32)], 6),
    "unweighted totals that differ from n": (
        header_of(SMALL, state="counts", **SIX | {"total": "9", "total_squared": "9"}),
        [bytes(32)],
        6,
    ),
    "an unknown state": (header_of(SMALL, state="soup", **SIX), [bytes(32)], 6),
    "counts of a kind that keeps a log": (header_of(LAZY, state="counts", **SIX), [bytes(32)], 6),
    "a log of a kind that keeps counts": (header_of(SMALL, state="log", weighted=False), [b"\x01\x01"], 2),
    "a log of codes out of range": (header_of(SMALL, state="log", weighted=False), [b"\x09\x01"], 2),
    "a log of buckets out of range": (header_of(LAZY, state="log", weighted=False), [b"\xff" * 10], 2),
    "a log with another number of reports": (header_of(LAZY, state="log", weighted=False), [bytes(10)], 3),
    "a spec that is a list": ({"spec": [], "digest": ""}, [], 0),
    "a header that is a list": ([], [], 0),
    "no header fields": ({}, [], 0),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_tallies_are_refused(name: str):
    header, blocks, n = FORGED[name]
    with pytest.raises(TacitError):
        read_tally(io.BytesIO(forged(TALLY_MAGIC, header, blocks, n)), "a.tally")


def test_a_forged_number_of_reports_is_refused():
    data = forged(REPORTS_MAGIC, header_of(SMALL), [b"\x00\x01"], 3)
    with pytest.raises(TacitError):
        read_reports(data)


def test_the_next_version_is_refused_by_name():
    data = bytearray(FILES["tally"][0])
    data[8] = 2
    with pytest.raises(ReportRejected, match="version is 2"):
        FILES["tally"][1](bytes(data))
