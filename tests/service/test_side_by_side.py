"""Everything at once, as an operator starts it: a lake, several workers, the dashboard and the port of PostgreSQL.

Each of these has fast tests of its own; these are the combinations.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.service.plain import SHUFFLE, Client, binary, draft, http_client, wait_for
from tests.service.rows import PEOPLE, crowd, send_crowd
from tests.service.served import free_port
from tests.service.test_rounds import answer_round, plan_draft
from tests.service.waiting import wait_until

from tacit.catalog import parse
from tacit.lake.count import survey, tally_files
from tacit.lake.folder import find_files
from tacit.simulate.coins import SimulationCoins


@contextmanager
def collecting(folder: Path, *words: str) -> Generator[tuple[Client, int]]:
    """`tacit serve` with two workers and a port for clients of PostgreSQL, which is given too."""
    port, pg_port, log = free_port(), free_port(), folder / "log"
    command = [
        sys.executable,
        "-m",
        "tacit.cli",
        "serve",
        "--port",
        str(port),
        "--pg-port",
        str(pg_port),
        "--rate",
        "0",
    ]
    with log.open("wb") as sink:
        process = subprocess.Popen([*command, "--workers", "2", *words], stdout=sink, stderr=sink, env=os.environ)
        try:
            with http_client(f"http://127.0.0.1:{port}") as http:
                wait_for(http)
                # One worker answers while another may still be on its way to print the token.
                wait_until(lambda: re.search(r"tct_[\w-]{43}", log.read_text()), log.read_text)
                found = re.findall(r"tct_[\w-]{43}", log.read_text())
                yield Client(http, found[0]), pg_port
        finally:
            process.terminate()
            assert process.wait() == 0, log.read_text()[-2000:]


def send(client: Client, collection: str, n: int, batches: int) -> None:
    """Reports of a crowd in batches, each on a connection of its own, so that both workers hear some."""
    mechanism: Any = parse(client.http.get(f"/c/{collection}/document.json").json()["mechanism"])
    for seed in range(batches):
        reports = mechanism.privatize(np.arange(n) % 3, SimulationCoins(seed))
        body = binary(collection, reports.tobytes(), width=mechanism.report_dtype.itemsize)
        assert client.send(collection, body, Connection="close").status_code == 201


def files_count(lake: Path, collection: str) -> int:
    """How many reports the published files hold."""
    if not (lake / collection).exists():
        return 0
    files = find_files(str(lake / collection))
    return tally_files(files, survey(files)[0]).n


@pytest.mark.slow
def test_a_lake_with_two_workers_and_tables_for_postgresql(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with collecting(tmp_path, "--data", str(tmp_path / "data"), "--lake", str(lake)) as (client, pg_port):
        pets, people = client.publish(draft(minimum_cohort=5)), client.publish(PEOPLE)
        send(client, pets, 30, batches=6)
        # Each request on a connection of its own: whichever worker answers has counted what the other one took.
        for _ in range(4):
            with http_client(str(client.http.base_url)) as http:
                assert Client(http, client.token).answers(pets)["n"] == 180
        assert client.http.get(f"/dashboard/collections/{pets}", headers=signed_in(client)).status_code == 200
        wait_until(lambda: files_count(lake, pets) == 180)
        send_crowd(client.http, people, crowd(400))
        asked = client.api("POST", f"/collections/{people}/query", {"sql": "SELECT COUNT(*) FROM people"}).json()
        assert asked["rows"][0][0]["estimate"] == 400
        address = f"host=127.0.0.1 port={pg_port} user=tacit password={client.token} dbname=tacit"
        for _ in range(3):
            with psycopg.connect(address, autocommit=True) as db:
                assert db.execute("SELECT COUNT(*) FROM people").fetchone() == (400,)
        refused = client.api("POST", "/collections", draft(shuffle=SHUFFLE))
        assert refused.status_code in (409, 422) and "--workers 1" in refused.json()["detail"], refused.text
        assert client.status(pets)["reports"] == 180


def signed_in(client: Client) -> dict[str, str]:
    return {"Cookie": f"tacit_session={client.token}"}


@pytest.mark.slow
def test_rounds_in_a_lake_follow_each_other_whichever_worker_is_asked(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with collecting(tmp_path, "--data", str(tmp_path / "data"), "--lake", str(lake)) as (client, _):
        first = current = client.publish(plan_draft())
        for seed in range(3):
            answer_round(client, current, 5_000, seed)
            state = client.api("POST", f"/collections/{first}/advance").json()
            current = state["current"]
        assert state["finished"] and client.answers(first)["questions"][0]["rows"]


def address_of(conninfo: str) -> str:
    """The address of a server on a socket in a folder."""
    given: Any = conninfo_to_dict(conninfo)
    return f"postgresql:///{given.pop('dbname', 'postgres')}?{urlencode(given)}"


@pytest.mark.slow
def test_a_lake_on_postgresql_with_two_workers(tmp_path: Path, postgres: Any) -> None:
    lake = tmp_path / "lake"
    with collecting(tmp_path, "--database", address_of(postgres.url), "--lake", str(lake)) as (client, _):
        # Each worker is a collector of its own there, and the sessions of a shuffled collection are in the database.
        shuffled = client.api("POST", "/collections", draft(shuffle=SHUFFLE))
        assert "--workers" not in shuffled.text, shuffled.text
        pets = client.publish(draft(minimum_cohort=5))
        send(client, pets, 30, batches=6)
        assert client.answers(pets)["n"] == 180
        wait_until(lambda: files_count(lake, pets) == 180)
