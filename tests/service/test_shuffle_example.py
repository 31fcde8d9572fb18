"""The walk through a shuffled collection in `examples/shuffle`, typed into one terminal as its page says."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.demo.serve import free_ports

EXAMPLE = Path(__file__).parents[2] / "examples" / "shuffle"
README = EXAMPLE / "README.md"
SCRIPTS = ("collector.sh", "relay.sh", "shuffler.sh")
PORTS = ("COLLECTOR", "RELAY", "ONE", "TWO", "THREE")


def commands() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def stub(folder: Path, text: str, name: str = "tacit") -> dict[str, str]:
    """An environment in which a command is something else."""
    command = folder / name
    command.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    command.chmod(0o755)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


def said(words: list[str], env: dict[str, str]) -> str:
    return subprocess.run(words, env=env, cwd=EXAMPLE, capture_output=True, text=True, check=True).stdout.strip()


def test_scripts_start_one_party_each(tmp_path: Path):
    env = stub(tmp_path, 'echo "$@"')
    assert said(["./collector.sh", "folder", "1"], env) == "serve --data folder --port 1"
    shown = said(["./shuffler.sh", "a folder", "2", "Some name", "key"], env)
    assert shown == "shuffler serve --data a folder --port 2 --name Some name --collector key"
    assert said(["./relay.sh", "3", "a", "b", "c"], env) == "relay serve --port 3 --to a --to b --to c"
    refused = subprocess.run(["./shuffler.sh", "folder"], cwd=EXAMPLE, env=env, capture_output=True)
    assert refused.returncode != 0 and refused.stdout == b""


def test_the_page_is_a_script_that_uses_every_file():
    script = "\n".join(commands())
    assert len(commands()) == 10
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr
    for name in (*SCRIPTS, "respondent.py"):
        assert name in script and (EXAMPLE / name).is_file()


@pytest.mark.slow
def test_the_page_works_as_it_is_written(tmp_path: Path):
    folder, tools = tmp_path / "example", tmp_path / "tools"
    shutil.copytree(EXAMPLE, folder)
    tools.mkdir()
    env = stub(tools, f'exec "{sys.executable}" -P -m tacit.cli "$@"')
    stub(tools, f'exec "{sys.executable}" "$@"', "python")
    env |= dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    script = "\n".join(["set -eu", "trap 'kill $(jobs -p) || true; wait' EXIT", *commands()])
    process = subprocess.Popen(
        ["bash", "-c", script], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        told = process.communicate(timeout=600)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
    assert process.returncode == 0, told
    assert told.count("sent: slot ") == 24
    assert "state: released" in told and "respondents: 24, fakes beside them: 60" in told
    assert "all shufflers signed the same 29 uploads" in told and "It does not prove" in told
    assert re.search(r"^.*,24,0\.95,4,", told, re.MULTILINE)
