"""Write the lists of kinds that follow from the catalogue: Python's public names and JavaScript's three lists.

Usage: python tools/make_lists.py [--check]

`tacit.catalog.CATALOG` and `tacit.device.catalog.FAMILIES` decide; a JavaScript class belongs to the kind that it names
in `static kind = "…"`. Only what stands between the two marks of a list is written. With --check nothing is written
and the exit status is 1 if a list is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tacit.catalog import CATALOG
from tacit.device.catalog import FAMILIES

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "The lists of kinds begin: tools/make_lists.py writes them.", "The lists of kinds end."
WIDTH = 120
TWIN = re.compile(r'^export class (\w+) extends [\w.]+ \{\n  static kind = "(\w+)";', re.MULTILINE)


class Twin:
    """A class of the JavaScript device: its name, and its module below js/src."""

    def __init__(self, name: str, module: PurePosixPath) -> None:
        self.name, self.module = name, module


def twins(root: Path = ROOT) -> dict[str, Twin]:
    """The JavaScript class of every kind, family and domain that has one."""
    source = root / "js" / "src"
    return {
        kind: Twin(name, PurePosixPath(path.relative_to(source).as_posix()))
        for path in sorted(source.rglob("*.js"))
        for name, kind in TWIN.findall(path.read_text(encoding="utf-8"))
    }


def by_module(kinds: Iterable[str], known: Mapping[str, Twin]) -> dict[PurePosixPath, list[str]]:
    """Kinds that have a JavaScript class, gathered by its module in the order of their first kind."""
    modules: dict[PurePosixPath, list[str]] = {}
    for kind in kinds:
        if kind in known:
            modules.setdefault(known[kind].module, []).append(kind)
    return modules


def address(module: PurePosixPath, source: PurePosixPath) -> str:
    """How one JavaScript module names another: relative, from its own folder."""
    up = len(source.parent.parts)
    return f"{'../' * up or './'}{module}"


def python_names(catalog: Sequence[type[Any]]) -> str:
    """The home of every kind's class, for `tacit.__getattr__`."""
    homes: dict[str, list[str]] = {}
    for cls in catalog:
        homes.setdefault(cls.__module__, []).append(cls.__name__)
    lines = ["_KIND_HOMES = {"]
    for home, names in sorted(homes.items()):
        quoted = ", ".join(f'"{name}"' for name in sorted(names))
        lines.append(f'    "{home}": ({quoted}{"," if len(names) == 1 else ""}),')
    return "\n".join([*lines, "}"])


def wrapped(names: Sequence[str]) -> list[str]:
    """A JavaScript list over several lines, as many names on each as fit."""
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) + 3 <= WIDTH:
            lines[-1] += f" {name},"
        else:
            lines.append(f"  {name},")
    return lines


def js_kinds(kinds: Sequence[str], families: Sequence[str], known: Mapping[str, Twin], source: PurePosixPath) -> str:
    """kinds.js: the imports, KINDS and FAMILIES."""
    imports = js_statements("import", [*kinds, *families], known, source)
    base = address(PurePosixPath("base.js"), source)
    return "\n".join([
        imports, "", f'/** @type {{ReadonlyArray<typeof import("{base}").Device>}} */',
        "export const KINDS = [", *wrapped([known[kind].name for kind in kinds if kind in known]), "];", "",
        "/** Families of questions of which one is answered: parts of a spec, not kinds of their own. */",
        f"export const FAMILIES = [{', '.join(known[kind].name for kind in families if kind in known)}];",
    ])  # fmt: skip


def js_statements(verb: str, kinds: Sequence[str], known: Mapping[str, Twin], source: PurePosixPath) -> str:
    """One import or export statement per module."""
    return "\n".join(
        f'{verb} {{ {", ".join(sorted(known[kind].name for kind in group))} }} from "{address(module, source)}";'
        for module, group in sorted(by_module(kinds, known).items())
    )


def js_modules(kinds: Sequence[str], known: Mapping[str, Twin], source: PurePosixPath) -> str:
    """load.js: which module is fetched for which kinds."""
    return "\n".join(
        f'  ["{" ".join(group)}", () => import("{address(module, source)}")],'
        for module, group in by_module(kinds, known).items()
    )


def find(name: str, root: Path) -> Path:
    """A JavaScript module by its file name, wherever it is below js/src."""
    (path,) = (root / "js" / "src").rglob(name)
    return path


def lists(
    catalog: Sequence[type[Any]] = CATALOG, families: Sequence[type[Any]] = FAMILIES, root: Path = ROOT
) -> dict[Path, str]:
    """What every file with a list must have between its marks."""
    kinds, parts, known = [cls.kind for cls in catalog], [cls.kind for cls in families], twins(root)
    makers: dict[str, Callable[[PurePosixPath], str]] = {
        "kinds.js": lambda source: js_kinds(kinds, parts, known, source),
        "index.js": lambda source: js_statements("export", [*kinds, *parts], known, source),
        "load.js": lambda source: js_modules([*kinds, *parts], known, source),
    }
    found = {root / "src" / "tacit" / "__init__.py": python_names(catalog)}
    for name, make in makers.items():
        path = find(name, root)
        found[path] = make(PurePosixPath(path.relative_to(root / "js" / "src").as_posix()))
    return found


def replaced(text: str, content: str) -> str:
    """A file's text with new content between the lines of its two marks."""
    pattern = re.compile(rf"^([^\n]*{re.escape(BEGIN)}\n)(.*?)^([^\n]*{re.escape(END)})$", re.MULTILINE | re.DOTALL)
    changed, count = pattern.subn(lambda match: f"{match[1]}{content}\n{match[3]}", text)
    if count != 1:
        raise ValueError(f"the marks {BEGIN!r} and {END!r} must be there once, in this order")
    return changed


def stale(wanted: Mapping[Path, str]) -> dict[Path, str]:
    """The whole new text of every file whose list is not what it must be."""
    texts = {path: path.read_text(encoding="utf-8") for path in wanted}
    new = {path: replaced(text, wanted[path]) for path, text in texts.items()}
    return {path: text for path, text in new.items() if text != texts[path]}


def main(arguments: list[str]) -> int:
    """Write or check; return the exit status."""
    changes = stale(lists())
    if arguments == ["--check"]:
        for path in changes:
            print(f"{path.relative_to(ROOT)}: the list of kinds is stale; run tools/make_lists.py", file=sys.stderr)
        return 1 if changes else 0
    for path, text in changes.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
