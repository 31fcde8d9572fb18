"""Plans for heavy hitters side by side, one per number of groups, with a sentence on what the best can find."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from tacit.device.domains.domain import Domain
from tacit.device.numbers.budget import Declared
from tacit.tasks.hitters.forecast import ReferenceValues, forecast_f1, usual_references
from tacit.tasks.hitters.plan import MOST_EVALUATIONS, HittersPlan, plan_pem
from tacit.tasks.hitters.spelling import spelling_of, values_below

_AROUND = 3
"""Numbers of groups compared on either side of the best."""


@dataclass(frozen=True)
class HittersOption:
    """A plan with the columns that planners print."""

    plan: HittersPlan

    @property
    def name(self) -> str:
        """The method and the number of groups, such as pem g=6."""
        return f"pem g={len(self.plan.lengths)}"

    @property
    def rmse(self) -> float:
        """The standard error of the share of a value that is found, by the last group alone."""
        return sqrt(self.plan.oracle.variance_at_zero / max(1.0, self.plan.group_sizes[-1]))

    def to_row(self) -> dict[str, Any]:
        """The option in plain numbers; a share that cannot be detected at all is None."""
        row = dict(self.plan.to_row())
        for name in ("detectable_share", "surely_detectable_share", "certified_share"):
            share: Any = row[name]
            row[name] = share if share <= 1 else None
        return {"method": "pem", "rmse": self.rmse, "server_operations": row.pop("evaluations")} | row


def hitters_options(
    *, epsilon: Declared, n: int, k: int, size: int | None = None, domain: Domain | None = None,
    reference: ReferenceValues | None = None, simulated: bool = True,
) -> tuple[list[HittersOption], str]:  # fmt: skip
    """Return plans, smallest detectable share first, and a sentence about the best.

    They are over the values of a domain, whose texts share beginnings, or over `size` values without structure. With a
    `reference` its F1 score is forecast, without one those of several supposed populations, if `simulated`.
    """
    spelling = spelling_of(domain) if domain is not None else values_below(size)
    best = plan_pem(spelling, epsilon=epsilon, n=n, k=k)
    groups = len(best.lengths)
    # Neighbours of the best number of groups show how flat the optimum is.
    others = range(max(1, groups - _AROUND), min(64, spelling.digits, groups + _AROUND) + 1)
    plans = [plan_pem(spelling, epsilon=epsilon, n=n, k=k, groups=count) for count in others if count != groups]
    affordable = [plan for plan in plans if plan.evaluations <= MOST_EVALUATIONS]
    ranked = [best, *sorted(affordable, key=lambda plan: plan.detectable())]
    options = [HittersOption(plan) for plan in ranked]
    expected = f" {_expected_words(best, k, reference)}" if simulated else ""
    return options, f"pem g={groups}. {detectable_words(best)}{expected}"


def _expected_words(plan: HittersPlan, k: int, reference: ReferenceValues | None) -> str:
    """Say how many of the k most frequent values will be found, by simulated walks."""
    supposed = usual_references(plan.spelling, k) if reference is None else (reference,)
    scores = ", ".join(f"{forecast_f1(plan, one, k=k, walks=2):.2f} ({one.name})" for one in supposed)
    doubt = "" if reference else "; give --words (and --shares) for a forecast of your data"
    return f"Of the {k} most frequent values this share is expected to be found: {scores}{doubt}."


def detectable_words(plan: HittersPlan) -> str:
    """Say in a sentence which shares a plan detects."""
    half, sure = plan.detectable(0.5), plan.detectable(0.9)
    if half > 1:
        return "With so few respondents and this epsilon no share can be detected."
    surely = f"from {_percent(sure)} on nine times out of ten" if sure <= 1 else "none of them surely"
    return f"A value that {_percent(half)} hold is found every second time, {surely}. {_certified_words(plan)}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _certified_words(plan: HittersPlan) -> str:
    """Say in a sentence from which share on values are significant."""
    share = plan.certified(0.5)
    if share > 1:
        return "With so few respondents no value can be told from noise."
    return f"Every second value that {_percent(share)} hold also stands out from noise (5 %)."
