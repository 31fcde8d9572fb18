"""Sets and adaptive plans in a real browser: what leaves it is a noisy report, and rounds lead to an answer."""

from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.crowds import BASKET, BASKETS, ITEMS, baskets, run_plan, send_crowd
from tests.browser.site import look_again, posts, sent_batch, sign_in

from tacit.catalog import CATALOG
from tacit.collector.collections.active import read_document
from tacit.oracles.blocks import CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE, RUE, SUE, THE


def test_a_set_leaves_the_browser_as_a_noisy_report(page: Any, asked: list[Any], site: Any) -> None:
    collection = site.publish(**BASKETS)
    page.goto(f"{site.url}/c/{collection}")
    page.wait_for_selector("text=Tick everything that applies, at most 4")
    for label in ITEMS[:5]:
        page.get_by_label(label).check()
    page.click("text=Show me what will be sent")
    page.wait_for_selector(".error:has-text('5 ticked, at most 4 are possible')")
    page.get_by_role("searchbox").fill("item 2")
    # Four are found, and five are ticked.
    expect(page.locator(".set input[type=checkbox]").filter(visible=True)).to_have_count(9)
    page.get_by_label(ITEMS[0]).uncheck()
    page.click("text=Show me what will be sent")
    shown = page.inner_text("#report").replace(" ", "")
    assert posts(asked) == [] and site.reports(collection) == 0
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    (entry,) = sent_batch(site, collection, posts(asked)[0])["reports"]
    assert entry == {"member": 0, "report": shown}
    mechanism = read_document(site.collector.record(collection).document, CATALOG).mechanism
    assert mechanism.kind == "padded" and mechanism.valid(mechanism.decode(bytes.fromhex(shown))).all()
    kept = page.evaluate("JSON.stringify(localStorage)")
    assert b"item" not in posts(asked)[0].post_data_buffer + kept.encode()
    assert site.reports(collection) == 1


@pytest.mark.slow
def test_a_report_on_a_set_is_described_in_every_language(page: Any, site: Any) -> None:
    """A list so short that its sizes are asked first, and one whose items are: nothing ticked is an answer too."""
    said = {"English": "your list", "Deutsch": "Ihrer Liste", "français": "votre liste", "español": "su lista"}
    for labels in (ITEMS, ITEMS[:5]):
        question = BASKET | {"domain": {"kind": "items", "labels": labels}}
        page.goto(f"{site.url}/c/{site.publish(**BASKETS | {'questions': [question]})}")
        page.click("text=Show me what will be sent")
        for language, words in said.items():
            page.click(f".languages >> text={language}")
            expect(page.locator(".said")).to_contain_text(words)
            assert "{" not in page.inner_text(".said")


