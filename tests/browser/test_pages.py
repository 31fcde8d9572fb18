"""The survey and the dashboard in a real browser, against a real collector."""

import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import exp, sqrt
from threading import Thread
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.browser.access import Checker
from tests.browser.site import look_again, posts, sent_batch, sign_in, wait_until

from tacit.catalog import CATALOG
from tacit.collector.collections.active import read_document
from tacit.device.numbers.coins import SystemCoins
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id

COMMUTE: dict[str, Any] = {
    "title": {"en": "Coming to work", "de": "Der Weg zur Arbeit"},
    "about": {"en": "For the new stands.", "de": "Für die neuen Ständer."},
    "questions": [
        {
            "name": "transport",
            "text": {"en": "How did you come today?", "de": "Wie sind Sie heute gekommen?"},
            "domain": {"kind": "categories", "labels": ["Foot", "Bicycle", "Tram", "Car"], "other": "Another way"},
        }
    ],
    "epsilon": "1",
    "minimum_cohort": 10,
}
EVERY_KIND: dict[str, Any] = {
    "title": "All kinds of answers",
    "policy": "all_of",
    "epsilon": "7",
    "questions": [
        {
            "name": "ordered",
            "text": "How often?",
            "domain": {"kind": "ordered", "labels": ["never", "at times", "always"]},
        },
        {"name": "yes", "text": "Yes?", "domain": {"kind": "booleans"}},
        {
            "name": "many",
            "text": "Which one?",
            "domain": {"kind": "categories", "labels": [f"C{i}" for i in range(30)]},
        },
        {"name": "whole", "text": "How many?", "domain": {"kind": "integers", "low": 0, "high": 20, "step": 5}},
        {"name": "ticks", "text": "Which?", "domain": {"kind": "bits", "length": 3}},
        {
            "name": "ranges",
            "text": "How much?",
            "domain": {"kind": "buckets", "edges": ["-1.5", "10", "99"], "open_below": True, "open_above": True},
        },
        {
            "name": "fine",
            "text": "How much exactly?",
            "domain": {"kind": "buckets", "edges": [str(i) for i in range(20)]},
        },
    ],
}


def send_reports(context: Any, site: Any, collection: str, n: int) -> None:
    """Reports of n made-up respondents, through the same route as everybody's."""
    active = site.collector.find(collection)
    reports = active.mechanism.privatize(np.zeros(n, np.int64), SystemCoins())
    batch = Batch(collection, new_batch_id(), (Block(0, n, reports.tobytes()),))
    reply = context.request.post(
        f"{site.url}/c/{collection}/reports", data=encode_batch(batch), headers={"Content-Type": MEDIA_TYPE}
    )
    assert reply.status == 201


def answer(page: Any, label: str) -> str:
    """Choose an answer and go on to the noisy report; gives it as it is shown."""
    page.get_by_label(label, exact=True).check()
    page.click("text=Show me what will be sent")
    return page.inner_text("#report").replace(" ", "")


def test_what_leaves_the_browser_is_the_noisy_report_that_was_shown(page: Any, asked: list[Any], site: Any) -> None:
    collection = site.publish(**COMMUTE)
    page.goto(f"{site.url}/c/{collection}")
    shown = answer(page, "Tram")
    assert posts(asked) == [] and site.reports(collection) == 0
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    assert site.reports(collection) == 1
    body = sent_batch(site, collection, posts(asked)[0])
    assert body.keys() == {"collection", "batch", "reports"}
    assert body["reports"] == [{"member": 0, "report": shown}]
    mechanism = read_document(site.collector.record(collection).document, CATALOG).mechanism
    assert mechanism.valid(mechanism.decode(bytes.fromhex(shown))).all()
    kept = page.evaluate("JSON.stringify(localStorage)")
    assert b"Tram" not in posts(asked)[0].post_data_buffer + kept.encode()
    assert posts(asked)[0].headers.get("cookie") is None


