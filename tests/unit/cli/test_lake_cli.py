"""Report files from the command line: folders of two collections, rows, and tallies that know what they counted."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from tests.service.rows import PEOPLE
from tests.unit.distributed.crowds import reports_on, write_folder

from tacit.catalog import CATALOG
from tacit.cli import cli
from tacit.collector.collections.publish import Planner
from tacit.core.members import as_bytes
from tacit.errors import ReportRejected, SpecMismatch
from tacit.lake.about import About
from tacit.lake.files import write_table
from tacit.lake.layout import fixed_binary
from tacit.oracles.grr import GRR
from tacit.tasks.table import TASKS
from tacit.wire.files import REPORTS_MAGIC, Writer, read_origin, read_tally
from tacit.wire.tallies import dump_tally

ASKED = {"kind": "categories", "labels": ["cat", "dog", "fish"]}
MECHANISM = GRR(size=3, epsilon="1")


def run(*words: Any) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def planned(**changes: Any) -> Any:
    draft = {"title": "Pets", "epsilon": "1", "questions": [{"name": "pet", "text": "Which?", "domain": ASKED}]}
    return Planner(CATALOG, TASKS, takes_rows=True, check_shuffled=lambda *_: None).plan(draft | changes)[0]


def about(**changes: Any) -> About:
    collection = planned(**changes)
    return About(collection.mechanism, collection.to_json())


def test_three_ways_to_the_same_estimate(tmp_path: Path) -> None:
    with (tmp_path / "a.reports").open("wb") as stream:
        writer = Writer(stream, REPORTS_MAGIC, MECHANISM)
        writer.block(reports_on(MECHANISM, 900).tobytes(), 900)
        writer.close()
    lake = tmp_path / "lake"
    assert run("reports", "export", tmp_path / "a.reports", "-o", lake).exit_code == 0
    tallies = [tmp_path / f"{i}.tally" for i in range(3)]
    assert run("tally", tmp_path / "a.reports", "-o", tallies[0]).exit_code == 0
    assert run("tally", lake, "-o", tallies[1]).exit_code == 0
    assert run("tally", *lake.glob("*.parquet"), "-o", tallies[2]).exit_code == 0
    shown = [run("estimate", path).stdout for path in tallies]
    assert "900 reports" in shown[0] and shown == shown[:1] * 3
    assert tallies[1].read_bytes() == tallies[2].read_bytes()


def test_files_of_two_collections_in_a_folder_are_refused_by_what_differs(tmp_path: Path) -> None:
    one, two = about(), about(title="Other pets")
    lake = write_folder(tmp_path, one, reports_on(one.mechanism, 90), files=2)
    write_folder(tmp_path / "more", two, reports_on(two.mechanism, 90), files=1)
    refused = run("tally", lake, "-o", tmp_path / "all.tally")
    assert isinstance(refused.exception, SpecMismatch)
    assert "more/0.parquet" in str(refused.exception) and "documents differ in about.en" in str(refused.exception)
    assert not (tmp_path / "all.tally").exists()


def test_files_with_rows_are_counted_without_their_columns(tmp_path: Path) -> None:
    collection = planned(**{**PEOPLE, "title": "People"})
    mechanism: Any = collection.mechanism
    reports = reports_on(mechanism, 400)
    members, payloads = mechanism.split_batch(reports)
    own = {"member": members} if mechanism.drawn_from is not None else {}
    public = {"os": pa.array(["ios"] * 400), "hours": np.arange(400.0)}
    table = pa.table(own | {"report": fixed_binary(as_bytes(payloads))} | public)
    write_table(str(tmp_path / "0.parquet"), table, About(mechanism, collection.to_json()))
    assert run("tally", tmp_path, "-o", tmp_path / "all.tally").exit_code == 0
    with (tmp_path / "all.tally").open("rb") as stream:
        assert dump_tally(read_tally(stream, "all")[0]) == dump_tally(mechanism.tally(reports))


def origin(path: Path) -> Any:
    found = read_origin(path.read_bytes(), "tally")
    assert read_tally(BytesIO(path.read_bytes()), "tally")[0].n
    return found and (found.collection, len(found.files))


def test_a_sum_of_tallies_knows_what_was_counted_once(tmp_path: Path) -> None:
    mine = about()
    parts = [
        write_folder(tmp_path / name, mine, reports_on(mine.mechanism, 90, seed)) for seed, name in enumerate("ab")
    ]
    a, b, both = (tmp_path / f"{name}.tally" for name in ("a", "b", "both"))
    for folder, path in zip(parts, (a, b), strict=True):
        assert run("tally", folder, "-o", path).exit_code == 0
    assert run("merge", a, b, "-o", both).exit_code == 0
    assert (origin(a), origin(both)) == ((mine.digest, 3), (mine.digest, 6))
    twice = run("merge", both, a, "-o", tmp_path / "twice.tally")
    assert isinstance(twice.exception, ReportRejected) and "counted in two of them" in str(twice.exception)
    # Copies of a file have one checksum: it counts as often as it is there, and the tally stands for itself.
    (parts[0] / "copy.parquet").write_bytes((parts[0] / "0.parquet").read_bytes())
    assert run("tally", parts[0], "-o", tmp_path / "copies.tally").exit_code == 0
    assert origin(tmp_path / "copies.tally") is None


@pytest.mark.parametrize("place", ["nowhere", "empty"])
def test_a_folder_without_files_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    assert isinstance(run("tally", tmp_path / place).exception, (ReportRejected, FileNotFoundError))
