"""What a test of pages does at a collector without a page: publish, close, count, and sign a browser in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.collections.publish import close, create_draft, publish
from tacit.collector.service import Collector
from tacit.dashboard import COOKIE
from tacit.wire.batch import batch_to_json, decode_batch


@dataclass
class Site:
    """A running collector."""

    url: str
    token: str
    collector: Collector
    _days: Iterator[int]

    def draft(self, **draft: Any) -> str:
        """Keep a draft and give its id."""
        return create_draft(self.collector.store, self.collector.planner, draft).id

    def publish(self, **draft: Any) -> str:
        """Publish a collection that no other test has, and give its id.

        A collection is named by the digest of its document, so that equal drafts would be one collection, with the
        reports of every test that published it. No test looks at the retention, which is another one each time.
        """
        draft = {"retention_days": next(self._days)} | draft
        return publish(self.collector.store, self.collector.planner, self.draft(**draft)).id

    def close(self, collection: str) -> None:
        """Take no more reports."""
        close(self.collector.store, collection)

    def reports(self, collection: str) -> int:
        """How many reports were counted."""
        return self.collector.store.stored_reports(collection)


def sign_in(page: Any, site: Site) -> None:
    """Give the browser the cookie of somebody who has signed in; test_pages.py fills in the form itself."""
    cookie = {"name": COOKIE, "value": site.token, "url": site.url, "httpOnly": True, "sameSite": "Strict"}
    page.context.add_cookies([cookie])


def posts(asked: list[Any]) -> list[Any]:
    """Of all requests those that could carry an answer."""
    return [request for request in asked if request.method == "POST"]


def sent_batch(site: Site, collection: str, request: Any) -> dict[str, Any]:
    """The JSON form of the batch that a browser sent as bytes."""
    widths = site.collector.find(collection).widths
    return batch_to_json(decode_batch(request.post_data_buffer, widths), widths)


def wait_until(page: Any, holds: Callable[[], bool], what: str = "it never came to be") -> None:
    """Wait for what no selector can say; meanwhile playwright handles what the browser says."""
    end = monotonic() + PATIENT_SECONDS
    while not holds():
        assert monotonic() < end, what
        page.wait_for_timeout(20)


def look_again(page: Any) -> None:
    """Come back to a page that shows counts: it asks for them at once instead of after seconds."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
