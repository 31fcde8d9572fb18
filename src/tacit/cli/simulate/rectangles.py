"""`tacit simulate rectangles`: rehearse a collection about two to eight ordered attributes."""

import csv
from pathlib import Path
from typing import Any

import click

from tacit.cli.output import print_json, progress


@click.command()
@click.option("--data", required=True, help="Counts by attribute (.npy), or a CSV file with a header, one row each.")
@click.option("--columns", help="Two to eight columns of a CSV file, by name with commas.  [default: all]")
@click.option("--sizes", help="Numbers of answers of the attributes, with commas; implied by the data.")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--method", default="auto", show_default=True, help="A name from `tacit plan --task rectangles`.")
@click.option("--rectangles", "sample", type=click.IntRange(1), default=200, show_default=True, help="How many to ask.")
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="Repeat with fresh noise.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the (insecure) simulation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rectangles(
    data: str, columns: str | None, sizes: str | None, epsilon: str, method: str, sample: int, runs: int, seed: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Rectangles of two to eight ordered attributes: the error of random ones against the prediction."""
    from tacit.simulate.rectangles import simulate_rectangles
    from tacit.tasks.ranges.grid_task import rectangle_options

    crowd = _crowd(data, columns, sizes)
    n = crowd.n
    if not n:
        raise click.UsageError("--data holds no respondents")
    options = rectangle_options(crowd.sizes, epsilon, n)
    names = [option.name for option in options]
    if method not in ("auto", *names):
        raise click.UsageError(f"--method is no way to ask for these sizes, must be auto, {', '.join(names)}")
    option = options[0 if method == "auto" else names.index(method)]
    with progress("simulating", runs * n) as advance:
        outcome = simulate_rectangles(
            option.mechanism, crowd, runs=runs, seed=seed, sample=sample, advance=advance
        )  # fmt: skip
    result: dict[str, Any] = {
        "method": option.name, "sizes": list(crowd.sizes), "epsilon": epsilon, "n": n, "runs": runs,
        "rectangles": outcome.rectangles, "rmse": outcome.rmse, "stated_rmse": outcome.stated_rmse,
        "predicted_rmse": option.rmse(n), "coverage": outcome.coverage, "report_bits": option.report_bits,
        "seconds": outcome.seconds,
    }  # fmt: skip
    if as_json:
        print_json(result)
    else:
        click.echo("\n".join(f"{name:>15}  {value}" for name, value in result.items()))


def _crowd(data: str, columns: str | None, sizes: str | None) -> Any:
    """Read the respondents, with answers that nobody gave up to the sizes asked for."""
    from tacit.simulate.rectangles import GridCrowd

    if data.endswith(".npy"):
        counts = _table(data)
        wanted = _sizes(sizes, counts.shape)
        return GridCrowd.of_table(_padded(counts, wanted))
    rows = _records(data, columns)
    # An attribute that takes one value in the file has two, so that there is something to ask.
    return GridCrowd.of_rows(rows, _sizes(sizes, tuple(max(1, int(top)) + 1 for top in rows.max(axis=0))))


def _table(data: str) -> Any:
    """Read counts with an axis per attribute."""
    import numpy as np

    # allow_pickle=False: a pickled array could run code.
    try:
        counts = np.load(data, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise click.UsageError(f"{data} is not a numpy array that can be read without running code") from error
    whole = counts.dtype.kind in "iuf" and np.all((counts >= 0) & (counts == np.floor(counts)))
    if not 2 <= counts.ndim <= 8 or not whole:
        raise click.UsageError(f"{data} must have two to eight axes of counts: whole numbers that are not negative")
    return counts.astype(np.int64)


def _records(data: str, columns: str | None) -> Any:
    """Read the rows of a CSV file whose columns hold whole numbers from 0 on."""
    import numpy as np

    with Path(data).open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        lines = csv.DictReader(stream, skipinitialspace=True)
        header = list(lines.fieldnames or ())
        wanted = header if columns is None else [name.strip() for name in columns.split(",")]
        if not set(wanted) <= set(header) or not 2 <= len(wanted) <= 8:
            raise click.UsageError(f"{data}: --columns must name two to eight columns of the header")
        cells = np.zeros((0, len(wanted)), np.int64)
        try:
            cells = np.array([[int(line[name]) for name in wanted] for line in lines], np.int64).reshape(
                -1, len(wanted)
            )
        except (TypeError, ValueError, OverflowError):
            raise click.UsageError(f"{data}: row {lines.line_num} holds something other than whole numbers") from None
    if not len(cells) or cells.min() < 0 or cells.max() >= 1 << 20:
        raise click.UsageError(f"{data} must hold rows of whole numbers from 0 on, below 2^20")
    return cells


def _sizes(text: str | None, least: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of answers: those of the data, unless more are asked for."""
    from tacit.tasks.ranges.grid_task import check_sizes

    try:
        wanted = tuple(int(item) for item in text.split(",")) if text else least
    except ValueError:
        raise click.UsageError("--sizes must be whole numbers with commas, such as 64,64") from None
    if len(wanted) != len(least) or any(a < b for a, b in zip(wanted, least, strict=True)):
        shape = ", ".join(map(str, least))
        raise click.UsageError(f"--sizes must not be below those of the data, which are {shape}")
    check_sizes(wanted)
    return wanted


def _padded(counts: Any, sizes: tuple[int, ...]) -> Any:
    """Add answers that nobody gave to a table of counts."""
    import numpy as np

    return np.pad(counts, [(0, a - b) for a, b in zip(sizes, counts.shape, strict=True)])
