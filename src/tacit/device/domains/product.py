"""Several attributes together, and the list of all kinds of domains."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, cast

from tacit.device.domains.domain import Attribute, Bits, Booleans, Categories, Domain, Ordered, Strings, listed
from tacit.device.domains.items import Items
from tacit.device.domains.optional import OptionalDomain
from tacit.device.domains.reals import Buckets, Integers
from tacit.device.domains.text import Text
from tacit.errors import InvalidSpec, InvalidValue

_MAX_ATTRIBUTES = 1024


@dataclass(frozen=True)
class Product(Domain):
    """Every combination of answers to several attributes; the first attribute is the most significant digit.

    An answer is a mapping by name, whose further keys are ignored, or a sequence in order of the attributes.
    The size may exceed 64 bits: mechanisms answer a projection, or one attribute after the other.

    >>> pair = Product((Booleans("smoker"), Integers("age", 0, 9)))
    >>> pair.encode({"age": 7, "smoker": True}), pair.decode(17), pair.project(["age"]).size
    (17, (True, 7), 10)
    """

    kind: ClassVar[str] = "product"

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        """Rebuild attributes that are given as specs, and refuse equal names."""
        attributes = tuple(_attribute(item) for item in listed(self.attributes, self.kind, "attributes"))
        self._set("attributes", attributes)
        if not 1 <= len(attributes) <= _MAX_ATTRIBUTES:
            raise InvalidSpec(f"product: attributes must be 1 to {_MAX_ATTRIBUTES} domains")
        if len(set(self.names)) < len(attributes):
            raise InvalidSpec("product: names of attributes must differ from each other")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the attributes, in order."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def size(self) -> int:
        """Number of combinations."""
        return prod(self.sizes)

    def project(self, names: Iterable[str]) -> "Product":
        """The product of some of the attributes, in the order they are named."""
        known = dict(zip(self.names, self.attributes, strict=True))
        chosen = listed(names, self.kind, "names")
        for name in chosen:
            if name not in known:
                raise InvalidSpec(f"product: there is no attribute '{name}', must be one of {', '.join(self.names)}")
        return Product(tuple(known[name] for name in chosen))

    def indices(self, value: Any) -> tuple[int, ...]:
        """The index of every attribute's answer."""
        return tuple(a.encode(v) for a, v in zip(self.attributes, self._answers(value), strict=True))

    def _answers(self, value: Any) -> Sequence[Any]:
        if isinstance(value, Mapping):
            answers = cast("Mapping[Any, Any]", value)
            for name in self.names:
                if name not in answers:
                    raise InvalidValue(f"{name}: the value is missing")
            return [answers[name] for name in self.names]
        if isinstance(value, (list, tuple)) and len(cast("Sequence[Any]", value)) == len(self.attributes):
            return cast("Sequence[Any]", value)
        count = len(self.attributes)
        raise InvalidValue(f"product: the value must be an object by attribute name or a list of {count} answers")

    def encode(self, value: Any) -> int:
        """The mixed-radix index of a combination."""
        return self.join(self.indices(value))

    def join(self, indices: Sequence[int]) -> int:
        """The index of a combination from the indices of its attributes."""
        index = 0
        for digit, size in zip(indices, self.sizes, strict=True):
            index = index * size + digit
        return index

    def split(self, index: int) -> tuple[int, ...]:
        """The indices of the attributes from the index of a combination."""
        digits: list[int] = []
        for size in reversed(self.sizes):
            index, digit = divmod(index, size)
            digits.append(digit)
        return tuple(reversed(digits))

    def _label(self, index: int) -> tuple[Any, ...]:
        return tuple(a.decode(i) for a, i in zip(self.attributes, self.split(index), strict=True))


DOMAINS: tuple[type[Domain], ...] = (
    Categories,
    Booleans,
    Integers,
    Buckets,
    Ordered,
    Bits,
    Text,
    Strings,
    Product,
    Items,
    OptionalDomain,
)


def domain_of(spec: Any) -> Domain:
    """The domain of a wire spec."""
    name = cast("dict[str, Any]", spec).get("kind") if isinstance(spec, dict) else None
    for domain in DOMAINS:
        if domain.kind == name:
            return domain.from_spec(cast("dict[str, Any]", spec))
    known = ", ".join(domain.kind for domain in DOMAINS)
    raise InvalidSpec(f"domain: kind must be one of {known}")


def _attribute(item: Any) -> Attribute:
    domain = domain_of(item) if isinstance(item, dict) else item
    if not isinstance(domain, Attribute):
        raise InvalidSpec("product: an attribute must be a domain with a name; products and sets do not nest")
    return domain
