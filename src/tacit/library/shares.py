"""`tacit.histogram` and `tacit.mean`: the share of every label, and the mean of a number."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tacit.device.arguments import explained
from tacit.device.domains.domain import Domain
from tacit.device.domains.reals import Integers
from tacit.device.numbers.budget import Declared
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.library.columns import Column, column_of
from tacit.library.domains import Scope, end_number, name_scope, read_ends
from tacit.library.finding import Ends, Finding
from tacit.library.inquiry import RESPONDENTS, Inquiry, checked_epsilon, respondents
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.mean import MEAN
from tacit.tasks.task import Answer, QuestionTally, QuestionTask

STEPS = 10_000
"""A mean rounds its numbers to so many steps from low to high, or more: far finer than any noise."""


def plan_single(task: QuestionTask, who: str, scope: Scope, epsilon: Declared | None, n: int, **fields: Any) -> Inquiry:
    """An inquiry of one question, planned by its task."""
    mechanism = task.plan(scope.domain, checked_epsilon(who, epsilon), n)
    return Inquiry(who, mechanism, (scope,), n, predict=partial(task.forecast, scope.domain), **fields)


def task_answer(task: QuestionTask, inquiry: Inquiry, tally: Any) -> Answer:
    """The answer of the task itself, as a collector would give it."""
    return task.answer(inquiry.scopes[0].domain, QuestionTally(inquiry.mechanism, tally, tally.n))


def _name(scope: Scope) -> str:
    return str(getattr(scope.domain, "name", "value"))


def _shares(inquiry: Inquiry, tally: Any) -> Finding:
    answer, scope = task_answer(HISTOGRAM, inquiry, tally), inquiry.scopes[0]
    labels = scope.all_labels()
    raw = replace(answer.raw, labels=labels)
    return Finding(inquiry, tally, (_name(scope),), labels, raw.value, raw.interval, "share", raw, answer.consistent)


@explained
def ask_histogram(
    column: Column | None = None, *, epsilon: Declared | None = None, n: int = RESPONDENTS, domain: Any = None,
    missing: str | None = None, name: str = "value",
) -> Inquiry:  # fmt: skip
    """Plan the shares of labels."""
    scope = name_scope("histogram", name, domain, column, missing, ordered=False)
    count = respondents("histogram", n, column)
    return plan_single(HISTOGRAM, "histogram", scope, epsilon, count, find=_shares)


@explained
def histogram(
    values: Any, epsilon: Declared | None = None, *, domain: Any = None, missing: str | None = None,
    name: str = "value", coins: Coins | None = None,
) -> Finding:  # fmt: skip
    """Return the share of every label, each value perturbed at `epsilon` before it is counted.

    Values are labels: text, whole numbers, booleans, dates or categories, in a list, an array or a Series. `domain`
    lists the labels there may be; without it they are read off the values, which is a simulation. `missing` is the
    label of missing values, which are refused otherwise.

    >>> found = histogram(["yes", "no", "yes"] * 10_000, epsilon=1, domain=["yes", "no"])
    >>> low, high = found.interval(0.999999)
    >>> bool(low[0] < 2 / 3 < high[0]), found.mechanism.kind
    (True, 'grr')
    """
    column = column_of("histogram", values)
    inquiry = ask_histogram(column, epsilon=epsilon, domain=domain, missing=missing, name=name)
    return inquiry.simulate((column,), coins)


def _mean(inquiry: Inquiry, tally: Any) -> Finding:
    """The mean in the units of the values: on the grid they are multiples of the last decimal."""
    raw = task_answer(MEAN, inquiry, tally).raw
    scale = 10.0**-inquiry.decimals
    told = raw.combine(np.array([[scale]]))

    def ends(level: float) -> Ends:
        low, high = raw.interval(level)
        return scale * float(low[0]), scale * float(high[0])

    value = scale * float(raw.value[0]) if raw.has_data else float("nan")
    return Finding(inquiry, tally, ("of",), [_name(inquiry.scopes[0])], value, ends, "mean", told)


def _mean_scope(name: str, domain: Any, column: Column | None, low: Any, high: Any) -> tuple[Scope, int]:
    """The grid that numbers are rounded to, and its decimals; both follow from low and high alone."""
    if isinstance(domain, Domain):
        return Scope(domain, True), 0
    if domain is not None:
        raise InvalidSpec("mean: domain must be tacit.Integers(name, low, high); or write low and high instead")
    if column is not None and any(isinstance(item, bool) for item in column.items):
        raise InvalidValue(
            "mean: values are booleans, whose mean is the share of True; write tacit.histogram(values, epsilon), or "
            "make them the numbers 0 and 1"
        )
    ends = read_ends("mean", column, low, high)
    first, last = (end_number("mean", end) for end in ends)
    if not first < last:
        raise InvalidSpec(f"mean: low is {low}, high is {high}; low must be below high")
    decimals = next(places for places in range(20) if (last - first) * 10**places >= STEPS)
    scope = Scope(Integers(name, round(first * 10**decimals), round(last * 10**decimals)), None not in (low, high))
    return scope, decimals


@explained
def ask_mean(
    column: Column | None = None, *, epsilon: Declared | None = None, n: int = RESPONDENTS, low: Any = None,
    high: Any = None, domain: Any = None, name: str = "value",
) -> Inquiry:  # fmt: skip
    """Plan the mean of numbers from low to high."""
    scope, decimals = _mean_scope(name, domain, column, low, high)
    inquiry = plan_single(MEAN, "mean", scope, epsilon, respondents("mean", n, column), find=_mean, decimals=decimals)

    def predict(mechanism: Any, count: int) -> Any:
        told = MEAN.forecast(scope.domain, mechanism, count)
        return replace(told, standard_error=told.standard_error * 10.0**-decimals)

    return replace(inquiry, predict=predict)


@explained
def mean(
    values: Any, epsilon: Declared | None = None, *, low: Any = None, high: Any = None, domain: Any = None,
    name: str = "value", coins: Coins | None = None,
) -> Finding:  # fmt: skip
    """Return the mean of numbers from `low` to `high`, each reported as one noisy bit.

    Numbers outside are refused: clip them. They are rounded to a ten-thousandth of the range. `value` is a float.

    >>> found = mean([30, 50, 70] * 20_000, epsilon=1, low=0, high=100)
    >>> low, high = found.interval()
    >>> 45 < low < found.value < high < 55
    True
    """
    column = column_of("mean", values)
    inquiry = ask_mean(column, epsilon=epsilon, low=low, high=high, domain=domain, name=name)
    return inquiry.simulate((column,), coins)
