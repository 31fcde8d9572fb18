"""`tacit spark tally | query`: the same tallies and answers as on one machine, by a cluster."""

from collections.abc import Callable
from typing import Any

import click

from tacit.cli.output import print_json
from tacit.cli.query import print_answer
from tacit.cli.reports import writing


@click.group()
def spark() -> None:
    """Count report files on Spark, with executors that have the package installed."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--input", "inputs", multiple=True, required=True, help="A folder or URL of report files."),
        click.option(
            "--reader",
            type=click.Choice(["tacit", "spark"]),
            default="tacit",
            show_default=True,
            help="Who opens files on executors: the package itself, or Spark by Hadoop's file systems.",
        ),
        click.option("--master", help="Such as local[2], spark://host:7077, yarn, sc://host:15002; or spark-submit's."),
    ):
        command = option(command)
    return command


@spark.command()
@_options
@click.option("-o", "--output", required=True, help="The .tally file to write.")
def tally(inputs: tuple[str, ...], master: str | None, reader: str, output: str) -> None:
    """Count Parquet files of reports into one tally, as `tacit tally` does."""
    from tacit.distributed.spark.lakes import read_lake
    from tacit.distributed.spark.sessions import session
    from tacit.lake.count import origin_of_files
    from tacit.wire.files import write_tally

    with session(master, light=reader == "tacit") as opened:
        lake = read_lake(opened, inputs, by_executors=reader == "tacit")
        found = lake.tally()
    with writing(output) as sink:
        write_tally(sink, found, lake.about.domain, origin_of_files(lake.files, lake.about))
    click.echo(f"tacit: {found.n} reports counted", err=True)


def _answered(lake: Any, sql: str, level: float) -> dict[str, Any]:
    """The answer as the API of a collector says it."""
    from time import monotonic

    from tacit.collector.tables.info import ColumnInfo, TableInfo
    from tacit.collector.tables.rendering import query_json
    from tacit.collector.tables.tables import private_column

    started, table = monotonic(), lake.table(level)
    select = table.parse(sql)
    private = [private_column(dimension) for dimension in table.schema.dimensions]
    public = [ColumnInfo(name, kind, private=False) for name, kind in table.public_columns]
    about = (lake.about.digest, table.schema.table, (*private, *public), lake.reports, table.least)
    info = TableInfo(*about, lake.about.document["title"], damaged=False)
    return query_json(info, select, table.query(select), level, monotonic() - started)


@spark.command()
@click.argument("sql")
@_options
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def query(sql: str, inputs: tuple[str, ...], master: str | None, reader: str, level: float, as_json: bool) -> None:
    """Answer SQL, a SELECT of aggregates, over the rows of a collection in Parquet files."""
    from tacit.core.statistics.level import check_level
    from tacit.distributed.spark.lakes import read_lake
    from tacit.distributed.spark.sessions import session

    check_level(level)
    with session(master) as opened:
        lake = read_lake(opened, inputs, by_executors=reader == "tacit")
        answer = _answered(lake, sql, level)
    if as_json:
        print_json(answer)
    else:
        print_answer(answer)
