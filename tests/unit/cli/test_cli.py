"""The commands as they are written in the documentation: files, pipes, exit codes, and silence about values."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.cli import main
from tacit.wire.files import write_tally

COMMAND = str(Path(sys.executable).with_name("tacit"))
SECRET = "987654"


@dataclass(frozen=True)
class Result:
    """What one command did."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run `tacit` in this process, as its entry point would."""

    def call(*arguments: Any, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsysbinary.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        captured = capsysbinary.readouterr()
        return Result(code, captured.out, captured.err.decode())

    return call


def write(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def privatize(run: Run, values: Any, output: Any, *more: str, stdin: bytes = b"") -> Result:
    """OLH over 1024 values at epsilon 1.0, as in the documentation."""
    options = ("--kind", "olh", "--size", 1024, "--epsilon", "1.0", *more)
    return run("privatize", *options, values, "-o", output, stdin=stdin)


# Choosing.


def test_choose_prints_the_pick_and_its_competitors(run: Run):
    result = run("oracle", "choose", "--size", 1024, "--epsilon", "1.0", "--n", 100_000, "--json")
    assert result.code == 0
    kinds = [candidate["kind"] for candidate in result.json["candidates"]]
    assert result.json["pick"] in kinds
    assert {"grr", "oue", "olh", "hrr"} <= set(kinds)
    for candidate in result.json["candidates"]:
        assert {"kind", "standard_error", "report_bits"} <= candidate.keys()
    by_kind = {candidate["kind"]: candidate for candidate in result.json["candidates"]}
    # Var* + slope/d at epsilon 1: 3.682694 + 1/1024 for OUE.
    assert by_kind["oue"]["standard_error"] == pytest.approx(((3.682694 + 1 / 1024) / 100_000) ** 0.5, rel=1e-6)
    assert by_kind["oue"]["report_bits"] == 1024 and by_kind["grr"]["report_bits"] == 10
    best = min(candidate["standard_error"] for candidate in result.json["candidates"])
    assert by_kind[result.json["pick"]]["standard_error"] < 1.05 * best


def test_choose_says_how_many_respondents_an_error_needs(run: Run):
    options = ("--size", 32, "--epsilon", "2", "--n", 1000, "--json", "--target-error", "0.01")
    for candidate in run("oracle", "choose", *options).json["candidates"]:
        per_report = candidate["standard_error"] ** 2 * 1000
        assert candidate["n_needed"] == pytest.approx(ceil(per_report / 0.01**2), abs=1)
    table = run("oracle", "choose", "--size", 32, "--epsilon", "2", "--n", 1000, "--target-error", "0.01")
    assert table.code == 0 and b"pick:" in table.out


def test_choose_takes_direct_encoding_for_small_domains_and_short_reports_when_asked(run: Run):
    small = run("oracle", "choose", "--size", 3, "--epsilon", "4", "--n", 1000, "--json")
    assert small.json["pick"] == "grr"
    short = run("oracle", "choose", "--size", 1024, "--epsilon", "1", "--n", 1000, "--json", "--max-report-bits", 40)
    assert max(candidate["report_bits"] for candidate in short.json["candidates"]) <= 40


@pytest.mark.parametrize(
    "options",
    [
        ("--size", "1024", "--epsilon", "0", "--n", "10"),
        ("--size", "1024", "--epsilon", "nan", "--n", "10"),
        ("--size", "1", "--epsilon", "1", "--n", "10"),
        ("--size", "-5", "--epsilon", "1", "--n", "10"),
        ("--size", "10", "--epsilon", "1", "--n", "0"),
        ("--size", "10", "--epsilon", "1", "--n", "10", "--target-error", "0"),
        ("--size", "10", "--epsilon", "1", "--n", "10", "--max-report-bits", "1"),
        ("--size", "ten", "--epsilon", "1", "--n", "10"),
    ],
)
def test_choose_refuses_nonsense(run: Run, options: tuple[str, ...]):
    result = run("oracle", "choose", *options, "--json")
    assert result.code == 2 and result.out == b"" and result.err


# Auditing.


def test_audit_covers_the_catalogue(run: Run):
    result = run("audit", "--json")
    assert result.code == 0
    assert {row["kind"] for row in result.json} == {kind.kind for kind in tacit.CATALOG}
    for kind in {row["kind"] for row in result.json}:
        declared = {row["declared"] for row in result.json if row["kind"] == kind}
        assert {0.1, 0.5, 1, 2, 4, 8, 16} <= declared
    for row in result.json:
        assert {"kind", "declared", "realised"} <= row.keys()
        assert row["realised"] <= row["declared"]
    rappor = [row for row in result.json if row["kind"] == "rappor"]
    assert len(rappor) == 2 * 7  # One report, and the permanent bits behind all of them.


@pytest.mark.parametrize("kind", ["grr", "oue", "olh", "hrr"])
def test_audit_fails_when_a_mechanism_claims_too_little(run: Run, kind: str, monkeypatch: pytest.MonkeyPatch):
    cls: Any = next(entry for entry in tacit.CATALOG if entry.kind == kind)
    honest = cls.realised_odds
    monkeypatch.setattr(cls, "realised_odds", lambda self: honest(self) * Fraction(1001, 1000))
    result = run("audit", "--kind", kind, "--json")
    assert result.code != 0
    bad = {row["kind"] for row in result.json if row["realised"] > row["declared"]}
    assert kind in bad
    assert b"FAILS" in run("audit", "--kind", kind).out


def test_audit_fails_when_the_sampled_law_is_not_the_claimed_one(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Claims stay right; the distribution of reports doubles the epsilon. Enumeration finds it."""
    honest = tacit.GRR.log_prob
    monkeypatch.setattr(tacit.GRR, "log_prob", lambda self, reports, value: 2 * honest(self, reports, value))
    assert run("audit", "--kind", "grr", "--epsilon", "1").code != 0
    monkeypatch.undo()


# The pipeline on files.


def test_uneven_weights_are_said(run: Run, tmp_path: Path):
    mechanism = tacit.GRR(size=4, epsilon="4")
    reports = np.repeat(np.arange(4), 25).astype(mechanism.report_dtype)
    with (tmp_path / "uneven.tally").open("wb") as stream:
        write_tally(stream, mechanism.tally(reports, [500, *[1] * 99]))
    result = run("estimate", tmp_path / "uneven.tally", "--json")
    assert result.json["caution"] == "uneven_weights"
    assert all(row["caution"] == "uneven_weights" for row in result.json["estimates"])
    assert b"a few reports carry most of the weight" in run("estimate", tmp_path / "uneven.tally").out


def test_the_documented_pipeline(run: Run, tmp_path: Path):
    values = write(tmp_path / "values.csv", *(str(i % 7) for i in range(300)))
    a, b, whole = tmp_path / "a.tally", tmp_path / "b.tally", tmp_path / "all.tally"
    for target in (a, b):
        assert privatize(run, values, tmp_path / "a.reports").code == 0
        assert run("tally", tmp_path / "a.reports", "-o", target).code == 0
    assert run("merge", a, b, "-o", whole).code == 0
    result = run("estimate", whole, "--json")
    assert result.code == 0
    assert result.json["n"] == 600
    assert len(result.json["estimates"]) == 1024
    for row in result.json["estimates"]:
        assert row.keys() == {"value", "frequency", "standard_error", "low", "high"}
        assert row["low"] < row["frequency"] < row["high"]
        # Half a report on either side, and the error at the ends instead of at the estimate.
        assert 1 < (row["high"] - row["low"]) / (2 * 1.959964 * row["standard_error"]) < 1.05
    assert [row["value"] for row in result.json["estimates"]] == list(range(1024))
    assert not list(tmp_path.glob("*.partial"))
    assert run("estimate", whole, "--top", 3).code == 0


def test_estimates_are_those_of_the_values(run: Run, tmp_path: Path):
    """At epsilon 32 a report is the truth but for one in 10^13."""
    values = write(tmp_path / "v.csv", *"0001123300")
    run("privatize", "--kind", "grr", "--size", 4, "--epsilon", "32", values, "-o", tmp_path / "r")
    run("tally", tmp_path / "r", "-o", tmp_path / "t")
    found = run("estimate", tmp_path / "t", "--json").json
    assert [row["frequency"] for row in found["estimates"]] == pytest.approx([0.5, 0.2, 0.1, 0.2], abs=1e-9)


def frequencies(run: Run, folder: Path, *options: Any, stdin: bytes = b"", size: int = 4) -> tuple[int, list[float]]:
    """n and the estimates of a whole pipeline at epsilon 32."""
    kind = ("--kind", "grr", "--epsilon", "32", *(() if "--labels" in options else ("--size", size)))
    result = run("privatize", *kind, *options, "-o", folder / "x.reports", stdin=stdin)
    assert result.code == 0, result.err
    assert run("tally", folder / "x.reports", "-o", folder / "x.tally").code == 0
    found = run("estimate", folder / "x.tally", "--json").json
    return found["n"], [round(row["frequency"] or 0, 6) for row in found["estimates"]]


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("0\n1\n2\n3\n", 4),  # no header
        ("answer\n0\n1\n2\n3\n", 4),  # a header
        ('"answer"\r\n"0"\r\n"1"\r\n"2"\r\n"3"\r\n', 4),  # quoted, with Windows line ends
        ("\ufeffanswer\n0\n1\n2\n3\n", 4),  # a byte order mark
        ("\ufeff0\n1\n2\n3\n", 4),  # a byte order mark and no header
        (" 0 \n 1\n2 \n3", 4),  # spaces, and no newline at the end
    ],
)
def test_headers_are_recognised(run: Run, tmp_path: Path, text: str, n: int):
    (tmp_path / "v.csv").write_text(text, newline="", encoding="utf-8")
    assert frequencies(run, tmp_path, tmp_path / "v.csv") == (n, [0.25] * 4)
    assert frequencies(run, tmp_path, "-", stdin=text.encode()) == (n, [0.25] * 4)


def test_columns_by_name_and_by_number(run: Run, tmp_path: Path):
    named = write(tmp_path / "named.csv", "id,answer,2", "3,0,1", "3,1,1", '"3","1",1')
    assert frequencies(run, tmp_path, named, "--column", "answer") == (3, [0.333333, 0.666667, 0, 0])
    assert frequencies(run, tmp_path, named, "--column", "id") == (3, [0, 0, 0, 1])
    assert frequencies(run, tmp_path, named, "--column", "1") == (3, [0.333333, 0.666667, 0, 0])
    assert frequencies(run, tmp_path, named, "--column", "2") == (3, [0, 1, 0, 0])  # A name before a number.
    bare = write(tmp_path / "bare.csv", "3,0", "3,1")
    assert frequencies(run, tmp_path, bare, "--column", "1") == (2, [0.5, 0.5, 0, 0])
    for column in ([], ["--column", "nobody"], ["--column", "7"]):
        result = run("privatize", "--kind", "grr", "--size", 4, "--epsilon", "1", bare, *column, "-o", tmp_path / "no")
        assert result.code == 2 and not (tmp_path / "no").exists()


def test_labels(run: Run, tmp_path: Path):
    values = write(tmp_path / "v.csv", "fruit", "apple", "pear", "pear", "kiwi", "banana")
    options = (values, "--labels", "apple,pear,kiwi,fig")
    assert frequencies(run, tmp_path, *options) == (4, [0.25, 0.5, 0.25, 0])
    rows = run("estimate", tmp_path / "x.tally", "--json").json["estimates"]
    assert [row["value"] for row in rows] == ["apple", "pear", "kiwi", "fig"]


def test_unreadable_rows_are_counted(run: Run, tmp_path: Path):
    values = write(tmp_path / "v.csv", "v", "1", "", "x", "2.5", "4", "-1", "1e0", "nan", "3")
    result = run("privatize", "--kind", "grr", "--size", 4, "--epsilon", "1", values, "-o", tmp_path / "r")
    assert result.code == 0
    assert re.search(r"\b2 reports\b", result.err) and re.search(r"\b7 rows\b", result.err)


def test_strict_refuses_unreadable_rows_and_writes_nothing(run: Run, tmp_path: Path):
    values = write(tmp_path / "v.csv", "1", "2", SECRET, "3")
    result = privatize(run, values, tmp_path / "new.reports", "--strict")
    assert result.code == 2 and result.out == b""
    assert os.listdir(tmp_path) == ["v.csv"]
    (tmp_path / "old.reports").write_bytes(b"older work")
    assert privatize(run, values, tmp_path / "old.reports", "--strict").code == 2
    assert (tmp_path / "old.reports").read_bytes() == b"older work"
    good = write(tmp_path / "good.csv", "1", "2")
    assert privatize(run, good, tmp_path / "new.reports", "--strict").code == 0


def test_what_strict_sent_down_a_pipe_is_refused_at_the_other_end(run: Run, tmp_path: Path):
    result = privatize(run, "-", "-", "--strict", stdin=b"1\nx\n2\n")
    assert result.code == 2
    assert run("tally", "-", "-o", tmp_path / "t", stdin=result.out).code == 2
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("text", ["", "v\n", "\n"])
def test_an_empty_column_is_a_collection_without_data(run: Run, tmp_path: Path, text: str):
    (tmp_path / "v.csv").write_text(text)
    n, _ = frequencies(run, tmp_path, tmp_path / "v.csv")
    assert n == 0
    rows = run("estimate", tmp_path / "x.tally", "--json").json["estimates"]
    assert {row["frequency"] for row in rows} == {None} and {row["status"] for row in rows} == {"no_data"}
    assert run("estimate", tmp_path / "x.tally").code == 0


def test_more_rows_than_one_chunk(run: Run, tmp_path: Path):
    values = write(tmp_path / "v.csv", "v", *(str(i % 4) for i in range(70_000)))
    assert frequencies(run, tmp_path, values) == (70_000, [0.25] * 4)
    assert run("tally", *[tmp_path / "x.reports"] * 3, "-o", tmp_path / "three").code == 0
    assert run("estimate", tmp_path / "three", "--json").json["n"] == 210_000


def test_huge_domains_are_estimated_at_candidates(run: Run, tmp_path: Path):
    heavy = 12345678901234567890
    values = write(tmp_path / "v.csv", *[str(heavy)] * 2000)
    options = ("--kind", "olh", "--size", 1 << 64, "--epsilon", "4")
    assert run("privatize", *options, values, "-o", tmp_path / "r").code == 0
    assert run("tally", tmp_path / "r", "-o", tmp_path / "t").code == 0
    assert run("merge", tmp_path / "t", tmp_path / "t", "-o", tmp_path / "u").code == 0
    everything = run("estimate", tmp_path / "u", "--json")
    assert everything.code == 2 and "candidates" in everything.err
    found = run("estimate", tmp_path / "u", "--json", "--candidates", f"{heavy},5")
    assert found.code == 0, found.err
    present, absent = found.json["estimates"]
    assert found.json["n"] == 4000 and (present["value"], absent["value"]) == (heavy, 5)
    # Standard deviations are 0.03 and 0.009 for the doubled reports: ten of them are never missed.
    assert abs(present["frequency"] - 1) < 0.3 and abs(absent["frequency"]) < 0.09
    for bad in ("x", "", "-1", str(1 << 64), "1.5"):
        result = run("estimate", tmp_path / "u", "--json", "--candidates", bad)
        assert result.code == 2 and result.out == b""


# The pipeline through pipes, as processes.


def test_pipes(tmp_path: Path):
    write(tmp_path / "values.csv", *(str(i % 3) for i in range(30)))
    line = (
        f"{COMMAND} privatize --kind grr --size 3 --epsilon 32 < values.csv | {COMMAND} tally - "
        f"| {COMMAND} estimate - --json"
    )
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n"] == 30
    assert [row["frequency"] for row in found["estimates"]] == pytest.approx([1 / 3] * 3, abs=1e-9)


def test_errors_are_one_line(run: Run, tmp_path: Path):
    values = write(tmp_path / "v.csv", "1")
    for arguments in (
        ["privatize", "--kind", "grr", "--size", "4", "--epsilon", "0", values],
        ["privatize", "--kind", "nope", "--size", "4", "--epsilon", "1", values],
        ["privatize", "--kind", "grr", "--size", "1099511627776", "--epsilon", "1", values],
        ["tally", values, "-o", tmp_path / "t"],
    ):
        done = run(*arguments)
        assert done.code == 2 and done.out == b""
        assert "Traceback" not in done.err and len(done.err.strip().splitlines()) == 1


def test_errors_of_a_process_are_one_line(tmp_path: Path):
    write(tmp_path / "v.csv", "1")
    arguments = ["privatize", "--kind", "grr", "--size", "4", "--epsilon", "0", "v.csv"]
    done = subprocess.run([COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2 and done.stdout == ""
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1


LOADED = """
import sys
from tacit.cli import main
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""


def test_help_is_quick():
    """It loads little: no numpy, no room but its own, and a few modules of the standard library."""
    command = [sys.executable, "-c", LOADED, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    loaded = done.stderr.split()
    assert {name for name in loaded if name.startswith("tacit.")} <= {"tacit.cli", "tacit.errors"}
    assert "numpy" not in loaded and len(loaded) < 200
    for command in ("audit", "estimate", "merge", "oracle", "privatize", "simulate", "tally"):
        assert re.search(rf"^  {command} ", done.stdout, re.MULTILINE)


# Damaged and foreign files.


@pytest.fixture
def files(run: Run, tmp_path: Path) -> tuple[Path, Path]:
    values = write(tmp_path / "v.csv", "1", "2", "3")
    privatize(run, values, tmp_path / "a.reports")
    run("tally", tmp_path / "a.reports", "-o", tmp_path / "a.tally")
    return tmp_path / "a.reports", tmp_path / "a.tally"


@pytest.mark.parametrize("keep", [0, 5, 40, -33, -1])
def test_truncated_files_are_refused_and_nothing_is_written(run: Run, files: tuple[Path, Path], keep: int):
    reports, tally = files
    for path in files:
        path.write_bytes(path.read_bytes()[:keep])
    out = tally.with_name("out")
    for result in (
        run("tally", reports, "-o", out),
        run("merge", tally, "-o", out),
        run("estimate", tally, "--json"),
    ):
        assert result.code == 2 and result.out == b"" and "Traceback" not in result.err
    assert not list(tally.parent.glob("out*"))


def test_one_damaged_file_among_good_ones_stops_the_count(run: Run, files: tuple[Path, Path]):
    reports, _ = files
    bad = reports.with_name("bad.reports")
    bad.write_bytes(reports.read_bytes()[:-1])
    result = run("tally", reports, bad, reports, "-o", reports.with_name("out"))
    assert result.code == 2 and "bad.reports" in result.err
    assert not reports.with_name("out").exists()


def test_foreign_and_missing_files(run: Run, files: tuple[Path, Path], tmp_path: Path):
    reports, tally = files
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(500))
    for command, path in (
        ("tally", foreign), ("merge", foreign), ("estimate", foreign), ("tally", tally), ("merge", reports)
    ):  # fmt: skip
        result = run(command, path)
        assert result.code == 2 and result.out == b"" and path.name in result.err
    for command in ("tally", "merge", "estimate"):
        result = run(command, tmp_path / "missing")
        assert result.code == 2 and "missing" in result.err and "Traceback" not in result.err
    assert privatize(run, tmp_path / "missing.csv", tmp_path / "out").code == 2
    assert privatize(run, tmp_path / "v.csv", tmp_path / "no" / "folder").code == 2


def test_merging_different_mechanisms_names_the_field(run: Run, files: tuple[Path, Path], tmp_path: Path):
    reports, tally = files
    other = tmp_path / "other.reports"
    run("privatize", "--kind", "olh", "--size", 1024, "--epsilon", "2", tmp_path / "v.csv", "-o", other)
    run("tally", other, "-o", tmp_path / "other.tally")
    for result in (
        run("merge", tally, tmp_path / "other.tally", "-o", tmp_path / "out"),
        run("tally", reports, other, "-o", tmp_path / "out"),
    ):
        assert result.code == 2 and re.search(r"(epsilon|buckets) is .* here and .* there", result.err)
    assert not (tmp_path / "out").exists()


def test_merging_different_labels_is_refused(run: Run, tmp_path: Path):
    """Equal mechanisms over different questions must not be added silently."""
    for name, labels in (("a", "yes,no"), ("b", "no,yes")):
        values = write(tmp_path / "v.csv", "yes")
        options = ("--kind", "grr", "--epsilon", "1", "--labels", labels)
        assert run("privatize", *options, values, "-o", tmp_path / f"{name}.reports").code == 0
        run("tally", tmp_path / f"{name}.reports", "-o", tmp_path / f"{name}.tally")
    merged = run("merge", tmp_path / "a.tally", tmp_path / "b.tally", "-o", tmp_path / "out")
    tallied = run("tally", tmp_path / "a.reports", tmp_path / "b.reports", "-o", tmp_path / "out")
    assert (merged.code, tallied.code) == (2, 2)


# Private values.


@pytest.mark.parametrize(
    "rows",
    [
        [SECRET],
        ["1", SECRET],
        ["1", f"{SECRET}.5"],
        ["1", f"my answer is {SECRET}"],
        [f"{SECRET},1", "2,3"],  # Two columns: which one is meant?
        ["1", f"{SECRET},1,1"],
        [f'"{SECRET}'],  # An open quote.
        ["1", f"-{SECRET}"],
    ],
)
@pytest.mark.parametrize("options", [[], ["--strict"], ["--column", "nobody"], ["--column", "9"], ["--labels", "a,b"]])
def test_no_error_shows_a_value(run: Run, tmp_path: Path, rows: list[str], options: list[str]):
    values = write(tmp_path / "v.csv", *rows)
    size = [] if "--labels" in options else ["--size", 8]
    for source, stdin in ((values, b""), ("-", values.read_bytes())):
        result = run(
            "privatize", "--kind", "grr", *size, "--epsilon", "1", source, *options, "-o", tmp_path / "out",
            stdin=stdin,
        )  # fmt: skip
        assert SECRET not in result.err
        assert "Traceback" not in result.err


def test_a_cell_too_long_for_the_reader_is_not_shown(run: Run, tmp_path: Path):
    values = write(tmp_path / "v.csv", "1", SECRET * 50_000)
    result = privatize(run, values, tmp_path / "out")
    assert SECRET not in result.err and "Traceback" not in result.err


def test_text_that_is_not_unicode_is_not_shown(run: Run, tmp_path: Path):
    (tmp_path / "v.csv").write_bytes(b"1\n\xff\xfe" + SECRET.encode() + b"\n2\n")
    result = privatize(run, tmp_path / "v.csv", tmp_path / "out")
    assert SECRET not in result.err and "Traceback" not in result.err
    assert result.code in (0, 2)


def test_reports_are_not_the_values(run: Run, tmp_path: Path):
    """The file holds the noisy reports and the spec, nothing of the input."""
    values = write(tmp_path / "v.csv", *["777"] * 50)
    privatize(run, values, tmp_path / "out")
    data = (tmp_path / "out").read_bytes()
    assert b"777" not in data[: data.index(b"}") + 1]
    assert len(data) < 600 + 50 * 5  # One byte of bucket and four of seed each, and a header.
    assert len(np.unique(np.frombuffer(data[-50 * 5 - 44 : -44], "u1"))) > 20
