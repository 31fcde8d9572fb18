"""One name, one idea: a public class of the package is defined in one place."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "tacit"


def public_classes(source: str) -> list[str]:
    """The names of the classes of a module, those inside other classes and functions left out."""
    return re.findall(r"^class ([^\W_]\w*)", source, re.MULTILINE)


def homes_of(sources: dict[str, str]) -> dict[str, list[str]]:
    """Every class name with the modules that define it."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path, source in sources.items():
        for name in public_classes(source):
            homes[name].append(path)
    return homes


def defined_twice(homes: dict[str, list[str]]) -> dict[str, list[str]]:
    """Every class name that more than one module defines, or one module twice."""
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


@pytest.fixture(scope="module")
def homes() -> dict[str, list[str]]:
    """The classes of the package, all modules parsed once."""
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 300
    return homes_of({str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in paths})


def test_the_check_notices_a_name_of_two_classes() -> None:
    sources = {"a.py": "class Plan: ...\nclass _Own: ...", "b.py": "class Plan: ...\nclass _Own: ..."}
    assert defined_twice(homes_of(sources)) == {"Plan": ["a.py", "b.py"]}


def test_every_public_class_has_a_name_of_its_own(homes: dict[str, list[str]]) -> None:
    assert defined_twice(homes) == {}


def test_the_largest_number_of_labels_is_set_in_one_place() -> None:
    """Schemas of SQL and domains of questions list the same labels: two limits would drift apart."""
    homes = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if re.search(r"^MAX_LABELS\b.*=", path.read_text(encoding="utf-8"), re.M)
    ]
    assert homes == ["device/domains/domain.py"]


def test_the_glossary_names_classes_that_exist(homes: dict[str, list[str]]) -> None:
    glossary = (PACKAGE.parents[1] / "spec" / "glossary.md").read_text(encoding="utf-8")
    words = glossary.partition("## Words of the code")[2].partition("\n## ")[0]
    named = {
        name for cell in re.findall(r"^\| [^|]+ \| ([^|]+) \|", words, re.M) for name in re.findall(r"`(\w+)`", cell)
    }
    assert len(named) > 20
    assert named <= homes.keys(), named - homes.keys()
