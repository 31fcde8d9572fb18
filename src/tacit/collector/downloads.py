"""Files that are handed out: their names say what they are of, in characters that every system takes."""

import re
from collections.abc import Mapping
from unicodedata import normalize

_MOST = 40
_OTHER = re.compile(r"[^a-z0-9]+")


def plain_word(text: str) -> str:
    """Text in lower-case letters, digits and hyphens, cut to a length; accents are dropped, other scripts are lost.

    >>> plain_word("Café & Bar: wie oft?"), plain_word("昼食")
    ('cafe-bar-wie-oft', '')
    """
    return _OTHER.sub("-", normalize("NFKD", text).encode("ascii", "ignore").decode().lower())[:_MOST].strip("-")


def file_name(title: Mapping[str, str], collection: str, what: str, end: str) -> str:
    """The name of a file: the collection's title, what of it, and the beginning of its id, to tell equal ones apart.

    >>> file_name({"en": "Coming to work"}, "0a791cb59d492cca", "answers", "csv")
    'coming-to-work-answers-0a791cb5.csv'
    """
    words = (title.get("en") or next(iter(title.values()), ""), what)
    parts = [plain_word(words[0]) or "collection", plain_word(words[1]), collection[:8]]
    return "-".join(part for part in parts if part) + f".{end}"


def disposition(name: str, kind: str = "attachment") -> dict[str, str]:
    """The header that names a download; `inline` for what is shown unless it is saved."""
    return {"content-disposition": f'{kind}; filename="{name}"'}
