"""`tacit reports export`: report files in Parquet, for engines and for object storage."""

from pathlib import Path

import click

from tacit.cli.output import progress


@click.group()
def reports() -> None:
    """Move reports between files: .reports files and folders of Parquet files."""


@reports.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-o", "--output", required=True, help="The folder to write, or a URL such as s3://bucket/lake.")
def export(file: str, output: str) -> None:
    """Write the reports of a .reports FILE as a folder of Parquet files, which `tacit tally` and Spark count."""
    from tacit.lake.export import export as export_reports
    from tacit.lake.place import place_of
    from tacit.wire.files import REPORTS_MAGIC, Reader

    with Path(file).open("rb") as stream, progress("exporting", None) as advance:
        reader = Reader(stream, REPORTS_MAGIC, file)
        files = export_reports(reader, place_of(output), advance)
    click.echo(f"tacit: {reader.n} reports in {files} files", err=True)
