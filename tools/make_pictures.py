"""Draw the pictures of the survey tutorial: docs/tutorial/survey-*.png.

Usage: python tools/make_pictures.py

Starts a collector on loopback with made-up people, and takes pictures of its pages in the system's Chromium (or the one
that TACIT_CHROMIUM names). Noise is drawn anew, so that the numbers differ from run to run.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from tacit.collector.collections.publish import create_draft, publish
from tacit.collector.http.app import App
from tacit.collector.server import running
from tacit.collector.service import Collector
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.dashboard import COOKIE, routes
from tacit.device.numbers.coins import SystemCoins
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id

TARGET = Path(__file__).resolve().parents[1] / "docs" / "tutorial"
DESK, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
SERVICES = ["library", "canteen", "gym", "counselling"]
SURVEY: dict[str, Any] = {
    "title": "Student life",
    "about": "The student union asks how you live and what you use. It takes two minutes.",
    "epsilon": "2",
    "respondents": 8000,
    "questions": [
        {
            "name": "way",
            "text": "How do you come to the campus?",
            "domain": {"kind": "categories", "labels": ["on foot", "bicycle", "bus", "car"]},
        },
        {
            "name": "services",
            "text": "Which of these have you used this week?",
            "task": "shares",
            "domain": {"kind": "optional", "domain": {"kind": "items", "labels": SERVICES}},
        },
        {
            "name": "stress",
            "text": "How stressed are you?",
            "domain": {"kind": "ordered", "labels": ["not at all", "a little", "quite", "very"]},
        },
    ],
}


def people(n: int) -> list[list[Any]]:
    """Answers of made-up students."""
    rng = np.random.default_rng(1)
    ways, stress = rng.choice(4, n, p=[0.2, 0.45, 0.25, 0.1]), rng.choice(4, n, p=[0.15, 0.35, 0.3, 0.2])
    used = rng.random((n, len(SERVICES))) < [0.7, 0.55, 0.3, 0.08]
    return [[int(w), np.flatnonzero(u).tolist(), int(s)] for w, u, s in zip(ways, used, stress, strict=True)]


def send(page: Any, url: str, collection: str, mechanism: Any) -> None:
    """Perturb the answers of everybody and send the reports as one batch."""
    reports = mechanism.privatize(people(SURVEY["respondents"]), SystemCoins())
    members = np.unique(reports["member"]).tolist()
    parts = [reports["payload"][reports["member"] == member] for member in members]
    blocks = tuple(Block(member, len(part), part.tobytes()) for member, part in zip(members, parts, strict=True))
    body = encode_batch(Batch(collection, new_batch_id(), blocks))
    reply = page.request.post(f"{url}/c/{collection}/reports", data=body, headers={"Content-Type": MEDIA_TYPE})
    assert reply.status == 201, reply.text()


def draw(page: Any, url: str, collector: Collector) -> None:
    """Take all pictures."""
    draft = create_draft(collector.store, collector.planner, SURVEY).id
    page.goto(f"{url}/dashboard/collections/{draft}")
    page.wait_for_selector("text=points")
    page.screenshot(path=TARGET / "survey-builder.png")
    collection = publish(collector.store, collector.planner, draft).id
    send(page, url, collection, collector.find(collection).mechanism)
    page.goto(f"{url}/dashboard/collections/{collection}")
    page.wait_for_selector(f"text={SERVICES[0]}", state="attached")
    page.wait_for_selector("canvas >> nth=2")
    page.screenshot(path=TARGET / "survey-answers.png")
    page.set_viewport_size(PHONE)
    page.goto(f"{url}/c/{collection}")
    page.wait_for_selector("form")
    page.screenshot(path=TARGET / "survey-phone.png")


def main() -> None:
    """Run a collector in a temporary folder, and a browser that is signed in."""
    chromium = os.environ.get("TACIT_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        collector = Collector(SqliteStore(folder))
        with running(App(collector, None, routes(collector))) as served:
            browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport=DESK, locale="en-GB", color_scheme="light")
            token = collector.access.create("admin", label="pictures")[0]
            page.context.add_cookies([{"name": COOKIE, "value": token, "url": served.url}])
            draw(page, served.url, collector)
            browser.close()
    print("wrote", *(path.name for path in sorted(TARGET.glob("survey-*.png"))))


if __name__ == "__main__":
    main()
