"""The exact expected error of ranges from the levels of a tree, averaged over a workload, on uniform data.

    root          .------------------.           A range cuts at most two nodes per height, on the paths to its ends.
    height 1    [####]    [##|..]   [....]       Only their parents add variance: where all children lie inside, or all
    height 0    # # # #   # #|. .   . . . .      outside, the shares o_i below are equal and the term vanishes.

After constrained inference the variance of an answer is a sum over inner nodes: with o_i the share of child i that
lies in the answer and w_i the variance of the first pass at the child, a node adds sum w_i o_i^2 - (sum w_i o_i)^2 /
sum w_i. Averages of that over all ranges, prefixes or points have closed forms. docs/maths/ranges.md derives them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import F64, I64
from tacit.errors import InvalidSpec
from tacit.post.trees.levels import TreeShape

NAMES = ("ranges", "prefixes", "points")
_SAMPLED = 4096
"""Ranges of one length that are sampled where a ragged tree has more of them."""


@dataclass(frozen=True)
class Workload:
    """The answers that an error is averaged over: all ranges, prefixes or points, or all ranges of one length."""

    name: str
    length: int = 0

    @classmethod
    def parse(cls, text: str, size: int) -> "Workload":
        """Parse `ranges`, `prefixes`, `points` or `length:r`; InvalidSpec lists the known names."""
        if text in NAMES:
            return cls(text)
        name, _, digits = text.partition(":")
        if name != "length" or not digits.isdecimal():
            raise InvalidSpec(f"ranges: workload is {text[:40]!r}, must be one of {', '.join(NAMES)} or length:r")
        if not 1 <= int(digits) <= size - 1:
            raise InvalidSpec(f"ranges: a length of {digits[:20]} is outside the domain, must be from 1 to {size - 1}")
        return cls(name, int(digits))

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return f"length:{self.length}" if self.length else self.name

    def spread(self, size: int) -> float:
        """Return the mean of R (1 - R) over the answers R on uniform data: the respondents' own variance."""
        if self.name == "ranges":
            return (size + 2) * (size - 1) / (6 * size**2)
        if self.name == "prefixes":
            return (size + 1) * (size - 1) / (6 * size**2)
        share = max(1, self.length) / size
        return share * (1 - share)

    def cuts(self, shape: TreeShape, height: int) -> float:
        """Return the mean over the workload of sum (o_i - mean o)^2, summed over all parents of nodes of a height.

        o_i is the share of child i that lies in the answer. Only complete trees have these closed forms.
        """
        fanout, width = shape.fanout, shape.fanout**height
        if self.name == "points":
            return (1 - 1 / fanout) / width**2
        if self.name == "length":
            inner = _overlap(shape.size, self.length, width) / width**2
            return inner - _overlap(shape.size, self.length, width * fanout) / (fanout * width**2)
        # One boundary, averaged over all its positions; a range has two. What is taken off is the overlap of the cases
        # in which both boundaries lie under the same parent.
        once = (fanout - 1) / 6 + (fanout - 1) / (6 * fanout * width**2)
        if self.name == "prefixes":
            return once
        return 2 * once - width * (fanout**2 - 1) / (6 * (shape.size + 1))


def _overlap(size: int, length: int, width: int) -> float:
    """Return the mean, over all ranges of a length, of the sum of squared overlaps with blocks of a width.

    Starts repeat with the period of a block, so the sum is over whole periods and a rest; in integers, thus exact.
    """
    starts = size - length + 1
    rounds, rest = divmod(starts, width)
    return (rounds * _squares(length, width, width) + _squares(length, width, rest)) / starts


