"""Specs inside specs: rebuild a document from the inside out, without any kind knowing the others.

A spec that holds other mechanisms (one of several questions, all of them, a wrapper) nests their specs.
`build` turns every object that carries a ``kind`` into what it describes, innermost first, so that the
`from_spec` of the outer kind receives ready parts, but for its `own_parts`, which it builds itself. The caller
passes the lookup; nothing is imported upwards.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, cast

from tacit.errors import InvalidSpec

_MAX_DEPTH = 8


class HasSpec(Protocol):
    """A value that can be written as a wire spec."""

    def spec(self) -> dict[str, Any]:
        """The wire spec."""
        ...


Described = TypeVar("Described", bound=HasSpec)


def build(spec: Any, find: Callable[[dict[str, Any]], Any], depth: int = 0) -> Any:
    """The value of a wire spec; `find` gives the class of an object that carries a kind, or raises."""
    if depth > _MAX_DEPTH:
        raise InvalidSpec(f"spec: specs are nested more than {_MAX_DEPTH} deep")
    if isinstance(spec, dict):
        pairs = cast("dict[str, Any]", spec)
        if "kind" not in pairs:
            return pairs
        kind = find(pairs)
        own: tuple[str, ...] = getattr(kind, "own_parts", ())
        parts = {name: value if name in own else build(value, find, depth + 1) for name, value in pairs.items()}
        return kind.from_spec(parts)
    if isinstance(spec, list):
        return [build(item, find, depth + 1) for item in cast("list[Any]", spec)]
    return spec


def rebuild(kind: str, make: Callable[..., Described], known: Iterable[str], spec: dict[str, Any]) -> Described:
    """Make a value from the fields of its spec, which must be exactly the known ones, in canonical form."""
    names = list(known)
    given = {name: value for name, value in spec.items() if name != "kind"}
    for name in sorted(given.keys() - set(names)):
        raise InvalidSpec(f"{kind}: unknown field '{name}', must be one of {', '.join(sorted(names))}")
    for name in sorted(names):
        if name not in given:
            raise InvalidSpec(f"{kind}: field '{name}' is missing; a published spec states every field")
    made = make(**given)
    stated = made.spec()
    for name in names:
        if _written(given[name]) != stated[name]:
            raise InvalidSpec(f"{kind}: field '{name}' is not in canonical form")
    return made


def _written(value: Any) -> Any:
    """A field as the document wrote it: parts that were built become their specs again."""
    if isinstance(value, list):
        return [_written(item) for item in cast("list[Any]", value)]
    return value.spec() if hasattr(value, "spec") else value
