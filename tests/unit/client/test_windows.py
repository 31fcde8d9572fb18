"""A client over months of simulated days: slots, caps, retries, lost ledgers, several documents (AL-3)."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import log, sqrt
from pathlib import Path
from typing import Any

import pytest

from tacit.client import Ledger, Respondent
from tacit.client.ledger import EXPIRED, PENDING, SENT, LedgerEntry
from tacit.client.transport import Address, Outcome
from tacit.client.windows import SKIPPED, WindowedCollection
from tacit.device.windows.account import DevicePolicy
from tacit.errors import InvalidSpec, InvalidValue
from tacit.wire.batch import MEDIA_TYPE, Batch, decode_batch
from tacit.wire.document import Collection

VECTORS = json.loads((Path(__file__).parents[3] / "spec" / "vectors" / "documents.json").read_text(encoding="utf-8"))
DOCUMENTS = {vector["name"]: Collection.from_json(vector["document"]) for vector in VECTORS["good"]}
DAILY, YEARLY = DOCUMENTS["windows of a day"], DOCUMENTS["one report in a year"]
BASE = "https://collector.example"
FIRST = datetime(2030, 1, 7, 12, tzinfo=UTC)
BEFORE = datetime(2029, 12, 1, tzinfo=UTC)


class World:
    """A clock that tests set, and a collector that notes uploads and answers as it is told."""

    def __init__(self, now: datetime = BEFORE) -> None:
        self.now, self.outcome = now, Outcome("sent")
        self.uploads: list[bytes] = []

    def clock(self) -> datetime:
        return self.now

    def upload(self, address: Address, batch: bytes, invitation: str = "", *, media_type: str = MEDIA_TYPE) -> Outcome:
        assert (address.base, invitation, media_type) == (BASE, "", "application/vnd.tacit.batch")
        self.uploads.append(batch)
        return self.outcome

    def batches(self) -> list[Batch]:
        return [decode_batch(data, [1]) for data in self.uploads]


def joined(world: World, store: Any = None, document: Collection = DAILY, **options: Any) -> WindowedCollection:
    ledger = store if isinstance(store, Ledger) else Ledger(store, clock=world.clock)
    with ledger.change():
        pass  # The ledger is made now, by the clock of the world.
    client = Respondent(ledger, transport=world, clock=world.clock, **options)  # type: ignore[arg-type]
    return client.join(document, collector=BASE)


@pytest.mark.slow
def test_a_device_reports_once_in_seven_days_for_a_whole_year(tmp_path: Path) -> None:
    world = World()
    collection = joined(world, tmp_path / "ledger.json")
    drawn: list[int] = []
    for day in range(366):
        world.now = FIRST + timedelta(days=day)
        tick = collection.tick("red")
        if tick.state == SENT:
            drawn.append(tick.window)
        else:
            assert (tick.state, tick.reason) == (SKIPPED, "outside" if day == 365 else "not_my_slot")
    assert len(drawn) in (52, 53) and {window % 7 for window in drawn} == {drawn[0] % 7}
    assert [batch.window for batch in world.batches()] == drawn
    assert len({batch.batch for batch in world.batches()}) == len(drawn)
    view = collection.view()
    assert (view.spent, view.run_cap) == (len(drawn), 1)
    # What no rule looks at any more is forgotten, so that the ledger does not grow.
    assert len(collection.ledger.read().entries) == 1
    spending = Respondent(collection.ledger).ledger()
    assert spending.total == len(drawn)


def at_slot(world: World, collection: WindowedCollection, start: int = 0) -> int:
    """Move the clock to the next window that the device takes part in."""
    for day in range(start, start + 7):
        world.now = FIRST + timedelta(days=day)
        if collection.view().next_day == world.now.date():
            return day
    raise AssertionError("a device has a slot in seven days")


def with_secret(collection: WindowedCollection) -> WindowedCollection:
    with collection.ledger.change() as kept:
        kept.secret = "ab" * 32
    return collection


def test_a_second_tick_of_a_day_draws_nothing_and_sends_nothing_again(tmp_path: Path) -> None:
    world = World()
    collection = with_secret(joined(world, tmp_path / "ledger.json"))
    at_slot(world, collection)
    first = collection.tick("red")
    again = collection.tick("blue")
    assert (first.state, again.state) == (SENT, SENT)
    assert again.receipt == first.receipt and len(world.uploads) == 1
    # So does another process with the same ledger.
    other = joined(world, tmp_path / "ledger.json")
    assert other.tick("café").receipt == first.receipt and len(world.uploads) == 1


def test_a_report_that_could_not_be_sent_is_sent_with_the_same_bytes_until_it_expires() -> None:
    world = World()
    collection = with_secret(joined(world))
    day = at_slot(world, collection)
    world.outcome = Outcome("pending")
    assert collection.tick("red").state == PENDING
    for late in (1, 2):
        world.now = FIRST + timedelta(days=day + late)
        assert collection.tick("blue").reason == "not_my_slot"
    assert len(world.uploads) == 3 and len(set(world.uploads)) == 1
    world.now = FIRST + timedelta(days=day + 3)
    collection.tick("blue")
    assert [entry.state for entry in collection.ledger.read().entries] == [EXPIRED]
    assert len(world.uploads) == 3
    assert collection.view().spent == 1  # Charges are never given back.


def test_a_device_that_was_off_reports_late_on_its_window_and_makes_up_for_none() -> None:
    world = World()
    collection = with_secret(joined(world))
    day = at_slot(world, collection)
    world.now = FIRST + timedelta(days=day + 2)
    slot_day = (FIRST + timedelta(days=day)).date()
    assert collection.tick("red").reason == "not_my_slot"
    assert collection.tick("red", day=slot_day).state == SENT
    world.now = FIRST + timedelta(days=day + 10)
    missed = collection.tick("red", day=slot_day + timedelta(days=7))
    assert (missed.state, missed.reason) == (SKIPPED, "too_late")
    assert collection.view().spent == 1


@pytest.mark.parametrize("seed", range(6))
def test_lost_ledgers_never_put_two_reports_into_one_run(seed: int) -> None:
    world, windows = World(), list[int]()
    collection = joined(world)
    for day in range(60):
        world.now = FIRST + timedelta(days=day)
        if day % 9 == seed:  # The ledger is lost, and with it the secret and the slot.
            collection = joined(world)
        tick = collection.tick("red")
        if tick.state == SENT:
            windows.append(tick.window)
    assert all(later - earlier >= 7 for earlier, later in pairwise(windows))


def test_a_crash_between_writing_and_sending_draws_nothing_anew(tmp_path: Path) -> None:
    world = World()
    path = tmp_path / "ledger.json"
    collection = with_secret(joined(world, path))
    at_slot(world, collection)

    def crash(entry: LedgerEntry) -> LedgerEntry:
        raise KeyboardInterrupt(entry.batch)

    with pytest.raises(KeyboardInterrupt):
        replace(collection, send=crash).tick("red")
    (kept,) = collection.ledger.read().entries
    assert (kept.state, world.uploads) == (PENDING, [])
    after = joined(world, path).tick("blue")
    assert after.state == SENT
    (sent,) = world.batches()
    assert (sent.batch.hex(), sent.blocks[0].payload.hex()) == (kept.batch, kept.report)


def test_two_documents_of_one_account_share_its_caps_and_must_agree_on_them() -> None:
    world = World()
    ledger = Ledger(clock=world.clock)
    first = with_secret(joined(world, ledger))
    at_slot(world, first)
    assert first.tick("red").state == SENT
    other = joined(world, ledger, replace(DAILY, minimum_cohort=7))
    assert other.document.id != first.document.id
    reasons = set[str]()
    for _ in range(6):
        world.now += timedelta(days=1)
        reasons.add(other.tick("red").reason)
    assert reasons <= {"run_cap", "not_my_slot"}
    wider = replace(DAILY.account, run_epsilon="2") if DAILY.account else None
    with pytest.raises(InvalidSpec, match="account daily: run_epsilon differs"):
        joined(world, ledger, replace(DAILY, account=wider)).tick("red")


def test_the_policy_of_a_host_caps_all_accounts_together() -> None:
    world = World()
    collection = with_secret(joined(world, policy=DevicePolicy(30, "1")))
    day = at_slot(world, collection)
    assert collection.tick("red").state == SENT
    world.now = FIRST + timedelta(days=day + 7)
    assert collection.tick("red").reason == "device_cap"


def test_a_new_device_waits_out_one_run() -> None:
    world = World(FIRST + timedelta(days=20))
    collection = with_secret(joined(world))
    reasons = list[str]()
    for day in range(20, 34):
        world.now = FIRST + timedelta(days=day)
        reasons.append(collection.tick("red").reason)
    assert set(reasons[:7]) == {"cold"} and "cold" not in reasons[7:] and "" in reasons[7:]


def test_a_wrong_value_is_refused_before_anything_is_charged() -> None:
    world = World()
    collection = with_secret(joined(world))
    at_slot(world, collection)
    with pytest.raises(InvalidValue):
        collection.tick({"color": "red"})
    assert collection.view().spent == 0 and world.uploads == []


def test_one_answer_is_refused_where_windows_are_asked_and_the_other_way_round() -> None:
    client = Respondent()
    with pytest.raises(InvalidSpec, match=r"Respondent\.join"):
        client.answer(DAILY, {"colour": "red"}, collector=BASE)
    with pytest.raises(InvalidSpec, match=r"Respondent\.answer"):
        client.join(DOCUMENTS["one question"], collector=BASE)


def test_a_ledger_of_version_1_is_read_and_counts_as_made_today(tmp_path: Path) -> None:
    path, world = tmp_path / "ledger.json", World(FIRST + timedelta(days=3))
    entry = {
        "collection": "a" * 64, "base": BASE, "title": {"en": "T"}, "epsilon": "1", "batch": "b" * 32, "report": "00",
        "member": 0, "state": "sent", "reason": "", "invitation": "", "plan": "a" * 64, "not_before": 0, "row": None,
        "sealed": None,
    }  # fmt: skip
    path.write_text(json.dumps({"version": 1, "entries": [entry], "secret": "cd" * 32, "memories": {}}))
    collection = joined(world, path)
    assert collection.tick("red").reason == "cold"
    kept = collection.ledger.read()
    assert (kept.born, kept.secret, kept.entries[0].window) == ("2030-01-10", "cd" * 32, -1)
    assert json.loads(path.read_text())["version"] == 2
    assert Respondent(path).ledger().total == 1


def test_local_dates_decide_where_the_document_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours ahead of UTC.
    time.tzset()
    try:
        world = World(datetime(2030, 1, 6, 23, tzinfo=UTC))
        local = joined(world, document=DOCUMENTS["windows of a week, by local dates"])
        assert local.today() == date(2030, 1, 7)
        assert joined(world).today() == date(2030, 1, 6)
        # The later date of both zones dates the ledger.
        assert local.ledger.read().born == "2030-01-07"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_view_says_what_is_guaranteed() -> None:
    world = World()
    view = joined(world, document=YEARLY).view()
    assert view.words[0].startswith("All reports of this device together: a factor of at most 2.72")
    assert (view.spent, view.lifetime_cap, view.next_day) == (Fraction(0), 1, None)


def test_what_leaves_a_device_does_not_depend_on_the_value_but_for_its_noise() -> None:
    """Sixty days, two streams, one secret: the same number of uploads on the same days, of the same size (AL-6)."""

    def seen(values: list[str]) -> list[tuple[date, int, bytes]]:
        world, uploads = World(), list[tuple[date, int, bytes]]()
        collection = with_secret(joined(world))
        for day in range(60):
            world.now = FIRST + timedelta(days=day)
            before = len(world.uploads)
            collection.tick(values[day % len(values)])
            # Everything but the reported byte itself: length, collection, batch id and window.
            uploads += [(world.now.date(), len(data), data[:-1]) for data in world.uploads[before:]]
        return uploads

    constant, alternating = seen(["red"]), seen(["red", "caf\u00e9", "blue"])
    assert len(constant) > 7 and constant == alternating


@pytest.mark.slow
def test_a_black_box_audit_of_streams_stays_within_epsilon_of_a_run() -> None:
    """Fresh installs on constant and alternating streams: no event is likelier by more than e^epsilon (AL-5).

    Streams differ in three of four windows, which are one run of the document (7), so that epsilon 1 holds. Of 3,000
    installs each, the lower limit of a ratio at 1 - 1e-4 (normal, on the logarithm) must stay below it.
    """

    def transcripts(values: list[str]) -> dict[tuple[int, bytes], int]:
        counts: dict[tuple[int, bytes], int] = {}
        for _ in range(3000):
            world = World()
            collection = joined(world)
            for day, value in enumerate(values):
                world.now = FIRST + timedelta(days=day)
                collection.tick(value)
            for batch in world.batches():
                key = (batch.window or 0, batch.blocks[0].payload)
                counts[key] = counts.get(key, 0) + 1
        return counts

    one, other = transcripts(["red"] * 4), transcripts(["red", "caf\u00e9", "blue", "caf\u00e9"])
    for key in one.keys() | other.keys():
        a, b = one.get(key, 0) + 0.5, other.get(key, 0) + 0.5
        assert abs(log(a / b)) - 3.9 * sqrt(1 / a + 1 / b) <= 1.0, key
