"""Files from the pages, and what a page says while the collector computes, in a real browser."""

import csv
import json
from io import BytesIO
from typing import Any

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect
from tests.browser.site import Site, sign_in, wait_until
from tests.browser.test_pages import COMMUTE, send_reports
from tests.browser.test_windows import drafted, fill

LABELS = ["Foot", "Bicycle", "Tram", "Car", "Another way"]


@pytest.fixture
def answered(page: Any, context: Any, site: Site) -> str:
    """The page of a collection with answers."""
    collection = site.publish(**COMMUTE)
    send_reports(context, site, collection, 50)
    sign_in(page, site)
    return f"{site.url}/dashboard/collections/{collection}"


def saved(page: Any, name: str) -> bytes:
    """What a link of the export saves; the page says the name of the file."""
    with page.expect_download() as download:
        page.click(f"a.button:text-is('{name}')")
    page.wait_for_selector(f"text=Saved as {download.value.suggested_filename}.")
    return download.value.path().read_bytes()


@pytest.mark.slow
def test_every_export_holds_the_same_answers(page: Any, answered: str) -> None:
    page.goto(answered)
    page.wait_for_selector("canvas")
    told = json.loads(saved(page, "JSON"))["questions"][0]["rows"]
    rows = list(csv.DictReader(saved(page, "CSV").decode().splitlines()))
    table = pq.read_table(BytesIO(saved(page, "Parquet"))).to_pylist()
    assert [row["value"] for row in told] == LABELS
    for one in (rows, table):
        assert [row["value"] for row in one] == LABELS
        for name, cell in (("", "raw"), ("consistent_", "consistent")):
            exact = [row[cell]["estimate"] for row in told]
            assert [float(row[f"{name}estimate"]) for row in one] == pytest.approx(exact, abs=1e-12)


@pytest.mark.slow
def test_the_series_is_saved_as_it_is_shown(page: Any, site: Site) -> None:
    collection = site.publish(**drafted(19))
    fill(site, collection, 20)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    trend = page.locator("section", has=page.locator("#trend-title"))
    trend.get_by_text("Windows as a table").click()
    expect(trend.locator("tbody tr")).to_have_count(20)
    days = {row["first_day"] for row in csv.DictReader(saved(page, "CSV").decode().splitlines())}
    trend.get_by_label("By").select_option("week")
    wait_until(page, lambda: trend.locator("tbody tr").count() < 6)
    weeks = {row["first_day"] for row in csv.DictReader(saved(page, "CSV").decode().splitlines())}
    assert len(days) == 20 and len(weeks) == trend.locator("tbody tr").count()


def test_a_file_that_takes_a_while_or_does_not_come_is_told(page: Any, answered: str) -> None:
    page.expected = ["503"]
    held: list[Any] = []
    page.goto(answered)
    page.wait_for_selector("canvas")
    page.route("**/answers.csv*", lambda route: held.append(route))
    page.click("a.button:text-is('CSV')")
    page.wait_for_selector("text=Computing the file…")
    wait_until(page, lambda: bool(held))
    problem = json.dumps({"detail": "The collector is busy; ask again in 3 seconds."})
    held[0].fulfill(status=503, body=problem, content_type="application/problem+json")
    page.wait_for_selector("text=The collector is busy; ask again in 3 seconds.")
    page.unroute("**/answers.csv*")
    assert saved(page, "CSV").count(b"\n") == 1 + len(LABELS)


def test_the_page_says_that_answers_are_being_computed(page: Any, answered: str) -> None:
    held: list[Any] = []
    page.route("**/answers?*", lambda route: held.append(route))
    page.goto(answered)
    expect(page.locator("#working")).to_have_text("Computing the answers from 50 reports…")
    expect(page.locator("#answers")).to_have_attribute("aria-busy", "true")
    expect(page.locator(".skeleton")).to_be_visible()
    wait_until(page, lambda: bool(held))
    held[0].continue_()
    page.wait_for_selector("canvas")
    expect(page.locator("#working")).to_be_hidden()
    expect(page.locator("#answers")).to_have_attribute("aria-busy", "false")
    expect(page.locator(".skeleton")).to_have_count(0)


@pytest.mark.slow
def test_answers_that_were_refused_are_asked_for_again(page: Any, answered: str) -> None:
    page.expected = ["503"]
    asked: list[Any] = []

    def busy_once(route: Any) -> None:
        asked.append(route)
        if len(asked) > 1:
            return route.continue_()
        return route.fulfill(status=503, body='{"detail": "busy"}', content_type="application/problem+json")

    page.route("**/answers?*", busy_once)
    page.goto(answered)
    page.wait_for_selector("canvas")
    assert len(asked) == 2
