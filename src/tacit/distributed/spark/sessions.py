"""Sessions for the command line: of a master, of a Spark Connect server, or the one of spark-submit."""

import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tacit.core.extras import load

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Reports are a few bytes each: some ten thousand at a time would spend their time in calls.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
}


@contextmanager
def session(master: str | None) -> Generator[Any]:
    """A session; without a master, what spark-submit (or SPARK_REMOTE) says. One that was started here is stopped."""
    # pyspark says so for every job, and nothing here goes through pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = load("pyspark.sql").SparkSession.builder.appName("tacit")
    if master is not None and master.startswith("sc://"):
        builder = builder.remote(master)
    elif master is not None:
        if master.startswith("local"):
            # Executors on this machine run what the driver runs, not whatever `python3` happens to be.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master).config(map=_SETTINGS)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
