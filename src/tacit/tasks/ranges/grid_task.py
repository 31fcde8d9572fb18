"""The task `ranges` on two to eight ordered attributes: any rectangle, and any range of some with the others free.

Plan, forecast, answer and the query `rectangle`. The statistics are in `ranges.rectangles` and `post.grids`; here are
only checks, labels and the JSON that leaves the system.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any, cast

import numpy as np

from tacit.core.asked import asked_levels
from tacit.core.compose import OneOf
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Oracle
from tacit.device.domains.domain import Attribute, Categories, Domain, Ordered
from tacit.device.domains.product import Product
from tacit.device.domains.reals import Buckets, Integers
from tacit.device.families.grid import MAX_SIZE
from tacit.device.numbers.budget import Budget, as_budget
from tacit.errors import InvalidSpec, InvalidValue
from tacit.post.frequencies.methods import Method, default_method, process
from tacit.post.frequencies.select import select_methods
from tacit.post.grids.shape import GridShape, Heights
from tacit.post.grids.wide import WideFit
from tacit.tasks.ranges.grid_plan import GridOption, GridPlanner
from tacit.tasks.ranges.pair_grids import NOTE, PairRectangles, are_pairs, bound_attributes
from tacit.tasks.ranges.pair_plan import MAX_PAIRED, PairOption, pair_options, published_pairs
from tacit.tasks.ranges.rectangles import Rectangles, solve_rectangles
from tacit.tasks.task import UNPLANNED, Answer, Forecast, QuestionTally, TaskQuery, plain_number

MOST_WHOLE = 3
"""More attributes have too many combinations of tree levels to plan whole grids for; pairs of them have grids."""

MOST_RECTANGLES = 1 << 20
"""The largest number of combinations of answers that whole grids are planned for: 1,024 x 1,024."""

AGREED = "agreed"
"""The method of answers from grids of pairs, which were made to agree."""

SHOWN_CELLS = 1024
"""Grids of more cells are answered in coarser rectangles."""

SHOWN_WIDE = 256
"""The same of grids whose rectangles are answered one by one."""


def check_ordered(domain: Domain) -> None:
    """Raise InvalidSpec for a domain whose answers have no order."""
    if isinstance(domain, Categories) or not isinstance(domain, (Ordered, Integers, Buckets)):
        raise InvalidSpec(f"ranges: the domain is {domain.kind}, must be ordered, integers or buckets")


def check_grid(domain: Product) -> None:
    """Raise InvalidSpec for other than two to eight attributes, each ordered or with two values (any order will do)."""
    if not 2 <= len(domain.attributes) <= MAX_PAIRED:
        raise InvalidSpec(f"ranges: the domain has {len(domain.attributes)} attributes, must have 1 to {MAX_PAIRED}")
    for attribute in domain.attributes:
        if attribute.size < 2:
            raise InvalidSpec(f"ranges: attribute {attribute.name} has one value; drop it")
        if attribute.size > 2:
            check_ordered(attribute)


RectangleOption = GridOption | PairOption


@lru_cache(maxsize=4)
def _options(sizes: tuple[int, ...], budget: Budget, n: int) -> list[RectangleOption]:
    """Return the planner's options, cached: the forecast asks again for what the plan has just computed."""
    found: list[RectangleOption] = []
    if prod(sizes) <= SHOWN_CELLS or (len(sizes) <= MOST_WHOLE and prod(sizes) <= MOST_RECTANGLES):
        found += GridPlanner(sizes, len(sizes), MOST_RECTANGLES).options(budget, n)
    # Small grids show every cell without bias. Areas under the curve are read off a whole grid of scores and a label.
    if prod(sizes) > SHOWN_CELLS and sizes[1:] != (2,):
        found += pair_options(sizes, budget, n)
    if not found:
        check_sizes(sizes)
    return sorted(found, key=lambda option: option.error)


def check_sizes(sizes: tuple[int, ...]) -> None:
    """Refuse numbers of answers that rectangles are not planned for."""
    if not 2 <= len(sizes) <= MAX_PAIRED or min(sizes) < 2:
        raise InvalidSpec(
            f"rectangles: sizes are {list(sizes)}, must be two to {MAX_PAIRED} numbers of at least 2; one attribute "
            "alone has ranges"
        )
    if prod(sizes) > MAX_SIZE:
        raise InvalidSpec(
            f"rectangles: {prod(sizes)} combinations of answers are too many, must be at most {MAX_SIZE}; make the "
            "attributes coarser"
        )


