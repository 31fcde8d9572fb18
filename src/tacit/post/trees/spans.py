"""Variances of range answers from a fitted tree, in O(height) per range instead of one pass over all nodes.

A range puts the same coefficient on all nodes of a height that lie between its ends, and on all that lie outside,
unless they hang below a node that an end cuts. So per height it is enough to follow the two nodes that contain the
ends, and the sums over all other nodes, which go on to the next height by one factor. The last node of every height,
which may have fewer children and weights of its own, is followed as well.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.post.trees.levels import LevelSums, TreeFit


def spans(fit: TreeFit, respondents: float, low: I64, high: I64, *, share: F64 | None = None) -> F64:
    """Return the variance of the mass from boundary low to boundary high, for many ranges at once.

    The fit is plugged in for the truth, or a `share` of everybody per range, evenly in it, and the rest evenly outside.
    """
    ends = _Ends.of(fit, low, high, share)
    total = ends.mass(low, high, 0)
    variance = -(total - total**2) / max(1.0, respondents - 1)
    walk = _signed_walk if fit.signed else _plain_walk
    variance = walk(fit, respondents, ends, variance)
    if fit.floor:
        # Below the floor nothing was measured: ranges that cut a node of that height have no finite variance.
        width, size = fit.shape.fanout**fit.floor, fit.shape.size
        aligned = (low % width == 0) & ((high % width == 0) | (high == size))
        variance = np.where(aligned | (low == high), variance, np.inf)
    return np.clip(variance, 0, None)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Ranges by their boundaries, and the geometry that both walks need."""

    fit: TreeFit
    low: I64
    high: I64
    share: F64 | None
    """How many are in every range, where the fit is not plugged in."""
    inside_last: list[F64]
    """Per height, the share of the last node's mass that a range takes when the mass is shared as the fit shares it."""

    @classmethod
    def of(cls, fit: TreeFit, low: I64, high: I64, share: F64 | None) -> "_Ends":
        """Compute the last nodes from the leaves up: only they share their mass unevenly."""
        size = fit.shape.size
        ends = cls(fit, low, high, share, [_overlap(low, high, size - 1, size).astype(np.float64)])
        for height in range(1, fit.shape.top + 1):
            _, others, last = fit.shares(height - 1)
            width = fit.shape.fanout ** (height - 1)
            first = (fit.shape.nodes(height) - 1) * fit.shape.fanout * width
            covered = _overlap(low, high, first, (fit.shape.nodes(height - 1) - 1) * width) / width
            ends.inside_last.append(others * covered + last * ends.inside_last[-1])
        return ends

    def nodes(self, height: int) -> "tuple[I64, I64, I64]":
        """The nodes that contain the ends, and the last one; any node will do for an end at the end of the domain."""
        width, last = self.fit.shape.fanout**height, self.fit.shape.nodes(height) - 1
        return np.minimum(self.low // width, last), np.minimum(self.high // width, last), np.full_like(self.low, last)

    def inside(self, node: I64, height: int) -> F64:
        """The share of a node's mass that a range takes."""
        width, last = self.fit.shape.fanout**height, self.fit.shape.nodes(height) - 1
        share = _overlap(self.low, self.high, node * width, (node + 1) * width) / width
        return np.where(node == last, self.inside_last[height], share)

    def mass(self, start: I64, end: I64, height: int) -> F64:
        """The mass from one node of a height up to another."""
        width, size = self.fit.shape.fanout**height, self.fit.shape.size
        first, last = np.minimum(start * width, size), np.minimum(end * width, size)
        if self.share is None:
            return self.fit.cumulative[last] - self.fit.cumulative[first]
        # A hypothetical population: `share` spread evenly over the range, the rest evenly over the other leaves.
        inside = _overlap(self.low, self.high, first, last)
        outside, length = last - first - inside, np.maximum(self.high - self.low, 1)
        return self.share * inside / length + (1 - self.share) * outside / np.maximum(size - length, 1)


def _overlap(low: I64, high: I64, start: "I64 | int", end: "I64 | int") -> I64:
    """How many leaves two ranges have in common."""
    return np.clip(np.minimum(high, end) - np.maximum(low, start), 0, None)


def _signed_walk(fit: TreeFit, respondents: float, ends: _Ends, variance: F64) -> F64:
    """Add the variance of Haar levels: a node wholly inside or outside a range has coefficient 0, so three nodes do."""
    for height in range(fit.shape.top):
        sums = np.zeros((4, len(variance)))
        # Per followed node: the coefficient of its difference is half of what the range takes of one half more.
        for node, counted in _distinct(ends.nodes(height + 1)):
            weight = (ends.inside(2 * node, height) - ends.inside(2 * node + 1, height)) / 2 * counted
            if fit.shape.last_children(height + 1) == 1:  # Nothing is split between one half and none.
                weight = np.where(node == fit.shape.nodes(height + 1) - 1, 0.0, weight)
            left, right = ends.mass(2 * node, 2 * node + 1, height), ends.mass(2 * node + 1, 2 * node + 2, height)
            sums += np.stack([weight, weight**2, weight * (left - right), weight**2 * (left + right)])
        level = fit.at.get(height)
        if level is None:
            # Nobody answered: any coefficient beyond rounding makes the range unknown.
            variance = np.where(sums[1] > 1e-24, np.inf, variance)
        else:
            variance = variance + level.variance(LevelSums(*sums), respondents)
    return variance


def _distinct(nodes: "tuple[I64, I64, I64]") -> "list[tuple[I64, F64]]":
    """The followed nodes, each with 1 where it is met first and 0 where an earlier one is the same."""
    first, second, last = nodes
    once = np.ones(len(first))
    return [(first, once), (second, (second != first).astype(np.float64)), (last, (last != second).astype(np.float64))]


@dataclass(frozen=True, eq=False)
class _Followed:
    """The followed nodes of a height, in order, and the coefficients of their first-pass values in the answer."""

    nodes: "tuple[I64, I64, I64]"
    reached: "tuple[F64, F64, F64]"


def _plain_walk(fit: TreeFit, respondents: float, ends: _Ends, variance: F64) -> F64:
    """Add the variance of plain levels, from the root down: followed nodes one by one, all others as four sums."""
    zero = np.zeros(len(ends.low))
    others = np.zeros((4, len(zero)))
    followed = _Followed(ends.nodes(fit.shape.top), (zero, zero, zero))
    below = (0.0, 0.0)  # The root is known: nothing reaches it.
    for height in range(fit.shape.top - 1, -1, -1):
        # 1. What reached the nodes above passes on to their children by one factor. 2. The followed nodes hand over to
        # their own children. 3. Children of followed nodes that are not followed join the others.
        others = others * _powers(below[0], fit.shape.fanout)
        passed = [np.where(_is_last(fit, node, height + 1), below[1], below[0]) for node in followed.nodes]
        passed = [factor * reached for factor, reached in zip(passed, followed.reached, strict=True)]
        children = _children(ends, followed, passed, height)
        others = others + _siblings(ends, followed, children, passed, height)
        own, below = fit.steps[height].own, fit.steps[height].below
        level = fit.at.get(height)
        if level is not None:
            sums = others * _powers(own[0], 1) + _followed_sums(ends, children, own, height)
            variance = variance + level.variance(LevelSums(*sums), respondents)
        followed = children
    return variance


def _powers(factor: float, fanout: int) -> F64:
    """What a factor on every coefficient does to the four sums, every node standing for `fanout` children."""
    return np.array([fanout * factor, fanout * factor**2, factor, factor**2])[:, None]


def _is_last(fit: TreeFit, node: I64, height: int) -> "npt.NDArray[np.bool_]":
    return node == fit.shape.nodes(height) - 1


def _children(ends: _Ends, parents: _Followed, passed: list[F64], height: int) -> _Followed:
    """The followed children, and what reaches them."""
    nodes = ends.nodes(height)
    reached = [
        # The second pass adds a node's share of the range and takes off what its parent's surplus carries down.
        below + ends.inside(node, height) - ends.inside(parent, height + 1)
        for node, parent, below in zip(nodes, parents.nodes, passed, strict=True)
    ]
    return _Followed(nodes, (reached[0], reached[1], reached[2]))


def _siblings(ends: _Ends, parents: _Followed, children: _Followed, passed: list[F64], height: int) -> F64:
    """Sums over the children of followed nodes that are not followed themselves, all of them inside or outside.

        parents     first                   second                  last
        children    [ out | left | in ]     [ in | right | out ]    [ out | end ]

    Five groups of neighbours with one coefficient each; where two parents are the same, the groups between them meet.
    """
    (first, second, last), (left, right, end), fanout = parents.nodes, children.nodes, ends.fit.shape.fanout
    outside = [below - ends.inside(node, height + 1) for below, node in zip(passed, parents.nodes, strict=True)]
    one, two = first == second, second == last
    groups = (
        (outside[0], fanout * first, left),
        (outside[0] + 1, left + 1, np.where(one, right, fanout * (first + 1))),
        (outside[1] + 1, np.where(one, right, fanout * second), right),
        (outside[1], right + 1, np.where(two, end, fanout * (second + 1))),
        (outside[2], np.where(two, end, fanout * last), end),
    )
    sums = np.zeros((4, len(one)))
    for weight, begin, stop in groups:
        stop = np.maximum(stop, begin)
        count, mass = (stop - begin).astype(np.float64), ends.mass(begin, stop, height)
        sums += np.stack([count * weight, count * weight**2, mass * weight, mass * weight**2])
    return sums


def _followed_sums(ends: _Ends, followed: _Followed, own: tuple[float, float], height: int) -> F64:
    """Sums over the followed nodes, with the weight that their own estimates had in the first pass."""
    sums = np.zeros((4, len(ends.low)))
    for (node, counted), reached in zip(_distinct(followed.nodes), followed.reached, strict=True):
        weight = reached * np.where(_is_last(ends.fit, node, height), own[1], own[0])
        mass = ends.mass(node, node + 1, height)
        sums += counted * np.stack([weight, weight**2, mass * weight, mass * weight**2])
    return sums
