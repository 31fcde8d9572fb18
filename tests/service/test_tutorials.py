"""The commands of tutorials, typed as they stand: every box marked `sh`, in order, in one shell."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from tacit.cli import cli

ROOT = Path(__file__).resolve().parents[2]
BOX = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A collector on a busy machine answers 503 to a query that takes too long, and asks to be asked again.
PATIENT = """set -e
tacit() {
  if [ "$1" = query ]; then for i in 1 2 3 4 5; do command tacit "$@" && return 0; done; return 1; fi
  command tacit "$@"
}
"""


def script(page: str) -> str:
    return "\n".join(BOX.findall((ROOT / page).read_text(encoding="utf-8")))


PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "tacit serve" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_a_collector_in_the_background_is_waited_for(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    for at, line in enumerate(lines):
        if re.fullmatch(r"\s*tacit serve .*&", line):
            assert "/readyz" in lines[at + 1], f"{page.name}:{at + 1}"


@pytest.mark.parametrize("page", ["docs/tutorial/terminal.md", "docs/tutorial/embed.md"])
def test_commands_of_tutorials_exist_with_their_options(page: str) -> None:
    lines = [line for line in re.findall(r"tacit [a-z][^\n)]*", script(page)) if not line.startswith("tacit.")]
    assert len(lines) > 3
    for line in lines:
        command: Any = cli
        for word in line.split()[1:]:
            if isinstance(command, click.Group):
                command = command.get_command(click.Context(command), word)
                assert command is not None, line
        known = {flag for parameter in command.params for flag in parameter.opts}
        assert {word for word in line.split() if word.startswith("--")} <= known, line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("docs/tutorial/terminal.md", ["/c/", "below_minimum_cohort|no answers yet|estimate", "is closed"]),
        ("docs/tutorial/embed.md", [r"Delivery\(sent=1, pending=0, refused=0\)", "2.0", "usage"]),
    ],
)
def test_a_tutorial_can_be_typed(page: str, seen: list[str], tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    # Another port, as the usual one may be taken here; the page is not changed otherwise.
    text = PATIENT + script(page).replace(":8000", f":{port}")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TACIT_")}
    process = subprocess.Popen(
        ["bash", "-c", text], cwd=tmp_path, env=environment | {"PATH": path, "TACIT_PORT": port}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        code = process.wait(timeout=300)
    finally:
        # The collector is in the session of the shell and outlives it.
        os.killpg(process.pid, signal.SIGTERM)
    assert process.stdout is not None
    said = process.stdout.read()
    process.stdout.close()
    assert code == 0, said
    for words in seen:
        assert re.search(words, said), (words, said)
