"""The tasks `items` and `itemsets`: the most frequent items, or sets of items, of sets, round by round."""

from math import sqrt
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.device.items import Items
from tacit.errors import InvalidSpec
from tacit.oracles.sets import Padded, SetSize
from tacit.tasks.itemsets import Mining
from tacit.tasks.ldpminer import plan_steps
from tacit.tasks.plans import Result, Steps
from tacit.tasks.task import Answer, Forecast, Part, Task

F64 = npt.NDArray[np.float64]

DEFAULT_K = 32
"""How many items or itemsets are looked for unless told."""


def labels_of(domain: Domain, items: tuple[int, ...]) -> list[Any]:
    """A set of items as its labels."""
    assert isinstance(domain, Items)
    return [domain.labels[item] for item in items]


def answer_of(domain: Domain, result: Result, method: str) -> Answer:
    """What a plan found, as an answer: shares of the respondents whose set holds all the items."""
    if not result.rows:
        return Answer("share", no_data(0, []), None, method)
    raw = Estimate(
        np.array([row.frequency for row in result.rows]),
        np.array([row.standard_error**2 for row in result.rows]),
        result.respondents,
        labels=[labels_of(domain, row.items) for row in result.rows],
    )
    return Answer("share", raw, None, method)


def intervals_of(result: Result, level: float) -> tuple[F64, F64]:
    """The interval of every row; not symmetric, because it contains what sets beyond the padding length lost."""
    ends = np.array([row.bounds.interval(level) for row in result.rows]).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def _task(name: str, method: str) -> Task:
    def steps(domain: Domain, budget: Budget, k: int, respondents: int) -> Steps:
        if not isinstance(domain, Items):
            raise InvalidSpec(f"{name}: the domain is {domain.kind}, must be items: sets of labels")
        return plan_steps(method, Mining(budget, domain.size, k, respondents))

    def plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
        return next(steps(domain, budget, DEFAULT_K, n)).mechanism

    def answer(domain: Domain, part: Part) -> Answer:
        del domain, part
        return Answer("share", no_data(0, []), None, method)

    def forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
        first = next(steps(domain, mechanism.budget, DEFAULT_K, n))
        asked = max(1, round(n * first.share))
        if isinstance(mechanism, Padded):
            return Forecast(sqrt(mechanism.variance_at_zero / asked), "the share of one item in the first round")
        inner = cast("SetSize", mechanism).inner
        return Forecast(inner.standard_error(asked), "the share of one size of a set in the first round")

    return Task(name, plan, answer, forecast, steps=steps, method=method)


ITEMS = _task("items", "svim")
ITEMSETS = _task("itemsets", "svsm")
