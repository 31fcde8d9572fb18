"""Tasks: how one question of a collection is planned before and answered after. One explicit tuple, no registration."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.device.reals import Integers
from tacit.errors import InvalidSpec
from tacit.numeric.mean import OneBit
from tacit.post.simplex import norm_sub
from tacit.tasks.choose import choose_oracle


@dataclass(frozen=True)
class Answer:
    """The answer to one question: raw and unbiased, and (where it exists) made consistent, which is biased."""

    unit: str
    raw: Estimate
    consistent: Estimate | None
    method: str


@dataclass(frozen=True)
class Task:
    """What a question asks for: how it is planned for about n respondents, and how an estimate answers it."""

    name: str
    plan: Callable[[Domain, Budget, int], Mechanism]
    answer: Callable[[Domain, Estimate], Answer]


def _plan_histogram(domain: Domain, budget: Budget, n: int) -> Mechanism:
    return choose_oracle(size=domain.size, epsilon=budget, n=n).pick.mechanism


def _answer_histogram(domain: Domain, estimate: Estimate) -> Answer:
    labelled = replace(estimate, labels=domain.all_labels())
    return Answer("share", labelled, norm_sub(labelled), "norm_sub")


def _plan_mean(domain: Domain, budget: Budget, n: int) -> Mechanism:
    del n
    if not isinstance(domain, Integers):
        raise InvalidSpec(f"mean: the domain is {domain.kind}, must be integers; bucket other numbers first")
    return OneBit(top=domain.size - 1, epsilon=budget)


def _answer_mean(domain: Domain, estimate: Estimate) -> Answer:
    assert isinstance(domain, Integers)
    step, spread = float(domain.step), estimate.spread
    scaled = replace(
        estimate,
        value=float(domain.low) + step * estimate.value,
        variance=step**2 * estimate.variance,
        spread=None if spread is None else step**2 * spread,
        labels=["mean"],
    )
    return Answer("value", scaled if estimate.has_data else estimate, None, "none")


HISTOGRAM = Task("histogram", _plan_histogram, _answer_histogram)
MEAN = Task("mean", _plan_mean, _answer_mean)

TASKS: tuple[Task, ...] = (HISTOGRAM, MEAN)
"""Every task a question may name."""


def find_task(name: str, tasks: tuple[Task, ...] = TASKS) -> Task:
    """The task of a name, or InvalidSpec naming what is known."""
    for task in tasks:
        if task.name == name:
            return task
    raise InvalidSpec(f"task is {str(name)[:40]!r}, must be one of {', '.join(task.name for task in tasks)}")
