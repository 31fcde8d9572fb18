"""What is installed is what collects: a wheel in a clean environment, its collector, and a survey in a browser."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from zipfile import ZipFile

import pytest
from tests.browser.conftest import listening

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("LICENSE", "README.md", "pyproject.toml", "setup.py", "js", "spec", "src", "tools")
MADE = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info", "bundle", "dist", "node_modules")
SECONDS = 240
DRAFT = {
    "title": "Coming to work",
    "questions": [
        {"name": "way", "text": "How?", "domain": {"kind": "categories", "labels": ["Foot", "Tram"]}},
        {"name": "smoker", "text": "Do you smoke?", "domain": {"kind": "booleans"}},
    ],
    "policy": "one_of",
    "epsilon": "1",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as a clean clone has them; the bundler's tools are those of this tree."""
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("setuptools is too old to build a wheel; run `make install`")
    target = tmp_path_factory.mktemp("tree")
    for name in NEEDED:
        source = ROOT / name
        shutil.copytree(source, target / name, ignore=MADE) if source.is_dir() else shutil.copy(source, target)
    workshop = ROOT / "build" / "js"
    workshop.mkdir(parents=True, exist_ok=True)
    (target / "build").mkdir()
    (target / "build" / "js").symlink_to(workshop)
    return target


def run(*command: Any, folder: Path, **rest: Any) -> subprocess.CompletedProcess[str]:
    """A command without the path of this source tree and, to stay fast, without a C compiler."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"CC": "no-compiler"}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, env=environment, text=True, capture_output=True, timeout=SECONDS, **rest)


def build(folder: Path, what: str, target: Path) -> Path:
    """The wheel or the source distribution of a tree."""
    script = f"from setuptools import build_meta; print(build_meta.build_{what}(sys.argv[1]))"
    done = run(sys.executable, "-c", "import sys; " + script, target, folder=folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return target / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, in which there is nothing to bundle with."""
    folder = tmp_path_factory.mktemp("built")
    source = build(tree, "sdist", folder)
    shutil.unpack_archive(source, folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    assert not (unpacked / "tools").exists()
    assert not (unpacked / "js").exists()
    return build(unpacked, "wheel", folder)


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel; what it depends on is borrowed from this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    # Not compiled: the few modules that a collector imports are compiled by the first command that needs them.
    quick = ("--no-deps", "--no-compile", "--no-index", "--disable-pip-version-check")
    done = run(sys.executable, "-m", "pip", "--python", python, "install", "-q", *quick, wheel, folder=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    (installed,) = folder.glob("lib/python*/site-packages")
    # A path in such a file is not searched for further ones, so the editable install of this tree stays out.
    (installed / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin"


@contextmanager
def served(programs: Path, data: Path, elsewhere: Path) -> Generator[str]:
    """`tacit serve` from another folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(programs / "tacit"), "serve", "--data", str(data), "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, cwd=elsewhere, env=environment) as process:
        try:
            while not is_ready(url):
                assert process.poll() is None, "the collector did not start"
                time.sleep(0.05)
            yield url
        finally:
            process.send_signal(signal.SIGTERM)


def is_ready(url: str) -> bool:
    with suppress(OSError), urlopen(f"{url}/readyz") as reply:
        return reply.status == 200
    return False


def scripts_in(wheel: Path) -> dict[str, bytes]:
    """The bundled scripts of a wheel by name."""
    start = "tacit/dashboard/bundle/"
    with ZipFile(wheel) as files:
        return {name.removeprefix(start): files.read(name) for name in files.namelist() if name.startswith(start)}


@pytest.mark.slow
def test_a_survey_is_answered_at_a_collector_that_was_installed_from_a_wheel(
    tree: Path, wheel: Path, programs: Path, page: Any, tmp_path: Path
) -> None:
    bundled = {path.name: path.read_bytes() for path in (tree / "js" / "dist").glob("*.js")}
    assert scripts_in(wheel) == bundled and bundled.keys() >= {"tacit.js", "tacit-grr.js", "tacit-compose.js"}
    elsewhere, data = tmp_path / "elsewhere", tmp_path / "data"
    elsewhere.mkdir()
    data.mkdir()
    (elsewhere / "draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")

    def tacit(*words: str) -> str:
        done = run(programs / "tacit", "collection", *words, "--data", data, folder=elsewhere)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    collection = tacit("publish", "draft.json")
    scripts: list[tuple[str, int]] = []

    def note(reply: Any) -> None:
        if "/js/" in reply.url:
            scripts.append((reply.url, reply.status))

    with served(programs, data, elsewhere) as url, listening(page, response=note):
        page.goto(f"{url}/c/{collection}")
        page.get_by_label("Tram", exact=True).check()
        page.get_by_label("Yes", exact=True).check()
        page.click("text=Show me what will be sent")
        page.click("text=Send this report")
        page.wait_for_selector("text=has arrived")
    assert json.loads(tacit("show", collection))["reports"] == 1
    # What the device has spent opens after the report was sent, and loads the module of accounts at its own time.
    before_it_was_sent = {name.rpartition("/")[2] for name, _ in scripts} - {"tacit-ticks.js"}
    assert before_it_was_sent == {"tacit.js", "tacit-compose.js", "tacit-grr.js"}
    assert {status for _, status in scripts} == {200}


@pytest.mark.slow
def test_a_wheel_that_is_built_without_a_source_distribution_has_the_same_scripts(
    tree: Path, wheel: Path, tmp_path: Path
) -> None:
    assert scripts_in(build(tree, "wheel", tmp_path)) == scripts_in(wheel) != {}


@pytest.mark.slow
def test_a_wheel_is_not_built_without_node_and_the_message_says_what_to_do(tree: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(tree, bare, ignore=MADE, symlinks=True)
    finder = bare / "tools" / "find_node.py"
    finder.write_text(finder.read_text(encoding="utf-8").replace("OLDEST = 18", "OLDEST = 999"), encoding="utf-8")
    script = "from setuptools import build_meta; build_meta.build_wheel('.')"
    done = run(sys.executable, "-c", script, folder=bare)
    assert done.returncode != 0
    assert "Node.js" in done.stderr and "source distribution" in done.stderr
