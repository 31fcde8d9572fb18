"""Libraries of the `analytics` extra, imported when they are first used."""

from typing import Any

from tacit.core.extras import load


def arrow() -> Any:
    """pyarrow."""
    return load("pyarrow")


def compute() -> Any:
    """Arrow's functions on columns."""
    return load("pyarrow.compute")


def parquet() -> Any:
    """Arrow's reader and writer of Parquet files."""
    return load("pyarrow.parquet")


def sqlglot() -> Any:
    """sqlglot."""
    return load("sqlglot")


def expressions() -> Any:
    """The nodes of sqlglot's trees."""
    return load("sqlglot.expressions")
