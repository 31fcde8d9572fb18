"""Shuffled collections in a real browser: reports leave it sealed, for real shufflers and through a real relay."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import expect
from starlette.routing import BaseRoute, Route
from tests.browser.access import AXE_PATH, Checker, serve_axe
from tests.browser.conftest import find_chromium
from tests.browser.site import Site, posts, sign_in
from tests.service.shuffled import Shuffling, shuffling
from tests.service.waiting import wait_until

from tacit.dashboard import routes
from tacit.shuffle.protocol.resharing import COMMIT
from tacit.shuffler.letters import letter, place_of

ROOT = Path(__file__).resolve().parents[2]
TITLES = {"en": "Pets", "de": "Haustiere", "fr": "Animaux", "es": "Mascotas"}
LABELS = ["cat", "dog", "fish"]
SHUFFLED = {
    "English": ("What shuffling adds", "at least 2 of the 3 shufflers", "only the second figure"),
    "Deutsch": ("Was das Mischen hinzufügt", "mindestens 2 der 3 Mischer", "nur die zweite Zahl"),
    "français": ("Ce que le mélange apporte", "au moins 2 des 3 mélangeurs", "le deuxième chiffre"),
    "español": ("Qué añade la mezcla", "al menos 2 de los 3 mezcladores", "la segunda cifra"),
}


def pages(collector: Any, **rest: Any) -> list[BaseRoute]:
    """The pages, and what judges them."""
    return [Route(AXE_PATH, serve_axe), *routes(collector, **rest)]


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shuffling]:
    """A collector with pages, three shufflers and a relay."""
    with shuffling(tmp_path_factory.mktemp("parties"), pages=pages) as made:
        yield made


@pytest.fixture(scope="module")
def days() -> Any:
    """Retentions that differ, so that no test has the collection of another."""
    return count(1000)


@pytest.fixture
def site(parties: Shuffling) -> Site:
    """The collector, as other tests of pages know it."""
    return Site(parties.url, parties.client.token, parties.collector, count(1))


@pytest.fixture
def publish(parties: Shuffling, days: Any, site: Site) -> Any:
    """Publishes a collection of its own, and waits until it takes reports; what pages kept before is forgotten."""
    del site

    def make(**terms: Any) -> str:
        return parties.publish(draft(parties, next(days), **terms))

    return make


def draft(parties: Shuffling, retention: int, *, invitations: bool = False, **terms: Any) -> dict[str, Any]:
    made = parties.draft(invitations=invitations, **{"minimum": 3, "fakes": 30} | terms)
    question = {"name": "pet", "text": TITLES, "domain": {"kind": "categories", "labels": LABELS}}
    texts = {"title": TITLES, "about": TITLES, "questions": [question]}
    return made | texts | {"minimum_cohort": 3, "retention_days": retention}


def respond(page: Any, address: str, label: str) -> str:
    """Answer in the page and send; returns the noisy report that was shown."""
    page.goto(address)
    page.get_by_label(label).check()
    page.click("form button[type=submit]")
    shown: str = page.inner_text("#report").replace(" ", "")
    page.click("text=Send this report")
    page.wait_for_selector("#outcome")
    return shown


def entry_of(page: Any) -> dict[str, Any]:
    """The last report in the ledger of the page."""
    return json.loads(page.evaluate("localStorage.getItem('tacit')"))["entries"][-1]


def uploads(parties: Shuffling, collection: str) -> Any:
    """How many sealed reports every shuffler says it has."""
    return parties.session(collection)["uploads"]


def test_a_report_leaves_the_browser_sealed_for_every_shuffler(
    page: Any, asked: list[Any], parties: Shuffling, publish: Any
) -> None:
    collection = publish()
    page.goto(parties.address(collection))
    page.wait_for_selector("form")
    said = page.inner_text("main")
    for words in (*SHUFFLED["English"], "Shuffler 1, Shuffler 2, Shuffler 3", "claimed by the operators"):
        assert words in said
    claims = parties.session(collection)["epsilon"]
    told = [page.inner_text(f"[data-against={name}] td") for name in ("collector", "others", "local")]
    assert told == [f"ε = {claims[name]}" for name in ("collector", "others", "local")]
    shown = respond(page, parties.address(collection), "cat")
    assert "the shufflers have your sealed report" in page.inner_text("#outcome")
    entry, sent = entry_of(page), posts(asked)
    session = parties.session(collection)["session"]
    assert [request.url for request in sent] == [f"{url}/s/{session}/uploads" for url in parties.urls]
    assert [request.post_data_buffer.hex() for request in sent] == [part["body"] for part in entry["sealed"]["parts"]]
    # A report of one byte would be in many texts by chance; what must not be there is the upload in the clear.
    assert entry["report"] == shown and not any(b"report" in request.post_data_buffer for request in sent)
    receipt = {name: page.inner_text(f"[data-receipt={name}]") for name in ("session", "slot", "spent")}
    assert receipt == {"session": session, "slot": entry["sealed"]["slot"], "spent": "ε = 4"}
    assert uploads(parties, collection) == {f"shuffler_{i}": 1 for i in (1, 2, 3)}
    assert parties.collector.store.stored_reports(collection) == 0


@pytest.mark.slow
def test_a_shuffler_that_is_away_leaves_the_report_waiting(page: Any, parties: Shuffling, publish: Any) -> None:
    collection = publish()
    page.expected = ["Failed to load resource"]
    page.route(f"{parties.urls[1]}/**", lambda route: route.abort())
    respond(page, parties.address(collection), "dog")
    expect(page.locator("#waits")).to_contain_text("No answer yet from: Shuffler 2.")
    before = entry_of(page)
    assert (before["state"], uploads(parties, collection)["shuffler_2"]) == ("pending", 0)
    page.unroute_all()
    page.reload()
    expect(page.locator("#outcome")).to_contain_text("the shufflers have your sealed report")
    assert entry_of(page)["sealed"]["parts"] == before["sealed"]["parts"]
    assert uploads(parties, collection) == {f"shuffler_{i}": 1 for i in (1, 2, 3)}


@pytest.mark.slow
def test_a_session_that_was_altered_is_not_answered(
    page: Any, asked: list[Any], parties: Shuffling, publish: Any
) -> None:
    collection = publish()

    def alter(route: Any) -> None:
        body = route.fetch().json()
        route.fulfill(json={**body, "session": {**body["session"], "n_min": 2}})

    page.route("**/session.json", alter)
    page.goto(parties.address(collection))
    expect(page.locator("#outcome")).to_have_text("You cannot answer here now")
    assert "not signed by collector" in page.inner_text("main") and page.locator("form").count() == 0
    assert posts(asked) == [] and page.evaluate("localStorage.getItem('tacit')") is None


@pytest.mark.slow
@pytest.mark.parametrize("guilty", ["collector", "shuffler_2"])
def test_a_session_with_a_wrong_signature_is_not_answered(
    page: Any, asked: list[Any], parties: Shuffling, publish: Any, guilty: str
) -> None:
    collection = publish()

    def forge(route: Any) -> None:
        body = route.fetch().json()
        # Properly made, by somebody else.
        other = next(each for each in body["signatures"] if each["by"] != guilty)
        signatures = [{**other, "by": guilty} if each["by"] == guilty else each for each in body["signatures"]]
        route.fulfill(json={**body, "signatures": signatures})

    page.route("**/session.json", forge)
    page.goto(parties.address(collection))
    expect(page.locator("#outcome")).to_have_text("You cannot answer here now")
    assert f"not signed by {guilty}" in page.inner_text("main")
    assert posts(asked) == [] and page.evaluate("localStorage.getItem('tacit')") is None


@pytest.mark.slow
def test_what_a_browser_sent_counts_once_however_often_it_is_replayed(
    page: Any, asked: list[Any], parties: Shuffling, publish: Any
) -> None:
    collection = publish(relay={"name": "Relay", "url": parties.relay})
    respond(page, parties.address(collection), "cat")
    (sent,), (mine, *_) = posts(asked), entry_of(page)["sealed"]["parts"]
    for _ in range(2):
        assert httpx.post(sent.url, content=sent.post_data_buffer).status_code == 200
    # The slot of the browser's report with another part, and its part under another slot.
    session, slot, part = parties.session(collection)["session"], mine["body"][:32], mine["body"][32:]
    for body in (slot + part[::-1], "00" * 16 + part, mine["body"]):
        url = f"{parties.urls[0]}/s/{session}/uploads"
        assert httpx.post(url, content=bytes.fromhex(body)).status_code == 202
    assert uploads(parties, collection) == {f"shuffler_{i}": 1 for i in (1, 2, 3)}
    counts = parties.shufflers[0].driver.store.counters(session)
    assert counts == {"stored": 1, "repeated": 3, "unreadable": 2}


@pytest.mark.slow
def test_a_tampered_row_ends_the_session_and_the_browser_does_not_send_the_report_again(
    page: Any, parties: Shuffling, publish: Any
) -> None:
    collection = publish(fakes=0)
    respond(page, parties.address(collection), "cat")
    parties.answer(collection, ["cat", "dog", "dog", "fish"])
    before = entry_of(page)["sealed"]["slot"]
    with tampering(parties.shufflers[2]):
        parties.close(collection)
        status = parties.wait_for(collection, "RELEASED", "ABORTED")
    assert status["state"] == "ABORTED" and "1 of 5 rows do not open" in status["note"]
    assert parties.client.answers(collection)["status"] == "below_minimum_cohort"
    # Rows have left the shufflers, so that the collector may have seen the report: it is never sealed again.
    page.expected = ["404", "410"]
    page.goto(parties.address(collection))
    page.wait_for_selector("[data-receipt=slot]")
    assert entry_of(page)["sealed"]["slot"] == before
    assert parties.client.api("POST", f"/collections/{collection}/session").status_code == 409


@pytest.mark.slow
def test_after_an_equivocation_the_browser_seals_the_same_report_for_the_next_session(
    page: Any, parties: Shuffling, publish: Any
) -> None:
    collection = publish()
    respond(page, parties.address(collection), "fish")
    first = entry_of(page)
    record = parties.collector.shuffle.desk.party.sessions()[-1]
    place, guilty = place_of(record.session, COMMIT, 3, 1, 1), parties.shufflers[2].driver.store.identity
    letters = [letter(place, bytes([i]) * 32, guilty) for i in (1, 2)]
    url = f"{parties.urls[0]}/s/{record.id}/messages"
    assert [httpx.post(url, content=each.head + each.body).status_code for each in letters] == [204, 409]
    status = parties.wait_for(collection, "ABORTED")
    assert status["blames"] == "shuffler_3" and "equivocation" in status["note"]
    assert parties.client.api("POST", f"/collections/{collection}/session").status_code == 201
    wait_until(lambda: parties.state(collection) == "COLLECTING")
    page.expected = ["404"]
    page.goto(parties.address(collection))
    expect(page.locator("[data-receipt=session]")).to_have_text(parties.session(collection)["session"])
    again = entry_of(page)
    assert again["report"] == first["report"] and again["sealed"]["slot"] != first["sealed"]["slot"]


@contextmanager
def tampering(app: Any) -> Generator[None]:
    """A shuffler that alters one row of what it hands over, until the block ends."""
    steps = app.driver.steps
    honest = steps._change

    def make(record: Any, after: Any, state: Any, sent: Any, *rest: Any, **more: Any) -> Any:
        for each in sent:
            if each.phase == "output":
                each.body[0, 0] ^= 1
        return honest(record, after, state, sent, *rest, **more)

    steps._change = make
    yield
    steps._change = honest


VECTORS_IN_PAGE = """async ({ shuffle, sessions }) => {
    const load = (name) => import(`/js/src/${name}.js`);
    const [{ ReplayCoins }, { sealUpload }] = await Promise.all(["numbers/coins", "sealed/upload"].map(load));
    const { hex, unhex } = await load("numbers/sha256");
    const [{ Collection }, { checkSession }] = await Promise.all(["documents/document", "sealed/session"].map(load));
    const wrong = [];
    for (const { mode, signed, id, word, coins, slot, parts } of shuffle.uploads) {
        const made = await sealUpload({ ...signed.session, id }, BigInt(word), new ReplayCoins(unhex(coins)));
        if (hex(made.slot) !== slot || String(made.parts.map(hex)) !== String(parts)) wrong.push(mode);
    }
    for (const { name, document, published, id } of sessions.good) {
        const session = await checkSession(await Collection.read(document), published);
        if (session.id !== id) wrong.push(name);
    }
    for (const { name, document: of, published } of sessions.bad) {
        const { document } = sessions.good.find((one) => one.name === of);
        const refused = await checkSession(await Collection.read(document), published).catch((error) => error.name);
        if (refused !== "ProtocolViolation") wrong.push(name);
    }
    return wrong;
}"""


def test_the_browser_seals_and_verifies_as_the_vectors_say(page: Any, site: Site) -> None:
    vectors = {name: json.loads((ROOT / f"spec/vectors/{name}.json").read_text()) for name in ("shuffle", "sessions")}
    page.goto(f"{site.url}/dashboard/login")
    assert page.evaluate(VECTORS_IN_PAGE, vectors) == []


@pytest.mark.slow
def test_the_builder_keeps_the_terms_of_a_shuffle(page: Any, parties: Shuffling, site: Site, days: Any) -> None:
    given = draft(parties, next(days))
    mine = parties.client.api("POST", "/collections", given).json()["id"]
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{mine}")
    expect(page.locator("#shuffle-terms")).to_contain_text(parties.urls[2])
    page.click("text=Save draft")
    expect(page.locator("#saved")).to_have_text("Draft saved")
    assert parties.client.api("GET", f"/collections/{mine}").json()["draft"]["shuffle"] == given["shuffle"]


@pytest.mark.slow
def test_requests_do_not_depend_on_the_answer(new_context: Any, parties: Shuffling, publish: Any) -> None:
    """Straight and through a relay: the same requests, of the same sizes and with the same headers."""
    relay = {"name": "Relay", "url": parties.relay}
    for terms in ({}, {"relay": relay}, {"mode": "ss", "relay": relay}):
        collection = publish(**terms)
        seen = set[str]()
        for label in LABELS:
            page, asked = new_context().new_page(), list[Any]()
            page.on("request", lambda request, asked=asked: asked.append(request))
            respond(page, parties.address(collection), label)
            shapes = [(r.method, r.url, len(r.post_data_buffer or b""), r.all_headers()) for r in asked]
            seen.add(json.dumps(sorted(shapes, key=lambda shape: (shape[1], shape[0]))))
            # Sealed bytes hold short words by chance; a report in the clear would name its collection.
            assert not any(collection.encode() in request.post_data_buffer for request in posts(asked))
            assert not any(f"/c/{collection}/reports" in request.url for request in asked)
            if terms:
                places = {urlsplit(request.url).netloc for request in posts(asked)}
                assert places == {urlsplit(parties.relay).netloc}
        assert len(seen) == 1


@pytest.mark.slow
def test_sessions_on_the_dashboard_and_on_the_page_of_who_answered(
    page: Any, new_context: Any, parties: Shuffling, site: Site, publish: Any
) -> None:
    collection = publish()
    respond(page, parties.address(collection), "cat")
    desk = new_context().new_page()
    sign_in(desk, site)
    desk.goto(f"{site.url}/dashboard/collections/{collection}")
    card = desk.locator("#session")
    expect(card).to_contain_text("1 of at least 3")
    claims = parties.session(collection)["epsilon"]
    three = f"{claims['collector']} · {claims['others']} · {claims['local']}"
    expect(desk.locator(".facts")).to_contain_text(three)
    desk.click("#close-session")
    expect(desk.locator("#session-words")).to_contain_text("Only 1 of the 3")
    desk.click("dialog[open] >> text=Keep it open")
    parties.answer(collection, ["cat", "dog", "dog", "fish"])
    expect(card).to_contain_text("5 of at least 3")
    desk.click("#close-session")
    expect(desk.locator("#session-words")).to_contain_text("5 sealed reports are in")
    desk.click("dialog[open] >> button.primary")
    expect(card).to_contain_text("Released")
    assert desk.get_attribute("#session a", "href") == f"/c/{collection}/transcript.json"
    expect(desk.locator("#answers canvas")).to_be_visible()
    page.expected = ["404", "410"]
    page.goto(parties.address(collection))
    # Whoever comes after the erasure is told so; a visit during the shuffle would have kept the proof.
    expect(page.locator(".part")).to_have_attribute("data-part", re.compile("included|missing"))


@pytest.mark.slow
def test_a_session_that_was_given_up_is_answered_again_with_the_same_report(
    page: Any, parties: Shuffling, site: Site, publish: Any
) -> None:
    collection = publish()
    respond(page, parties.address(collection), "fish")
    first = entry_of(page)
    parties.close(collection)
    parties.wait_for(collection, "ABORTED")
    sign_in(page, site)
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    expect(page.locator("#session")).to_contain_text("Given up")
    expect(page.locator("#session .problem")).to_contain_text("respondents")
    page.click("#open-session")
    wait_until(lambda: parties.state(collection) == "COLLECTING")
    page.expected = ["404"]
    page.goto(parties.address(collection))
    session = parties.session(collection)["session"]
    expect(page.locator("[data-receipt=session]")).to_have_text(session)
    again = entry_of(page)
    assert (again["report"], again["batch"]) == (first["report"], first["batch"])
    assert again["sealed"]["slot"] != first["sealed"]["slot"]
    assert uploads(parties, collection) == {f"shuffler_{i}": 1 for i in (1, 2, 3)}


@pytest.mark.slow
def test_a_page_that_is_not_secure_says_so_and_sends_nothing(browser: Any, parties: Shuffling, publish: Any) -> None:
    """Over plain http from any host but this one; browsers have no cryptography there."""
    collection = publish()
    address = parties.address(collection).replace("127.0.0.1", "survey.test")
    rules = "--host-resolver-rules=MAP survey.test 127.0.0.1"
    other = browser.browser_type.launch(executable_path=find_chromium(), args=["--no-sandbox", rules])
    try:
        page, asked = other.new_context(locale="de-DE").new_page(), list[Any]()
        page.on("request", lambda request, asked=asked: asked.append(request))
        page.goto(address)
        assert page.evaluate("isSecureContext") is False
        expect(page.locator("#outcome")).to_have_text("Hier können Sie gerade nicht antworten")
        assert "nicht über https geöffnet" in page.inner_text("main") and page.locator("form").count() == 0
        assert posts(asked) == []
    finally:
        other.close()


@pytest.mark.slow
def test_every_language_says_what_shuffling_adds(page: Any, parties: Shuffling, publish: Any) -> None:
    relay = {"name": "Relay", "url": parties.relay}
    page.goto(parties.address(publish(relay=relay)))
    for language, words in SHUFFLED.items():
        page.click(f".languages >> text={language}")
        for part in words:
            expect(page.locator("main")).to_contain_text(part)
        assert "{" not in page.inner_text("main") and "Relay" in page.inner_text(".parties")
    page.goto(parties.address(publish(invitations=True)))
    page.click(".languages >> text=English")
    assert SHUFFLED["English"][2] not in page.inner_text("main")


@pytest.mark.slow
def test_roles_that_one_party_runs_are_said(page: Any, parties: Shuffling, publish: Any) -> None:
    collection = publish(together=[["collector", "shuffler_2"]])
    page.goto(parties.address(collection))
    page.wait_for_selector("form")
    assert "Collector + Shuffler 2" in page.inner_text("main") and page.locator(".triple tbody tr").count() == 1
    page.goto(f"{parties.address(collection)}/privacy")
    assert "the collector and shuffler 2" in page.inner_text("main")


@pytest.mark.slow
def test_pages_of_shuffled_collections_are_accessible_and_fit(
    page: Any, parties: Shuffling, site: Site, publish: Any, days: Any
) -> None:
    checker, collection = Checker(page, site), publish(relay={"name": "Relay", "url": parties.relay})
    checker.open(f"/c/{collection}", "form")
    checker.open(f"/c/{collection}/privacy", "#shuffling")
    respond(page, parties.address(collection), "cat")
    page.click("text=Check whether it took part")
    page.expected = ["404"]
    page.wait_for_selector("[data-part=waiting]")
    checker.check("the receipt of a sealed report")
    sign_in(page, site)
    checker.open(f"/dashboard/collections/{collection}", "#session .triple")
    mine = parties.client.api("POST", "/collections", draft(parties, next(days))).json()["id"]
    checker.open(f"/dashboard/collections/{mine}", "#shuffle-terms")
    page.route("**/session.json", lambda route: route.fulfill(status=404, json={}))
    page.context.clear_cookies()
    checker.open(f"/c/{publish()}", "#outcome")
    page.click(".languages >> text=Deutsch")
    expect(page.locator("main")).to_contain_text("Gerade nimmt keine Sitzung Berichte an")
