"""Plan a repeated collection: ways to ask again that keep one guarantee, compared by their error per window.

Only options with the same guarantee stand in one table: a smaller error under a weaker one is no gain. The error is the
one of a frequency f about the whole population, sampling of the devices included (docs/maths/time.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from tacit.core.mechanism import Mechanism, Oracle
from tacit.device.numbers.budget import Share
from tacit.errors import InvalidSpec
from tacit.post.series.kalman import steady_state
from tacit.tasks.choose import choose_oracle
from tacit.tasks.time.trees import choose_tree

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
    changes: int | None = None
    """How often the answer of a device changes at most, where that is known: trees over time need it."""

    def __post_init__(self) -> None:
        """Refuse runs longer than the collection, and numbers that are no shares."""
        if not 1 <= self.run <= self.windows:
            raise InvalidSpec(f"run is {self.run}, must be from 1 to the number of windows, {self.windows}")
        if not 0 <= self.frequency <= 1 or not 0 <= self.drift <= 1:
            raise InvalidSpec("frequency and drift must be shares, from 0 to 1")
        if self.changes is not None and self.guarantee != "lifetime":
            raise InvalidSpec(
                "changes are for a guarantee for life: let run be the number of windows, or leave them out"
            )

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
    mechanism: Mechanism
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


SHOWN_CHANGES = (1, 2, 3, 5)
"""Trees that are shown where nobody says how often answers change."""


def _tree(goal: TimeGoal, changes: int) -> TimeOption:
    choice = choose_tree(goal.epsilon, goal.windows, changes, goal.frequency)
    # Of several answers every device follows a random one, so that each has a share of the devices.
    followed = goal.size if goal.size > 2 else 1
    words = "only ever switches on" if changes == 1 else f"changes at most {changes} times"
    if followed > 1:
        words += f", one of {goal.size} answers per device"
    method = "tree_step" if changes == 1 else f"tree_{changes}"
    text = f"a tree over time (fanout {choice.mechanism.fanout}), if a yes/no state {words}"
    return TimeOption(method, text, choice.mechanism, sqrt(followed * choice.noise / goal.n), None)


def _trees(goal: TimeGoal) -> list[TimeOption]:
    """Trees keep epsilon for life, and stand beside nothing else."""
    if goal.guarantee != "lifetime" or goal.run == 1:
        return []
    return [_tree(goal, changes) for changes in ((goal.changes,) if goal.changes else SHOWN_CHANGES)]


_METHODS: tuple[Callable[[TimeGoal], TimeOption], ...] = (_lpu, _lbu, _lsp)


@dataclass(frozen=True)
class TimePlan:
    """The pick and what it was compared with, all of one guarantee."""

    goal: TimeGoal
    pick: TimeOption
    options: tuple[TimeOption, ...]
    reason: str


def plan_time(goal: TimeGoal) -> TimePlan:
    """Compare the ways to keep the goal's guarantee; the pick answers about every window, with the least error."""
    options = [method(goal) for method in _METHODS] if goal.run > 1 else [_lpu(goal)]
    trees = _trees(goal)
    # What is held between two reports is no answer about a window, so lsp is shown and not picked; a tree is picked
    # only where somebody vouches for the number of changes, since more of them bias its answers.
    fresh = [option for option in options if option.rmse_online is not None]
    picked_from: list[TimeOption] = [*fresh, *(trees if goal.changes else [])]
    pick = min(picked_from, key=lambda option: option.rmse)
    shown = tuple(sorted([*options, *trees], key=lambda option: option.rmse))
    return TimePlan(goal, pick, shown, _reason(goal, pick, fresh, trees))


def _reason(goal: TimeGoal, pick: TimeOption, fresh: list[TimeOption], trees: list[TimeOption]) -> str:
    unit = f"{goal.every}s"
    kept = {
        "run": f"epsilon {goal.epsilon} for any {goal.run} {unit} in a row",
        "event": f"epsilon {goal.epsilon} for any one {goal.every}, and that times {goal.windows} for all",
        "lifetime": f"epsilon {goal.epsilon} for all {goal.windows} {unit} together",
    }[goal.guarantee]
    other = max(option.rmse for option in fresh)
    gain = f", {(other / pick.rmse) ** 2:.1f} times less variance than splitting epsilon" if len(fresh) > 1 else ""
    said = f"{pick.method} with {pick.mechanism.kind}: {pick.words}{gain}; all options here keep {kept}"
    if pick.rmse_online is None:
        return f"{said}. Devices that change more often are taken for constant, which biases the share"
    smoothed = (
        f"Smoothed online the error is {pick.rmse_online:.2g} if the share drifts by {goal.drift:g} per {goal.every}"
    )
    return f"{said}. {smoothed}{_hint(goal, pick, trees)}"


def _hint(goal: TimeGoal, pick: TimeOption, trees: list[TimeOption]) -> str:
    """Say which tree would have less error, where nobody told how often answers change."""
    better = [option for option in trees if option.rmse < pick.rmse]
    if goal.changes or not better:
        return ""
    return (
        f". {better[-1].method} would have {better[-1].rmse:.2g}, unsmoothed, if states change so rarely: say --changes"
    )
