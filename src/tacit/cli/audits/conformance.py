"""`tacit conformance`: the golden vectors against any client in any language."""

import sys
from pathlib import Path

import click

from tacit.cli.output import print_json


@click.command()
@click.option("--command", help="The program: reads a JSON object per line and prints one for each.")
@click.option("--preset", type=click.Choice(["python", "node"]), help="One of our own clients instead.")
@click.option("--kind", "kinds", multiple=True, help="Only the vectors of these kinds.")
@click.option(
    "--vectors", type=click.Path(file_okay=False), help="The folder of golden vectors.  [default: the sources']"
)
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds that the program may take.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def conformance(
    command: str | None, preset: str | None, kinds: tuple[str, ...], vectors: str | None, timeout: float, as_json: bool
) -> None:
    """Run the golden vectors against a client; exit 1 if it does not reproduce one of them."""
    from tacit.audit.conformance import VECTORS, check_conformance, vector_cases
    from tacit.audit.presets import conformance_command

    if (command is None) == (preset is None):
        raise click.UsageError("give either --command or --preset")
    cases = vector_cases(VECTORS if vectors is None else Path(vectors), kinds)
    outcome = check_conformance(
        conformance_command(str(preset)) if command is None else command, cases, timeout_seconds=timeout
    )
    if as_json:
        print_json(outcome.to_json())
    else:
        for name in outcome.failures:
            click.echo(f"not reproduced: {name}")
        click.echo(f"{outcome.cases - len(outcome.failures)} of {outcome.cases} vectors reproduced")
    if outcome.failures:
        sys.exit(1)
