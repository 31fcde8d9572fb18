"""The population of a simulated question: made up, or a column of a CSV file."""

from pathlib import Path
from typing import Any

import click


def population_counts(data: str, size: int | None, n: int, column: str | None) -> Any:
    """Return counts per value: simulated, or of a CSV column."""
    import numpy as np

    from tacit.simulate.population import rounded_counts, zipf_counts

    if data in ("zipf", "uniform"):
        if size is None:
            raise click.UsageError("--size is needed for simulated data")
        return zipf_counts(size, n) if data == "zipf" else rounded_counts(np.ones(size), n)
    from tacit.cli.values import CsvColumn, integer_encoder
    from tacit.errors import NoData

    # Without --size, values up to 2^24 are taken and the largest one says how many there are.
    with Path(data).open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        chunks = list(CsvColumn(stream, integer_encoder(size or 1 << 24), column).chunks())
    values = np.concatenate(chunks) if chunks else np.zeros(0, np.uint64)
    if not len(values):
        raise NoData(
            f"{data}: no line holds a whole number from 0 on; labels are simulated by tacit compare --task histogram"
        )
    return np.bincount(values.astype(np.int64), minlength=size or 2)
