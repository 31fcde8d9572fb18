"""A survey of several kinds of questions: built, previewed, published, answered on a telephone, and read."""

import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.browser.access import Checker
from tests.browser.crowds import send_crowd
from tests.browser.site import look_again, posts, sign_in

PETS = ["cat", "dog", "fish"]
MIXED: dict[str, Any] = {
    "title": "Mixed",
    "epsilon": "4",
    "minimum_cohort": 10,
    "questions": [
        {"name": "way", "text": "Way?", "domain": {"kind": "categories", "labels": ["foot", "bus", "car"]}},
        {"name": "pets", "text": "Pets?", "task": "shares",
         "domain": {"kind": "optional", "domain": {"kind": "items", "labels": PETS}, "declined": "No answer"}},
        {"name": "stress", "text": "Stress?",
         "domain": {"kind": "optional", "domain": {"kind": "ordered", "labels": ["low", "middle", "high"]}}},
        {"name": "age", "text": "Age?",
         "domain": {"kind": "optional", "domain": {"kind": "integers", "low": 17, "high": 80}}},
        {"name": "job", "text": "Job?", "domain": {"kind": "booleans"}},
        {"name": "word", "text": "Word?", "task": "heavy_hitters",
         "domain": {"kind": "text", "alphabet": "lower", "length": 5}},
    ],
}  # fmt: skip
WORD = 27**4 * 3  # "c", as the domain numbers it.


def question(page: Any, place: int) -> Any:
    return page.locator(".question-card").nth(place)


def write(page: Any, place: int, text: str, kind: str) -> Any:
    """Fill in a question, and add it first where it is not there yet."""
    if page.locator(".question-card").count() <= place:
        page.click("#add")
    card = question(page, place)
    card.get_by_label("Question", exact=True).fill(text)
    card.get_by_label("Answer", exact=True).select_option(kind)
    return card


def build(page: Any) -> None:
    page.fill("#title-en", "Student life")
    write(page, 0, "How do you come?", "categories").get_by_label("Choices").fill("On foot\nBicycle\nBus")
    card = write(page, 1, "Which pets do you have?", "items")
    card.get_by_label("Things to tick").fill("\n".join(PETS))
    card.get_by_label("People may decline").check()
    write(page, 2, "How stressed are you?", "ordered").get_by_label("Choices").fill("not at all\na little\nvery")
    card = write(page, 3, "How old are you?", "integers")
    card.get_by_label("From").fill("17")
    card.get_by_label("To", exact=True).fill("80")
    write(page, 4, "Do you have a job?", "booleans")
    write(page, 5, "One word for your week?", "text")


def answer_all(page: Any) -> None:
    page.get_by_label("Bicycle").check()
    page.get_by_label("cat").check()
    page.get_by_label("a little").check()
    page.fill("input[name=how_old_are_you]", "99")
    page.get_by_label("Yes", exact=True).check()
    page.fill("input[name=one_word_for_your]", "Busy")
    page.click("text=Show me what will be sent")
    page.wait_for_selector(".error:has-text('17 to 80')")
    page.fill("input[name=how_old_are_you]", "23")
    expect(page.locator("input[name=one_word_for_your]")).to_have_value("busy")
    page.click("text=Show me what will be sent")


@pytest.mark.slow
def test_a_mixed_survey_from_the_builder_to_shares_with_intervals(page: Any, context: Any, site: Any) -> None:
    """4,000 made-up people at epsilon 4, of whom all have a cat and none a dog: six standard errors are 0.2 each."""
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/new")
    build(page)
    page.fill("#epsilon", "4")
    page.fill("#cohort", "10")
    page.click("text=Preview")
    page.wait_for_selector("text=Preview of a draft")
    answer_all(page)
    page.wait_for_selector("#report")
    page.goto(page.url.replace("?preview", ""))
    page.click("text=Back to the builder")
    question(page, 4).get_by_label("Move question 5 up").click()
    expect(question(page, 3).get_by_label("Question", exact=True)).to_have_value("Do you have a job?")
    page.click("text=Publish…")
    page.wait_for_selector("text=6 questions, epsilon 4")
    page.click("text=Publish it")
    page.wait_for_selector("text=Answers appear here")
    collection = page.url.rsplit("/", 1)[1]
    assert [one.name for one in site.collector.find(collection).collection.questions][2:4] == [
        "how_stressed_are_you", "do_you_have_a"]  # fmt: skip
    page.set_viewport_size({"width": 390, "height": 850})
    page.goto(f"{site.url}/c/{collection}")
    answer_all(page)
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    send_crowd(context, site, collection, [[1, [0], 1, 1, 10, WORD]] * 4000)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector(".per-day >> text=4,001")
    card = page.locator("section", has=page.get_by_role("heading", name="Which pets do you have?"))
    card.get_by_text("Table of these numbers").click()
    shares = [float(text.split("%")[0]) for text in card.locator(".numbers tbody tr td:nth-child(2)").all_inner_texts()]
    assert shares[0] > 80 and max(shares[1:]) < 20 and len(shares) == 4
    assert "to" in card.locator(".numbers tbody tr td:nth-child(3)").first.inner_text()


