"""Report files: what is written is counted bit for bit, and what does not fit is refused before anything counts."""

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.catalog import CATALOG
from tacit.core.tally import Log
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ReportRejected, SpecMismatch
from tacit.lake.about import About, BatchSet
from tacit.lake.count import survey, tally_batch, tally_files
from tacit.lake.export import export
from tacit.lake.files import ReportFile, write_reports
from tacit.lake.folder import MANIFEST, find_files
from tacit.lake.layout import reports_of, schema_of, table_of
from tacit.lake.place import place_of
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.testing.examples import example
from tacit.testing.laws import batch_of, values_of
from tacit.wire.files import REPORTS_MAGIC, Reader, Writer
from tacit.wire.tallies import dump_tally

ROOT = Path(__file__).resolve().parents[3]
SPEC = (ROOT / "spec" / "report-files.md").read_text(encoding="utf-8")


def some_reports(mechanism: Any, times: int = 9) -> Any:
    """Reports on every value of a small domain, several times."""
    return mechanism.privatize(batch_of(values_of(mechanism) * times), ReplayCoins(b"lake"))


def reports_file(path: Path, mechanism: Any, reports: Any, **extra: Any) -> Path:
    with path.open("wb") as stream:
        writer = Writer(stream, REPORTS_MAGIC, mechanism, **extra)
        writer.block(reports.tobytes(), len(reports))
        writer.close()
    return path


def counted(url: str | Path) -> Any:
    files = find_files(str(url))
    about, rows = survey(files)
    tally = tally_files(files, about)
    assert tally.n == rows
    return tally


def exported(folder: Path, mechanism: Any, reports: Any, **extra: Any) -> Path:
    source = reports_file(folder.with_suffix(".reports"), mechanism, reports, **extra)
    with source.open("rb") as stream:
        export(Reader(stream, REPORTS_MAGIC, source.name), place_of(str(folder)), lambda _: None)
    return folder


def same(here: Any, there: Any) -> bool:
    """Equal tallies, bit for bit; of logs, whose order means nothing, equal reports with equal weights."""
    if not isinstance(here, Log):
        return dump_tally(here) == dump_tally(there)
    return here.n == there.n and lines(here) == lines(there)


def lines(log: Log) -> list[tuple[bytes, int]]:
    weights = [0] * log.n if log.weights is None else np.concatenate(log.weights).tolist()
    return sorted(zip([report.tobytes() for chunk in log.chunks for report in chunk], weights, strict=True))


@pytest.mark.parametrize("kind", [kind.kind for kind in CATALOG])
def test_counting_exported_reports_equals_counting_them_directly(kind: str, tmp_path: Path) -> None:
    mechanism = example(kind, "1")
    reports = some_reports(mechanism)
    direct = mechanism.tally(reports)
    assert same(counted(exported(tmp_path / "lake", mechanism, reports)), direct)
    # Weighted, as a file of its own, and through the batches that an engine would see.
    weights = np.arange(len(reports), dtype=np.int64) % 7 - 2
    write_reports(tmp_path / "weighted.parquet", About(mechanism), reports, weights)
    assert same(counted(tmp_path / "weighted.parquet"), mechanism.tally(reports, weights))
    table = table_of(mechanism, reports)
    parts = [tally_batch(mechanism, as_spark(batch)) for batch in table.to_batches(max_chunksize=7)]
    assert same(sum(parts[1:], parts[0]), direct)


