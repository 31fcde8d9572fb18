"""The exact expected error of ranges from the levels of a tree, averaged over a workload, on uniform data.

After constrained inference the variance of an answer is a sum over inner nodes: with o_i the share of child i that
lies in the answer and w_i the variance of the first pass at the child, a node adds sum w_i o_i^2 - (sum w_i o_i)^2 /
sum w_i. Averages of that over all ranges, prefixes or points have closed forms. docs/maths/ranges.md derives them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidSpec
from tacit.post.levels import Shape

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

NAMES = ("ranges", "prefixes", "points")
_SAMPLED = 4096


@dataclass(frozen=True)
class Workload:
    """The answers that an error is averaged over: all ranges, prefixes or points, or all ranges of one length."""

    name: str
    length: int = 0

    @classmethod
    def parse(cls, text: str, size: int) -> "Workload":
        """`ranges`, `prefixes`, `points` or `length:r`; InvalidSpec names what is known."""
        if text in NAMES:
            return cls(text)
        name, _, digits = text.partition(":")
        if name != "length" or not digits.isdecimal():
            raise InvalidSpec(f"ranges: workload is {text[:40]!r}, must be one of {', '.join(NAMES)} or length:r")
        if not 1 <= int(digits) <= size - 1:
            raise InvalidSpec(f"ranges: a length of {digits[:20]} is outside the domain, must be from 1 to {size - 1}")
        return cls(name, int(digits))

    def __str__(self) -> str:
        """As it is written."""
        return f"length:{self.length}" if self.length else self.name

    def spread(self, size: int) -> float:
        """The mean of R (1 - R) over the answers R, on uniform data."""
        if self.name == "ranges":
            return (size + 2) * (size - 1) / (6 * size**2)
        if self.name == "prefixes":
            return (size + 1) * (size - 1) / (6 * size**2)
        share = max(1, self.length) / size
        return share * (1 - share)

    def cuts(self, shape: Shape, height: int) -> float:
        """The mean of sum (o_i - their mean)^2 over all parents of nodes of a height, in a complete tree."""
        fanout, width = shape.fanout, shape.fanout**height
        if self.name == "points":
            return (1 - 1 / fanout) / width**2
        if self.name == "length":
            inner = _overlap(shape.size, self.length, width) / width**2
            return inner - _overlap(shape.size, self.length, width * fanout) / (fanout * width**2)
        once = (fanout - 1) / 6 + (fanout - 1) / (6 * fanout * width**2)
        if self.name == "prefixes":
            return once
        return 2 * once - width * (fanout**2 - 1) / (6 * (shape.size + 1))


def _overlap(size: int, length: int, width: int) -> float:
    """The mean over all ranges of a length of the sum over blocks of squared overlaps, in integers."""
    starts = size - length + 1
    rounds, rest = divmod(starts, width)
    return (rounds * _squares(length, width, width) + _squares(length, width, rest)) / starts


def _squares(length: int, width: int, offsets: int) -> int:
    """The sum of squared overlaps with blocks of a width, over ranges that start at each offset into a block.

    A range has a piece of the first block, whole blocks, and a piece of the last: up to some offset, one block fewer.
    """
    blocks, rest = divmod(length, width)
    turn = min(offsets, width - rest)
    early = turn * rest**2
    if blocks:
        early = turn * (blocks - 1) * width**2 + _powers(width - turn + 1, width + 1) + _powers(rest, rest + turn)
    late = max(0, offsets - turn)
    after = late * blocks * width**2 + _powers(rest - late + 1, rest + 1) + _powers(0, late)
    return early + after


def _powers(start: int, end: int) -> int:
    """The sum of squares from start to end - 1."""
    return sum(sign * (m - 1) * m * (2 * m - 1) // 6 for sign, m in ((1, end), (-1, start)))


@dataclass(frozen=True)
class Variances:
    """Variance of the first pass at every height."""

    full: tuple[float, ...]
    """Of ordinary nodes."""
    edge: tuple[float, ...]
    """Of the last node of a level."""
    beside: tuple[float, ...]
    """Of the other children of the last parent."""


def first_pass(shape: Shape, noise: Sequence[float]) -> Variances:
    """Precisions add from the leaves up; `noise` is by height.

    The same numbers as `tacit.post.levels` computes next to the values, without the values.
    """
    full, edge = [noise[0]], [noise[0]]
    for height in range(1, shape.top):
        below = (shape.last_children(height) - 1) * full[-1] + edge[-1]
        children = shape.fanout * full[-1]
        full.append(1 / (1 / noise[height] + 1 / children))
        edge.append(1 / (1 / noise[height] + 1 / below))
    return Variances(tuple(full), tuple(edge), tuple(full))


def signed_variances(shape: Shape, noise: Sequence[float], scales: Sequence[float]) -> Variances:
    """What `first_pass` is to signed levels; `scales` are 1/n of the levels.

    A difference d has the variance (V1 - d^2)/n over a population; on uniform data only the last parents have any.
    """
    halves = [level / 2 for level in noise]
    edge: list[float] = []
    for height, half in enumerate(halves):
        width, children = 2**height, shape.last_children(height + 1)
        last = shape.size - (shape.nodes(height) - 1) * width
        difference = (width - last if children == 2 else last) / shape.size
        edge.append(half - difference**2 * scales[height] / 2)
    return Variances(tuple(halves), tuple(edge), tuple(edge))


def mean_variance(shape: Shape, workload: Workload, variances: Variances) -> float:
    """The variance of an answer averaged over the workload, before the respondents' own spread is taken off.

    Exact on complete trees. On ragged ones the last node of a level is taken to hold as many as the others, and ranges
    of one length are sampled: within 1 % from 512 leaves on.
    """
    if shape.complete:
        return sum(w * workload.cuts(shape, height) for height, w in enumerate(variances.full))
    if workload.name == "length":
        low = _starts(shape.size - workload.length + 1)
        return float(span_variances(shape, variances, low, low + workload.length).mean())
    total = _whole(shape, variances)
    if workload.name == "prefixes":
        return total.prefixes / shape.size
    if workload.name == "points":
        return total.points / shape.size
    return ((shape.size + 1) * total.prefixes - total.sums) / (shape.size * (shape.size + 1) / 2)


@dataclass(frozen=True)
class _Part:
    """Sums over the prefixes that end in a subtree, and over its leaves.

    An answer reaches a node with its share of the node: the mean of the children's shares, weighted by variance.
    """

    leaves: int = 1
    share: float = 1.0
    """Sum over prefixes of their share of the node."""
    square: float = 1.0
    """Sum over prefixes of the squared share."""
    point: float = 1.0
    """Sum over leaves of the squared share that a leaf alone has."""
    place: float = 0.0
    """Weighted mean of the leaves' places: minus the share of the sum of all prefixes, but for a constant."""
    prefixes: float = 0.0
    """Sum over prefixes of their variance inside the subtree."""
    points: float = 0.0
    """The same for points."""
    sums: float = 0.0
    """Variance of the sum of all prefixes inside the subtree."""