def test_what_is_missing_is_said_at_its_field_in_plain_words(page: Any, site: Any) -> None:
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/new")
    page.click("text=Publish…")
    page.wait_for_selector(".fault >> text=Give the survey a title.")
    page.wait_for_selector(".fault >> text=Write the question.")
    page.wait_for_selector(".fault >> text=List at least two choices")
    expect(page.locator("#title-en")).to_be_focused()
    page.fill("#title-en", "Numbers")
    page.get_by_label("Question", exact=True).fill("How many?")
    page.get_by_label("Answer", exact=True).select_option("integers")
    page.get_by_label("From", exact=True).fill("80")
    page.get_by_label("To", exact=True).fill("17")
    page.wait_for_selector(".fault >> text=Must be more than 80")
    page.get_by_label("To", exact=True).fill("90")
    page.fill("#retention", "99999")
    page.wait_for_selector(".fault >> text=1 to 36,500")
    page.fill("#retention", "30")
    page.fill("#origins", "https://Example.org/survey")
    page.wait_for_selector(".fault >> text=is no origin")
    page.fill("#origins", "")
    expect(page.locator(".fault:not(:empty)")).to_have_count(0)
    text = page.inner_text("main")
    assert "draft." not in text and "questions[" not in text


def test_the_forecast_says_how_many_people_a_precision_takes_and_what_declining_costs(page: Any, site: Any) -> None:
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/new")
    card = write(page, 0, "How old are you?", "integers")
    card.get_by_label("What you want to know").select_option("mean")
    card.get_by_label("People may decline").check()
    expect(card.get_by_label("What you want to know")).to_have_value("histogram")
    card.get_by_text("Nothing else is possible here while people may decline").wait_for()
    page.fill("#respondents", "10")
    page.wait_for_selector("#forecast >> text=more than ± 50 points")
    words = page.inner_text("#forecast >> text=For ± 5 points")
    people = re.search(r"ask about ([\d,]+) people", words)
    assert people
    page.fill("#respondents", people[1].replace(",", ""))
    # A share is rounded to a tenth of a point, and the number of people to two digits.
    page.wait_for_selector("#forecast .big >> text=/± (4[.][6-9]|5([.][0-4])?) points/")
    expect(page.locator("#forecast details")).not_to_have_attribute("open", "")


def test_answers_that_are_missing_say_how_many_reports_it_takes_and_a_link_shows_them(
    page: Any, context: Any, site: Any
) -> None:
    # Of two questions at least one has fewer than 40 of 60 reports.
    collection = site.publish(**MIXED | {"minimum_cohort": 40, "questions": MIXED["questions"][:2]})
    send_crowd(context, site, collection, [[1, [0]]] * 60)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector("text=/[0-9]+ of the 40 that it needs/ >> nth=0")
    page.wait_for_selector("#only-here >> text=on this machine alone")
    page.click("#share-answers")
    link = page.input_value("#answers-link")
    context.clear_cookies()
    page.goto(link)
    page.wait_for_selector("text=/of the 40 that it needs/ >> nth=0")
    assert page.query_selector("#share-answers") is None


@pytest.mark.slow
def test_questions_are_moved_duplicated_renamed_and_come_back(page: Any, site: Any) -> None:
    draft = site.draft(**MIXED)
    before = site.collector.preview(draft)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{draft}")
    page.wait_for_selector("text=points")
    page.click("text=Save draft")
    page.wait_for_selector("text=Draft saved")
    assert site.collector.preview(draft) == before
    page.get_by_label("Duplicate question 1").click()
    card = question(page, 1)
    card.get_by_text("Name in exports").click()
    card.get_by_label("Name", exact=True).fill("Way 2")
    card.get_by_label("Question", exact=True).fill("And home?")
    page.click("text=Save draft")
    page.wait_for_selector(".fault >> text=small letters")
    card.get_by_label("Name", exact=True).fill("way_home")
    page.get_by_label("Remove question 1").click()
    page.get_by_label("Move question 1 down").click()
    page.click("text=Save draft")
    page.wait_for_selector("text=Draft saved")
    kept = site.collector.planner.plan(__import__("json").loads(site.collector.record(draft).document))[0]
    assert [one.name for one in kept.questions] == ["pets", "way_home", "stress", "age", "job", "word"]


