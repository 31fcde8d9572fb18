"""The page for SQL in a real browser: written, completed, run, explained and refused at the place."""

import re
from collections.abc import Generator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from tests.browser.access import Checker
from tests.browser.conftest import serving_site
from tests.browser.site import sign_in, wait_until
from tests.service.rows import PEOPLE, crowd, send_crowd
from tests.service.waiting import PATIENT_SECONDS

GROUPED = "SELECT os, COUNT(*), AVG(hours) FROM people WHERE age < 40 GROUP BY os"
REFUSED = "422 (Unprocessable"


@pytest.fixture(scope="module")
def site() -> Generator[Any]:
    """A collector with one table: the page opens with the first one, which must be this."""
    with serving_site() as made:
        yield made


@pytest.fixture(scope="module")
def table(site: Any) -> str:
    """A collection with rows of two thousand people, which no test adds to."""
    collection = site.publish(**PEOPLE)
    with httpx.Client(base_url=site.url, timeout=PATIENT_SECONDS) as http:
        send_crowd(http, collection, crowd(2000))
    return collection


def opened(page: Any, site: Any) -> None:
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/query")
    page.wait_for_selector("#sql")


def written(page: Any) -> str:
    return re.sub(r"\s+", " ", page.input_value("#sql"))


def ask(context: Any, site: Any, collection: str, sql: str) -> Any:
    reply = context.request.post(
        f"{site.url}/api/v1/collections/{collection}/query",
        data={"sql": sql},
        headers={"Authorization": f"Bearer {site.token}"},
    )
    assert reply.status == 200, reply.text()
    return reply.json()


def test_a_query_is_run_shown_as_table_and_chart_and_saved_as_csv(
    page: Any, context: Any, site: Any, table: str
) -> None:
    opened(page, site)
    page.fill("#sql", GROUPED)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#results table")
    told = ask(context, site, table, GROUPED)["rows"]
    shown = page.locator("#results tbody tr").all_inner_texts()
    assert len(shown) == len(told) and shown[-1].startswith("missing")
    for line, (_, count, mean) in zip(shown, told, strict=True):
        cells = re.findall(r"(-?[\d,]+(?:\.\d+)?) ± ([\d,]+(?:\.\d+)?)|(lost in noise|too few rows)", line)
        for (estimate, half, lost), cell in zip(cells, (count, mean), strict=True):
            assert bool(lost) == (cell["estimate"] is None)
            if not lost:
                rounding = 0.51 * 10.0 ** -len(half.partition(".")[2])
                assert float(estimate.replace(",", "")) == pytest.approx(cell["estimate"], abs=rounding)
                assert float(half.replace(",", "")) == pytest.approx((cell["high"] - cell["low"]) / 2, abs=rounding)
    drawn = "Chart.getChart(document.querySelector('#results canvas')).data"
    assert page.evaluate(f"{drawn}.datasets[0].data") == pytest.approx([row[1]["estimate"] for row in told])
    page.click("#results button:text-is('avg')")
    known = [row[2]["estimate"] for row in told if row[2]["estimate"] is not None]
    assert page.evaluate(f"{drawn}.datasets[0].data") == pytest.approx(known)
    assert "holds the true number in 95 of 100 cases" in page.inner_text("#results")
    with page.expect_download() as saved:
        page.click("button:has-text('Download CSV')")
    assert saved.value.suggested_filename.startswith("people-select-")
    text = saved.value.path().read_text()
    assert text.startswith("os,count,count_standard_error,") and text.count("\n") == 5
    page.select_option("#level", "0.99")
    page.click("button:has-text('Run')")
    page.wait_for_selector("text=in 99 of 100 cases")


@pytest.mark.slow
def test_groups_in_an_order_are_charted_in_it(page: Any, site: Any, table: str) -> None:
    del table
    opened(page, site)
    page.fill("#sql", "SELECT age AS years, COUNT(*) FROM people GROUP BY age")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#results canvas")
    drawn = "Chart.getChart(document.querySelector('#results canvas')).data"
    labels = [int(label) for (label,) in page.evaluate(f"{drawn}.labels")]
    assert len(labels) > 24 and labels == sorted(labels)


