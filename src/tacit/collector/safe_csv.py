"""The only writer of CSV files, safe against formula injection: spreadsheets run text that begins like a formula."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category, normalize

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_QUOTED = re.compile(r'[",;|\t\r\n]|^\s|\s$')
"""Cells that must be quoted. Semicolons and tabs too: in some locales spreadsheets split at them."""
# The last one is U+2212, the minus sign.
_FORMULA = frozenset("=+-@\u2212")
_IGNORED = ("Cc", "Cf", "Zs", "Zl", "Zp")
"""Unicode categories of blanks, line breaks and invisible characters, which spreadsheets may skip before a formula."""


def harmless(text: str) -> str:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe; numbers stay as they are.

    Full-width and small forms of = + - @ count like the plain ones, also behind invisible characters.

    >>> [harmless(text) for text in ("=1+1", "\\ufeff\\uff1dA1", "-0.5", "a=b")]
    ["'=1+1", "'\\ufeff＝A1", '-0.5', 'a=b']
    """
    first = next((char for char in text if category(char) not in _IGNORED), "")
    begins = normalize("NFKC", first)[:1] in _FORMULA or text[:1] in ("\t", "\r", "\n")
    return "'" + text if begins and first and not _NUMBER.fullmatch(text) else text


def _cell(value: Any) -> str:
    """One cell: empty for None, numbers as Python writes them, text made harmless and quoted where necessary."""
    if value is None:
        return ""
    text = harmless(value) if isinstance(value, str) else str(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """The text of a CSV file; a row of one empty cell is written as "", because readers skip blank lines."""
    lines = (",".join(map(_cell, row)) for row in rows)
    return "".join(f"{line or EMPTY}\n" for line in lines)


EMPTY = '""'
"""A row whose only cell is empty."""
