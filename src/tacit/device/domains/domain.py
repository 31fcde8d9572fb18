"""Domains: what a question may be answered with, and the index that stands for each answer.

A domain is a frozen value whose fields are its wire spec. `encode` turns an answer into an index and `decode`
an index into a label. A value outside the domain is refused by an error that names the attribute and the rule
and never shows the value. Numbers are in `domains.reals`, several attributes in `domains.product`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self, cast
from unicodedata import normalize

from tacit.device.base import as_integer
from tacit.device.nested import rebuild
from tacit.device.numbers.canonical import digest
from tacit.device.numbers.hashing import text_id
from tacit.errors import InvalidSpec, InvalidValue

_SURROGATE = re.compile("[\\ud800-\\udfff]")

MAX_LABELS = 1 << 20
"""The largest domain whose labels are listed one by one."""

MAX_NAME_BYTES, MAX_LABEL_BYTES, MAX_STRING_BYTES = 64, 256, 1 << 16


def _spec_value(value: Any) -> Any:
    if isinstance(value, Domain):
        return value.spec()
    return [_spec_value(item) for item in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def listed(value: Any, who: str, what: str) -> tuple[Any, ...]:
    """The items of a list field; text and objects, which could be taken apart as well, are refused."""
    if isinstance(value, (str, dict)) or not isinstance(value, Iterable):
        raise InvalidSpec(f"{who}: {what} must be a list")
    return tuple(cast("Iterable[Any]", value))


def spec_text(value: Any, who: str, what: str, max_bytes: int) -> str:
    """A text field in normal form NFC, or InvalidSpec with the rule."""
    text = normalize("NFC", value) if isinstance(value, str) else ""
    if not 1 <= len(text.encode(errors="replace")) <= max_bytes or not is_text(text):
        raise InvalidSpec(f"{who}: {what} must be text of 1 to {max_bytes} bytes in UTF-8")
    return text


def is_text(value: Any) -> bool:
    """Whether this is text that can be written as UTF-8: no lone surrogates."""
    return isinstance(value, str) and not _SURROGATE.search(value)


def bounded(value: Any, who: str, what: str, low: int, high: int) -> int:
    """An integer field within bounds, or InvalidSpec with the rule."""
    number = None if isinstance(value, str) else as_integer(value)
    if number is None or not low <= number <= high:
        raise InvalidSpec(f"{who}: {what} must be an integer from {low} to {high}")
    return number


class Domain(ABC):
    """A set of answers, numbered from 0 to size - 1. Its fields, with `kind`, are the spec."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of answers."""

    @abstractmethod
    def encode(self, value: Any) -> int:
        """The index of an answer, or InvalidValue naming the attribute and the rule."""

    @abstractmethod
    def _label(self, index: int) -> Any:
        """The label of an index that is known to lie in the domain."""

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def _who(self) -> str:
        """What errors call this domain."""
        return self.kind

    def decode(self, index: int) -> Any:
        """The label of an index."""
        if not 0 <= index < self.size:
            raise InvalidValue(f"{self._who}: the index is outside the domain, must be from 0 to {self.size - 1}")
        return self._label(int(index))

    def all_labels(self) -> list[Any]:
        """All labels in order of their index, for domains of at most 2^20 answers."""
        if self.size > MAX_LABELS:
            raise InvalidSpec(f"{self._who}: {self.size} labels are not listed; name the candidates of interest")
        return [self._label(index) for index in range(self.size)]

    def encode_many(self, values: Iterable[Any]) -> list[int]:
        """The index of every answer."""
        return [self.encode(value) for value in values]

    def spec(self) -> dict[str, Any]:
        """The wire spec: kind and fields."""
        pairs = {f.name: _spec_value(getattr(self, f.name)) for f in fields(cast("Any", self))}
        return {"kind": self.kind} | pairs

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical spec."""
        return digest(self.spec())

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Rebuild from a wire spec; unknown and missing fields are refused by name."""
        return rebuild(cls.kind, cls, (f.name for f in fields(cast("Any", cls))), spec)


@dataclass(frozen=True)
class Attribute(Domain):
    """A domain with a name, which is what its errors begin with."""

    name: str

    def __post_init__(self) -> None:
        """Check the name, then let the kind check its own fields."""
        self._set("name", spec_text(self.name, self.kind, "name", MAX_NAME_BYTES))
        self._check()

    def _check(self) -> None:
        """Refuse fields that cannot exist, and bring the others into their canonical form."""

    @property
    def _who(self) -> str:
        return self.name


def checked_labels(who: str, given: Any) -> tuple[str, ...]:
    """The labels of a field: different texts in normal form NFC, or InvalidSpec with the rule."""
    labels = listed(given, who, "labels")
    if not 1 <= len(labels) <= MAX_LABELS:
        raise InvalidSpec(f"{who}: labels must be 1 to {MAX_LABELS} texts")
    labels = tuple(spec_text(label, who, "a label", MAX_LABEL_BYTES) for label in labels)
    if len(set(labels)) < len(labels):
        raise InvalidSpec(f"{who}: labels must differ from each other")
    return labels


