"""What a paper printed beside what was found: tests note it, and the run ends with one page of tables and plots.

A test takes the fixture `beside` and notes series: the same numbers once as printed and once as found. Workers leave
their notes in build/papers; the last process to end joins them into build/papers/index.html.
"""

import json
import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.papers.page import page

FOLDER = Path(__file__).resolve().parents[2] / "build" / "papers"


class Beside:
    """Notes of one test."""

    def __init__(self, test: str) -> None:
        self.test = test
        self.notes: list[dict[str, Any]] = []

    def __call__(
        self,
        source: str,
        *,
        x: Sequence[Any],
        printed: dict[str, Sequence[float | None]],
        found: dict[str, Sequence[float | None]],
        axis: str = "",
        unit: str = "",
        tolerance: str = "",
        logarithmic: bool = False,
    ) -> None:
        """Note series of a table or figure; `printed` may lack series that the source only draws."""
        self.notes.append({
            "test": self.test, "source": source, "x": [str(item) for item in x], "axis": axis, "unit": unit,
            "printed": {name: _plain(values) for name, values in printed.items()},
            "found": {name: _plain(values) for name, values in found.items()},
            "tolerance": tolerance, "logarithmic": logarithmic,
        })  # fmt: skip


def _plain(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else float(value) for value in values]


@pytest.fixture
def beside(request: pytest.FixtureRequest) -> Generator[Beside]:
    """Note printed and found numbers of this test."""
    notes = Beside(request.node.nodeid)
    yield notes
    if notes.notes:
        FOLDER.mkdir(parents=True, exist_ok=True)
        name = "".join(c if c.isalnum() else "_" for c in request.node.name)[:150]
        (FOLDER / f"{name}.json").write_text(json.dumps(notes.notes), encoding="utf-8")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Join the notes, in the process that started the run."""
    if os.environ.get("PYTEST_XDIST_WORKER") or not FOLDER.is_dir():
        return
    notes = [note for path in sorted(FOLDER.glob("*.json")) for note in json.loads(path.read_text(encoding="utf-8"))]
    if notes:
        (FOLDER / "index.html").write_text(page(notes), encoding="utf-8")
    del session
