"""Collections that ask again and again in a real browser: the trend, what is said, and two tabs that draw once."""

from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from starlette.routing import Route
from tests.browser.access import Checker
from tests.browser.conftest import REST_PATH, empty_page
from tests.browser.site import Site, posts, sign_in, wait_until
from tests.service.memory import MemoryStore

from tacit.collector.http.app import App
from tacit.collector.ports import STORED, NewBatch, window_id
from tacit.collector.server import running
from tacit.collector.service import Collector
from tacit.dashboard import routes
from tacit.hosting.clock import Clock
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
    expect(trend.get_by_label("Beside")).to_have_value("")
    trend.get_by_label("Beside").select_option("sometimes")
    trend.get_by_label("smoothed").check()
    expect(trend.get_by_text("Dots are the raw windows")).to_be_visible()
    trend.get_by_text("Windows as a table").click()
    expect(trend.locator("tbody tr")).to_have_count(20)
    expect(trend.locator("tbody tr").first.locator("td")).to_have_count(4)
    trend.get_by_label("Differences to the row before").check()
    expect(trend.get_by_text("one by one, not all together")).to_be_visible()
    expect(trend.locator("tbody tr").first.locator("td")).to_have_count(6)
    assert "—" in trend.locator("tbody tr").first.inner_text()
    assert "points (from" in trend.locator("tbody tr").nth(1).inner_text()
    trend.get_by_label("Differences to the row before").uncheck()
    expect(trend.locator("tbody tr").first.locator("td")).to_have_count(4)
    zoom_in_and_out(page, trend, changed)
    trend.get_by_label("By").select_option("week")
    wait_until(page, lambda: trend.locator("tbody tr").count() < 6)
    Checker(page, site).check("windows")


def zoom_in_and_out(page: Any, trend: Any, day: str) -> None:
    """By a date, and by dragging over the middle half of the picture; the button shows everything again."""
    trend.get_by_label("From").fill(day)
    expect(trend.locator("tbody tr")).to_have_count(8)
    trend.get_by_role("button", name="Whole series").click()
    expect(trend.locator("tbody tr")).to_have_count(20)
    trend.locator("canvas").scroll_into_view_if_needed()
    box = trend.locator("canvas").bounding_box()
    across = [box["x"] + share * box["width"] for share in (0.25, 0.75)]
    page.mouse.move(across[0], box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(across[1], box["y"] + box["height"] / 2)
    page.mouse.up()
    wait_until(page, lambda: 8 <= trend.locator("tbody tr").count() <= 12)
    trend.get_by_role("button", name="Whole series").click()
    expect(trend.get_by_label("From")).to_have_value("")


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
    shows_what_was_spent(page, site, collection)


def shows_what_was_spent(page: Any, site: Site, collection: str) -> None:
    """On the page of the collection the account with its next slot, in the ledger of any survey the account."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    page.goto(f"{site.url}/c/{collection}")
    spent = page.locator("#account")
    expect(spent.get_by_text("ε = 4 of 4")).to_be_visible()
    expect(spent.get_by_text("ε = 4, without a cap")).to_be_visible()
    expect(spent.get_by_text(f"from {tomorrow} on")).to_be_visible()
    Checker(page, site).check("account")
    once = site.publish(**{name: value for name, value in drafted(0).items() if name != "windows"})
    page.goto(f"{site.url}/c/{once}")
    page.get_by_text("What this device has spent so far").click()
    ledger = page.locator(".ledger")
    expect(ledger.get_by_text("default")).to_be_visible()
    expect(ledger.get_by_text("ε = 4 of 4")).to_be_visible()
    expect(ledger.locator(f"a[href$='{collection}']")).to_be_visible()
    Checker(page, site).check("accounts")


FIRST = datetime(2030, 1, 7, 12, tzinfo=UTC)
DAY = 86_400_000


class Days:
    """A collector and the clocks of its tabs, on a day that the test sets."""

    def __init__(self) -> None:
        self.day = 0
        self.collector = Collector(MemoryStore(), clock=Clock(
            day=lambda: self.when.date().toordinal() - datetime(1970, 1, 1).date().toordinal(),
            seconds=lambda: 0.0, now=lambda: self.when.timestamp(),
        ))  # fmt: skip

    @property
    def when(self) -> datetime:
        return FIRST + timedelta(days=self.day)


OPEN = """async ([address, now]) => {
  const { Respondent } = await import("/js/tacit.js");
  globalThis.today = now;
  globalThis.joined = await new Respondent({ now: () => globalThis.today }).join(address);
  await globalThis.joined.view();
}"""
TICK = """async ([now, value]) => {
  globalThis.today = now;
  return globalThis.joined.tick(value);
}"""
CLEAR = "() => new Promise((done) => (indexedDB.deleteDatabase('tacit-windows').onsuccess = done))"


@pytest.mark.slow
def test_two_tabs_a_reload_and_a_cleared_store_never_report_twice_in_a_run(context: Any) -> None:
    """Over sixty days one request leaves the browser per report, all of one size, whatever the answers are (AL-6)."""
    world, sent, days = Days(), list[Any](), 60
    routed = [Route(REST_PATH, empty_page), *routes(world.collector)]
    with running(App(world.collector, None, routed)) as served:
        site = Site(served.url, "", world.collector, count(1000))
        asking = {"every": "day", "first": "2030-01-07", "count": 60, "per": 7, "late": 2}
        collection = site.publish(**drafted(0) | {"windows": asking})
        tabs = [context.new_page(), context.new_page()]
        try:
            ticks = [lived(tabs, world, sent, f"{served.url}/c/{collection}", day, days) for day in range(days)]
        finally:
            for tab in tabs:
                tab.close()
        stored = [one.window for one in world.collector.store.windows(collection) for _ in range(one.reports)]
    drawn = [tick["window"] for pair in ticks for tick in pair if tick["state"] == "sent"]
    assert sorted(set(drawn)) == stored and len(stored) >= days // 7 - 2
    assert all(after - before >= 7 for before, after in pairwise(stored))
    assert len(sent) == len(stored)
    assert len({len(request.post_data_buffer) for request in sent}) == 1
    reasons = {tick["reason"] for pair in ticks for tick in pair if tick["state"] == "skipped"}
    assert {"not_my_slot", "cold"} <= reasons


def lived(tabs: list[Any], world: Days, sent: list[Any], address: str, day: int, days: int) -> list[Any]:
    """One day of two tabs: opened on the first, reloaded after a third, without a store after half of all days."""
    now, third, half = int(FIRST.timestamp() * 1000) + day * DAY, days // 3, days // 2
    world.day = day
    if day in (0, third):
        for tab in tabs:
            if day == 0:
                tab.on("requestfinished", lambda request: sent.extend(posts([request])))
            tab.goto(address.replace(address[address.index("/c/") :], REST_PATH))
            # The ledger is older than the calendar: it was made the day before the first one.
            tab.evaluate(OPEN, [address, now - DAY if day == 0 else now])
    if day == half:
        tabs[0].evaluate(CLEAR)
    return [tab.evaluate(TICK, [now, LABELS[(day + i) % 3]]) for i, tab in enumerate(tabs)]
