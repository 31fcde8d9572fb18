"""Plan a repeated collection: ways to ask again that keep one guarantee, compared by their error per window.

Only options with the same guarantee stand in one table: a smaller error under a weaker one is no gain. The error is the
one of a frequency f about the whole population, sampling of the devices included (docs/maths/time.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from tacit.core.mechanism import Oracle
from tacit.device.numbers.budget import Share
from tacit.errors import InvalidSpec
from tacit.post.series.kalman import steady_state
from tacit.tasks.choose import choose_oracle

FREQUENCY, DRIFT = 0.05, 5e-4
"""The frequency and the standard deviation of its drift per window that options are compared at unless told."""


@dataclass(frozen=True, kw_only=True)
class TimeGoal:
    """What is asked: a domain, a crowd, an epsilon for any `run` windows in a row."""

    size: int
    n: int
    epsilon: str
    run: int
    every: str = "day"
    windows: int = 365
    frequency: float = FREQUENCY
    drift: float = DRIFT

    def __post_init__(self) -> None:
        """Refuse runs longer than the collection, and numbers that are no shares."""
        if not 1 <= self.run <= self.windows:
            raise InvalidSpec(f"run is {self.run}, must be from 1 to the number of windows, {self.windows}")
        if not 0 <= self.frequency <= 1 or not 0 <= self.drift <= 1:
            raise InvalidSpec("frequency and drift must be shares, from 0 to 1")

    @property
    def guarantee(self) -> str:
        """The one guarantee that all options keep."""
        if self.run == self.windows:
            return "lifetime"
        return "event" if self.run == 1 else "run"


@dataclass(frozen=True)
class TimeOption:
    """One way to ask again, and how well it follows a frequency."""

    method: str
    words: str
    mechanism: Oracle
    rmse: float
    """Of one window, about the whole population."""
    rmse_difference: float | None
    """Of the difference of two neighbouring windows; None where their answers are the same one."""
    rmse_online: float | None = None
    """After the online filter, if the frequency drifts as stated; None where windows are not independent."""
    rmse_smoothed: float | None = None

    def to_row(self) -> dict[str, Any]:
        """Plain numbers for JSON and tables."""
        return {
            "method": self.method,
            "oracle": self.mechanism.kind,
            "rmse": self.rmse,
            "rmse_difference": self.rmse_difference,
            "rmse_online": self.rmse_online,
            "rmse_smoothed": self.rmse_smoothed,
            "report_bits": self.mechanism.report_bits,
            "words": self.words,
        }


def _variance(mechanism: Oracle, frequency: float) -> float:
    """V: n times the variance of one frequency among the respondents."""
    moments = mechanism.moments
    return moments.other + frequency * (moments.own - moments.other)


def _picked(goal: TimeGoal, share: int = 1) -> Oracle:
    """The oracle with the least error at all of epsilon, or at a share of it."""
    budget = goal.epsilon if share == 1 else Share(goal.epsilon, f"1/{share}")
    options = choose_oracle(size=goal.size, epsilon=budget, n=goal.n).options
    return options[0].mechanism


def _filtered(option: TimeOption, drift: float) -> TimeOption:
    """The option with the errors of a filter that knows how much the frequency drifts."""
    online, smoothed = steady_state(drift**2, option.rmse**2)
    rmse = sqrt(online), sqrt(smoothed)
    return TimeOption(option.method, option.words, option.mechanism, option.rmse, option.rmse_difference, *rmse)


def _lpu(goal: TimeGoal) -> TimeOption:
    mechanism, f, w = _picked(goal), goal.frequency, goal.run
    error = w * (_variance(mechanism, f) + f * (1 - f) * (1 - 1 / w)) / goal.n
    words = f"each device reports in one of {w} windows, its own slot, with all of epsilon"
    return _filtered(TimeOption("lpu", words, mechanism, sqrt(error), sqrt(2 * error)), goal.drift)


def _lbu(goal: TimeGoal) -> TimeOption:
    mechanism = _picked(goal, goal.run)
    error = _variance(mechanism, goal.frequency) / goal.n
    words = f"every device reports in every window with 1/{goal.run} of epsilon"
    return _filtered(TimeOption("lbu", words, mechanism, sqrt(error), sqrt(2 * error)), goal.drift)


def _lsp(goal: TimeGoal) -> TimeOption:
    mechanism, w = _picked(goal), goal.run
    once = _variance(mechanism, goal.frequency) / goal.n
    # The value is held for w windows while the frequency walks away from it.
    error = once + goal.drift**2 * (w - 1) / 2
    words = f"every device reports in every {w}-th window, and the answer is held in between"
    return TimeOption("lsp", words, mechanism, sqrt(error), None)


_METHODS: tuple[Callable[[TimeGoal], TimeOption], ...] = (_lpu, _lbu, _lsp)


@dataclass(frozen=True)
class TimePlan:
    """The pick and what it was compared with, all of one guarantee."""

    goal: TimeGoal
    pick: TimeOption
    options: tuple[TimeOption, ...]
    reason: str


def plan_time(goal: TimeGoal) -> TimePlan:
    """Compare the ways to keep the goal's guarantee; the pick answers every window afresh, with the least error."""
    options = tuple(method(goal) for method in _METHODS) if goal.run > 1 else (_lpu(goal),)
    # What is held between two reports is no answer about a window, so lsp is shown and not picked.
    fresh = [option for option in options if option.rmse_online is not None]
    pick = min(fresh, key=lambda option: option.rmse)
    return TimePlan(goal, pick, tuple(sorted(options, key=lambda option: option.rmse)), _reason(goal, pick, fresh))


def _reason(goal: TimeGoal, pick: TimeOption, fresh: list[TimeOption]) -> str:
    unit = f"{goal.every}s"
    kept = {
        "run": f"epsilon {goal.epsilon} for any {goal.run} {unit} in a row",
        "event": f"epsilon {goal.epsilon} for any one {goal.every}, and that times {goal.windows} for all",
        "lifetime": f"epsilon {goal.epsilon} for all {goal.windows} {unit} together",
    }[goal.guarantee]
    other = max(option.rmse for option in fresh)
    gain = f", {(other / pick.rmse) ** 2:.1f} times less variance than splitting epsilon" if len(fresh) > 1 else ""
    return (
        f"{pick.method} with {pick.mechanism.kind}: {pick.words}{gain}; all options here keep {kept}. "
        f"Smoothed online the error is {pick.rmse_online:.2g} if the share drifts by {goal.drift:g} per {goal.every}"
    )
