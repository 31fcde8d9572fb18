"""Run by tests in a process of its own: a Spark Connect server and a client that has no classic session.

python connect_job.py FOLDER      prints a JSON object of what was counted, and whether it was the same bits
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from tests.unit.distributed.crowds import reports_on, settings, write_folder

from tacit.distributed.spark import log_tally, tally
from tacit.distributed.spark.counting import FEW_CELLS
from tacit.errors import ReportRejected
from tacit.lake.about import About
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.wire.tallies import dump_tally


def same(spark: Any, folder: Path, mechanism: Any) -> bool:
    reports = mechanism.privatize(np.arange(300) % 7, SimulationCoins(1))
    lake = write_folder(folder, About(mechanism), reports, np.arange(300))
    found = tally(spark.read.parquet(str(lake)), mechanism)
    return dump_tally(found) == dump_tally(mechanism.tally(reports, np.arange(300)))


def log(spark: Any, folder: Path) -> bool:
    mechanism = OLH(size=1 << 40, epsilon="2", state="log")
    reports = reports_on(mechanism, 200)
    lake = write_folder(folder, About(mechanism), reports)
    found = mechanism.estimate(log_tally(spark.read.parquet(str(lake)), mechanism), [1, 2, 3])
    return found.value.tolist() == mechanism.estimate(mechanism.tally(reports), [1, 2, 3]).value.tolist()


def fault(spark: Any, folder: Path) -> str:
    """What is said of a report that the mechanism could not have made."""
    lake = write_folder(folder, About(GRR(size=9, epsilon="1")), reports_on(GRR(size=9, epsilon="1"), 90))
    try:
        tally(spark.read.parquet(str(lake)), GRR(size=2, epsilon="1"))
    except ReportRejected as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    # A local server of its own, which the client talks to over gRPC.
    spark = SparkSession.builder.remote("local[2]").config(map=settings(folder)).getOrCreate()
    told = {
        "module": type(spark).__module__,
        "dense": same(spark, folder / "dense", GRR(size=9, epsilon="1")),
        "cells": same(spark, folder / "cells", OUE(size=FEW_CELLS + 1, epsilon="1")),
        "log": log(spark, folder / "log"),
        "fault": fault(spark, folder / "fault"),
    }
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
