"""Without an extra, every command says in one line which one is missing and how to install it."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tacit.core.extras import EXTRAS, load, missing_extra
from tacit.errors import InvalidSpec, MissingExtra

ROOT = Path(__file__).parents[3]
OPTIONAL = {"rich", "uvloop", "pyarrow"}
"""Tacit does without the first two; the third is also an extra by itself."""
NAMES = {"pyyaml": "yaml", "scikit-learn": "sklearn", "psycopg[binary]": "psycopg"}

COMMANDS: list[tuple[str, str]] = [
    *((module, "serve --data {}/new") for module in EXTRAS["collector"]),
    ("apsw", "collection list --data {}"),
    ("apsw", "backup {}/copy --data {}"),
    ("apsw", "restore {}/copy --data {}/other"),
    ("apsw", "demo --once"),
    ("starlette", "demo --once"),
    ("sqlglot", "demo --once"),
    ("sqlglot", "serve --data {} --pg-port 5433"),
    ("yaml", "collection create {}/draft.yaml --data {}"),
    ("psycopg", "serve --database postgresql://nowhere/x"),
    ("psycopg", "backup {}/other --database postgresql://nowhere/x"),
    ("sqlglot", "simulate analytics --data {}/rows.csv --private a:0-9 --epsilon 1 --sql SELECT"),
    ("pyarrow", "simulate analytics --data {}/rows.csv --private a:0-9 --epsilon 1 --sql SELECT"),
    ("scipy", "count design --n 3 --alpha 0.5"),
]

RUN = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
import numpy

def block(blocked):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tacit", blocked)]:
        del sys.modules[name]
    sys.modules[blocked] = None

def run(blocked, arguments):
    # Commands that lack the same module share what they have loaded without it.
    if sys.modules.get(blocked, True) is not None:
        for name in [name for name, module in sys.modules.items() if module is None]:
            del sys.modules[name]
        block(blocked)
    said = io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            from tacit.cli import main
            sys.argv = ["tacit", *arguments]
            main()
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = repr(error)
    return code, said.getvalue()

given = json.load(sys.stdin)
found = {i: run(*given[i]) for i in sorted(range(len(given)), key=lambda i: given[i][0])}
print(json.dumps([found[i] for i in range(len(given))]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, str]]:
    """What every command says without its module, all in one process."""
    folder = tmp_path_factory.mktemp("extras")
    (folder / "draft.yaml").write_text("title: x\n")
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    (folder / "copy").write_text("")
    given = [(module, command.replace("{}", str(folder)).split()) for module, command in COMMANDS]
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("place", range(len(COMMANDS)), ids=[f"{command.split()[0]}-{m}" for m, command in COMMANDS])
def test_a_command_without_its_extra_is_one_sentence(outcomes: list[tuple[object, str]], place: int):
    module, _ = COMMANDS[place]
    code, said = outcomes[place]
    extra = next(name for name, modules in EXTRAS.items() if module in modules)
    assert code == 2, said
    assert said.strip().splitlines() == [
        f"tacit: MissingExtra: {module} is not installed; it comes with the extra '{extra}': "
        f"python -m pip install 'tacit[{extra}]'"
    ]


LIGHT = [
    "tacit",
    "tacit.cli",
    "tacit.collector.server",
    "tacit.collector.pg.listen",
    "tacit.tasks.table",
    "tacit.client",
]


LOADS = """
import importlib, json, sys
found = {}
for module in json.load(sys.stdin):
    importlib.import_module(module)
    found[module] = [name for name in ('sqlglot', 'pyarrow', 'tacit.sql') if name in sys.modules]
print(json.dumps(found))
"""


def loaded_by(*modules: str) -> dict[str, list[str]]:
    """Parts of the SQL engine that are loaded after these imports, one after the other in a new process."""
    command = [sys.executable, "-c", LOADS]
    done = subprocess.run(command, input=json.dumps(modules), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_what_needs_no_sql_does_not_load_its_engine():
    """What none of them has loaded together, none has loaded alone; the last one shows that it would be noticed."""
    assert loaded_by(*LIGHT, "tacit.sql") == {module: [] for module in LIGHT} | {"tacit.sql": ["tacit.sql"]}


def test_sql_without_its_extra_names_it():
    script = "import sys; sys.modules['pyarrow'] = None; import tacit.sql.open"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "MissingExtra: pyarrow is not installed; it comes with the extra 'analytics'" in done.stderr


def test_every_dependency_of_an_extra_is_known():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra, wanted in project["optional-dependencies"].items():
        if extra in ("dev", "release", "site"):  # What makes the package, not what it imports.
            continue
        packages = {re.split(r"[>\[]", item)[0] for item in wanted}
        modules = {NAMES.get(package, package) for package in packages} - OPTIONAL
        assert modules <= set(EXTRAS.get(extra, ())), extra
    assert set(EXTRAS) <= set(project["optional-dependencies"])


def test_other_modules_that_are_missing_are_not_blamed_on_an_extra():
    assert missing_extra("tacit.nothing") is None and missing_extra(None) is None
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        load("nowhere.at_all")


def test_a_missing_extra_is_caught_as_what_tacit_raises_and_as_what_python_raises(monkeypatch: pytest.MonkeyPatch):
    for name in ("sklearn", "sklearn.svm"):  # The inner one may have been imported by another test.
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"tacit\[models\]") as caught:
        load("sklearn.svm")
    assert isinstance(caught.value, InvalidSpec) and isinstance(caught.value, ImportError)
