"""SQL from the command line and from Python: against a server, and in the folder of a collector."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.service.plain import Client, serving
from tests.service.rows import PEOPLE, crowd, send_crowd

from tacit.cli import cli
from tacit.cli.query import shown_cell
from tacit.client.sql import Cell, Refused, Sql
from tacit.client.transport import Unreachable
from tacit.collector.server import make_app
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.errors import InvalidQuery
from tacit.hosting.limits import Limits

N = 3000
GROUPED = "SELECT os, COUNT(*) AS c FROM people WHERE age < 40 GROUP BY os"


class Place:
    """A collector with rows: its folder, its address, and how commands are run on it."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder, self.url = client, folder, str(client.http.base_url)
        self.collection = client.publish(PEOPLE)
        send_crowd(client.http, self.collection, crowd(N))

    def run(self, *arguments: str, local: bool = False) -> Result:
        place = ["--data", str(self.folder)] if local else ["--server", self.url, "--token", self.client.token]
        return CliRunner().invoke(cli, ["query", *arguments, *place])


@pytest.fixture(scope="module")
def place(tmp_path_factory: Any) -> Generator[Place]:
    folder = tmp_path_factory.mktemp("data")
    with serving(make_app(SqliteStore(folder), Limits(requests_per_second=0))) as client:
        yield Place(client, folder)


@pytest.mark.parametrize("local", [False, True], ids=["server", "folder"])
def test_answers_as_a_table_as_json_and_as_csv(place: Place, local: bool) -> None:
    told = place.run(GROUPED, "--json", local=local)
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer["n"] == N and [row[0] for row in answer["rows"]] == ["ios", "linux", "win", None]
    lines = place.run(GROUPED, local=local).stdout.splitlines()
    assert lines[0].split() == ["os", "c"] and len(lines) == 8
    assert lines[2].split("  ", 1)[1].strip() == shown_cell(answer["rows"][0][1]) and "±" in lines[2]
    assert lines[-1] == f"{N:,} rows of people; ± holds the true number in 95 of 100 cases."
    found = list(csv.DictReader(io.StringIO(place.run(GROUPED, "--csv", local=local).stdout)))
    assert float(found[0]["c_low"]) == pytest.approx(answer["rows"][0][1]["low"])


@pytest.mark.parametrize("local", [False, True], ids=["server", "folder"])
def test_plans_are_tables_too(place: Place, local: bool) -> None:
    lines = place.run(f"EXPLAIN {GROUPED}", local=local).stdout.splitlines()
    assert lines[0].startswith("mechanism: ") and "expected standard error" in lines[1]
    assert lines[3].startswith("COUNT(*)") and f"{N:,}" in lines[3]
    assert json.loads(place.run(f"EXPLAIN {GROUPED}", "--json", local=local).stdout)["plan"][0]["rows"] == N


def test_the_table_is_named_or_found(place: Place) -> None:
    sql = "SELECT COUNT(*) FROM people"
    for more in ((), ("--table", "people"), ("--collection", place.collection), ("--collection", place.collection[:9])):
        result = place.run(sql, *more)
        assert result.exit_code == 0 and "3,000" in result.stdout and "exact" in result.stdout
    assert place.run(sql, "--level", "0.5").exit_code == 0


@pytest.mark.parametrize("local", [False, True], ids=["server", "folder"])
def test_what_is_refused_is_one_line(place: Place, local: bool) -> None:
    refused = {
        ("SELECT COUNT(*) FROM people WHERE aeg < 3",): "did you mean age? (at character 35)",
        ("SELECT COUNT(*) FROM nowhere",): "there is no table 'nowhere'; there are people",
        ("SELECT COUNT(*) FROM people", "--collection", "zz"): "0 collections",
        ("SELECT COUNT(*) FROM people", "--level", "2"): "from 0.01 to 0.9999",
        ("DROP TABLE people",): "begins with SELECT",
    }
    for arguments, words in refused.items():
        result = place.run(*arguments, local=local)
        assert result.exit_code != 0 and not isinstance(result.exception, TypeError | KeyError), result.exception
        assert words in result.output + str(result.exception) and "Traceback" not in result.output


