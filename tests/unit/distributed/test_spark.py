"""Spark counts the same bits as one machine. One session for all of these; they come first, see tests/conftest.py."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.unit.distributed.crowds import reports_on, write_folder

from tacit.catalog import CATALOG
from tacit.cli import cli
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.device.domains.reals import Integers
from tacit.device.numbers.budget import Share
from tacit.distributed.spark import counting, jobs, log_tally, run_plan, sessions, tally
from tacit.distributed.spark.counting import FEW_CELLS, tally_read
from tacit.distributed.spark.lakes import read_lake
from tacit.distributed.spark.logs import FrameLog
from tacit.distributed.spark.readers import FileReader
from tacit.errors import Overflow, ReportRejected, SpecMismatch
from tacit.lake.about import About
from tacit.lake.count import tally_files
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.hitters.hitters import find_hitters
from tacit.tasks.hitters.plan import plan_lengths
from tacit.tasks.hitters.spelling import spelling_of
from tacit.tasks.plans import Diary
from tacit.testing.examples import examples
from tacit.wire.files import sources_of
from tacit.wire.tallies import dump_tally

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

EXAMPLES = [mechanism for cls in CATALOG for mechanism in examples(cls.kind, "1")]


FEW = ["grr", "oue", "olh", "onebit", "one_of", "all_of"]
"""One of every shape of report and tally; all kinds are counted by `test_parts`, and by Spark in the slow tests."""
SOME = [i for i, mechanism in enumerate(EXAMPLES) if mechanism.kind in FEW]


def counts_the_same_bits(spark: Any, folder: Path, number: int, *, weighted: bool) -> None:
    mechanism, n = EXAMPLES[number], 300
    reports = reports_on(mechanism, n)
    weights = np.random.default_rng(2).integers(-3, 9, n) if weighted else None
    written = write_folder(folder, About(mechanism), reports, weights)
    found = tally(spark.read.parquet(str(written)), mechanism)
    assert dump_tally(found) == dump_tally(mechanism.tally(reports, weights))


@pytest.mark.slow
def test_kinds_count_the_same_bits(spark: Any, tmp_path: Path) -> None:
    assert {EXAMPLES[i].kind for i in SOME} == set(FEW)
    for number in SOME:
        counts_the_same_bits(spark, tmp_path / str(number), number, weighted=number % 2 == 1)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=lambda i: f"{EXAMPLES[i].kind}-{i}")
def test_every_kind_counts_the_same_bits(spark: Any, tmp_path: Path, number: int, weighted: bool) -> None:
    counts_the_same_bits(spark, tmp_path, number, weighted=weighted)


MANY = [
    OUE(size=20_000, epsilon="1"),
    OneOf(family=Questions(mechanisms=(GRR(size=9, epsilon="1"), OUE(size=20_000, epsilon="1")))),
    AllOf(epsilon="2", members=(GRR(size=150, epsilon=Share("2", "1/2")), GRR(size=150, epsilon=Share("2", "1/2")))),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [pytest.param(m, id=m.kind, marks=() if m.kind == "one_of" else pytest.mark.slow) for m in MANY],
)
def test_large_tallies_are_rows_that_the_engine_sums(spark: Any, tmp_path: Path, mechanism: Any) -> None:
    assert mechanism.cell_count > FEW_CELLS
    columns = {"oue": 1, "one_of": 2, "all_of": 2}[mechanism.kind]
    values = np.random.default_rng(3).integers(0, 9, (60, columns))
    reports = mechanism.privatize(values[:, 0] if columns == 1 else values, SimulationCoins(1))
    weights = np.arange(60) - 9
    folder = write_folder(tmp_path, About(mechanism), reports, weights)
    found = tally(spark.read.parquet(str(folder)), mechanism)
    assert dump_tally(found) == dump_tally(mechanism.tally(reports, weights))


@pytest.mark.slow
def test_a_sum_that_leaves_64_bits_is_refused(spark: Any, tmp_path: Path) -> None:
    mechanism = OUE(size=FEW_CELLS + 1, epsilon="1")
    reports = mechanism.privatize(np.zeros(3, int), SimulationCoins(1))
    folder = write_folder(tmp_path, About(mechanism), reports, np.full(3, 2_000_000_000))
    with pytest.raises(Overflow, match="bits"):
        tally(spark.read.parquet(str(folder)), mechanism)


@pytest.mark.slow
def test_a_search_for_heavy_hitters_drives_jobs_over_a_cached_frame(spark: Any, tmp_path: Path) -> None:
    spelling = spelling_of(Integers("code", 0, (1 << 20) - 1))
    mechanism = plan_lengths(spelling, "4", 3000, 4, [spelling.digits // 2, spelling.digits], keep=8).mechanism
    rng = np.random.default_rng(5)
    values = np.where(rng.random(3000) < 0.7, 123_456, rng.integers(0, 1 << 20, 3000))
    reports = mechanism.privatize(values, SimulationCoins(2))
    frame = spark.read.parquet(str(write_folder(tmp_path, About(mechanism), reports))).cache()
    kept = log_tally(frame, mechanism)
    assert kept.n == 3000
    assert any(isinstance(kept.member(i), FrameLog) for i in range(mechanism.member_count))
    found = find_hitters(mechanism, kept, spelling, k=4, keep=4)
    expected = find_hitters(mechanism, mechanism.tally(reports), spelling, k=4, keep=4)
    assert 123_456 in found.values
    assert found.to_list() == expected.to_list()
    frame.unpersist()


@pytest.mark.parametrize("weighted", [pytest.param(False, id="plain", marks=pytest.mark.slow), True])
def test_a_log_in_a_frame_gives_the_same_estimate(spark: Any, tmp_path: Path, weighted: bool) -> None:
    mechanism = OLH(size=1 << 40, epsilon="2", state="log")
    reports = mechanism.privatize(np.arange(200) % 5, SimulationCoins(3))
    weights = np.arange(200) if weighted else None
    frame = spark.read.parquet(str(write_folder(tmp_path, About(mechanism), reports, weights)))
    kept, whole = log_tally(frame, mechanism), mechanism.tally(reports, weights)
    assert (kept.n, kept.is_weighted, kept.weight_sums) == (200, weighted, whole.weight_sums)
    here, there = mechanism.estimate(kept, [0, 1, 77]), mechanism.estimate(whole, [0, 1, 77])
    assert here.value.tolist() == there.value.tolist() and here.variance.tolist() == there.variance.tolist()
    with pytest.raises(SpecMismatch, match="union"):
        kept + kept
    # Collected instead, it holds the same reports.
    collected = tally(frame, mechanism)
    assert mechanism.estimate(collected, [0, 1, 77]).value.tolist() == there.value.tolist()


@pytest.mark.slow
def test_an_adaptive_plan_is_driven_over_frames_of_its_rounds(spark: Any, tmp_path: Path) -> None:
    def steps() -> Any:
        """Two rounds; the second asks about what the first found most often."""
        diary, first = Diary(), GRR(size=4, epsilon="2")
        counted = yield from diary.ask("first", 0.5, first, "which of four")
        best = int(np.argmax(counted.cells))
        second = GRR(size=2 + best, epsilon="2")
        again = yield from diary.ask("second", 0.5, second, "which of some")
        diary.details["cells"] = again.cells.tolist()
        return diary.result((), None)

    told: list[Any] = []

    def reports_of_round(said: Any) -> Any:
        reports = said.mechanism.privatize(np.full(80, said.mechanism.size - 1), SimulationCoins(said.group))
        told.append(said.mechanism.tally(reports))
        return write_folder(tmp_path / said.name, About(said.mechanism), reports)

    found = run_plan(steps(), lambda said: spark.read.parquet(str(reports_of_round(said))))
    assert found.respondents == 160 and found.details["cells"] == told[1].cells.tolist()


@pytest.mark.slow
def test_faults_on_executors_are_errors_of_tacit(spark: Any, tmp_path: Path) -> None:
    mechanism = GRR(size=5, epsilon="1")
    pq.write_table(pa.table({"report": pa.array([b"\x09"] * 3, pa.binary(1))}), tmp_path / "bad.parquet")
    with pytest.raises(ReportRejected, match="3 of 3 reports are out of range"):
        tally(spark.read.parquet(str(tmp_path)), mechanism)
    with pytest.raises(ReportRejected, match="3 of 3 reports are not of"):
        tally(spark.read.parquet(str(tmp_path)), GRR(size=1 << 20, epsilon="1"))


@pytest.mark.slow
def test_files_that_must_not_be_counted(spark: Any, tmp_path: Path) -> None:
    mechanism = GRR(size=5, epsilon="1")
    reports = reports_on(mechanism, 5000)
    folder = write_folder(tmp_path / "lake", About(mechanism), reports)
    assert read_lake(spark, [str(folder)]).tally().n == 5000
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReportRejected, match=r"no \.parquet file"):
        read_lake(spark, [str(tmp_path / "empty")])
    write_folder(tmp_path / "other", About(GRR(size=5, epsilon="2")), reports)
    with pytest.raises(SpecMismatch, match="epsilon is '1' here and '2' there"):
        read_lake(spark, [str(folder), str(tmp_path / "other")])
    # A flipped bit in the middle of a page: the footer is whole, and the page's own checksum tells.
    path = folder / "2.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 4
    path.write_bytes(bytes(data))
    for by_executors, words in ((True, r"2\.parquet: the file is truncated or damaged"), (False, "cannot be read")):
        with pytest.raises(ReportRejected, match=words):
            read_lake(spark, [str(folder)], by_executors=by_executors).tally()
    path.write_bytes(bytes(data[:100]))
    with pytest.raises(ReportRejected, match=r"2\.parquet.*not a Parquet file"):
        read_lake(spark, [str(folder)])


@pytest.mark.slow
def test_a_file_that_is_exchanged_after_the_driver_saw_it_is_not_counted(spark: Any, tmp_path: Path) -> None:
    here, there = GRR(size=5, epsilon="1"), GRR(size=5, epsilon="2")
    folder = write_folder(tmp_path / "lake", About(here), reports_on(here, 90))
    other = write_folder(tmp_path / "other", About(there), reports_on(there, 90))
    found = read_lake(spark, [str(folder)])
    (other / "1.parquet").replace(folder / "1.parquet")
    with pytest.raises(SpecMismatch, match=r"1\.parquet.*epsilon"):
        found.tally()
    (folder / "1.parquet").unlink()
    with pytest.raises(ReportRejected, match=r"1\.parquet: the file is missing"):
        found.tally()


@pytest.mark.slow
def test_files_count_the_same_bits_whoever_opens_them(spark: Any, tmp_path: Path) -> None:
    """Executors or Spark; with weights and members, as cells and as a log, and with several files in a partition."""
    kinds = [
        OneOf(family=Questions(mechanisms=(GRR(size=9, epsilon="1"), OUE(size=20_000, epsilon="1")))),
        OLH(size=1 << 40, epsilon="2", state="log"),
        OLH(size=64, epsilon="1"),
    ]
    for mechanism, weights in zip(kinds, (np.arange(60) - 9, None, np.arange(60)), strict=True):
        values = np.random.default_rng(3).integers(0, 9, (60, 2))
        of_one = mechanism.kind == "one_of"
        reports = mechanism.privatize(values if of_one else values[:, 0], SimulationCoins(1))
        folder = write_folder(tmp_path / mechanism.digest, About(mechanism), reports, weights)
        lake = read_lake(spark, [str(folder)])
        whole, two = dump_tally(tally_files(lake.files, lake.about)), FileReader(lake.files, lake.about, most=2)
        assert dump_tally(lake.tally()) == whole
        assert dump_tally(tally_read(two.frame(spark), mechanism, two)) == whole
        # Spark begins with large files, and a log is in the order in which it was read.
        if mechanism is not kinds[1]:
            assert dump_tally(read_lake(spark, [str(folder)], by_executors=False).tally()) == whole


@pytest.mark.slow
def test_the_driver_gets_one_tally_however_many_partitions_there_are(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = GRR(size=5, epsilon="1")
    reports = reports_on(mechanism, 90)
    frame = spark.read.parquet(str(write_folder(tmp_path, About(mechanism), reports))).repartition(7)
    collected, collect = list[int](), type(frame).collect

    def noted(self: Any) -> Any:
        rows = collect(self)
        collected.append(len(rows))
        return rows

    monkeypatch.setattr(type(frame), "collect", noted)
    assert dump_tally(tally(frame, mechanism)) == dump_tally(mechanism.tally(reports))
    assert collected == [1]


def test_a_few_files_are_one_job_and_any_number_of_steps_gives_the_same_bits(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, tracker = OLH(size=64, epsilon="1"), spark.sparkContext.statusTracker()
    reports = reports_on(mechanism, 90)
    lake = write_folder(tmp_path / "lake", About(mechanism), reports)
    expected, before = dump_tally(mechanism.tally(reports)), set(tracker.getJobIdsForGroup())
    assert dump_tally(read_lake(spark, [str(lake)]).tally()) == expected
    (one,) = set(tracker.getJobIdsForGroup()) - before
    assert len(tracker.getJobInfo(one).stageIds) == 1
    # With more files than the driver merges itself, executors do, in one step or in two.
    for module in (counting, jobs):
        monkeypatch.setattr(module, "FEW_PARTS", 2)
        assert dump_tally(read_lake(spark, [str(lake)]).tally()) == expected


def test_java_compiles_less_on_one_machine_and_not_on_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, builder = dict[str, str](), MagicMock()
    builder.appName.return_value = builder.master.return_value = builder.config.return_value = builder
    builder.config.side_effect = lambda *, map: asked.update(map) or builder
    monkeypatch.setattr(sessions, "load", lambda _: MagicMock(SparkSession=MagicMock(builder=builder)))
    for master, light, less in (("local[2]", True, True), ("local[2]", False, False), ("yarn", True, False)):
        asked.clear()
        with sessions.session(master, light=light):
            pass
        assert asked["spark.ui.enabled"] == "false"
        assert {name for name in asked if "JavaOptions" in name} == (
            {"spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"} if less else set()
        )


@pytest.fixture
def on_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Commands of the group `spark`, in the one session that all tests share."""

    @contextmanager
    def shared(master: str | None, *, light: bool = False) -> Generator[Any]:
        del light
        assert master == "local[2]"
        yield spark

    monkeypatch.setattr(sessions, "session", shared)

    def run(*words: Any) -> str:
        done = CliRunner().invoke(cli, ["spark", words[0], "--master", "local[2]", *map(str, words[1:])])
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


@pytest.mark.slow
def test_the_command_writes_the_same_file_as_on_one_machine(on_spark: Callable[..., str], tmp_path: Path) -> None:
    """Down to the manifest: whichever of both is imported first, the other one is known."""
    mechanism = OLH(size=64, epsilon="1")
    lake = write_folder(
        tmp_path / "lake", About(mechanism), mechanism.privatize(np.arange(500) % 64, SimulationCoins(1))
    )
    files = [tmp_path / f"{name}.tally" for name in ("here", "there")]
    assert CliRunner().invoke(cli, ["tally", str(lake), "-o", str(files[0])]).exit_code == 0
    for reader in ("tacit", "spark"):
        on_spark("tally", "--input", lake, "--reader", reader, "-o", files[1])
        assert files[0].read_bytes() == files[1].read_bytes()
    assert len(sources_of(files[1].read_bytes(), "tally")) == 3
