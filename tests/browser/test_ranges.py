"""Ranges and quantiles in a real browser: what the pages show is what the collector says."""

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.browser.access import Checker
from tests.browser.crowds import send_crowd
from tests.browser.site import sign_in, wait_until

AGE: dict[str, Any] = {
    "name": "age",
    "text": {"en": "How old are you?", "de": "Wie alt sind Sie?", "fr": "Quel âge ?", "es": "¿Qué edad?"},
    "domain": {"kind": "integers", "low": 18, "high": 97},
    "task": "ranges",
}
INCOME: dict[str, Any] = {
    "name": "income",
    "text": "What do you earn?",
    "domain": {"kind": "buckets", "edges": ["0", "1000.5", "2500", "5000"], "open_below": True, "open_above": True},
    "task": "ranges",
}
MOOD: dict[str, Any] = {
    "name": "mood",
    "text": "How are you?",
    "domain": {"kind": "ordered", "labels": [f"mood {i}" for i in range(12)]},
    "task": "ranges",
}
TITLES = {"en": "Ages", "de": "Alter", "fr": "Âges", "es": "Edades"}
AGES: dict[str, Any] = {"title": TITLES, "about": TITLES, "questions": [AGE], "epsilon": "2", "minimum_cohort": 10}


def crowd(n: int, size: int) -> Any:
    return np.random.default_rng(1).binomial(size - 1, 0.4, n)


def ask(context: Any, site: Any, collection: str, question: str, query: str, **given: Any) -> Any:
    reply = context.request.get(
        f"{site.url}/api/v1/collections/{collection}/questions/{question}/{query}",
        params=given,
        headers={"Authorization": f"Bearer {site.token}"},
    )
    assert reply.status == 200, reply.text()
    return reply.json()


def opened(page: Any, site: Any, collection: str) -> None:
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector(".reading .big:not(:empty)")


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?(?= %)", text)]


def reads(page: Any, words: str, share: dict[str, float]) -> None:
    """Wait until a range is read out, and compare with what the collector says."""
    page.wait_for_selector(f".reading:has-text('answer {words}:')")
    says(page, share)


def says(page: Any, share: dict[str, float]) -> None:
    """Wait until these are the numbers that are read out."""
    wanted = [100 * share[name] for name in ("estimate", "low", "high")]
    wait_until(page, lambda: numbers(page.inner_text(".reading")) == pytest.approx(wanted, abs=0.06), f"no {wanted}")


def test_a_range_is_dragged_typed_and_moved_by_keyboard(page: Any, context: Any, site: Any) -> None:
    collection = site.publish(**AGES)
    send_crowd(context, site, collection, crowd(20_000, 80))
    opened(page, site, collection)

    def share(low: int, high: int) -> Any:
        return ask(context, site, collection, "age", "range", low=low, high=high)["share"]

    reads(page, "38 to 77", share(38, 77))
    low = page.get_by_role("slider", name="Lowest answer")
    low.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "PageUp"):
        page.keyboard.press(key)
    first = 18 + int(low.input_value())
    assert first > 39 and low.get_attribute("aria-valuetext") == str(first)
    reads(page, f"{first} to 77", share(first, 77))
    page.get_by_role("slider", name="Highest answer").focus()
    page.keyboard.press("Home")  # Ends never cross: the other one follows.
    reads(page, "18", share(18, 18))
    page.get_by_label("To", exact=True).fill("1000")
    page.get_by_label("From", exact=True).fill("60")
    page.keyboard.press("Enter")
    reads(page, "60 to 97", share(60, 97))
    page.locator(".plot.upright canvas").scroll_into_view_if_needed()
    box = page.locator(".plot.upright canvas").bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 90, steps=4)
    page.mouse.up()
    dragged = lambda: [int(page.get_by_label(end, exact=True).input_value()) for end in ("From", "To")]  # noqa: E731
    wait_until(page, lambda: 30 < dragged()[0] < 42 and 58 < dragged()[1] < 72, "the dragged range")
    ends = dragged()
    reads(page, f"{ends[0]} to {ends[1]}", share(*ends))


