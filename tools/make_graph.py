"""Draw docs/rooms.svg: the rooms of the package, what they import, and the layers inside three of them.

Usage: python tools/make_graph.py [--check]          or: make graph

A room is a child of `tacit`; its sentence is the first line of its docstring. An arrow means "imports"; one that a
longer way implies is left out. With --check nothing is written and the exit status is 1 if rooms or arrows differ.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

import grimp
from graph_layout import Drawing, Edge, draw, reduced

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "rooms.svg"
INSIDE = ("tasks", "sql", "collector")
"""Rooms that are drawn from inside as well."""

SIDES = {
    "private": ("device", "client"),
    "service": ("wire", "hosting", "collector", "shuffler", "dashboard", "cli", "demo"),
    "proof": ("testing", "simulate", "baselines", "central"),
}
LEGEND = {
    "private": "touches a private value",
    "maths": "mathematics: reports to answers",
    "service": "files, network, pages, commands",
    "proof": "comparison, simulation and proof",
}

STYLE = """
  .paper { fill: #ffffff; }
  .room { fill: #f6f8fa; stroke: #c9d1d9; }
  .edge { fill: none; stroke: #8c959f; stroke-width: 1.4; }
  .head { fill: #8c959f; }
  .name { font: 600 15px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; }
  .small { font: 500 12px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; }
  .note { font: 11.5px ui-sans-serif, system-ui, sans-serif; fill: #57606a; }
  .title { font: 600 18px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; }
  .private { fill: #bf3989; } .maths { fill: #0969da; } .service { fill: #1a7f37; } .proof { fill: #9a6700; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; }
    .room { fill: #161b22; stroke: #3d444d; }
    .edge { stroke: #7d8590; }
    .head { fill: #7d8590; }
    .name, .small, .title { fill: #e6edf3; }
    .note { fill: #9198a1; }
    .private { fill: #f778ba; } .maths { fill: #58a6ff; } .service { fill: #3fb950; } .proof { fill: #d29922; }
  }
"""


@dataclass(frozen=True)
class Graph:
    """A package: its children with a sentence each, and which of them import which, implied arrows left out."""

    package: str
    sentences: Mapping[str, str]
    edges: set[Edge]

    def marks(self) -> set[str]:
        """What a drawing of it must contain: a mark for every child and every arrow."""
        children = {f"{self.package}.{name}" for name in self.sentences}
        return children | {f"{self.package}: {upper} -> {lower}" for upper, lower in self.edges}


def sentence(module: str) -> str:
    """The first sentence of a module's docstring."""
    path = ROOT / "src" / Path(*module.split("."))
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    line = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].replace("\n", " ")
    first = re.split(r"(?<=[.?]) ", line)[0].replace("`", "")
    return re.sub(rf"^(?:The )?{module.rpartition('.')[2]}: (\w)", lambda match: match[1].upper(), first, flags=re.I)


def read_graph(package: str, graph: grimp.ImportGraph) -> Graph:
    """The children of a package and their imports."""
    children = sorted(graph.find_children(package))
    edges = {
        (upper.rpartition(".")[2], lower.rpartition(".")[2])
        for upper in children
        for lower in children
        if upper != lower and graph.direct_import_exists(importer=upper, imported=lower, as_packages=True)
    }
    return Graph(package, {child.rpartition(".")[2]: sentence(child) for child in children}, reduced(edges))


def graphs() -> list[Graph]:
    """The whole package, then the rooms that are drawn from inside."""
    found = grimp.build_graph("tacit", cache_dir=None)
    return [read_graph("tacit", found), *(read_graph(f"tacit.{name}", found) for name in INSIDE)]


def side(room: str) -> str:
    """Which side of the house a room is on: the mathematics, unless it is listed."""
    return next((name for name, rooms in SIDES.items() if room in rooms), "maths")


@dataclass(frozen=True)
class Sizes:
    """The measures of a drawing, in pixels."""

    width: float
    height: float
    gap: float
    between: float


ROOMS = Sizes(width=258, height=92, gap=24, between=42)
BOXES = Sizes(width=86, height=26, gap=10, between=26)


def edge_path(drawing: Drawing, chain: list[str], ends: tuple[float, float], sizes: Sizes) -> str:
    """A line from the bottom of a box, through its bends, to the top of another, vertical wherever it meets a row."""
    row_of = {node: i for i, row in enumerate(drawing.rows) for node in row}
    step = sizes.height + sizes.between
    path = f"M{ends[0]:.1f},{row_of[chain[0]] * step + sizes.height:.1f}"
    x, y = ends[0], row_of[chain[0]] * step + sizes.height
    for node in chain[1:]:
        last = node == chain[-1]
        to_x, to_y = (ends[1] if last else drawing.middle(node)), row_of[node] * step - (6 if last else 0)
        half = (to_y - y) / 2
        path += f"C{x:.1f},{y + half:.1f} {to_x:.1f},{to_y - half:.1f} {to_x:.1f},{to_y:.1f}"
        x, y = to_x, to_y
        if not last:
            y += sizes.height
            path += f"V{y:.1f}"
    return path


def ports(drawing: Drawing, sizes: Sizes) -> dict[Edge, tuple[float, float]]:
    """Where every edge leaves and enters: side by side, in the order of where it goes, so that lines do not merge."""
    ends: dict[Edge, list[float]] = {edge: [0.0, 0.0] for edge in drawing.chains}
    for end in (0, 1):
        for node in {edge[end] for edge in drawing.chains}:
            mine = [edge for edge in drawing.chains if edge[end] == node]
            mine.sort(key=lambda edge: drawing.middle(drawing.chains[edge][1 if end == 0 else -2]))
            space = min(22.0, (sizes.width - 20) / max(1, len(mine)))
            for i, edge in enumerate(mine):
                ends[edge][end] = drawing.middle(node) + (i - (len(mine) - 1) / 2) * space
    return {edge: (first, second) for edge, (first, second) in ends.items()}


def edges_svg(graph: Graph, drawing: Drawing, sizes: Sizes) -> Iterable[str]:
    """The arrows."""
    for edge, ends in sorted(ports(drawing, sizes).items()):
        upper, lower = edge
        path = edge_path(drawing, drawing.chains[edge], ends, sizes)
        mark = escape(f"{graph.package}: {upper} -> {lower}")
        yield f'<path class="edge" marker-end="url(#head)" d="{path}"><title>{mark}</title></path>'


def boxes_svg(graph: Graph, drawing: Drawing, sizes: Sizes, *, full: bool) -> Iterable[str]:
    """The rooms: name and sentence, or the name alone with the sentence as its tooltip."""
    for level, row in enumerate(drawing.rows):
        y = level * (sizes.height + sizes.between)
        for name in row:
            if name not in graph.sentences:
                continue
            x, text = drawing.left[name], graph.sentences[name]
            yield f'<g transform="translate({x:.1f},{y:.1f})">'
            yield f"<title>{escape(f'{graph.package}.{name}')}</title><desc>{escape(text)}</desc>"
            yield f'<rect class="room" width="{drawing.width[name]:.0f}" height="{sizes.height}" rx="6"/>'
            yield from (full_box(name, text, sizes) if full else small_box(name, drawing.width[name], sizes))
            yield "</g>"


def full_box(name: str, text: str, sizes: Sizes) -> Iterable[str]:
    """Name, coloured edge and the sentence in up to four lines."""
    yield f'<rect class="{side(name)}" width="5" height="{sizes.height}" rx="2"/>'
    yield f'<text class="name" x="14" y="20">{escape(name)}</text>'
    for i, line in enumerate(wrap(text, 38)[:4]):
        yield f'<text class="note" x="14" y="{37 + 14 * i}">{escape(line)}</text>'


def small_box(name: str, width: float, sizes: Sizes) -> Iterable[str]:
    """The name alone."""
    y = sizes.height / 2 + 4
    yield f'<text class="small" text-anchor="middle" x="{width / 2:.0f}" y="{y:.0f}">{escape(name)}</text>'


def panel(graph: Graph, sizes: Sizes, *, full: bool) -> tuple[list[str], float, float]:
    """One drawing with its width and height."""
    width = {name: sizes.width if full else 7.2 * len(name) + 18 for name in graph.sentences}
    drawing = draw(width, graph.edges, sizes.gap)
    shapes = [*edges_svg(graph, drawing, sizes), *boxes_svg(graph, drawing, sizes, full=full)]
    return shapes, drawing.total_width, len(drawing.rows) * (sizes.height + sizes.between) - sizes.between


def legend_svg() -> Iterable[str]:
    """What the colours mean."""
    x = 0.0
    for name, text in LEGEND.items():
        yield f'<rect class="{name}" x="{x:.0f}" y="-10" width="12" height="12" rx="3"/>'
        yield f'<text class="note" x="{x + 18:.0f}" y="0">{escape(text)}</text>'
        x += 44 + 6.2 * len(text)


def placed(x: float, y: float, shapes: Iterable[str]) -> Iterable[str]:
    """Shapes, moved."""
    return [f'<g transform="translate({x:.1f},{y:.1f})">', *shapes, "</g>"]


def make(drawn: list[Graph]) -> str:
    """The whole picture."""
    margin, head, titles = 32.0, 84.0, 56.0
    (rooms, width, height), *inner = [
        panel(one, ROOMS if i == 0 else BOXES, full=i == 0) for i, one in enumerate(drawn)
    ]
    shapes = [
        '<text class="title" x="32" y="42">The rooms of tacit</text>',
        *placed(margin, 66, legend_svg()),
        *placed(margin, head + 10, rooms),
    ]
    x, top = margin, head + 10 + height + titles
    space = max(40.0, (width - sum(part[1] for part in inner)) / max(1, len(inner) - 1))
    for graph, (part, part_width, _) in zip(drawn[1:], inner, strict=True):
        label = graph.package.rpartition(".")[2]
        shapes += placed(x, top, [f'<text class="name" x="0" y="0">inside {escape(label)}</text>'])
        shapes += placed(x, top + 20, part)
        x += part_width + space
    total_width = max(width + 2 * margin, x - space + margin)
    total_height = top + 20 + max(part[2] for part in inner) + margin
    return svg(total_width, total_height, shapes)


def svg(width: float, height: float, shapes: list[str]) -> str:
    """The file."""
    arrow = '<path class="head" d="M0,0L7,3.5L0,7z"/>'
    return "\n".join([
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">',
        "<title>The rooms of tacit and what they import; every arrow points down</title>",
        f"<style>{STYLE}</style>",
        f'<defs><marker id="head" viewBox="0 0 7 7" refX="1" refY="3.5" markerWidth="7" markerHeight="7" '
        f'markerUnits="userSpaceOnUse" orient="auto">{arrow}</marker></defs>',
        '<rect class="paper" width="100%" height="100%"/>',
        *shapes,
        "</svg>",
        "",
    ])  # fmt: skip


def marks_in(text: str) -> set[str]:
    """The children and arrows of a drawing, from its tooltips; the first title is that of the picture."""
    return {title.replace("&gt;", ">") for title in re.findall(r"<title>(.*?)</title>", text)[1:]}


def stale(drawn: list[Graph], text: str) -> set[str]:
    """Children and arrows that either the drawing or the package lacks."""
    return marks_in(text) ^ set().union(*(graph.marks() for graph in drawn))


def main(arguments: list[str]) -> int:
    """Draw or check; return the exit status."""
    drawn = graphs()
    if arguments == ["--check"]:
        differing = stale(drawn, TARGET.read_text(encoding="utf-8") if TARGET.is_file() else "")
        for mark in sorted(differing):
            print(f"docs/rooms.svg: {mark} differs; run make graph", file=sys.stderr)
        return 1 if differing else 0
    TARGET.write_text(make(drawn), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
