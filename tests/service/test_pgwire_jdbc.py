"""PostgreSQL's protocol with the JDBC driver, on which most BI tools stand."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.pg_people import COLUMNS, FEW, certificate, served


def find_driver() -> str | None:
    """The driver where Maven or Debian keeps it, or where CLASSPATH says."""
    stated = [Path(item) for item in os.environ.get("CLASSPATH", "").split(os.pathsep) if "postgresql" in item]
    maven = sorted((Path.home() / ".m2/repository/org/postgresql/postgresql").glob("*/postgresql-*.jar"))
    places = [*stated, *reversed(maven), Path("/usr/share/java/postgresql.jar")]
    return next((str(path) for path in places if path.exists()), None)


@pytest.mark.slow
@pytest.mark.parametrize("tls", ["require", "disable"])
def test_jdbc_reads_metadata_and_aggregates(tmp_path: Path, tls: str) -> None:
    driver, java = find_driver(), shutil.which("java")
    if driver is None or java is None:
        pytest.skip("no Java with PostgreSQL's JDBC driver here")
    cert, key = certificate(tmp_path)
    with served(tmp_path, n=FEW, cert=cert, key=key) as table:
        source = Path(__file__).parent / "Metadata.java"
        address = f"jdbc:postgresql://127.0.0.1:{table.port}/tacit"
        command = [java, "-cp", driver, str(source), address, tls]
        environment = os.environ | {"TACIT_TOKEN": table.token}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        check(done.stdout + done.stderr, table.people)


def check(output: str, people: dict[str, Any]) -> None:
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        name, _, rest = line.partition(" ")
        found.setdefault(name, []).append(rest)
    kinds = {"text": "text", "number": "float8", "integer": "int8", "boolean": "bool", "date": "date"}
    assert found["product"] == ["PostgreSQL 14"] and "public" in found["schema"], output
    assert found["table"] == ["others TABLE", "people TABLE"] and found["privilege"] == ["SELECT"]
    expected = ["age int8 YES", "state text YES", *(f"{name} {kinds[kind]} YES" for name, kind in COLUMNS.items())]
    assert found["column"] == expected and "key" not in found and "index" not in found
    chosen = (people["purchases"] < 3) & (people["os"] == "o'clock") & ~people["paying"]
    count = float((chosen & (people["joined"] > date(2030, 1, 1))).sum())
    assert [float(value) for value in found["count"] + found["simple"]] == [count] * 9
    counts = np.bincount(people["purchases"]).tolist()
    assert [tuple(map(float, value.split())) for value in found["group"]] == list(enumerate(counts))
    assert found["refused"] == ["25006"] and found["valid"] == ["true"]
