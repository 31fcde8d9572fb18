"""What a document says about time: its windows, and the account that all its reports are charged to."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.device.numbers.budget import Epsilon
from tacit.device.numbers.exact import ceil_div
from tacit.device.windows.calendar import MAX_WINDOWS, Calendar, parse_date
from tacit.errors import InvalidSpec

GUARANTEES = ("event", "run", "lifetime", "pattern")
MAX_LATE = 31
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
FUTURE, OPEN, SETTLING, FINAL = "future", "open", "settling", "final"
"""The states of a window by the clock: before it, during it, while late reports are taken, and after."""


@dataclass(frozen=True, kw_only=True)
class WindowTerms:
    """The windows of a document: one question, asked again and again, of which a device answers one in `per`."""

    every: str
    first: str
    count: int
    zone: str = "utc"
    late: int = 0
    """For so many windows after its own a report is still taken."""
    per: int
    """A device reports on one of `per` windows in a row."""
    schedule: str = "fixed"
    guarantee: str

    def __post_init__(self) -> None:
        """Refuse windows of which most devices would never report on one, and schedules that only simulations have."""
        _whole(self.count, "windows.count", 1, MAX_WINDOWS)
        _whole(self.late, "windows.late", 0, MAX_LATE)
        _whole(self.per, "windows.per", 1, MAX_WINDOWS)
        # Building it refuses a wrong calendar when the terms are made, and not first on a device.
        _ = self.calendar
        if self.per > self.count:
            raise InvalidSpec(
                f"windows.per is {self.per}, must be at most {self.count}, the number of windows; with more, most "
                "devices would never report"
            )
        if self.schedule != "fixed":
            raise InvalidSpec(
                f'windows.schedule is {str(self.schedule)[:20]!r}, must be "fixed": schedules that a server publishes '
                "are for simulations (tacit simulate time)"
            )
        if self.guarantee not in GUARANTEES:
            raise InvalidSpec(
                f"windows.guarantee is {str(self.guarantee)[:20]!r}, must be one of {', '.join(GUARANTEES)}"
            )

    @cached_property
    def calendar(self) -> Calendar:
        """The calendar that numbers the windows."""
        return Calendar(self.every, parse_date(self.first, "windows.first"), self.zone)

    @property
    def reports(self) -> int:
        """How many reports one device makes over all windows, at most."""
        return ceil_div(self.count, self.per)

    def state(self, window: int, unix: float) -> str:
        """Return the state of a window at a time."""
        calendar = self.calendar
        if unix < calendar.opens(window):
            return FUTURE
        if unix < calendar.closes(window):
            return OPEN
        return SETTLING if unix < calendar.closes(window + self.late) else FINAL

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        names = ("every", "first", "count", "zone", "late", "per", "schedule", "guarantee")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class AccountTerms:
    """The caps that every document of an account shares: per run of windows, and perhaps for life."""

    name: str
    run: int
    run_epsilon: str
    lifetime_epsilon: str | None = None

    def __post_init__(self) -> None:
        """Caps are decimal text in canonical form, so that two documents of an account can be compared."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec("account.name must be a lower-case word of up to 40 letters, digits and underscores")
        _whole(self.run, "account.run", 1, MAX_WINDOWS)
        _cap(self.run_epsilon, "account.run_epsilon")
        if self.lifetime_epsilon is not None:
            _cap(self.lifetime_epsilon, "account.lifetime_epsilon")

    @property
    def run_cap(self) -> Fraction:
        """What may be charged to any `run` windows in a row."""
        return Fraction(self.run_epsilon)

    @property
    def lifetime_cap(self) -> Fraction | None:
        """What may be charged in all, where there is such a cap."""
        return None if self.lifetime_epsilon is None else Fraction(self.lifetime_epsilon)

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        names = ("name", "run", "run_epsilon", "lifetime_epsilon")
        return {name: getattr(self, name) for name in names}


def check_terms(windows: WindowTerms, account: AccountTerms, epsilon: Fraction, *, memoised: bool) -> None:
    """Refuse terms under which devices would refuse their own slots, and a guarantee that is not the realised one."""
    realised = realised_guarantee(windows, memoised=memoised)
    if windows.guarantee != realised:
        raise InvalidSpec(
            f'windows.guarantee is "{windows.guarantee}", must be "{realised}": that is what reports on one of '
            f"{windows.per} windows, {windows.count} in all, keep"
        )
    # Looking at any run, so many slots of one device may fall into it.
    needed = ceil_div(account.run, windows.per) * epsilon
    if needed > account.run_cap:
        raise InvalidSpec(
            f"account.run_epsilon is {account.run_epsilon}, must be at least {float(needed):g}: a device has up to "
            f"{ceil_div(account.run, windows.per)} slots in {account.run} windows, and would refuse some of them"
        )
    if account.lifetime_cap is not None and account.lifetime_cap < epsilon:
        raise InvalidSpec(f"account.lifetime_epsilon is {account.lifetime_epsilon}, below the epsilon of one report")


def realised_guarantee(windows: WindowTerms, *, memoised: bool = False) -> str:
    """Return the strongest guarantee that the terms keep at the epsilon of one report."""
    if memoised:
        return "pattern"
    # One report in all is more than one per run, so it comes first.
    if windows.per == windows.count:
        return "lifetime"
    return "event" if windows.per == 1 else "run"


def _whole(value: Any, where: str, least: int, most: int) -> None:
    # By `type`, as True is an integer to Python and not to JSON.
    if type(value) is not int or not least <= value <= most:
        raise InvalidSpec(f"{where} must be a whole number from {least} to {most}")


def _cap(value: Any, where: str) -> None:
    if not isinstance(value, str) or Epsilon(value).text != value:
        raise InvalidSpec(f'{where} must be an epsilon as its shortest decimal text, such as "1" or "0.5"')