def rectangle_options(sizes: tuple[int, ...], epsilon: str, n: int) -> list[RectangleOption]:
    """Return every way to ask for rectangles of ordered attributes of these sizes, best first.

    Whole grids are unbiased, and their error is that on uniform data; grids of pairs are compared by the largest error
    over some shapes of data.
    """
    # Sizes first: planning itself would need memory for all combinations.
    check_sizes(sizes)
    if n < 1:
        raise InvalidSpec(f"rectangles: n is {n}, must be at least 1")
    return _options(sizes, as_budget(epsilon), n)


def plan_grid(domain: Product, budget: Budget, n: int) -> Mechanism:
    """Return the mechanism with the least expected error of a rectangle; unbiased, where there is a whole grid."""
    return _preferred(_options(domain.sizes, budget, n)).mechanism


def _preferred(options: list[RectangleOption]) -> RectangleOption:
    """Return the best whole grid; grids of pairs, which are biased, only where there is none."""
    return next((option for option in options if isinstance(option, GridOption)), options[0])


def solved_grid(domain: Product, part: QuestionTally) -> Rectangles | PairRectangles:
    """Return the fitted rectangles of a question's tally."""
    return solve_rectangles(domain.sizes, part.mechanism, part.tally, respondents=part.respondents)


def whole_grid(domain: Product, part: QuestionTally) -> Rectangles:
    """Return the fitted rectangles of a whole grid; InvalidSpec for grids of pairs, which do not divide all cells."""
    solution = solved_grid(domain, part)
    if isinstance(solution, PairRectangles):
        raise InvalidSpec("auc: the question was asked with grids of pairs; ask for a score and a label of two values")
    return solution


def _shown(shape: GridShape, most: int) -> Heights:
    """The finest heights with few enough nodes, coarsening the attribute with the most nodes first."""
    # A height of h merges fanout^h neighbouring answers of an attribute into one node of its tree.
    heights = [0] * len(shape.sizes)
    while prod(shape.nodes(tuple(heights))) > most:
        nodes = shape.nodes(tuple(heights))
        heights[nodes.index(max(nodes))] += 1
    return tuple(heights)


def answer_grid(domain: Product, part: QuestionTally) -> Answer:
    """Return the share of every cell; of coarser rectangles where the grid has more than SHOWN_CELLS cells.

    Grids of pairs show that of the first two attributes.
    """
    solution = solved_grid(domain, part)
    if isinstance(solution, PairRectangles):
        return _answer_pairs(domain, solution)
    heights = _shown(solution.fit.shape, SHOWN_WIDE if isinstance(solution.fit, WideFit) else SHOWN_CELLS)
    nodes, fanouts = solution.fit.shape.nodes(heights), solution.fit.shape.fanouts
    labels = [_label(domain, at, heights, fanouts) for at in np.ndindex(*nodes)]
    raw = replace(solution.nodes(heights), labels=labels)
    processed = process(raw, _picked(part, raw))
    return Answer("share", raw, processed.estimate, processed.method.name)


def _answer_pairs(domain: Product, solution: PairRectangles) -> Answer:
    asked = solution.asked
    place = bound_attributes(asked).index((0, 1))
    heights = asked.heights[place]
    nodes = GridShape(asked.sizes, asked.fanouts).nodes(heights)
    labels = [_label(domain, at, heights, asked.fanouts) for at in np.ndindex(*nodes)]
    raw = replace(solution.told[place], labels=labels)
    agreed = replace(raw, value=solution.fit.tables[place].reshape(-1), covariance=None) if raw.has_data else raw
    return Answer("share", raw, agreed, AGREED)


def _picked(part: QuestionTally, raw: Estimate) -> Method:
    """The method of least estimated error, chosen once per tally; replays have normal noise, cell by cell.

    Cells of a fitted grid are correlated, which replays leave out, so that the pick is a guess where noise dominates.
    """
    if not raw.has_data or not np.isfinite(raw.variance).all():
        return default_method(cells=len(raw))
    return part.memo.get(("post", part.place), lambda: select_methods(raw))["cells"].pick


