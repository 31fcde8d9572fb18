"""One name, one idea: a public class of the package is defined in one place."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "tacit"


def public_classes(source: str) -> Iterator[str]:
    """The names of the classes of a module, those inside other classes and functions left out."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def defined_twice(sources: dict[str, str]) -> dict[str, list[str]]:
    """Every class name that more than one module defines, or one module twice."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path, source in sources.items():
        for name in public_classes(source):
            homes[name].append(path)
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_the_check_notices_a_name_of_two_classes() -> None:
    sources = {"a.py": "class Plan: ...\nclass _Own: ...", "b.py": "class Plan: ...\nclass _Own: ..."}
    assert defined_twice(sources) == {"Plan": ["a.py", "b.py"]}


def test_every_public_class_has_a_name_of_its_own() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    sources = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in paths}
    assert len(sources) > 300
    assert defined_twice(sources) == {}


def test_the_largest_number_of_labels_is_set_in_one_place() -> None:
    """Schemas of SQL and domains of questions list the same labels: two limits would drift apart."""
    homes = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if re.search(r"^MAX_LABELS\b.*=", path.read_text(encoding="utf-8"), re.M)
    ]
    assert homes == ["device/domains/domain.py"]


def test_the_glossary_names_classes_that_exist() -> None:
    glossary = (PACKAGE.parents[1] / "spec" / "glossary.md").read_text(encoding="utf-8")
    words = glossary.partition("## Words of the code")[2].partition("\n## ")[0]
    named = {
        name for cell in re.findall(r"^\| [^|]+ \| ([^|]+) \|", words, re.M) for name in re.findall(r"`(\w+)`", cell)
    }
    defined = {name for path in PACKAGE.rglob("*.py") for name in public_classes(path.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert named <= defined, named - defined
