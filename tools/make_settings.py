"""Write the tables of docs/howto/settings.md, options of servers with their variables, from the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.cli import cli
from tacit.cli.options.settings import variable_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/howto/settings.md"
SERVERS = ("serve", "shuffler serve", "relay serve")

BEGIN, END = "<!-- begin: written by tools/make_settings.py -->\n", "<!-- end -->\n"


def command(words: str) -> click.Command:
    """A command by its words."""
    found: Any = cli
    for word in words.split():
        found = found.get_command(click.Context(found), word)
    return found


def row(option: click.Option) -> str:
    """One line of the table."""
    help_text = (option.help or "").partition("  [default")[0]
    default = option.default
    has_one = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    shown = f"`{default}`" if has_one else ""
    return f"| `{option.opts[0]}` | `{variable_of(option.opts[0])}` | {help_text} | {shown} |"


def tables() -> str:
    """A heading and a table for every server."""
    parts: list[str] = []
    for words in SERVERS:
        options = [option for option in command(words).params if isinstance(option, click.Option)]
        lines = "\n".join(row(option) for option in options)
        parts.append(f"\n## tacit {words}\n\n| option | variable | meaning | default |\n|---|---|---|---|\n{lines}\n")
    return "".join(parts)


def page_text() -> str:
    """The page with the present tables between its marks; the rest of it is written by people."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    return f"{before}{BEGIN}{tables()}\n{END}{after}"


def main() -> None:
    (ROOT / PAGE).write_text(page_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
