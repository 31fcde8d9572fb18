"""Docstrings as the site shows them: an extension of griffe, which reads the package for the reference.

`tools/site.yml` names it; `tools/make_site.py` puts this folder on the path.
"""

from __future__ import annotations

from typing import Any

import griffe
from site_text import fenced, literal


class Docstrings(griffe.Extension):
    """Changes docstrings after they were read."""

    def on_object(self, *, obj: griffe.Object, **rest: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = literal(fenced(obj.docstring.value))