@pytest.mark.slow
def test_a_range_is_dragged_by_touch(new_context: Any, site: Any) -> None:
    context = new_context(viewport={"width": 390, "height": 850}, has_touch=True, is_mobile=True)
    page = context.new_page()
    collection = site.publish(**AGES | {"questions": [MOOD]})
    send_crowd(context, site, collection, crowd(2000, 12))
    opened(page, site, collection)
    box, touch = page.locator(".plot.upright canvas").bounding_box(), context.new_cdp_session(page)

    def finger(kind: str, *places: float) -> None:
        points = [{"x": box["x"] + place * box["width"], "y": box["y"] + 80} for place in places]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    finger("touchStart", 0.95)
    for place in (0.9, 0.8, 0.6):
        finger("touchMove", place)
    finger("touchEnd")
    page.wait_for_selector(".reading:has-text('to mood 11:')")
    low = int(page.get_by_label("From", exact=True).input_value())
    assert 4 <= low <= 7
    share = ask(context, site, collection, "mood", "range", low=f"mood {low}", high="mood 11")["share"]
    reads(page, f"mood {low} to mood 11", share)


def test_the_curve_the_quantiles_and_the_heavy_intervals(page: Any, context: Any, site: Any) -> None:
    collection = site.publish(**AGES)
    send_crowd(context, site, collection, crowd(20_000, 80))
    opened(page, site, collection)
    page.wait_for_selector("text=Each point of the true curve, by itself")
    with page.expect_response(lambda reply: "band=simultaneous" in reply.url) as asked:
        page.click("button:has-text('Simultaneous')")
    page.wait_for_selector("text=The whole true curve lies in the band in at least 95 of 100 cases")
    drawn = page.evaluate(
        "Chart.getChart(document.querySelector('.plot.curve canvas')).data.datasets.map((d) => d.data)"
    )
    told = asked.value.json()
    assert drawn == [told["consistent"], told["low"], told["high"]]
    medians = ask(context, site, collection, "age", "quantiles", shares="0.5")["quantiles"][0]
    between = f"{medians['low']} to {medians['high']}" if medians["low"] < medians["high"] else str(medians["low"])
    expect(page.locator("tr:has(th:has-text('median')) td")).to_have_text([str(medians["value"]), between])
    page.get_by_label("Shortest intervals with at least").select_option("0.5")
    heavy = ask(context, site, collection, "age", "heavy", threshold=0.5)["intervals"]
    page.wait_for_selector(f"th:has-text('{heavy[0]['from']} to {heavy[0]['to']}')")
    page.click("button:has-text('Raw')")
    page.wait_for_selector("text=Intervals hold the true number in 95 of 100 cases")
    page.click("button:has-text('Consistent')")
    page.wait_for_selector("text=hold the true share in at least 95 of 100 cases")
    page.click("text=Table of these numbers")
    expect(page.locator("details .numbers tbody tr")).to_have_count(80)


def test_nothing_known_is_said_in_words(page: Any, context: Any, site: Any) -> None:
    collection = site.publish(**AGES | {"minimum_cohort": 1})
    send_crowd(context, site, collection, np.array([3]))
    opened(page, site, collection)
    page.click("text=Table of these numbers")
    page.wait_for_selector("details .numbers td")
    for name in ("Quantiles", "Where answers gather"):
        page.wait_for_selector(f"[aria-label^='{name}']")
    page.wait_for_selector("text=Each point of the true curve")
    assert not re.search(r"NaN|Infinity|null|undefined", page.inner_text("main"))
    page.get_by_label("From", exact=True).fill("18")
    page.get_by_label("To", exact=True).fill("97")
    page.keyboard.press("Enter")
    page.wait_for_selector(".reading:has-text('100 % of respondents, by definition')")


@pytest.mark.parametrize(
    ("question", "size", "words"), [(INCOME, 5, "0 to under 5000"), (MOOD, 12, "mood 3 to mood 8")]
)
@pytest.mark.slow
def test_buckets_and_ordered_choices_have_ranges(
    page: Any, context: Any, site: Any, question: dict[str, Any], size: int, words: str
) -> None:
    collection = site.publish(**AGES | {"questions": [question]})
    send_crowd(context, site, collection, crowd(2000, size))
    opened(page, site, collection)
    ends = {"income": ("0", "4000"), "mood": ("mood 3", "mood 8")}[question["name"]]
    share = ask(context, site, collection, question["name"], "range", low=ends[0], high=ends[1])["share"]
    reads(page, words, share)
    page.get_by_label("From", exact=True).select_option(index=0)
    under = {"income": "under 5000", "mood": "mood 0 to mood 8"}[question["name"]]
    page.wait_for_selector(f".reading:has-text('answer {under}:')")
    page.wait_for_selector("tr:has(th:has-text('median')) td")
    assert "[" not in page.inner_text("[aria-label^=Quantiles]")


