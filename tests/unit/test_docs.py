"""Documentation is complete: every kind, command and error has its place, and no link is broken."""

import importlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tacit import errors
from tacit.catalog import CATALOG
from tacit.cli import cli

ROOT = Path(__file__).resolve().parents[2]
KINDS = sorted(entry.kind for entry in CATALOG)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor that a Markdown renderer gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def markdown_files() -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in sorted(set(output.split("\0")) - {""}) if (ROOT / name).is_file()]


def verbs(command: click.Command, name: str) -> Iterator[str]:
    """Every command and subcommand, as it is typed."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for verb in command.list_commands(context):
            child = command.get_command(context, verb)
            assert child is not None
            yield f"{name} {verb}"
            yield from verbs(child, f"{name} {verb}")


def test_no_page_installs_the_package_of_that_name_from_an_index() -> None:
    """The name belongs to other projects on PyPI and npm; one page says so, and what is safe where Tacit is there."""
    texts = [path for path in [*markdown_files(), *(ROOT / "deploy").rglob("*")] if path.is_file()]
    bare = re.compile(r"(?:pip3? install|npm install)(?: -\S+)* ['\"]?tacit\b")
    found = {path.relative_to(ROOT).as_posix() for path in texts if bare.search(path.read_text(encoding="utf-8"))}
    assert found - {"docs/decisions/0058-installed-by-file.md"} <= {"docs/howto/install.md"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_page_of_mathematics(kind: str) -> None:
    assert (ROOT / f"docs/maths/{kind}.md").is_file()
    assert f"]({kind}.md)" in read("docs/maths/README.md")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_row_in_the_table_of_mechanisms(kind: str) -> None:
    assert re.search(rf"^\| \[`{kind}`\]\(maths/{kind}\.md\) \|", read("docs/mechanisms.md"), re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_row_in_the_glossary_and_a_layout(kind: str) -> None:
    assert re.search(rf"^\| `{kind}` \|", read("spec/glossary.md"), re.MULTILINE)
    assert re.search(rf"^\| `{kind}` \|", read("spec/wire.md"), re.MULTILINE)


def test_no_kind_id_is_listed_twice() -> None:
    tables = read("spec/glossary.md").partition("## Kind ids")[2]
    first_cells = re.findall(r"^\| (`.+?`) \|", tables, re.MULTILINE)
    ids = [name for cell in first_cells for name in re.findall(r"`([a-z_]+)`", cell)]
    assert len(ids) == len(set(ids)) > len(KINDS)


@pytest.mark.parametrize("verb", list(verbs(cli, "tacit")))
def test_every_verb_has_a_heading(verb: str) -> None:
    assert verb in headings(read("docs/howto/cli.md"))


def test_every_error_has_a_heading() -> None:
    classes = [
        name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.TacitError)
    ]
    assert len(classes) > 1
    assert set(classes) <= set(headings(read("spec/errors.md")))


def broken_links(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, place = target.partition("#")
        file = (path.parent / name) if name else path
        if not file.exists():
            yield target
        elif place and file.suffix == ".md":
            known = {anchor(heading) for heading in headings(file.read_text(encoding="utf-8"))}
            if place not in known:
                yield target


def test_no_relative_link_is_broken() -> None:
    files = markdown_files()
    assert len(files) > 10
    found = {str(path.relative_to(ROOT)): list(broken_links(path)) for path in files}
    assert not {name: links for name, links in found.items() if links}


@pytest.mark.parametrize("path", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/howto/*.md"))])
def test_pages_with_commands_say_where_the_command_is(path: str) -> None:
    text = read(path)
    if re.search(r"^(\$ |    )?tacit [a-z]+ |`tacit [a-z]+ ", text, re.MULTILINE):
        assert ". .venv/bin/activate" in text and ".venv/bin/tacit" in text


DOTTED = re.compile(r"`((?:tacit\.)?([a-z_]+)(?:\.\w+)+)(?:\([^`]*\))?`")
FOREIGN = {"docs/maths/analytics.md", "js/README.md"}
"""Pages that speak of objects of another language or of a variable under the name of a room."""


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of the package, or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def dotted_names(text: str) -> Iterator[str]:
    """Names of modules and of what is in them, in full; `core.pure.invert` is short for `tacit.core.pure.invert`."""
    rooms = {path.stem for path in (ROOT / "src" / "tacit").iterdir()}
    for name, room in DOTTED.findall(text):
        if name.rpartition(".")[2] not in {"py", "js", "md", "c", "json", "yaml", "csv"}:
            if name.startswith("tacit.") or room in rooms:
                yield name if name.startswith("tacit.") else f"tacit.{name}"


def test_names_of_modules_in_the_documentation_exist() -> None:
    pages = [path for path in markdown_files() if str(path.relative_to(ROOT)) not in FOREIGN]
    names = {name for path in pages for name in dotted_names(path.read_text(encoding="utf-8"))}
    assert len(names) > 20
    assert sorted(name for name in names if not resolves(name)) == []


def test_a_name_that_has_moved_would_be_noticed() -> None:
    assert list(dotted_names("`core.pure.invert` `tacit.wire.files` `self.thing` `spec/a.json`")) == [
        "tacit.core.pure.invert",
        "tacit.wire.files",
    ]
    assert resolves("tacit.core.pure.invert") and not resolves("tacit.core.moments")
