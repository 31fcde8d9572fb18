"""`tacit audit client`: what any program that prints reports spends, seen from outside."""

import sys
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.audits.asked import AuditRequest, mechanism_options
from tacit.cli.output import print_json, print_table, progress

if TYPE_CHECKING:
    from tacit.audit.client import ClientAudit


@click.command()
@mechanism_options
@click.option("--command", help="The program; {value} and {runs} in it are replaced.")
@click.option("--preset", type=click.Choice(["python", "node", "browser"]), help="One of our own clients instead.")
@click.option("--pairs", help="Pairs of values such as 0:1,0:5.  [default: all pairs of up to 8 values]")
@click.option("--runs", type=click.IntRange(1), default=100_000, show_default=True, help="Fresh reports per value.")
@click.option("--pilot", type=click.IntRange(1), help="Reports per value to choose events on.  [default: a tenth]")
@click.option("--confidence", type=float, default=0.999, show_default=True, help="Of all bounds together.")
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds that one start may take.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def client(
    command: str | None, preset: str | None, pairs: str | None, runs: int, pilot: int | None, confidence: float,
    timeout: float, as_json: bool, **asked: Any,
) -> None:  # fmt: skip
    """Bound from below the epsilon that a program spends, by the reports it prints; exit 1 if that refutes its claim.

    The program prints one report per line, its wire bytes in hexadecimal. Without {runs} it reads one value per line
    from standard input.
    """
    from tacit.audit.client import audit_client, audit_values, pilot_size_of
    from tacit.audit.presets import preset_command
    from tacit.audit.program import Program

    if (command is None) == (preset is None):
        raise click.UsageError("give either --command or --preset")
    mechanism = AuditRequest(**asked).mechanism()
    program = Program(preset_command(str(preset), mechanism) if command is None else command, timeout)
    values = audit_values(mechanism)
    chosen = None if pairs is None else _pairs(pairs, mechanism, values)
    sampled = values if chosen is None else {value for pair in chosen for value in pair}
    total = len(sampled) * (runs + (pilot or pilot_size_of(runs)))
    with progress("auditing", total) as advance:
        outcome = audit_client(
            mechanism, program, runs=runs, pairs=chosen, pilot_runs=pilot, confidence=confidence, advance=advance
        )
    print_json(outcome.to_json()) if as_json else _print(outcome)
    if outcome.refuted:
        sys.exit(1)


def _pairs(text: str, mechanism: Any, values: list[Any]) -> list[tuple[Any, Any]]:
    """Pairs of values; where values are not single numbers, of their places in the list that is audited by default."""
    numbered = isinstance(values[0], int)
    size = mechanism.value_count if numbered else len(values)
    parts = [pair.split(":") for pair in text.split(",")]
    if not all(len(pair) == 2 and all(part.isdecimal() and int(part) < size for part in pair) for pair in parts):
        raise click.UsageError(f"--pairs must be pairs of values from 0 to {size - 1}, such as 0:1,0:{size - 1}")
    pairs = [(int(pair[0]), int(pair[1])) for pair in parts]
    return [(a, b) if numbered else (values[a], values[b]) for a, b in pairs]


def _print(outcome: "ClientAudit") -> None:
    rows = [
        [
            " against ".join(map(str, pair.values)),
            pair.event,
            f"{pair.hits[0]} : {pair.hits[1]}",
            f"{pair.epsilon_lower:.4f}",
        ]
        for pair in sorted(outcome.pairs, key=lambda pair: -pair.epsilon_lower)[:10]
    ]
    title = f"{outcome.mechanism.kind}, {len(outcome.pairs)} pairs, {outcome.runs:,} fresh reports per value"
    print_table(["values", "event", "hits", "epsilon at least"], rows, title)
    if outcome.repeats:
        click.echo("the program prints the same reports whenever it is started: its coins are fixed")
    verdict = "REFUTED" if outcome.refuted else "not refuted"
    click.echo(
        f"declared {outcome.declared:g}, at least {outcome.worst.epsilon_lower:.4f} "
        f"with {100 * outcome.confidence:g} % confidence: {verdict}"
    )
