"""Rectangles, methods of post-processing, and the page for the central model, in a real browser."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.browser.access import Checker
from tests.browser.crowds import BASKET, BASKETS, run_plan, send_crowd
from tests.browser.site import sign_in, wait_until
from tests.browser.test_hitters import WORDS
from tests.browser.test_pages import COMMUTE, send_reports
from tests.browser.test_ranges import ask, numbers, says

from tacit.dashboard import tools
from tacit.dashboard.script import is_fresh, script_routes
from tacit.errors import TacitError

AGE: dict[str, Any] = {"kind": "integers", "name": "age", "low": 20, "high": 80, "step": 4}
PAY: dict[str, Any] = {"kind": "ordered", "name": "pay", "labels": ["low", 'so, "so"', "high", "very high"]}
BOTH: dict[str, Any] = {"kind": "product", "attributes": [AGE, PAY]}
QUESTION: dict[str, Any] = {"name": "who", "text": "Who are you?", "domain": BOTH, "task": "ranges"}
WHO: dict[str, Any] = {"title": "Who", "epsilon": "2", "minimum_cohort": 10, "questions": [QUESTION]}


def crowd(n: int) -> Any:
    rng = np.random.default_rng(1)
    return rng.binomial(15, 0.4, n) * 4 + rng.integers(0, 4, n)


def test_a_rectangle_is_chosen_by_handles_fields_and_dragging(page: Any, context: Any, site: Any) -> None:
    collection = site.publish(**WHO)
    send_crowd(context, site, collection, crowd(8000))
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")

    def reads(words: str, low: str, high: str) -> None:
        page.wait_for_selector(f".reading:has-text('{words}')")
        says(page, ask(context, site, collection, "who", "rectangle", low=low, high=high)["share"])

    reads('age 36 to 64 and pay so, "so" to high', '36,"so, ""so"""', "64,high")
    expect(page.locator(".heat .cell")).to_have_count(64)
    page.get_by_role("slider", name="Lowest answer of age").focus()
    page.keyboard.press("End")
    reads('age 80 and pay so, "so" to high', '80,"so, ""so"""', "80,high")
    page.get_by_role("slider", name="Lowest answer of pay").focus()
    page.keyboard.press("Home")
    page.get_by_role("slider", name="Highest answer of pay").focus()
    page.keyboard.press("End")
    reads("answer age 80:", "80,", "80,")
    page.locator(".heat").scroll_into_view_if_needed()
    box = page.locator(".heat").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 60, steps=3)
    page.mouse.up()
    ends = [page.locator(f"#{end}-who-0").input_value() for end in ("low", "high")]
    reads(f"age {ends[0]} to {ends[1]} and pay high to very high", f"{ends[0]},high", f"{ends[1]},very high")
    page.click("text=Table of these numbers")
    expect(page.locator(".numbers tbody tr")).to_have_count(64)


def test_two_attributes_are_asked_together_and_described(page: Any, site: Any) -> None:
    collection = site.publish(**WHO)
    page.goto(f"{site.url}/c/{collection}")
    page.fill("input[name=who-age]", "44")
    page.get_by_label("very high").check()
    page.click("text=Show me what will be sent")
    assert "combinations of answers" in page.inner_text(".said") and "age" not in page.inner_text("#report")
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    assert site.reports(collection) == 1


def test_a_stale_bundle_is_not_served(tmp_path: Path) -> None:
    bundle, module = tmp_path / "bundle", tmp_path / "module.js"
    bundle.mkdir()
    assert not is_fresh(bundle, tmp_path / "absent")
    (bundle / "tacit.js").write_text("old")
    assert is_fresh(bundle, tmp_path / "absent")  # As in an installed package.
    module.write_text("new")
    os.utime(bundle / "tacit.js", (1, 1))
    assert not is_fresh(bundle, tmp_path)
    os.utime(module, (1, 1))
    assert is_fresh(bundle, tmp_path)


def test_a_collector_without_a_browser_client_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(TacitError, match="make js"):
        script_routes(tmp_path, tmp_path)


def shown_shares(page: Any) -> list[float]:
    """Raw and adjusted, line by line."""
    lines = [numbers(text) for text in page.locator(".numbers tbody tr").all_inner_texts()]
    return [line[place] for line in lines for place in (0, 4)]


