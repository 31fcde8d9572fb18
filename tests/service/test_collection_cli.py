"""`tacit collection`: parameters that an address takes for itself are refused, and an empty export says why."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.service.plain import DRAFT, draft, plain_app, serving

from tacit.cli import cli
from tacit.collector.adapters.memory import MemoryStore
from tacit.collector.server import make_app
from tacit.tasks.joint import JOINT
from tacit.tasks.table import TASKS


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
    queries = [*JOINT, *(query for task in TASKS for query in task.queries)]
    assert not [query.name for query in queries if {"share", "level"} & query.parameters.keys()]


def test_a_share_that_is_no_token_is_an_unknown_parameter_over_http() -> None:
    domain = {"kind": "integers", "low": 0, "high": 9}
    asked = [DRAFT["questions"][0] | {"domain": domain, "task": "ranges"}]
    with serving(make_app(MemoryStore())) as client:
        mine = client.publish(draft(questions=asked))
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