@pytest.mark.slow
def test_large_domains_are_drawn_in_few_bars(page: Any, context: Any, site: Any) -> None:
    wide = AGE | {"domain": {"kind": "integers", "low": 0, "high": 8191}}
    collection = site.publish(**AGES | {"questions": [wide]})
    send_crowd(context, site, collection, crowd(20_000, 8192))
    opened(page, site, collection)
    found = ask(context, site, collection, "age", "range", low=2048, high=6143)
    reads(page, "2048 to 6143", found["share"])
    page.wait_for_selector("text=Each bar adds up 64 neighbouring answers")
    bars = page.evaluate("Chart.getChart(document.querySelector('.plot.upright canvas')).data.datasets[0].data")
    assert len(bars) <= 128 and sum(bars) == pytest.approx(1)
    page.click("button:has-text('Raw')")
    reads(page, "2048 to 6143", found["raw"])


@pytest.mark.slow
def test_the_builder_plans_ranges_explains_and_publishes(page: Any, site: Any) -> None:
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/new")
    page.fill("#title-en", "Ages")
    page.get_by_label("Question", exact=True).fill("How old are you?")
    page.get_by_label("Answer", exact=True).select_option("integers")
    page.get_by_label("From", exact=True).fill("18")
    page.get_by_label("To", exact=True).fill("97")
    page.get_by_label("What you want to know").select_option("ranges")
    page.wait_for_selector("text=With 10,000 respondents a range, on average over all of them, will be known to")
    expect(page.locator(".why")).to_have_text(re.compile(r"Why: .*“.+” .+\."))
    page.click("#forecast summary")
    page.locator(".options tbody tr").nth(5).wait_for()
    expect(page.locator(".options tr[aria-current]")).to_have_count(1)
    with page.expect_response("**/plan?*"):
        page.fill("#cohort", "7")
    page.wait_for_selector("details[open] .options")
    page.click("text=Publish…")
    page.click("text=Publish it")
    page.wait_for_selector("text=Answers appear here")
    document = site.collector.find(page.url.rsplit("/", 1)[1]).collection
    assert document.questions[0].task == "ranges" and document.questions[0].domain.size == 80


@pytest.mark.slow
def test_a_survey_for_ranges_says_in_words_what_it_sends_and_counts(new_context: Any, site: Any) -> None:
    """In the language of the browser first, and in every other one when it is chosen."""
    collection, page = site.publish(**AGES), new_context(locale="de").new_page()
    page.goto(f"{site.url}/c/{collection}")
    page.fill("input[name=age]", "42")
    page.click("form button[type=submit]")
    page.wait_for_selector("#report")
    described = page.locator(".said")
    assert "verrauschte Angabe" in described.inner_text() and page.get_attribute("html", "lang") == "de"
    for language, words in (
        ("English", "noisy answer about which"),
        ("français", "indication bruitée"),
        ("español", "dato con ruido"),
        ("Deutsch", "verrauschte Angabe"),
    ):
        page.click(f".languages >> text={language}")
        expect(described).to_contain_text(words)
        assert "{" not in described.inner_text()
    page.click(".review .primary")
    page.wait_for_selector("#outcome")
    assert site.reports(collection) == 1


@pytest.mark.slow
def test_a_survey_with_ranges_beside_other_questions(page: Any, site: Any) -> None:
    asked = [INCOME, MOOD, {"name": "yes", "text": "Yes?", "domain": {"kind": "booleans"}}]
    for policy in ("one_of", "all_of"):
        collection = site.publish(**AGES | {"title": policy, "questions": asked, "policy": policy, "epsilon": "4"})
        page.goto(f"{site.url}/c/{collection}")
        page.get_by_label("0 to under 1000.5").check()
        page.select_option("select", label="mood 7")
        page.get_by_label("Yes", exact=True).check()
        page.click("text=Show me what will be sent")
        page.wait_for_selector(".said li")
        page.click("text=Send this report")
        page.wait_for_selector("text=has arrived")
        assert site.reports(collection) == 1


@pytest.mark.slow
def test_pages_for_ranges_are_accessible_and_fit(page: Any, context: Any, site: Any) -> None:
    small = AGES | {"title": "Moods", "about": "Moods", "questions": [MOOD]}
    collection, draft = site.publish(**small), site.draft(**small)
    send_crowd(context, site, collection, crowd(2000, 12))
    checker = Checker(page, site)
    checker.open(f"/c/{collection}/privacy", "table")
    sign_in(page, site)
    checker.open(f"/dashboard/collections/{collection}", "text=Table of these numbers", "details .numbers td")
    checker.open(f"/dashboard/collections/{draft}", "#forecast summary", ".options td")
