"""Names of downloaded files: descriptive, and in ASCII characters that every file system accepts."""

import re
from collections.abc import Mapping
from unicodedata import normalize

_MOST = 40
_OTHER = re.compile(r"[^a-z0-9]+")


def plain_word(text: str) -> str:
    """A slug: lower-case ASCII letters, digits and hyphens, cut to a length. Other scripts are lost.

    >>> plain_word("Café & Bar: wie oft?"), plain_word("昼食")
    ('cafe-bar-wie-oft', '')
    """
    return _OTHER.sub("-", normalize("NFKD", text).encode("ascii", "ignore").decode().lower())[:_MOST].strip("-")


def file_name(title: Mapping[str, str], collection: str, what: str, end: str) -> str:
    """A file name: the collection's title, the kind of content, and the first digits of its id, to make it unique.

    >>> file_name({"en": "Coming to work"}, "0a791cb59d492cca", "answers", "csv")
    'coming-to-work-answers-0a791cb5.csv'
    """
    words = (title.get("en") or next(iter(title.values()), ""), what)
    parts = [plain_word(words[0]) or "collection", plain_word(words[1]), collection[:8]]
    return "-".join(part for part in parts if part) + f".{end}"


def disposition(name: str, kind: str = "attachment") -> dict[str, str]:
    """The Content-Disposition header; kind `inline` for content that browsers should show."""
    return {"content-disposition": f'{kind}; filename="{name}"'}