def test_the_browser_adds_noise_with_the_declared_probability(page: Any, site: Any) -> None:
    collection = site.publish(**COMMUTE | {"questions": [COMMUTE["questions"][0] | {"domain": {"kind": "booleans"}}]})
    n, p = 4000, exp(1) / (1 + exp(1))
    truths = page.evaluate(
        """async ([id, n]) => {
            const { SystemCoins, loadDevice } = await import("/js/tacit.js");
            const { mechanism } = await (await fetch(`/c/${id}/document.json`)).json();
            const [device, coins] = [await loadDevice(mechanism), new SystemCoins()];
            let truths = 0;
            for (let i = 0; i < n; i += 1) truths += device.privatizeOne(1, coins)[0] & 1;
            return truths;
        }""",
        [collection, n],
    )
    # Six standard deviations: a false alarm has probability 2e-9; sending the answer itself would be 38 away.
    assert abs(truths - n * p) < 6 * sqrt(n * p * (1 - p))


def test_a_report_is_drawn_once_and_kept_over_reloads(page: Any, site: Any) -> None:
    collection = site.publish(**COMMUTE)
    page.goto(f"{site.url}/c/{collection}")
    shown = answer(page, "Car")
    page.reload()
    page.wait_for_selector("#report")
    assert page.inner_text("#report").replace(" ", "") == shown
    assert site.reports(collection) == 0  # Shown, and not agreed to.
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    page.reload()
    page.wait_for_selector("text=You have answered this already")
    assert page.inner_text("[data-receipt=sentReport]") == shown
    assert page.query_selector("form") is None
    assert site.reports(collection) == 1


@pytest.mark.slow
def test_the_ledger_adds_up_what_was_sent(page: Any, site: Any) -> None:
    second = COMMUTE | {"title": "Another", "about": "Another", "epsilon": "0.5", "questions": [
        {"name": "yes", "text": "Yes?", "domain": {"kind": "booleans"}}]}  # fmt: skip
    for draft, label in ((COMMUTE, "Foot"), (second, "Yes")):
        page.goto(f"{site.url}/c/{site.publish(**draft)}")
        answer(page, label)
        page.click("text=Send this report")
        page.wait_for_selector("text=has arrived")
    expect(page.locator(".ledger tfoot")).to_contain_text("ε = 1.5")
    expect(page.locator(".ledger tbody tr")).to_have_count(2)


def test_what_waits_when_the_page_goes_away_is_handed_over(page: Any, site: Any) -> None:
    collection = site.publish(**COMMUTE)
    page.expected = ["ERR_FAILED"]
    page.goto(f"{site.url}/c/{collection}")
    answer(page, "Tram")
    page.route("**/reports", lambda route: route.abort())
    page.click("text=Send this report")
    page.wait_for_selector("text=waiting for a connection")
    page.unroute("**/reports")
    assert site.reports(collection) == 0
    page.goto("about:blank")
    wait_until(page, lambda: site.reports(collection) > 0)
    assert site.reports(collection) == 1


