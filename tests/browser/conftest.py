"""A real collector on loopback and the system's Chromium, for tests of the pages.

One browser, one tab and one collector serve all tests of a worker: a tab of its own costs as much as two page loads,
and in a context of its own every test would also fetch some forty modules again. What tests could tell each other apart
by is taken away between them: cookies, storage, what was emulated, and (in `Site.publish`) equal collections.
"""

import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from tests.browser.access import AXE_PATH, serve_axe
from tests.browser.site import Site
from tests.service.memory import MemoryStore
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.http.app import App
from tacit.collector.server import running
from tacit.collector.service import Collector
from tacit.collector.work import WorkLimits
from tacit.dashboard import routes

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WINDOW = {"width": 1280, "height": 900}
REST_PATH = "/rest"
PATIENT_MILLISECONDS = int(1000 * PATIENT_SECONDS)
"""For anything that a page is waited for. Only a test that fails waits this long, so a slow machine fails none."""


def _absent(reason: str) -> None:
    """Skip, or fail where everything has to be tested."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


async def empty_page(request: Request) -> Response:
    """An empty page that may load and send anything; with an icon, for which browsers would ask in vain otherwise."""
    del request
    content = '<!doctype html><html lang="en"><title>At rest</title><link rel="icon" href="/static/icon.svg">'
    return HTMLResponse(content, headers={"Content-Security-Policy": "default-src *"})


@contextmanager
def serving_site() -> Generator[Site]:
    """A collector with nothing in it."""
    collector = Collector(MemoryStore(), work=WorkLimits(seconds=PATIENT_SECONDS))
    app = App(collector, None, [Route(AXE_PATH, serve_axe), Route(REST_PATH, empty_page), *routes(collector)])
    with running(app) as served:
        yield Site(served.url, collector.access.create("admin", label="tests")[0], collector, count(1000))


@pytest.fixture(scope="session")
def shared_site() -> Generator[Site]:
    with serving_site() as site:
        yield site


@pytest.fixture
def site(shared_site: Site) -> Site:
    """A collector that other tests have published collections on; each test publishes its own."""
    return shared_site


@pytest.fixture
def fresh_site() -> Generator[Site]:
    """A collector that nobody else has used, for pages that list everything there is."""
    with serving_site() as site:
        yield site


def find_chromium() -> str | None:
    """The browser of the system, if there is one."""
    return os.environ.get("TACIT_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def browser() -> Generator[Any]:
    """Chromium of the system; nothing is downloaded."""
    path = find_chromium()
    if path is None:
        _absent("no Chromium: install the package 'chromium', or name one in TACIT_CHROMIUM")
    if find_spec("playwright") is None:
        _absent("no playwright: install tacit with its extra 'dev'")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENT_MILLISECONDS)
    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


def _new_context(browser: Any, **options: Any) -> Any:
    made = browser.new_context(**{"locale": "en-GB", "viewport": WINDOW} | options)
    made.set_default_timeout(PATIENT_MILLISECONDS)
    return made


class Tab:
    """The page that tests use one after the other; after one that failed it is closed, as nobody knows its state."""

    def __init__(self, context: Any, rest: str) -> None:
        self.context, self._rest = context, rest
        self._page: Any = None
        self._session: Any = None

    def opened(self) -> Any:
        """The page, at rest: empty, but of a collector, so that modules of the pages can be imported there."""
        if self._page is None:
            self._page = self.context.new_page()
            self._session = self.context.new_cdp_session(self._page)
            self.leave()
        return self._page

    def forget(self, origin: str) -> None:
        """Delete what pages of an origin have kept in the browser."""
        self._session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})

    def leave(self) -> None:
        """Leave a test's page: it asks and says nothing any more, and what it has said has been heard.

        The address to rest at is one of the same site: for any other, about:blank among them, browsers start a process.
        """
        self._page.goto(self._rest)

    def tidy(self) -> None:
        """Take back what a test may have set."""
        page = self._page
        page.unroute_all()
        page.emulate_media(color_scheme="light", reduced_motion="no-preference")
        if page.viewport_size != WINDOW:
            page.set_viewport_size(WINDOW)
        page.mouse.move(0, 0)

    def close(self) -> None:
        """Close every page."""
        for page in self.context.pages:
            page.close()
        self._page = None


@pytest.fixture(scope="session")
def tab(browser: Any, shared_site: Site) -> Generator[Tab]:
    context = _new_context(browser)
    yield Tab(context, shared_site.url + REST_PATH)
    context.close()


@pytest.fixture
def context(tab: Tab) -> Generator[Any]:
    """One person's browser, in English, without cookies and online; its cache is warm."""
    tab.context.clear_cookies()
    yield tab.context
    tab.context.set_offline(False)


@pytest.fixture
def new_context(browser: Any) -> Generator[Callable[..., Any]]:
    """Makes browsers of other people: with another language, another screen, or a finger."""
    contexts: list[Any] = []

    def make(**options: Any) -> Any:
        contexts.append(_new_context(browser, **options))
        return contexts[-1]

    yield make
    for context in contexts:
        context.close()


@contextmanager
def listening(page: Any, **listeners: Callable[[Any], None]) -> Generator[None]:
    """Hear events of a page that others will use as well."""
    for event, listener in listeners.items():
        page.on(event, listener)
    yield
    for event, listener in listeners.items():
        page.remove_listener(event, listener)


@pytest.fixture
def page(tab: Tab, context: Any, request: pytest.FixtureRequest) -> Generator[Any]:
    """A page with empty storage, whose console must stay silent; `page.expected` names what a test provokes."""
    del context
    made, heard, failed = tab.opened(), list[tuple[str, str]](), request.session.testsfailed
    for name in {"site", "fresh_site"}.intersection(request.fixturenames):
        # Not only before the first test: what an earlier one kept for this collector would look like this one's.
        tab.forget(request.getfixturevalue(name).url)
    made.expected = []

    def hear(message: Any) -> None:
        if message.type in ("error", "warning"):
            heard.append((message.text, message.location["url"]))

    with listening(made, console=hear, pageerror=lambda error: heard.append((str(error), made.url))):
        yield made
        if request.session.testsfailed > failed:
            return tab.close()
        tab.leave()
    tab.tidy()
    assert [one for one in heard if not any(part in one[0] for part in made.expected)] == []


@pytest.fixture
def asked(page: Any) -> Generator[list[Any]]:
    """Every request of the page so far."""
    requests: list[Any] = []
    with listening(page, request=lambda request: requests.append(request)):
        yield requests
