"""LIKE and regular expressions of catalogue queries, in time that is linear in the text whatever the pattern.

Patterns come from whoever asks, and Python's own regular expressions hold every other thread while they go back and
forth. Arrow's are RE2's, which never go back. Texts are cut and patterns are limited, as both are about names.
"""

import re
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tacit.collector.pg.messages import PgError

LONGEST_TEXT, LONGEST_PATTERN = 1000, 256
"""Characters of a text that are looked at, and of a pattern."""


def like(value: Any, pattern: Any, escape: Any = "\\") -> int | None:
    r"""LIKE: % is any text, _ any character; only the last % is ever gone back to.

    >>> like("my_table", "my\\_%"), like("mytable", "my\\_%"), like("abc", "%b")
    (1, 0, 0)
    """
    if value is None or pattern is None:
        return None
    text, parts = str(value)[:LONGEST_TEXT], _like_parts(_short(pattern), str(escape)[:1])
    at = place = 0
    back: tuple[int, int] | None = None
    while at < len(text):
        if place < len(parts) and parts[place] == "any":
            back, place = (place + 1, at), place + 1
        elif place < len(parts) and parts[place] in ("one", "=" + text[at]):
            at, place = at + 1, place + 1
        elif back is not None:
            back = back[0], back[1] + 1
            place, at = back
        else:
            return 0
    return int(all(part == "any" for part in parts[place:]))


def _short(pattern: Any) -> str:
    found = str(pattern)
    if len(found) > LONGEST_PATTERN:
        raise PgError("54000", f"a pattern may have at most {LONGEST_PATTERN} characters")
    return found


@lru_cache(256)
def _like_parts(pattern: str, escape: str) -> tuple[str, ...]:
    found: list[str] = []
    literal = False
    for character in pattern:
        if not literal and character == escape:
            literal = True
            continue
        special = {"%": "any", "_": "one"}.get(character) if not literal else None
        found.append(special or "=" + character)
        literal = False
    return tuple(found)


def ilike(value: Any, pattern: Any, escape: Any = "\\") -> int | None:
    """LIKE without regard to case."""
    if value is None or pattern is None:
        return None
    return like(str(value)[:LONGEST_TEXT].lower(), _short(pattern).lower(), escape)


@lru_cache(256)
def _checked(pattern: str) -> str:
    """The expression as RE2 takes it; what would make it large is refused, as its size counts beside the text's."""
    plain = pattern.replace("\\\\", "x")
    if re.search(r"\\[pPCQ]|(?<!\\)\{", plain):
        raise PgError("0A000", "the regular expression is not understood", hint="Write names, classes and .* alone.")
    return "(?s)" + pattern


def regex(value: Any, pattern: Any, *, ignore_case: bool = False) -> int | None:
    """`~`, without counted repetitions, classes of scripts, and references back.

    >>> regex("people", "^(people|others)$"), regex("people", "^P"), regex("people", "^P", ignore_case=True)
    (1, 0, 1)
    """
    if value is None or pattern is None:
        return None
    text, expression = pa.scalar(str(value)[:LONGEST_TEXT]), _checked(_short(pattern))
    try:
        found = pc.match_substring_regex(text, expression, ignore_case=ignore_case)
    except pa.lib.ArrowException:
        raise PgError("2201B", "invalid regular expression") from None
    return int(found.as_py())
