"""Drafts in files: JSON, or YAML where PyYAML is installed."""

import json
from typing import Any

import click

from tacit.cli.output import CommandRefused
from tacit.core.extras import load


def read_draft(path: str) -> Any:
    """Read a draft from a JSON or YAML file, or from standard input (-)."""
    with click.open_file(path, encoding="utf-8") as stream:
        text = stream.read()
    # JSON first, as it needs no library. Standard input has no suffix, so what is not JSON may still be YAML.
    if not path.endswith((".yaml", ".yml")):
        try:
            return json.loads(text)
        except ValueError:
            if path.endswith(".json"):
                raise CommandRefused(f"{path}: is not JSON") from None
    return _from_yaml(path, text)


def _line(text: str, mark: Any) -> str:
    """The line at fault, as an end of a sentence."""
    lines = text.splitlines()
    at = len(lines) if mark is None else int(mark.line)
    return f": {lines[at].strip()[:60]}" if at < len(lines) else ""


def _from_yaml(path: str, text: str) -> Any:
    yaml = load("yaml")
    try:
        draft = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        hint = "put text with a colon, a question mark or a bracket in quotes"
        raise CommandRefused(f"{path}{place}: is neither JSON nor YAML; {hint}{_line(text, mark)}") from None
    # YAML reads 1.0 as a float, which has no exact text; what was written is what is meant.
    if isinstance(draft, dict) and isinstance(draft.get("epsilon"), float):  # pyright: ignore[reportUnknownMemberType]
        draft["epsilon"] = repr(draft["epsilon"])  # pyright: ignore[reportUnknownArgumentType]
    return draft  # pyright: ignore[reportUnknownVariableType]
