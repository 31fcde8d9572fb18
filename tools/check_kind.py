"""Say which points of the checklist in CONTRIBUTING.md a kind still lacks.

Usage: python tools/check_kind.py [kind …]          or: make kind KIND=grr

Kinds are mechanisms (`grr`) and families (`tree`); without an argument all of both are checked. The exit status is 1
if anything is missing. A point that a kind is excused from has a written reason in EXCUSED.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from make_lists import Twin, lists, stale, twins
from vector_cases import load

import tacit
from tacit.catalog import CATALOG
from tacit.device.catalog import FAMILIES, KINDS
from tacit.tasks.choose import OPTIONS
from tacit.testing.examples import example

ROOT = Path(__file__).resolve().parents[1]
HEADINGS = ("Client", "Estimator", "Costs and edge cases", "Reference")
"""What a page of mathematics must have: a heading that begins so, for each of these."""

_NOT_AN_ORACLE = "is no oracle: it estimates no frequencies of a domain, so there is nothing to compare"
_COLLIDES = "has a fixed error from shared hashes, which the exact average error of the chooser leaves out"
_NO_NUMBER = "no number that its source prints is reproduced; its formulas are tested in "

EXCUSED: dict[str, dict[str, str]] = {
    "chooser": {
        **dict.fromkeys(
            (
                "hrr_signed",
                "rappor",
                "onebit",
                "dlap",
                "sw",
                "rounded",
                "one_of",
                "all_of",
                "memo",
                "padded",
                "set_size",
                "tree_steps",
            ),
            _NOT_AN_ORACLE,
        ),
        **dict.fromkeys(("flh", "rmp", "cms", "hcms"), _COLLIDES),
        "hrr_t": "is never better than hrr_subspace, which has the same reports",
        "brappor": "is there for compatibility: it is sue with two fields more",
        "she": "is never better than the, which thresholds the same noise",
        "layered": "is for repeated answers; a single one is better asked with grr at its whole epsilon",
        "dbitflip": "has one more field, the buckets that are sampled; with all of them it is sue",
    },
    "number of a paper": {
        "flh": _NO_NUMBER + "test_oracles.py",
        "hrr_signed": _NO_NUMBER + "test_hrr_signed.py",
        "brappor": _NO_NUMBER + "test_rappor.py",
        **dict.fromkeys(("cms", "hcms"), _NO_NUMBER + "test_sketch.py"),
        "onebit": _NO_NUMBER + "test_mean.py",
        "rounded": _NO_NUMBER + "test_means.py",
        "dlap": _NO_NUMBER + "test_laplace.py",
        "sw": _NO_NUMBER + "test_square_wave.py",
        "dbitflip": _NO_NUMBER + "test_bit_flip.py",
        "memo": _NO_NUMBER + "test_memo.py",
        **dict.fromkeys(("one_of", "all_of"), _NO_NUMBER + "test_compose.py"),
        "padded": "Table 5.1 of its source is reproduced through amplified_epsilon, in test_itemsets.py",
        "set_size": _NO_NUMBER + "test_sets.py",
    },
}
"""Why a kind is excused from a point, by point and kind."""


@dataclass(frozen=True)
class Point:
    """One step of the checklist: its name, the file where it is done, and whether a kind has it."""

    name: str
    file: str
    done: Callable[[str], bool]


@cache
def read(path: str) -> str:
    """The text of a file, or nothing where there is none."""
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def row(path: str, cell: str) -> Callable[[str], bool]:
    """Whether a table has a row whose first cell is `cell`, with the kind put in."""
    return lambda kind: bool(re.search(rf"^\| {re.escape(cell.replace('KIND', kind))} \|", read(path), re.MULTILINE))


def server_class(kind: str) -> Any:
    """The class of a kind in the catalogue, or None."""
    return next((entry for entry in CATALOG if entry.kind == kind), None)


@cache
def js_twins() -> dict[str, Twin]:
    """The JavaScript classes by kind."""
    return twins()


@cache
def vector_kinds() -> set[str]:
    """The kinds that tools/vector_cases has good and bad cases of."""
    loaded = load()
    return {case[0] for case in loaded.good} & {case[0] for case in loaded.bad}


def has_vectors(kind: str) -> bool:
    """Cases that make golden vectors, and the files they make: good ones, and bad ones that must be refused."""
    names = [path.name for path in (ROOT / "spec" / "vectors" / kind).glob("*.json")]
    bad = [name for name in names if name.startswith("bad_")]
    return kind in vector_kinds() and 0 < len(bad) < len(names)


def has_family_vectors(kind: str) -> bool:
    """Golden vectors of `one_of` that are named after the family; those of plain questions come without its name."""
    names = [path.name for path in (ROOT / "spec" / "vectors" / "one_of").glob("*.json")]
    pattern = kind if kind != "questions" else "(?:family|two_questions|weights|member)"
    good = [name for name in names if re.match(pattern, name)]
    return bool(good) and any(re.match(f"bad_(?:{pattern})", name) for name in names)


def in_lists(kind: str) -> bool:
    """The kind has a JavaScript class and no generated list is stale."""
    return kind in js_twins() and not stale(lists())


def has_example(kind: str) -> bool:
    """The laws find a tiny instance, and its fields are the spec."""
    return server_class(kind) is not None and example(kind, "1").kind == kind


def has_page(kind: str) -> bool:
    """The page of mathematics has the headings that every page has."""
    headings = re.findall(r"^## (.+)$", read(f"docs/maths/{kind}.md"), re.MULTILINE)
    return all(any(heading.startswith(begin) for heading in headings) for begin in HEADINGS)


@cache
def _benchmark() -> Any:
    folder = ROOT / "benchmarks"
    spec = importlib.util.spec_from_file_location("benchmarks_kinds", folder / "kinds.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))  # It imports its neighbours by their names.
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def has_benchmark(kind: str) -> bool:
    """Both halves can be measured."""
    return server_class(kind) is not None and min(_benchmark().measure(kind, n=16, repeats=1).values()) > 0


def named_in(*folders: str) -> Callable[[str], bool]:
    """Whether a test of some folders names the class of a kind or family, or the kind in quotes."""

    def named(kind: str) -> bool:
        cls: Any = next((entry for entry in (*CATALOG, *FAMILIES) if entry.kind == kind), None)
        words = rf"\b{cls.__name__}\b|\"{kind}\"" if cls else f'"{kind}"'
        files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
        return any(re.search(words, path.read_text(encoding="utf-8")) for path in files)

    return named


def documented(kind: str) -> bool:
    """A family is explained on some page of mathematics, under its kind."""
    return any(f"`{kind}`" in path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "maths").glob("*.md"))


def declared(kind: str) -> bool:
    """The type declarations have a class of this kind."""
    return bool(re.search(rf'readonly kind: .*"{kind}"', read("js/index.d.ts")))


def in_js_readme(kind: str) -> bool:
    """A row of the table of kinds has it in some cell."""
    return bool(re.search(rf"^\|.*`{kind}`.*\|$", read("js/README.md"), re.MULTILINE))


def is_public(kind: str) -> bool:
    """`tacit` has the class under its name."""
    return getattr(server_class(kind), "__name__", "") in dir(tacit)


def in_schema(kind: str) -> bool:
    """The JSON Schema of documents knows the spec."""
    return f'"spec_{kind}"' in read("spec/collection.schema.json")


_LISTS = "js/src/kinds.js, index.js and load.js, by tools/make_lists.py"
_REASON = "or a reason in tools/check_kind.py"

POINTS = (
    Point("mathematics", "docs/maths/{kind}.md", has_page),
    Point("device half", "src/tacit/device/kinds/ and device/catalog.py", lambda k: k in {d.kind for d in KINDS}),
    Point("server half", "src/tacit/oracles/ or numeric/, and catalog.py", lambda k: server_class(k) is not None),
    Point("public name", "src/tacit/__init__.py, by tools/make_lists.py", is_public),
    Point("example for the laws", "src/tacit/testing/examples.py", has_example),
    Point("law of the sampler", "tests/laws/test_*samplers.py", named_in("tests/laws")),
    Point("golden vectors", "spec/vectors/{kind}/, by tools/vector_cases/ and tools/make_vectors.py", has_vectors),
    Point("JavaScript twin", "js/src/", lambda k: k in js_twins()),
    Point("JavaScript lists", _LISTS, in_lists),
    Point("JavaScript types", "js/index.d.ts", declared),
    Point("JavaScript page", "js/README.md", in_js_readme),
    Point("wire layout", "spec/wire.md", row("spec/wire.md", "`KIND`")),
    Point("glossary", "spec/glossary.md", row("spec/glossary.md", "`KIND`")),
    Point("schema", "spec/collection.schema.json, by tools/make_schema.py", in_schema),
    Point("list of pages", "docs/maths/README.md", row("docs/maths/README.md", "[KIND](KIND.md)")),
    Point("row in the table", "docs/mechanisms.md", row("docs/mechanisms.md", "[`KIND`](maths/KIND.md)")),
    Point("chooser", f"src/tacit/tasks/choose.py, {_REASON}", lambda k: k in {o.kind for o, _ in OPTIONS}),
    Point("benchmark", "benchmarks/kinds.py, by itself", has_benchmark),
    Point("number of a paper", f"tests/papers/, {_REASON}", named_in("tests/papers")),
)
"""The checklist of a mechanism, in the order in which it is worked off."""

FAMILY_POINTS = (
    Point("mathematics", "docs/maths/", documented),
    Point("device", "src/tacit/device/families/ and device/catalog.py", lambda k: k in {f.kind for f in FAMILIES}),
    Point("tests of the family", "tests/laws/ and tests/unit/device/", named_in("tests/laws", "tests/unit/device")),
    Point("golden vectors", "spec/vectors/one_of/{kind}_*.json, by tools/vector_cases/", has_family_vectors),
    Point("JavaScript twin", "js/src/", lambda k: k in js_twins()),
    Point("JavaScript lists", _LISTS, in_lists),
    Point("JavaScript types", "js/index.d.ts", declared),
    Point("wire layout", "spec/wire.md", lambda k: f"`{k}`" in read("spec/wire.md")),
    Point("glossary", "spec/glossary.md", row("spec/glossary.md", "`KIND`")),
)
"""The checklist of a family."""


def points_of(kind: str) -> tuple[Point, ...]:
    """The checklist that applies: what is no known family is taken for a mechanism."""
    return FAMILY_POINTS if kind in {family.kind for family in FAMILIES} else POINTS


def lacks(kind: str) -> list[Point]:
    """The points that a kind has not got and is not excused from."""
    return [point for point in points_of(kind) if kind not in EXCUSED.get(point.name, {}) and not point.done(kind)]


def main(arguments: list[str]) -> int:
    """Print what is missing; return the exit status."""
    kinds = arguments or [entry.kind for entry in (*CATALOG, *FAMILIES)]
    incomplete = 0
    for kind in kinds:
        missing = lacks(kind)
        incomplete += bool(missing)
        total = len(points_of(kind))
        print(f"{kind}: {'complete' if not missing else f'lacks {len(missing)} of {total} points'}")
        for point in missing:
            print(f"  {point.name:<22} {point.file.format(kind=kind)}")
    return 1 if incomplete else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
