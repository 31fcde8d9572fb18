"""Build the documentation site: every page of the repository and a reference out of docstrings, in build/site/VERSION.

Pages are gathered as they lie in the repository, so that a link fits there and on the site. Links to what is no page
become plain text; every other link and anchor is checked, and one that is broken fails the build. The list of versions
beside them is the one that the theme's menu of versions reads; a version that is built again takes its own place.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

import yaml
from site_text import literal, separated

import tacit

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```|<!--.*?-->)", re.MULTILINE | re.DOTALL)
ASSETS = ("*.svg", "*.png", "*.json", "*.ipynb", "LICENSE")

NAV: list[Any] = [
    {"Start": [
        "README.md", {"All pages": "docs/README.md"}, {"What is not protected": "LIMITATIONS.md"},
        {"Weaknesses": "SECURITY.md"},
    ]},
    {"Tutorials": [
        {"Run a survey": "docs/tutorial/survey.md"},
        {"Run a survey from the terminal": "docs/tutorial/terminal.md"},
        {"Ask from your own application": "docs/tutorial/embed.md"},
        {"The library in one line": "docs/tutorial/library.md"},
        {"Notebooks": "examples/notebooks/README.md"},
    ]},
    {"How to": [
        {"Collect": [
            "docs/howto/run-a-collection.md", "docs/howto/run-a-shuffled-collection.md",
            "docs/howto/run-a-shuffler.md", {"Shuffle on one machine": "examples/shuffle/README.md"},
            "docs/howto/domains.md", "docs/howto/choose-an-oracle.md", "docs/howto/find-heavy-hitters.md",
            "docs/howto/ask-for-joint-tables.md", "docs/howto/query-with-sql.md",
        ]},
        {"Operate": [
            "docs/howto/install.md", "docs/howto/deploy.md", "docs/howto/settings.md", "docs/howto/sign-in.md",
            "docs/howto/teams.md", "docs/howto/monitor.md", "docs/howto/upgrade.md", "docs/howto/cli.md",
        ]},
        {"Count at scale": [
            "docs/howto/count-report-files.md", "docs/howto/count-with-spark.md", {"How far it goes": "docs/scale.md"},
        ]},
        {"Embed": ["docs/howto/telemetry.md", {"JavaScript": "js/README.md"}]},
    ]},
    {"Mechanisms": "docs/mechanisms.md"},
    {"Mathematics": "docs/maths"},
    {"Reference": [
        {"Python": "reference"},
        {"Formats": [
            "spec/wire.md", "spec/shuffle.md", "spec/report-files.md", "spec/errors.md", "spec/glossary.md",
        ]},
        {"Changes": "CHANGELOG.md"},
    ]},
    {"Inside": [
        "docs/onboarding.md", "CONTRIBUTING.md", {"Decisions": "docs/decisions"},
        {"Figures": ["benchmarks/RESULTS.md", "benchmarks/LOAD.md", "benchmarks/SCALE.md"]},
    ]},
]  # fmt: skip
"""The order of the pages; a folder stands for all pages in it."""

ROOMS = (
    "library", "client", "simulate", "testing", "errors", "device", "core", "oracles", "numeric", "post", "decode",
    "tasks", "sql", "shuffle", "central", "wire", "lake", "distributed", "catalog",
)  # fmt: skip
"""Rooms whose classes and functions programs import, in the order in which readers need them."""

# Who searches a word looks for a page that tells what to do first, and for the function of that name then.
BOOSTED = "---\nsearch:\n  boost: 0.2\n---\n\n"
ASIDE = ("docs/decisions/", "benchmarks/", "CHANGELOG")
"""Pages that few readers search for; as in the reference, what is found there comes last."""
WIDTH = 100
TUTORIAL = "[its tutorial](../docs/tutorial/library.md)"


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository that fit one of the patterns, relative to its root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [Path(name) for name in sorted(set(names) - {""}) if (ROOT / name).is_file()]


def stage(target: Path) -> None:
    """Copy pages and what they show, and write those that are made of something else."""
    pages = [path for path in tracked("*.md") if path.parts[0] not in ("tests", "typings")]
    assets = [path for path in tracked(*ASSETS) if path.parts[0] not in ("tests", "deploy")]
    known = {path.as_posix() for path in [*pages, *assets]}
    for path in pages:
        weight = BOOSTED if path.as_posix().startswith(ASIDE) else ""
        write(target / path, weight + readable((ROOT / path).read_text(encoding="utf-8"), path, known))
    for path in [*assets, Path("tools/site.css")]:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target / path)
    write(target / "reference" / "index.md", front())
    for room in ROOMS:
        write(target / "reference" / f"{room}.md", reference(room))
    write(target / "docs" / "decisions" / "index.md", decisions())


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def readable(text: str, page: Path, known: set[str]) -> str:
    """A page without links to what is not on the site, and with the empty lines that lists need here."""
    parts = FENCE.split(text)
    # Every second part is a fence, which stays as it is.
    parts[::2] = [literal(separated(LINK.sub(lambda link: kept(link, page, known), part))) for part in parts[::2]]
    return "".join(parts)


def kept(link: re.Match[str], page: Path, known: set[str]) -> str:
    """A link to a page, to what it shows or to another site; the text alone of any other."""
    name = link[2].partition("#")[0]
    if not name or re.match(r"[a-z]+:", name):
        return link[0]
    place = (ROOT / page.parent / name).resolve()
    if place == ROOT or ROOT not in place.parents:
        return link[1]
    return link[0] if place.relative_to(ROOT).as_posix() in known else link[1]


def reference(room: str) -> str:
    """The page of a room: all its public modules."""
    folder = ROOT / "src" / "tacit" / room
    modules = [f"tacit.{room}"]
    if folder.is_dir():
        names = sorted(path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py"))
        modules += [".".join(("tacit", room, *name.parts)) for name in names if not name.name.startswith("_")]
    return f"{BOOSTED}# tacit.{room}\n\n" + "".join(f"::: {name}\n\n" for name in modules)


def front() -> str:
    """The first page of the reference: what is called as `tacit.NAME` without looking for its room."""
    homes: dict[str, str] = {name: home for home, names in vars(tacit)["_TASK_HOMES"].items() for name in names}
    # Without a heading of its own, so that every name has one address, which is that in its room.
    options = "    options: {show_root_heading: false, show_root_toc_entry: false}\n\n"
    names = [name for name in dir(tacit) if name in homes]
    parts = "".join(f"## tacit.{name}\n\n{call(name)}::: {homes[name]}.{name}\n{options}" for name in names)
    said = f"The library in one line: {TUTORIAL}. Everything else is in the rooms beside this page."
    return f"# tacit\n\n{said}\n\n{parts}"


def call(name: str) -> str:
    """How something that tacit offers is called, without types."""
    parameters = inspect.signature(getattr(tacit, name)).parameters.values()
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    signature = str(inspect.Signature(bare))
    lines = fill(
        f"tacit.{name}{signature}", WIDTH, subsequent_indent=" " * len(f"tacit.{name}("), break_long_words=False
    )
    return f"```python\n{lines}\n```\n\n"


def title(path: Path) -> str:
    """The first heading of a page."""
    return next(line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# "))[2:]


def decisions() -> str:
    """The list of decisions."""
    pages = [path for path in tracked("docs/decisions/*.md")]
    lines = "".join(f"- [{title(ROOT / path)}]({path.name})\n" for path in pages)
    return f"# Decisions\n\nWhy it is built as it is, in the order in which it was decided.\n\n{lines}"


def whole_nav(staged: Path) -> list[Any]:
    """The order of the pages; those that nobody has given a place come last."""
    placed = nav(NAV, staged)
    known = set(pages_in(placed))
    pages = (path.relative_to(staged).as_posix() for path in sorted(staged.rglob("*.md")))
    rest = [page for page in pages if page not in known]
    return [*placed, {"More": rest}] if rest else placed


def pages_in(items: Any) -> Iterator[str]:
    """All pages of a part of the order."""
    if isinstance(items, str):
        yield items
        return
    for item in items.values() if isinstance(items, dict) else items:
        yield from pages_in(item)


def nav(items: list[Any], staged: Path) -> list[Any]:
    """A part of the order, with folders spelt out."""
    return [nav_item(item, staged) for item in items]


def nav_item(item: Any, staged: Path) -> Any:
    if isinstance(item, dict):
        ((name, value),) = item.items()
        return {name: nav(value, staged) if isinstance(value, list) else nav_item(value, staged)}
    if not (staged / item).is_dir():
        return item
    rooms = [f"{item}/{room}.md" for room in ("index", *ROOMS)]
    return rooms if item == "reference" else folder_pages(staged / item, staged)


def folder_pages(folder: Path, staged: Path) -> list[str]:
    """Pages of a folder, the one that lists them first."""
    pages = sorted(folder.glob("*.md"), key=lambda path: (path.stem not in ("README", "index"), path.stem))
    return [path.relative_to(staged).as_posix() for path in pages]


def config(staged: Path, output: Path) -> str:
    """The configuration of the renderer."""
    added = {"docs_dir": str(staged), "site_dir": str(output), "nav": whole_nav(staged)}
    # As text: the file has a tag of Python's in it, which a plain reader of YAML refuses.
    text = (ROOT / "tools" / "site.yml").read_text(encoding="utf-8").replace("paths: [src]", f"paths: [{ROOT}/src]")
    text = text.replace("[tools/site_docstrings.py]", f"[{ROOT}/tools/site_docstrings.py]")
    return text + yaml.safe_dump(added, allow_unicode=True)


def note_version(folder: Path, version: str) -> None:
    """Add a version to the list, newest first, and let the bare address lead to the newest."""
    file = folder / "versions.json"
    known: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    names = {entry["version"] for entry in known} | {version}
    ordered = sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    newest = ordered[0]
    write(file, json.dumps([
        {"version": name, "title": name, "aliases": ["latest"] if name == newest else []} for name in ordered
    ]))  # fmt: skip
    write(folder / "index.html", f'<!doctype html><meta http-equiv="refresh" content="0;url={newest}/">\n')


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    chosen = parser.parse_args()
    staged, version = ROOT / "build" / "site-pages", ".".join(tacit.__version__.split(".")[:2])
    shutil.rmtree(staged, ignore_errors=True)
    stage(staged)
    file = ROOT / "build" / "mkdocs.yml"
    write(file, config(staged, chosen.output / version))
    # Not --quiet: it hides warnings from the count that --strict goes by.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-f", str(file)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "tools")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        print("\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO")), file=sys.stderr)
        return done.returncode
    note_version(chosen.output, version)
    print(f"the site is in {chosen.output}; look at it with: {sys.executable} -m http.server -d {chosen.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