def test_a_page_that_goes_away_sends_no_cookies(page: Any, context: Any, site: Any) -> None:
    seen: list[tuple[str, str | None]] = []

    class Echo(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((self.path, self.headers["Cookie"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    context.add_cookies([{"name": "session", "value": "secret", "url": site.url}])
    # On the page at rest, which may send to other origins; those of a collector may not.
    page.evaluate(
        """async (base) => {
            const { Respondent } = await import("/js/tacit.js");
            const entry = { base, collection: "0", batch: "0", member: 0, report: "00", state: "pending" };
            const kept = JSON.stringify({ entries: [entry], secret: "", memories: {} });
            new Respondent({ storage: { getItem: () => kept, setItem: () => {} } }).attach(window);
            addEventListener("pagehide", () => navigator.sendBeacon(`${base}/beacon`, "x"));
        }""",
        f"http://127.0.0.1:{server.server_port}",
    )
    page.goto("about:blank")
    wait_until(page, lambda: len(seen) == 2)
    server.shutdown()
    server.server_close()
    # The browser's own beacon shows that there was a cookie to send.
    assert sorted(seen, key=str) == [("/beacon", "session=secret"), ("/c/0/reports", None)]


def test_offline_then_online_counts_once(page: Any, context: Any, site: Any) -> None:
    page.expected = ["ERR_INTERNET_DISCONNECTED", "ERR_NETWORK_CHANGED"]
    collection = site.publish(**COMMUTE)
    page.goto(f"{site.url}/c/{collection}")
    answer(page, "Foot")
    context.set_offline(True)
    page.click("text=Send this report")
    page.wait_for_selector("text=waiting for a connection")
    assert site.reports(collection) == 0
    context.set_offline(False)
    page.wait_for_selector("text=has arrived")
    assert site.reports(collection) == 1


def test_every_kind_of_domain_can_be_answered(page: Any, site: Any) -> None:
    collection = site.publish(**EVERY_KIND)
    page.goto(f"{site.url}/c/{collection}")
    page.get_by_label("at times").check()
    page.get_by_label("Yes", exact=True).check()
    page.select_option("select", label="C17")
    page.fill("input[name=whole]", "7")
    page.get_by_label("Item 2").check()
    page.get_by_label("under -1.5").check()
    page.fill("input[name=fine]", "3.25")
    page.click("text=Show me what will be sent")
    page.wait_for_selector(".error:has-text('in steps of 5')")  # 7 is not a multiple of 5.
    expect(page.locator("input[name=whole]")).to_be_focused()
    page.fill("input[name=whole]", "15")
    page.click("text=Show me what will be sent")
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    assert site.reports(collection) == 1


def test_one_question_of_several_is_reported(page: Any, site: Any) -> None:
    drafts = EVERY_KIND | {"policy": "one_of", "questions": EVERY_KIND["questions"][:2]}
    collection = site.publish(**drafts)
    page.goto(f"{site.url}/c/{collection}")
    page.get_by_label("never").check()
    answer(page, "No")
    page.wait_for_selector("text=picked at random is")
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    assert site.reports(collection) == 1


def test_the_language_switch_keeps_the_answer(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/c/{site.publish(**COMMUTE)}")
    page.get_by_label("Bicycle").check()
    page.click("text=Deutsch")
    page.wait_for_selector("text=Wie Ihre Antwort geschützt wird")
    expect(page.get_by_label("Bicycle")).to_be_checked()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("h1")).to_have_text("Der Weg zur Arbeit")


def test_every_language_says_everything(page: Any) -> None:
    said = page.evaluate(
        """async () => Object.fromEntries(await Promise.all(["en", "de", "es", "fr"].map(async (one) =>
            [one, Object.entries((await import(`/static/page/words/${one}.js`)).default).map(([key, text]) =>
                [key, [...new Set(text.match(/\\{\\w+\\}/g) ?? [])].sort().join()])])))"""
    )
    assert all(sorted(words) == sorted(said["en"]) for words in said.values())


def test_the_survey_works_by_keyboard_alone(page: Any, site: Any) -> None:
    collection = site.publish(**COMMUTE)
    page.goto(f"{site.url}/c/{collection}")
    page.wait_for_selector("form")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "radio":
            break
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#report")
    expect(page.locator("#review")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=has arrived")
    expect(page.locator("#outcome")).to_be_focused()
    assert site.reports(collection) == 1


def test_closed_missing_and_changed_collections(page: Any, site: Any) -> None:
    collection = site.publish(**COMMUTE)
    site.close(collection)
    page.goto(f"{site.url}/c/{collection}")
    page.wait_for_selector("text=This collection is closed")
    assert page.query_selector("form") is None
    for path, kind in ((f"/c/{'0' * 64}", "text/html"), ("/nowhere", "text/html"), ("/api/v1/nowhere", "problem+json")):
        missing = page.request.get(f"{site.url}{path}", headers={"Accept": "text/html"})
        assert missing.status == 404 and kind in missing.headers["content-type"]
    other = site.publish(**COMMUTE | {"epsilon": "2"})
    changed = site.collector.record(other).document.replace(b"Tram", b"Trem")
    page.route("**/document.json", lambda route: route.fulfill(body=changed, content_type="application/json"))
    page.goto(f"{site.url}/c/{other}")
    page.wait_for_selector("text=cannot be shown safely")


def test_a_draft_is_previewed_by_its_owner_and_sends_nothing(page: Any, asked: list[Any], site: Any) -> None:
    draft = site.draft(**COMMUTE)
    assert page.request.get(f"{site.url}/c/{draft}?preview").status == 404
    sign_in(page, site)
    page.goto(f"{site.url}/c/{draft}?preview")
    page.wait_for_selector("text=Preview of a draft")
    answer(page, "Foot")
    page.click("text=Send this report")
    page.wait_for_selector("text=would have been sent now")
    assert posts(asked) == [] and page.evaluate("localStorage.length") == 0


def test_signing_in_and_out(page: Any, context: Any, site: Any) -> None:
    page.expected = ["401"]
    page.goto(f"{site.url}/dashboard/tokens")
    page.fill("#token", "tct_wrong")
    page.click("button:has-text('Sign in')")
    page.wait_for_selector("text=not known here")
    page.fill("#token", site.token)
    page.click("button:has-text('Sign in')")
    page.wait_for_url("**/dashboard/tokens")
    (cookie,) = context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    page.click("text=Sign out")
    page.wait_for_url("**/dashboard/login")
    assert context.cookies() == []


def test_signing_in_leads_back_to_the_same_query(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/dashboard/query?collection=a%26b&share=tct_old")
    assert page.get_attribute("[name=next]", "value") == "/dashboard/query?collection=a%26b"
    page.fill("#token", site.token)
    page.click("button:has-text('Sign in')")
    page.wait_for_url(f"{site.url}/dashboard/query?collection=a%26b")


def leads_to(context: Any, address: str) -> list[str]:
    """Where the form for signing in leads, as its page says that a stranger gets for an address."""
    return re.findall('name="next" value="([^"]*)"', context.request.get(address).text())


def test_an_address_too_long_for_the_form_keeps_its_path(context: Any, site: Any) -> None:
    assert leads_to(context, f"{site.url}/dashboard/query?collection=x") == ["/dashboard/query?collection=x"]
    assert leads_to(context, f"{site.url}/dashboard/query?collection={'x' * 3000}") == ["/dashboard/query"]


def test_signing_in_never_leads_to_another_site(context: Any, site: Any) -> None:
    assert leads_to(context, f"{site.url}/dashboard/login?next=/dashboard/new") == ["/dashboard/new"]
    for target in ("https://example.org/", "//example.org", "/\\example.org", "/c/x", "//example.org/dashboard?a=b"):
        assert leads_to(context, f"{site.url}/dashboard/login?next={target}") == ["/dashboard"], target


def test_build_predict_publish_and_watch_the_counts_move(page: Any, context: Any, fresh_site: Any) -> None:
    site = fresh_site
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard")
    page.wait_for_selector("text=No collections yet")
    page.click("text=Make the first one")
    page.fill("#title-en", "Lunch")
    page.get_by_label("Question", exact=True).fill("What did you have?")
    # Half a draft is no mistake: the page says what it lacks, and the console stays silent.
    page.wait_for_selector("text=List the choices to see how precise")
    page.get_by_label("Choices, one per line").fill("Soup\nSoup")
    page.wait_for_selector("text=“Soup” is listed twice")
    page.get_by_label("Choices, one per line").fill("Soup\nSalad\nPasta")
    page.wait_for_selector("text=With 10,000 respondents each share will be known to")
    page.wait_for_selector("text=± 2.4 points")
    page.fill("#cohort", "5")
    page.click("text=Publish…")
    page.click("text=Publish it")
    page.wait_for_selector("text=Answers appear here")
    collection = page.url.rsplit("/", 1)[1]
    assert site.collector.record(collection).state == "published"
    send_reports(context, site, collection, 300)
    look_again(page)
    page.wait_for_selector(".facts b:has-text('300')")
    page.wait_for_selector("canvas")
    page.click("text=Table of these numbers")
    expect(page.locator(".numbers tbody tr")).to_have_count(3)
    expect(page.locator(".numbers tbody th").first).to_have_text("Soup")
    page.click("button:has-text('Raw')")
    page.wait_for_selector("text=Unbiased: right on average, so")
    page.click("text=Close collection")
    page.click("dialog >> text=Close it")
    page.wait_for_selector(".pill:has-text('Closed')")
    expect(page.get_by_role("heading", name="Ask people")).to_be_hidden()
    assert site.collector.record(collection).state == "closed"


def test_a_saved_draft_comes_back_as_it_was(page: Any, site: Any) -> None:
    draft = site.draft(**EVERY_KIND | {"title": {"en": "Kinds", "de": "Arten"}, "about": {"en": "a", "de": "b"},
        "questions": [q | {"text": {"en": q["text"], "de": "?"}} for q in EVERY_KIND["questions"]]})  # fmt: skip
    before = site.collector.preview(draft)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{draft}")
    page.wait_for_selector("text=points")
    # The forecast of five questions is longer than the window, and the card that holds it sticks to its upper edge:
    # no scrolling would bring buttons below it into sight.
    for place in ("document.body.scrollHeight", "0"):
        page.evaluate(f"scrollTo(0, {place})")
        expect(page.locator("text=Save draft")).to_be_in_viewport(ratio=1)
    page.click("text=Save draft")
    page.wait_for_selector("text=Draft saved")
    assert site.collector.preview(draft) == before


def test_a_share_link_shows_one_collection_without_signing_in(page: Any, context: Any, site: Any) -> None:
    collection = site.publish(**COMMUTE)
    send_reports(context, site, collection, 50)
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/tokens")
    page.select_option("#scope", "reader")
    page.select_option("#for", collection)
    page.click("text=Make token")
    expect(page.locator("#fresh")).to_have_value(re.compile("share="))
    link = page.input_value("#fresh")
    context.clear_cookies()
    page.goto(link)
    page.wait_for_selector("canvas")
    assert page.query_selector("text=Close collection") is None


def test_a_survey_by_invitation_says_that_its_plain_link_is_not_enough(page: Any, site: Any) -> None:
    collection = site.publish(**COMMUTE | {"invitations": True})
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    expect(page.locator("#by-invitation")).to_contain_text("make links under Invitations below")
    expect(page.get_by_role("heading", name="Invitations")).to_be_visible()


def test_a_label_that_is_cut_says_so(page: Any) -> None:
    cut = "async (text) => (await import('/static/page/chart.js')).wrapped(text, true)"
    assert page.evaluate(cut, "on foot") == ["on foot"]
    assert page.evaluate(cut, "bus, tram or railway, of the city") == ["bus, tram or railway,", "of the city"]
    assert page.evaluate(cut, "bus, tram or underground railway of the city")[1].endswith("…")
    assert page.evaluate(cut, "") == [""]


def test_the_chart_library_comes_from_its_package(context: Any, site: Any) -> None:
    reply = context.request.get(f"{site.url}/static/vendor/chart.js")
    assert reply.status == 200 and b"Chart.js" in reply.body()[:200]
    policy = context.request.get(f"{site.url}/dashboard/login").headers["content-security-policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy
    assert context.request.get(f"{site.url}/static/%2e%2e/pages.py").status == 404


@pytest.mark.slow
def test_pages_are_accessible_and_fit(page: Any, context: Any, site: Any) -> None:
    checker = Checker(page, site)
    collection, kinds = site.publish(**COMMUTE), site.publish(**EVERY_KIND)
    draft = site.draft(**EVERY_KIND)
    send_reports(context, site, collection, 50)
    checker.open(f"/c/{kinds}", "form")
    checker.open(f"/c/{collection}", "form")
    answer(page, "Foot")
    checker.check("the report")
    page.click("text=Send this report")
    page.wait_for_selector("text=has arrived")
    checker.check("the receipt")
    checker.open(f"/c/{collection}", "#outcome")
    checker.open(f"/c/{collection}/privacy", "table")
    checker.open("/dashboard/login", "#token")
    sign_in(page, site)
    checker.open(f"/dashboard/collections/{collection}", "canvas")
    page.click("text=Table of these numbers")
    page.wait_for_selector(".numbers td")
    checker.check("the table of numbers")
    checker.open(f"/dashboard/collections/{draft}", "text=points")
    checker.open("/dashboard/tokens", "form.card")
    checker.open("/dashboard/audit", ".card")


def test_the_list_of_collections_is_accessible_and_fits(page: Any, fresh_site: Any) -> None:
    fresh_site.publish(**COMMUTE)
    fresh_site.draft(**EVERY_KIND)
    sign_in(page, fresh_site)
    Checker(page, fresh_site).open("/dashboard", "table")
