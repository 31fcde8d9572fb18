"""Libraries of the `analytics` extra, imported when they are first used."""

from importlib import import_module
from typing import Any

from tacit.errors import InvalidSpec


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InvalidSpec(f"analytics: {name.partition('.')[0]} is missing; install tacit[analytics]") from None


def arrow() -> Any:
    """pyarrow."""
    return _imported("pyarrow")


def compute() -> Any:
    """Arrow's functions on columns."""
    return _imported("pyarrow.compute")


def parquet() -> Any:
    """Arrow's reader and writer of Parquet files."""
    return _imported("pyarrow.parquet")


def sqlglot() -> Any:
    """sqlglot."""
    return _imported("sqlglot")


def expressions() -> Any:
    """The nodes of sqlglot's trees."""
    return _imported("sqlglot.expressions")