def test_shares_are_shown_by_the_method_that_is_chosen(page: Any, context: Any, site: Any) -> None:
    collection = site.publish(**COMMUTE)
    send_reports(context, site, collection, 200)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector("text=no share is negative and all add up to 100 %")
    page.click("text=Table of these numbers")
    page.wait_for_selector(".numbers td")
    page.click("text=Advanced")
    promises = (("norm", "Adjusted so that all add up to 100 %. Unbiased."), ("base_cut", "listing what stands out"))
    for method, promise in promises:
        page.get_by_label("Adjusted by").select_option(method)
        page.wait_for_selector(f"text={promise}")
        rows = site.collector.answers(collection, 0.95, method).questions[0]["rows"]
        wanted = [100 * row[kind]["estimate"] for row in rows for kind in ("raw", "consistent")]
        wait_until(page, lambda wanted=wanted: shown_shares(page) == pytest.approx(wanted, abs=0.6), f"no {wanted}")
    page.click("button:has-text('Raw')")
    page.wait_for_selector("text=Unbiased: right on average, so")
    expect(page.get_by_label("Adjusted by")).to_be_hidden()


@pytest.mark.slow
def test_the_largest_of_many_answers_say_that_they_were_picked(page: Any, context: Any, site: Any) -> None:
    labels = [f"town {i}" for i in range(40)]
    town = COMMUTE["questions"][0] | {"domain": {"kind": "categories", "labels": labels}}
    collection = site.publish(**COMMUTE | {"questions": [town]})
    send_reports(context, site, collection, 300)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector("text=The 24 largest of 40 answers, adjusted for selection")
    offered = page.get_by_label("Adjusted by").locator("option")
    assert "npmle" in [option.get_attribute("value") for option in offered.all()]
    assert "monotone" not in [option.get_attribute("value") for option in offered.all()]


@pytest.mark.slow
def test_a_mechanism_of_the_central_model_is_designed_and_shown(page: Any, context: Any, site: Any) -> None:
    assert context.request.get(f"{site.url}/dashboard/tools/matrix.svg?n=4").status == 404
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard")
    page.click("nav >> text=Tools")
    page.wait_for_selector("text=This is the central model, NOT LOCAL")
    assert page.query_selector(".matrix") is None
    page.get_by_label("People in the group").fill("5")
    page.get_by_label("Mechanism").select_option("em")
    page.click("text=Design it")
    page.wait_for_selector(".matrix")
    page.wait_for_function("document.querySelector('.matrix').naturalWidth > 0")
    assert page.locator("tr:has(th:has-text('fairness')) td").inner_text() == "yes"
    page.click("text=Table of these probabilities")
    expect(page.locator(".numbers tbody tr")).to_have_count(6)
    page.get_by_label("Alpha").fill("1/")
    page.click("text=Design it")
    page.wait_for_selector(".problem:has-text('must be strictly between 0 and 1')")


@pytest.mark.parametrize(
    ("given", "properties", "word"),
    [
        ({"n": "33"}, (), "from 1 to 32"),
        ({"n": "²"}, (), "from 1 to 32"),
        ({"alpha": "0." + "9" * 99}, (), "24 characters"),
        ({"alpha": "nan"}, (), "strictly between"),
        ({"objective": "l9"}, (), "listed"),
        ({"mechanism": "rm"}, (), "listed"),
        ({"n": "4"}, ("x" * 5000,), "must be among"),
        ({"n": "1", "objective": "l0,1"}, (), "below n = 1"),
    ],
)
def test_wishes_outside_the_limits_are_refused_with_the_rule(
    given: dict[str, str], properties: tuple[str, ...], word: str
) -> None:
    shown = tools.tools(given, properties)
    assert word in shown["problem"] and shown["found"] is None and len(shown["problem"]) < 300


def test_without_scipy_the_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scipy", "scipy.optimize", "scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, None)
    shown = tools.tools({"n": "7", "alpha": "0.8125"}, ("fairness",))
    assert "pip install 'tacit[central]'" in shown["problem"]
    assert tools.tools({"n": "7", "mechanism": "gm"}, ())["found"]["exact"]


@pytest.mark.slow
def test_new_pages_are_accessible_and_fit(page: Any, context: Any, site: Any) -> None:
    sets, done = site.publish(**BASKETS), site.publish(**BASKETS | {"questions": [BASKET | {"task": "itemsets"}]})
    words, who = site.publish(**WORDS), site.publish(**WHO)
    run_plan(context, site, done, 2000)
    send_crowd(context, site, who, crowd(500))
    checker = Checker(page, site)
    checker.open(f"/c/{sets}", "text=item 03", ".set")
    page.click("text=Show me what will be sent")
    page.wait_for_selector("#report")
    checker.check("a report on a set")
    checker.open(f"/c/{words}", "form")
    checker.open(f"/c/{sets}/privacy", "table")
    sign_in(page, site)
    checker.open(f"/dashboard/collections/{sets}", ".rounds li")
    checker.open(f"/dashboard/collections/{done}", ".network")
    checker.open(f"/dashboard/collections/{who}", ".heat .cell")
    checker.open("/dashboard/tools?n=4&mechanism=gm", "text=Table of these", ".numbers")
    page.goto(f"{site.url}/dashboard/new")
    for kind in ("text", "items", "pair"):
        page.get_by_label("Answer", exact=True).first.select_option(kind)
        checker.check(kind)
