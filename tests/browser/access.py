"""Is a page accessible, and does it fit its window? Judged by axe in the real browser."""

import os
from importlib import import_module
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

LOOKS = [("light", 390), ("dark", 1280)]
"""A telephone by day and a desk by night: both colour schemes and both widths, which do not depend on each other."""

_SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Contrast is most of the work, and most of it is done again and again: all choices of a list have one colour, and all
# pages have one bar. Elements look the same if they and everything around them have the same tags, classes and states
# under the same style sheets, of which none chooses a colour by the place among siblings. So one element of each look
# is judged, unless an earlier state of the same test had it. Attributes that only name things are left out.
_CONTRAST = """async (known) => {
    const NAMES = /^(id|for|name|value|href|title|aria-(label|labelledby|describedby))$/;
    const own = (part) => [part.tagName, part.checked, ...[...part.attributes].map((one) =>
        NAMES.test(one.name) ? "" : `${one.name}=${one.value}`)].join(" ");
    const sheets = [...document.styleSheets].map(({ href }) => href).join(" ");
    const look = (part) => (part ? `${look(part.parentElement)} > ${own(part)}` : sheets);
    const says = (part) => part.matches("input, select, textarea") ||
        [...part.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const said = [...document.querySelectorAll("body *")].filter((part) => says(part) && part.checkVisibility());
    const looks = new Map(said.map((part) => [look(part), part]));
    for (const one of known) looks.delete(one);
    if (!looks.size) return { violations: [], looks: [] };
    const chosen = { include: [...looks.values()] };
    const { violations } = await axe.run(chosen, { resultTypes: ["violations"], runOnly: ["color-contrast"] });
    return { violations, looks: [...looks.keys()] };
}"""
# Everything else is about markup, which is the same in every look, but for what scrolls in a narrow window only.
_MARKUP = "axe.run({ resultTypes: ['violations'], rules: { 'color-contrast': { enabled: false } } })"
AXE_PATH = "/axe.js"


def find_axe() -> str:
    """The source of the checker; where the suite decides, it has to be there."""
    name = "axe_playwright_python.base"
    return (import_module(name) if os.environ.get("CI") == "true" else pytest.importorskip(name)).AXE_SCRIPT


async def serve_axe(request: Request) -> Response:
    """Answer with the checker: from an address of the site, which its policy allows, browsers keep it compiled."""
    del request
    return Response(find_axe(), media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})


class Checker:
    """Checks a page as it is now: no violation, and in no look anything wider than the window."""

    def __init__(self, page: Any, site: Any) -> None:
        find_axe()
        self._page, self._site, self._scheme = page, site, "light"
        self._known: dict[str, list[str]] = {scheme: [] for scheme, _ in LOOKS}
        # A colour that is still on its way to another one would be judged by how it looks in between.
        page.emulate_media(reduced_motion="reduce")

    def check(self, what: str) -> None:
        """Check without loading anything, so that what was typed and opened stays."""
        page = self._page
        if page.evaluate("typeof axe === 'undefined'"):
            page.add_script_tag(url=AXE_PATH)
        # The look that the window has now comes first: to change it costs as much as to judge a page.
        for scheme, width in sorted(LOOKS, key=lambda look: look[1] != page.viewport_size["width"]):
            self._dress(scheme, width)
            where = f"{what}, {scheme}, {width} pixels"
            judged = page.evaluate(_CONTRAST, self._known[scheme])
            self._known[scheme] += judged["looks"]
            _refuse(judged["violations"], where)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where
            if width == min(width for _, width in LOOKS):
                _refuse(page.evaluate(_MARKUP)["violations"], where)

    def _dress(self, scheme: str, width: int) -> None:
        page = self._page
        if scheme != self._scheme:
            page.emulate_media(color_scheme=scheme)
            self._scheme = scheme
        if page.viewport_size["width"] != width:
            page.set_viewport_size({"width": width, "height": 850})
        page.evaluate(_SETTLED)  # Charts and tables follow the window a frame later.

    def open(self, path: str, *steps: str) -> None:
        """Open a path, click through all steps but the last, wait for that one, and check the page."""
        self._page.goto(self._site.url + path)
        for step in steps[:-1]:
            self._page.click(step)
        self._page.wait_for_selector(steps[-1])
        self.check(path)


def _refuse(violations: list[Any], where: str) -> None:
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in violations] == [], where