def test_declining_is_reported_like_any_answer(page: Any, asked: list[Any], site: Any) -> None:
    collection = site.publish(**MIXED)
    page.goto(f"{site.url}/c/{collection}")
    page.get_by_label("foot").check()
    page.get_by_label("dog").check()
    page.get_by_label("No answer").check()
    expect(page.get_by_label("dog")).not_to_be_checked()
    page.get_by_label("dog").check()
    expect(page.get_by_label("No answer")).not_to_be_checked()
    page.get_by_label("Yes", exact=True).check()
    page.click("text=Show me what will be sent")
    page.wait_for_selector(".error:has-text('Please answer')")  # The word: nothing may be written, if one says so.
    page.get_by_label("I would rather write nothing").check()
    expect(page.locator(".error:has-text('Please answer')")).to_have_count(0)
    page.click("text=Show me what will be sent")
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    assert site.reports(collection) == 1 and len(posts(asked)) == 1


def test_a_tick_is_told_in_words(page: Any, site: Any) -> None:
    collection = site.publish(**MIXED | {"questions": [MIXED["questions"][1]]})
    page.goto(f"{site.url}/c/{collection}")
    page.click(".promise summary")
    page.wait_for_selector("text=Of the 4 things on the list")
    page.get_by_label("cat").check()
    page.click("text=Show me what will be sent")
    page.wait_for_selector("text=It says the truth with a probability of 98.2")


@pytest.fixture
def stranger() -> Any:
    """Another origin, whose page imports the client and shows a survey in a frame.

    Of the same site, as browsers count: to frames of other sites a private window gives no storage at all.
    """
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(pages.get(self.path, b'<!doctype html><link rel="icon" href="data:,">'))

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", pages
        server.shutdown()


OPEN = """async ([site, id]) => {
    const { Respondent } = await import(`${site}/js/tacit.js`);
    return (await new Respondent().open(`${site}/c/${id}`)).questions.length;
}"""


@pytest.mark.slow
def test_another_site_is_named_until_it_is_added_and_frames_fit(page: Any, site: Any, stranger: Any) -> None:
    origin, pages = stranger
    page.expected = ["403", "422"]
    collection = site.publish(**MIXED)
    page.goto(origin)
    refused = page.evaluate(f"({OPEN})(['{site.url}', '{collection}']).catch((error) => error.message)")
    assert origin in refused and "does not allow" in refused
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.fill("#sites", f"{origin}/page")
    page.click("text=Save sites")
    page.wait_for_selector(".fault >> text=Write every site as https://")
    page.fill("#sites", origin)
    page.click("text=Save sites")
    page.wait_for_selector("text=Saved.")
    embed = page.input_value("#embed")
    page.goto(origin)
    assert page.evaluate(OPEN, [site.url, collection]) == 6
    pages["/framed"] = f'<!doctype html><link rel="icon" href="data:,">{embed}'.encode()
    page.goto(f"{origin}/framed")
    page.frame_locator("iframe").locator("form").wait_for()
    page.wait_for_function("document.querySelector('iframe').clientHeight > 1500")


@pytest.mark.slow
def test_the_pages_of_a_survey_are_accessible_and_fit(page: Any, context: Any, site: Any) -> None:
    checker = Checker(page, site)
    collection, draft = site.publish(**MIXED), site.draft(**MIXED)
    rng = np.random.default_rng(1)
    send_crowd(context, site, collection, [[int(rng.integers(3)), [0], 1, 5, 1, WORD] for _ in range(600)])
    checker.open(f"/c/{collection}", "form")
    page.click("text=Show me what will be sent")
    checker.check("what is missing")
    checker.open(f"/c/{collection}/privacy", "table")
    sign_in(page, site)
    checker.open(f"/dashboard/collections/{collection}", "canvas")
    look_again(page)
    checker.open(f"/dashboard/collections/{draft}", "text=points")
    page.fill("#title-en", "")
    page.click("text=Publish…")
    page.wait_for_selector(".fault >> text=Give the survey")
    checker.check("faults")
    page.fill("#title-en", "Mixed")
    page.click("text=Publish…")
    page.wait_for_selector("dialog[open]")
    checker.check("the question before publishing")
