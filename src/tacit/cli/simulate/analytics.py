"""`tacit simulate analytics`: rehearse SQL over rows whose private columns are known only as noisy reports."""

from typing import Any

import click

from tacit.cli.output import print_json, print_table


@click.command()
@click.option("--data", required=True, type=click.Path(exists=True, dir_okay=False), help="A CSV or Parquet file.")
@click.option("--columns", help="Names of the columns with commas, for a CSV file without a header.")
@click.option("--private", required=True, help='Private columns, such as "age:0-99,state"; all others are public.')
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help="auto, hio, hiocap2, wavelet, quadtree, mg, sco, ...; a wrong name lists all.",
)
@click.option("--fanout", type=click.IntRange(2), help="Fan-out of the trees over ranges.  [default: the best one]")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the (insecure) simulation.")
@click.option("--sql", required=True, help="A query over the table t, or EXPLAIN and a query.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def analytics(
    data: str, columns: str | None, private: str, method: str, fanout: int | None, epsilon: str, seed: int, sql: str,
    as_json: bool,
) -> None:  # fmt: skip
    """SQL over private columns: estimates, standard errors and intervals beside the truth."""
    from tacit.simulate.analytics import read_rows, read_schema, rehearse, revealing, simulate_analytics

    table = read_rows(data, None if columns is None else [name.strip() for name in columns.split(",")])
    rehearsal = rehearse(
        table, read_schema(private, table), epsilon=epsilon, queries=[sql], method=method, fanout=fanout
    )
    for public, hidden in revealing(rehearsal):
        click.echo(f"tacit: {hidden} is not protected: it follows from the public column {public}", err=True)
    _, rows = simulate_analytics(rehearsal, sql, seed=seed)
    if as_json:
        print_json(rows)
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    print_table(names, [[_shown(row.get(name)) for name in names] for row in rows])


def _shown(item: Any) -> str:
    """Format one cell of the table; a group is a dictionary, of which only the values are shown."""
    if hasattr(item, "values"):
        return ", ".join(str(value) for value in item.values())
    return f"{item:,.6g}" if isinstance(item, float) else "" if item is None else str(item)