def as_spark(batch: Any) -> Any:
    """A batch as Spark hands it over: variable binary and signed integers, cut out of something larger."""
    columns = {
        name: column.cast(pa.binary() if name == "report" else pa.int64())
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    whole = pa.RecordBatch.from_pydict(columns)
    return pa.concat_batches([whole, whole]).slice(batch.num_rows, batch.num_rows)


def test_the_order_of_rows_says_nothing_about_arrival(tmp_path: Path) -> None:
    mechanism = OLH(size=64, epsilon="1")
    reports = mechanism.privatize(np.arange(1000) % 64, ReplayCoins(b"order"))
    streams = [io.BytesIO(), io.BytesIO()]
    about = About(mechanism, batches=BatchSet.of([b"a" * 16, b"b" * 16]))
    for stream, order in zip(streams, (slice(None), slice(None, None, -1)), strict=True):
        write_reports(stream, about, reports[order])
    assert streams[0].getvalue() == streams[1].getvalue()
    rows = pq.read_table(io.BytesIO(streams[0].getvalue()))["report"].to_pylist()
    assert rows == sorted(rows)


def test_digests_of_batches_add_and_do_not_depend_on_order() -> None:
    a, b, c = (bytes([i]) * 16 for i in range(3))
    assert BatchSet.of([a, b]) + BatchSet.of([c]) == BatchSet.of([c, a, b])
    assert BatchSet.of([a, b]) != BatchSet.of([a, c])
    assert BatchSet.of([a, a]).hex != BatchSet.of([]).hex


def test_the_example_of_the_specification_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", SPEC, re.DOTALL)
    assert len(code) == 1
    exec(code[0], {})
    assert counted("grr.parquet").cells.tolist() == [3, 3, 2, 2]


def test_a_manifest_beside_files_without_metadata_says_what_they_are(tmp_path: Path) -> None:
    mechanism = GRR(size=4, epsilon="1")
    pq.write_table(pa.table({"report": pa.array([b"\0", b"\3"], pa.binary(1))}), tmp_path / "part-0.parquet")
    with pytest.raises(ReportRejected, match=r"part-0\.parquet: neither the file nor a _tacit\.json"):
        counted(tmp_path)
    (tmp_path / MANIFEST).write_text(json.dumps({"layout": 1, "spec": mechanism.spec()}))
    assert counted(tmp_path).cells.tolist() == [1, 0, 0, 1]


def test_only_files_of_a_manifest_count(tmp_path: Path) -> None:
    mechanism = OUE(size=4, epsilon="1")
    lake = exported(tmp_path / "lake", mechanism, some_reports(mechanism))
    write_reports(lake / "orphan.parquet", About(mechanism), some_reports(mechanism))
    (lake / ".tmp").mkdir()
    (lake / ".tmp" / "x.parquet").write_bytes(b"half")
    assert counted(lake).n == 36
    named = next(path for path in lake.iterdir() if len(path.stem) == 64)
    named.unlink()
    with pytest.raises(ReportRejected, match="missing, or has another size"):
        counted(lake)


def test_an_interrupted_export_counts_nothing(tmp_path: Path) -> None:
    mechanism = GRR(size=4, epsilon="1")
    source = reports_file(tmp_path / "a.reports", mechanism, some_reports(mechanism))
    source.write_bytes(source.read_bytes()[:-1])
    with pytest.raises(ReportRejected, match="checksum"), source.open("rb") as stream:
        export(Reader(stream, REPORTS_MAGIC, "a.reports"), place_of(str(tmp_path / "lake")), lambda _: None)
    with pytest.raises(ReportRejected, match=r"no \.parquet file that counts"):
        counted(tmp_path / "lake")


def test_an_export_of_nothing_is_an_empty_tally(tmp_path: Path) -> None:
    mechanism = GRR(size=4, epsilon="1")
    assert counted(exported(tmp_path / "lake", mechanism, mechanism.decode(b""))).is_empty


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (GRR(size=4, epsilon="2"), "epsilon is '1' here and '2' there"),
        (GRR(size=5, epsilon="1"), "size is 4 here and 5 there"),
        (OUE(size=4, epsilon="1"), "kind is 'grr' here and 'oue' there"),
    ],
)
def test_files_of_two_mechanisms_are_refused_by_the_field_that_differs(other: Any, field: str, tmp_path: Path) -> None:
    mechanism = GRR(size=4, epsilon="1")
    write_reports(tmp_path / "a.parquet", About(mechanism), some_reports(mechanism))
    write_reports(tmp_path / "b.parquet", About(other), some_reports(other))
    with pytest.raises(SpecMismatch, match=rf"b\.parquet: cannot count these files together: {field}"):
        counted(tmp_path)


def test_files_with_other_labels_are_refused(tmp_path: Path) -> None:
    mechanism = GRR(size=4, epsilon="1")
    for name, domain in (("a", {"x": "one"}), ("b", {"x": "two"})):
        write_reports(tmp_path / f"{name}.parquet", About(mechanism, domain=domain), some_reports(mechanism))
    with pytest.raises(SpecMismatch, match=r"labels \(domain\) differ"):
        counted(tmp_path)


