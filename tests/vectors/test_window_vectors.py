"""The golden vectors of windows: calendars, slots, batch ids, words, and the decisions of ledgers, event by event."""

import json
import runpy
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.device.windows.account import AccountRecord, Asked, DevicePolicy, next_slot, refusal
from tacit.device.windows.calendar import Calendar
from tacit.device.windows.guarantee import always_words, guarantee_words
from tacit.device.windows.slots import slot_of, window_batch_id
from tacit.device.windows.terms import AccountTerms, WindowTerms
from tacit.errors import InvalidSpec

ROOT = Path(__file__).parents[2]
FILE = ROOT / "spec" / "vectors" / "windows.json"
VECTORS: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
SECRET, DOCUMENT = bytes.fromhex(VECTORS["secret"]), bytes.fromhex(VECTORS["document"])


def test_slots_are_the_published_ones() -> None:
    assert {w: slot_of(SECRET, DOCUMENT, w) for w in (2, 7, 30, 52, 365)} == {2: 0, 7: 0, 30: 1, 52: 2, 365: 16}
    assert [[w, slot_of(SECRET, DOCUMENT, w)] for w, _ in VECTORS["slots"]] == VECTORS["slots"]


def test_batch_ids_are_the_published_ones_and_no_slot() -> None:
    made = [[k, window_batch_id(SECRET, DOCUMENT, k).hex()] for k, _ in VECTORS["batch_ids"]]
    assert made == VECTORS["batch_ids"]
    assert len({name for _, name in made}) == len(made)


@pytest.mark.parametrize("case", VECTORS["calendars"], ids=lambda case: case["every"])
def test_dates_are_in_the_published_windows(case: dict[str, Any]) -> None:
    calendar = Calendar(case["every"], date.fromisoformat(case["first"]))
    assert [[text, calendar.window(date.fromisoformat(text))] for text, _ in case["windows"]] == case["windows"]
    assert [[k, str(calendar.first_day(k)), str(calendar.last_day(k))] for k, _, _ in case["days"]] == case["days"]


@pytest.mark.parametrize("case", VECTORS["zones"], ids=lambda case: case["zone"])
def test_windows_change_state_at_the_published_second(case: dict[str, Any]) -> None:
    terms = WindowTerms(**VECTORS["scenarios"][0]["documents"][0]["windows"] | {"zone": case["zone"]})
    assert [[unix, terms.state(case["window"], unix)] for unix, _ in case["states"]] == case["states"]


@pytest.mark.parametrize("case", VECTORS["words"], ids=lambda case: case["windows"]["guarantee"])
def test_respondents_are_told_the_published_words(case: dict[str, Any]) -> None:
    windows, account = WindowTerms(**case["windows"]), AccountTerms(**case["account"])
    assert [*guarantee_words(windows, Fraction(case["epsilon"])), *always_words(windows, account)] == case["words"]


@pytest.mark.parametrize("case", VECTORS["bad_windows"], ids=json.dumps)
def test_windows_that_no_reader_takes(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match=r"^windows\."):
        WindowTerms(**case)


@pytest.mark.parametrize("scenario", VECTORS["scenarios"], ids=lambda scenario: scenario["name"])
def test_ledgers_decide_as_published(scenario: dict[str, Any]) -> None:
    caps, record = AccountTerms(**scenario["account"]), AccountRecord()
    policy = DevicePolicy(**scenario["policy"]) if "policy" in scenario else None
    days: list[tuple[date, Fraction]] = []
    seen: set[tuple[int, int]] = set()
    for event in scenario["events"]:
        document, window = scenario["documents"][event["document"]], event["window"]
        terms, epsilon = WindowTerms(**document["windows"]), Fraction(document["epsilon"])
        slot = slot_of(SECRET, bytes.fromhex(document["id"]), terms.per)
        place = event["document"], window
        asked = Asked(
            windows=terms, account=caps, epsilon=epsilon, window=window, today=date.fromisoformat(event["today"]),
            born=date.fromisoformat(scenario["born"]), slot=slot, drawn_before=place in seen, record=record,
            policy=policy, days=tuple(days),
        )  # fmt: skip
        assert refusal(asked) == event["reason"], event
        if not event["reason"]:
            seen.add(place)
            record = record.charged(window, epsilon, caps.run)
            days.append((asked.today, epsilon))
    assert record.to_json() == scenario["record"]
    assert AccountRecord.from_json(scenario["record"]) == record


@pytest.mark.parametrize("case", VECTORS["next_slots"], ids=lambda case: f"from {case['asked']['window']}")
def test_the_next_slot_is_the_published_one(case: dict[str, Any]) -> None:
    given = case["asked"]
    asked = Asked(
        windows=WindowTerms(**given["windows"]), account=AccountTerms(**given["account"]),
        epsilon=Fraction(given["epsilon"]), window=given["window"], today=date.fromisoformat(given["today"]),
        born=date.fromisoformat(given["born"]), slot=given["slot"], record=AccountRecord.from_json(given["record"]),
        policy=DevicePolicy(**given["policy"]) if "policy" in given else None,
        days=tuple((date.fromisoformat(day), Fraction(cost)) for day, cost in given.get("days", [])),
    )  # fmt: skip
    assert next_slot(asked) == case["next"]


def test_every_reason_has_an_event() -> None:
    reasons = {event["reason"] for scenario in VECTORS["scenarios"] for event in scenario["events"]}
    rules = {"outside", "future", "too_late", "passed", "cold", "not_my_slot", "run_cap", "lifetime_cap", "device_cap"}
    assert reasons == rules | {""}


def test_the_file_is_what_the_tool_writes(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "make_window_vectors.py"))
    target = tmp_path / "windows.json"
    tool["main"].__globals__["TARGET"] = target
    tool["main"]()
    assert target.read_text(encoding="utf-8") == FILE.read_text(encoding="utf-8")
