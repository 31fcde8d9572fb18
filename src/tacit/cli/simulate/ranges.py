"""`tacit simulate ranges`: rehearse a collection about an ordered domain."""

from pathlib import Path
from typing import Any

import click

from tacit.cli.output import percent, print_json, progress

_METHODS = ("auto", "flat", "hh", "haar", "sw", "ahead")


@click.command()
@click.option("--data", required=True, help="A histogram (.npy), or values: a CSV column or one per line.")
@click.option("--column", help="Column of a CSV file.")
@click.option("--size", type=int, help="Number of values; implied by the data.")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--method", type=click.Choice(_METHODS), default="auto", show_default=True, help="How to ask.")
@click.option("--fanout", type=int, help="Fan-out of a tree (method hh).")
@click.option("--oracle", help="Oracle of the levels, or mixed (methods flat and hh).")
@click.option("--workload", default="ranges", show_default=True, help="What the plan minimises the error of.")
@click.option("--even-levels", is_flag=True, help="Ask all levels of a tree alike.")
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="Repeat with fresh noise.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the (insecure) simulation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ranges(
    data: str, column: str | None, size: int | None, epsilon: str, method: str, fanout: int | None, oracle: str | None,
    workload: str, even_levels: bool, runs: int, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Ranges of one ordered question: the error over all of them against the prediction."""
    from tacit.simulate.ranges import simulate_ahead, simulate_ranges
    from tacit.tasks.ranges.plan import METHODS, choose_ranges

    counts = _counts(data, column, size)
    n = int(counts.sum())
    if not n:
        raise click.UsageError("--data holds no respondents")
    if fanout is not None and method != "hh":
        raise click.UsageError("--fanout needs --method hh")
    if method == "ahead":
        shown = {"method": method, "size": len(counts), "epsilon": epsilon, "n": n}
        _print(shown, simulate_ahead(counts, epsilon, runs=runs, seed=seed), {}, as_json)
        return
    option = choose_ranges(
        size=len(counts), epsilon=epsilon, n=n, workload=workload, even_levels=even_levels,
        methods=METHODS if method == "auto" else (method,), fanouts=None if fanout is None else (fanout,),
        oracles=None if oracle is None else (oracle,),
    ).pick  # fmt: skip
    with progress("simulating", runs * n) as advance:
        outcome = simulate_ranges(option.mechanism, counts, runs=runs, seed=seed, advance=advance)
    _show(option, epsilon, outcome, as_json)


def _show(option: Any, epsilon: str, outcome: Any, as_json: bool) -> None:
    row = option.to_row()
    about = {name: row[name] for name in ("method", "fanout", "oracle") if name in row}
    about |= {"size": option.shape.size, "epsilon": epsilon, "n": option.n}
    _print(about, outcome, {"report_bits": option.report_bits}, as_json)


def _print(about: dict[str, Any], outcome: Any, more: dict[str, Any], as_json: bool) -> None:
    heavy = {f"{mass:g}": error for mass, error in outcome.by_mass.items()}
    result: dict[str, Any] = about | {
        "runs": outcome.runs,
        "rmse": outcome.rmse,
        "raw_rmse": outcome.raw_rmse,
        "predicted_rmse": outcome.predicted_rmse,
        "prefix_rmse": outcome.prefix_rmse,
        "coverage": outcome.coverage,
    }
    result |= more | {"seconds": outcome.seconds}
    if as_json:
        print_json(result | {"relative_error_by_mass": heavy})
        return
    click.echo("\n".join(f"{name:>15}  {value}" for name, value in result.items()))
    shown = ", ".join(
        f"{percent(error)} from {100 * float(mass):g} % on" for mass, error in heavy.items() if error is not None
    )
    click.echo(f"mean relative error by true share: {shown}")


def _counts(data: str, column: str | None, size: int | None) -> Any:
    """Return respondents per value, from a saved histogram or a column of values, padded with zeros to the size."""
    counts = _histogram(data) if data.endswith(".npy") else _column(data, column, size)
    import numpy as np

    if size is not None and len(counts) > size:
        raise click.UsageError(f"--size is {size}, and the data has {len(counts)} values")
    short = max(2, size or 0) - len(counts)
    return np.pad(counts, (0, short)) if short > 0 else counts


def _histogram(data: str) -> Any:
    import numpy as np

    # allow_pickle=False: a pickled array could run code.
    try:
        counts = np.load(data, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise click.UsageError(f"{data} is not a numpy array that can be read without running code") from error
    if counts.ndim != 1 or counts.dtype.kind not in "iuf" or not np.all((counts >= 0) & (counts == np.floor(counts))):
        raise click.UsageError(f"{data} must hold one row of counts: whole numbers that are not negative")
    return counts.astype(np.int64)


def _column(data: str, column: str | None, size: int | None) -> Any:
    import numpy as np

    from tacit.cli.values import CsvColumn, integer_encoder

    with Path(data).open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        source = CsvColumn(stream, integer_encoder(size or 1 << 24), column)
        values = np.concatenate([np.zeros(0, np.uint64), *source.chunks()]).astype(np.int64)
    if source.skipped:
        click.echo(f"tacit: {source.skipped} rows skipped (the first is row {source.first_bad})", err=True)
    return np.bincount(values)
