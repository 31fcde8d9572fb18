"""Write spec/vectors/windows.json: calendars, slots, batch ids and decisions of ledgers, that every client must share.

Usage: python tools/make_window_vectors.py

A scenario has documents of one account and events in their order: a host asks, on a date of the device's clock, for a
report of a document on a window. The reason is empty where a report is drawn and charged. `record` is the account after
the last event.
"""

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.device.windows.account import AccountRecord, Asked, DevicePolicy, next_slot, refusal
from tacit.device.windows.calendar import Calendar
from tacit.device.windows.guarantee import always_words, guarantee_words
from tacit.device.windows.slots import slot_of, window_batch_id
from tacit.device.windows.terms import AccountTerms, WindowTerms

TARGET = Path(__file__).resolve().parents[1] / "spec" / "vectors" / "windows.json"
SECRET = bytes(range(32))
FIRST = "2030-01-07"


def terms(**changes: Any) -> dict[str, Any]:
    base = {"every": "day", "first": FIRST, "count": 60, "zone": "utc", "late": 2, "per": 7, "schedule": "fixed"}
    return base | {"guarantee": "run"} | changes


def account(**changes: Any) -> dict[str, Any]:
    return {"name": "daily", "run": 7, "run_epsilon": "1", "lifetime_epsilon": None} | changes


def day(number: int) -> str:
    return Calendar("day", date.fromisoformat(FIRST)).first_day(number).isoformat()


def replay(scenario: dict[str, Any]) -> dict[str, Any]:
    """The scenario with the reason of every event and the record after the last one."""
    caps, record = AccountTerms(**scenario["account"]), AccountRecord()
    policy = DevicePolicy(**scenario["policy"]) if "policy" in scenario else None
    days: list[tuple[date, Fraction]] = []
    drawn: set[tuple[int, int]] = set()
    events: list[dict[str, Any]] = []
    for event in scenario["events"]:
        document = scenario["documents"][event["document"]]
        windows, epsilon = WindowTerms(**document["windows"]), Fraction(document["epsilon"])
        asked = Asked(
            windows=windows, account=caps, epsilon=epsilon, window=event["window"],
            today=date.fromisoformat(event["today"]), born=date.fromisoformat(scenario["born"]),
            slot=slot_of(bytes.fromhex(scenario["secret"]), bytes.fromhex(document["id"]), windows.per),
            drawn_before=(event["document"], event["window"]) in drawn, record=record, policy=policy, days=tuple(days),
        )  # fmt: skip
        reason = refusal(asked)
        if not reason:
            drawn.add((event["document"], event["window"]))
            record = record.charged(event["window"], epsilon, caps.run)
            days.append((asked.today, epsilon))
        events.append(event | {"reason": reason})
    return scenario | {"events": events, "record": record.to_json()}


def scenario(name: str, events: "list[tuple[int, int] | tuple[int, int, int]]", **changes: Any) -> dict[str, Any]:
    """Events are (day of the clock, window) or (day, window, document); the slot of document 0 is 0 for per 7."""
    made = [
        {"today": day(event[0]), "window": event[1], "document": event[2] if len(event) > 2 else 0} for event in events
    ]
    base = {
        "name": name, "secret": SECRET.hex(), "born": "2029-12-01", "account": account(),
        "documents": [{"id": bytes(32).hex(), "windows": terms(), "epsilon": "1"}],
    }  # fmt: skip
    return replay(base | changes | {"events": made})


def two_documents() -> dict[str, Any]:
    other = {"id": (b"\1" * 32).hex(), "windows": terms(per=1, guarantee="event"), "epsilon": "0.25"}
    return {
        "account": account(run_epsilon="2"),
        "documents": [{"id": bytes(32).hex(), "windows": terms(), "epsilon": "1"}, other],
    }


SCENARIOS = [
    scenario("every day of two weeks", [(k, k) for k in range(15)]),
    scenario("outside the calendar", [(0, -1), (59, 60), (70, 59)]),
    scenario("ahead of the clock", [(0, 7), (6, 7), (7, 7)]),
    scenario("late reports are taken, too late ones are not", [(9, 7), (17, 14), (24, 21)]),
    scenario("asked twice for one window", [(0, 0), (0, 0), (1, 0)]),
    scenario("clock set back", [(14, 14), (7, 7), (0, 0), (21, 21)]),
    scenario("clock ahead uses windows up early", [(28, 28), (7, 7), (14, 14), (21, 21), (28, 28), (35, 35)]),
    scenario("ledger made before the calendar", [(0, 0)], born="2030-01-06"),
    scenario("ledger made on the first day waits out one run", [(0, 0), (7, 7)], born=FIRST),
    scenario("ledger made later waits out one run", [(14, 14), (21, 21), (28, 28)], born=day(15)),
    scenario("offline over a slot: no window is made up for", [(10, 7), (10, 10), (11, 11), (14, 14)]),
    scenario("lifetime cap", [(7 * k, 7 * k) for k in range(4)], account=account(lifetime_epsilon="2.5")),
    scenario(
        "two documents share the cap of a run",
        [(0, 0, 1), (0, 0), (1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 1), (7, 7, 1), (7, 7)],
        **two_documents(),
    ),
    scenario(
        "another document may use the same window, none before it", [(7, 7), (7, 7, 1), (8, 6, 1)], **two_documents()
    ),
    scenario(
        "a policy of the host over all accounts, by the dates on which was drawn",
        [(0, 0), (7, 7), (14, 14), (14, 14, 1), (23, 21), (28, 28), (35, 35)],
        **two_documents() | {"policy": {"days": 10, "epsilon": "1.25"}},
    ),
    scenario(
        "weeks",
        [(0, 0), (7, 1), (14, 2), (21, 3), (28, 4)],
        account=account(run=2),
        documents=[{"id": bytes(32).hex(), "windows": terms(every="week", count=9, per=2, late=0), "epsilon": "1"}],
    ),
]

