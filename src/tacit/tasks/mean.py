"""The task `mean`: the mean of an integer question.

The mechanism works on the grid 0 .. top; answers are mapped back to the question's numbers, low + step * grid.
"""

from dataclasses import replace
from typing import cast

from tacit.core.mechanism import Mechanism
from tacit.core.statistics.score import Law
from tacit.device.domains.domain import Domain
from tacit.device.domains.reals import Integers
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec
from tacit.numeric.mean import OneBit
from tacit.tasks.task import Answer, Forecast, QuestionTally, QuestionTask, largest_step


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    del n
    if not isinstance(domain, Integers):
        raise InvalidSpec(f"mean: the domain is {domain.kind}, must be integers; bucket other numbers first")
    return OneBit(top=domain.size - 1, epsilon=budget)


def _answer(domain: Domain, part: QuestionTally) -> Answer:
    """Return the mean in the question's units; no consistent version, since a mean has nothing to agree with."""
    assert isinstance(domain, Integers)
    estimate = part.estimate()
    step, spread = float(domain.step), estimate.spread
    # An affine map: the low end moves the value only, the step scales standard errors and hence variances by step^2.
    scaled = replace(
        estimate,
        value=float(domain.low) + step * estimate.value,
        variance=step**2 * estimate.variance,
        spread=None if spread is None else step**2 * spread,
        labels=["mean"],
        law=None if estimate.law is None else _moved(estimate.law, float(domain.low), step),
    )
    return Answer("value", scaled if estimate.has_data else estimate, None, "none", reach=largest_step(scaled))


def _moved(law: Law, low: float, step: float) -> Law:
    """Return the variance law of a mean on the grid, rescaled to the question's numbers."""
    return replace(law, low=low + step * law.low, high=low + step * law.high)


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    assert isinstance(domain, Integers)
    return Forecast(float(domain.step) * cast("OneBit", mechanism).standard_error(n), "the mean")


MEAN = QuestionTask("mean", _plan, _answer, _forecast)
