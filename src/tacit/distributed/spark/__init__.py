"""Counting on Spark: DataFrame API alone, also on Spark Connect. See docs/howto/count-with-spark.md."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.distributed.spark.counting import run_plan, tally, tally_collection
    from tacit.distributed.spark.logs import log_tally
    from tacit.distributed.spark.rows import open_rows

__all__ = ["log_tally", "open_rows", "run_plan", "tally", "tally_collection"]

_HOMES = {"log_tally": "logs", "open_rows": "rows", "run_plan": "counting", "tally": "counting",
          "tally_collection": "counting"}  # fmt: skip


# Every worker of an executor imports this package before it counts, and need not have the parser of SQL for that.
def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