def test_ticks_survive_a_change_of_language(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/c/{site.publish(**BASKETS)}")
    page.get_by_label(ITEMS[7]).check()
    page.click("text=Deutsch")
    page.wait_for_selector("text=Nichts anzukreuzen ist auch eine Antwort")
    expect(page.get_by_label(ITEMS[7])).to_be_checked()
    expect(page.locator(".set input:checked")).to_have_count(1)


@pytest.mark.slow
def test_a_list_of_thousands_stays_quick_to_search(page: Any, site: Any) -> None:
    labels = [f"Entrée {i}" for i in range(5000)]
    question = BASKET | {"domain": {"kind": "items", "labels": labels}}
    page.goto(f"{site.url}/c/{site.publish(**BASKETS | {'questions': [question]})}")
    page.wait_for_selector("text=4,940 more are not shown")
    page.get_by_role("searchbox").fill("entree 4321")
    page.get_by_label("Entrée 4321").check()
    page.get_by_role("searchbox").fill("")
    expect(page.locator(".set input[type=checkbox]").first).to_be_checked()  # What is ticked stays in sight.
    page.click("text=Show me what will be sent")
    page.wait_for_selector("#report")


@pytest.mark.slow
def test_a_respondent_answers_one_round_only(page: Any, context: Any, site: Any) -> None:
    first = site.publish(**BASKETS)
    page.goto(f"{site.url}/c/{first}")
    page.click("text=Show me what will be sent")
    page.wait_for_selector("#report")  # Drawn and held: the round closes before it is sent.
    send_crowd(context, site, first, baskets(2000, 1))
    second = site.collector.advance(first)["current"]
    page.goto(f"{site.url}/c/{first}")
    page.wait_for_url(f"**/c/{second}")
    page.wait_for_selector("text=The round is over")
    assert page.query_selector("form") is None
    page.evaluate("localStorage.clear()")
    page.goto(f"{site.url}/c/{second}")
    page.click("text=Show me what will be sent")
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    send_crowd(context, site, second, baskets(2000, 2))
    site.collector.advance(first)
    page.goto(f"{site.url}/c/{second}")
    page.wait_for_selector("text=You have answered this already")


@pytest.mark.slow
def test_a_plan_is_built_published_and_run_to_its_end_on_the_pages(page: Any, context: Any, site: Any) -> None:
    """4,000 respondents a round at epsilon 5: shares of 0.6 and 0.4 against noise below 0.05 cannot be missed."""
    page.expected = ["409"]  # A round without reports cannot be closed.
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/new")
    page.fill("#title-en", "Baskets")
    page.get_by_label("Question", exact=True).fill("What did you buy?")
    page.get_by_label("Answer", exact=True).select_option("items")
    page.get_by_label("Things to tick").fill("\n".join(ITEMS))
    page.get_by_label("What you want to know").select_option("items")
    page.get_by_label("How many to look for").fill("3")
    page.fill("#epsilon", "5")
    page.fill("#cohort", "10")
    page.fill("#respondents", "60000")
    page.click("text=Publish…")
    page.click("text=Publish it")
    page.wait_for_selector("text=The plan is still asking")
    first = page.url.rsplit("/", 1)[1]
    assert site.collector.find(first).collection.plan.k == 3

    def advance() -> None:
        page.click("text=Advance now")
        page.click("dialog >> text=Close the round")

    advance()
    page.wait_for_selector("#notice:has-text('0 reports')")
    for number in (1, 2, 3):
        current = site.collector.open_round(first)
        page.wait_for_selector(f"a[href='{site.url}/c/{current}']:has-text('Open the survey of round')")
        send_crowd(context, site, current, baskets(4000, number), number)
        look_again(page)
        page.wait_for_selector(f".rounds li:nth-child({number}):has-text('4,000 of')")
        advance()
        page.wait_for_selector(f".rounds li:nth-child({number}):has-text('Closed')")
    page.wait_for_selector("text=All rounds are closed")
    expect(page.locator(".ranked tbody th")).to_have_count(3)
    assert set(page.locator(".ranked tbody th").all_inner_texts()) == set(ITEMS[:3])
    page.wait_for_selector("text=cannot be told from noise here")
    expect(page.get_by_role("button", name="Advance now")).to_have_count(0)


def test_itemsets_are_a_table_and_a_network(page: Any, context: Any, site: Any) -> None:
    first = site.publish(**BASKETS | {"questions": [BASKET | {"task": "itemsets"}], "k": 4})
    run_plan(context, site, first, 2000)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{first}")
    page.wait_for_selector(".ranked td")
    rows = site.collector.answers(first, 0.95).questions[0]["rows"]
    cells = page.locator(".ranked tbody tr").all_inner_texts()
    for row, text in zip(rows, cells, strict=False):
        assert " + ".join(row["value"]) in text and f"{100 * row['raw']['estimate']:.1f} %" in text
    picture = page.locator("svg.network")
    picture.wait_for()
    assert picture.locator("line").count() >= 1 and picture.locator("circle").count() >= 3
    assert f"{ITEMS[0]} and {ITEMS[1]} at" in picture.get_attribute("aria-label")


def test_the_probabilities_in_words_are_those_of_the_mechanism(page: Any) -> None:
    made = [GRR(size=9, epsilon="1.5"), SUE(size=9, epsilon="1"), OUE(size=9, epsilon="2"), RUE(size=9, epsilon="2")]
    made += [THE(size=9, epsilon="2"), SS(size=30, epsilon="1"), CBR(size=20, epsilon="1"), CBR(size=5001, epsilon="4")]
    said = page.evaluate(
        """async (specs) => {
            const { loadDevice } = await import("/js/tacit.js");
            const { chances, codesOf } = await import("/static/page/chances.js");
            const devices = await Promise.all(specs.map(loadDevice));
            return devices.map((device) => ({ ...chances(device), codes: codesOf(device) }));
        }""",
        [device.spec() for device in made],
    )
    for device, words in zip(made, said, strict=True):
        assert abs(words["own"]["value"] - 100 * device.p) <= 0.01, device.kind
        assert abs(words["other"]["value"] - 100 * device.q) <= 0.01, device.kind
        assert device.kind != "cbr" or words["codes"] == device.m
