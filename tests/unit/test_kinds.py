"""The checklist of a kind and the lists that follow from the catalogue: every kind is complete, and gaps are seen."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tacit.catalog import CATALOG
from tacit.device.catalog import FAMILIES
from tacit.oracles.grr import GRR

ROOT = Path(__file__).resolve().parents[2]
KINDS = [entry.kind for entry in (*CATALOG, *FAMILIES)]


def tool(name: str) -> ModuleType:
    """A module of tools/, which import each other by their names."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "tools"))


checklist, lists = tool("check_kind"), tool("make_lists")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_complete(kind: str) -> None:
    assert [point.name for point in checklist.lacks(kind)] == []


def test_a_made_up_kind_lacks_every_point() -> None:
    assert checklist.lacks("made_up") == list(checklist.POINTS)
    for point in checklist.FAMILY_POINTS:
        assert not point.done("made_up"), point.name


def test_english_words_do_not_count_as_a_mention_of_a_kind() -> None:
    assert checklist.named_in("tests/papers")("the")  # Table 3.2 has a column THE.
    assert not checklist.named_in("tests/papers")("table")


def test_the_checklist_prints_what_is_missing_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert checklist.main(["made_up", "grr"]) == 1
    printed = capsys.readouterr().out
    assert "made_up: lacks 19 of 19 points" in printed and "docs/maths/made_up.md" in printed
    assert "grr: complete" in printed
    assert checklist.main(["tree"]) == 0


def excuses() -> Iterator[tuple[str, str, str]]:
    for point, kinds in checklist.EXCUSED.items():
        for kind, reason in kinds.items():
            yield point, kind, reason


def test_every_excuse_is_needed_and_names_tests_that_exist() -> None:
    by_name = {point.name: point for point in checklist.POINTS}
    for point, kind, reason in excuses():
        assert kind in KINDS, kind
        assert not by_name[point].done(kind), f"{kind} has {point} by now; drop the excuse"
        for name in re.findall(r"test_\w+\.py", reason):
            assert list((ROOT / "tests").rglob(name)), name


def test_the_contributing_page_has_every_point_with_its_file() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for point in (*checklist.POINTS, *checklist.FAMILY_POINTS):
        assert f"**{point.name}**" in text, point.name
    numbered = re.findall(r"^\d+\. \*\*(.+?)\*\*", text.partition("### A new family")[0], re.MULTILINE)
    assert numbered == [point.name for point in checklist.POINTS]


def test_no_list_of_kinds_is_stale() -> None:
    assert lists.stale(lists.lists()) == {}


def test_a_list_without_its_last_kind_is_stale() -> None:
    shorter = lists.lists(catalog=CATALOG[:-1])
    assert {path.name for path in lists.stale(shorter)} == {"__init__.py", "kinds.js", "index.js", "load.js"}


def test_a_file_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="must be there once"):
        lists.replaced("nothing to write between", "")


def test_importing_tacit_imports_no_numpy_and_every_kind_is_a_public_name() -> None:
    code = "import json, sys, tacit; print(json.dumps([sorted(sys.modules), dir(tacit)]))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    modules, names = json.loads(output)
    assert not {"numpy", "msgspec", "tacit.catalog"} & set(modules)
    assert {entry.__name__ for entry in CATALOG} <= set(names)


def test_public_kinds_are_the_classes_of_the_catalogue() -> None:
    import tacit

    assert tacit.GRR is GRR
    for entry in CATALOG:
        assert getattr(tacit, entry.__name__) is entry
