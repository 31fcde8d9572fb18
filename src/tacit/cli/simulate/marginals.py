"""`tacit simulate marginals`: rehearse a collection about several attributes."""

from pathlib import Path
from typing import Any

import click

from tacit.cli.output import print_json, progress

# A column with more different values is hardly an attribute; it may be an id that was left in the file.
_MOST_VALUES = 1 << 16


@click.command()
@click.option(
    "--data", required=True, help="A CSV file with a header, one row per respondent, one column an attribute."
)
@click.option("--columns", help="The attributes to use, by name with commas.  [default: all]")
@click.option("--method", default="auto", show_default=True, help="inp_ht, calm, marg_ps, fc, ... or auto to choose.")
@click.option("--k", type=click.IntRange(1), default=2, show_default=True, help="Attributes of one table.")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--cover", is_flag=True, help="Views of CALM must cover all tables.")
@click.option("--reconstruct", type=click.Choice(["entropy", "least_squares", "linear_program"]), default="entropy")
@click.option("--non-negative", type=click.Choice(["norm_sub", "ripple"]), default="norm_sub")
@click.option("--tables", type=click.IntRange(1), default=200, show_default=True, help="At most so many tables.")
@click.option("--time-limit", type=float, default=60.0, show_default=True, help="Most seconds of em for all tables.")
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="Repeat with fresh noise.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the (insecure) simulation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def marginals(
    data: str, columns: str | None, method: str, k: int, epsilon: str, cover: bool, reconstruct: str,
    non_negative: str, tables: int, time_limit: float, runs: int, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Tables of k attributes: squared error against the prediction and against knowing nothing."""
    from tacit.simulate.marginals import simulate_marginals
    from tacit.tasks.marginals.methods import ask, make_method
    from tacit.tasks.marginals.plan import choose_marginals

    records, sizes = read_records(data, columns)
    n = len(records)
    if method == "auto":
        method = choose_marginals(sizes=sizes, k=k, epsilon=epsilon, n=n, cover=cover).pick.method
    mechanism = make_method(method, ask(sizes, k, epsilon, n, cover=cover))
    if method == "em":
        _announce(sizes, k, tables)
    with progress("simulating", runs * n) as advance:
        outcome = simulate_marginals(
            mechanism, records, sizes, k=k, runs=runs, seed=seed, most_tables=tables, advance=advance,
            reconstruct=reconstruct, non_negative=non_negative, time_limit=time_limit,
        )  # fmt: skip
    result: dict[str, Any] = {
        "method": method,
        "attributes": len(sizes),
        "k": k,
        "epsilon": epsilon,
        "n": n,
        "runs": runs,
        "questions": 1 if mechanism.drawn_from is None else mechanism.member_count,
        "tables": outcome.tables,
        "covered": outcome.covered,
        "mean_sse": outcome.mean_sse,
        "raw_sse": outcome.raw_sse,
        "uniform_sse": outcome.uniform_sse,
        "predicted_sse": outcome.predicted_sse,
        "prediction": "noise + sampling of raw tables",
        "report_bits": mechanism.report_bits,
        "seconds": outcome.seconds,
    }
    if as_json:
        print_json(result)
    else:
        click.echo("\n".join(f"{name:>15}  {value}" for name, value in result.items()))


def _announce(sizes: list[int], k: int, tables: int) -> None:
    """Say how long maximum likelihood will take, which is long enough to be told."""
    import numpy as np

    from tacit.simulate.marginals import all_tables
    from tacit.tasks.marginals.each import expected_seconds

    wanted = all_tables(len(sizes), k, tables, np.random.default_rng(0))
    click.echo(f"tacit: em takes about {expected_seconds(sizes, wanted):.0f} s a run", err=True)


def read_records(data: str, columns: str | None) -> tuple[Any, list[int]]:
    """Read a CSV file: rows of answers as indices into the sorted values of every column, and how many each has."""
    import csv

    import numpy as np

    with Path(data).open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        rows = [row for row in csv.reader(stream) if row]
    if len(rows) < 2:
        raise click.UsageError(f"{data} must have a header and at least one row")
    header, body = [name.strip() for name in rows[0]], rows[1:]
    wanted = header if columns is None else [name.strip() for name in columns.split(",")]
    for name in wanted:
        if name not in header:
            raise click.UsageError(f"--columns names {name[:40]!r}, which is not in the header")
    if any(len(row) != len(header) for row in body):
        raise click.UsageError(f"{data} has rows with more or fewer fields than the header")
    table = np.array(body, dtype=np.str_)
    codes: list[Any] = []
    sizes: list[int] = []
    for name in wanted:
        values, code = np.unique(np.char.strip(table[:, header.index(name)]), return_inverse=True)
        if len(values) > _MOST_VALUES:
            raise click.UsageError(f"column {name[:40]!r} has {len(values)} values, must have at most {_MOST_VALUES}")
        codes.append(code)
        sizes.append(len(values))
    return np.stack(codes, axis=1).astype(np.int64), sizes
