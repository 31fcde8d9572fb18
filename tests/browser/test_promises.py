"""What pages promise: the odds at the epsilon there is, tables that can be read, and errors that are said."""

from fractions import Fraction
from math import exp
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.habits import COLUMNS, HABITS
from tests.browser.site import sign_in
from tests.browser.test_pages import COMMUTE, EVERY_KIND, answer, send_reports

from tacit.dashboard.privacy import Chance, chances, surest
from tacit.oracles.grr import GRR

EPSILONS = ["1", "4"]
WIDTHS = [320, 768, 1280]


def clipped(page: Any) -> list[str]:
    """Cells of tables that reach beyond the window or the box they are in, or whose text does not fit."""
    return page.evaluate(
        """() => [...document.querySelectorAll("td, th")].filter((cell) => {
            const { left, right } = cell.getBoundingClientRect();
            let [low, high] = [0, document.documentElement.clientWidth];
            for (let box = cell.parentElement; box; box = box.parentElement) {
                if (getComputedStyle(box).overflowX === "visible") continue;
                const edge = box.getBoundingClientRect();
                [low, high] = [Math.max(low, edge.left), Math.min(high, edge.right)];
            }
            return left < low - 1 || right > high + 1 || cell.scrollWidth > cell.clientWidth + 1;
        }).map((cell) => cell.textContent.trim().slice(0, 60))"""
    )


@pytest.mark.slow
def test_every_cell_of_the_privacy_page_can_be_read(page: Any, site: Any) -> None:
    rowed = HABITS | {"rows": {"table": "people", "columns": COLUMNS}, "questions": HABITS["questions"][:2]}
    drafts = [COMMUTE, EVERY_KIND, HABITS, {k: v for k, v in rowed.items() if k not in ("policy", "k")}]
    for draft in drafts:
        page.goto(f"{site.url}/c/{site.publish(**draft)}/privacy")
        assert page.locator("td").count() >= 4
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert clipped(page) == [], width
            assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow_cases("4")
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_all_pages_state_the_same_odds_and_none_denies_them(page: Any, site: Any, epsilon: str) -> None:
    odds = surest(Fraction(exp(float(epsilon))))
    draft = COMMUTE | {"epsilon": epsilon}
    page.goto(f"{site.url}/c/{site.publish(**draft)}")
    page.click(".promise summary")
    promised = page.inner_text(".promise")
    answer(page, "Tram")
    said = page.inner_text(".review")
    page.goto(f"{page.url}/privacy")
    words = (promised, said, page.inner_text("main"))
    assert all(f"at most {odds} %" in text.replace("\xa0", " ") for text in words)
    assert all(("only weakly" in " ".join(text.split())) == (float(epsilon) > 3) for text in words)
    assert not any("nothing about you" in text or "not in it" in text for text in words)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{site.draft(**draft)}")
    expect(page.locator("output.hint")).to_contain_text(f"at most {odds} %")


def test_the_odds_at_epsilon_4_are_98_per_cent() -> None:
    assert surest(Fraction(exp(4))) == "98.3"  # 98.2014 %, rounded up: "at most" has to be true.
    assert surest(Fraction(1)) == "50.0"
    assert surest(Fraction(exp(32))) == "99.999999999999"


def figures(epsilon: str, size: int) -> list[str]:
    return [one.decimal for one in chances(GRR(size=size, epsilon=epsilon))]


def test_no_probability_is_rounded_to_nothing_or_to_certainty() -> None:
    assert figures("1", 3) == ["0.576117", "0.211942"]
    assert figures("16", 3) == ["0.99999977", "0.00000011"]
    assert figures("32", 3) == ["more than 0.999999999999", "less than 0.000000000001"]
    assert figures("0.001", 2) == ["0.500250", "0.499750"]
    assert {one.decimal for one in chances(GRR(size=2**16, epsilon="0.001"))} == {"0.000015274", "0.000015259"}
    assert Chance("never", Fraction(0)).decimal == "0.000000"


