"""Options of servers that end TLS themselves, and of those that connect to others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tacit.cli.options.settings import setting

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)


def tls_options(command: AnyCommand) -> AnyCommand:
    """Add `--tls-cert` and `--tls-key`."""
    key = setting("--tls-key", type=_FILE, help="Key of --tls-cert, PEM.")
    words = "TLS certificate with its chain, PEM; without, a proxy in front must end TLS."
    return setting("--tls-cert", type=_FILE, help=words)(key(command))


def ca_option(command: AnyCommand) -> AnyCommand:
    """Add `--ca-file`."""
    words = "Believe certificates of other parties by the authorities in this PEM file alone.  [default: the system's]"
    return setting("--ca-file", type=_FILE, help=words)(command)
