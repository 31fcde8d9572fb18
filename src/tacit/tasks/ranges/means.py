"""The task `range_means`: the mean of a private number within ranges of a private key.

The number is rounded to an end of its grid by a coin on the device (see `device.kinds.rounded`), and the pair of key
node and end is reported; sums of the two ends over a range give the mean. It is a ratio, whose interval is that of its
first-order terms; none is stated where the range might be empty. Kulkarni's dissertation, section 7.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any, cast

import numpy as np

from tacit.core.asked import AskedLevels, asked_levels
from tacit.core.compose import OneOf
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism
from tacit.core.statistics.normal import normal_isf
from tacit.device.domains.domain import Domain
from tacit.device.domains.product import Product
from tacit.device.domains.reals import Integers
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec
from tacit.numeric.rounded import Rounded
from tacit.post.grids.grid import GridFit, fit_grid
from tacit.post.grids.shape import GridShape
from tacit.tasks.ranges.grid_plan import GridOption, GridPlanner, grid_of
from tacit.tasks.ranges.grid_task import check_ordered, ends_of
from tacit.tasks.ranges.rectangles import levels_of
from tacit.tasks.task import UNPLANNED, Answer, Forecast, QuestionTally, QuestionTask, TaskQuery

LEAST_MASS = 4.0
"""A range's share must exceed this many standard errors for its mean to be stated."""


@dataclass(frozen=True)
class RangeMean:
    """The mean within a range and the range's share, with variances; the mean is None if the range might be empty."""

    mean: float | None
    variance: float
    share: float
    share_variance: float

    def interval(self, level: float, low: float, high: float) -> tuple[float, float]:
        """Return a normal interval clipped to [low, high]; all of it where the mean is not known."""
        if self.mean is None:
            return low, high
        half = normal_isf((1 - level) / 2) * sqrt(self.variance)
        return max(low, self.mean - half), min(high, self.mean + half)


def is_empty(share: float, variance: float) -> bool:
    """Return whether a range's share is too close to zero, in standard errors, to divide by."""
    return not np.isfinite(variance) or share <= LEAST_MASS * sqrt(variance)


@dataclass(frozen=True, eq=False)
class RangeMeans:
    """Means of a private number on the grid 0 .. 1 within ranges of keys."""

    fit: GridFit
    n: int

    def mean(self, low: int, high: int) -> RangeMean:
        """Return the mean of the numbers of keys low .. high, both included, by the delta method for a ratio.

        The first-order error of up/all is (up - mean all)/all; rounding adds at most mean (1 - mean)/(all n), which
        is exact where the numbers of the range are all alike.
        """
        keys = self.fit.shape.sizes[0]
        if not 0 <= low <= high < keys:
            raise InvalidSpec(f"mean: keys must be from 0 to {keys - 1}, the lower one first")
        # Cells are (key, end of the number's grid): `every` counts both ends in the range, `up` only the upper ones.
        every, up = (self.fit.shape.corner((low, side), (high, 1)) for side in (0, 1))
        share, share_variance = float(every @ self.fit.leaves), float(self.fit.linear(every[None, :])[0])
        if self.n == 0 or is_empty(share, share_variance):
            return RangeMean(None, np.inf, share, share_variance)
        mean = float(up @ self.fit.leaves) / share
        inside = min(max(mean, 0.0), 1.0)
        noise = float(self.fit.linear((up - mean * every)[None, :])[0]) / share**2
        rounding = inside * (1 - inside) / (share * self.fit.respondents)
        return RangeMean(mean, noise + rounding, share, share_variance)


def _asked(mechanism: Mechanism) -> AskedLevels:
    asked = asked_levels(mechanism)
    if asked is None or len(asked.sizes) != 2:
        raise InvalidSpec(f"range_means: {mechanism.kind} does not answer them; plan the question with this task")
    return asked


def solve_range_means(mechanism: Mechanism, tally: Any, *, respondents: int | None = None) -> RangeMeans:
    """The answers that a tally of one of the rounded members of a grid holds."""
    asked = _asked(mechanism)
    everybody = float(tally.n if respondents is None else respondents)
    # The numbers are rounded to one of two ends on the device, so their tree has two leaves whatever its size was.
    shape = (asked.sizes[0], 2), (asked.fanouts[0], 2)
    return RangeMeans(fit_grid(*shape, levels_of(asked, tally), respondents=everybody), tally.n)


