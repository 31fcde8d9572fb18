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

# Java only passes on the numbers of files and the parts: what its second compiler and parallel collector cost is more
# than they save. What the settings of a user say stands behind these options, and counts.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LIGHT = {"spark.driver.defaultJavaOptions": _JAVA, "spark.executor.defaultJavaOptions": _JAVA}


@contextmanager
def session(master: str | None, *, light: bool = False) -> Generator[Any]:
    """A session; without a master, what spark-submit (or SPARK_REMOTE) says. One that was started here is stopped.

    With `light` a Spark of this machine compiles less: for jobs in which executors open files, and Java has no rows.
    """
    # pyspark says so for every job, and nothing here goes through pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = load("pyspark.sql").SparkSession.builder.appName("tacit")
    if master is not None and master.startswith("sc://"):
        builder = builder.remote(master)
    elif master is not None:
        if master.startswith("local"):
            # Executors on this machine run what the driver runs, not whatever `python3` happens to be.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # A cluster has options that its administrator has chosen.
        light = light and master.startswith("local")
        builder = builder.master(master).config(map=_SETTINGS | (_LIGHT if light else {}))
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