def _squares(length: int, width: int, offsets: int) -> int:
    """Return the sum of squared overlaps with blocks of a width, over ranges that start at offsets 0 .. offsets - 1.

    |<- width ->|<- width ->|<- width ->|
         [=====|===========|==]              a piece of the first block, whole blocks, a piece of the last

    Up to the offset width - rest (`turn`) the range spans blocks - 1 whole blocks, from there on `blocks` of them.
    """
    blocks, rest = divmod(length, width)
    # Sums of squares of the two pieces run over consecutive integers, as the offset grows by one.
    turn = min(offsets, width - rest)
    early = turn * rest**2
    if blocks:
        early = turn * (blocks - 1) * width**2 + _powers(width - turn + 1, width + 1) + _powers(rest, rest + turn)
    late = max(0, offsets - turn)
    after = late * blocks * width**2 + _powers(rest - late + 1, rest + 1) + _powers(0, late)
    return early + after


def _powers(start: int, end: int) -> int:
    """Return the sum of squares from start to end - 1, by Faulhaber's formula."""
    return sum(sign * (m - 1) * m * (2 * m - 1) // 6 for sign, m in ((1, end), (-1, start)))


@dataclass(frozen=True)
class Variances:
    """Variances of the nodes after the first (upward) pass of constrained inference, by height.

    In a ragged tree the last node of a level has fewer leaves below it, so it and its siblings need their own numbers.
    """

    full: tuple[float, ...]
    """The variance of an ordinary node, with a complete subtree."""
    edge: tuple[float, ...]
    """The variance of the last node of a level, whose subtree may be incomplete."""
    beside: tuple[float, ...]
    """The variance of the siblings of the last node."""


def first_pass(shape: TreeShape, noise: Sequence[float]) -> Variances:
    """Return the variances after the upward pass, in which precisions add from the leaves up; `noise` is by height.

    A node's own estimate is averaged with the sum of its children by inverse variance (Hay et al., VLDB 2010, 4.1).

    The same numbers as `tacit.post.trees.levels` computes next to the values, without the values.
    """
    full, edge = [noise[0]], [noise[0]]
    for height in range(1, shape.top):
        # The last node's children: ordinary ones, and the last of their level.
        below = (shape.last_children(height) - 1) * full[-1] + edge[-1]
        children = shape.fanout * full[-1]
        full.append(1 / (1 / noise[height] + 1 / children))
        edge.append(1 / (1 / noise[height] + 1 / below))
    return Variances(tuple(full), tuple(edge), tuple(full))


def signed_variances(shape: TreeShape, noise: Sequence[float], scales: Sequence[float]) -> Variances:
    """Return what `first_pass` does, for signed levels (Haar differences); `scales` are 1/n of the levels.

    A difference d has the variance (V1 - d^2)/n over a population; on uniform data only the last parents have any.
    """
    halves = [level / 2 for level in noise]
    edge: list[float] = []
    for height, half in enumerate(halves):
        # The last pair of a level: both siblings, the right one short, or the left one alone.
        width, children = 2**height, shape.last_children(height + 1)
        last = shape.size - (shape.nodes(height) - 1) * width
        difference = (width - last if children == 2 else last) / shape.size
        edge.append(half - difference**2 * scales[height] / 2)
    return Variances(tuple(halves), tuple(edge), tuple(edge))


def mean_variance(shape: TreeShape, workload: Workload, variances: Variances) -> float:
    """Return the variance of an answer averaged over the workload, before the respondents' own spread is taken off.

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
    # Sum over x < y of Var(P_y - P_x) = (size + 1) * sum of Var(P_x) - Var(sum of P_x), for prefixes P_1 .. P_size.
    return ((shape.size + 1) * total.prefixes - total.sums) / (shape.size * (shape.size + 1) / 2)


@dataclass(frozen=True)
class _Part:
    """Sums over the prefixes that end in a subtree and over its leaves, for the recursion of its parent.

    Equal subtrees have equal sums, so a tree of any size takes one `_joined` per height in place of a pass over all
    prefixes. An answer reaches a node with its share of the node: the mean of the children's shares, weighted by
    variance.
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
    """Sum over leaves of the variance of a leaf alone, inside the subtree."""
    sums: float = 0.0
    """Variance of the sum of all prefixes inside the subtree."""


def _whole(shape: TreeShape, variances: Variances) -> _Part:
    """Return the sums of the whole tree, from two subtrees per height: an ordinary one and the last, incomplete one."""
    full = edge = _Part()
    for height, w_full in enumerate(variances.full):
        last = shape.last_children(height + 1)
        edge = _joined(full, variances.beside[height], last - 1, edge, variances.edge[height])
        full = _joined(full, w_full, shape.fanout - 1, full, w_full)
    return edge


def _starts(count: int) -> I64:
    """Return all starts, or 4,096 of them in golden-ratio steps, which no power of a fan-out resonates with."""
    if count <= _SAMPLED:
        return np.arange(count)
    return (np.modf(np.arange(1, _SAMPLED + 1) * (5**0.5 - 1) / 2)[0] * count).astype(np.int64)


@dataclass(frozen=True)
class _Cut:
    """Where boundaries cut the children of their parents at one height; one entry per boundary.

    parent   |  child 0  |  child 1  | child 2: cut |  child 3  |
                                     #####|               child = 2 whole children lie before the boundary
    `below` is the share of the cut child before the boundary, `above` that of the parent (weighted by variance);
    `weight` is the cut child's variance, `beside` that of its siblings, `whole` the sum over all children.
    """

    parent: I64
    child: I64
    weight: F64
    beside: F64
    whole: F64
    below: F64
    above: F64

    @property
    def alone(self) -> F64:
        """The variance that a parent adds which is cut by one boundary only."""
        return self.child * self.beside + self.weight * self.below**2 - self.whole * self.above**2


def _cuts(shape: TreeShape, variances: Variances, at: I64) -> list[_Cut]:
    """Return the cuts of boundaries at every height, from the leaves up; `below` of a height is `above` of the last."""
    below, cuts = np.zeros(len(at)), list[_Cut]()
    for height in range(shape.top):
        # The node that contains the boundary, and the last node of the level, which may be incomplete.
        node, last = at // shape.fanout**height, shape.nodes(height) - 1
        parent = node // shape.fanout
        edge = parent == last // shape.fanout
        beside = np.where(edge, variances.beside[height], variances.full[height])
        weight = np.where(node == last, variances.edge[height], beside)
        rest = (shape.last_children(height + 1) - 1) * variances.beside[height] + variances.edge[height]
        whole = np.where(edge, rest, shape.fanout * variances.full[height])
        child = node - parent * shape.fanout
        above = (child * beside + weight * below) / whole
        cuts.append(_Cut(parent, child, weight, beside, whole, below, above))
        below = above
    return cuts


def span_variances(shape: TreeShape, variances: Variances, low: I64, high: I64) -> F64:
    """Return the variance of ranges between boundaries: the sum over the parents that they cut."""
    # A range up to the end of the domain is as uncertain as the prefix before it.
    first, second = np.where(high == shape.size, 0, low), np.where(high == shape.size, low, high)
    total = np.zeros(len(low))
    for a, b in zip(_cuts(shape, variances, first), _cuts(shape, variances, second), strict=True):
        # Both boundaries under the same parent: in one child, or in two with whole children between them.
        between = np.where(
            a.child == b.child,
            a.weight * (b.below - a.below) ** 2,
            a.weight * (1 - a.below) ** 2 + (b.child - a.child - 1) * a.beside + b.weight * b.below**2,
        )
        same = between - a.whole * (b.above - a.above) ** 2
        total += np.where(a.parent == b.parent, same, a.alone + b.alone)
    return total


def _joined(first: _Part, w_first: float, count: int, last: _Part, w_last: float) -> _Part:
    """Return the sums of a parent of `count` equal subtrees and a last one."""
    # A prefix that ends in child j holds j whole children and its share s of child j, hence the power sums over j:
    #   share  = sum of (j + s) * each          square = sum of (j + s)^2 * each^2
    # docs/maths/ranges.md derives the terms; `inside` is sum w_i o_i^2 before the parent's total is taken off.
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
