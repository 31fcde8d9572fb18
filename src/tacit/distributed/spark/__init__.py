"""Counting on Spark: DataFrame API alone, also on Spark Connect. See docs/howto/count-with-spark.md."""

from tacit.distributed.spark.counting import run_plan, tally, tally_collection

__all__ = ["run_plan", "tally", "tally_collection"]
