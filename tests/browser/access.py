"""Is a page accessible, and does it fit its window? Judged by axe in the real browser."""

import os
from importlib import import_module
from typing import Any

import pytest

LOOKS = [("light", 390), ("dark", 1280)]
"""A telephone by day and a desk by night: both colour schemes and both widths, which do not depend on each other."""

_SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_VIOLATIONS = "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations)"


def find_axe() -> str:
    """The source of the checker; where the suite decides, it has to be there."""
    name = "axe_playwright_python.base"
    return (import_module(name) if os.environ.get("CI") == "true" else pytest.importorskip(name)).AXE_SCRIPT


class Checker:
    """Checks a page as it is now in every look: no violation, and nothing wider than the window."""

    def __init__(self, page: Any, site: Any) -> None:
        self._page, self._site, self._axe = page, site, find_axe()
        # A colour that is still on its way to another one would be judged by how it looks in between.
        page.emulate_media(reduced_motion="reduce")

    def check(self, what: str) -> None:
        """Check without loading anything, so that what was typed and opened stays."""
        page = self._page
        if page.evaluate("typeof axe === 'undefined'"):
            page.evaluate(self._axe)
        for scheme, width in LOOKS:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 850})
            page.evaluate(_SETTLED)  # Charts and tables follow the window a frame later.
            found = page.evaluate(_VIOLATIONS)
            where = f"{what}, {scheme}, {width} pixels"
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], where
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where

    def open(self, path: str, *steps: str) -> None:
        """Open a path, click through all steps but the last, wait for that one, and check the page."""
        self._page.goto(self._site.url + path)
        for step in steps[:-1]:
            self._page.click(step)
        self._page.wait_for_selector(steps[-1])
        self.check(path)
