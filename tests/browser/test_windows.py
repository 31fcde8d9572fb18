"""Collections that ask again and again in a real browser: the trend, what is said, and two tabs that draw once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from playwright.sync_api import expect
from tests.browser.access import Checker
from tests.browser.site import Site, sign_in, wait_until

from tacit.collector.ports import STORED, NewBatch, window_id
from tacit.simulate.coins import SimulationCoins

LABELS = ["often", "sometimes", "never"]


def drafted(days_ago: int, **windows: Any) -> dict[str, Any]:
    first = (datetime.now(UTC) - timedelta(days=days_ago)).date().isoformat()
    return {
        "title": "Habits, day by day",
        "epsilon": "4",
        "minimum_cohort": 50,
        "questions": [{"name": "habit", "text": "How often?", "domain": {"kind": "categories", "labels": LABELS}}],
        "windows": {"every": "day", "first": first, "count": 40, "per": 7, "late": 2} | windows,
    }


def fill(site: Site, collection: str, days: int) -> None:
    """Reports of so many windows, straight into the store: their time is over."""
    mechanism: Any = site.collector.find(collection).mechanism
    for day in range(days):
        held = [800, 100, 100] if day < 12 else [500, 400, 100]
        reports = mechanism.privatize(np.repeat(np.arange(3), held), SimulationCoins(day))
        batch = NewBatch(window_id(collection, day), bytes(12) + day.to_bytes(4, "big"), reports.tobytes(), 1000, {})
        assert site.collector.store.add_batches([batch]) == [STORED]


def test_the_trend_shows_windows_a_change_and_what_is_provisional(page: Any, site: Site) -> None:
    collection = site.publish(**drafted(19))
    fill(site, collection, 20)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    trend = page.locator("section", has=page.locator("#trend-title"))
    expect(trend.get_by_text("changed on").first).to_be_visible()
    changed = (datetime.now(UTC) - timedelta(days=7)).date().isoformat()
    assert changed in trend.inner_text()
    expect(trend.get_by_text("Hollow dots are provisional")).to_be_visible()
    expect(trend.get_by_text("any 7 days in a row")).to_be_visible()
    trend.get_by_label("beside").select_option("sometimes")
    trend.get_by_label("smoothed").check()
    trend.get_by_text("Windows as a table").click()
    expect(trend.locator("tbody tr")).to_have_count(20)
    expect(trend.locator("tbody tr").first.locator("td")).to_have_count(4)
    trend.get_by_label("By").select_option("week")
    wait_until(page, lambda: trend.locator("tbody tr").count() < 6)
    Checker(page, site).check("windows")


def test_the_survey_page_says_that_an_application_answers_and_what_is_kept(page: Any, site: Site) -> None:
    collection = site.publish(**drafted(0))
    page.goto(f"{site.url}/c/{collection}")
    expect(page.get_by_text("asks the same question again and again")).to_be_visible()
    expect(page.get_by_text("any 7 days in a row")).to_be_visible()
    page.goto(f"{site.url}/c/{collection}/privacy")
    expect(page.get_by_role("heading", name="Again and again")).to_be_visible()
    expect(page.get_by_text("after the last day of its window")).to_be_visible()
    Checker(page, site).check("windows")


TICKS = """async ([address, day]) => {
  const { Respondent } = await import("/js/tacit.js");
  const old = new Respondent({ now: () => Date.now() - day });
  await (await old.join(address)).view();
  const tab = await new Respondent().join(address);
  const [first, second] = await Promise.all([tab.tick("never"), tab.tick("often")]);
  return [first, second, await tab.view()];
}"""


def test_two_tabs_draw_once_under_a_lock_and_after_a_reload(page: Any, site: Site) -> None:
    collection = site.publish(**drafted(0, per=1), account={"run": 1})
    address = f"{site.url}/c/{collection}"
    other = page.context.new_page()
    try:
        other.goto(page.url)
        first = page.evaluate(TICKS, [address, 86_400_000])
        again = other.evaluate(TICKS, [address, 86_400_000])
        page.reload()
        later = page.evaluate(TICKS, [address, 86_400_000])
    finally:
        other.close()
    assert {tick["state"] for tick in (*first[:2], *again[:2], *later[:2])} <= {"sent", "pending"}
    assert [view["spent"] for view in (first[2], again[2], later[2])] == ["4", "4", "4"]
    (window,) = [one for one in site.collector.store.windows(collection) if one.reports]
    assert (window.window, window.reports) == (0, 1)