def test_every_altered_or_missing_byte_of_a_named_file_is_noticed(tmp_path: Path) -> None:
    mechanism = GRR(size=4, epsilon="1")
    lake = exported(tmp_path / "lake", mechanism, some_reports(mechanism, times=2))
    path = next(path for path in lake.iterdir() if path.suffix == ".parquet")
    good = path.read_bytes()
    file = ReportFile(place_of(str(lake)).system, str(path), len(good))
    about, _ = survey([file])
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(ReportRejected, match=r"\.parquet: the file"):
            tally_files([file], about)
    for end in range(0, len(good), 7):
        path.write_bytes(good[:end])
        with pytest.raises(ReportRejected):
            tally_files([file], about)
    path.write_bytes(good)
    assert tally_files([file], about).n == 8


def test_a_damaged_page_of_a_file_with_another_name_is_noticed(tmp_path: Path) -> None:
    mechanism = OLH(size=64, epsilon="1")
    path = tmp_path / "pages.parquet"
    write_reports(path, About(mechanism), mechanism.privatize(np.arange(3000) % 64, ReplayCoins(b"page")))
    data = bytearray(path.read_bytes())
    data[5000] ^= 64
    path.write_bytes(data)
    with pytest.raises(ReportRejected, match=r"pages\.parquet: the file is truncated or damaged"):
        counted(path)


def batch(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


MEMBERS = example("one_of", "1")
WIDTH = MEMBERS.payload_widths[0]


@pytest.mark.parametrize(
    ("mechanism", "given", "fault"),
    [
        (GRR(size=4, epsilon="1"), batch(reports=[1]), "one column report"),
        (GRR(size=4, epsilon="1"), batch(report=pa.array([b"ab"], pa.binary(2))), "of 2 bytes, must be of 1"),
        (GRR(size=4, epsilon="1"), batch(report=[b"a", b"", b"ab"]), "2 of 3 reports are not of 1 bytes"),
        (GRR(size=4, epsilon="1"), batch(report=[b"\1", None]), "column report has 1 NULLs"),
        (GRR(size=4, epsilon="1"), batch(report=[1, 2]), "column report is int64, must be fixed-size binary"),
        (MEMBERS, batch(report=[b"\0" * WIDTH]), "one column member"),
        (MEMBERS, batch(member=[2], report=[b"\0" * WIDTH]), "member must be from 0 to 1"),
        (MEMBERS, batch(member=[-1], report=[b"\0" * WIDTH]), "member must be from 0 to 1"),
        (MEMBERS, batch(member=["0"], report=[b"\0" * WIDTH]), "member is string, must be uint32"),
    ],
)
def test_columns_that_do_not_fit_are_refused(mechanism: Any, given: Any, fault: str) -> None:
    with pytest.raises(ReportRejected, match=fault):
        reports_of(mechanism, given)


def test_reports_out_of_range_are_refused_with_the_name_of_their_file(tmp_path: Path) -> None:
    mechanism = GRR(size=4, epsilon="1")
    table = pa.table({"report": pa.array([b"\1", b"\7"], pa.binary(1))}, schema_of(mechanism))
    metadata = {k.decode(): v.decode() for k, v in About(mechanism).to_metadata(2).items()}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "bad.parquet")
    with pytest.raises(ReportRejected, match=r"bad\.parquet: grr .*: 1 of 2 reports are out of range"):
        counted(tmp_path)
    pq.write_table(table.slice(1).replace_schema_metadata(metadata), tmp_path / "bad.parquet")
    with pytest.raises(ReportRejected, match="has 1 rows where 2 are stated"):
        counted(tmp_path)


def test_reports_of_a_fixed_size_column_are_not_copied() -> None:
    mechanism = OLH(size=64, epsilon="1")
    table = table_of(mechanism, mechanism.privatize(np.arange(100) % 64, ReplayCoins(b"view")))
    part = table.to_batches()[0].slice(10, 20)
    reports = reports_of(mechanism, part)
    assert not reports.flags.owndata
    assert reports.ctypes.data == part.column("report").buffers()[1].address + 10 * mechanism.report_dtype.itemsize
