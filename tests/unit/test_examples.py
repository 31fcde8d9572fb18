"""The example notebooks run from top to bottom, and are kept without outputs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))
SLOW = {"comparing.ipynb", "heavy_hitters.ipynb", "ranges.ipynb", "sql.ipynb"}
"""What takes more than a second of CPU time; their tasks are tested in tests/unit/library as well."""


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def cells(path: Path) -> list[str]:
    """The source of every code cell."""
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def marked(path: Path) -> Any:
    return pytest.param(path, marks=[pytest.mark.slow] if path.name in SLOW else [], id=path.stem)


@pytest.mark.slow_cases("planning", "marginals")
@pytest.mark.parametrize("path", [marked(path) for path in NOTEBOOKS])
def test_a_notebook_runs(path: Path) -> None:
    """Cells run one after the other in one namespace, as a kernel would.

    What the fast ones assert about random answers fails in fewer than 1 of 10^6 runs: intervals have level 1 - 10^-7,
    and the root of the Wald statistic of marginals.ipynb is about 11.7 with a standard error of 1, where 2.6 is asked.
    """
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    known: dict[str, Any] = {"__name__": "__main__"}
    for number, source in enumerate(cells(path)):
        exec(compile(source, f"{path.name}, cell {number}", "exec"), known)
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_outputs_and_names_its_cells(path: Path) -> None:
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
    assert notebook["cells"][0]["source"][0].startswith("# ")


def test_every_topic_has_a_notebook_that_the_page_lists() -> None:
    names = {path.stem for path in NOTEBOOKS}
    assert names == {"comparing", "heavy_hitters", "histogram", "marginals", "planning", "ranges", "sql"}
    page = (NOTEBOOKS[0].parent / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.ipynb)" in page for name in names)
