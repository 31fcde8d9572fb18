"""Counting on Spark: DataFrame API alone, also on Spark Connect. See docs/howto/count-with-spark.md."""

from tacit.distributed.spark.counting import run_plan, tally, tally_collection
from tacit.distributed.spark.logs import log_tally
from tacit.distributed.spark.rows import open_rows

__all__ = ["log_tally", "open_rows", "run_plan", "tally", "tally_collection"]
