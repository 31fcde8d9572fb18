"""What the golden vectors are made from: one module per family of kinds, found by name, no registration.

A module may define

- ``CASES``: kind -> list of (name, spec, values). A spec may leave out ``kind`` and fields with a default;
  the file states all of them. Every value is answered with several seeds.
- ``BAD``: kind -> list of (name, case, error). A case has a ``spec`` and optionally a ``value`` or a
  ``report`` in hexadecimal; ``error`` is the name of the class that every implementation must raise.
  JSON numbers such as 8.0 are integers in JavaScript, so floats in bad cases need a fraction.
- ``FILES``: file name -> function that returns the content of a whole file.
"""

import importlib
import pkgutil
import traceback
from dataclasses import dataclass, field
from typing import Any

Good = tuple[str, str, dict[str, Any], list[Any]]
Bad = tuple[str, str, dict[str, Any], str]


@dataclass
class Loaded:
    """The cases of all modules, and what went wrong on the way."""

    good: list[Good] = field(default_factory=list[Good])
    bad: list[Bad] = field(default_factory=list[Bad])
    files: dict[str, Any] = field(default_factory=dict[str, Any])
    problems: list[str] = field(default_factory=list[str])

    def add(self, module: Any) -> None:
        """Take the cases of one module."""
        for kind, cases in getattr(module, "CASES", {}).items():
            self.good.extend((kind, *case) for case in cases)
        for kind, cases in getattr(module, "BAD", {}).items():
            self.bad.extend((kind, *case) for case in cases)
        self.files.update(getattr(module, "FILES", {}))


def load() -> Loaded:
    """Import every module of this package; one that fails is a problem, not the end."""
    loaded = Loaded()
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        try:
            loaded.add(importlib.import_module(f"{__name__}.{info.name}"))
        except Exception:
            loaded.problems.append(f"vector_cases/{info.name}.py cannot be read:\n{traceback.format_exc()}")
    return loaded
