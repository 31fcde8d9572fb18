"""The card "Integrity" in a real browser, on a dark phone: quiet with honest reports, an alarm with forged ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.browser.access import Checker
from tests.browser.site import Site, look_again, sign_in, wait_until

from tacit.collector.collections.publish import publish_document
from tacit.collector.ports import NewBatch
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.poisoning.attacks import Attack, fake_reports

LABELS = [f"answer {i}" for i in range(24)]
DRAFT: dict[str, Any] = {
    "title": "Habits",
    "epsilon": "1",
    "minimum_cohort": 100,
    "questions": [{"name": "habit", "text": "Which?", "domain": {"kind": "categories", "labels": LABELS}}],
}


def send(site: Site, collection: str, reports: Any, number: int) -> None:
    batch = NewBatch(collection, number.to_bytes(16, "little"), reports.tobytes(), len(reports), {})
    assert site.collector.store.add_batches([batch]) == ["stored"]


@pytest.mark.slow
def test_the_card_is_quiet_and_then_raises_an_alarm_with_raw_against_repaired(page: Any, site: Site) -> None:
    """A false alarm at first has probability below 0.003 by the budget; the seed is fixed."""
    # The planner would take the oracle of the least error, whose reports may show nothing.
    planned = site.collector.planner.plan(DRAFT)[0]
    collection = publish_document(
        site.collector.store, replace(planned, mechanism=OUE(size=len(LABELS), epsilon="1"))
    ).id
    mechanism: Any = site.collector.find(collection).mechanism
    send(site, collection, mechanism.privatize(np.arange(16_000) % 24, SimulationCoins(4)), 1)
    sign_in(page, site)
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site.url}/dashboard/collections/{collection}")
    card = page.locator("section", has=page.locator("#integrity-title"))
    expect(card.get_by_text("Nothing in these reports looks forged.")).to_be_visible()
    expect(card.get_by_text("If 1.0 % of all reports were forged, a share could move")).to_be_visible()
    send(site, collection, fake_reports(mechanism, Attack("mga", np.array([2, 7, 11, 19]), search=20_000), 800, 4), 2)

    def alarmed() -> bool:
        look_again(page)
        return card.locator("#integrity-state").inner_text() == "Alarm"

    wait_until(page, alarmed, "no alarm was shown")
    expect(card.get_by_text("Pushed together:")).to_contain_text("answer 2, answer 7, answer 11, answer 19")
    expect(card.locator("table").first.locator("tbody tr")).to_have_count(4)
    expect(card.get_by_text("nothing is changed by itself")).to_be_visible()
    card.get_by_text("What was looked at").click()
    expect(card.get_by_text("det_cosup")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    Checker(page, site).check("integrity")
