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


def command_of(words: list[str]) -> Any:
    """The command that a line names; None if there is none."""
    command: Any = cli
    for word in words:
        if word.startswith("-") or not isinstance(command, click.Group):
            return command
        command = command.get_command(click.Context(command), word)
        if command is None:
            return None
    return command


def wrong_words(line: str) -> str:
    """Why a line cannot be typed: there is no such command, or it has no such option."""
    line = re.split(r" [|;&#>] ", line)[0]
    command = command_of(line.split()[1:])
    if command is None:
        return "no command"
    known = {"--help"}.union(*(parameter.opts + parameter.secondary_opts for parameter in command.params))
    return " ".join(sorted(set(re.findall(r"(?<=\s)--[a-z][a-z0-9-]*", line)) - known))


TYPED = re.compile(r"(?:^(?:    |\$ )?|[`(])(?:\.venv/bin/)?(tacit [a-z][^`\n]*)", re.MULTILINE)
SAID = re.compile(r"tacit (?:collects|shuffles|relays) at |tacit user")
FOLDERS = ("README.md", "docs/*.md", "docs/tutorial/*.md", "docs/howto/*.md", "docs/maths/*.md", "js/*.md",
           "examples/**/*.md", "deploy/*")  # fmt: skip


def test_every_command_in_any_page_exists_with_its_options() -> None:
    """What nothing runs, such as transcripts and hints, can at least be typed."""
    wrong, seen = [], 0
    for page in sorted(path for folder in FOLDERS for path in ROOT.glob(folder) if path.is_file()):
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in TYPED.findall(text):
            seen += 1
            if not SAID.match(line) and (why := wrong_words(line)):
                wrong.append(f"{page.name}: {line}: {why}")
    assert seen > 200 and not wrong, wrong
    assert (
        wrong_words("tacit serv --data x") == "no command" and wrong_words("tacit serve --dat x | cat --n") == "--dat"
    )


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