def test_only_categories_are_charted_by_size(page: Any) -> None:
    chosen = """async (ordered) => {
        const { chosenBars } = await import("/static/page/chart.js");
        const rows = Array.from({ length: 200 }, (_, value) => ({ value, estimate: value }));
        const { shown, note } = chosenBars(rows, ordered);
        return [shown.map(({ value }) => value), note];
    }"""
    ending = "of 200 answers; the table has all of them."
    assert page.evaluate(chosen, False) == [list(range(199, 175, -1)), f"The 24 largest {ending}"]
    assert page.evaluate(chosen, True) == [list(range(120)), f"The first 120 {ending}"]


def test_a_slow_query_is_seen_to_run(page: Any, site: Any, table: str) -> None:
    opened(page, site)
    held: list[Any] = []
    page.route(f"**/collections/{table}/query", lambda route: held.append(route))
    page.click("button:has-text('Run')")
    page.wait_for_selector("#running:has-text('Running…')")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "true")
    wait_until(page, lambda: len(held) == 1)
    held[0].continue_()
    page.wait_for_selector("#results table")
    expect(page.locator("#running")).to_have_text("")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")


@pytest.mark.slow
def test_words_and_labels_are_completed_by_keyboard_and_by_mouse(page: Any, site: Any, table: str) -> None:
    del table
    opened(page, site)
    page.fill("#sql", "")
    page.click("#sql")
    page.keyboard.type("sel")
    page.wait_for_selector("[role=option][aria-selected=true]:has-text('SELECT')")
    assert page.get_attribute("#sql", "aria-activedescendant") == "sql-list-0"
    page.keyboard.press("Tab")
    page.keyboard.type("cou")
    page.keyboard.press("Enter")
    page.keyboard.type(" FROM ")
    page.keyboard.press("Control+Space")
    page.keyboard.press("Enter")
    page.keyboard.type(" WHERE sta")
    page.click("[role=option]:has-text('private')")
    page.keyboard.type(" = ")
    page.wait_for_selector("[role=option]:has-text('WA')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.type(" AND h")
    page.wait_for_selector("[role=option]:has-text('hours')")
    page.keyboard.press("Escape")
    expect(page.locator("#sql-list")).to_be_hidden()
    assert written(page) == "SELECT COUNT(*) FROM people WHERE state = 'WA' AND h"
    page.keyboard.press("Control+z")  # What was put in can be taken back.
    wait_until(page, lambda: written(page) != "SELECT COUNT(*) FROM people WHERE state = 'WA' AND h")
    page.keyboard.press("Tab")  # With the list closed, the key leaves the editor.
    expect(page.locator("#sql")).not_to_be_focused()
    complete_labels(page)


def complete_labels(page: Any) -> None:
    """Inside of quotes, and in a list."""
    page.fill("#sql", "")
    page.click("#sql")
    page.keyboard.type("SELECT COUNT(*) FROM people WHERE state IN ('n")
    page.wait_for_selector("[role=option]:has-text('NY')")
    page.keyboard.press("Enter")
    page.keyboard.type(", ")
    page.wait_for_selector("[role=option]:has-text('CA')")
    page.keyboard.press("Enter")
    page.keyboard.type(")")
    assert written(page).endswith("state IN ('NY', 'CA')")


def test_mistakes_are_shown_at_their_place(page: Any, site: Any, table: str) -> None:
    del table
    page.expected = [REFUSED]
    opened(page, site)
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE aeg < 3")
    page.click("button:has-text('Run')")
    page.wait_for_selector("#sql-problem:has-text('did you mean age?')")
    expect(page.locator(".sql-wrong")).to_have_text("aeg")
    expect(page.locator("#sql")).to_have_attribute("aria-invalid", "true")
    page.click("button:has-text('Explain')")  # The word before the query does not move the place.
    page.wait_for_selector("#sql-problem:has-text('did you mean age?')")
    expect(page.locator(".sql-wrong")).to_have_text("aeg")
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE age < 3")
    expect(page.locator("#sql-problem")).to_be_hidden()
    expect(page.locator(".sql-wrong")).to_have_count(0)
    page.fill("#sql", " ")
    page.click("button:has-text('Run')")
    page.wait_for_selector("#sql-problem:has-text('Write a query first')")


def test_the_plan_is_shown_without_an_answer(page: Any, context: Any, site: Any, table: str) -> None:
    opened(page, site)
    page.fill("#sql", GROUPED)
    page.click("button:has-text('Explain')")
    page.wait_for_selector("text=no report was looked at")
    steps = ask(context, site, table, f"EXPLAIN {GROUPED}")["plan"]
    rows = page.locator("#results tbody tr").all_inner_texts()
    assert len(rows) == len(steps) and "about" in rows[0] and f"{steps[0]['rows']:,}" in rows[0]
    assert page.inner_text("#results .pill") == steps[0]["mechanism"]


def test_columns_examples_and_history_fill_the_editor(page: Any, site: Any, table: str) -> None:
    opened(page, site)
    expect(page.locator("#rows")).to_have_text("2,000 rows.")
    private = page.locator(".columns li:has(.pill:has-text('private'))").all_inner_texts()
    assert [text.split()[0] for text in private] == ["age", "state"] and "CA, NY, WA" in private[1]
    page.click("text=By a private column")
    assert written(page) == "SELECT state, COUNT(*) FROM people GROUP BY state ORDER BY 2 DESC"
    page.click("button:has-text('Run')")
    page.wait_for_selector(".queries code:has-text('ORDER BY 2 DESC')")
    page.fill("#sql", "SELECT AVG(")
    page.keyboard.press("End")
    page.click(".columns button:has-text('hours')")
    assert page.input_value("#sql") == "SELECT AVG(hours"
    page.goto(f"{site.url}/dashboard/query?collection={table}")
    page.wait_for_selector("#history code:has-text('GROUP BY state')")
    assert written(page) == "SELECT state, COUNT(*) FROM people GROUP BY state ORDER BY 2 DESC"
    page.click("text=Forget them")
    page.wait_for_selector("text=They stay in this browser")


def test_every_example_is_answered(page: Any, site: Any, table: str) -> None:
    del table
    opened(page, site)
    names = page.locator("[aria-labelledby=examples-title] .use").all_inner_texts()
    assert len(names) >= 4
    for name in names:
        page.click(f".use:has-text('{name}')")
        with page.expect_response(lambda reply: reply.url.endswith("/query")) as reply:
            page.click("button:has-text('Run')")
        assert reply.value.status == 200, name


def test_an_old_answer_does_not_stay_under_a_new_error(page: Any, site: Any, table: str) -> None:
    del table
    page.expected = [REFUSED]
    opened(page, site)
    page.fill("#sql", GROUPED)
    page.click("button:has-text('Run')")
    page.wait_for_selector("#results table")
    page.fill("#sql", "SELECT nothing FROM people")
    page.click("button:has-text('Run')")
    page.wait_for_selector("#sql-problem:visible")
    expect(page.locator("#results > *")).to_have_count(0)
    page.fill("#sql", GROUPED)
    page.click("button:has-text('Run')")
    page.wait_for_selector("#results table")
    page.fill("#sql", " ")
    page.click("button:has-text('Explain')")
    page.wait_for_selector("#sql-problem:visible")
    expect(page.locator("#results > *")).to_have_count(0)


def test_a_share_link_may_ask_too(page: Any, site: Any, table: str) -> None:
    token = site.collector.access.create("reader", collection=table)[0]
    page.goto(f"{site.url}/dashboard/query?collection={table}&share={token}")
    page.wait_for_selector("#sql")
    page.click("button:has-text('Run')")
    page.wait_for_selector("#results table")


def test_without_tables_the_page_says_so_and_strangers_sign_in(page: Any, fresh_site: Any) -> None:
    site = fresh_site
    page.goto(f"{site.url}/dashboard/query")
    assert "/login" in page.url
    opened_page = f"{site.url}/dashboard/query"
    sign_in(page, site)
    page.goto(opened_page)
    page.wait_for_selector("text=No tables yet")


@pytest.mark.slow
def test_the_page_is_accessible_and_fits(page: Any, site: Any, table: str) -> None:
    del table
    checker = Checker(page, site)
    page.expected = [REFUSED]

    def check(selector: str) -> None:
        page.wait_for_selector(selector)
        checker.check(selector)

    opened(page, site)
    page.fill("#sql", GROUPED)
    page.click("button:has-text('Run')")
    check("#results canvas")
    # The list opens at the caret and stays there until the next key, so it has to be opened in the narrow window.
    page.set_viewport_size({"width": 390, "height": 850})
    page.fill("#sql", "SELECT COUNT(*) FROM people WHERE state = ")
    page.keyboard.press("End")
    page.keyboard.press("Control+Space")
    check("[role=option]")
    page.keyboard.press("Escape")
    page.click("button:has-text('Run')")
    check("#sql-problem:visible")
    page.fill("#sql", GROUPED)
    page.click("button:has-text('Explain')")
    check("text=no report was looked at")
