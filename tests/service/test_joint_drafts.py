"""Drafts of questions asked together, and beside rows: planned, refused with the rule, used from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.service.habits import AGE, HABITS, NAMES, PET, QUESTIONS, SMOKER, ask, asked, crowd
from tests.service.plain import Client, draft
from tests.service.rows import json_batch
from tests.service.test_ranges import upload

from tacit.catalog import parse
from tacit.cli import cli
from tacit.cli.collection import collection as group
from tacit.client import Respondent


@pytest.fixture(scope="module")
def habits(client: Client) -> str:
    """A collection that a crowd has answered."""
    collection = client.publish(HABITS)
    upload(client, collection, crowd())
    return collection


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"questions": [*QUESTIONS, asked("city", kind="categories", labels=["here"])]}, "'city' has one value"),
        ({"k": 5}, "k is 5, must be from 1 to the 4 questions"),
        ({"k": 0}, "k is 0"),
        ({"k": "two"}, "draft.k must be an integer"),
        ({"questions": [SMOKER]}, "several questions"),
        ({"questions": [SMOKER, PET | {"task": "histogram"}]}, "must all have the task marginals, not histogram"),
        ({"questions": [SMOKER, asked("income", kind="integers", low=0, high=9999)]}, "at most 2048"),
        ({"k": 4, "questions": [asked(f"q{i}", kind="integers", low=0, high=1023) for i in range(4)]}, "set k to 1"),
        ({"queries": ["SELECT COUNT(*) FROM t"]}, "draft.queries are for drafts with rows"),
        ({"questions": [item | {"task": "analytics"} for item in QUESTIONS]}, "state rows in the draft"),
        ({"policy": "one_of", "k": 2}, "draft.k"),
        ({"policy": "one_of", "questions": [SMOKER | {"task": "marginals"}, PET]}, 'set the policy to "joint"'),
    ],
)
def test_drafts_that_cannot_be_asked_together(client: Client, changes: dict[str, Any], word: str) -> None:
    refused = client.api("POST", "/collections", HABITS | changes)
    assert refused.status_code == 422 and word in refused.json()["detail"], refused.text


def test_a_forecast_names_what_it_is_about_and_what_it_was_compared_with(client: Client) -> None:
    rows = client.api("POST", "/plan", HABITS | {"k": 2}).json()["questions"]
    assert [row["name"] for row in rows] == list(NAMES)
    assert rows[0]["of"] == "a cell of a table of 2 questions" and 0 < rows[0]["standard_error"] < 0.02
    picked = [option for option in rows[0]["options"] if option["picked"]]
    assert len(picked) == 1 and picked[0]["standard_error"] == rows[0]["standard_error"]
    assert picked[0]["standard_error"] == min(option["standard_error"] for option in rows[0]["options"])


def test_what_an_unfinished_draft_lacks_is_a_refusal_or_on_request_an_answer(client: Client) -> None:
    unfinished = HABITS | {"questions": []}
    refused = client.api("POST", "/plan", unfinished)
    told = client.api("POST", "/plan?unfinished=true", unfinished)
    assert refused.status_code == 422 and told.status_code == 200
    assert told.json() == {"questions": [], "problem": refused.json()}
    finished = client.api("POST", "/plan?unfinished=true", HABITS | {"k": 2}).json()
    assert finished == client.api("POST", "/plan", HABITS | {"k": 2}).json() and len(finished["questions"]) == 4
    assert client.api("POST", "/plan?unfinished=true", []).status_code == 400  # Nobody writes that by hand.


@pytest.mark.slow
def test_the_command_line_plans_the_same_mechanism(client: Client) -> None:
    """Eight binary questions at epsilon 2: the pick of the planner is one that documents carry."""
    planned = ["plan", "--task", "marginals", "--binary", "8", "--k", "3", "--epsilon", "2", "--n", "65536", "--json"]
    plan = json.loads(CliRunner().invoke(cli, planned).output)
    questions = [asked(f"q{i}", kind="booleans") for i in range(8)]
    given = HABITS | {"questions": questions, "k": 3, "respondents": 65536}
    rows = client.api("POST", "/plan", given).json()["questions"]
    assert rows[0]["mechanism"] == plan["pick"]["spec"]
    errors = {option["method"]: option["rmse"] for option in plan["options"]}
    for option in rows[0]["options"]:
        assert option["standard_error"] == errors[option["name"]]


def test_the_python_client_answers_all_questions(client: Client) -> None:
    collection = client.publish(HABITS | {"title": "By hand", "minimum_cohort": 5})
    url = f"{client.http.base_url}/c/{collection}"
    answers = {"smoker": True, "age_group": "old", "pet": "cat", "sport": False}
    for _ in range(12):
        assert Respondent().answer(url, answers).state == "sent"
    assert client.answers(collection)["n"] == 12


def test_the_command_line_shows_tables_and_verdicts(client: Client, habits: str) -> None:
    place = ["--server", str(client.http.base_url), "--token", client.token]

    def shown(*arguments: str) -> str:
        result = CliRunner().invoke(group, ["joint", habits, *arguments, *place])
        assert result.exit_code == 0, result.output
        return result.output

    assert "95 % interval" in shown("table", "attributes=smoker,age_group")
    assert "go together" in shown("association", "attributes=smoker,age_group")
    assert "smoker and age_group" in shown("associations")
    assert "share of smoker" in shown("conditional", "attributes=smoker", "given=age_group")
    assert "age_group" in shown("tree")
    assert shown("synthetic", "rows=3").startswith("smoker,age_group,pet,sport\n")
    assert json.loads(shown("tree", "--json"))["nodes"] == list(NAMES)
    for bad, word in ((("table", "attributes"), "NAME=VALUE"), (("table",), "must name 1 to 8 questions")):
        refused = CliRunner().invoke(group, ["joint", habits, *bad, *place])
        assert refused.exit_code == 2 and word in refused.output


def test_the_command_line_works_on_a_folder(tmp_path: Path) -> None:
    runner = CliRunner()
    (tmp_path / "habits.json").write_text(json.dumps(HABITS))
    made = runner.invoke(group, ["publish", str(tmp_path / "habits.json"), "--data", str(tmp_path)])
    assert made.exit_code == 0, made.output
    answer = runner.invoke(group, ["joint", made.output.strip(), "tree", "--data", str(tmp_path)])
    assert answer.exit_code == 0 and "0 reports" in answer.output, answer.output


ROWS: dict[str, Any] = {"table": "visits", "columns": [{"name": "state", "type": "text"}]}


@pytest.mark.parametrize(("questions", "policies"), [([AGE], {"single"}), ([AGE, SMOKER], {"joint", "all_of"})])
def test_a_draft_with_rows_is_asked_with_sql(client: Client, questions: list[Any], policies: set[str]) -> None:
    given = draft(title="Visits", questions=questions, rows=ROWS, minimum_cohort=1)
    sql = {"queries": ["SELECT state, COUNT(*) FROM visits WHERE age_group = 'old' GROUP BY state"]}
    plan = client.api("POST", "/plan", given | sql).json()["questions"]
    assert 0 < plan[0]["standard_error"] < 0.1 and "EXPLAIN" in plan[0]["why"] and "rows" in plan[0]["of"]
    collection = client.publish(given | sql)
    document = client.api("GET", f"/collections/{collection}").json()["document"]
    assert document["policy"] in policies and document["questions"][0]["task"] == "analytics"
    assert client.answers(collection)["status"] == "below_minimum_cohort"
    assert ask(client, collection, "tree").status_code == 409
    response = client.api("GET", f"/collections/{collection}/questions/age_group/range")
    assert response.status_code == 409 and "SQL" in response.json()["detail"]


def test_answers_of_rows_say_that_sql_asks_for_them(client: Client) -> None:
    collection = client.publish(draft(title="Rows", questions=[AGE], rows=ROWS, minimum_cohort=3))
    mechanism = parse(client.http.get(f"/c/{collection}/document.json").json()["mechanism"])
    body = json_batch(collection, mechanism, [0, 1, 2, 2], [{"state": "NY"}] * 4)
    assert client.send(collection, body, "application/json").json()["accepted"] == 4
    answers = client.answers(collection)
    assert answers["status"] == "ok" and answers["n"] == 4
    assert answers["questions"] == [{
        "name": "age_group", "task": "analytics", "text": {"en": "age_group?"}, "n": 4, "unit": "share",
        "method": "sql", "status": "sql", "rows": [],
    }]  # fmt: skip
    table = client.api("GET", f"/collections/{collection}/answers.csv").text
    assert table.startswith("question,task") and table.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"k": 2}, "draft.k"),
        ({"queries": "SELECT 1"}, "draft.queries must be a list"),
        ({"queries": [1]}, "draft.queries must be a list"),
        ({"queries": ["SELECT nothing FROM nowhere"]}, ""),
        ({"policy": "one_of", "questions": [AGE, SMOKER]}, "draft.policy"),
        ({"questions": [AGE | {"task": "histogram"}]}, "must be analytics"),
        ({"rows": {"table": "visits", "columns": []}}, "columns"),
    ],
)
def test_drafts_with_rows_that_cannot_be_asked(client: Client, changes: dict[str, Any], word: str) -> None:
    refused = client.api("POST", "/collections", draft(questions=[AGE], rows=ROWS) | changes)
    assert refused.status_code == 422 and word in refused.json()["detail"], refused.text
