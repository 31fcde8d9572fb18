"""Free text and heavy hitters in a real browser."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.browser.crowds import send_crowd
from tests.browser.site import posts, sent_batch, sign_in
from tests.browser.test_ranges import ask

from tacit.catalog import CATALOG
from tacit.collector.collections.active import read_document
from tacit.device.domains.text import Text

WORD: dict[str, Any] = {
    "name": "word",
    "text": {"en": "Which word?", "de": "Welches Wort?", "fr": "Quel mot ?", "es": "¿Qué palabra?"},
    "domain": {"kind": "text", "alphabet": "lower", "length": 4},
    "task": "heavy_hitters",
}
TITLES = {"en": "Words", "de": "Wörter", "fr": "Mots", "es": "Palabras"}
WORDS: dict[str, Any] = {
    "title": TITLES, "about": TITLES, "questions": [WORD], "epsilon": "4", "minimum_cohort": 10, "respondents": 8000,
}  # fmt: skip


def test_a_text_is_checked_while_it_is_typed_and_leaves_as_a_noisy_report(
    page: Any, asked: list[Any], site: Any
) -> None:
    longer = WORD | {"domain": {"kind": "text", "alphabet": "lower", "length": 6}}
    collection = site.publish(**WORDS | {"questions": [longer]})
    page.goto(f"{site.url}/c/{collection}")
    page.wait_for_selector("text=At most 6 letters from a to z; capitals are written small")
    asked.clear()
    field = page.get_by_role("textbox")
    assert [field.get_attribute(name) for name in ("spellcheck", "autocomplete")] == ["false", "off"]
    for typed, words in (("Tè", "Not possible here: è"), ("espresso", "Too long by 2"), ("tea", "Room for 3 more")):
        field.fill(typed)
        page.wait_for_selector(f"text={words}")
        expect(field).to_have_attribute("aria-invalid", str("more" not in words).lower())
    field.fill("espresso")
    page.click("text=Show me what will be sent")
    page.wait_for_selector(".error:has-text('Too long by 2')")
    field.fill("")
    page.click("text=Show me what will be sent")
    page.wait_for_selector("text=Please answer this question")
    field.fill("tea")
    page.click("text=Show me what will be sent")
    page.wait_for_selector("#report")
    for language, words in {
        "English": "noisy",
        "Deutsch": "verrausch",
        "français": "bruité",
        "español": "ruido",
    }.items():
        page.click(f".languages >> text={language}")
        expect(page.locator(".said")).to_contain_text(words)
        assert "{" not in page.inner_text(".said")
    assert asked == []  # Nothing was asked of any server while somebody typed.
    page.click(".review .primary")
    page.wait_for_selector("#outcome")
    (request,) = posts(asked)
    (entry,) = sent_batch(site, collection, request)["reports"]
    mechanism = read_document(site.collector.record(collection).document, CATALOG).mechanism
    member = mechanism.member(entry["member"])
    assert member.valid(member.decode(bytes.fromhex(entry["report"]))).all()
    assert "tea" not in page.evaluate("JSON.stringify(localStorage)")
    assert site.reports(collection) == 1


@pytest.mark.slow
def test_every_domain_of_heavy_hitters_can_be_answered(page: Any, site: Any) -> None:
    for domain, rule, typed in (
        ({"kind": "text", "alphabet": "bytes", "length": 8}, "room for 8 plain letters", "né 🙂"),
        ({"kind": "text", "alphabet": "printable", "length": 9}, "letters without accents, digits", "a-Z {1}"),
        ({"kind": "text", "alphabet": "0123456789", "length": 18}, "each one of: 0 1 2 3", "0456"),
        ({"kind": "bits", "length": 20}, "20 digits, each 0 or 1", "01" * 10),
        ({"kind": "integers", "low": 0, "high": 10**12}, "A whole number, 0 to 1000000000000", "123456789012"),
    ):
        collection = site.publish(**WORDS | {"questions": [WORD | {"domain": domain}]})
        page.goto(f"{site.url}/c/{collection}")
        page.wait_for_selector(f"text={rule}")
        page.fill("input[name=word]", typed)
        page.click("text=Show me what will be sent")
        page.wait_for_selector("#report")
        assert "{" not in page.inner_text(".said")
        page.click("text=Send this report")
        page.wait_for_selector("text=has arrived")
        assert site.reports(collection) == 1


@pytest.mark.slow
def test_frequent_texts_are_ranked_and_others_looked_up(page: Any, context: Any, site: Any) -> None:
    """8,000 respondents at epsilon 4: shares of 0.5 and 0.3 against noise below 0.02 cannot be missed."""
    collection = site.publish(**WORDS)
    domain = Text("word", "lower", 4)
    values = np.array([domain.encode(word) for word in ("tea", "milk", "cola")], np.uint64)
    send_crowd(context, site, collection, values[np.random.default_rng(1).choice(3, 8000, p=[0.5, 0.3, 0.2])])
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    page.wait_for_selector(".ranked td")
    top = ask(context, site, collection, "word", "top", k=32)
    sure = [row["value"] for row in top["values"] if row["noise_probability"] <= 0.05]
    assert sure[:3] == ["tea", "milk", "cola"]
    expect(page.locator(".ranked tbody th:visible")).to_have_text(sure)
    first = page.locator(".ranked tbody tr").first
    expect(first).to_contain_text(f"{100 * top['values'][0]['low']:.2f} %")
    expect(first).to_contain_text("under 0.1 %")
    page.wait_for_selector(f"text={top['about']}")
    page.get_by_label("At most").select_option("8")
    page.wait_for_selector("details:has-text('5 more, which may be noise')")
    page.click("text=Look up values by name")
    page.get_by_label("Values, one per line").fill("tea\nrum")
    page.get_by_role("button", name="Look up").click()
    page.wait_for_selector("tr:has(th:has-text('rum'))")
    page.expected = ["422"]
    page.get_by_label("Values, one per line").fill("Übel")
    page.get_by_role("button", name="Look up").click()
    page.wait_for_selector("text=a value is not in the domain")


@pytest.mark.slow
def test_the_builder_asks_for_heavy_hitters(page: Any, site: Any) -> None:
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/new")
    page.fill("#title-en", "Words")
    page.get_by_label("Question", exact=True).fill("Which word?")
    page.get_by_label("Answer", exact=True).select_option("text")
    page.wait_for_selector("text=At most 13 characters.")
    page.wait_for_selector("text=the share of a value that is found will be known to")
    page.wait_for_selector("#forecast >> text=/A value that [0-9.]+ % hold is found every second time/")
    page.get_by_label("Characters").select_option("own")
    page.get_by_label("All characters").fill("9876543210-0")
    page.wait_for_selector("text=At most 17 characters.")
    page.get_by_label("Longest text").fill("12")
    page.click("text=Publish…")
    page.click("text=Publish it")
    page.wait_for_selector("text=Answers appear here")
    question = site.collector.find(page.url.rsplit("/", 1)[1]).collection.questions[0]
    assert (question.domain.alphabet, question.domain.length, question.task) == ("-0123456789", 12, "heavy_hitters")


AGE: dict[str, Any] = {"kind": "integers", "name": "age", "low": 0, "high": 9, "step": 1}
PAY: dict[str, Any] = {"kind": "buckets", "name": "pay", "edges": ["0", "9.5"], "open_below": False, "open_above": True}


@pytest.mark.slow
def test_saved_drafts_come_back_as_they_were(page: Any, site: Any) -> None:
    sign_in(page, site)
    for domain, task in (
        ({"kind": "text", "alphabet": "äöü", "length": 9}, "heavy_hitters"),
        ({"kind": "bits", "length": 40}, "heavy_hitters"),
        ({"kind": "integers", "low": 0, "high": 10**9}, "heavy_hitters"),
        ({"kind": "items", "labels": ["a", "b", "c"], "most": 2}, "itemsets"),
        ({"kind": "product", "attributes": [AGE, PAY]}, "ranges"),
    ):
        k = {"k": 2} if task == "itemsets" else {}
        draft = site.draft(**WORDS | {"questions": [WORD | {"domain": domain, "task": task}]} | k)
        before = site.collector.preview(draft)
        page.goto(f"{site.url}/dashboard/collections/{draft}")
        page.click("text=Save draft")
        page.wait_for_selector("text=Draft saved")
        assert site.collector.preview(draft) == before