def _whole(shape: Shape, variances: Variances) -> _Part:
    """The tree as a whole, from two subtrees per height: an ordinary one and the last one."""
    full = edge = _Part()
    for height, w_full in enumerate(variances.full):
        last = shape.last_children(height + 1)
        edge = _joined(full, variances.beside[height], last - 1, edge, variances.edge[height])
        full = _joined(full, w_full, shape.fanout - 1, full, w_full)
    return edge


def _starts(count: int) -> I64:
    """All starts, or 4,096 of them in golden-ratio steps, which no power of a fan-out resonates with."""
    if count <= _SAMPLED:
        return np.arange(count)
    return (np.modf(np.arange(1, _SAMPLED + 1) * (5**0.5 - 1) / 2)[0] * count).astype(np.int64)


@dataclass(frozen=True)
class _Cut:
    """Where boundaries cut the children of their parents at one height."""

    parent: I64
    child: I64
    weight: F64
    beside: F64
    whole: F64
    below: F64
    above: F64

    @property
    def alone(self) -> F64:
        """What a parent adds that is cut once."""
        return self.child * self.beside + self.weight * self.below**2 - self.whole * self.above**2


def _cuts(shape: Shape, variances: Variances, at: I64) -> list[_Cut]:
    """By height, with the shares of the children and parents that lie before the boundaries."""
    below, found = np.zeros(len(at)), list[_Cut]()
    for height in range(shape.top):
        node, last = at // shape.fanout**height, shape.nodes(height) - 1
        parent = node // shape.fanout
        edge = parent == last // shape.fanout
        beside = np.where(edge, variances.beside[height], variances.full[height])
        weight = np.where(node == last, variances.edge[height], beside)
        rest = (shape.last_children(height + 1) - 1) * variances.beside[height] + variances.edge[height]
        whole = np.where(edge, rest, shape.fanout * variances.full[height])
        child = node - parent * shape.fanout
        above = (child * beside + weight * below) / whole
        found.append(_Cut(parent, child, weight, beside, whole, below, above))
        below = above
    return found


def span_variances(shape: Shape, variances: Variances, low: I64, high: I64) -> F64:
    """The variance of ranges between boundaries, by the sum over the parents that they cut."""
    # A range up to the end of the domain is as uncertain as the prefix before it.
    first, second = np.where(high == shape.size, 0, low), np.where(high == shape.size, low, high)
    total = np.zeros(len(low))
    for a, b in zip(_cuts(shape, variances, first), _cuts(shape, variances, second), strict=True):
        between = np.where(
            a.child == b.child,
            a.weight * (b.below - a.below) ** 2,
            a.weight * (1 - a.below) ** 2 + (b.child - a.child - 1) * a.beside + b.weight * b.below**2,
        )
        same = between - a.whole * (b.above - a.above) ** 2
        total += np.where(a.parent == b.parent, same, a.alone + b.alone)
    return total


def _joined(first: _Part, w_first: float, count: int, last: _Part, w_last: float) -> _Part:
    """A parent of `count` equal subtrees and a last one."""
    whole = count * w_first + w_last
    each, end = w_first / whole, w_last / whole
    ones, squares = count * (count - 1) / 2, (count - 1) * count * (2 * count - 1) / 6
    before = count * each
    share = first.leaves * each * ones + each * first.share * count + last.leaves * before + end * last.share
    square = each**2 * (first.leaves * squares + 2 * first.share * ones + first.square * count)
    square += last.leaves * before**2 + 2 * before * end * last.share + end**2 * last.square
    inside = first.leaves * w_first * ones + w_first * first.square * count
    inside += last.leaves * w_first * count + w_last * last.square
    point = count * each**2 * first.point + end**2 * last.point
    point_inside = count * w_first * first.point + w_last * last.point
    jump = count * first.leaves + last.place - first.place
    centre = each * first.leaves * ones + end * jump
    scatter = w_first * first.leaves**2 * squares + w_last * jump**2 - whole * centre**2
    return replace(
        first,
        leaves=count * first.leaves + last.leaves,
        share=share,
        square=square,
        point=point,
        place=first.place + centre,
        prefixes=count * first.prefixes + last.prefixes + inside - whole * square,
        points=count * first.points + last.points + point_inside - whole * point,
        sums=count * first.sums + last.sums + scatter,
    )
