"""The task `ranges`: any range, prefix or quantile of an ordered question; of several attributes, any rectangle.

Plan, forecast, answer and the queries of the HTTP interface and the command line. The statistics are in
`ranges.ranges` (one attribute) and `ranges.rectangles` (several); handlers here parse text and return plain JSON.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tacit.core.mechanism import Mechanism
from tacit.device.domains.domain import Domain
from tacit.device.domains.product import Product
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec, InvalidValue
from tacit.numeric.square_wave import SquareWave
from tacit.post.frequencies.methods import Processed
from tacit.post.trees.levels import TreeShape
from tacit.tasks.ranges.auc import auc_of_labels, auc_of_two
from tacit.tasks.ranges.error import Workload
from tacit.tasks.ranges.forecast import forecast_monotone
from tacit.tasks.ranges.grid_task import (
    RECTANGLE,
    answer_grid,
    check_grid,
    check_ordered,
    forecast_grid,
    plan_grid,
    whole_grid,
)
from tacit.tasks.ranges.options import RangeOption, expected_error
from tacit.tasks.ranges.plan import RangeChoice, choose_ranges
from tacit.tasks.ranges.ranges import Ranges, range_levels, solve_ranges
from tacit.tasks.task import UNPLANNED, Answer, Forecast, QuestionTally, QuestionTask, TaskQuery, plain_number

MOST_ROWS = 4096
"""Domains up to this size are answered leaf by leaf; larger ones in SHOWN_ROWS ranges of equal width."""

SHOWN_ROWS = 512
MOST_QUANTILES = 99


def solved(domain: Domain, part: QuestionTally) -> Ranges:
    """Return the fitted ranges of a question's tally; InvalidSpec for a question with several attributes."""
    if isinstance(domain, Product):
        raise InvalidSpec(f"ranges: the question has {len(domain.names)} attributes; ask for a rectangle")
    return solve_ranges(part.mechanism, part.tally, respondents=part.respondents)


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    """Return the mechanism for ranges, or for rectangles of several attributes."""
    if isinstance(domain, Product):
        check_grid(domain)
        return plan_grid(domain, budget, n)
    check_ordered(domain)
    return _choice(domain.size, budget, n).pick.mechanism


@lru_cache(maxsize=4)
def _choice(size: int, budget: Budget, n: int) -> RangeChoice:
    """Return the planner's choice, cached: the forecast asks again for what the plan has just computed."""
    return choose_ranges(size=size, epsilon=budget, n=n)


def _label(domain: Domain, first: int, last: int) -> Any:
    if first == last:
        return domain.decode(first)
    return f"{domain.decode(first)} … {domain.decode(last)}"


