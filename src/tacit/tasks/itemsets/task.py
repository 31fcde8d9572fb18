"""The tasks `items` (SVIM) and `itemsets` (SVSM): frequent items or itemsets of set-valued answers, round by round."""

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import cast

import numpy as np

from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism
from tacit.device.domains.domain import Domain
from tacit.device.domains.items import Items
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec
from tacit.oracles.sets import Padded, SetSize
from tacit.tasks.itemsets.itemsets import Mining, svim, svsm
from tacit.tasks.plans import PlanResult, Steps
from tacit.tasks.task import AdaptiveTask, Answer, Forecast

DEFAULT_K = 32
"""The number of items or itemsets that are looked for by default."""


def _answer(method: str, domain: Domain, result: PlanResult) -> Answer:
    """Return the shares of respondents whose set contains all the items of a row."""
    if not result.rows:
        return Answer("share", no_data(0, []), None, method)
    assert isinstance(domain, Items)
    # Only an overview: the rows' own intervals (`Bounds`) are asymmetric and adjusted for selection.
    raw = Estimate(
        np.array([row.frequency for row in result.rows]),
        np.array([row.standard_error**2 for row in result.rows]),
        result.respondents,
        labels=[[domain.labels[item] for item in row.items] for row in result.rows],
    )
    return Answer("share", raw, None, method)


def _task(name: str, method: str, begin: Callable[[Mining], Steps]) -> AdaptiveTask:
    """Return an adaptive task whose rounds are those of `begin` (SVIM or SVSM)."""

    def steps(domain: Domain, budget: Budget, k: int, respondents: int) -> Steps:
        if not isinstance(domain, Items):
            raise InvalidSpec(f"{name}: the domain is {domain.kind}, must be items: sets of labels")
        return begin(Mining(budget, domain.size, k, respondents))

    def forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
        # Starting the generator runs the plan up to its first question without asking anybody.
        first = next(steps(domain, mechanism.budget, DEFAULT_K, n))
        respondents = max(1, round(n * first.share))
        # With few items no round prunes them: the plan begins by asking for the sizes of sets.
        if isinstance(mechanism, Padded):
            return Forecast(sqrt(mechanism.variance_at_zero / respondents), "the share of one item in the first round")
        inner = cast("SetSize", mechanism).inner
        return Forecast(inner.standard_error(respondents), "the share of one size of a set in the first round")

    return AdaptiveTask(name, method, steps, partial(_answer, method), forecast)


ITEMS = _task("items", "svim", svim)
ITEMSETS = _task("itemsets", "svsm", svsm)