def test_two_tables_of_one_name_are_told_apart_by_their_collection(tmp_path: Path) -> None:
    """Neither is taken by chance: the refusal names both, and --collection says which one is meant."""
    sql = "SELECT COUNT(*) FROM people"
    with serving(make_app(SqliteStore(tmp_path), Limits(requests_per_second=0))) as client:
        place, other = Place(client, tmp_path), client.publish(PEOPLE | {"title": "People, once more"})
        for more in ((), ("--table", "people")):
            refused = place.run(sql, *more)
            assert refused.exit_code != 0 and "2 collections have a table 'people'" in refused.output
            assert place.collection in refused.output and other in refused.output and "--collection" in refused.output
        assert json.loads(place.run(sql, "--json", "--collection", place.collection).stdout)["n"] == N
        assert "3,000" in place.run(sql.replace("people", f"people_{place.collection[:8]}")).stdout
        assert "0 rows are stored" in place.run(sql, "--collection", other).output


def test_private_numbers_are_answered_on_the_command_line(place: Place) -> None:
    result = place.run("SELECT AVG(age), SUM(age), MEDIAN(age) FROM people")
    assert (
        result.exit_code == 0
        and result.stdout.split()[:3] == ["avg", "sum", "median"]
        and "holds the true number" in result.stdout
    )


def test_cells_of_too_few_rows_are_explained(place: Place) -> None:
    result = place.run("SELECT COUNT(*) FROM people WHERE age < 9 AND hours > 60")
    assert result.exit_code == 0 and "too few rows: fewer than the minimum cohort" in result.stdout


def test_cells_are_shown_to_two_digits_of_their_error() -> None:
    def cell(estimate: float | None, half: float, status: str = "estimate") -> dict[str, Any]:
        ends = (None, None) if estimate is None else (estimate - half, estimate + half)
        return {"estimate": estimate, "low": ends[0], "high": ends[1], "status": status}

    shown = {
        "12,346 ± 120": cell(12_345.678, 120.4),
        "1.235 ± 0.012": cell(1.23456, 0.0123),
        "-3.0 ± 5.5": cell(-3.0, 5.5),
        "39.0 (37.0 to 46.0)": {"estimate": 39.0, "low": 37.0, "high": 46.0, "status": "estimate"},
        "1,234.5": cell(1234.5, 0.0, "exact"),
        "lost in noise": cell(None, 0.0, "insufficient_data"),
        "no data": cell(None, 0.0, "no_data"),
        "too few rows": cell(None, 0.0, "below_minimum_cohort"),
        "(missing)": None,
        "CA": "CA",
    }
    for words, item in shown.items():
        assert shown_cell(item) == words


def test_python_asks_without_anything_installed(place: Place) -> None:
    sql = Sql(place.url, place.client.token)
    assert [table["name"] for table in sql.tables()] == ["people"]
    rows = sql.ask(place.collection, GROUPED)
    assert [row["os"] for row in rows] == ["ios", "linux", "win", None]
    assert all(isinstance(row["c"], Cell) and row["c"].low < row["c"].estimate < row["c"].high for row in rows)
    assert sql.ask(place.collection, f"EXPLAIN {GROUPED}")[0]["aggregate"] == "COUNT(*)"
    with pytest.raises(InvalidQuery, match="did you mean age"):
        sql.ask(place.collection, "SELECT COUNT(*) FROM people WHERE aeg < 3")
    with pytest.raises(Refused, match="token"):
        Sql(place.url, "tct_wrong").tables()
    with pytest.raises(Unreachable):
        Sql("http://127.0.0.1:9", "").tables()
