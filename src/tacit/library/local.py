"""What is handed out: one value in, the bytes of one noisy report out. Needs neither numpy nor a network."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self, cast

from tacit.device.domains.domain import Domain, Ordered
from tacit.device.domains.items import Items
from tacit.device.domains.reals import Integers, as_number
from tacit.device.numbers.canonical import shortest_decimal
from tacit.device.numbers.coins import Coins, SystemCoins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.library.text import as_date, text_of
from tacit.wire.document import Collection


def _decimal(steps: int, decimals: int) -> str:
    """A whole number of units of the last decimal as the shortest text."""
    return shortest_decimal(format(Decimal(steps).scaleb(-decimals), "f"))


@dataclass(frozen=True)
class LocalDevice:
    """Perturbs the value of one respondent, on the respondent's own machine.

    It holds a collection document and how values are read, and nothing about anybody. A person who answers twice
    spends epsilon twice: `tacit.client.Respondent` keeps a ledger against that.
    """

    collection: Collection
    decimals: int = 0
    """Numbers are rounded to so many decimals."""
    missing: str | None = None
    """The answer that None stands for."""

    def __call__(self, value: Any, *, coins: Coins | None = None) -> bytes:
        """Return the report on a value (of several questions: by their names); a wrong one is refused, never shown."""
        return self.collection.mechanism.privatize_one(self.encode(value), coins or SystemCoins())

    def encode(self, value: Any) -> Any:
        """The value as the mechanism takes it."""
        questions = self.collection.questions
        # A row of a DataFrame has its answers by name, and is no Mapping.
        if hasattr(value, "keys") and not isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", dict(value))
        if len(questions) == 1 and not isinstance(value, Mapping):
            value = {questions[0].name: value}
        answers = cast("Mapping[str, Any]", value if isinstance(value, Mapping) else {})
        read = {q.name: self._read(q.domain, answers[q.name]) for q in questions if q.name in answers}
        return self.collection.encode(read)

    def _read(self, domain: Domain, value: Any) -> Any:
        """An answer in the words of its domain."""
        value = self.missing if value is None else value
        if isinstance(domain, Ordered):
            return text_of(value)
        if isinstance(domain, Items):
            is_set = isinstance(value, (list, tuple, set, frozenset))
            return [text_of(item) for item in cast("Iterable[Any]", value)] if is_set else value
        return self.scaled(domain, value) if self.decimals else as_date(value)

    def scaled(self, domain: Domain, value: Any) -> int:
        """A number in units of the last decimal, rounded half to even; never shown where it is none."""
        number = as_number(value.item() if hasattr(value, "item") else value)
        if number is None or not isinstance(domain, Integers):
            raise InvalidValue(f"{getattr(domain, 'name', 'value')}: the value must be a finite number")
        steps = round(number * 10**self.decimals)
        if not domain.low <= steps <= domain.high:
            # The grid is an inner matter: people know the ends that were declared.
            low, high = (_decimal(end, self.decimals) for end in (domain.low, domain.high))
            raise InvalidValue(f"{domain.name}: the value is outside the domain, must be a number from {low} to {high}")
        return steps

    @property
    def epsilon(self) -> Any:
        """What one report spends."""
        return self.collection.epsilon

    def spec(self) -> dict[str, Any]:
        """Everything there is to hand out, as JSON."""
        return {"document": self.collection.to_json(), "decimals": self.decimals, "missing": self.missing}

    @classmethod
    def from_spec(cls, spec: Any) -> Self:
        """Make the device again, elsewhere; the document is checked as clients check it."""
        fields = cast("dict[str, Any]", spec) if isinstance(spec, dict) else {}
        if fields.keys() != {"document", "decimals", "missing"} or type(fields["decimals"]) is not int:
            raise InvalidSpec("device: the spec must have document, decimals and missing, as device.spec() gives them")
        return cls(Collection.from_json(fields["document"]), fields["decimals"], fields["missing"])

    def __repr__(self) -> str:
        mechanism = self.collection.mechanism
        return f"<device: {mechanism.kind}, epsilon {self.epsilon}; call it with one value for the bytes of a report>"