def test_the_link_to_the_privacy_page_says_that_it_is_in_english(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/c/{site.publish(**COMMUTE)}")
    page.click(".promise summary")
    assert "in English" not in page.inner_text(".promise")
    page.click("text=Deutsch")
    page.click(".promise summary")
    page.wait_for_selector("a[hreflang=en]:has-text('(auf Englisch)')")


def test_both_languages_compute_the_same_odds(page: Any) -> None:
    ratios = [exp(tenth / 10) for tenth in range(1, 321, 3)]
    shown = page.evaluate(
        """async (ratios) => {
            const { plain, surest } = await import("/static/page/odds.js");
            return ratios.map((ratio) => plain(surest(ratio)));
        }""",
        ratios,
    )
    assert shown == [surest(Fraction(ratio)) for ratio in ratios]


def test_pages_that_do_not_exist_are_pages_for_people_and_problems_for_programs(context: Any, site: Any) -> None:
    get = context.request.get
    for path in ("/dashboard/nowhere", "/dashboard/collections/", "/dashboard/a/b", "/c/x/y"):
        shown = get(site.url + path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert shown.status == 404 and "text/html" in shown.headers["content-type"]
        assert "<h1>There is nothing here</h1>" in shown.text()
        plain = get(site.url + path, headers={"Accept": "application/json"})
        assert plain.status == 404 and plain.json()["type"].endswith("not_found")
    assert get(f"{site.url}/dashboard/", max_redirects=0).headers["location"] == "/dashboard"


def test_downloads_are_named_after_what_they_are_of(page: Any, context: Any, site: Any) -> None:
    titled = COMMUTE | {"title": {"en": "Zur Arbeit: \"täglich\"; ../"}, "about": {"en": "?"}, "questions": [
        COMMUTE["questions"][0] | {"text": {"en": "How?"}}]}  # fmt: skip
    collection = site.publish(**titled)
    send_reports(context, site, collection, 50)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector("canvas")
    for name in ("JSON", "CSV", "Parquet"):
        with page.expect_download() as saved:
            page.click(f"a.button:text-is('{name}')")
        assert saved.value.suggested_filename == f"zur-arbeit-taglich-answers-{collection[:8]}.{name.lower()}"


def test_a_ranking_is_in_the_order_of_the_shares_it_shows(page: Any) -> None:
    page.add_script_tag(url="/static/vendor/chart.js")
    shown = page.evaluate(
        """async () => {
            const { RankedCard } = await import("/static/cards/ranked.js");
            const question = { name: "q", text: "?", task: "items", rows: [], n: 9 };
            const card = new RankedCard(question, { kind: "items" }, async () => ({}));
            document.body.append(card.element);
            const row = (value, estimate, noise) =>
                ({ value, noise, raw: { estimate, standard_error: 0.01, low: estimate, high: estimate } });
            const rows = [row("b", 0.2, 0), row("a", 0.3, 0), row("d", 0.01, 0.9), row("c", 0.05, 0.5)];
            card.update({ ...question, rows }, 0.95);
            const cells = (line) => [...line.cells].slice(0, 2).map((cell) => cell.textContent).join(" ");
            return [...card.element.querySelectorAll("tbody tr")].map(cells);
        }"""
    )
    assert shown == ["1 a", "2 b", "3 c", "4 d"]


def test_an_answer_that_cannot_be_reported_is_explained_and_words_of_unknown_errors_are_not_repeated(
    page: Any, site: Any
) -> None:
    collection = site.publish(**COMMUTE)
    page.goto(f"{site.url}/c/{collection}")
    page.wait_for_selector("form")
    page.evaluate(
        """async () => {
            const { InvalidValue, Respondent } = await import("/js/tacit.js");
            const { Participation } = await import("/static/survey/respond.js");
            Participation.prototype.draw = () => { throw new InvalidValue("grr: the value must be an integer"); };
        }"""
    )
    page.get_by_label("Tram", exact=True).check()
    page.click("text=Show me what will be sent")
    alert = page.locator("[role=alert]").filter(visible=True)
    expect(alert).to_contain_text("No report could be made of this answer")
    expect(alert).to_contain_text("grr: the value must be an integer")
    page.evaluate(
        """async () => {
            const { Participation } = await import("/static/survey/respond.js");
            Participation.prototype.draw = () => { throw new RangeError("the secret is Tram"); };
        }"""
    )
    page.click("text=Show me what will be sent")
    expect(alert).to_contain_text("RangeError")
    expect(alert).not_to_contain_text("secret")
    expect(page.locator("form")).to_have_count(1)
    assert page.evaluate("localStorage.length") == 0 and site.reports(collection) == 0


def test_a_page_that_breaks_says_so(page: Any, site: Any) -> None:
    page.expected = ["TypeError", "broken on purpose"]
    page.route("**/static/survey/describe.js", lambda route: route.fulfill(
        body="export function describe() { throw new TypeError('broken on purpose'); }",
        content_type="text/javascript"))  # fmt: skip
    page.goto(f"{site.url}/c/{site.publish(**COMMUTE)}")
    page.get_by_label("Tram", exact=True).check()
    page.click("text=Show me what will be sent")
    page.wait_for_selector("#broken")
    assert "Something on this page does not work" in page.inner_text("#broken")
