"""Where to put the boxes and lines of a layered graph: rows, few crossings, straight long edges (Sugiyama's method).

An edge goes from an importer down to what it imports. An edge that passes rows gets a *bend*, an invisible narrow box,
in each of them, so that it has a place of its own and does not run through other boxes:

    row 2    [ a ]            a imports b and c, b imports c
               | \\
    row 1    [ b ] bend       the edge a -> c passes row 1 beside b
               | /
    row 0    [ c ]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

Edge = tuple[str, str]
Rows = list[list[str]]
ROUNDS = 40
STARTS = 30
"""First orders that are tried: sweeps end in the nearest good order, which need not be the best one."""
BEND_WIDTH = 18.0


def reduced(edges: Iterable[Edge]) -> set[Edge]:
    """The transitive reduction: an edge that a longer way implies is left out."""
    below: dict[str, set[str]] = {}
    for upper, lower in edges:
        below.setdefault(upper, set()).add(lower)
    reach: dict[str, set[str]] = {}

    def reachable(node: str) -> set[str]:
        if node not in reach:
            reach[node] = set().union(*(reachable(lower) | {lower} for lower in below.get(node, ())))
        return reach[node]

    return {
        (upper, lower)
        for upper, lowers in below.items()
        for lower in lowers
        if not any(lower in reachable(other) for other in lowers - {lower})
    }


def heights(nodes: Iterable[str], edges: set[Edge]) -> dict[str, int]:
    """The row of every node, 0 at the bottom: the longest way down, then closer to its importers where it has more."""
    names = sorted(nodes)
    row = dict.fromkeys(names, 0)
    for _ in names:
        for upper, lower in edges:
            row[upper] = max(row[upper], row[lower] + 1)
    for node in sorted(names, key=lambda name: -row[name]):
        importers = [upper for upper, lower in edges if lower == node]
        imported = [lower for upper, lower in edges if upper == node]
        if len(importers) > len(imported):
            row[node] = min(row[upper] for upper in importers) - 1
    return row


@dataclass
class Drawing:
    """Rows from top to bottom with bends, the chain of nodes that each edge follows, and where every box is."""

    rows: Rows
    chains: dict[Edge, list[str]]
    width: dict[str, float]
    left: dict[str, float]

    def middle(self, node: str) -> float:
        """The middle of a box."""
        return self.left[node] + self.width[node] / 2

    @property
    def total_width(self) -> float:
        """How wide the widest row is."""
        return max(self.left[node] + self.width[node] for node in self.left)


def draw(width: Mapping[str, float], edges: set[Edge], gap: float) -> Drawing:
    """Place boxes of given widths in rows, edges downwards."""
    row = heights(width, edges)
    chains = {edge: _chain(edge, row) for edge in sorted(edges)}
    for (upper, _), chain in chains.items():
        for step, bend in enumerate(chain[1:-1], start=1):
            row[bend] = row[upper] - step
    widths = {node: width.get(node, BEND_WIDTH) for node in row}
    top = max(row.values(), default=0)
    rows = [sorted(node for node in row if row[node] == level) for level in range(top, -1, -1)]
    links = {pair for chain in chains.values() for pair in pairwise(chain)}
    starts = [[sorted(row, key=lambda node: crc32(f"{turn}{node}".encode())) for row in rows] for turn in range(STARTS)]
    ordered = min((_ordered(start, links) for start in starts), key=lambda order: _quality(order, links))
    return Drawing(ordered, chains, widths, _lefts(ordered, links, widths, gap))


def _chain(edge: Edge, row: Mapping[str, int]) -> list[str]:
    """An edge from box to box, with a bend in every row between."""
    upper, lower = edge
    return [upper, *(f"{upper}>{lower}@{level}" for level in range(row[upper] - 1, row[lower], -1)), lower]


def crossings(rows: Rows, links: set[Edge]) -> int:
    """How many pairs of lines cross between neighbouring rows."""
    place = {node: i for row in rows for i, node in enumerate(row)}
    level = {node: i for i, row in enumerate(rows) for node in row}
    total = 0
    ordered = sorted(links, key=lambda link: (level[link[0]], place[link[0]], place[link[1]]))
    for i, (upper, lower) in enumerate(ordered):
        for other, other_lower in ordered[i + 1 :]:
            if level[other] != level[upper]:
                break
            total += (place[upper] - place[other]) * (place[lower] - place[other_lower]) < 0
    return total


def _quality(rows: Rows, links: set[Edge]) -> tuple[int, float]:
    """What an order is judged by, least is best: crossings, then how far lines go sideways."""
    place = {node: i - len(row) / 2 for row in rows for i, node in enumerate(row)}
    return crossings(rows, links), sum(abs(place[upper] - place[lower]) for upper, lower in links)


def _ordered(rows: Rows, links: set[Edge]) -> Rows:
    """Order every row by the barycentre of its neighbours, up and down in turn; then swap neighbours while it helps."""
    above = {node: [u for u, low in links if low == node] for row in rows for node in row}
    below = {node: [low for u, low in links if u == node] for row in rows for node in row}
    best, least = rows, crossings(rows, links)
    for turn in range(ROUNDS):
        downwards = turn % 2 == 0
        rows = [list(row) for row in rows]
        for row in rows if downwards else reversed(rows):
            place = {node: i / len(line) for line in rows for i, node in enumerate(line)}
            near = above if downwards else below
            row.sort(key=lambda node: _mean([place[other] for other in near[node]], place[node]))
        if (count := crossings(rows, links)) < least:
            best, least = rows, count
    return _swapped(best, links)


def _swapped(rows: Rows, links: set[Edge]) -> Rows:
    """Swap neighbours in a row as long as that takes crossings away."""
    rows, least, improved = [list(row) for row in rows], crossings(rows, links), True
    while improved:
        improved = False
        for row in rows:
            for i in range(len(row) - 1):
                row[i], row[i + 1] = row[i + 1], row[i]
                count = crossings(rows, links)
                if count < least:
                    least, improved = count, True
                else:
                    row[i], row[i + 1] = row[i + 1], row[i]
    return rows


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _lefts(rows: Rows, links: set[Edge], width: Mapping[str, float], gap: float) -> dict[str, float]:
    """Left ends: every box as close below and above its neighbours as the others of its row allow."""
    near: dict[str, list[str]] = {node: [] for row in rows for node in row}
    for upper, lower in links:
        # Bends pull harder: a long edge should be straight, a box may give way.
        near[upper].extend([lower] * (1 + 3 * (">" in upper and ">" in lower)))
        near[lower].extend([upper] * (1 + 3 * (">" in upper and ">" in lower)))
    middle = {node: 0.0 for row in rows for node in row}

    def settle(row: list[str], others: set[str]) -> None:
        # A box without any neighbour stays with the others of its row.
        centre = _mean([middle[node] for node in row if near[node]], 0.0)
        wanted = [_mean([middle[other] for other in near[node] if other in others], centre) for node in row]
        middle.update(zip(row, _apart(row, wanted, width, gap), strict=True))

    for turn in range(2 * ROUNDS):
        for row in rows if turn % 2 == 0 else reversed(rows):
            settle(row, set(middle))
    # From the widest row outwards each row hangs on the one before alone, so that narrow ends do not lean to a side.
    widest = max(range(len(rows)), key=lambda i: sum(width[node] + gap for node in rows[i]))
    for i in range(widest + 1, len(rows)):
        settle(rows[i], set(rows[i - 1]))
    for i in range(widest - 1, -1, -1):
        settle(rows[i], set(rows[i + 1]))
    least = min(middle[node] - width[node] / 2 for node in middle)
    return {node: middle[node] - width[node] / 2 - least for node in middle}


def _apart(row: list[str], wanted: list[float], width: Mapping[str, float], gap: float) -> list[float]:
    """The middles closest to the wanted ones (least squares) that keep the order and the gaps: isotonic regression."""
    offsets, position = [], 0.0
    for i, node in enumerate(row):
        position += 0.0 if i == 0 else (width[row[i - 1]] + width[node]) / 2 + gap
        offsets.append(position)
    blocks: list[tuple[float, int]] = []
    for value, offset in zip(wanted, offsets, strict=True):
        blocks.append((value - offset, 1))
        # Neighbours in the wrong order are pooled at their mean.
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (second, b), (first, a) = blocks.pop(), blocks.pop()
            blocks.append(((first * a + second * b) / (a + b), a + b))
    pooled = [value for value, count in blocks for _ in range(count)]
    return [value + offset for value, offset in zip(pooled, offsets, strict=True)]
