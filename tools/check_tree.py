"""Refuse files that do not belong in the repository, and code that has grown too long.

The forbidden names are put together from pieces, so that this file passes its own check.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_FOLDER_FILES = 22
"""Modules of one folder of the package: more than one can take in at a glance is more than one room."""
MIN_COMMENT_SHARE = 0.02
"""The least share of whole-line comments in the Python of the package."""

LOCK_FILES = (
    "*.lock",
    "*.lockb",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "pylock*.toml",
)

ROOT_FILES = frozenset({
    ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "LIMITATIONS.md", "Makefile", "README.md",
    "SECURITY.md", "constraints.txt", "pyproject.toml", "setup.py",
})  # fmt: skip
"""Every file at the root is meant to be there; what tools leave behind is not."""

REGISTRIES = (
    ("pypi", "org"),
    ("".join(("python", "hosted")), "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("yarnpkg", "com"),
    ("anaconda", "org"),
    ("crates", "io"),
    ("rubygems", "org"),
    ("maven", "org"),
    ("proxy", "golang", "org"),
)
REGISTRY = re.compile(r"\b(?:" + "|".join(r"\.".join(parts) for parts in REGISTRIES) + r")\b", re.IGNORECASE)

# Folders of somebody's machine: homes count with something inside, temporary folders on their own as well.
_HOMES = "|".join(("home", "Users", "root", "work", "workspace"))
_TEMPORARY = "|".join(("tmp", "var/tmp", "var/folders"))
MACHINE_PATH = re.compile(
    r"(?<![\w.~*)}\]])/"  # What precedes must not make it the tail of a relative path or an address.
    rf"(?:(?:{_HOMES})/[\w.-]|(?:{_TEMPORARY})(?![\w-]))"
    r"|\b[A-Z]:\\+Users\\"
)


def tree_files(root: Path) -> list[PurePosixPath]:
    """List the files git tracks or would track, relative to the root, those deleted left out."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    names = sorted(set(output.split("\0")) - {""})
    return [PurePosixPath(name) for name in names if (root / name).is_file()]


def read_text(path: Path) -> str | None:
    """Return a file's text, or None when it is not text."""
    content = path.read_bytes()
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def check_name(path: PurePosixPath) -> Iterator[str]:
    """Complain about lock files: they name hosts and are made again by every tool."""
    if any(fnmatch(path.name, pattern) for pattern in LOCK_FILES):
        yield f"{path}: is a lock file; exact versions belong in constraints.txt"


def check_place(path: PurePosixPath) -> Iterator[str]:
    """Complain about files at the root that nobody decided on."""
    if len(path.parts) == 1 and path.name not in ROOT_FILES:
        yield f"{path}: does not belong at the root; remove it, or add it to ROOT_FILES"


def check_text(path: PurePosixPath, text: str) -> Iterator[str]:
    """Complain about registry hosts and machine paths, line by line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := REGISTRY.search(line):
            yield f"{path}:{number}: names the package registry {found[0]}"
        if found := MACHINE_PATH.search(line):
            yield f"{path}:{number}: holds a path of one machine, {found[0]}"


def check_length(path: PurePosixPath, text: str) -> Iterator[str]:
    """Complain about shipped source files that are too long."""
    shipped = (path.parts[0], path.suffix) in {("src", ".py"), ("js", ".js")}
    lines = len(text.splitlines())
    if shipped and lines > MAX_FILE_LINES:
        yield f"{path}: has {lines} lines, must have at most {MAX_FILE_LINES}; split it by noun"


def check_functions(path: PurePosixPath, text: str) -> Iterator[str]:
    """Complain about Python functions of the package that are too long."""
    if not is_package_source(path):
        return
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"{path}:{error.lineno}: is not Python, {error.msg}"
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                where = f"{path}:{node.lineno}: {node.name}"
                yield f"{where} has {lines} lines, must have at most {MAX_FUNCTION_LINES}"


def is_package_source(path: PurePosixPath) -> bool:
    """Whether a path is Python of the package."""
    return path.parts[0] == "src" and path.suffix == ".py"


def check_folders(paths: list[PurePosixPath]) -> Iterator[str]:
    """Complain about folders of the package that hold too many modules."""
    modules = (path for path in paths if path.parts[0] == "src" and path.suffix in (".py", ".js"))
    for folder, count in sorted(Counter(path.parent for path in modules).items()):
        if count > MAX_FOLDER_FILES:
            yield f"{folder}: has {count} modules, must have at most {MAX_FOLDER_FILES}; make rooms of it"


def comment_share(texts: list[str]) -> float:
    """The share of lines that are nothing but a comment."""
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return sum(line.startswith("#") for line in lines) / max(1, len(lines))


def package_comment_share(root: Path) -> float:
    """The share of comment lines in the package's Python."""
    return comment_share([read_text(root / path) or "" for path in tree_files(root) if is_package_source(path)])


def check_comments(share: float) -> Iterator[str]:
    """Complain about a package that explains itself too little."""
    if share < MIN_COMMENT_SHARE:
        yield f"src: {share:.1%} of the lines are comments, must be at least {MIN_COMMENT_SHARE:.1%}; say why"


def names_in(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements of a module define, those below `if`, `try` and `with` included."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.Assign() | ast.AnnAssign() | ast.For():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (item.id for target in targets for item in ast.walk(target) if isinstance(item, ast.Name))
            case _:
                pass
        for inner in ("body", "orelse", "finalbody", "handlers"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from names_in(getattr(node, inner, ()))


def check_imports(root: Path, paths: Iterable[PurePosixPath]) -> Iterator[str]:
    """Complain about names that tests, tools and the like import from our own modules, and that are not there.

    The types of the package are checked by pyright; of all else, only a run would show that a name has gone.
    """
    python = [path for path in paths if path.suffix == ".py"]
    trees = {path: _parsed(read_text(root / path) or "") for path in python}
    modules = {_module_of(path): set(names_in(trees[path].body)) for path in python}
    for path in python:
        for node in () if is_package_source(path) else ast.walk(trees[path]):
            if isinstance(node, ast.ImportFrom) and node.module in modules and not node.level:
                known = modules[node.module]
                for alias in node.names:
                    missing = alias.name not in known and f"{node.module}.{alias.name}" not in modules
                    if missing and alias.name != "*" and "__getattr__" not in known:
                        yield f"{path}:{node.lineno}: imports {alias.name}, which {node.module} does not have"


def _parsed(text: str) -> ast.Module:
    """The tree of a file; an empty one where it is not Python, which is complained about elsewhere."""
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _module_of(path: PurePosixPath) -> str:
    parts = path.with_suffix("").parts[path.parts[0] == "src" :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def check_tree(root: Path) -> list[str]:
    """Return every complaint about the files under the root, in order of path."""
    paths = tree_files(root)
    complaints = [*check_folders(paths), *check_imports(root, paths)]
    for path in paths:
        complaints.extend((*check_name(path), *check_place(path)))
        text = read_text(root / path)
        if text is not None:
            for check in (check_text, check_length, check_functions):
                complaints.extend(check(path, text))
    return complaints


def main() -> int:
    """Check the repository this file is in; return the exit status."""
    root = Path(__file__).resolve().parent.parent
    share = package_comment_share(root)
    complaints = [*check_tree(root), *check_comments(share)]
    print(f"comments are {share:.1%} of the lines of src, {MIN_COMMENT_SHARE:.1%} are asked for")
    for complaint in complaints:
        print(complaint)
    if complaints:
        print(f"{len(complaints)} complaint(s) about the tree")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
