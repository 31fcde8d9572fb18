"""Documents that ask again and again, good and bad; they are of version 2."""

from typing import Any

from shuffled_documents import SHARED, Answered, Case, second

DAILY: dict[str, Any] = {
    "every": "day",
    "first": "2030-01-07",
    "count": 365,
    "zone": "utc",
    "late": 2,
    "per": 7,
    "schedule": "fixed",
    "guarantee": "run",
}
ACCOUNT: dict[str, Any] = {"name": "daily", "run": 7, "run_epsilon": "1", "lifetime_epsilon": None}


def windowed(plain: dict[str, Any], windows: Any = DAILY, **changes: Any) -> dict[str, Any]:
    """A document with windows."""
    return second(plain, windows=windows, account=ACCOUNT | changes)


def good(plain: dict[str, Any]) -> list[Answered]:
    """From a document with one question, at epsilon 1."""
    answers = [{"colour": "red"}, {"colour": "blue"}]
    weekly = DAILY | {"every": "week", "count": 52, "per": 4, "zone": "local", "late": 0}
    monthly = DAILY | {"every": "month", "first": "2030-02-01", "count": 12, "per": 12, "guarantee": "lifetime"}
    return [
        ("windows of a day", windowed(plain), answers),
        ("windows of a week, by local dates", windowed(plain, weekly, run=9, run_epsilon="3"), answers),
        ("one report in a year", windowed(plain, monthly, run=12, lifetime_epsilon="1"), answers[:1]),
        ("every day afresh", windowed(plain, DAILY | {"per": 1, "guarantee": "event"}, run_epsilon="7"), answers[:1]),
        ("an account with a cap for life", windowed(plain, run_epsilon="1.5", lifetime_epsilon="32"), answers[:1]),
    ]


def _windows(plain: dict[str, Any]) -> list[Case]:
    changes: dict[str, Any] = {
        "of an hour": {"every": "hour"},
        "that begin on no date": {"first": "2030-02-30"},
        "that begin on a date in another form": {"first": "20300107"},
        "that begin in the year 0": {"first": "0000-01-01"},
        "that begin in the year 9999": {"first": "9999-01-01"},
        "whose first day is a number": {"first": 20300107},
        "of a week from a Tuesday": {"every": "week", "first": "2030-01-08"},
        "of a month from the 7th": {"every": "month"},
        "that are none": {"count": 0},
        "too many": {"count": 4097},
        "with a count in text": {"count": "365"},
        "in a zone": {"zone": "europe/berlin"},
        "that are late for longer than a month": {"late": 32},
        "of no slot": {"per": 0},
        "with more slots than windows": {"count": 6},
        "with a published schedule": {"schedule": "published"},
        "with another guarantee": {"guarantee": "lifetime"},
        "with an unknown guarantee": {"guarantee": "always"},
        "with a further field": {"until": "2031-01-01"},
    }
    cases = [(f"windows {name}", windowed(plain, DAILY | change)) for name, change in changes.items()]
    short = {name: value for name, value in DAILY.items() if name != "zone"}
    return [
        *cases,
        ("windows without a zone", windowed(plain, short)),
        ("windows that are a list", windowed(plain, [])),
    ]


def _accounts(plain: dict[str, Any]) -> list[Case]:
    changes: dict[str, Any] = {
        "of no name": {"name": ""},
        "with a name in capitals": {"name": "Daily"},
        "of no run": {"run": 0},
        "with a run in text": {"run": "7"},
        "with a cap as a number": {"run_epsilon": 1},
        "with a cap that is not canonical": {"run_epsilon": "1.0"},
        "with a cap out of range": {"run_epsilon": "33"},
        "with a cap that a slot exceeds": {"run_epsilon": "0.5"},
        "with a run that holds two slots": {"run": 8},
        "with a cap for life below one report": {"lifetime_epsilon": "0.9"},
        "with a cap for life that is false": {"lifetime_epsilon": False},
        "with a further field": {"epsilon": "1"},
    }
    cases = [(f"an account {name}", windowed(plain, **change)) for name, change in changes.items()]
    short = {name: value for name, value in ACCOUNT.items() if name != "run"}
    return [*cases, ("an account without a run", second(plain, windows=DAILY, account=short))]


def bad(plain: dict[str, Any], others: dict[str, dict[str, Any]]) -> list[Case]:
    """Bad documents: of one with one question, and of others that do not take windows."""
    return [
        ("windows without an account", second(plain, windows=DAILY)),
        ("an account without windows", second(plain, account=ACCOUNT)),
        ("windows that are empty", second(plain, windows={}, account=ACCOUNT)),
        ("an account that is empty", second(plain, windows=DAILY, account={})),
        ("an account that is false", second(plain, account=False)),
        ("windows that are false", second(plain, windows=False)),
        ("windows in version 1", windowed(plain) | {"version": 1}),
        ("windows by invitation", windowed(plain) | {"invitations": True}),
        ("windows that are shuffled", windowed(plain) | {"shuffle": SHARED}),
        *((f"windows of {name}", windowed(other)) for name, other in others.items()),
        *_windows(plain),
        *_accounts(plain),
    ]
