"""What the commands print: JSON, tables, progress bars and refusals."""

import json
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from tacit.library.show import aligned


class CommandRefused(click.ClickException):
    """Ends a command with one line and exit code 2: a server, a folder or a file refused."""

    exit_code = 2


def print_json(value: Any) -> None:
    """Print indented JSON; NaN and infinity raise, as they are not JSON."""
    click.echo(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print an aligned plain-text table: first column left, the rest right."""
    if title:
        click.echo(title)
    for line in aligned(header, rows):
        click.echo(line)


def percent(x: float) -> str:
    """Return a share in per cent with two decimals."""
    return f"{100 * x:.2f} %"


@contextmanager
def progress(what: str, total: int | None) -> Generator[Callable[[int], None]]:
    """Show a progress bar on standard error if that is a terminal; yields the function that advances it.

    Nothing is shown in pipes and without rich, which is optional.
    """
    try:
        # A pipe is handled as if rich were missing.
        if not sys.stderr.isatty():
            raise ImportError
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda step: bar.advance(task, step)
