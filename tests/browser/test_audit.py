"""Audits of the client in a real browser: reports from outside, and requests that say nothing about the answer."""

from typing import Any

import pytest
from tests.browser.site import posts
from tests.browser.test_pages import COMMUTE, answer

from tacit.audit.client import audit_client
from tacit.audit.presets import preset_command
from tacit.audit.program import Program
from tacit.testing.examples import example


@pytest.mark.slow
def test_reports_of_the_browser_preset_are_valid(browser: Any) -> None:
    del browser  # Skipped where there is none.
    mechanism = example("oue", "4")
    (reports,) = Program(preset_command("browser", mechanism)).sample(mechanism, 1, 40)
    assert len(reports) == 40 and mechanism.valid(reports).all()


@pytest.mark.slow
def test_the_browser_preset_stands(browser: Any) -> None:
    """False-alarm probability 0.001; the epsilon that is seen shows that reports do depend on the value."""
    del browser
    mechanism = example("oue", "4")
    outcome = audit_client(mechanism, Program(preset_command("browser", mechanism)), runs=3_000, pairs=[(0, 1)])
    assert not outcome.refuted and outcome.worst.epsilon_lower > 1


@pytest.mark.slow
def test_size_and_headers_of_a_request_do_not_depend_on_the_answer(page: Any, asked: list[Any], site: Any) -> None:
    seen: list[tuple[int, dict[str, str]]] = []
    for label in ("Tram", "Car", "Tram"):
        collection = site.publish(**COMMUTE)
        page.goto(f"{site.url}/c/{collection}")
        answer(page, label)
        asked.clear()
        page.click("text=Send this report")
        page.wait_for_selector("text=has arrived")
        (request,) = posts(asked)
        # Where a request comes from is the page, whose address names the collection and nothing of the answer.
        headers = {name: value for name, value in request.all_headers().items() if name not in ("referer", ":path")}
        seen.append((len(request.post_data_buffer), headers))
    assert seen[0] == seen[1] == seen[2]
