"""A real collector on loopback and the system's Chromium, for tests of the pages.

One browser, one browser context and one collector serve all tests of a worker: a page that is loaded for the first time
fetches some forty modules, and in a context of its own every test would fetch them again. What tests could tell each
other apart by is taken away between them: cookies, storage, and (in `Site.publish`) equal collections.
"""

import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from typing import Any

import pytest
from tests.browser.site import Site
from tests.service.memory import MemoryStore

from tacit.collector.http.app import App
from tacit.collector.server import running
from tacit.collector.service import Collector
from tacit.dashboard import routes

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENT_MILLISECONDS = 120_000
"""For anything that a page is waited for. Only a test that fails waits this long, so a slow machine fails none."""


def _absent(reason: str) -> None:
    """Skip, or fail where everything has to be tested."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def serving_site() -> Generator[Site]:
    """A collector with nothing in it."""
    collector = Collector(MemoryStore())
    app = App(collector, None, routes(collector))
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


@pytest.fixture(scope="session")
def browser() -> Generator[Any]:
    """Chromium of the system; nothing is downloaded."""
    path = os.environ.get("TACIT_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
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
    made = browser.new_context(**{"locale": "en-GB", "viewport": {"width": 1280, "height": 900}} | options)
    made.set_default_timeout(PATIENT_MILLISECONDS)
    return made


@pytest.fixture(scope="session")
def shared_context(browser: Any) -> Generator[Any]:
    made = _new_context(browser)
    yield made
    made.close()


@pytest.fixture
def context(shared_context: Any) -> Generator[Any]:
    """One person's browser, in English, without cookies and online; its cache is warm."""
    shared_context.clear_cookies()
    yield shared_context
    shared_context.set_offline(False)
    for page in shared_context.pages:
        page.close()


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


@pytest.fixture
def page(context: Any, request: pytest.FixtureRequest) -> Generator[Any]:
    """A page with empty storage, whose console must stay silent; `page.expected` names what a test provokes."""
    made, heard = context.new_page(), []
    if "site" in request.fixturenames:
        # Not only before the first test: what an earlier one kept for this collector would look like this one's.
        session = context.new_cdp_session(made)
        origin = request.getfixturevalue("site").url
        session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        session.detach()
    made.expected = []
    made.on("console", lambda message: heard.append(message.text) if message.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: heard.append(str(error)))
    yield made
    assert [words for words in heard if not any(part in words for part in made.expected)] == []
