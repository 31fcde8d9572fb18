"""The mean of a public number within ranges of a private key: reports are counted with the number as a weight.

Everything is linear in the reports. With the numbers less the mean as weights u, the answer's error over the share of
the range is that of the ratio; its variance is that of unweighted answers with u^2 in place of ones, less the spread
of u times the answer, once, because the members' respondents are disjoint.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.compose import OneOf, PerMember
from tacit.core.mechanism import Mechanism, Oracle, Reports
from tacit.core.tally import Counts
from tacit.device.levels import Tree
from tacit.errors import InvalidSpec
from tacit.post.grid import GridFit, fit_grid
from tacit.post.grid_shape import Heights
from tacit.post.levels import Level, Sums
from tacit.tasks.range_means import RangeMean, is_empty
from tacit.tasks.rectangles import member_level

F64 = npt.NDArray[np.float64]


def public_mean(mechanism: Mechanism, reports: Reports, numbers: npt.ArrayLike, low: int, high: int) -> RangeMean:
    """The mean of public integers of the respondents whose private keys are low .. high, both included.

    `mechanism` answers ranges of the key by one oracle or by the plain levels of a tree; `numbers` are in the order of
    the reports.
    """
    values = np.asarray(numbers)
    if values.dtype.kind not in "iu" or values.shape != (len(reports),):
        raise InvalidSpec("public mean: numbers must be integers, one per report")
    size, fanout = _shape(mechanism)
    if not 0 <= low <= high < size:
        raise InvalidSpec(f"public mean: keys must be from 0 to {size - 1}, the lower one first")
    if not len(reports):
        return RangeMean(None, np.inf, 0.0, np.inf)
    # Weights are positive, so that their sum is one that shares can be taken of.
    shift = int(values.min()) - 1
    plain, weighted = mechanism.tally(reports), mechanism.tally(reports, values.astype(np.int64) - shift)
    moments = _moments(_members(mechanism, plain), _members(mechanism, weighted))
    fits = [fit_grid((size,), (fanout,), levels, respondents=float(len(reports)), total=total)
            for levels, total in moments]  # fmt: skip
    return _ratio(fits, float(shift), low, high)


def _shape(mechanism: Mechanism) -> tuple[int, int]:
    if isinstance(mechanism, OneOf) and isinstance(mechanism.family, Tree):
        return mechanism.family.size, mechanism.family.fanout
    if isinstance(mechanism, Oracle):
        return mechanism.size, mechanism.size
    raise InvalidSpec(f"public mean: {mechanism.kind} does not answer ranges; plan the key with task ranges")


def _members(mechanism: Mechanism, tally: Any) -> list[tuple[Heights, Mechanism, Counts]]:
    if isinstance(mechanism, OneOf) and isinstance(mechanism.family, Tree) and isinstance(tally, PerMember):
        found = [((t,), mechanism.member(i), tally.member(i)) for i, t in enumerate(mechanism.family.heights)]
    else:
        found = [((0,), mechanism, tally)]
    counted = [(heights, member, part) for heights, member, part in found if isinstance(part, Counts)]
    if len(counted) < len(found):
        raise InvalidSpec("public mean: a level keeps a log of reports; plan the key with fewer values")
    return counted


def _moments(
    plain: Sequence[tuple[Heights, Mechanism, Counts]], weighted: Sequence[tuple[Heights, Mechanism, Counts]]
) -> list[tuple[dict[Heights, Level], float]]:
    """Levels with weights 1, w and w^2, per respondent, and their totals over everybody."""
    everybody = sum(part.n for _, _, part in plain)
    ones = [(h, member, part.cells, part.n, part.n) for h, member, part in plain]
    first = [(h, member, part.cells, part.total, part.n) for h, member, part in weighted]
    second = [(h, member, part.cells2, part.total2, part.n) for h, member, part in weighted]
    found: list[tuple[dict[Heights, Level], float]] = []
    for power in (ones, first, second):
        levels = {h: _level(member, cells, total, n) for h, member, cells, total, n in power}
        found.append((levels, sum(total for *_, total, _ in power) / everybody))
    return found


def _level(member: Mechanism, cells: npt.NDArray[np.int64], total: int, n: int) -> Level:
    """A level whose cells sum weights, per report."""
    level = member_level(member, Counts(member, n, cells, cells, total, total))
    return level if level.is_empty else replace(level, value=level.value * total / n, scale=1 / n)


def _ratio(fits: Sequence[GridFit], shift: float, low: int, high: int) -> RangeMean:
    """The mean, and the variance of its first-order terms."""
    ones, weights, squares = (fit.leaves for fit in fits)
    numbers, row = weights + shift * ones, fits[0].shape.corner((low,), (high,))
    share, share_variance = float(row @ ones), float(fits[0].linear(row[None, :])[0])
    if is_empty(share, share_variance):
        return RangeMean(None, np.inf, share, share_variance)
    mean = float(row @ numbers) / share
    off = shift - mean
    # Cells are unbiased, and their sum is known. Cut at zero one by one they would add up to far too much: most of
    # what a single cell of many holds is noise.
    first, second = numbers - mean * ones, squares + 2 * off * weights + off**2 * ones
    variance = _variance(fits[0], row, first, second)
    if variance <= 0:
        variance = _variance(fits[0], row, first, np.clip(second, 0, None))
    return RangeMean(mean, variance / share**2, share, share_variance)


def _variance(fit: GridFit, row: F64, first: F64, second: F64) -> float:
    """Variance of the row's answer where a respondent counts u: `first` are the cells' means of u, `second` of u^2."""
    power, crowd = float(second.sum()), max(1.0, fit.respondents - 1)
    variance, rest = 0.0, row.copy()
    for heights, level, coefficients in fit.coefficients(row[None, :]):
        c = coefficients[0]
        mass, once = fit.shape.sums(second, heights), fit.shape.sums(first, heights)
        parts = np.array([c.sum(), c @ c, c @ mass / power, c**2 @ mass / power])
        noise = power * float(level.moments.of_sums(*Sums(*parts)))
        spread = float(c**2 @ mass - (c @ once) ** 2) * fit.respondents / crowd
        variance += level.scale * (noise + spread)
        rest = rest - fit.shape.spread(c, heights)
    # What the members do not give is the same for every cell: the total's, which is known.
    reached = row - rest
    return max(0.0, variance - float(reached**2 @ second - (reached @ first) ** 2) / crowd)
