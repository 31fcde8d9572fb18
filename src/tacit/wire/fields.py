"""Reading the objects of a document field by field: every field is stated, and none is unknown."""

from typing import Any, cast

from tacit.errors import InvalidSpec


def stated_fields(value: Any, where: str, known: "tuple[str, ...]") -> dict[str, Any]:
    """The fields of an object, which must be exactly the known ones; InvalidSpec names the first that is not."""
    if not isinstance(value, dict):
        raise InvalidSpec(f"{where} must be an object with the fields {', '.join(known)}")
    pairs = cast("dict[str, Any]", value)
    for name in sorted(set(pairs) - set(known)):
        raise InvalidSpec(f"{where}: unknown field '{name}', must be one of {', '.join(known)}")
    for name in known:
        if name not in pairs:
            raise InvalidSpec(f"{where}: field '{name}' is missing; a published document states every field")
    return pairs


def whole_number(value: Any, where: str, low: int, high: int) -> int:
    """An integer within these bounds; by `type`, as True is an int to isinstance."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidSpec(f"{where} must be an integer from {low} to {high}")
    return value


def is_short_text(value: Any, most: int) -> bool:
    """Whether this is text of 1 to `most` characters."""
    return isinstance(value, str) and 1 <= len(value) <= most
