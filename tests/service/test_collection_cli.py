"""Words for newcomers: parameters that are not the query's, empty exports, missing libraries, mistakes in queries."""

import sys
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.service.memory import MemoryStore
from tests.service.plain import DRAFT, Client, draft, plain_app, serving
from tests.service.test_ranges import upload
from tests.unit.distributed.crowds import reports_on, write_folder

from tacit.catalog import parse
from tacit.cli import cli
from tacit.collector.server import make_app
from tacit.dashboard.pages import routes
from tacit.lake.about import About
from tacit.tasks.marginals.joint import JOINT
from tacit.tasks.table import TASKS, queries_of


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["collection", *words])


@pytest.mark.parametrize("command", [["ask", "ID", "word", "above", "--set"], ["joint", "ID", "table"]])
@pytest.mark.parametrize(
    ("item", "words"),
    [("share=0.2", "set threshold"), ("level=0.9", "--level"), ("threshold", "must be NAME=VALUE")],
)
def test_parameters_that_every_address_has_are_refused_by_name(
    command: list[str], item: str, words: str, tmp_path: Path
) -> None:
    refused = run(*command, item, "--data", str(tmp_path))
    assert refused.exit_code == 2 and words in refused.stderr


def test_no_query_has_a_parameter_that_every_address_has() -> None:
    queries = [*JOINT, *(query for task in TASKS for query in queries_of(task))]
    assert not [query.name for query in queries if {"share", "level"} & query.parameters.keys()]


@pytest.fixture(scope="module")
def ranges() -> Generator[tuple[Client, str]]:
    domain = {"kind": "integers", "low": 0, "high": 9}
    asked = [DRAFT["questions"][0] | {"domain": domain, "task": "ranges"}]
    with serving(make_app(MemoryStore())) as client:
        mine = client.publish(draft(questions=asked, minimum_cohort=1))
        upload(client, mine, np.zeros(200, np.int64))
        yield client, mine


def test_a_share_that_is_no_token_is_an_unknown_parameter_over_http(ranges: tuple[Client, str]) -> None:
    client, mine = ranges
    refused = client.api("GET", f"/collections/{mine}/questions/pet/heavy?share=0.2")
    assert refused.status_code == 422 and "must be one of threshold" in refused.json()["detail"]


def test_an_export_without_answers_says_how_many_reports_are_missing() -> None:
    with serving(plain_app()) as client:
        mine = client.publish(draft())
        place = ["--server", str(client.http.base_url), "--token", client.token]
        table, whole = (run("export", mine, "--format", form, *place) for form in ("csv", "json"))
    assert table.exit_code == 0 and table.stdout.count("\n") == 1
    assert table.stderr == "tacit: 0 of at least 5 reports; no answers yet\n"
    assert not whole.stderr and '"below_minimum_cohort"' in whole.stdout


def test_a_library_that_the_collector_lacks_is_not_the_fault_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with serving(plain_app()) as client:
        mine = client.publish(draft())
        refused = client.api("GET", f"/collections/{mine}/answers.parquet")
    told = refused.json()
    assert (refused.status_code, told["type"]) == (501, "urn:tacit:error:missing_extra")
    assert told["title"] == "The collector lacks a library"
    assert told["detail"].startswith("on the collector's machine, pyarrow is not installed")


@pytest.mark.parametrize("there", [True, False])
def test_the_dashboard_offers_parquet_only_where_it_can_be_written(
    monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if not there:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    with serving(make_app(MemoryStore(), pages=routes)) as client:
        mine = client.publish(draft())
        link = client.api("POST", "/tokens", {"scope": "reader", "collection": mine}).json()["token"]
        page = client.http.get(f"/dashboard/collections/{mine}?share={link}").text
    assert 'id="collection"' in page and ("data-parquet" in page) == there


@pytest.mark.parametrize("query", ["nothing", "heavy?treshold=0.2", "heavy?threshold=x", "range?low=many"])
def test_mistakes_in_a_query_are_not_called_a_collection_that_cannot_exist(ranges: tuple[Client, str], query: str):
    client, mine = ranges
    told = client.api("GET", f"/collections/{mine}/questions/pet/{query}").json()
    assert (told["type"], told["title"]) == ("urn:tacit:error:invalid_query", "The query cannot be answered")


def test_text_with_a_colon_is_told_to_need_quotes(tmp_path: Path) -> None:
    (tmp_path / "draft.yaml").write_text("title: How? yes, no: maybe\n")
    refused = run("create", str(tmp_path / "draft.yaml"), "--data", str(tmp_path))
    assert refused.exit_code == 2 and "line 1" in refused.stderr and "put text with a colon" in refused.stderr


def test_a_tally_that_was_made_elsewhere_is_imported_once(tmp_path: Path) -> None:
    """By whichever command it was counted, into its own collection alone, and answered from its cohort on."""
    domain = {"kind": "integers", "low": 0, "high": 9}
    asked = [DRAFT["questions"][0] | {"domain": domain, "task": "mean"}]
    with serving(make_app(MemoryStore())) as client:
        mine, other = (client.publish(draft(questions=asked, minimum_cohort=150, title=title)) for title in "ab")
        document = client.http.get(f"/c/{mine}/document.json").json()
        mechanism = parse(document["mechanism"])
        folders = [
            write_folder(tmp_path / str(seed), About(mechanism, document), reports_on(mechanism, 100, seed))
            for seed in range(2)
        ]
        place = ["--server", str(client.http.base_url), "--token", client.token]
        for folder in folders:
            assert CliRunner().invoke(cli, ["tally", str(folder), "-o", f"{folder}.tally"]).exit_code == 0
        first = run("import", f"{folders[0]}.tally", "--into", mine, *place)
        assert first.exit_code == 0 and "100 reports" in first.output
        again = run("import", f"{folders[0]}.tally", "--into", mine, *place)
        assert again.exit_code == 0 and "before" in again.output
        refused = run("import", f"{folders[1]}.tally", "--into", other, *place)
        assert refused.exit_code == 2 and f"files of collection {mine[:6]}" in refused.stderr
        assert client.answers(mine)["status"] == "below_minimum_cohort"
        assert run("import", f"{folders[1]}.tally", "--into", mine, *place).exit_code == 0
        assert (client.answers(mine)["n"], client.status(other)["reports"]) == (200, 0)
