"""Separate executors, Spark Connect and faults; each in a process of its own, since there is one Java per process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
import pytest
from tests.unit.distributed.cluster_job import KINDS
from tests.unit.distributed.crowds import HAS_JAVA, NO_JAVA

import tacit.cli
from tacit.oracles.local_hash import OLH
from tacit.simulate.coins import SimulationCoins
from tacit.wire.files import REPORTS_MAGIC, Writer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_JAVA, reason=NO_JAVA)]

ROOT = Path(__file__).parents[3]
CLUSTER = "local-cluster[2,1,1024]"


def started(*command: Any, **changes: str) -> "subprocess.CompletedProcess[str]":
    # Executors on this machine unpickle functions of these modules, so that they have to find them.
    environ = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    words = list(map(str, command))
    return subprocess.run(words, cwd=ROOT, env=environ | changes, capture_output=True, text=True, check=False)


def run(*arguments: Any) -> str:
    done = started(sys.executable, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def told(*arguments: Any) -> dict[str, Any]:
    return json.loads(run(*arguments).splitlines()[-1])


def test_a_killed_executor_and_a_task_that_runs_twice_count_once(tmp_path: Path) -> None:
    found = told("-m", "tests.unit.distributed.cluster_job", tmp_path)
    assert found.pop("kinds") == dict.fromkeys(KINDS, True)
    assert found == dict.fromkeys(("twin", "killed", "unharmed", "files twin", "files killed"), True)


def test_spark_connect_counts_the_same_bits(tmp_path: Path) -> None:
    found = told("-m", "tests.unit.distributed.connect_job", tmp_path)
    assert "connect" in found.pop("module")
    assert "reports are out of range" in found.pop("fault")
    assert found == {"dense": True, "cells": True, "log": True}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of report files, beside the .reports file that they were exported from."""
    folder = tmp_path_factory.mktemp("cluster")
    mechanism = OLH(size=128, epsilon="1")
    reports = mechanism.privatize(np.arange(5000) % 100, SimulationCoins(4))
    with (folder / "a.reports").open("wb") as stream:
        writer = Writer(stream, REPORTS_MAGIC, mechanism)
        writer.block(reports.tobytes(), len(reports))
        writer.close()
    run("-m", "tacit.cli", "reports", "export", folder / "a.reports", "-o", folder / "lake")
    return folder / "lake"


def test_the_command_gives_the_same_estimates_on_separate_executors(lake: Path, tmp_path: Path) -> None:
    names = [tmp_path / f"{name}.tally" for name in ("one", "two", "three", "four")]
    run("-m", "tacit.cli", "tally", lake.with_name("a.reports"), "-o", names[0])
    run("-m", "tacit.cli", "tally", lake, "-o", names[1])
    run("-m", "tacit.cli", "spark", "tally", "--master", CLUSTER, "--input", lake, "-o", names[2])
    # And under spark-submit, which says what the master is.
    submit, main = (
        Path(pyspark.__file__).parent / "bin" / "spark-submit",
        Path(tacit.cli.__file__).with_name("__main__.py"),
    )
    words = ["--master", "local[2]", main, "spark", "tally", "--input", lake, "-o", names[3]]
    done = started(submit, *words, PYSPARK_DRIVER_PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr[-3000:]
    shown = [run("-m", "tacit.cli", "estimate", name) for name in names]
    assert "5,000 reports" in shown[0] and shown == shown[:1] * 4
    assert names[1].read_bytes() == names[2].read_bytes() == names[3].read_bytes()


def test_executors_without_the_package_say_how_it_gets_there(lake: Path, tmp_path: Path) -> None:
    """Those have the interpreter that the environment was made from, with nothing installed."""
    bare = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    words = ["spark", "tally", "--master", CLUSTER, "--input", lake, "-o", tmp_path / "no.tally"]
    done = started(sys.executable, "-m", "tacit.cli", *words, PYSPARK_PYTHON=str(bare), PYTHONPATH="")
    assert done.returncode == 2, done.stderr[-3000:]
    last = done.stderr.strip().splitlines()[-1]
    assert "executors have no package" in last and "addArtifacts" in last and "--archives" in last
    assert not (tmp_path / "no.tally").exists()
