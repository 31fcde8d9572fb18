"""Questions that are asked together, and public columns, in a real browser against a real collector."""

import csv
import json
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.browser.access import Checker
from tests.browser.crowds import send_crowd
from tests.browser.habits import COLUMNS, HABITS, QUESTIONS, habits
from tests.browser.site import posts, sent_batch, sign_in

from tacit.tasks.marginals.task import plan_choice

ROWS: dict[str, Any] = {name: value for name, value in HABITS.items() if name not in ("policy", "k")} | {
    "questions": [QUESTIONS[0], QUESTIONS[1]],
    "rows": {"table": "visits", "columns": COLUMNS},
    "queries": ["SELECT region, COUNT(*) FROM visits WHERE smoking = TRUE GROUP BY region"],
}
# Four questions with two answers each; see `publish_signs`.
SIGNS = HABITS | {"epsilon": "0.5", "questions": [QUESTIONS[0] | {"name": f"habit_{i}"} for i in range(4)]}


def publish_signs(site: Any) -> str:
    """Publish questions reported as a sign of a few answers: documents may carry it, the planner prefers views."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.tasks.marginals.task.CARRIED", ("inp_ht",))
        plan_choice.cache_clear()
        collection = site.publish(**SIGNS)
    plan_choice.cache_clear()
    assert site.collector.find(collection).mechanism.family.kind == "coefficients"
    return collection


def fill(page: Any, *, home: str | None = "village") -> None:
    """Answer the questions about habits."""
    page.wait_for_selector("form")
    page.locator("input[name=smoking]").first.check()
    page.get_by_label("often").check()
    if home:
        page.get_by_label(home).check()
        page.locator("input[name=sleeping_badly]").last.check()


def shown_report(page: Any) -> str:
    """The bytes on the page, without the number of what was drawn."""
    page.wait_for_selector("#report")
    return page.inner_text("#report").split(":")[1].replace(" ", "")


def test_one_noisy_report_on_a_few_answers_leaves_the_browser(page: Any, asked: list[Any], site: Any) -> None:
    collection = site.publish(**HABITS)
    mechanism = site.collector.find(collection).mechanism
    assert mechanism.family.kind == "views"
    page.goto(f"{site.url}/c/{collection}")
    page.click(".promise summary")
    page.wait_for_selector("text=draws by itself which few of your answers go together")
    page.wait_for_selector("text=ε is spent once, not once per question")
    fill(page)
    page.click("text=Show me what will be sent")
    shown = shown_report(page)
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    (entry,) = sent_batch(site, collection, posts(asked)[0])["reports"]
    assert entry["report"] == shown and entry.keys() == {"member", "report"}
    drawn = mechanism.family.views[entry["member"]]
    reported = int.from_bytes(bytes.fromhex(shown), "little")
    assert reported < mechanism.family.cells(entry["member"]) and len(drawn) < len(QUESTIONS)
    kept = page.evaluate("JSON.stringify(localStorage)")
    sent = posts(asked)[0].post_data_buffer + kept.encode()
    assert not any(word in sent for word in (b"village", b"often"))
    assert site.reports(collection) == 1
    assert "ε = 3" in page.inner_text("[data-receipt=spent]")


def test_what_was_drawn_is_named_as_the_document_says(page: Any, site: Any) -> None:
    """The questions that are named are those of the view, and the combination that is said is that of the bytes."""
    collection = site.publish(**HABITS)
    family = site.collector.find(collection).mechanism.family
    page.goto(f"{site.url}/c/{collection}")
    fill(page)
    page.click("text=Show me what will be sent")
    report = bytes.fromhex(shown_report(page))
    view = family.views[int(page.inner_text("#report").split(":")[0]) - 1]
    words, cell, labels = page.inner_text(".said"), int.from_bytes(report, "little"), []
    for place in reversed(view):
        cell, digit = divmod(cell, family.sizes[place])
        label = site.collector.find(collection).collection.questions[place].domain.all_labels()[digit]
        labels.insert(0, {True: "Yes", False: "No"}.get(label, label))
    assert f"“{' · '.join(labels)}”" in words
    for place, question in enumerate(QUESTIONS):
        assert (f"“{question['text']['en']}”" in words) == (place in view)


@pytest.mark.slow
def test_reports_are_described_in_every_language(page: Any, site: Any) -> None:
    said = {
        "English": ("ε is spent once", "single noisy sign", "without noise"),
        "Deutsch": ("ε wird einmal verbraucht", "einziges verrauschtes Vorzeichen", "unverrauscht"),
        "français": ("ε est dépensé une seule fois", "un seul signe bruité", "sans bruit"),
        "español": ("ε se gasta una sola vez", "un solo signo con ruido", "sin ruido"),
    }
    signs, rows = publish_signs(site), site.publish(**ROWS)
    page.goto(f"{site.url}/c/{signs}")
    for language, (spent, _, _) in said.items():
        page.click(f".languages >> text={language}")
        expect(page.locator(".promise")).to_contain_text(spent)
    for i in range(4):
        page.locator(f"input[name=habit_{i}]").first.check()
    page.click("form button[type=submit]")
    for language, (_, words, _) in said.items():
        page.click(f".languages >> text={language}")
        expect(page.locator(".said")).to_contain_text(words)
        assert "{" not in page.inner_text(".said")
    page.goto(f"{site.url}/c/{rows}")
    fill(page, home=None)
    page.click("form button[type=submit]")
    for language, (_, _, words) in said.items():
        page.click(f".languages >> text={language}")
        expect(page.locator(".review")).to_contain_text(words)
        assert "{" not in page.inner_text(".review")


def test_public_columns_are_sent_as_they_are_and_may_stay_empty(page: Any, asked: list[Any], site: Any) -> None:
    collection = site.publish(**ROWS)
    page.goto(f"{site.url}/c/{collection}")
    page.wait_for_selector("text=They are stored with your noisy report and stay linked to it")
    fill(page, home=None)
    page.fill("#column-region", "North")
    page.fill("#column-visits", "1.5")
    page.click("text=Show me what will be sent")
    page.wait_for_selector(".error:has-text('does not fit')")
    expect(page.locator("#column-visits")).to_be_focused()
    page.fill("#column-visits", "-3")
    page.select_option("#column-insured", "false")
    page.fill("#column-asked_on", "2030-12-31")
    page.click("text=Deutsch")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("#column-region")).to_have_value("North")  # What was filled in survives a change of language.
    page.click("text=English")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.click("text=Show me what will be sent")
    page.wait_for_selector("#report")
    shown = {name: page.inner_text(f"[data-column={name}]") for name in ("region", "paid", "insured")}
    assert shown == {"region": "North", "paid": "left empty", "insured": "No"}
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    (entry,) = json.loads(posts(asked)[0].post_data)["reports"]
    row = {"region": "North", "visits": -3, "paid": None, "insured": False, "asked_on": "2030-12-31"}
    assert entry["row"] == row and entry.keys() == {"member", "report", "row"}
    assert "often" not in posts(asked)[0].post_data and site.reports(collection) == 1


def shows(page: Any, shares: list[float]) -> None:
    """Wait until the cells of the heat map are these."""
    cells = [re.compile(rf"^\s*{100 * share:.2f}\s") for share in shares]
    expect(page.locator(".heat-table td")).to_have_text(cells)


def test_tables_tests_and_the_tree_are_those_of_the_collector(page: Any, context: Any, site: Any) -> None:
    """The crowd and its coins are seeded; smoking and sport of 20,000 are so dependent that no seed could hide it."""
    collection = site.publish(**HABITS)
    send_crowd(context, site, collection, habits(20_000, 1))
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector(".heat-table td")

    def answer(query: str, **given: str) -> Any:
        address = f"{site.url}/api/v1/collections/{collection}/joint/{query}"
        return context.request.get(address, params=given).json()

    table = answer("table", attributes="smoking,sport")
    shows(page, [cell["consistent"] for cell in table["cells"]])
    page.click("#joint button:has-text('Raw')")
    shows(page, [cell["raw"]["estimate"] for cell in table["cells"]])
    expect(page.locator(".heat-table td").first).to_have_attribute("title", re.compile("95 % interval from"))
    page.wait_for_selector(".verdict .pill:has-text('connected')")
    expect(page.locator(".verdict")).to_contain_text(answer("association", attributes="smoking,sport")["words"])
    expect(page.locator(".pair-table button")).to_have_count(6)
    expect(page.locator(".pair-table .connected")).to_have_count(3)
    page.click("[data-pair='home,smoking']")
    page.wait_for_selector(".verdict h3:has-text('smoking and home')")
    expect(page.locator("#joint-1")).to_have_value("home")
    expect(page.locator("[data-pair='home,smoking']")).to_have_attribute("aria-pressed", "true")
    picture = page.locator("svg.tree")
    expect(picture.locator("path")).to_have_count(len(answer("tree")["edges"]))
    expect(picture.locator("path")).to_have_count(3)
    expect(picture.locator("circle")).to_have_count(4)
    expect(picture).to_have_attribute("aria-label", re.compile("sport under smoking"))


@pytest.mark.slow
def test_three_questions_come_as_a_table_for_each_value_of_the_third(page: Any, context: Any, site: Any) -> None:
    collection = site.publish(**HABITS)
    send_crowd(context, site, collection, habits(20_000, 2))
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.select_option("#joint-2", "home")
    page.wait_for_selector("caption:has-text('home: village')")
    expect(page.locator(".heat-table")).to_have_count(3)
    page.wait_for_selector("text=Nobody was asked about these together: smoking, sport and home")
    page.click("#joint >> text=Table of these numbers")
    expect(page.locator(".cells tbody tr")).to_have_count(2 * 3 * 3)  # The rows are made once the table is open.
    page.select_option("#joint-0", "home")  # No question stands twice: the two change places.
    page.wait_for_selector("caption:has-text('smoking: yes')")
    for i, name in enumerate(("home", "sport", "smoking")):
        expect(page.locator(f"#joint-{i}")).to_have_value(name)


@pytest.mark.slow
def test_synthetic_data_is_a_file_of_made_up_records(page: Any, context: Any, site: Any) -> None:
    collection = site.publish(**HABITS)
    send_crowd(context, site, collection, habits(20_000, 3))
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.click("text=Synthetic data")
    page.fill("#synthetic-rows", "250")
    with page.expect_download() as download:
        page.click("text=Download CSV")
    with open(download.value.path(), newline="") as file:
        head, *records = csv.reader(file)
    assert head == [question["name"] for question in QUESTIONS] and len(records) == 250
    assert {record[2] for record in records} == {"city", "suburb", "village"}
    page.expected = ["422"]
    page.fill("#synthetic-rows", "200000")
    page.evaluate("document.querySelector('.synthetic form').noValidate = true")
    page.click("text=Download CSV")
    page.wait_for_selector("text=rows must be an integer from 1 to")


@pytest.mark.slow
def test_questions_asked_together_are_built_on_the_page(page: Any, site: Any) -> None:
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/new")
    page.fill("#title-en", "Habits")
    for i, name in enumerate(("Smoking?", "Sport?", "Sleep?")):
        if i:
            page.click("#add")
        page.get_by_label("Question", exact=True).nth(i).fill(name)
        page.get_by_label("Answer", exact=True).nth(i).select_option("booleans")
    page.check("#policy-joint")
    page.wait_for_selector("text=respondents a cell of a table of 2 questions will be known to")
    page.fill("#table-size", "3")
    page.wait_for_selector("text=a cell of a table of 3 questions will be known to")
    page.click("text=Publish…")
    page.click("text=Publish it")
    page.wait_for_selector("text=Answers appear here")
    found = site.collector.find(page.url.rsplit("/", 1)[1]).collection
    assert found.policy == "joint" and {question.task for question in found.questions} == {"marginals"}


@pytest.mark.slow
def test_public_columns_are_built_on_the_page_and_come_back(page: Any, site: Any) -> None:
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/new")
    page.fill("#title-en", "Visits")
    page.get_by_label("Question", exact=True).fill("Age?")
    page.get_by_label("Answer", exact=True).select_option("integers")
    page.check("#has-columns")
    page.fill("#table", "visits")
    page.fill("#column-0", "region")
    page.click("#add-column")
    page.fill("#column-1", "paid")
    page.select_option("#column-type-1", "number")
    page.fill("#queries", "SELECT region, AVG(paid) FROM visits WHERE age >= 5 GROUP BY region")
    page.wait_for_selector("text=a condition on private columns selects will be known to")
    page.click("text=Save draft")
    page.wait_for_selector("text=Draft saved")
    draft = page.url.rsplit("/", 1)[1]
    before = site.collector.preview(draft)
    page.reload()
    page.wait_for_selector("text=a condition on private columns selects will be known to")
    expect(page.locator("#column-type-1")).to_have_value("number")
    page.click("text=Save draft")
    page.wait_for_selector("text=Draft saved")
    assert site.collector.preview(draft) == before
    page.click("text=Publish…")
    page.click("text=Publish it")
    page.wait_for_selector("text=Answers appear here")
    rows = site.collector.find(page.url.rsplit("/", 1)[1]).collection.rows
    assert rows.table == "visits" and [column.type for column in rows.columns] == ["text", "number"]


def test_the_privacy_page_tells_what_is_linked_and_not_shuffled(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/c/{site.publish(**HABITS)}/privacy")
    assert "epsilon is spent once" in page.inner_text("main") and "Public columns" not in page.inner_text("main")
    page.goto(f"{site.url}/c/{publish_signs(site)}/privacy")
    page.wait_for_selector("text=Probability that the report says the right sign")
    page.goto(f"{site.url}/c/{site.publish(**ROWS)}/privacy")
    words = page.inner_text("main")
    assert "it is not shuffled" in words and "asked_on" in words and "They are not added up" in words


@pytest.mark.slow
def test_pages_for_joint_questions_are_accessible_and_fit(page: Any, context: Any, site: Any) -> None:
    checker = Checker(page, site)
    collection, rows = site.publish(**HABITS), site.publish(**ROWS)
    drafts = site.draft(**HABITS), site.draft(**ROWS)
    send_crowd(context, site, collection, habits(3000, 4))
    checker.open(f"/c/{rows}", ".columns input")
    fill(page, home=None)
    page.click("text=Show me what will be sent")
    page.wait_for_selector("[data-column=region]")
    checker.check("a report with public columns")
    checker.open(f"/c/{rows}/privacy", "text=Public columns, which are not protected")
    sign_in(page, site)
    opened = ("#joint >> text=Table of these numbers", "text=Synthetic data", "text=If the noise were ignored")
    checker.open(f"/dashboard/collections/{collection}", *opened, "svg.tree")
    checker.open(f"/dashboard/collections/{drafts[0]}", "text=a cell of a table of 2 questions")
    checker.open(f"/dashboard/collections/{drafts[1]}", "#add-column")


@pytest.mark.slow
def test_a_draft_with_public_columns_can_be_tried_out(page: Any, site: Any) -> None:
    draft = site.draft(**ROWS)
    sign_in(page, site)
    page.goto(f"{site.url}/c/{draft}?preview")
    fill(page, home=None)
    page.fill("#column-region", "North")
    page.click("text=Show me what will be sent")
    assert page.inner_text("[data-column=region]") == "North"
    page.click("text=Send this report")
    page.wait_for_selector("text=would have been sent now")
    assert "North" not in page.evaluate("JSON.stringify(localStorage)")


@pytest.mark.slow
def test_pairs_of_many_questions_are_ranked(page: Any, context: Any, site: Any) -> None:
    """Twelve questions of which two have the same answer nine times in ten: seeded, and nothing comes near them."""
    asked = [QUESTIONS[0] | {"name": f"habit_{i}"} for i in range(12)]
    collection = site.publish(**HABITS | {"questions": asked})
    rng = np.random.default_rng(5)
    answers = rng.integers(0, 2, (20_000, 12))
    answers[:, 7] = answers[:, 2] ^ (rng.random(20_000) < 0.1)
    send_crowd(context, site, collection, answers)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector(".pair-ranking button")
    expect(page.locator(".pair-ranking button").first).to_have_text("habit 2 · habit 7")
    page.locator(".pair-ranking button").first.click()
    page.wait_for_selector(".verdict h3:has-text('habit 2 and habit 7')")
    page.wait_for_selector(".verdict >> text=Odds ratio")
