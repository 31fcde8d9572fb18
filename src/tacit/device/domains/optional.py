"""Questions that need not be answered: declining is an answer like any other, declared and reported with the noise.

Leaving a report out would tell something about whoever does it. So there is always a report, and nobody can see from
it whether its sender declined.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

from tacit.device.domains.domain import MAX_LABEL_BYTES, MAX_LABELS, Booleans, Categories, Domain, Ordered, spec_text
from tacit.device.domains.items import Items
from tacit.device.domains.reals import Buckets, Integers
from tacit.errors import InvalidSpec

KINDS: tuple[type[Domain], ...] = (Categories, Ordered, Booleans, Integers, Buckets, Items)
"""Domains that may be optional. Text need not be: its empty text says as much."""


@dataclass(frozen=True)
class OptionalDomain(Domain):
    """The answers of another domain, and a last one for whoever declines: None, or the label of that answer.

    Of sets, declining is one more item, which is then the only one in the set.

    >>> smoker = OptionalDomain(Booleans("smoker"), "prefer not to say")
    >>> smoker.size, smoker.encode(True), smoker.encode(None), smoker.decode(2)
    (3, 1, 2, 'prefer not to say')
    """

    kind: ClassVar[str] = "optional"

    domain: Domain
    declined: str
    """The label of the last answer."""

    def __post_init__(self) -> None:
        """Check that the domain can be optional, and that none of its labels is that of declining."""
        self._set("domain", _inner(self.domain))
        self._set("declined", spec_text(self.declined, self.name, "declined", MAX_LABEL_BYTES))
        if self.domain.size >= MAX_LABELS:
            raise InvalidSpec(f"{self.name}: an optional question may have at most {MAX_LABELS - 1} answers")
        if self.declined in (*getattr(self.domain, "labels", ()), getattr(self.domain, "other", None)):
            raise InvalidSpec(f"{self.name}: declined must differ from every label of the domain")

    @property
    def name(self) -> str:
        """The name of the wrapped domain."""
        return cast("Any", self.domain).name

    @property
    def _who(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        """One more than the domain."""
        return self.domain.size + 1

    def encode(self, value: Any) -> Any:
        """The index of an answer; the last one if there is none."""
        if value is not None and not (isinstance(value, str) and value == self.declined):
            return self.domain.encode(value)
        return (self.domain.size,) if isinstance(self.domain, Items) else self.domain.size

    def _label(self, index: int) -> Any:
        return self.declined if index == self.domain.size else self.domain.decode(index)


def _inner(given: Any) -> Domain:
    """The domain inside, which may be given as its spec."""
    name = cast("dict[str, Any]", given).get("kind") if isinstance(given, dict) else getattr(given, "kind", None)
    for kind in KINDS:
        if kind.kind == name:
            return given if isinstance(given, Domain) else kind.from_spec(cast("dict[str, Any]", given))
    raise InvalidSpec(f"optional: the kind of domain must be one of {', '.join(kind.kind for kind in KINDS)}")


def answered(domain: Domain) -> Domain:
    """The domain of those who do not decline: the one inside an optional one, else the domain itself."""
    return domain.domain if isinstance(domain, OptionalDomain) else domain
