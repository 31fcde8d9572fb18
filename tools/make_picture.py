"""Draw docs/dashboard.png: a collection of the demo as the dashboard shows it, in a real browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
TACIT = Path(sys.executable).with_name("tacit")
TARGET = ROOT / "docs" / "dashboard.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 120


def tacit(*words: str) -> str:
    return subprocess.run([TACIT, *words], check=True, capture_output=True, text=True).stdout.strip()


def wait_for(url: str) -> None:
    for _ in range(10 * SECONDS):
        with suppress(OSError), urlopen(f"{url}/readyz"):
            return
        time.sleep(0.1)
    sys.exit("the collector did not start")


def draw(url: str, token: str, title: str) -> None:
    """Open the collection of this title and keep what is seen of it."""
    path = os.environ.get("TACIT_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as programs:
        browser = programs.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 760}, color_scheme="light")
        page.context.add_cookies([{"name": "tacit_session", "value": token, "url": url}])
        page.goto(f"{url}/dashboard")
        page.get_by_role("link", name=title).first.click()
        page.wait_for_selector("canvas, svg.chart", timeout=1000 * SECONDS)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=TARGET)
        browser.close()


def main() -> None:
    title = sys.argv[1] if len(sys.argv) > 1 else "Getting to work"
    with socket.socket() as probe, TemporaryDirectory(prefix="tacit-picture-") as folder:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
        probe.close()
        tacit("demo", "--once", "--n", "20000", "--data", folder)
        token = tacit("token", "create", "--scope", "analyst", "--data", folder)
        url = f"http://127.0.0.1:{port}"
        with subprocess.Popen([TACIT, "serve", "--data", folder, "--port", port], stdout=subprocess.DEVNULL) as server:
            try:
                wait_for(url)
                draw(url, token, title)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
