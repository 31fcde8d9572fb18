"""`tacit reports export` and `tacit tally` of what it writes: the same estimates, byte for byte."""

from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.errors import InvalidSpec, MissingExtra, ReportRejected, SpecMismatch, TacitError
from tacit.wire.files import Origin, read_origin, read_tally
from tacit.wire.tallies import dump_tally


def tacit(*words: str | Path) -> str:
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False).stdout


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    values = tmp_path / "values.csv"
    values.write_text("\n".join("abc"[i % 3 if i % 2 else 0] for i in range(3000)))
    tacit("privatize", values, "--kind", "olh", "--epsilon", "1", "--labels", "a,b,c", "-o", tmp_path / "a.reports")
    return tmp_path / "a.reports"


def test_estimates_of_exported_reports_are_the_same_bytes(reports: Path, tmp_path: Path) -> None:
    tacit("reports", "export", reports, "-o", tmp_path / "lake")
    tacit("tally", reports, "-o", tmp_path / "one.tally")
    tacit("tally", tmp_path / "lake", "-o", tmp_path / "two.tally")
    # The files differ in one thing: that of a lake also names what was counted, so that nobody counts it twice.
    data = {name: (tmp_path / f"{name}.tally").read_bytes() for name in ("one", "two")}
    counted = [sha256(file.read_bytes()).hexdigest() for file in (tmp_path / "lake").glob("*.parquet")]
    assert read_origin(data["one"], "one") is None and read_origin(data["two"], "two") == Origin("", tuple(counted))
    (one, domain), (two, same_domain) = (read_tally(BytesIO(content), name) for name, content in data.items())
    assert dump_tally(one) == dump_tally(two) and domain == same_domain
    shown = tacit("estimate", tmp_path / "one.tally")
    assert "3,000 reports" in shown and shown == tacit("estimate", tmp_path / "two.tally")
    tacit("tally", tmp_path / "lake", reports, *(tmp_path / "lake").glob("*.parquet"), "-o", tmp_path / "three.tally")
    assert "9,000 reports" in tacit("estimate", tmp_path / "three.tally")


def refused(error: type[TacitError], match: str, *words: str | Path) -> None:
    with pytest.raises(error, match=match):
        tacit(*words)


def test_what_cannot_be_counted_leaves_no_tally(reports: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.tally"
    (tmp_path / "empty").mkdir()
    refused(ReportRejected, r"no \.parquet file", "tally", tmp_path / "empty", "-o", output)
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and nothing else")
    refused(ReportRejected, "not a Parquet file", "tally", tmp_path / "x.parquet", "-o", output)
    refused(InvalidSpec, "no file system", "tally", "gopher://x/y", "-o", output)
    tacit("reports", "export", reports, "-o", tmp_path / "lake")
    refused(InvalidSpec, "new or empty", "reports", "export", reports, "-o", tmp_path / "lake")
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("0\n1\n2\n")
    tacit("privatize", numbers, "--kind", "olh", "--size", "3", "--epsilon", "1", "-o", tmp_path / "n.reports")
    refused(SpecMismatch, "labels differ", "tally", tmp_path / "lake", tmp_path / "n.reports", "-o", output)
    assert not output.exists()


def test_without_pyarrow_one_sentence_says_what_to_install(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for module in ("pyarrow", "pyarrow.fs"):
        monkeypatch.setitem(sys.modules, module, None)
    refused(MissingExtra, "pyarrow is not installed", "reports", "export", reports, "-o", tmp_path / "lake")
