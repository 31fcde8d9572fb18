"""A crowd of devices over a year: churn, days offline, wrong clocks and reinstalls, each under the rules of its ledger.

The rules are those of `device.windows.account` for one document whose run is its `per`, on arrays instead of one device
at a time; a test holds both to the same decisions. A person has a history across reinstalls here, which no real device
has: that is what the guarantee is audited against.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.errors import InvalidSpec

I16 = npt.NDArray[np.int16]
_NEVER = np.int16(-20000)
"""A window before all others; differences with it stay inside 16 bits."""
_CLOCK_WINDOWS = 5
"""Wrong clocks are off by up to so many windows."""


@dataclass(frozen=True, kw_only=True)
class CrowdTerms:
    """What happens to devices. Shares are of all devices over the whole time, `offline` of the windows of each."""

    devices: int
    windows: int
    per: int
    late: int = 2
    churn: float = 0.2
    """So many join late, and as many leave early."""
    offline: float = 0.1
    clock_errors: float = 0.02
    """So many have a wrong clock for a while: set ahead or back, then right again."""
    reinstalls: float = 0.1

    def __post_init__(self) -> None:
        """Shares are shares, and windows fit the arrays."""
        for name in ("churn", "offline", "clock_errors", "reinstalls"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSpec(f"crowd: {name} is {getattr(self, name)}, must be between 0 and 1")
        if not 1 <= self.per <= self.windows <= 4096:
            raise InvalidSpec(f"crowd: per is {self.per}, must be from 1 to the number of windows, {self.windows}")
        if self.devices < 1:
            raise InvalidSpec("crowd: there must be a device")


@dataclass(eq=False)
class History:
    """What became of all the windows of all devices."""

    reports: I64
    """Reports that the collector counted, per window and value."""
    reasons: dict[str, int] = field(default_factory=dict[str, int])
    """How often a device that was awake in or after its slot drew no report, by reason."""
    refused: int = 0
    """Reports that were drawn and charged, and came when the collector did not take their window."""
    charges: int = 0
    violations: int = 0
    """Charges within one run of an earlier one of the same person."""
    violations_right_clock: int = 0
    """Those of persons whose clock was never wrong."""
    most_reports: int = 0
    """The most that one person was charged for, of all windows."""

    def to_row(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "charges": self.charges,
            "counted": int(self.reports.sum()),
            "refused": self.refused,
            "not_drawn": self.reasons,
            "violations": self.violations,
            "violations_right_clock": self.violations_right_clock,
            "most_reports": self.most_reports,
        }


@dataclass(eq=False)
class _Devices:
    """The state of every device, an entry each."""

    slot: I16
    born: I16
    """Window in which the ledger was made; negative before the calendar began."""
    high: I16
    joins: I16
    leaves: I16
    offset: I16
    wrong_from: I16
    wrong_until: I16
    person_last: I16
    person_reports: I16

    def clock(self, chosen: I64, window: int) -> I16:
        """The window that devices take today for."""
        wrong = (self.wrong_from[chosen] <= window) & (window < self.wrong_until[chosen])
        return (window + np.where(wrong, self.offset[chosen], 0)).astype(np.int16)


def _made(terms: CrowdTerms, rng: np.random.Generator) -> _Devices:
    n, windows = terms.devices, terms.windows

    def whole(low: int, high: int, size: int = n) -> I16:
        return rng.integers(low, high, size, dtype=np.int16)

    joins, leaves = np.zeros(n, np.int16), np.full(n, windows, np.int16)
    late, early = rng.random(n) < terms.churn / 2, rng.random(n) < terms.churn / 2
    joins[late] = whole(0, windows, int(late.sum()))
    leaves[early] = whole(1, windows + 1, int(early.sum()))
    wrong = rng.random(n) < terms.clock_errors
    starts = whole(0, windows)
    return _Devices(
        slot=whole(0, terms.per),
        # Who is there from the beginning has had a ledger before; who joins later makes one then.
        born=np.where(joins > 0, joins, -1).astype(np.int16),
        high=np.full(n, -1, np.int16),
        joins=joins,
        leaves=leaves,
        offset=np.where(wrong, whole(-_CLOCK_WINDOWS, _CLOCK_WINDOWS + 1), 0).astype(np.int16),
        wrong_from=starts,
        wrong_until=(starts + whole(1, max(2, windows // 4))).astype(np.int16),
        person_last=np.full(n, _NEVER),
        person_reports=np.zeros(n, np.int16),
    )


def simulate_devices(
    terms: CrowdTerms, shares: F64, seed: int, *, advance: Callable[[int], None] | None = None
) -> History:
    """Run all devices through all windows; `shares` has a row of true frequencies for every window."""
    rng = np.random.default_rng(seed)
    devices = _made(terms, rng)
    # A device keeps its place in the order of values, so that answers change as little as the shares do.
    place = rng.random(terms.devices, dtype=np.float32)
    edges = np.cumsum(shares, axis=1)[:, :-1].astype(np.float32)
    history = History(np.zeros(shares.shape, np.int64))
    for window in range(terms.windows):
        _reinstall(terms, devices, window, rng)
        chosen, asked = _awake(terms, devices, window, rng)
        drawn = _decide(terms, devices, chosen, asked, devices.clock(chosen, window), history)
        _count(terms, drawn, place, edges, window, history)
        if advance:
            advance(1)
    history.most_reports = int(devices.person_reports.max())
    return history


def _reinstall(terms: CrowdTerms, devices: _Devices, window: int, rng: np.random.Generator) -> None:
    """Some lose their ledger: a new secret, hence a new slot, and nothing is remembered but the date."""
    lost = rng.integers(0, terms.devices, rng.poisson(terms.reinstalls * terms.devices / terms.windows))
    devices.born[lost] = np.maximum(devices.clock(lost, window), -1)
    devices.high[lost] = -1
    devices.slot[lost] = rng.integers(0, terms.per, len(lost), dtype=np.int16)


def _awake(terms: CrowdTerms, devices: _Devices, window: int, rng: np.random.Generator) -> tuple[I64, I16]:
    """Devices that are awake and whose latest slot is not too long ago, and the window of that slot."""
    # First by the right clock, widened by how wrong clocks can be: most devices are done with after one pass.
    since = (window + _CLOCK_WINDOWS - devices.slot) % np.int16(terms.per)
    near = np.flatnonzero(since <= terms.late + 2 * _CLOCK_WINDOWS)
    present = (devices.joins[near] <= window) & (window < devices.leaves[near])
    chosen = near[present & (rng.random(len(near), dtype=np.float32) >= terms.offline)]
    now = devices.clock(chosen, window)
    asked = now - (now - devices.slot[chosen]) % np.int16(terms.per)
    recent = now - asked <= terms.late
    return chosen[recent], asked[recent].astype(np.int16)


def _decide(
    terms: CrowdTerms, devices: _Devices, chosen: I64, asked: I16, now: I16, history: History
) -> tuple[I64, I16]:
    """Apply the rules in their order, and charge those who may draw; returns them with their windows."""
    born, high = devices.born[chosen], devices.high[chosen]
    rules = (
        ("outside", (asked < 0) | (asked >= terms.windows)),
        ("future", asked > now),
        ("passed", asked <= high),
        ("cold", (born >= 0) & (asked < born + terms.per)),
        ("run_cap", (high >= 0) & (high > asked - terms.per)),
    )
    open_ = np.ones(len(chosen), bool)
    for reason, fails in rules:
        # "passed" is mostly a device that reported on its window the day before.
        history.reasons[reason] = history.reasons.get(reason, 0) + int(np.count_nonzero(open_ & fails))
        open_ &= ~fails
    drawn, windows = chosen[open_], asked[open_]
    devices.high[drawn] = windows
    _audit(terms, devices, drawn, windows, history)
    return drawn, windows


def _audit(terms: CrowdTerms, devices: _Devices, drawn: I64, windows: I16, history: History) -> None:
    """Count charges that fall into one run with an earlier one of the same person, reinstalls or not."""
    close = np.abs(windows - devices.person_last[drawn]) < terms.per
    history.charges += len(drawn)
    history.violations += int(np.count_nonzero(close))
    history.violations_right_clock += int(np.count_nonzero(close & (devices.offset[drawn] == 0)))
    devices.person_last[drawn] = np.maximum(windows, devices.person_last[drawn])
    devices.person_reports[drawn] += 1


def _count(
    terms: CrowdTerms, drawn: tuple[I64, I16], place: npt.NDArray[np.float32], edges: npt.NDArray[np.float32],
    window: int, history: History,
) -> None:  # fmt: skip
    """Count the answers whose window the collector takes at this time; wrong clocks miss it."""
    chosen, windows = drawn
    taken = (windows <= window) & (window - windows <= terms.late)
    history.refused += int(np.count_nonzero(~taken))
    for k in np.unique(windows[taken]):
        values = np.searchsorted(edges[k], place[chosen[taken & (windows == k)]], side="right")
        history.reports[k] += np.bincount(values, minlength=edges.shape[1] + 1)
