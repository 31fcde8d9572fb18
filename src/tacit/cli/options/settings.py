"""Options of servers, each of which is also an environment variable, or a file that such a variable names.

`--public-url` is also `TACIT_PUBLIC_URL`, and `TACIT_PUBLIC_URL_FILE` names a file with its value: containers hand on
secrets as files, and variables show up in listings of processes. What is typed wins over both.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import click

PREFIX, FILE = "TACIT_", "_FILE"

# TACIT_DATA is where tests look for the data sets of papers; a collector started by one must not take it for its own.
_OTHERWISE = {"--data": "TACIT_DATA_FOLDER"}


def variable_of(flag: str) -> str:
    """Return the name of the environment variable of an option, such as TACIT_PG_PORT of `--pg-port`."""
    return _OTHERWISE.get(flag) or PREFIX + flag.removeprefix("--").replace("-", "_").upper()


def read_variable(name: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the value of NAME, or the content of the file that NAME_FILE names; empty if neither is set."""
    environment = os.environ if environment is None else environment
    value, file = environment.get(name, ""), environment.get(name + FILE, "")
    if value and file:
        raise click.UsageError(f"{name} and {name}{FILE} are both set; unset one of them")
    return _read(name + FILE, Path(file)) if file else value.strip()


SECRETS = ("TACIT_ADMIN_TOKEN", "TACIT_METRICS_TOKEN", "TACIT_OIDC_CLIENT_SECRET")
"""Settings that are no options, because command lines can be read by everybody on a machine."""

_NO_SETTINGS = ("TACIT_DATA", "TACIT_SERVER", "TACIT_TOKEN", "TACIT_THREADS", "TACIT_KERNELS", "TACIT_PLAIN")


def mistyped(known: set[str], environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that no setting reads and that look like one, with that one; other programs may have theirs."""
    names = known | {name + FILE for name in known}
    for name in sorted(environment.keys() - names - set(_NO_SETTINGS)):
        if name.startswith(PREFIX) and (near := get_close_matches(name, sorted(names), n=1, cutoff=0.85)):
            yield name, near[0]


class ServerCommand(click.Command):
    """A command that says which variables of the environment look like a setting and are none."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; a setting that was not read, such as a token, would otherwise be missed by nobody."""
        known = {option.envvar for option in self.params if isinstance(option.envvar, str)} | set(SECRETS)
        for name, near in mistyped(known, os.environ):
            click.echo(f"tacit: {name} is no setting and was not read; did you mean {near}?", err=True)
        return super().invoke(ctx)


def _read(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise click.UsageError(f"{name}: {file} cannot be read as text") from None


class Setting(click.Option):
    """An option that a variable of the environment, or the file of another, may give."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # By the flag and not by the parameter: what is typed and what is exported have one name.
        self.envvar = variable_of(next(flag for flag in self.opts if flag.startswith("--")))
        self.show_envvar = True

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the text of the variable or of its file; None if there is none."""
        del ctx
        assert isinstance(self.envvar, str)
        return read_variable(self.envvar) or None


setting: Callable[..., Callable[[Any], Any]] = partial(click.option, cls=Setting)
"""`click.option` for what is also a variable; several values of one are separated by white space."""
