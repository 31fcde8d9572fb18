"""Rectangles of two to eight ordered attributes from grids of pairs (TDG) and of single attributes (HDG).

Answers are biased: what no grid divides is spread evenly, and shares are made non-negative. Their stated error is that
of replaying the collection, and a part of the width of what the grids allow. Where a rectangle binds
one or two attributes, `raw` has the linear answer of their own grid with the exact variance of its noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.asked import AskedLevels
from tacit.core.estimate import Estimate, no_data
from tacit.core.members import against_everyone
from tacit.errors import InvalidSpec
from tacit.post.grids.pairs import Attributes, CutGrid, PairFit, covered
from tacit.post.grids.shape import GridShape
from tacit.tasks.ranges.forecast import drawn_level
from tacit.tasks.ranges.options import contrast_noise

CAUTION = "even_blocks"
"""The caution of answers that spread shares evenly over what no grid divides."""

NOTE = "from grids of pairs of attributes: shares are spread evenly inside their cells, and intervals are approximate"

REPLAYS = 20
"""How often a collection is replayed for the error of its answers, which is then known to within 16 %."""

UNEVEN = 0.2
"""The standard error of spreading shares evenly, as a part of the width of what the grids allow.

On all reference shapes of `pair_plan` the error was below 1.96 of it in 95 % of rectangles.
"""

_UNKNOWN = 1e30
"""The noise of a grid that nobody was asked about: it takes the word of all others."""


def bound_attributes(asked: AskedLevels) -> list[Attributes]:
    """Return the attributes that every member says something about."""
    tops = GridShape(asked.sizes, asked.fanouts).tops
    return [tuple(a for a, top in enumerate(tops) if heights[a] < top) for heights in asked.heights]


def are_pairs(asked: AskedLevels) -> bool:
    """Whether the members are one grid for each pair of attributes, and at most one for each attribute.

    Members that ask for single cells make every rectangle known without bias, so that least squares answers then.
    """
    bound = bound_attributes(asked)
    pairs = [item for item in bound if len(item) == 2]
    everything = list(combinations(range(len(asked.sizes)), 2))
    single_cells = any(not any(heights) for heights in asked.heights)
    once = len(set(bound)) == len(bound) and max(map(len, bound)) == 2
    return not single_cells and once and sorted(pairs) == everything


def cuts_of(asked: AskedLevels, member: int, attribute: int) -> I64:
    """The first answer of every node of a member's attribute, and the number of answers."""
    size, width = asked.sizes[attribute], asked.fanouts[attribute] ** asked.heights[member][attribute]
    return np.array([*range(0, size, width), size], np.int64)


