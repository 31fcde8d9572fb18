"""Is a page accessible, and does it fit its window? Judged by axe in the real browser."""

import os
from importlib import import_module
from typing import Any

import pytest

LOOKS = [("light", 390), ("dark", 1280)]
"""A telephone by day and a desk by night: both colour schemes and both widths, which do not depend on each other."""

_SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Contrast is most of the work, and most of it is done again and again: all choices of a list have one colour. Elements
# look the same if they and everything around them have the same tags, classes and states, as no style sheet chooses
# a colour by the place among siblings. So one element of each look is judged. What only names things is left out.
_CONTRAST = """(() => {
    const NAMES = /^(id|for|name|value|href|title|aria-(label|labelledby|describedby))$/;
    const own = (part) => [part.tagName, part.checked, ...[...part.attributes].map((one) =>
        NAMES.test(one.name) ? "" : `${one.name}=${one.value}`)].join(" ");
    const look = (part) => (part ? `${look(part.parentElement)} > ${own(part)}` : "");
    const says = (part) => part.matches("input, select, textarea") ||
        [...part.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const said = [...document.querySelectorAll("body *")].filter(says);
    const include = [...new Map(said.map((part) => [look(part), part])).values()];
    return axe.run({ include }, { resultTypes: ["violations"], runOnly: ["color-contrast"] });
})()"""
# Everything else is about markup, which is the same in every look, but for what scrolls in a narrow window only.
_MARKUP = "axe.run({ resultTypes: ['violations'], rules: { 'color-contrast': { enabled: false } } })"


def find_axe() -> str:
    """The source of the checker; where the suite decides, it has to be there."""
    name = "axe_playwright_python.base"
    return (import_module(name) if os.environ.get("CI") == "true" else pytest.importorskip(name)).AXE_SCRIPT


class Checker:
    """Checks a page as it is now: no violation, and in no look anything wider than the window."""

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
            where = f"{what}, {scheme}, {width} pixels"
            self._judge(_CONTRAST, where)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where
            if width == min(width for _, width in LOOKS):
                self._judge(_MARKUP, where)

    def _judge(self, rules: str, where: str) -> None:
        found = self._page.evaluate(f"{rules}.then(({{ violations }}) => violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], where

    def open(self, path: str, *steps: str) -> None:
        """Open a path, click through all steps but the last, wait for that one, and check the page."""
        self._page.goto(self._site.url + path)
        for step in steps[:-1]:
            self._page.click(step)
        self._page.wait_for_selector(steps[-1])
        self.check(path)
