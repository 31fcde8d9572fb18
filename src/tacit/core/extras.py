"""Optional dependencies: which extra of the package brings which library, and what to say where one is missing."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tacit.errors import MissingExtra

EXTRAS: dict[str, tuple[str, ...]] = {
    "collector": ("apsw", "chartkick", "httptools", "jinja2", "yaml", "segno", "starlette", "uvicorn"),
    "analytics": ("pyarrow", "sqlglot"),
    "postgres": ("psycopg",),
    "central": ("scipy",),
    "models": ("sklearn",),
    "pandas": ("pandas",),
    "polars": ("polars",),
    "plot": ("matplotlib",),
    "shuffle": ("cryptography", "gmpy2"),
    "spark": ("pyspark",),
    "oidc": ("authlib", "joserfc", "requests"),
}
"""The modules that every extra brings and that Tacit cannot do without where it uses them."""


def missing_extra(module: str | None) -> MissingExtra | None:
    """The error for a module that could not be imported; None if no extra brings it."""
    name = (module or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if name in modules:
            return MissingExtra(
                f"{name} is not installed; it comes with the extra '{extra}': python -m pip install 'tacit[{extra}]'"
            )
    return None


def load(module: str) -> Any:
    """Import a module of an extra; raises MissingExtra with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing_extra(error.name) or error from None


def is_installed(module: str) -> bool:
    """Whether a module is there, without importing it."""
    return find_spec(module) is not None


def need(*extras: str) -> None:
    """Raise MissingExtra unless all modules of these extras are there, before a command begins its work."""
    for extra in extras:
        for module in EXTRAS[extra]:
            if not is_installed(module):
                raise missing_extra(module) or MissingExtra(module)
