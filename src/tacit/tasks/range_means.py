"""The task `range_means`: the mean of a private number within ranges of a private key.

The number is rounded to an end of its grid by a coin on the device (see `tacit.device.rounded`), and the pair of key
node and end is reported; sums of the two ends over a range give the mean. It is a ratio, whose interval is that of its
first-order terms; none is stated where the range might be empty. Kulkarni's dissertation, section 7.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from tacit.core.compose import OneOf, PerMember
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism
from tacit.core.normal import normal_isf
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.device.grid import Grid
from tacit.device.product import Product
from tacit.device.reals import Integers
from tacit.errors import InvalidSpec
from tacit.numeric.rounded import Rounded
from tacit.post.grid import GridFit, fit_grid
from tacit.tasks.grid_plan import GridOption, GridPlanner, grid_of
from tacit.tasks.grid_task import check_ordered, ends_of
from tacit.tasks.rectangles import levels_of
from tacit.tasks.task import Answer, Forecast, Part, Query, Task

LEAST_MASS = 4.0
"""A range's share must exceed this many standard errors for its mean to be stated."""


@dataclass(frozen=True)
class RangeMean:
    """A mean with its variance, and the share of the range; the mean is None where the range might be empty."""

    mean: float | None
    variance: float
    share: float
    share_variance: float

    def interval(self, level: float, low: float, high: float) -> tuple[float, float]:
        """A normal interval within the ends of the numbers; all of it where nothing is known."""
        if self.mean is None:
            return low, high
        half = normal_isf((1 - level) / 2) * sqrt(self.variance)
        return max(low, self.mean - half), min(high, self.mean + half)


def is_empty(share: float, variance: float) -> bool:
    """Whether a range's share is too close to zero, for its error, to divide by."""
    return not np.isfinite(variance) or share <= LEAST_MASS * sqrt(variance)


@dataclass(frozen=True, eq=False)
class RangeMeans:
    """Means of a private number on the grid 0 .. 1 within ranges of keys."""

    fit: GridFit
    n: int

    def mean(self, low: int, high: int) -> RangeMean:
        """The mean of the numbers of keys low .. high, both included.

        The first-order error of up/all is (up - mean all)/all; rounding adds at most mean (1 - mean)/(all n), which
        is exact where the numbers of the range are all alike.
        """
        keys = self.fit.shape.sizes[0]
        if not 0 <= low <= high < keys:
            raise InvalidSpec(f"mean: keys must be from 0 to {keys - 1}, the lower one first")
        every, up = (self.fit.shape.corner((low, side), (high, 1)) for side in (0, 1))
        share, share_variance = float(every @ self.fit.leaves), float(self.fit.linear(every[None, :])[0])
        if self.n == 0 or is_empty(share, share_variance):
            return RangeMean(None, np.inf, share, share_variance)
        mean = float(up @ self.fit.leaves) / share
        inside = min(max(mean, 0.0), 1.0)
        noise = float(self.fit.linear((up - mean * every)[None, :])[0]) / share**2
        rounding = inside * (1 - inside) / (share * self.fit.respondents)
        return RangeMean(mean, noise + rounding, share, share_variance)


def solve_range_means(mechanism: Mechanism, tally: Any, *, respondents: int | None = None) -> RangeMeans:
    """The answers that a tally of one of the rounded members of a grid holds."""
    if not (isinstance(mechanism, OneOf) and isinstance(mechanism.family, Grid) and isinstance(tally, PerMember)):
        raise InvalidSpec(f"range_means: {mechanism.kind} does not answer them; plan the question with this task")
    sizes, fanouts = mechanism.family.sizes, mechanism.family.fanouts
    everybody = float(tally.n if respondents is None else respondents)
    found = levels_of(mechanism, tally)
    return RangeMeans(fit_grid((sizes[0], 2), (fanouts[0], 2), found, respondents=everybody), tally.n)


@lru_cache(maxsize=4)
def _options(keys: int, budget: Budget, n: int) -> list[GridOption]:
    return GridPlanner((keys, 2), 1).options(budget, n)


def plan_range_means(keys: int, top: int, budget: Budget, n: int) -> OneOf:
    """One of the levels of the keys, each with the rounded number."""
    pick = _options(keys, budget, n)[0]
    members = [Rounded(top=top, inner=oracle) for oracle in pick.oracles]
    shape = type(pick.shape)((keys, top + 1), (pick.shape.fanouts[0], 2))
    return grid_of(shape, pick.heights, members, pick.weights)


def _pair(domain: Domain) -> tuple[Any, Integers]:
    """The key and the number of a question."""
    attributes = domain.attributes if isinstance(domain, Product) else ()
    if len(attributes) != 2 or not isinstance(attributes[1], Integers):
        raise InvalidSpec("range_means: the domain must be a product of an ordered key and an integer number")
    check_ordered(attributes[0])
    return attributes[0], attributes[1]


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    key, number = _pair(domain)
    return plan_range_means(key.size, number.size - 1, budget, n)


def _solved(part: Part) -> RangeMeans:
    return solve_range_means(part.mechanism, part.tally, respondents=part.respondents)


def _answer(domain: Domain, part: Part) -> Answer:
    """The overall mean; ranges are asked for one by one."""
    key, number = _pair(domain)
    found = _solved(part).mean(0, key.size - 1)
    if found.mean is None:
        return Answer("value", no_data(1, ["mean"]), None, "none")
    low, width = float(number.low), float(number.step) * (number.size - 1)
    value = Estimate(
        np.array([low + width * found.mean]),
        np.array([width**2 * found.variance]),
        part.tally.n,
        labels=["mean"],
        effective=float(part.respondents),
        spread=np.zeros(1),
    )
    return Answer("value", value, None, "none")


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    key, number = _pair(domain)
    pick = _options(key.size, mechanism.budget, n)[0]
    width = float(number.step) * (number.size - 1)
    why = f"{pick.name} has the least expected error over all ranges of the key"
    return Forecast(width * sqrt(pick.error / n), "the sum over a range of the key, per respondent", why)


def _mean(domain: Domain, part: Part, given: Mapping[str, str], level: float) -> dict[str, Any]:
    key, number = _pair(domain)
    low, high = (ends_of((key,), given, name, [at])[0] for name, at in (("low", 0), ("high", key.size - 1)))
    if low > high:
        raise InvalidSpec("mean: low is above high; give the lower end first")
    found = _solved(part).mean(low, high)
    first, width = float(number.low), float(number.step) * (number.size - 1)
    ends = found.interval(level, 0.0, 1.0)
    stated = found.mean is not None
    mean = {
        "estimate": None if found.mean is None else first + width * found.mean,
        "standard_error": width * sqrt(found.variance) if stated else None,
        "low": first + width * ends[0],
        "high": first + width * ends[1],
    }
    error = sqrt(found.share_variance) if np.isfinite(found.share_variance) else None
    share = {"estimate": found.share if part.tally.n else None, "standard_error": error}
    return {"from": key.decode(low), "to": key.decode(high), "mean": mean, "share": share}


RANGE_MEANS = Task(
    "range_means",
    _plan,
    _answer,
    _forecast,
    (
        Query("mean", "The mean of the number within a range of the key, both ends included.",
              {"low": "the lowest key, the first one if absent", "high": "the highest key"}, _mean),
    ),
)  # fmt: skip
