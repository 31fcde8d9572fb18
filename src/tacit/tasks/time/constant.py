"""Plan rounds of answers that hardly ever change: memoised and layered kinds, compared by level and by difference.

Their guarantee is conditional and has no number for life, so that they stand in a table of their own: what is compared
keeps epsilon for any number of reports on one unchanged answer (docs/maths/layered.md). Kinds with few permanent
answers alone, as memoised unary reports are names of devices.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any, cast

from tacit.core.mechanism import Mechanism, Oracle
from tacit.errors import InvalidSpec
from tacit.numeric.layered import LayeredMemo
from tacit.numeric.memo import Memoized
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.tasks.time.plan import FREQUENCY

MOST_VALUES = 2
"""Different answers that a device of a planned mechanism gives, before it repeats the last one."""


@dataclass(frozen=True, kw_only=True)
class ConstantGoal:
    """What is asked: a domain, a crowd, the epsilon of an answer that stays, and how many stay between rounds."""

    size: int
    n: int
    epsilon: str
    unchanged: float
    first: str | None = None
    """The epsilon of a single report, where fresh noise is to hide changes for a while; else that of an answer."""
    frequency: float = FREQUENCY

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        if not 0 <= self.unchanged <= 1 or not 0 <= self.frequency <= 1:
            raise InvalidSpec("unchanged and frequency must be shares, from 0 to 1")


@dataclass(frozen=True)
class ConstantOption:
    """One mechanism, and its errors in one round and between two."""

    mechanism: Memoized | LayeredMemo
    one_report: str
    """The epsilon of a single report."""
    rmse: float
    rmse_difference: float
    """Of two rounds of the same devices, if as many answers stay as stated."""

    @property
    def name(self) -> str:
        """The kind and what it holds, such as "layered hrr"."""
        return f"{self.mechanism.kind} {self.mechanism.inner.kind}"

    def to_row(self) -> dict[str, Any]:
        """Plain numbers for JSON and tables."""
        about = {"option": self.name, "one_report": self.one_report, "rmse": self.rmse}
        return about | {"rmse_difference": self.rmse_difference, "report_bits": self.mechanism.report_bits}


@dataclass(frozen=True)
class ConstantPlan:
    """The pick, what it was compared with, and what all of them keep."""

    pick: ConstantOption
    options: tuple[ConstantOption, ...]
    guarantee: str
    reason: str


def plan_constant(goal: ConstantGoal) -> ConstantPlan:
    """Compare kinds at the epsilon of an answer that stays; the pick follows differences with the least error."""
    values, rows = GRR(size=goal.size, epsilon=goal.epsilon), HRR(size=goal.size, epsilon=goal.epsilon)
    if goal.first is None:
        options = [_memo(goal, values)]
    else:
        options = [_layered(goal, goal.first, inner) for inner in (values, rows)]
    options.sort(key=lambda option: option.rmse_difference)
    pick = options[0]
    kept = (
        f"epsilon {goal.epsilon} for any number of reports while an answer stays, {pick.one_report} for a single one; "
        "every new answer costs epsilon again, and there is no number for life"
    )
    reason = (
        f"{pick.name}: the difference of two rounds has the error {pick.rmse_difference:.2g} if {goal.unchanged:g} of "
        f"answers stay. That share is an assumption: without it a difference has {sqrt(2) * pick.rmse:.2g}. For the "
        "library: documents with windows ask with population division (--run)"
    )
    return ConstantPlan(pick, tuple(options), kept, reason)


def _memo(goal: ConstantGoal, inner: GRR) -> ConstantOption:
    mechanism = Memoized(inner=inner, most_values=MOST_VALUES)
    level = _variance(inner, goal)
    return ConstantOption(mechanism, goal.epsilon, sqrt(level), sqrt(2 * (1 - goal.unchanged) * level))


def _layered(goal: ConstantGoal, first: str, inner: GRR | HRR) -> ConstantOption:
    mechanism = LayeredMemo(inner=inner, first=first, most_values=MOST_VALUES)
    level, repeated = _variance(mechanism.sends, goal), _variance(inner, goal)
    changed = (1 - goal.unchanged) * mechanism.changed_covariance / goal.n
    return ConstantOption(
        mechanism, first, sqrt(level), sqrt(max(0.0, 2 * (level - goal.unchanged * repeated - changed)))
    )


def _variance(mechanism: Mechanism, goal: ConstantGoal) -> float:
    """The variance of one round about its respondents."""
    moments = cast("Oracle", mechanism).moments
    return (moments.other + goal.frequency * (moments.own - moments.other)) / goal.n
