"""The gate on the repository's own files. Forbidden text is assembled, for this file is checked as well."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_tree", ROOT / "tools" / "check_tree.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gate = _load()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def write(root: Path, name: str, text: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def slash(*parts: str) -> str:
    return "/" + "/".join(parts)


def function(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


def test_a_clean_tree_has_no_complaints(repository: Path) -> None:
    write(repository, "src/tacit/a.py", function(60))
    write(repository, "README.md", f"see docs{slash('tmp', 'x')} and a{slash('home', 'page')}, or `.venv/bin`\n")
    assert gate.check_tree(repository) == []


@pytest.mark.parametrize("parts", gate.REGISTRIES, ids=".".join)
def test_every_registry_host_is_found_with_its_line(repository: Path, parts: tuple[str, ...]) -> None:
    write(repository, "docs/notes.md", "first\nhttps://files." + ".".join(parts) + "/simple\n")
    assert gate.check_tree(repository) == ["docs/notes.md:2: names the package registry " + ".".join(parts)]


@pytest.mark.parametrize(
    "text",
    [
        slash("home", "ada", "x"),  # a home directory
        slash("Users", "ada"),  # the same on macOS
        slash("root", ".cache"),  # the superuser's
        slash("tmp"),  # a temporary folder, bare
        'open("' + slash("tmp", "x") + '")',  # and in a string
        "${TMPDIR:-" + slash("tmp") + "}",  # and as a default of the shell
        slash("var", "tmp", "x"),
        "file://" + slash("home", "ada"),
        "C:" + "\\Users\\ada",
    ],
)
def test_machine_paths_are_found(text: str) -> None:
    assert len(list(gate.check_text(PurePosixPath("a.txt"), text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "https://example.test" + slash("home", "page"),  # the path of an address
        "demo" + slash("tmp", "x"),  # a relative path
        "{folder}" + slash("tmp", "x"),  # a path under a variable
        slash("tmpfs"),  # another word
        "GET " + slash("home"),  # a route, with nothing inside
        "tmp_path / 'x'",
    ],
)
def test_what_only_resembles_a_machine_path_passes(text: str) -> None:
    assert list(gate.check_text(PurePosixPath("a.txt"), text)) == []


@pytest.mark.parametrize(
    "name", ["js/package-lock.json", "js/yarn.lock", "a/uv.lock", "a/Pipfile.lock", "a/pnpm-lock.yaml", "js/bun.lockb"]
)
def test_lock_files_are_refused(repository: Path, name: str) -> None:
    write(repository, name, "")
    (complaint,) = gate.check_tree(repository)
    assert complaint.startswith(f"{name}: is a lock file")


def test_what_nobody_put_at_the_root_is_refused(repository: Path) -> None:
    write(repository, "bundle.js", "")
    write(repository, "docs/bundle.js", "")
    (complaint,) = gate.check_tree(repository)
    assert complaint.startswith("bundle.js: does not belong at the root")


@pytest.mark.parametrize("name", ["src/tacit/a.py", "js/src/a.js"])
def test_long_source_files_are_refused(repository: Path, name: str) -> None:
    write(repository, name, "\n" * 500)
    assert gate.check_tree(repository) == []
    write(repository, name, "\n" * 501)
    assert gate.check_tree(repository) == [f"{name}: has 501 lines, must have at most 500; split it by noun"]


def test_long_files_outside_the_shipped_sources_pass(repository: Path) -> None:
    write(repository, "spec/vectors/grr/a.json", "\n" * 501)
    write(repository, "tests/unit/test_a.py", function(61))
    assert gate.check_tree(repository) == []


def test_long_functions_are_refused_wherever_they_are_nested(repository: Path) -> None:
    nested = "class A:\n" + "".join("    " + line + "\n" for line in function(61).splitlines())
    write(repository, "src/tacit/a.py", nested)
    assert gate.check_tree(repository) == ["src/tacit/a.py:2: f has 61 lines, must have at most 60"]


def test_a_folder_with_too_many_modules_is_refused(repository: Path) -> None:
    for i in range(gate.MAX_FOLDER_FILES):
        write(repository, f"src/tacit/room/a{i}.py", "")
        write(repository, f"tests/unit/a{i}.py", "")
        write(repository, f"tests/unit/b{i}.py", "")  # Only the package has rooms.
    write(repository, "src/tacit/room/style.css", "")
    write(repository, "src/tacit/room/inner/b.py", "")  # A folder inside is a room of its own.
    assert gate.check_tree(repository) == []
    write(repository, "src/tacit/room/one_more.js", "")
    assert gate.check_tree(repository) == ["src/tacit/room: has 23 modules, must have at most 22; make rooms of it"]


def test_comments_are_counted_by_whole_lines_of_the_package(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repository, "src/tacit/a.py", "# why\nx = 1  # not a whole line\n    # indented\n\n")
    write(repository, "tests/unit/a.py", "# elsewhere\n")
    assert gate.package_comment_share(repository) == 0.5
    monkeypatch.setattr(gate, "MIN_COMMENT_SHARE", 0.5)
    assert list(gate.check_comments(0.5)) == []
    monkeypatch.setattr(gate, "MIN_COMMENT_SHARE", 0.51)
    assert list(gate.check_comments(0.5)) == ["src: 50.0% of the lines are comments, must be at least 51.0%; say why"]


def test_names_that_tests_import_and_that_have_gone_are_named(repository: Path) -> None:
    write(
        repository, "src/tacit/room/__init__.py", "try:\n    import numpy as np\nexcept ImportError:\n    np = None\n"
    )
    write(repository, "src/tacit/room/a.py", "class Old: ...\nONE, (TWO, _) = 1, (2, 3)\ndef f():\n    inner = 1\n")
    write(repository, "tests/helpers.py", "from tacit.room.a import Old as New\n")
    good = "from tacit.room import a, np\nfrom tacit.room.a import ONE, TWO, Old, f\nfrom tests.helpers import New\n"
    write(repository, "tests/unit/good.py", good + "from elsewhere import thing\nfrom .near import other\n")
    assert gate.check_tree(repository) == []
    write(
        repository, "tests/unit/bad.py", "from tacit.room.a import inner\ndef g():\n    from tests.helpers import Old\n"
    )
    assert gate.check_tree(repository) == [
        "tests/unit/bad.py:1: imports inner, which tacit.room.a does not have",
        "tests/unit/bad.py:3: imports Old, which tests.helpers does not have",
    ]


def test_a_file_that_does_not_parse_is_named(repository: Path) -> None:
    write(repository, "src/tacit/a.py", "def f(:\n")
    assert gate.check_tree(repository) == ["src/tacit/a.py:1: is not Python, invalid syntax"]


def test_ignored_deleted_and_binary_files_are_left_alone(repository: Path) -> None:
    write(repository, ".gitignore", "build\n")
    write(repository, "build/a.txt", slash("tmp"))
    write(repository, "gone.txt", slash("tmp"))
    subprocess.run(["git", "-C", str(repository), "add", "gone.txt"], check=True)
    (repository / "gone.txt").unlink()
    write(repository, "docs/picture.png", b"\0" + slash("tmp").encode())
    write(repository, "docs/latin.txt", b"\xff" + slash("tmp").encode())
    assert gate.check_tree(repository) == []


def test_this_repository_passes_its_own_text_rules() -> None:
    for name in ("tools/check_tree.py", "tests/unit/test_check_tree.py"):
        assert list(gate.check_text(PurePosixPath(name), (ROOT / name).read_text())) == []
