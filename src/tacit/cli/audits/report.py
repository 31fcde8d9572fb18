"""`tacit audit report`: one page that a privacy reviewer can sign, printable, and as JSON."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from tacit.cli.audits.asked import AuditRequest, mechanism_options
from tacit.cli.output import progress


@click.command()
@mechanism_options
@click.option("--preset", "presets", multiple=True, type=click.Choice(["python", "node", "browser"]), help="Run these.")
@click.option("--command", "commands", multiple=True, help="Run this program, as `tacit audit client` does.")
@click.option("--runs", type=click.IntRange(1), default=100_000, show_default=True, help="Fresh reports per value.")
@click.option("-o", "--output", default="audit.html", show_default=True, help="HTML, or JSON where it ends in .json.")
def report(presets: tuple[str, ...], commands: tuple[str, ...], runs: int, output: str, **asked: Any) -> None:
    """Write a page on what was audited: thresholds, exact ratios, black-box bounds, versions; exit 1 if refuted.

    Of a document with several questions every one has its sections, unless one is named; programs of --command are then
    run for each, and must answer all of them.
    """
    from tacit.audit.dossier import dossier, dossier_of_questions
    from tacit.audit.page import audit_page
    from tacit.catalog import parse
    from tacit.cli.reports import writing
    from tacit.wire.document import Collection

    options = AuditRequest(**asked)
    document = None if options.document is None else Collection.from_text(Path(options.document).read_bytes())
    questions = options.questions()
    if document is not None and questions:
        audited = {name: (one, _clients(one, presets, commands, runs)) for name, one in questions.items()}
        found = dossier_of_questions(parse(document.mechanism.spec()), document, audited)
    else:
        mechanism = options.mechanism()
        found = dossier(mechanism, document, _clients(mechanism, presets, commands, runs))
    with writing(output) as stream:
        text = json.dumps(found, indent=2, allow_nan=False) if output.endswith(".json") else audit_page(found)
        stream.write(text.encode())
    click.echo(f"tacit: {'holds' if found['holds'] else 'REFUTED'}", err=True)
    if not found["holds"]:
        sys.exit(1)


def _clients(mechanism: Any, presets: tuple[str, ...], commands: tuple[str, ...], runs: int) -> list[dict[str, Any]]:
    from tacit.audit.client import audit_client, audit_values, pilot_size_of
    from tacit.audit.presets import preset_command, program_hashes
    from tacit.audit.program import Program

    programs = [(name, preset_command(name, mechanism)) for name in presets] + [(one, one) for one in commands]
    total = len(programs) * len(audit_values(mechanism)) * (runs + pilot_size_of(runs))
    with progress("auditing", total) as advance:
        return [
            {"program": name, "files": program_hashes(command)}
            | audit_client(mechanism, Program(command), runs=runs, advance=advance).to_json()
            for name, command in programs
        ]
