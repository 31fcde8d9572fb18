"""The account of a device: may a report on this window be drawn now? One table of rules, the first that fails decides.

Looking backwards is enough: the windows of an account never decrease, so the only run that gains a charge is the one
that ends at the window asked about. Charges are never given back, and no window is made up for later. What the rules
keep, and what they cannot, is derived in docs/maths/time.md; the same table in JavaScript is held to the same vectors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import Any

from tacit.device.numbers.canonical import shortest_decimal
from tacit.device.windows.terms import AccountTerms, WindowTerms
from tacit.errors import InvalidSpec


@dataclass(frozen=True)
class AccountRecord:
    """What a device remembers of an account: the largest window charged, charges of the last run, and their sum."""

    high: int = -1
    charges: tuple[tuple[int, Fraction], ...] = ()
    spent: Fraction = Fraction(0)

    def charged(self, window: int, epsilon: Fraction, run: int) -> "AccountRecord":
        """Return the record with one more charge; those that no later run can hold any more are dropped."""
        high = max(self.high, window)
        kept = tuple(charge for charge in (*self.charges, (window, epsilon)) if charge[0] > high - run)
        return AccountRecord(high, kept, self.spent + epsilon)

    def within(self, last: int, run: int) -> Fraction:
        """Return the epsilon charged to the run of windows that ends with `last`."""
        return sum((epsilon for window, epsilon in self.charges if last - run < window <= last), Fraction(0))

    def to_json(self) -> dict[str, Any]:
        """The form in a ledger; epsilons are exact, as fractions."""
        return {"high": self.high, "charges": [[w, str(e)] for w, e in self.charges], "spent": str(self.spent)}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> "AccountRecord":
        """Read a record of a ledger; ValueError, TypeError or KeyError for anything else."""
        charges = tuple((int(window), Fraction(epsilon)) for window, epsilon in given["charges"])
        return cls(int(given["high"]), charges, Fraction(given["spent"]))


KEPT_DAYS = 400
"""So long a device keeps the dates of charges, for policies of the host over all accounts."""


@dataclass(frozen=True)
class DevicePolicy:
    """A cap of the host over all accounts: epsilon in any `days` days in a row, by the dates on which was drawn.

    Charges count with the date of the device's clock, so that those of a clock that was ahead count when it is back.
    """

    days: int
    epsilon: str

    def __post_init__(self) -> None:
        """A cap over no days would cap nothing."""
        if type(self.days) is not int or not 1 <= self.days <= KEPT_DAYS:
            raise InvalidSpec(
                f"device policy: days must be a whole number from 1 to {KEPT_DAYS}: so long dates are kept"
            )
        object.__setattr__(self, "epsilon", shortest_decimal(self.epsilon))

    def allows(self, drawn: "Sequence[tuple[date, Fraction]]", today: date, epsilon: Fraction) -> bool:
        """Return whether one more charge today keeps every run of days within the cap."""
        # Both directions count: a clock that was ahead has left charges in what is now the future.
        near = sum((cost for day, cost in drawn if abs((day - today).days) < self.days), Fraction(0))
        return near + epsilon <= Fraction(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A report that a host wants to make, and everything that the rules look at."""

    windows: WindowTerms
    account: AccountTerms
    epsilon: Fraction
    """The charge of one report."""
    window: int
    today: date
    born: date
    """The date on which the ledger was made."""
    slot: int
    drawn_before: bool = False
    """Whether this document has a report on this window already; its bytes are then sent again, never drawn anew."""
    record: AccountRecord = field(default_factory=AccountRecord)
    policy: DevicePolicy | None = None
    days: tuple[tuple[date, Fraction], ...] = ()
    """Dates and charges of all accounts, for the policy."""

    @property
    def now(self) -> int:
        """The index of today's window."""
        return self.windows.calendar.window(self.today)


def _cold(asked: Asked) -> bool:
    """A ledger that was made after the calendar began may have had a predecessor: it waits out one run."""
    born = asked.windows.calendar.window(asked.born)
    return born >= 0 and asked.window < born + asked.account.run


def _over_run(asked: Asked) -> bool:
    charged = asked.record.within(asked.window, asked.account.run)
    return charged + asked.epsilon > asked.account.run_cap


def _over_life(asked: Asked) -> bool:
    cap = asked.account.lifetime_cap
    return cap is not None and asked.record.spent + asked.epsilon > cap


def _over_policy(asked: Asked) -> bool:
    return asked.policy is not None and not asked.policy.allows(asked.days, asked.today, asked.epsilon)


RULES: tuple[tuple[str, Callable[[Asked], bool]], ...] = (
    ("outside", lambda asked: not 0 <= asked.window < asked.windows.count),
    ("future", lambda asked: asked.window > asked.now),
    ("too_late", lambda asked: asked.now - asked.window > asked.windows.late),
    # The largest window itself is not passed: another document of the account may have been charged for it.
    ("passed", lambda asked: asked.window < asked.record.high or asked.drawn_before),
    ("cold", _cold),
    ("not_my_slot", lambda asked: asked.window % asked.windows.per != asked.slot),
    ("run_cap", _over_run),
    ("lifetime_cap", _over_life),
    ("device_cap", _over_policy),
)
"""Reasons not to draw, in the order in which they are looked at."""


def refusal(asked: Asked) -> str:
    """Return why a report must not be drawn; empty if it may."""
    return next((reason for reason, fails in RULES if fails(asked)), "")


def next_slot(asked: Asked) -> int | None:
    """Return the next window that the device will report on, from the one asked about on; None if there is none.

    It looks at what is known today; a cap that a window of another document uses up later is not foreseen.
    """
    windows = asked.windows
    for window in range(max(0, asked.window), windows.count):
        # As it will be asked on the first day of that window.
        then = replace(asked, window=window, today=windows.calendar.first_day(window), drawn_before=False)
        if window % windows.per == asked.slot and window > asked.record.high and not refusal(then):
            return window
    return None
