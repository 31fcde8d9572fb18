"""CALM: how many views of how many attributes, and which (Consistent Adaptive Local Marginal).

Zhang, Wang, Li, He and Chen, CCS 2018; Wang's dissertation, section 6.2.3, Algorithm 2. Errors are weighed against a
threshold that stands for what reconstruction adds, which has no formula. The notation here is the dissertation's
chapter 6 with t views of s attributes out of m; docs/maths/calm.md lists what is corrected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, comb, exp, expm1, inf

from tacit.errors import InvalidSpec
from tacit.tasks.marginal_covering import MAX_SETS, Block, balanced_views, cover_design, lower_bound

THETA = 0.001
"""The error below which more precision is not worth larger reconstruction errors."""


@dataclass(frozen=True)
class ViewPlan:
    """How many views of how many attributes, and the two errors that they were weighed by."""

    count: int
    size: int
    noise_error: float
    """k times the noise error of one attribute."""
    sampling_error: float
    covering: bool
    """Whether every table of k attributes is in one view."""


def noise_error(n: float, sizes: Sequence[int], epsilon: float, s: int) -> float:
    """The squared error that noise adds to the table of one attribute; it does not depend on the number of views.

    >>> round(3 * noise_error(2**16, [2] * 8, 2.0, 4), 6)
    0.000768
    """
    m, cells = len(sizes), mean_cells(sizes, s)
    odds = exp(epsilon)
    return min(4 * odds, cells - 2 + odds) / expm1(epsilon) ** 2 * (cells / s) * (m / n)


def mean_cells(sizes: Sequence[int], s: int) -> float:
    """The mean number of cells of s attributes: an elementary symmetric polynomial over the number of sets."""
    sums = [1.0] + [0.0] * s
    for size in sizes:
        for j in range(s, 0, -1):
            sums[j] += sums[j - 1] * size
    return sums[s] / comb(len(sizes), s)


def sampling_error(n: float, views: int) -> float:
    """The squared error of having asked each view of a random part of the respondents, at most."""
    return views / n


def _cover_size(m: int, k: int, s: int, most: int) -> float:
    """The size of a cover, or infinity where it exceeds what is allowed anyhow."""
    if lower_bound(m, s, k) > most or (s > k and comb(m, k) > MAX_SETS):
        return inf
    return len(cover_design(m, s, k))


def select_views(
    *, n: int, sizes: Sequence[int], epsilon: float, k: int, theta: float = THETA, strict_paper: bool = False
) -> ViewPlan:
    """Algorithm 2: the number and the size of the views for tables of k attributes.

    With `strict_paper` the branch for a single possible size ignores, as printed, that fewer views may cover all, and
    few respondents leave attributes in no view.

    >>> plan = select_views(n=2**16, sizes=[2] * 8, epsilon=2.0, k=3)
    >>> plan.count, plan.size
    (14, 4)
    """
    m = len(sizes)
    _check(n, m, k, theta, epsilon)
    most = max(1, int(theta * n))
    largest = min(2, m)
    while largest < m and k * noise_error(n, sizes, epsilon, largest + 1) <= theta:
        largest += 1
    smallest = largest
    while smallest > k and _cover_size(m, k, smallest - 1, most) <= most:
        smallest -= 1
    if largest < k or smallest == largest:
        cover = _cover_size(m, k, largest, most) if largest >= k else inf
        fits = not strict_paper and cover <= most
        # Fewer respondents than 1/theta per view are no reason to ask nobody about an attribute.
        least = 1 if strict_paper else ceil(m / largest)
        count = int(cover) if fits else min(max(most, least), comb(m, largest))
        return _plan(n, sizes, epsilon, k, count, largest, covering=fits)
    best = min(
        range(smallest, largest + 1),
        key=lambda s: (max(_cover_size(m, k, s, comb(m, k)) / n, k * noise_error(n, sizes, epsilon, s)), s),
    )
    return _plan(n, sizes, epsilon, k, len(cover_design(m, best, k)), best, covering=True)


def _plan(n: int, sizes: Sequence[int], epsilon: float, k: int, count: int, s: int, *, covering: bool) -> ViewPlan:
    noise = k * noise_error(n, sizes, epsilon, s)
    whole = covering or (s >= k and count == comb(len(sizes), s))
    return ViewPlan(count, s, noise, sampling_error(n, count), whole)


def _check(n: int, m: int, k: int, theta: float, epsilon: float) -> None:
    if n < 1 or not theta > 0 or not epsilon > 0:
        raise InvalidSpec(f"calm: n is {n}, theta {theta} and epsilon {epsilon}, must all be above 0")
    if not 1 <= k <= m:
        raise InvalidSpec(f"calm: k is {k}, must be from 1 to the {m} attributes")


def cover_plan(*, n: int, sizes: Sequence[int], epsilon: float, k: int) -> ViewPlan:
    """Views that cover every table of k attributes, of the size with the least noise and sampling error together."""
    m = len(sizes)
    _check(n, m, k, THETA, epsilon)
    best: tuple[float, int, int] | None = None
    for s in range(k, min(m, k + 3) + 1):
        floor = lower_bound(m, s, k) / n + k * noise_error(n, sizes, epsilon, s)
        if best is not None and floor >= best[0]:
            continue
        count = len(cover_design(m, s, k))
        found = (count / n + k * noise_error(n, sizes, epsilon, s), count, s)
        best = found if best is None or found < best else best
    assert best is not None
    return _plan(n, sizes, epsilon, k, best[1], best[2], covering=True)


def views_of(plan: ViewPlan, m: int, k: int) -> tuple[Block, ...]:
    """The views of a plan: the covering design itself, or as many as were chosen, spread evenly."""
    if plan.covering and plan.size >= k:
        design = cover_design(m, plan.size, k)
        if len(design) == plan.count:
            return design
    views = balanced_views(m, plan.size, k, plan.count)
    return views
