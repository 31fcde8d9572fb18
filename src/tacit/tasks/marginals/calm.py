"""CALM (Consistent Adaptive Local Marginal): how many views of how many attributes, and which.

Larger views cover more tables but have more cells, hence more noise; more views leave fewer respondents for each.

Zhang, Wang, Li, He and Chen, CCS 2018; Wang's dissertation, section 6.2.3, Algorithm 2. Errors are weighed against a
threshold that stands for what reconstruction adds, which has no formula. The notation here is the dissertation's
chapter 6 with t views of s attributes out of m; docs/maths/calm.md lists what is corrected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, comb, exp, expm1, inf

from tacit.errors import InvalidSpec
from tacit.tasks.marginals.covering import MAX_SETS, Block, balanced_views, cover_design, lower_bound

THETA = 0.001
"""The squared error of noise and of sampling that is tolerated, for larger views and a smaller reconstruction error."""


@dataclass(frozen=True)
class ViewPlan:
    """The number and the size of the views, and the two errors by which they were chosen."""

    count: int
    size: int
    noise_error: float
    """The squared error of noise in a table of k attributes: k times that of one attribute."""
    sampling_error: float
    covering: bool
    """Whether every table of k attributes is in one view."""


def noise_error(n: float, sizes: Sequence[int], epsilon: float, s: int) -> float:
    """Return the squared error that noise adds to the table of one attribute.

    It does not depend on the number of views: with t views, an attribute is in about t s/m of them, each answered by
    n/t respondents, so t cancels.

    >>> round(3 * noise_error(2**16, [2] * 8, 2.0, 4), 6)
    0.000768
    """
    m, cells = len(sizes), mean_cells(sizes, s)
    odds = exp(epsilon)
    # The minimum is the choice of the adaptive oracle: 4 e^eps for OUE, cells - 2 + e^eps for GRR.
    return min(4 * odds, cells - 2 + odds) / expm1(epsilon) ** 2 * (cells / s) * (m / n)


def mean_cells(sizes: Sequence[int], s: int) -> float:
    """Return the mean number of cells of s of the attributes: the elementary symmetric polynomial e_s over C(m, s)."""
    sums = [1.0] + [0.0] * s
    for size in sizes:
        for j in range(s, 0, -1):
            sums[j] += sums[j - 1] * size
    return sums[s] / comb(len(sizes), s)


def sampling_error(n: float, views: int) -> float:
    """Return an upper bound of the squared error of asking each view of a random part of the respondents."""
    return views / n


def _cover_size(m: int, k: int, s: int, most: int) -> float:
    """Return the number of views of a cover; infinity, without a search, where the bound already exceeds `most`."""
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
    # The sampling error of t views is t/n, so theta allows theta * n views. Then the sizes: the largest whose noise is
    # within theta, and the smallest from k on that still covers every table with so many views.
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
    # Several sizes satisfy both bounds: balance the errors by making the larger one as small as possible.
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
    """The plan that covers every table of k attributes, with the view size of least noise plus sampling error."""
    m = len(sizes)
    _check(n, m, k, THETA, epsilon)
    best: tuple[float, int, int] | None = None
    for s in range(k, min(m, k + 3) + 1):
        # Schönheim's bound stands in for the design: skip the search where even that could not win.
        floor = lower_bound(m, s, k) / n + k * noise_error(n, sizes, epsilon, s)
        if best is not None and floor >= best[0]:
            continue
        count = len(cover_design(m, s, k))
        candidate = (count / n + k * noise_error(n, sizes, epsilon, s), count, s)
        best = candidate if best is None or candidate < best else best
    assert best is not None
    return _plan(n, sizes, epsilon, k, best[1], best[2], covering=True)


def views_of(plan: ViewPlan, m: int, k: int) -> tuple[Block, ...]:
    """Return the views of a plan: the covering design itself, or as many as were chosen, spread evenly."""
    if plan.covering and plan.size >= k:
        design = cover_design(m, plan.size, k)
        if len(design) == plan.count:
            return design
    views = balanced_views(m, plan.size, k, plan.count)
    return views
