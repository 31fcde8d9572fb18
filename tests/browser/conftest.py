"""A real collector on loopback and Debian's Chromium, for tests of the pages."""

import os
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest

from tacit.collector.adapters.memory import MemoryStore
from tacit.collector.http_app import App
from tacit.collector.publish import close, create_draft, publish
from tacit.collector.server import running
from tacit.collector.service import Collector
from tacit.dashboard import routes

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _absent(reason: str) -> None:
    """Skip, or fail where everything has to be tested."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass
class Site:
    """A running collector."""

    url: str
    token: str
    collector: Collector

    def draft(self, **draft: Any) -> str:
        """Keep a draft and give its id."""
        return create_draft(self.collector.store, self.collector.planner, draft).id

    def publish(self, **draft: Any) -> str:
        """Publish a collection and give its id."""
        return publish(self.collector.store, self.collector.planner, self.draft(**draft)).id

    def close(self, collection: str) -> None:
        """Take no more reports."""
        close(self.collector.store, collection)

    def reports(self, collection: str) -> int:
        """How many reports were counted."""
        return self.collector.store.stored_reports(collection)


@pytest.fixture
def site() -> Generator[Site]:
    """A fresh collector over a store in memory."""
    collector = Collector(MemoryStore())
    app = App(collector, None, routes(collector))
    with running(app) as served:
        yield Site(served.url, collector.access.create("admin", label="tests")[0], collector)


@pytest.fixture(scope="session")
def browser() -> Generator[Any]:
    """Chromium of the system; nothing is downloaded."""
    path = os.environ.get("TACIT_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        _absent("no Chromium: install the package 'chromium', or name one in TACIT_CHROMIUM")
    if find_spec("playwright") is None:
        _absent("no playwright: install tacit with its extra 'dev'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def context(browser: Any) -> Generator[Any]:
    """One person's browser: empty storage, English."""
    made = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 900})
    yield made
    made.close()


@pytest.fixture
def page(context: Any) -> Generator[Any]:
    """A page whose console must stay silent; `page.expected` names what a test provokes."""
    made, heard = context.new_page(), []
    made.set_default_timeout(10_000)
    made.expected = []
    made.on("console", lambda message: heard.append(message.text) if message.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: heard.append(str(error)))
    yield made
    assert [words for words in heard if not any(part in words for part in made.expected)] == []
