"""The picture of the rooms is the package's own graph, drawn downwards; the page that explains it names what exists."""

import importlib
import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> ModuleType:
    """A module of tools/, which import each other by their names."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "tools"))


layout, picture = tool("graph_layout"), tool("make_graph")


@pytest.fixture(scope="module")
def graphs() -> list[object]:
    return picture.graphs()


@pytest.fixture(scope="module")
def drawn(graphs: list[object]) -> str:
    return picture.make(graphs)


def test_the_committed_picture_has_every_room_and_every_arrow(graphs: list[object]) -> None:
    differing = picture.stale(graphs, (ROOT / "docs" / "rooms.svg").read_text(encoding="utf-8"))
    assert not differing, f"run make graph: {sorted(differing)}"


def test_a_missing_arrow_and_a_room_too_many_are_noticed(graphs: list[object]) -> None:
    drawn = (ROOT / "docs" / "rooms.svg").read_text(encoding="utf-8")
    assert picture.stale(graphs, drawn) == set()
    without = re.sub(r"<title>tacit: cli -&gt; dashboard</title>", "", drawn)
    assert picture.stale(graphs, without) == {"tacit: cli -> dashboard"}
    room = "<title>tacit.attic</title>"
    assert picture.stale(graphs, drawn + room) == {"tacit.attic"}


@pytest.mark.slow
def test_drawing_twice_gives_the_same_bytes_and_no_arrow_is_missing(graphs: list[object], drawn: str) -> None:
    assert picture.make(graphs) == drawn and picture.stale(graphs, drawn) == set()


def test_arrows_that_a_longer_way_implies_are_left_out() -> None:
    assert layout.reduced({("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}) == {("a", "b"), ("b", "c"), ("a", "d")}


def test_every_edge_goes_down_one_row_at_a_time_and_boxes_of_a_row_keep_their_gap() -> None:
    names = [f"n{i}" for i in range(12)]
    edges = layout.reduced({(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if (i * 7 + len(b)) % 3})
    edges |= {("n0", "n11"), ("n2", "n9")}
    drawing = layout.draw(dict.fromkeys(names, 50.0), edges, 10.0)
    row_of = {node: i for i, row in enumerate(drawing.rows) for node in row}
    for chain in drawing.chains.values():
        assert all(row_of[lower] == row_of[upper] + 1 for upper, lower in pairwise(chain))
    for row in drawing.rows:
        for first, second in pairwise(row):
            assert drawing.left[second] - drawing.left[first] - drawing.width[first] > 10 - 1e-6


def test_a_graph_that_can_be_drawn_without_crossings_is() -> None:
    # Two trees whose leaves come in the opposite order of their parents.
    edges = {("a", "z"), ("a", "y"), ("b", "x"), ("b", "w"), ("top", "a"), ("top", "b")}
    drawing = layout.draw(dict.fromkeys("abwxyz", 30.0) | {"top": 30.0}, edges, 5.0)
    links = {pair for chain in drawing.chains.values() for pair in pairwise(chain)}
    assert layout.crossings(drawing.rows, links) == 0
    assert layout.crossings([["top"], ["a", "b"], ["w", "y", "x", "z"]], links) == 3


PAGE = (ROOT / "docs" / "onboarding.md").read_text(encoding="utf-8")
CELL = r"[^|\n]*"
STEP = re.compile(rf"^\| \d+ \| `([^`]+)` \| ({CELL}) \|", re.MULTILINE)


def place(name: str) -> Path:
    """A path of the page: below src/tacit unless it starts at a folder of the repository."""
    root = ROOT if name.split("/")[0] in {"js", "src", "spec", "docs", "tests", "tools"} else ROOT / "src" / "tacit"
    return root / name


def defines(source: str, name: str) -> bool:
    """Whether a Python or JavaScript file defines a function, a class, or a method of a class that it defines."""
    owner, _, last = name.rpartition(".")
    found = re.search(rf"\b(?:def|class|function) {last}\b|^  (?:async )?#?{last}\(", source, re.MULTILINE)
    return found is not None and (not owner or re.search(rf"\bclass {owner}\b", source) is not None)


def layers() -> list[str]:
    """The rooms in the order of the contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return next(contract["layers"] for contract in contracts if contract["id"] == "layers")


def test_every_step_of_the_way_is_a_function_that_exists() -> None:
    steps = STEP.findall(PAGE)
    assert len(steps) > 20
    for path, names in steps:
        source = place(path).read_text(encoding="utf-8")
        for name in re.findall(r"`([^`]+)`", names):
            assert defines(source, name), f"{path} has no {name}"


def test_a_function_that_is_gone_would_be_noticed() -> None:
    assert defines("class A:\n    def b(self): ...\n", "A.b")
    assert not defines("class A:\n    def b(self): ...\n", "C.b")
    assert not defines("class A:\n    def c(self): ...\n", "A.b")


def test_every_file_and_module_of_the_page_exists() -> None:
    paths = re.findall(r"`([a-z][\w/]*\.(?:py|js|c|svg|md))`", PAGE)
    assert len(paths) > 25
    assert [path for path in paths if not place(path).is_file()] == []
    for module in re.findall(r"`(tacit(?:\.\w+)+)`", PAGE):
        path = ROOT / "src" / Path(*module.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), module


def test_the_table_of_rooms_has_every_room_in_the_order_of_the_contract() -> None:
    rooms, _, inside = PAGE.partition("Inside the larger rooms")
    row = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
    assert row.findall(rooms) == layers()
    assert set(row.findall(inside)) == {"collector", "shuffler", "tasks", "sql", "device", "core", "post"}