def _label(domain: Product, at: tuple[int, ...], heights: Heights, fanouts: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the label of a node: per attribute its value, or "first … last" where it merges several."""
    label: list[Any] = []
    for attribute, node, height, fanout in zip(domain.attributes, at, heights, fanouts, strict=True):
        first, last = node * fanout**height, min((node + 1) * fanout**height, attribute.size) - 1
        ends = attribute.decode(first), attribute.decode(last)
        label.append(ends[0] if first == last else f"{ends[0]} … {ends[1]}")
    return tuple(label)


def forecast_grid(domain: Product, mechanism: Mechanism, n: int) -> Forecast:
    """Return the expected standard error of a rectangle, and the options that the plan was compared with."""
    options = _options(domain.sizes, mechanism.budget, n)
    known = next((option for option in options if option.mechanism == mechanism), None)
    pick = known or _published(domain.sizes, mechanism, n)
    rows = tuple(
        {"name": option.name, "standard_error": float(np.sqrt(option.error / n)), "report_bits": option.report_bits}
        | {"picked": option is pick}
        for option in options
    )
    unbiased = " of all that is unbiased" if isinstance(options[0], PairOption) and pick is not options[0] else ""
    best = f"{pick.name} has the least expected error over all rectangles{unbiased}"
    why = best if pick is _preferred(options) else UNPLANNED
    between = pick.between if isinstance(pick, PairOption) else None
    of = "a rectangle, on average over all of them"
    return Forecast(float(np.sqrt(pick.error / n)), of, why, rows, between=between)


def _published(sizes: tuple[int, ...], mechanism: Mechanism, n: int) -> RectangleOption:
    """Return a mechanism that is no option of the planner as one, so that the forecast is about what is published."""
    asked = asked_levels(mechanism)
    if asked is None:
        raise InvalidSpec(f"ranges: {mechanism.kind} does not answer rectangles; plan the question with task ranges")
    if isinstance(mechanism, OneOf) and are_pairs(asked):
        return published_pairs(mechanism, n)
    # One oracle over all combinations knows them by their index alone; it is the grid of single cells.
    flat = mechanism.drawn_from is None
    shape = GridShape(sizes, sizes if flat else asked.fanouts)
    heights = ((0,) * len(sizes),) if flat else asked.heights
    oracles = [cast("Oracle", member) for member in asked.members]
    return GridPlanner(sizes, len(sizes), MOST_RECTANGLES).priced(shape, heights, oracles, asked.shares, n)


def ends_of(attributes: Sequence[Attribute], given: Mapping[str, str], name: str, default: list[int]) -> list[int]:
    """Parse one end per attribute from comma-separated text; an empty field takes the default."""
    if name not in given:
        return default
    # As CSV, since labels may contain commas themselves and are then quoted.
    texts = next(csv.reader([given[name]]), list[str]())
    if len(texts) != len(attributes):
        names = ", ".join(attribute.name for attribute in attributes)
        raise InvalidSpec(f"range: {name} must be one value for each of {names}, with commas")
    ends: list[int] = []
    for text, attribute, other in zip(texts, attributes, default, strict=True):
        try:
            ends.append(attribute.encode(text) if text else other)
        except InvalidValue:
            first, last = attribute.decode(0), attribute.decode(attribute.size - 1)
            raise InvalidSpec(
                f"range: {name} of {attribute.name} is outside the domain, must be from {first} to {last}"
            ) from None
    return ends


def check_product(domain: Domain, query: str) -> Product:
    """Return the domain as a product; InvalidSpec for a question with one attribute."""
    if not isinstance(domain, Product):
        raise InvalidSpec(f"{query}: the question has one attribute; ask for a range")
    return domain


def _rectangle(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `rectangle`: the share of a rectangle with its interval."""
    whole = check_product(domain, "rectangle")
    low = ends_of(whole.attributes, given, "low", [0] * len(whole.sizes))
    high = ends_of(whole.attributes, given, "high", [size - 1 for size in whole.sizes])
    solution = solved_grid(whole, part)
    row = solution.rectangles([low], [high]).to_rows(level)[0]
    share = {name: plain_number(row[name]) for name in ("standard_error", "low", "high")} | {
        "estimate": plain_number(row["frequency"])
    }
    ends = {
        name: [attribute.decode(i) for attribute, i in zip(whole.attributes, at, strict=True)]
        for name, at in (("from", low), ("to", high))
    }
    note = {"note": NOTE} if isinstance(solution, PairRectangles) else {}
    return ends | {"share": share} | note


RECTANGLE = TaskQuery(
    "rectangle",
    "The share of a rectangle of several attributes, all ends included.",
    {
        "low": "the lowest value of every attribute, with commas; an empty one is its first",
        "high": "the highest values",
    },
    _rectangle,
)
