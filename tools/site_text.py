"""What the site's renderer would misread in pages and docstrings, written so that it does not."""

from __future__ import annotations

import re

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1(?! *$).*)*", re.MULTILINE)
CODE = re.compile(r"(^```.*?^```|^ {4,}[^\n]*$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^(?:[-*]|\d+\.) ")


def fenced(text: str) -> str:
    """Text whose examples are fenced: an example ends at an empty line."""
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", text)


def literal(text: str) -> str:
    """Text in which two brackets in a row, as in P[i][j], are no reference to a page; code stays as it is."""
    parts = CODE.split(text)
    parts[::2] = [part.replace("][", "]\\[") for part in parts[::2]]
    return "".join(parts)


def separated(text: str) -> str:
    """Text in which lists stand apart: repositories begin one after any line, this renderer after an empty one."""
    lines: list[str] = []
    for line in text.split("\n"):
        above = lines[-1] if lines else ""
        if ITEM.match(line) and above and not ITEM.match(above) and not above.startswith(" "):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)
