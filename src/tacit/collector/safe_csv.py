"""The one writer of CSV files. They are opened in spreadsheets, which run text as a formula if it begins like one."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category, normalize

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_QUOTED = re.compile(r'[",;|\t\r\n]|^\s|\s$')
"""What has to stand in quotation marks; other separators than the comma are those of other countries' spreadsheets."""
_FORMULA = frozenset("=+-@\u2212")
_IGNORED = ("Cc", "Cf", "Zs", "Zl", "Zp")
"""Blanks, line breaks, byte order marks and other characters that nobody sees: spreadsheets may skip them."""


def harmless(text: str) -> str:
    """Text that a spreadsheet would run as a formula, with an apostrophe before it; numbers stay as they are.

    Full-width and small forms of = + - @ count like the plain ones, and so do they behind characters that nobody sees.

    >>> [harmless(text) for text in ("=1+1", "\\ufeff\\uff1dA1", "-0.5", "a=b")]
    ["'=1+1", "'\\ufeff＝A1", '-0.5', 'a=b']
    """
    first = next((char for char in text if category(char) not in _IGNORED), "")
    begins = normalize("NFKC", first)[:1] in _FORMULA or text[:1] in ("\t", "\r", "\n")
    return "'" + text if begins and first and not _NUMBER.fullmatch(text) else text


def _cell(value: Any) -> str:
    """One cell: nothing for None, numbers as Python writes them, text made harmless and quoted where it must be."""
    if value is None:
        return ""
    text = harmless(value) if isinstance(value, str) else str(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as the text of a CSV file; a row of one empty cell is quoted, so that it is no blank line."""
    lines = (",".join(map(_cell, row)) for row in rows)
    return "".join(f"{line or EMPTY}\n" for line in lines)


EMPTY = '""'
"""A row whose only cell is empty."""
