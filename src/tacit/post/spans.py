"""Variances of range answers from a complete tree, in O(height) per range instead of one pass over all nodes.

A range puts the same coefficient on all nodes that lie between its ends, and on all that lie outside, unless they hang
below a node that an end cuts. So per height it is enough to follow the two nodes that contain the ends, and the sums
over all other nodes, which go on to the next height by one factor.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.post.levels import Fit, Sums

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Node:
    """One followed node per range: its index, and the coefficient that its first-pass value has in the answer."""

    index: I64
    reached: F64


def spans(fit: Fit, respondents: float, low: I64, high: I64) -> F64:
    """Variance of the mass from boundary low to boundary high, for many ranges over a complete tree."""
    total = fit.cumulative[high] - fit.cumulative[low]
    variance = -(total - total**2) / max(1.0, respondents - 1)
    walk = _signed_walk if fit.signed else _plain_walk
    variance = walk(fit, respondents, _Ends(fit.shape.size, fit.shape.fanout, low, high, fit.cumulative), variance)
    if fit.floor:
        width = fit.shape.fanout**fit.floor
        variance = np.where((low % width == 0) & (high % width == 0), variance, np.inf)
    return np.clip(variance, 0, None)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Ranges by their boundaries, and the geometry that both walks need."""

    size: int
    fanout: int
    low: I64
    high: I64
    cumulative: F64

    def nodes(self, height: int) -> tuple[I64, I64]:
        """The nodes that contain the ends; any node will do for an end at the end of the domain."""
        width = self.fanout**height
        return np.minimum(self.low, self.size - 1) // width, np.minimum(self.high, self.size - 1) // width

    def inside(self, node: I64, height: int) -> F64:
        """The share of a node's leaves that lie in the range."""
        width = self.fanout**height
        start = node * width
        overlap = np.minimum(self.high, start + width) - np.maximum(self.low, start)
        return np.clip(overlap, 0, None) / width

    def mass(self, start: I64, end: I64, height: int) -> F64:
        """The mass from one node of a height up to another."""
        width = self.fanout**height
        return self.cumulative[end * width] - self.cumulative[start * width]


def _signed_walk(fit: Fit, respondents: float, ends: _Ends, variance: F64) -> F64:
    for height in range(fit.shape.top):
        first, second = ends.nodes(height + 1)
        sums = [np.zeros(len(variance)) for _ in range(4)]
        for node, counted in ((first, np.ones(len(first))), (second, (first != second).astype(np.float64))):
            weight = (ends.inside(2 * node, height) - ends.inside(2 * node + 1, height)) / 2 * counted
            left, right = ends.mass(2 * node, 2 * node + 1, height), ends.mass(2 * node + 1, 2 * node + 2, height)
            for i, term in enumerate((weight, weight**2, weight * (left - right), weight**2 * (left + right))):
                sums[i] += term
        level = fit.at.get(height)
        if level is None:
            variance = np.where(sums[1] > 1e-24, np.inf, variance)
        else:
            variance = variance + level.variance(Sums(*sums), respondents)
    return variance


def _plain_walk(fit: Fit, respondents: float, ends: _Ends, variance: F64) -> F64:
    zero = np.zeros(len(ends.low))
    others = np.zeros((4, len(zero)))
    parents = (_Node(np.zeros_like(ends.low), zero), _Node(np.zeros_like(ends.low), zero))
    below = 0.0  # The root is known: nothing reaches it.
    for height in range(fit.shape.top - 1, -1, -1):
        others = others * np.array([ends.fanout * below, ends.fanout * below**2, below, below**2])[:, None]
        nodes = _children(ends, parents, height, below)
        others = others + _siblings(ends, parents, nodes, height, below)
        own, below = fit.steps[height].own[0], fit.steps[height].below[0]
        level = fit.at.get(height)
        if level is not None:
            sums = (others + _followed(ends, nodes, height)) * np.array([own, own**2, own, own**2])[:, None]
            variance = variance + level.variance(Sums(*sums), respondents)
        parents = nodes
    return variance


def _children(ends: _Ends, parents: tuple[_Node, _Node], height: int, below: float) -> tuple[_Node, _Node]:
    """The followed children, and what reaches them."""
    made = [
        _Node(node, below * parent.reached + ends.inside(node, height) - ends.inside(parent.index, height + 1))
        for node, parent in zip(ends.nodes(height), parents, strict=True)
    ]
    return made[0], made[1]


def _siblings(ends: _Ends, parents: tuple[_Node, _Node], nodes: tuple[_Node, _Node], height: int, below: float) -> F64:
    """Sums over the children of followed nodes that are not followed themselves, all of them inside or outside."""
    (first, second), (left, right), fanout = parents, nodes, ends.fanout
    same = first.index == second.index
    outside_first, outside_second = (
        below * node.reached - ends.inside(node.index, height + 1) for node in parents
    )  # fmt: skip
    between = np.where(same, right.index, fanout * (first.index + 1))
    start = np.where(same, right.index, fanout * second.index)
    groups = (
        (outside_first, fanout * first.index, left.index),
        (outside_first + 1, left.index + 1, np.maximum(between, left.index + 1)),
        (outside_second + 1, start, right.index),
        (outside_second, right.index + 1, fanout * (second.index + 1)),
    )
    sums = np.zeros((4, len(same)))
    for weight, begin, end in groups:
        count, mass = (end - begin).astype(np.float64), ends.mass(begin, end, height)
        sums += np.stack([count * weight, count * weight**2, mass * weight, mass * weight**2])
    return sums


def _followed(ends: _Ends, nodes: tuple[_Node, _Node], height: int) -> F64:
    """Sums over the one or two followed nodes."""
    left, right = nodes
    sums = np.zeros((4, len(left.index)))
    for node, counted in ((left, 1.0), (right, (left.index != right.index).astype(np.float64))):
        weight, mass = node.reached, ends.mass(node.index, node.index + 1, height)
        sums += counted * np.stack([weight, weight**2, mass * weight, mass * weight**2])
    return sums
