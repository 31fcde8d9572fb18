"""Canonical JSON and its digest: the identity of every spec.

Sorted ``[a-z_]+`` keys, no floats, integers below 2^53, other numbers as decimal text, NFC text without lone
surrogates, no whitespace, UTF-8. Two documents are the same collection if and only if these bytes agree.
"""

import json
import re
from hashlib import sha256
from typing import Any
from unicodedata import normalize

from tacit.errors import InvalidSpec

_KEY = re.compile(r"[a-z_]+")
_LIMIT = 1 << 53


def canonical(value: Any) -> bytes:
    """The canonical bytes of a JSON value, or InvalidSpec naming the place and the rule."""
    return json.dumps(_checked(value, "$"), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hexadecimal: the identity of a spec."""
    return sha256(canonical(value)).hexdigest()


def shortest_decimal(text: str) -> str:
    """The shortest plain decimal text of the same number: "-01.50" -> "-1.5"; zero has no sign."""
    whole, _, decimals = text.lstrip("-").partition(".")
    decimals = decimals.rstrip("0")
    short = str(int(whole)) + ("." + decimals if decimals else "")
    return "-" + short if text.startswith("-") and short != "0" else short


def _checked(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -_LIMIT < value < _LIMIT:
            raise InvalidSpec(f"{where}: an integer must be below 2^53 in size; write larger numbers as text")
        return value
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, (list, tuple)):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return [_checked(item, f"{where}[{i}]") for i, item in enumerate(items)]
    if isinstance(value, dict):
        pairs: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {_key(key, where): _checked(item, f"{where}.{key}") for key, item in pairs.items()}
    if isinstance(value, float):
        raise InvalidSpec(f"{where}: floats have no exact text; write the number as decimal text")
    raise InvalidSpec(f"{where}: a {type(value).__name__} has no canonical form; use text, integers, lists, objects")


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidSpec(f"{where}: keys must be lower-case words of letters and underscores")
    return key


def _text(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSpec(f"{where}: text contains a lone surrogate; it cannot be written as UTF-8") from None
    if normalize("NFC", text) != text:
        raise InvalidSpec(f"{where}: text must be in Unicode normal form NFC")
    return text
