"""Collections that ask again and again, on both databases: windows, their states, series, retention, kills."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.service.memory import MemoryStore
from tests.service.numbered import A, add, counted
from tests.service.plain import serving

from tacit.cli import cli
from tacit.client import Ledger, Respondent
from tacit.client.windows import SKIPPED
from tacit.collector.answers.series import SeriesRequest, series_csv
from tacit.collector.collections import publish as publishing
from tacit.collector.http.app import App
from tacit.collector.ingest.uploads import Form
from tacit.collector.limits import Intervals
from tacit.collector.ports import CLOSED, STORED, CollectionRecord, NewBatch, Store, window_id
from tacit.collector.service import Collector
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.core.mechanism import Oracle
from tacit.errors import InvalidQuery, InvalidSpec
from tacit.hosting.clock import Clock
from tacit.hosting.limits import Limits
from tacit.hosting.problems import Problem
from tacit.simulate.coins import SimulationCoins
from tacit.wire.batch import Batch, Block, encode_batch
from tacit.wire.document import Collection
from tacit.wire.tallies import dump_tally

FIRST = date(2030, 1, 7)
LABELS = ["often", "sometimes", "never"]
DRAFT: dict[str, Any] = {
    "title": "Habits, day by day",
    "epsilon": "4",
    "questions": [{"name": "habit", "text": "?", "domain": {"kind": "categories", "labels": LABELS}}],
    "minimum_cohort": 50,
    "retention_days": 10,
    "windows": {"every": "day", "first": FIRST.isoformat(), "count": 28, "per": 7, "late": 2},
}


YEARS = {"kind": "integers", "low": 0, "high": 9}


class Service:
    """A collector whose clock tests set."""

    def __init__(self, store: Store) -> None:
        self.when = datetime(2030, 1, 1, 12, tzinfo=UTC)
        self.seconds = 0.0
        clock = Clock(day=lambda: self.when.date().toordinal() - date(1970, 1, 1).toordinal(),
                      seconds=lambda: self.seconds, now=lambda: self.when.timestamp())  # fmt: skip
        self.collector = Collector(store, clock=clock, intervals=Intervals(confirm_drop=0.0))

    def at(self, day: int, hour: int = 12) -> None:
        self.when = datetime(2030, 1, 7, hour, tzinfo=UTC) + timedelta(days=day)

    def publish(self, **changes: Any) -> Collection:
        draft = publishing.create_draft(self.collector.store, self.collector.planner, DRAFT | changes)
        record = self.collector.publish(draft.id)
        return Collection.from_json(json.loads(record.document))

    def send(self, document: Collection, window: int | None, counts: list[int], seed: int = 1) -> dict[str, Any]:
        """One batch of reports of so many who hold each value."""
        active = self.collector.find(document.id)
        mechanism = active.mechanism
        assert isinstance(mechanism, Oracle)
        reports = mechanism.privatize(np.repeat(np.arange(len(counts)), counts), SimulationCoins(seed))
        name = seed.to_bytes(12, "little") + (0 if window is None else window).to_bytes(4, "little")
        batch = Batch(document.id, name, (Block(0, len(reports), reports.tobytes()),), window)
        upload = self.collector.ingest.judge(active, encode_batch(batch), Form.BINARY)
        assert upload.batch is not None
        (outcome,) = self.collector.store.add_batches([upload.batch])
        return self.collector.ingest.settle(active, upload, outcome)

    def series(self, document: Collection, **request: Any) -> dict[str, Any]:
        return self.collector.series(document.id, SeriesRequest(**request))


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    made = Service(store)
    yield made
    made.collector.writer.stop()


def filled(service: Service, days: int, counts: Callable[[int], list[int]]) -> Collection:
    document = service.publish()
    for day in range(days):
        service.at(day)
        service.send(document, day, counts(day), seed=day + 1)
    return document


def test_a_draft_states_its_guarantee_and_its_account_by_itself(service: Service) -> None:
    document = service.publish()
    assert document.windows is not None and document.account is not None
    assert (document.version, document.windows.guarantee) == (2, "run")
    assert document.account.to_json() == {"name": "default", "run": 7, "run_epsilon": "4", "lifetime_epsilon": None}
    assert [one.window for one in service.collector.store.windows(document.id)] == list(range(28))
    # Windows are no collections of their own to anybody who lists them.
    assert [record.id for record in service.collector.store.collections()] == [document.id]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"windows": {"every": "day"}}, "field 'first' is missing"),
        ({"windows": DRAFT["windows"] | {"guarantee": "lifetime"}}, 'must be "run"'),
        ({"windows": 5}, "must be an object"),
        ({"account": 5}, "must be an object"),
        ({"windows": None, "account": {"name": "a"}}, "field 'run' is missing"),
        ({"invitations": True}, "invitations must be false"),
        ({"rows": {"table": "t", "columns": [{"name": "c", "type": "text"}]}}, "rows must be null"),
        ({"questions": [DRAFT["questions"][0] | {"domain": YEARS, "task": "mean"}]}, "must be histogram"),
    ],
)  # fmt: skip
def test_what_does_not_take_windows_is_refused_clearly(changes: dict[str, Any], rule: str) -> None:
    service = Service(MemoryStore())
    with pytest.raises(InvalidSpec, match=rule):
        service.collector.planner.plan(DRAFT | changes)


def test_a_window_takes_reports_while_it_is_open_or_settling(service: Service) -> None:
    document = service.publish()
    service.at(3)
    assert service.send(document, 3, [5, 0, 0])["accepted"] == 5
    assert service.send(document, 1, [5, 0, 0])["accepted"] == 5  # Two windows late.
    with pytest.raises(Problem) as early:
        service.send(document, 4, [5, 0, 0])
    assert early.value.kind == "window_future"
    with pytest.raises(Problem) as late:
        service.send(document, 0, [5, 0, 0])
    assert late.value.kind == "window_closed"
    for window in (None, 28):
        with pytest.raises(Problem) as wrong:
            service.send(document, window, [5, 0, 0])
        assert wrong.value.kind == "malformed"
    states = [row["state"] for row in service.series(document)["series"]]
    assert states == ["final", "settling", "settling", "open"]


def test_local_windows_are_open_wherever_it_is_that_day(service: Service) -> None:
    document = service.publish(windows=DRAFT["windows"] | {"zone": "local", "late": 0})
    service.when = datetime(2030, 1, 9, 10, tzinfo=UTC)  # The 10th has begun 14 hours east.
    assert service.send(document, 3, [1, 0, 0])["accepted"] == 1
    service.when = datetime(2030, 1, 9, 9, 59, tzinfo=UTC)
    with pytest.raises(Problem, match="has not begun"):
        service.send(document, 3, [2, 0, 0], seed=2)
    service.when = datetime(2030, 1, 11, 11, 59, tzinfo=UTC)  # It is still the 10th 12 hours west.
    assert service.send(document, 3, [1, 0, 0], seed=3)["accepted"] == 1


def test_the_same_batch_counts_once_and_a_batch_without_a_window_is_refused_elsewhere(service: Service) -> None:
    document = service.publish()
    service.at(0)
    service.send(document, 0, [60, 0, 0])
    assert service.send(document, 0, [60, 0, 0])["duplicate"] is True
    assert service.series(document)["series"][0]["n"] == 60
    plain = service.publish(windows=None)
    with pytest.raises(Problem, match="has no windows"):
        service.send(plain, 0, [5, 0, 0])


def test_days_add_up_to_their_week_bit_by_bit(service: Service) -> None:
    document = filled(service, 14, lambda day: [100 + day, 40, 30])
    store, active = service.collector.store, service.collector.find(document.id)
    weeks = service.series(document, by="week")["series"]
    assert [(row["from"], row["to"], row["n"]) for row in weeks] == [(0, 6, 7 * 170 + 21), (7, 13, 7 * 177 + 21)]
    tallies = store.window_tallies(document.id)
    days = [service.collector.folder.sum(active, tallies[k]) for k in range(7)]
    whole = service.collector.folder.sum(active, [item for k in range(7) for item in tallies[k]])
    total: Any = days[0]
    for day in days[1:]:
        total = total + day
    assert dump_tally(total) == dump_tally(whole)
    raw = service.collector.answers(document.id, 0.95)
    assert raw.n == sum(row["n"] for row in weeks)
    assert service.collector.status(document.id)["reports"] == raw.n


def test_a_series_has_intervals_a_wider_band_and_a_change_point_with_its_date(service: Service) -> None:
    document = filled(service, 20, lambda day: [800, 100, 100] if day < 12 else [500, 400, 100])
    answer = service.series(document, band=True, changes=True, smooth="afterwards")
    assert len(answer["series"]) == 20 and answer["series"][-1]["provisional"] is True
    row = answer["series"][4]["rows"][0]
    assert row["band_low"] < row["low"] < row["estimate"] < row["high"] < row["band_high"]
    assert row["low"] < 0.8 < row["high"] and abs(row["smoothed"] - 0.8) < 0.1
    change = answer["changes"][0]
    assert (change["value"], change["day"]) in {("often", "2030-01-19"), ("sometimes", "2030-01-19")}
    assert change["p_value"] < 1e-6
    assert "factor of at most 54.6" in answer["words"][0]
    table = series_csv(answer).splitlines()
    assert table[0].startswith("from,to,first_day") and len(table) == 1 + 20 * 3


def test_windows_are_compared_with_the_one_before_or_with_any_other(service: Service) -> None:
    document = filled(
        service, 6, lambda day: [10, 0, 0] if day == 3 else [800, 100, 100] if day < 4 else [500, 400, 100]
    )
    rows = service.series(document, against="previous")["series"]
    # Window 3 has too few reports: the one after it is compared with the one before it.
    assert [row["rows"][0]["against"] if row["rows"] else "" for row in rows] == [None, 0, 1, "", 2, 4]
    first, jump = rows[0]["rows"][0], rows[4]["rows"][0]
    assert first["difference"] is None and first["difference_low"] is None
    assert jump["difference"] == pytest.approx(jump["estimate"] - rows[2]["rows"][0]["estimate"])
    assert jump["difference_low"] < -0.3 < jump["difference_high"]
    # Both variances add, about all devices.
    error = np.hypot(jump["standard_error"], rows[2]["rows"][0]["standard_error"])
    assert jump["difference_error"] == pytest.approx(error)
    assert jump["difference_high"] - jump["difference"] == pytest.approx(1.96 * error, rel=1e-3)
    weeks = service.series(document, by="group", against="1", mean=True)
    assert [row["rows"][0]["against"] for row in weeks["series"] if row["rows"]] == [1, None, 1, 1, 1]
    assert "difference" not in service.series(document)["series"][4]["rows"][0]
    with pytest.raises(InvalidQuery, match="not answered here"):
        service.series(document, against="3")
    lines = series_csv(service.series(document, against="previous")).splitlines()
    assert lines[0].endswith("against,difference,difference_error,difference_low,difference_high")


def test_means_count_windows_once_or_by_their_precision(service: Service) -> None:
    document = filled(service, 4, lambda day: [800, 100, 100] if day < 3 else [80, 10, 10])
    answer = service.series(document, mean=True)
    errors = [row["rows"][0]["standard_error"] for row in answer["series"]]
    once, constant = (answer["mean"][name][0] for name in ("each_once", "if_constant"))
    assert answer["mean"]["windows"] == 4 and once["value"] == "often"
    assert once["estimate"] == pytest.approx(np.mean([row["rows"][0]["estimate"] for row in answer["series"]]))
    assert once["standard_error"] == pytest.approx(np.sqrt(np.sum(np.square(errors))) / 4)
    assert constant["standard_error"] == pytest.approx(np.sum(1 / np.square(errors)) ** -0.5)
    assert constant["low"] < 0.8 < constant["high"] and constant["standard_error"] < once["standard_error"]
    assert service.series(document)["mean"] is None


@pytest.mark.slow
def test_a_year_of_days_on_sixteen_values_takes_little_work() -> None:
    """What the page of a trend asks for: bands, smoothing and changes. CPU of the best of five, once it is folded.

    Against the bare estimates of the same windows in the same run, which a slow or busy machine slows down as well.
    Where those take 18 ms, eleven times as much is the fifth of a second that a page may take; it is seven to eight.
    """
    service = Service(MemoryStore())
    categories = {"kind": "categories", "labels": [f"v{i}" for i in range(16)]}
    asking = DRAFT["windows"] | {"count": 365, "per": 30}
    document = service.publish(
        epsilon="1", retention_days=3650, windows=asking,
        questions=[{"name": "habit", "text": "?", "domain": categories}],
    )  # fmt: skip
    mechanism = service.collector.find(document.id).mechanism
    assert isinstance(mechanism, Oracle)
    values = np.random.default_rng(1).integers(0, 16, (365, 100))
    reports = [mechanism.privatize(row, SimulationCoins(day)).tobytes() for day, row in enumerate(values)]
    batches = [NewBatch(window_id(document.id, k), bytes(12) + k.to_bytes(4, "big"), data, 100, {})
               for k, data in enumerate(reports)]  # fmt: skip
    assert set(service.collector.store.add_batches(batches)) == {STORED}
    service.at(366)
    answer = service.series(document, band=True, changes=True, smooth="afterwards")
    assert len(answer["series"]) == 365 and all(len(row["rows"]) == 16 for row in answer["series"])
    tallies = [mechanism.tally(mechanism.decode(data)) for data in reports]
    whole: list[float] = []
    bare: list[float] = []
    for _ in range(5):
        whole.append(cpu(lambda: service.series(document, band=True, changes=True, smooth="afterwards")))
        bare.append(cpu(lambda: [mechanism.estimate(tally) for tally in tallies]))
    service.collector.writer.stop()
    assert min(whole) < 11 * min(bare)


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of a piece of work."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def test_sparse_windows_are_joined_and_small_groups_are_not_answered(service: Service) -> None:
    sizes = [20, 15, 60, 5, 0, 48, 150, 10]
    document = service.publish()
    for day, size in enumerate(sizes):
        service.at(day)
        if size:
            service.send(document, day, [size, 0, 0], seed=day + 1)
    service.at(8)
    groups = service.series(document, by="group")["series"]
    assert [(row["from"], row["to"], row["n"], row["status"]) for row in groups] == [
        (0, 2, 95, "ok"), (3, 5, 53, "ok"), (6, 6, 150, "ok"),
    ]  # fmt: skip
    single = service.series(document)["series"]
    assert [row["status"] for row in single[:3]] == ["below_minimum_cohort", "below_minimum_cohort", "ok"]
    assert single[0]["rows"] == []


def test_retention_drops_one_window_at_a_time(service: Service) -> None:
    document = filled(service, 3, lambda day: [60, 20, 20])
    store = service.collector.store
    service.series(document)
    service.at(10)  # Window 0 ended ten days before.
    assert service.collector.retention.look() == []
    service.at(11)
    assert service.collector.retention.look() == [window_id(document.id, 0)]
    assert [(one.state, one.reports) for one in store.windows(document.id)[:3]] == [
        ("closed", 0), ("published", 100), ("published", 100),
    ]  # fmt: skip
    rows = service.series(document)["series"]
    assert [row["state"] for row in rows[:3]] == ["dropped", "final", "final"]
    assert rows[0]["n"] == 0 and rows[1]["n"] == 100
    assert [entry.subject for entry in store.audit_log(5)] == [window_id(document.id, 0)]


def test_a_closed_collection_takes_reports_in_none_of_its_windows(service: Service) -> None:
    document = service.publish()
    service.at(0)
    service.collector.close(document.id)
    with pytest.raises(Problem) as closed:
        service.send(document, 0, [5, 0, 0])
    assert closed.value.kind == "closed"


def test_waiting_reports_of_windows_are_found_after_a_restart(service: Service) -> None:
    document = filled(service, 2, lambda day: [60, 20, 20])
    service.collector.touch_all()
    service.collector.fold_touched()
    assert [(one.folded, one.waiting) for one in service.collector.store.windows(document.id)[:2]] == [(100, 0)] * 2


@pytest.mark.parametrize("query", [{"by": "hour"}, {"smooth": "much"}])
def test_what_cannot_be_asked_of_a_series(query: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery):
        SeriesRequest(**query)
    for given in ({"band": "yes"}, {"from": "-1"}, {"until": "3"}):
        with pytest.raises(InvalidQuery):
            SeriesRequest.from_query(given, 0.95)


def test_collections_without_windows_have_no_series() -> None:
    service = Service(MemoryStore())
    document = service.publish(windows=None)
    with pytest.raises(Problem, match="has no windows"):
        service.series(document)


def test_a_device_ticks_over_http_and_the_series_comes_back_over_http() -> None:
    service = Service(MemoryStore())
    document = service.publish(minimum_cohort=1)
    with serving(App(service.collector, Limits(requests_per_second=0))) as client:
        base = str(client.http.base_url).rstrip("/")
        devices = [_device(service) for _ in range(12)]
        for day in range(8):
            service.at(day)
            for device in devices:
                tick = device.join(document, collector=base).tick({"habit": "never"})
                assert tick.state in ("sent", SKIPPED), tick
        answer = client.api("GET", f"/collections/{document.id}/series?by=week&band=true")
        assert answer.status_code == 200, answer.text
        # Every device has one slot in seven days, and was there for all of the first week.
        assert answer.json()["series"][0]["n"] == 12
        table = client.api("GET", f"/collections/{document.id}/series.csv?by=week")
        assert table.text.startswith("from,to,first_day")
        assert client.api("GET", f"/collections/{document.id}/series?by=decade").status_code == 422


def _device(service: Service) -> Respondent:
    ledger = Ledger(clock=lambda: datetime(2029, 1, 1, tzinfo=UTC))
    with ledger.change():
        pass  # Made before the calendar, so that it need not wait out a run.
    return Respondent(ledger, clock=lambda: service.when)


def live_and_die(place: str, first: int, seconds: float) -> list[int]:
    command = [sys.executable, "-m", "tests.service.writing_process", place, str(first), "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        begin = process.stdout.readline()
        time.sleep(seconds)
        process.kill()
        lines = [begin, *process.stdout.readlines()]
    return [int(line) for line in lines if line.endswith(b"\n")]


@pytest.mark.parametrize("cycles", [1, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.slow_cases("sqlite-1")
def test_kills_while_windows_are_folded_lose_nothing_and_count_nothing_twice(
    place: str, open_store: Callable[[], Store], cycles: int
) -> None:
    rng = np.random.default_rng(7)
    store = open_store()
    store.add_collection(CollectionRecord(A, "published", b"{}"), 3)
    acknowledged: set[int] = set()
    for cycle in range(cycles):
        acknowledged.update(live_and_die(place, 1 + 1_000_000 * cycle, float(rng.uniform(0.1, 0.4))))
    counts: Counter[int] = Counter()
    # A server may take a moment to roll back the fold of a process that was killed; until then its batches are skipped.
    while any(one.waiting for one in store.windows(A)):
        for window in range(3):
            store.fold_some(window_id(A, window), "main", add, 10_000)
    for window in range(3):
        counts += counted(store, window_id(A, window))
    assert acknowledged and acknowledged <= set(counts)
    assert set(counts.values()) == {1}
    assert sum(one.reports for one in store.windows(A)) == len(counts)


def test_windows_close_with_their_collection_and_have_ids_of_batches_of_their_own(store: Store) -> None:
    store.add_collection(CollectionRecord(A, "published", b"{}"), 2)
    store.add_collection(CollectionRecord(A, "published", b"{}"), 2)  # Published again: left as it is.
    batches = [NewBatch(window_id(A, k), b"b" * 16, b"\0\0\0\0", 1, {}) for k in (0, 1)]
    assert store.add_batches(batches) == [STORED, STORED]
    assert store.windows("b" * 64) == [] and store.window_tallies(A) == {}
    store.close_collection(A)
    later = [NewBatch(window_id(A, 0), b"c" * 16, b"\0\0\0\0", 1, {})]
    assert store.add_batches(later) == [CLOSED]


def test_the_command_prints_a_series_from_a_folder(tmp_path: Path) -> None:
    service = Service(SqliteStore(tmp_path))
    # The command goes by the clock of the machine: windows that are long over.
    document = service.publish(windows=DRAFT["windows"] | {"first": "2024-01-01"}, retention_days=36_500)
    reports = np.zeros(60, np.uint8).tobytes()
    batches = [NewBatch(window_id(document.id, k), bytes([k]) * 16, reports, 60, {}) for k in range(9)]
    assert set(service.collector.store.add_batches(batches)) == {STORED}
    service.collector.stop()
    command = ["collection", "series", document.id, "--by", "week", "--band", "--data", str(tmp_path)]
    table = CliRunner().invoke(cli, command)
    assert table.exit_code == 0, table.output
    assert "2024-01-01 to 2024-01-07" in table.output and "band low" in table.output and "(too few)" in table.output
    assert "any 7 days in a row" in table.output
    weeks = json.loads(CliRunner().invoke(cli, [*command, "--json"]).output)["series"]
    assert [row["n"] for row in weeks] == [420, 120, 0, 0]
    csv = CliRunner().invoke(cli, [*command, "--format", "csv"]).output
    assert csv.startswith("from,to,first_day")
    beside = CliRunner().invoke(cli, [*command, "--against", "previous", "--mean"]).output
    assert "difference low" in beside and "mean: often" in beside and "2 rows" in beside
    refused = CliRunner().invoke(cli, [*command, "--against", "yesterday"])
    assert refused.exit_code and "must be previous or the number of a window" in refused.output
