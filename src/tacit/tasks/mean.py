"""The task `mean`: the mean of an integer question."""

from dataclasses import replace
from typing import cast

from tacit.core.mechanism import Mechanism
from tacit.core.score import Law
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.device.reals import Integers
from tacit.errors import InvalidSpec
from tacit.numeric.mean import OneBit
from tacit.tasks.task import Answer, Forecast, Part, Task


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    del n
    if not isinstance(domain, Integers):
        raise InvalidSpec(f"mean: the domain is {domain.kind}, must be integers; bucket other numbers first")
    return OneBit(top=domain.size - 1, epsilon=budget)


def _answer(domain: Domain, part: Part) -> Answer:
    assert isinstance(domain, Integers)
    estimate = part.estimate()
    step, spread = float(domain.step), estimate.spread
    scaled = replace(
        estimate,
        value=float(domain.low) + step * estimate.value,
        variance=step**2 * estimate.variance,
        spread=None if spread is None else step**2 * spread,
        labels=["mean"],
        law=None if estimate.law is None else _moved(estimate.law, float(domain.low), step),
    )
    return Answer("value", scaled if estimate.has_data else estimate, None, "none")


def _moved(law: Law, low: float, step: float) -> Law:
    """The law of a mean on the grid as one of the mean of the question's numbers."""
    return replace(law, low=low + step * law.low, high=low + step * law.high)


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    assert isinstance(domain, Integers)
    return Forecast(float(domain.step) * cast("OneBit", mechanism).standard_error(n), "the mean")


MEAN = Task("mean", _plan, _answer, _forecast)
