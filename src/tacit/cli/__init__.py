"""The `tacit` command. Subcommands are imported when they are used, so that `tacit --help` is quick."""

import sys
from difflib import get_close_matches
from importlib import import_module

import click

from tacit import __version__
from tacit.errors import TacitError

# The help texts stand here as well, so that listing the commands imports none of them.
_COMMANDS: dict[str, tuple[str, str]] = {
    "audit": ("tacit.cli.audits.group:audit", "Show that no mechanism realises more epsilon than it declares."),
    "backup": ("tacit.cli.backup:backup", "Copy a whole collector to one file."),
    "central": ("tacit.cli.central:central", "Release histograms of a trusted curator (not local)."),
    "collection": ("tacit.cli.collection:collection", "Create, publish, close and read collections."),
    "compare": ("tacit.cli.simulate.compare:compare", "Run every method of a task on your own data: what wins?"),
    "conformance": (
        "tacit.cli.audits.conformance:conformance",
        "Run the golden vectors against a client in any language.",
    ),
    "count": ("tacit.cli.count:count", "Release the count of a small group with noise (not local)."),
    "demo": (
        "tacit.demo.command:demo",
        "Run a collector, ask a simulated crowd over HTTP, and show truth against answers.",
    ),
    "estimate": ("tacit.cli.reports:estimate", "Turn a tally into frequencies with intervals."),
    "integrity": ("tacit.cli.audits.integrity:integrity", "Look for forged reports in report files."),
    "merge": ("tacit.cli.reports:merge", "Add tallies of the same mechanism."),
    "oracle": ("tacit.cli.oracle:oracle", "Compare frequency oracles and choose one."),
    "plan": ("tacit.cli.plan:plan", "Compare the mechanisms for a question by exact error and choose one."),
    "post": ("tacit.cli.post:post", "List the methods of post-processing, or choose one by replay."),
    "privatize": ("tacit.cli.reports:privatize", "Turn a column of values into noisy reports."),
    "query": ("tacit.cli.query:query", "Answer SQL over the rows of a collection, with error bars."),
    "relay": ("tacit.cli.shuffled.relay:relay", "Pass sealed uploads on to shufflers, without addresses."),
    "reports": ("tacit.cli.lake.export:reports", "Write reports as Parquet files, for engines and object storage."),
    "restore": ("tacit.cli.backup:restore", "Make a collector from a backup."),
    "serve": ("tacit.cli.serve:serve", "Collect reports over HTTP and answer with error bars."),
    "shuffle": ("tacit.cli.shuffle:shuffle", "Certify what shuffled reports keep."),
    "shuffler": ("tacit.cli.shuffled.shuffler:shuffler", "Mix reports for a collector of another organisation."),
    "simulate": (
        "tacit.cli.simulate.group:simulate",
        "Simulate a collection and compare its error with the prediction.",
    ),
    "spark": ("tacit.cli.spark.group:spark", "Count report files on Spark, and answer SQL over them."),
    "token": ("tacit.cli.token:token", "Make, list and revoke tokens on the machine of the collector."),
    "tally": ("tacit.cli.reports:tally", "Count report files."),
    "webhook": ("tacit.cli.webhook:webhook", "Have a program told about alarms, refusals, cohorts and closings."),
}


_GROUPS = ("collection", "token", "webhook", "oracle", "audit", "simulate")
"""Groups whose commands are often typed without the name of the group."""


def _meant(name: str) -> str:
    """What an unknown command may have meant, as an end of a sentence."""
    # Imported for a mistake only; the groups need no extra.
    groups = {group: getattr(import_module(home), what) for group in _GROUPS
              for home, _, what in [_COMMANDS[group][0].partition(":")]}  # fmt: skip
    known = {f"{group} {each}" for group, made in groups.items() for each in made.commands} | _COMMANDS.keys()
    inside = sorted(words for words in known if words.rpartition(" ")[2] == name)
    near = inside or get_close_matches(name, sorted(known, key=len), 1, 0.6)
    return f", did you mean: {' or '.join(f'tacit {words}' for words in near)}" if near else ""


class _LazyGroup(click.Group):
    """A group of commands whose modules are imported when one of them is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        return getattr(import_module(module), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in _COMMANDS:
            ctx.fail(f"there is no command '{name[:40]}'{_meant(name)}; tacit --help lists all")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tacit")
def cli() -> None:
    """Learn what a crowd knows without anyone saying it: local differential privacy from device to answer."""


def _missing_extra(error: ModuleNotFoundError) -> TacitError | None:
    # Imported on failure only, like the commands.
    from tacit.core.extras import missing_extra

    return missing_extra(error.name)


def main() -> None:
    """Run the command line; errors of Tacit are one line and exit code 2."""
    try:
        cli(standalone_mode=True)
    # Expected failures are one line without a traceback; anything else is a bug and keeps its traceback.
    except TacitError as error:
        click.echo(f"tacit: {type(error).__name__}: {error}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        # A module that an extra brings may be imported anywhere below a command; it is explained here.
        if (missing := _missing_extra(error)) is None:
            raise
        click.echo(f"tacit: {type(missing).__name__}: {missing}", err=True)
        sys.exit(2)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader (such as `head`) has gone: end silently with the status of SIGPIPE, 128 + 13.
            sys.stderr.close()
            sys.exit(141)
        click.echo(f"tacit: {error.filename or 'file'}: {error.strerror or error}", err=True)
        sys.exit(2)
