"""Crowds for tests on engines: reports of every kind, and folders of report files."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from tacit.core.mechanism import Mechanism
from tacit.errors import InvalidSpec
from tacit.lake.about import About
from tacit.lake.files import write_reports
from tacit.simulate.coins import SimulationCoins

NO_JAVA = "Spark needs Java 17 (on Debian: apt install openjdk-17-jre-headless); its tests are skipped"

HAS_JAVA = shutil.which("java") is not None or "JAVA_HOME" in os.environ


def settings(folder: Path, **more: str) -> dict[str, str]:
    """Settings of a small Spark that uses no more of a busy machine than it has to."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        # A few hundred rows: compiling a query, or planning it again after each stage, takes longer than running it.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        # One compiler and one collector thread: tests are over before more of them would pay off.
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={folder}",
    } | more


def reports_on(mechanism: Mechanism, n: int, seed: int = 1) -> Any:
    """Some reports that the mechanism can make: out of all where they can be listed, else on random values."""
    rng = np.random.default_rng(seed)
    try:
        every = mechanism.all_reports()
        return every[rng.integers(0, len(every), n)]
    except InvalidSpec:
        most = min(mechanism.value_count, 1 << 62)
        return mechanism.privatize(rng.integers(0, most, n), SimulationCoins(seed))


def write_folder(folder: Path, about: About, reports: Any, weights: Any = None, files: int = 3) -> Path:
    """Cut reports into files of unequal sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [len(reports) * (i + 1) ** 2 // files**2 for i in range(files)]
    for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        part = None if weights is None else weights[start:end]
        write_reports(folder / f"{i}.parquet", about, reports[start:end], part)
    return folder