@lru_cache(maxsize=4)
def _options(keys: int, budget: Budget, n: int) -> list[GridOption]:
    return GridPlanner((keys, 2), 1).options(budget, n)


def plan_range_means(keys: int, top: int, budget: Budget, n: int) -> OneOf:
    """Return the mechanism that asks for one level of the key's tree, together with the rounded number."""
    pick = _options(keys, budget, n)[0]
    members = [Rounded(top=top, inner=oracle) for oracle in pick.oracles]
    shape = type(pick.shape)((keys, top + 1), (pick.shape.fanouts[0], 2))
    return grid_of(shape, pick.heights, members, pick.weights)


def _pair(domain: Domain) -> tuple[Any, Integers]:
    """Return the key and the number of a question; InvalidSpec for other domains."""
    attributes = domain.attributes if isinstance(domain, Product) else ()
    if len(attributes) != 2 or not isinstance(attributes[1], Integers):
        raise InvalidSpec("range_means: the domain must be a product of an ordered key and an integer number")
    check_ordered(attributes[0])
    return attributes[0], attributes[1]


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    key, number = _pair(domain)
    return plan_range_means(key.size, number.size - 1, budget, n)


def _solved(part: QuestionTally) -> RangeMeans:
    return solve_range_means(part.mechanism, part.tally, respondents=part.respondents)


def _answer(domain: Domain, part: QuestionTally) -> Answer:
    """Return the overall mean; means within ranges come from the query `mean`."""
    key, number = _pair(domain)
    overall = _solved(part).mean(0, key.size - 1)
    if overall.mean is None:
        return Answer("value", no_data(1, ["mean"]), None, "none")
    # Back from the grid 0 .. 1 to the question's numbers.
    low, width = float(number.low), float(number.step) * (number.size - 1)
    value = Estimate(
        np.array([low + width * overall.mean]),
        np.array([width**2 * overall.variance]),
        part.tally.n,
        labels=["mean"],
        effective=float(part.respondents),
        spread=np.zeros(1),
    )
    return Answer("value", value, None, "none")


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    """Return the expected error of a sum over a range; that of a mean depends on the range's share."""
    key, number = _pair(domain)
    pick, why = _options(key.size, mechanism.budget, n)[0], UNPLANNED
    if mechanism == _plan(domain, mechanism.budget, n):
        why = f"{pick.name} has the least expected error over all ranges of the key"
    else:
        pick = _published(key.size, mechanism, n)
    width = float(number.step) * (number.size - 1)
    return Forecast(width * sqrt(pick.error / n), "the sum over a range of the key, per respondent", why)


def _published(keys: int, mechanism: Mechanism, n: int) -> GridOption:
    """Return a mechanism that would not be planned now as an option: the forecast is about what is published."""
    asked = _asked(mechanism)
    oracles = [cast("Rounded", member).inner for member in asked.members]
    shape = GridShape((keys, 2), (asked.fanouts[0], 2))
    return GridPlanner((keys, 2), 1).priced(shape, asked.heights, oracles, asked.shares, n)


def _mean(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `mean`: the mean within a range of the key, with the range's share; None where it might be empty."""
    key, number = _pair(domain)
    low, high = (ends_of((key,), given, name, [at])[0] for name, at in (("low", 0), ("high", key.size - 1)))
    if low > high:
        raise InvalidSpec("mean: low is above high; give the lower end first")
    within = _solved(part).mean(low, high)
    first, width = float(number.low), float(number.step) * (number.size - 1)
    ends = within.interval(level, 0.0, 1.0)
    stated = within.mean is not None
    mean = {
        "estimate": None if within.mean is None else first + width * within.mean,
        "standard_error": width * sqrt(within.variance) if stated else None,
        "low": first + width * ends[0],
        "high": first + width * ends[1],
    }
    error = sqrt(within.share_variance) if np.isfinite(within.share_variance) else None
    share = {"estimate": within.share if part.tally.n else None, "standard_error": error}
    return {"from": key.decode(low), "to": key.decode(high), "mean": mean, "share": share}


RANGE_MEANS = QuestionTask(
    "range_means",
    _plan,
    _answer,
    _forecast,
    (
        TaskQuery("mean", "The mean of the number within a range of the key, both ends included.",
              {"low": "the lowest key, the first one if absent", "high": "the highest key"}, _mean),
    ),
)  # fmt: skip
