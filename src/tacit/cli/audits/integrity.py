"""`tacit integrity`: whether the reports in files look forged, how far they could push, and repaired answers."""

from typing import Any

import click

from tacit.cli.output import percent, print_json, print_table


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--repair", type=click.Choice(["rec_hist", "rec_drop", "rec_model"]), help="Also a repaired estimate.")
@click.option("--alpha", type=float, default=0.01, show_default=True, help="Probability of any false alarm.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def integrity(files: tuple[str, ...], repair: str | None, alpha: float, as_json: bool) -> None:
    """Look for forged reports in report FILES of one mechanism; answers are never changed by it."""
    from tacit.integrity.influence import influence_cap
    from tacit.integrity.inspection import inspect_reports, repaired_estimate

    if not 0 < alpha < 1:
        raise click.UsageError("--alpha must be between 0 and 1")
    mechanism, reports = _read(files)
    found = inspect_reports(mechanism, reports, alpha=alpha)
    cap = influence_cap(mechanism)
    result = found.to_json() | {"influence": None if cap is None else cap.to_json(len(reports))}
    repaired = None if repair is None else repaired_estimate(mechanism, reports, found, method=_method(repair))
    if repaired is not None:
        raw = mechanism.estimate(mechanism.tally(reports))
        rows = [
            {"value": value, "raw": float(raw.value[value]), "repaired": float(repaired.value[value])}
            for value in repaired.hot.tolist()
        ]
        result |= {"repair": repaired.to_json() | {"rows": rows}}
    print_json(result) if as_json else _print(result)


def _method(name: str) -> Any:
    return name


def _read(files: tuple[str, ...]) -> tuple[Any, Any]:
    """All reports of the files, which must be of one mechanism."""
    import numpy as np

    from tacit.cli.reports import reading
    from tacit.core.tally import same_mechanism
    from tacit.wire.files import REPORTS_MAGIC, Reader, report_blocks

    mechanism, parts = None, list[Any]()
    for path in files:
        with reading(path) as stream:
            reader = Reader(stream, REPORTS_MAGIC, path)
            mechanism = mechanism or reader.header.mechanism
            same_mechanism(mechanism, reader.header.mechanism, action="look at these reports together")
            parts += [mechanism.check_reports(block) for block in report_blocks(reader)]
    assert mechanism is not None
    return mechanism, np.concatenate([mechanism.decode(b""), *parts])


def _print(result: dict[str, Any]) -> None:
    click.echo(f"{result['n']:,} reports: {result['state']}")
    _print_influence(result["influence"])
    _print_findings(result["findings"])
    if result["hot"]:
        click.echo(f"pushed together: {', '.join(map(str, result['hot']))}")
    if "repair" in result:
        _print_repair(result["repair"])


def print_collection(found: dict[str, Any]) -> None:
    """Print a collector's findings about forged reports in a collection."""
    click.echo(f"{found['n']:,} reports: {found['state']} (looked at {found['looked_at']})")
    _print_influence(found["influence"])
    refused = ", ".join(f"{reason} {count:,}" for reason, count in found["rejected"].items())
    click.echo(f"refused: {refused or 'none'}")
    _print_findings(
        [
            one | {"note": ", ".join(filter(None, [look.get("part"), one["note"]]))}
            for look in found["inspections"]
            for one in look["findings"]
        ]
    )
    if found["hot"]:
        click.echo(f"pushed together: {', '.join(map(str, found['hot']))}")
    if found["repair"] is not None:
        _print_repair(found["repair"])


def _print_influence(influence: dict[str, Any] | None) -> None:
    if influence is not None:
        share, most = percent(influence["coalition_share"]), percent(influence["coalition"])
        click.echo(f"a coalition of {share} could move a share by at most {most}")


def _print_findings(findings: list[dict[str, Any]]) -> None:
    rows = [
        [
            one["detector"],
            f"{one['statistic']:.2f}",
            f"{one['p_value']:.2g}",
            "ALARM" if one["alarm"] else "",
            one["note"],
        ]
        for one in findings
    ]
    print_table(["detector", "statistic", "p", "", "what it looks at"], rows)


def _print_repair(repair: dict[str, Any]) -> None:
    shown = [[str(row["value"]), percent(row["raw"]), percent(row["repaired"])] for row in repair["rows"]]
    print_table(["value", "raw", repair["method"]], shown)