def _answer(domain: Domain, part: QuestionTally) -> Answer:
    """Return the share of every leaf; of equal ranges where the domain is large."""
    if isinstance(domain, Product):
        return answer_grid(domain, part)
    solution = solved(domain, part)
    # -(-a // b) rounds up: equal ranges, the last one possibly shorter.
    width = 1 if solution.size <= MOST_ROWS else -(-solution.size // SHOWN_ROWS)
    first = np.arange(0, solution.size, width)
    last = np.minimum(first + width, solution.size) - 1
    labels = [_label(domain, a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    raw = replace(solution.ranges(first, last) if width > 1 else solution.histogram(), labels=labels)
    # The steps of the monotone distribution, so that rows add up to the ranges that are answered.
    steps = solution.monotone[last + 1] - solution.monotone[first] if raw.has_data else raw.value
    reach = None
    if solution.reach is not None and raw.has_data:
        at = np.arange(solution.size)
        inside = (at >= first[:, None]) & (at <= last[:, None])
        reach = float(solution.reach(inside.astype(np.float64)).max(initial=0.0))
    return Answer("share", raw, replace(raw, value=steps, covariance=None), "monotone", reach=reach)


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    """Return the expected error of a range as it is answered, averaged over all of them, and that of the raw fit."""
    if isinstance(domain, Product):
        return forecast_grid(domain, mechanism, n)
    expected = forecast_monotone(mechanism, n, _raw_error(domain, mechanism, n), Workload("ranges"))
    found = Forecast(
        expected.normal,
        "a range, on average over all of them",
        UNPLANNED,
        raw=expected.raw,
        between=expected.between,
    )
    choice = _choice(domain.size, mechanism.budget, n)
    if choice.pick.mechanism != mechanism:
        return found
    return replace(found, why=choice.reason, options=tuple(_compared(choice)))


def _raw_error(domain: Domain, mechanism: Mechanism, n: int) -> float:
    """The exact error of the raw fit of a tree; square waves have none."""
    if isinstance(mechanism, SquareWave):
        return 0.0
    asked = range_levels(mechanism)
    shape, members = TreeShape(domain.size, asked.fanouts[0]), asked.members[::-1]
    return float(np.sqrt(expected_error(shape, Workload("ranges"), members, asked.weights[::-1], n) / n))


def _compared(choice: RangeChoice) -> Iterable[dict[str, Any]]:
    """Yield the rows of the comparison: the best fan-out of every method and oracle, and the pick."""
    best: dict[tuple[str, str], RangeOption] = {}
    for option in choice.options:
        best.setdefault((option.method, option.oracle), option)
    shown = {id(option) for option in (*best.values(), choice.pick)}
    for option in choice.options:
        if id(option) in shown:
            row = {"name": option.name, "standard_error": option.rmse, "report_bits": option.report_bits}
            yield row | {"picked": option is choice.pick}


def _index(domain: Domain, given: Mapping[str, str], name: str, default: int) -> int:
    """Parse one end of a range to an index; the default where it is absent."""
    if name not in given:
        return default
    try:
        return domain.encode(given[name])
    except InvalidValue:
        first, last = domain.decode(0), domain.decode(domain.size - 1)
        raise InvalidSpec(f"range: {name} is outside the domain, must be a value from {first} to {last}") from None


def _range(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `range`: the share of a range with its interval, as it is answered and raw."""
    solution = solved(domain, part)
    low, high = _index(domain, given, "low", 0), _index(domain, given, "high", domain.size - 1)
    found = solution.shares([low], [high])
    ends = {"from": domain.decode(low), "to": domain.decode(high)}
    note = {"note": solution.note} if solution.note else {}
    shares = {"share": _share(found, level), "raw": _share(found, level, raw=True)}
    return ends | {"method": found.method.name} | shares | note


def _share(found: Processed, level: float, *, raw: bool = False) -> dict[str, Any]:
    """The only cell of an answer as plain numbers; None where nobody was asked."""
    shown = found.raw if raw else found.estimate
    ends = found.raw.interval(level) if raw else found.interval(level)
    columns = zip(
        ("standard_error", "low", "high", "estimate"), (shown.standard_error, *ends, shown.value), strict=True
    )
    known = found.raw.has_data
    return {name: plain_number(column[0]) if known else None for name, column in columns}


def _quantiles(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    solution, shares = solved(domain, part), _shares(given.get("shares", "0.1,0.25,0.5,0.75,0.9"))
    rows = [solution.quantile(share, level=level) for share in shares]
    return {"quantiles": [_quantile(domain, row) for row in rows]}


def _quantile(domain: Domain, row: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: None if row[key] is None else domain.decode(row[key]) for name, key in
             (("value", "index"), ("low", "low"), ("high", "high"))}  # fmt: skip
    return {"share": row["share"]} | named


def _shares(text: str) -> list[float]:
    """Parse comma-separated shares for `quantiles`."""
    try:
        shares = [float(item) for item in text.split(",")]
    except ValueError:
        raise InvalidSpec("quantiles: shares must be numbers from 0 to 1 with commas, such as 0.25,0.5,0.75") from None
    if len(shares) > MOST_QUANTILES:
        raise InvalidSpec(f"quantiles: at most {MOST_QUANTILES} shares at a time")
    return shares


def _cdf(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `cdf`: the distribution function with a pointwise or simultaneous band."""
    simultaneous = given.get("band", "pointwise")
    if simultaneous not in ("pointwise", "simultaneous"):
        raise InvalidSpec("cdf: band must be pointwise or simultaneous")
    columns = solved(domain, part).cdf(level=level, simultaneous=simultaneous == "simultaneous")
    labels = [domain.decode(index) for index in columns["index"]]
    return {"band": simultaneous, "value": labels} | columns


def _heavy(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `heavy`: the shortest dyadic intervals that hold at least a share."""
    try:
        threshold = float(given.get("threshold", "0.1"))
    except ValueError:
        raise InvalidSpec("heavy: threshold must be a number from 0 to 1") from None
    rows = solved(domain, part).heavy(threshold, level=level)
    named = partial(_heavy_row, domain)
    return {"threshold": threshold, "intervals": [named(row) for row in rows]}


def _heavy_row(domain: Domain, row: Mapping[str, Any]) -> dict[str, Any]:
    ends = {"from": domain.decode(row["first"]), "to": domain.decode(row["last"])}
    return ends | {name: row[name] for name in ("estimate", "standard_error", "low", "high")}


def _auc(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `auc`: from (score, label) in one collection, or from positives here and negatives in another."""
    if isinstance(domain, Product):
        return {"auc": auc_of_labels(whole_grid(domain, part)).to_row(level)}
    if part.other is None:
        raise InvalidSpec("auc: name the collection of the negatives as other; this one holds the positives")
    return {"other": given["other"], "auc": auc_of_two(solved(domain, part), solved(domain, part.other)).to_row(level)}


RANGES = QuestionTask(
    "ranges",
    _plan,
    _answer,
    _forecast,
    (
        TaskQuery("range", "The share of a range of values, both ends included.",
              {"low": "the lowest value, the first one if absent", "high": "the highest value"}, _range),
        TaskQuery("quantiles", "Values below which shares of the respondents lie.",
              {"shares": "shares from 0 to 1, with commas"}, _quantiles),
        TaskQuery("cdf", "The cumulative distribution with a band.",
              {"band": "pointwise or simultaneous"}, _cdf),
        TaskQuery("heavy", "The shortest intervals that hold at least a share of the respondents.",
              {"threshold": "the share, from 0 to 1"}, _heavy),
        RECTANGLE,
        TaskQuery("auc", "How often a positive scores higher than a negative; labels are the second of two attributes.",
              {"other": "the collection of the negatives, where each label has its own"}, _auc),
    ),
)  # fmt: skip
