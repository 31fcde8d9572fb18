"""Sets of listed items, such as a basket or the apps on a phone: the domain of padding and sampling."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast
from unicodedata import normalize

from tacit.device.base import as_integer
from tacit.device.domains.domain import Domain, bounded, checked_labels, spec_text
from tacit.errors import InvalidValue

MAX_NAME_BYTES = 64


def places_of(who: str, value: Any, size: int) -> tuple[int, ...]:
    """A private set as increasing places below `size`; the message never shows it."""
    given = isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes, Mapping))
    listed = list(cast("Sequence[Any]", value)) if given else [None]
    places = [None if isinstance(item, str) else as_integer(item) for item in listed]
    if any(place is None or not 0 <= place < size for place in places) or len(set(places)) < len(places):
        raise InvalidValue(
            f"{who}: the value is outside the domain, must be a list of different integers from 0 to {size - 1}; "
            "encode answers with the domain of the collection"
        )
    return tuple(sorted(cast("list[int]", places)))


@dataclass(frozen=True)
class Items(Domain):
    """Sets of items out of a list, the empty set included; `most` limits how many one answer may hold.

    >>> Items("basket", ("bread", "milk", "eggs"), most=2).encode(["eggs", "bread"])
    (0, 2)
    """

    kind: ClassVar[str] = "items"

    name: str
    labels: tuple[str, ...]
    most: int | None = None

    def __post_init__(self) -> None:
        """Check the name, the labels and the limit."""
        self._set("name", spec_text(self.name, self.kind, "name", MAX_NAME_BYTES))
        self._set("labels", checked_labels(self.name, self.labels))
        if self.most is not None:
            self._set("most", bounded(self.most, self.name, "most", 1, len(self.labels)))

    @property
    def _who(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        """Number of items, of which an answer holds some."""
        return len(self.labels)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self.labels)}

    def _label(self, index: int) -> str:
        return self.labels[index]

    def encode(self, value: Any) -> Any:
        """The places of the items, increasing; text is compared in normal form NFC."""
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Collection):
            raise self._refusal("must be a list of declared items")
        items = list(cast("Collection[Any]", value))
        places = {self._places.get(normalize("NFC", item)) if isinstance(item, str) else None for item in items}
        if None in places:
            raise self._refusal("must hold declared items only")
        if len(places) < len(items):
            raise self._refusal("must name an item once")
        if self.most is not None and len(items) > self.most:
            raise self._refusal(f"must have at most {self.most} items")
        return tuple(sorted(cast("set[int]", places)))

    def _refusal(self, rule: str) -> InvalidValue:
        return InvalidValue(f"{self.name}: the value is outside the domain, {rule}")
