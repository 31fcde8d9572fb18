"""`tacit audit`: declared against realised epsilon over the whole catalogue; audits from outside are subcommands."""

import sys
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.audits.client import client
from tacit.cli.audits.report import report
from tacit.cli.output import print_json, print_table, progress

if TYPE_CHECKING:
    from tacit.core.mechanism import Mechanism

# From strong privacy to almost none, where rounding of probabilities shows first.
EPSILONS = ("0.1", "0.5", "1", "2", "4", "8", "16")


@click.group(invoke_without_command=True)
@click.option("--epsilon", "epsilons", multiple=True, help="Audit at these instead of the default list.")
@click.option("--kind", "kinds", multiple=True, help="Audit only these kinds.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def audit(context: click.Context, epsilons: tuple[str, ...], kinds: tuple[str, ...], as_json: bool) -> None:
    """Compute every realised epsilon in exact arithmetic and by enumerating reports; fail if one is too large.

    Every guarantee of a kind has a row; where its reports are too many to list, the row says "not enumerated".
    """
    if context.invoked_subcommand is not None:
        return
    from tacit.catalog import CATALOG

    unknown = set(kinds) - {entry.kind for entry in CATALOG}
    if unknown:
        raise click.UsageError(f"there is no kind {', '.join(sorted(unknown))}")
    chosen = [entry.kind for entry in CATALOG if not kinds or entry.kind in kinds]
    grid = [(kind, epsilon) for kind in chosen for epsilon in epsilons or EPSILONS]
    with progress("auditing", len(grid)) as advance:
        rows: list[dict[str, Any]] = []
        for kind, epsilon in grid:
            rows += _audit_one(kind, epsilon)
            advance(1)
    if as_json:
        print_json(rows)
    else:
        _print(rows)
    # Exit code 1 lets a continuous-integration job fail on a violated guarantee.
    if not all(row["holds"] for row in rows):
        sys.exit(1)


audit.add_command(client)
audit.add_command(report)


def _audit_one(kind: str, epsilon: str) -> list[dict[str, Any]]:
    from tacit.testing.examples import examples

    return [row for mechanism in examples(kind, epsilon) for row in _rows_of(mechanism)]


def _rows_of(mechanism: "Mechanism") -> list[dict[str, Any]]:
    """Return a row per guarantee: declared, realised in exact arithmetic, and by enumeration."""
    from fractions import Fraction

    from tacit.device.numbers.exact import WORD, log_upper
    from tacit.testing.guarantees import enumerated_guarantees

    rows: list[dict[str, Any]] = []
    pairs = zip(mechanism.guarantees(), enumerated_guarantees(mechanism), strict=True)
    for (what, realised, bound), by_enumeration in pairs:
        # The epsilon as it was written where the guarantee is about all of it, else the logarithm of its bound.
        whole = bound == Fraction(mechanism.odds, WORD)
        rows.append({
            "kind": mechanism.kind,
            "guarantee": what,
            "declared": float(mechanism.budget.declared if whole else log_upper(bound)),
            "realised": float(log_upper(realised)),
            "enumerated": by_enumeration,
            "holds": realised <= bound and (by_enumeration or 0) <= float(log_upper(realised)) + 1e-9,
            "spec": mechanism.spec(),
        })  # fmt: skip
    return rows


def _print(rows: list[dict[str, Any]]) -> None:
    def cells(row: dict[str, Any]) -> list[str]:
        enumerated = "not enumerated" if row["enumerated"] is None else f"{row['enumerated']:.9f}"
        verdict = "holds" if row["holds"] else "FAILS"
        return [
            _name(row["spec"]),
            row["guarantee"],
            f"{row['declared']:g}",
            f"{row['realised']:.12f}",
            enumerated,
            verdict,
        ]

    print_table(["kind", "guarantee", "declared", "realised", "enumerated", ""], [cells(row) for row in rows])


def _name(spec: dict[str, Any]) -> str:
    """Return the kind; for memoised ones with the inner kind, which decides which guarantees there are."""
    return f"{spec['kind']} of {spec['inner']['kind']}" if spec["kind"] in ("memo", "layered") else spec["kind"]