def grids_of(asked: AskedLevels, values: Sequence[F64], counts: Sequence[float]) -> tuple[CutGrid, ...]:
    """Return what every member was told as a grid; `counts` are the respondents of each, by effective number."""
    found: list[CutGrid] = []
    bound = bound_attributes(asked)
    for i, (attributes, value, count) in enumerate(zip(bound, values, counts, strict=True)):
        cuts = tuple(cuts_of(asked, i, a) for a in attributes)
        shape = tuple(len(cut) - 1 for cut in cuts)
        told = value if count else np.full(value.shape, 1 / value.size)
        noise = contrast_noise(asked.members[i], value.size) / count if count else _UNKNOWN
        found.append(CutGrid(attributes, cuts, told.reshape(shape), noise))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class PairRectangles:
    """Fitted grids of pairs: every rectangle of any attributes."""

    asked: AskedLevels
    fit: PairFit
    told: tuple[Estimate, ...]
    """What every member was told, as an estimate for all respondents."""
    counts: tuple[float, ...]
    """How many equally weighted reports every member got."""
    n: int
    respondents: float

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of values of the attributes."""
        return self.asked.sizes

    def rectangles(self, low: Sequence[Sequence[int]], high: Sequence[Sequence[int]]) -> Estimate:
        """Return the shares of rectangles as they are answered, ends included: consistent and biased.

        The variance is the mean squared error of replays, and UNEVEN of the width between the least and the largest
        share that the grids allow, squared.
        """
        labels, first, last = self._checked(low, high)
        if self.n == 0:
            return no_data(len(first), labels)
        agreed = self.fit.agreed
        value = agreed.boxes(first, last)
        errors = np.array([replay.combined().boxes(first, last) - value for replay in self.replays])
        below, above = self._allowed(first, last)
        variance = (errors**2).mean(axis=0) + (UNEVEN * (above - below)) ** 2
        return Estimate(value, variance, self.n, labels=labels, effective=self.respondents, caution=CAUTION)

    def raw(self, low: Sequence[Sequence[int]], high: Sequence[Sequence[int]]) -> Estimate:
        """Return the linear answers of single grids, not made consistent, with the exact variances of their noise.

        Unbiased where the ends are those of cells. Rectangles must all bind the same attributes, one or two of them.
        """
        labels, first, last = self._checked(low, high)
        bound = np.unique((first > 0) | (last < np.array(self.sizes) - 1), axis=0)
        chosen = tuple(np.flatnonzero(bound[0]).tolist()) if len(bound) == 1 else ()
        known = bound_attributes(self.asked)
        member = next((i for i, item in enumerate(known) if item == chosen), None)
        if member is None:
            raise InvalidSpec(
                "rectangle: raw answers are those of one grid, of a pair of attributes or of one that was asked alone; "
                "bind the same one or two attributes in all rectangles"
            )
        sides = [covered(cuts_of(self.asked, member, a), first[:, a], last[:, a]) for a in chosen]
        rows = sides[0] if len(sides) == 1 else np.einsum("qi,qj->qij", *sides).reshape(len(first), -1)
        return self.told[member].combine(rows, labels=labels)

    @cached_property
    def replays(self) -> list[PairFit]:
        """The fits of collections that are drawn from this one's own shares; the estimates themselves are the seed."""
        seed = sha256(b"".join(grid.value.tobytes() for grid in self.fit.grids)).digest()[:8]
        rng = np.random.default_rng(int.from_bytes(seed, "little"))
        return [drawn_fit(self.asked, self.fit.tables, self.counts, self.respondents, rng) for _ in range(REPLAYS)]

    def _allowed(self, low: I64, high: I64) -> tuple[F64, F64]:
        """The least and the largest shares of rectangles that the cells of all grids allow."""
        bound = (low > 0) | (high < np.array(self.sizes) - 1)
        below, above = np.zeros(len(low)), np.ones(len(low))
        missing = np.zeros(len(low))
        for grid, table in zip(self.fit.grids, self.fit.tables, strict=True):
            sides = [covered(cut, low[:, a], high[:, a]) for a, cut in zip(grid.attributes, grid.bounds, strict=True)]
            least, most = _sums(table, [side >= 1 for side in sides]), _sums(table, [side > 0 for side in sides])
            above = np.minimum(above, most)
            # A grid bounds from below what binds no other attribute.
            whole = bound.sum(axis=1) == bound[:, list(grid.attributes)].sum(axis=1)
            below = np.where(whole, np.maximum(below, least), below)
        for a, (cut, single) in enumerate(zip(self.fit.agreed.bounds, self.fit.agreed.singles, strict=True)):
            missing += 1 - (covered(cut, low[:, a], high[:, a]) >= 1) @ single
        return np.maximum(below, 1 - missing), np.maximum(above, below)

    def _checked(self, low: Sequence[Sequence[int]], high: Sequence[Sequence[int]]) -> tuple[list[Any], I64, I64]:
        """Refuse rectangles outside the domain; return labels and ends."""
        first, last = (np.asarray(ends, np.int64).reshape(len(ends), -1) for ends in (low, high))
        if first.shape != last.shape or first.shape[1:] != (len(self.sizes),):
            raise InvalidSpec(f"rectangle: ends are not as many as attributes, of which there are {len(self.sizes)}")
        if np.any(first < 0) or np.any(last >= np.array(self.sizes)):
            raise InvalidSpec("rectangle: an end is outside the domain of its attribute")
        if np.any(first > last):
            raise InvalidSpec("rectangle: low is above high; give the lower end of every attribute first")
        pairs = zip(first.tolist(), last.tolist(), strict=True)
        return [tuple(zip(*pair, strict=True)) for pair in pairs], first, last


def _sums(table: F64, sides: list[Any]) -> F64:
    """Sums of a table over products of marked intervals, a row of marks per answer."""
    marks = [side.astype(np.float64) for side in sides]
    return marks[0] @ table if len(marks) == 1 else np.einsum("qi,ij,qj->q", marks[0], table, marks[1])


def drawn_fit(
    asked: AskedLevels, truth: Sequence[F64], counts: Sequence[float], everybody: float, rng: np.random.Generator
) -> PairFit:
    """Return the fit of one draw, with normal noise, of every member's grid from its true shares."""
    values: list[F64] = []
    for member, table, count in zip(asked.members, truth, counts, strict=True):
        mass = table.reshape(-1)
        drawn = drawn_level(0, mass, member, 1 / count, 1 / everybody, rng).value if count else mass
        values.append(drawn)
    return PairFit(asked.sizes, grids_of(asked, values, counts), 1 / max(1.0, everybody))


def solve_pairs(asked: AskedLevels, tally: Any, *, respondents: int | None = None) -> PairRectangles:
    """Return the fitted rectangles of a tally of grids of pairs."""
    everybody = int(tally.n if respondents is None else respondents)
    told: list[Estimate] = []
    counts: list[float] = []
    for member, part in zip(asked.members, asked.tallies(tally), strict=True):
        estimate = member.estimate(part)
        counts.append(estimate.effective if estimate.has_data else 0.0)
        told.append(against_everyone(estimate, part, everybody))
    fit = PairFit(asked.sizes, grids_of(asked, [one.value for one in told], counts), 1 / max(1, everybody))
    return PairRectangles(asked, fit, tuple(told), tuple(counts), tally.n, float(everybody))
