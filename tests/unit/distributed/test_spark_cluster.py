"""Separate executors, Spark Connect and faults; each in a process of its own, since there is one Java per process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.distributed.cluster_job import KINDS
from tests.unit.distributed.crowds import HAS_JAVA, NO_JAVA

from tacit.oracles.local_hash import OLH
from tacit.simulate.coins import SimulationCoins
from tacit.wire.files import REPORTS_MAGIC, Writer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_JAVA, reason=NO_JAVA)]

ROOT = Path(__file__).parents[3]
CLUSTER = "local-cluster[2,1,1024]"


def run(*arguments: Any) -> str:
    # Executors on this machine unpickle functions of these modules, so that they have to find them.
    environ = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def told(*arguments: Any) -> dict[str, Any]:
    return json.loads(run(*arguments).splitlines()[-1])


def test_a_killed_executor_and_a_task_that_runs_twice_count_once(tmp_path: Path) -> None:
    found = told("-m", "tests.unit.distributed.cluster_job", tmp_path)
    assert found == {"kinds": dict.fromkeys(KINDS, True), "twin": True, "killed": True, "unharmed": True}


def test_spark_connect_counts_the_same_bits(tmp_path: Path) -> None:
    found = told("-m", "tests.unit.distributed.connect_job", tmp_path)
    assert "connect" in found.pop("module")
    assert "reports are out of range" in found.pop("fault")
    assert found == {"dense": True, "cells": True, "log": True}


def test_the_command_gives_the_same_estimates_on_separate_executors(tmp_path: Path) -> None:
    mechanism = OLH(size=128, epsilon="1")
    reports = mechanism.privatize(np.arange(5000) % 100, SimulationCoins(4))
    with (tmp_path / "a.reports").open("wb") as stream:
        writer = Writer(stream, REPORTS_MAGIC, mechanism)
        writer.block(reports.tobytes(), len(reports))
        writer.close()
    lake, names = tmp_path / "lake", [tmp_path / f"{name}.tally" for name in ("one", "two", "three")]
    run("-m", "tacit.cli", "reports", "export", tmp_path / "a.reports", "-o", lake)
    run("-m", "tacit.cli", "tally", tmp_path / "a.reports", "-o", names[0])
    run("-m", "tacit.cli", "tally", lake, "-o", names[1])
    run("-m", "tacit.cli", "spark", "tally", "--master", CLUSTER, "--input", lake, "-o", names[2])
    shown = [run("-m", "tacit.cli", "estimate", name) for name in names]
    assert "5,000 reports" in shown[0] and shown[0] == shown[1] == shown[2]