@dataclass(frozen=True)
class Ordered(Attribute):
    """Labels in a meaningful order, such as answers from "never" to "always": ranges over them make sense.

    >>> Ordered("mood", ("bad", "fair", "good")).encode("fair")
    1
    """

    kind: ClassVar[str] = "ordered"

    labels: tuple[str, ...]

    def _check(self) -> None:
        self._set("labels", checked_labels(self.name, self.labels))

    @property
    def size(self) -> int:
        """One answer per label."""
        return len(self.labels)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self.labels)}

    def _label(self, index: int) -> str:
        return self.labels[index]

    def _unlisted(self) -> int:
        """The index of text that is not a label, or a refusal."""
        raise InvalidValue(f"{self.name}: the value is outside the domain, must be one of the declared labels")

    def encode(self, value: Any) -> int:
        """The place of a label; text is compared in normal form NFC."""
        if not isinstance(value, str):
            raise InvalidValue(f"{self.name}: the value must be text, one of the declared labels")
        place = self._places.get(normalize("NFC", value))
        return self._unlisted() if place is None else place


@dataclass(frozen=True)
class Categories(Ordered):
    """Labels without an order; `other` names a last bucket for every text that is not listed.

    >>> Categories("browser", ("Firefox", "Chrome"), other="another").encode("Lynx")
    2
    """

    kind: ClassVar[str] = "categories"

    other: str | None = None

    def _check(self) -> None:
        super()._check()
        if self.other is not None:
            self._set("other", spec_text(self.other, self.name, "other", MAX_LABEL_BYTES))
            if self.other in self.labels:
                raise InvalidSpec(f"{self.name}: other must differ from every label")

    @property
    def size(self) -> int:
        """One answer per label, and one for the other bucket where it is declared."""
        return len(self.labels) + (self.other is not None)

    def _label(self, index: int) -> str:
        return self.other if self.other is not None and index == len(self.labels) else self.labels[index]

    def _unlisted(self) -> int:
        return super()._unlisted() if self.other is None else len(self.labels)


@dataclass(frozen=True)
class Booleans(Attribute):
    """Yes or no: True is 1, False is 0; the integers 0 and 1 and the texts "true" and "false" say the same.

    >>> Booleans("smoker").encode("true")
    1
    """

    kind: ClassVar[str] = "booleans"

    @property
    def size(self) -> int:
        """Two answers."""
        return 2

    def _label(self, index: int) -> bool:
        return bool(index)

    def encode(self, value: Any) -> int:
        """0 or 1."""
        found = {"true": 1, "false": 0}.get(value) if isinstance(value, str) else _bit(value)
        if found is None:
            raise InvalidValue(f"{self.name}: the value is outside the domain, must be true or false")
        return found


@dataclass(frozen=True)
class Bits(Attribute):
    """Bit strings of a fixed length, first bit most significant: text such as "0110", or a list of 0 and 1.

    >>> Bits("flags", 4).encode("0110")
    6
    """

    kind: ClassVar[str] = "bits"

    length: int

    def _check(self) -> None:
        self._set("length", bounded(self.length, self.name, "length", 1, 64))

    @property
    def size(self) -> int:
        """2^length."""
        return 1 << self.length

    def _label(self, index: int) -> str:
        return f"{index:0{self.length}b}"

    def encode(self, value: Any) -> int:
        """The bits read as a binary number."""
        bits: list[Any] = list(value) if isinstance(value, (str, list, tuple)) else []  # pyright: ignore
        text = isinstance(value, str)
        found = [{"0": 0, "1": 1}.get(bit) if text else _bit(bit) for bit in bits]
        if len(bits) != self.length or None in found:
            raise InvalidValue(f"{self.name}: the value is outside the domain, must be {self.length} bits, 0 or 1 each")
        index = 0
        for bit in found:
            index = 2 * index + (bit or 0)
        return index


def _bit(value: Any) -> int | None:
    """0 or 1 from an integer or a boolean (numpy's included), else None."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return int(value)
    number = None if isinstance(value, str) else as_integer(value)
    return number if number in (0, 1) else None


@dataclass(frozen=True)
class Strings(Attribute):
    """Free text by a 64-bit keyed hash: nobody lists the domain, candidates are named when it is queried.

    The public `key` makes the ids of two collections differ. Two texts share an id with probability 2^-64.

    >>> Strings("word", key="2024-a", max_bytes=64).size == 2**64
    True
    """

    kind: ClassVar[str] = "strings"

    key: str
    max_bytes: int

    def _check(self) -> None:
        self._set("key", spec_text(self.key, self.name, "key", MAX_LABEL_BYTES))
        self._set("max_bytes", bounded(self.max_bytes, self.name, "max_bytes", 1, MAX_STRING_BYTES))

    @property
    def size(self) -> int:
        """All 64-bit ids."""
        return 1 << 64

    def _label(self, index: int) -> Any:
        raise InvalidSpec(f"{self.name}: an id cannot be turned back into text; encode the candidates instead")

    def encode(self, value: Any) -> int:
        """The id of a text in normal form NFC."""
        if not is_text(value) or len(normalize("NFC", value).encode()) > self.max_bytes:
            rule = f"must be text of at most {self.max_bytes} bytes in UTF-8"
            raise InvalidValue(f"{self.name}: the value is outside the domain, {rule}")
        return text_id(self.key, value)
