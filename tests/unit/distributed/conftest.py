"""One Spark session for all tests of a run, where there is a Java to run it."""

import os
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.distributed.crowds import NO_JAVA, settings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip(NO_JAVA)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("tacit-tests")
    folder: Path = tmp_path_factory.mktemp("spark")
    session = builder.config(map=settings(folder)).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
