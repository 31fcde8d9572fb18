"""Print reports that the JavaScript client makes in a real browser, for audits from outside.

`python -m tacit.audit.browser_reports MODULE SPEC VALUE RUNS` serves the folder of the module on loopback, opens an
empty page there in Chromium (extra `dev`: playwright), and prints what the module makes.
"""

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tacit.errors import ProgramFailed

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SCRIPT = Path(__file__).parent / "static" / "reports.js"
_PAGE = b"<!doctype html><title>audit</title>"
_AT_ONCE = 20_000
"""Reports per call into the page: a longer text would make the browser wait for the garbage collector."""


class _Folder(SimpleHTTPRequestHandler):
    """The files of one folder, an empty page, and the script that prints reports."""

    def do_GET(self) -> None:
        """Serve the page and the script from here, all else from the folder."""
        own = {"/": (_PAGE, "text/html"), "/audit-reports.js": (_SCRIPT.read_bytes(), "text/javascript")}
        if self.path not in own:
            return super().do_GET()
        content, kind = own[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: standard output is for reports."""


@contextmanager
def _serving(folder: Path) -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Folder, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _page(url: str) -> Generator[Any]:
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("TACIT_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if chromium is None:
        raise ProgramFailed("browser: there is no Chromium; install one, or name it in TACIT_CHROMIUM")
    with sync_playwright() as playwright:
        # Containers have no sandbox of their own kernel; the page runs our script alone.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            page.goto(url)
            yield page
        finally:
            browser.close()


def main(module: str, spec: str, value: str, runs: str) -> None:
    """Print so many reports on a value, made in the browser."""
    path, left = Path(module), int(runs)
    with _serving(path.parent) as url, _page(url) as page:
        while left:
            asked = min(left, _AT_ONCE)
            script = "async ([name, ...rest]) => (await import('/audit-reports.js')).lines(await import(name), ...rest)"
            sys.stdout.write(page.evaluate(script, [f"/{path.name}", spec, value, asked]))
            left -= asked


if __name__ == "__main__":
    main(*sys.argv[1:])
