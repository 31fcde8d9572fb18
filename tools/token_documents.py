"""Documents of version 3, which ask for anonymous tokens or keep reports, good and bad."""

from __future__ import annotations

from typing import Any

from shuffled_documents import RELAYED, second
from windowed_documents import ACCOUNT, DAILY

KEPT = {"reports": "until_closed"}
KEY = "c" + "5" * 510 + "b"


def third(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The same in version 3, which adds two fields to those of version 2."""
    return second(document) | {"version": 3, "tokens": None, "integrity": None} | changes


def admitting(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The same, by anonymous tokens."""
    return third(document, invitations=True, tokens={"key": KEY}) | changes


def good(plain: dict[str, Any]) -> list[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """From a document with one question about three answers."""
    return [
        ("version 3 that adds nothing", third(plain), [{"colour": "red"}]),
        ("tokens", admitting(plain), [{"colour": "red"}, {"colour": "blue"}]),
        ("kept reports", third(plain, integrity=KEPT), [{"colour": "red"}]),
    ]


def bad(plain: dict[str, Any], round: dict[str, Any]) -> list[tuple[str, Any]]:
    """Bad documents: of one with one question, and of a round of a plan."""
    keys = {
        "of 2047 bits": "7" + KEY[1:],
        "that is even": KEY[:-1] + "a",
        "that is short": KEY[2:],
        "in capitals": KEY.upper(),
        "that is a number": 5,
    }
    return [
        ("version 4", third(plain) | {"version": 4}),
        ("version 2 with tokens", admitting(plain) | {"version": 2}),
        ("version 3 without tokens stated", second(plain) | {"version": 3}),
        ("version 2 that keeps reports", third(plain, integrity=KEPT) | {"version": 2}),
        ("kept reports that are true", third(plain, integrity=True)),
        ("kept reports for ever", third(plain, integrity={"reports": "for_ever"})),
        ("kept reports with a further field", third(plain, integrity=KEPT | {"days": 3})),
        ("kept reports that are shuffled", third(plain, integrity=KEPT, shuffle=RELAYED)),
        ("kept reports of windows", third(plain, integrity=KEPT, windows=DAILY, account=ACCOUNT)),
        ("kept reports of rounds", third(round, integrity=KEPT)),
        ("tokens without invitations", admitting(plain, invitations=False)),
        ("tokens that are shuffled", admitting(plain, shuffle=RELAYED)),
        ("tokens with windows", admitting(plain, windows=DAILY, account=ACCOUNT)),
        ("tokens in rounds", admitting(round)),
        ("tokens that are true", admitting(plain, tokens=True)),
        ("tokens that are empty", admitting(plain, tokens={})),
        ("tokens with an exponent", admitting(plain, tokens={"key": KEY, "exponent": 3})),
        *((f"a key {name}", admitting(plain, tokens={"key": key})) for name, key in keys.items()),
    ]