CALENDARS = [
    ("day", FIRST, ["2030-01-06", FIRST, "2030-03-01", "2032-02-29", "2032-03-01"]),
    ("week", FIRST, ["2030-01-06", "2030-01-13", "2030-03-01", "2030-12-31", "2031-01-06"]),
    ("month", "2030-01-01", ["2029-12-31", "2030-01-31", "2030-02-01", "2031-01-01", "2032-02-29"]),
]


def calendar(every: str, first: str, dates: list[str]) -> dict[str, Any]:
    made = Calendar(every, date.fromisoformat(first))
    cases = [[text, made.window(date.fromisoformat(text))] for text in dates]
    days = [[k, made.first_day(k).isoformat(), made.last_day(k).isoformat()] for k in (0, 1, 13, 25)]
    return {"every": every, "first": first, "windows": cases, "days": days}


def zones() -> list[dict[str, Any]]:
    """When the collector takes window 3 of a day calendar: the last second before, and the first of every state."""
    rows: list[dict[str, Any]] = []
    for zone in ("utc", "local"):
        made = WindowTerms(**terms(zone=zone))
        edges = [made.calendar.opens(3), made.calendar.closes(3), made.calendar.closes(3 + made.late)]
        times = [int(edge) + step for edge in edges for step in (-1, 0)]
        rows.append({"zone": zone, "late": 2, "window": 3, "states": [[t, made.state(3, t)] for t in times]})
    return rows


def words() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cases = [
        (terms(), account(), "1"),
        (terms(per=1, guarantee="event"), account(run_epsilon="7"), "1"),
        (terms(per=60, guarantee="lifetime"), account(run=60, lifetime_epsilon="1"), "1"),
        (terms(per=1, guarantee="pattern"), account(run_epsilon="32"), "2"),
        (terms(every="month", first="2030-01-01", per=12), account(run=12), "0.5"),
    ]
    for windows, caps, epsilon in cases:
        made, limits = WindowTerms(**windows), AccountTerms(**caps)
        said = [*guarantee_words(made, Fraction(epsilon)), *always_words(made, limits)]
        rows.append({"windows": windows, "account": caps, "epsilon": epsilon, "words": said})
    return rows


def next_slots() -> list[dict[str, Any]]:
    """The window that a device reports on next: after the cold start, after what was charged, within the caps."""
    used = {"high": 9, "charges": [[9, "1"]], "spent": "1"}
    capped = account(lifetime_epsilon="1.5")
    policies = {3: ({"days": 30, "epsilon": "1"}, [["2030-01-16", "1"]])}
    cases: list[tuple[int, int, str, dict[str, Any], dict[str, Any]]] = [
        (0, 2, "2029-12-01", account(), AccountRecord().to_json()),
        (3, 2, "2029-12-01", account(), AccountRecord().to_json()),
        (0, 2, FIRST, account(), AccountRecord().to_json()),
        (9, 2, "2029-12-01", account(), used),
        (9, 2, "2029-12-01", account(), used),
        (9, 2, "2029-12-01", capped, used),
        (59, 2, "2029-12-01", account(), used),
        (-5, 0, "2029-12-01", account(), AccountRecord().to_json()),
    ]
    rows: list[dict[str, Any]] = []
    for i, (window, slot, born, caps, record) in enumerate(cases):
        policy, days = policies.get(i, (None, []))
        about: dict[str, Any] = {"window": window, "today": day(window), "born": born, "slot": slot, "epsilon": "1"}
        asked = Asked(
            windows=WindowTerms(**terms()), account=AccountTerms(**caps), epsilon=Fraction(1), window=window, slot=slot,
            today=date.fromisoformat(about["today"]), born=date.fromisoformat(born),
            record=AccountRecord.from_json(record), policy=None if policy is None else DevicePolicy(**policy),
            days=tuple((date.fromisoformat(text), Fraction(cost)) for text, cost in days),
        )  # fmt: skip
        about |= {"windows": terms(), "account": caps, "record": record}
        about |= {} if policy is None else {"policy": policy, "days": days}
        rows.append({"asked": about, "next": next_slot(asked)})
    return rows


def bad_windows() -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = [
        {"every": "hour"}, {"first": "2030-1-7"}, {"first": "20300107"}, {"first": "2030-02-30"}, {"first": 1},
        {"every": "week", "first": "2030-01-08"}, {"every": "month", "first": "2030-01-02"}, {"count": 0},
        {"count": 4097}, {"count": True}, {"zone": "cet"}, {"late": 32}, {"late": -1}, {"per": 0}, {"per": 61},
        {"schedule": "published"}, {"guarantee": "always"},
    ]  # fmt: skip
    return [terms(**change) for change in changes]


def main() -> None:
    secret, zeros = SECRET, bytes(32)
    slots = [[w, slot_of(secret, zeros, w)] for w in (1, 2, 7, 30, 52, 365, 4096)]
    batches = [[k, window_batch_id(secret, zeros, k).hex()] for k in (0, 1, 255, 4095)]
    content = {
        "secret": secret.hex(), "document": zeros.hex(), "slots": slots, "batch_ids": batches,
        "calendars": [calendar(*case) for case in CALENDARS], "zones": zones(), "words": words(),
        "bad_windows": bad_windows(), "next_slots": next_slots(), "scenarios": SCENARIOS,
    }  # fmt: skip
    TARGET.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
