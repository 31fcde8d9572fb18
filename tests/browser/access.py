"""Is a page accessible, and does it fit its window? Judged by axe in the real browser."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

Check = Callable[..., None]


def find_axe() -> Any:
    """The checker; where the suite decides, it has to be there."""
    name = "axe_playwright_python.sync_playwright"
    return (import_module(name) if os.environ.get("CI") == "true" else pytest.importorskip(name)).Axe()


def check_page(axe: Any, page: Any, width: int, what: str = "") -> None:
    """No violation, and nothing wider than the window."""
    found = axe.run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], what
    assert page.evaluate("document.documentElement.scrollWidth") <= width, what


def checker(page: Any, site: Any, width: int) -> Check:
    """Opens a path, clicks through all steps but the last, waits for that one, and checks the page."""
    axe = find_axe()

    def check(path: str, *steps: str) -> None:
        page.goto(site.url + path)
        for step in steps[:-1]:
            page.click(step)
        page.wait_for_selector(steps[-1])
        check_page(axe, page, width, path)

    return check
