"""The pages of the documentation site: gathered, in order, and built without a warning where the renderer is there."""

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> dict[str, Any]:
    """A module of tools/, which import each other by their names."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return runpy.run_path(str(ROOT / "tools" / f"{name}.py"))
    finally:
        sys.path.remove(str(ROOT / "tools"))


SITE, TEXT = tool("make_site"), tool("site_text")


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    SITE["stage"](folder)
    return folder


def test_every_page_has_a_place_and_every_place_a_page(staged: Path) -> None:
    placed = list(SITE["pages_in"](SITE["whole_nav"](staged)))
    pages = {path.relative_to(staged).as_posix() for path in staged.rglob("*.md")}
    assert set(placed) == pages and len(placed) == len(pages)
    assert {"README.md", "docs/tutorial/survey.md", "docs/decisions/index.md", "reference/client.md"} <= pages


def test_links_to_what_is_no_page_become_text_and_lists_stand_apart() -> None:
    page = Path("docs/howto/x.md")
    text = "See [code](../../src/tacit/errors.py), [page](cli.md#a) and [site](https://a.example).\n- one\n- two\n"
    made = SITE["readable"](text, page, {"docs/howto/cli.md"})
    assert made == "See code, [page](cli.md#a) and [site](https://a.example).\n\n- one\n- two\n"
    fenced = "```\n[code](../x.py)\n- one\n```\n"
    assert SITE["readable"](fenced, page, set()) == fenced


def test_examples_are_fenced_and_brackets_of_mathematics_are_no_links() -> None:
    assert TEXT["literal"]("    a[i][j]\n\nP[i][j]") == "    a[i][j]\n\nP[i]\\[j]"
    text = "Words.\n\n>>> f(1)\n[1, 2]\n>>> [3]\n[3]\n\nMore `a[i][j]` and P[i][j].\n"
    made = TEXT["literal"](TEXT["fenced"](text))
    assert made == ("Words.\n\n```pycon\n>>> f(1)\n[1, 2]\n>>> [3]\n[3]\n```\n\nMore `a[i][j]` and P[i]\\[j].\n")


def test_every_room_of_the_reference_exists_and_private_modules_are_left_out() -> None:
    for room in SITE["ROOMS"]:
        assert (ROOT / "src" / "tacit" / room).is_dir() or (ROOT / "src" / "tacit" / f"{room}.py").is_file()
    assert "::: tacit.client.trustee" in SITE["reference"]("client") and "._" not in SITE["reference"]("device")


def test_the_reference_begins_with_what_is_called_without_its_room() -> None:
    page = SITE["front"]()
    names = "ask heavy_hitters histogram itemsets marginals mean plan_epsilon quantiles ranges table"
    assert [line.removeprefix("## tacit.") for line in page.splitlines() if line.startswith("## ")] == names.split()
    assert "::: tacit.library.shares.histogram\n" in page and "tacit.histogram(values, epsilon" in page


def test_what_tells_what_to_do_is_found_before_why_and_how(staged: Path) -> None:
    last = ["docs/decisions/0001-state-is-data.md", "reference/client.md", "CHANGELOG.md"]
    assert all((staged / page).read_text(encoding="utf-8").startswith(SITE["BOOSTED"]) for page in last)
    assert (staged / "docs/howto/deploy.md").read_text(encoding="utf-8").startswith("# ")


def test_versions_are_listed_newest_first_and_a_version_once(tmp_path: Path) -> None:
    for version in ("0.9", "0.10", "0.9"):
        SITE["note_version"](tmp_path, version)
    text = (tmp_path / "versions.json").read_text()
    assert text.index('"0.10"') < text.index('"0.9"') and text.count("latest") == 1
    assert "url=0.10/" in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("the extra `site` is not installed; `make site` installs it")
    command = [sys.executable, str(ROOT / "tools" / "make_site.py"), "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    (version,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert (version / "search" / "search_index.json").stat().st_size > 1 << 20
    assert "Trustee" in (version / "reference" / "client" / "index.html").read_text(encoding="utf-8")
