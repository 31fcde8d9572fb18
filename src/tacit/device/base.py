"""What every mechanism has on the device: frozen fields that are the wire spec, checks, and a realised epsilon."""

from abc import abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from operator import index
from typing import Any, ClassVar, NoReturn, Self, cast

from tacit.device.arguments import KindType, takes_coins
from tacit.device.nested import rebuild
from tacit.device.numbers.budget import Amplified, Budget, Declared, Epsilon, Share, as_budget
from tacit.device.numbers.canonical import digest
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, log_upper
from tacit.errors import InvalidSpec, InvalidValue

_JSON_LIMIT = 1 << 53


def width_bytes(outcomes: int) -> int:
    """Bytes of the smallest little-endian integer (1, 2, 4 or 8 bytes) that can hold `outcomes` codes."""
    return next(width for width in (1, 2, 4, 8) if outcomes <= 1 << 8 * width)


def written(value: Any) -> Any:
    """A field as a spec has it: numbers from 2^53 on as text, tuples as lists, parts as their specs."""
    if isinstance(value, (Epsilon, Share, Amplified)):
        return value.to_spec()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if value >= _JSON_LIMIT else value
    if isinstance(value, Device):
        return value.spec()
    if isinstance(value, tuple):
        return [written(item) for item in cast("tuple[Any, ...]", value)]
    return value


def as_integer(value: Any) -> int | None:
    """An integer from an integer-like object or from digit text (as specs write large ones); None if it is not."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and value.isascii() and len(value) <= 20 else None
    try:
        return None if isinstance(value, bool) else index(value)
    except Exception:  # Whatever a foreign object raises could carry the value.
        return None


@dataclass(frozen=True, kw_only=True)
class Device(metaclass=KindType):
    """A mechanism as the device sees it. Its fields, with `kind`, are the spec; everything else is derived."""

    kind: ClassVar[str]
    fits_word: ClassVar[bool] = False
    """Whether a report can be written as one 64-bit word, which is what shufflers pass on."""

    epsilon: Declared

    def __init_subclass__(cls, **named: Any) -> None:
        """Let every kind refuse wrong coins with one message, before it draws any."""
        super().__init_subclass__(**named)
        for name in ("privatize", "privatize_one"):
            if name in vars(cls):
                setattr(cls, name, takes_coins(vars(cls)[name]))

    def __post_init__(self) -> None:
        """Make the budget, let the kind check its own fields, and look for budgets that hold only elsewhere."""
        self._set("epsilon", as_budget(self.epsilon))
        self._check_amplified()
        self._check()
        for part in self.parts:
            if isinstance(part.budget, Amplified) and not self._amplifies(part.budget):
                refuse_amplified(self.kind)

    def _check_amplified(self) -> None:
        """Refuse an amplified epsilon: without the padding and sampling around it, it spends more than it declares."""
        if isinstance(self.epsilon, Amplified):
            refuse_amplified(self.kind)

    @property
    def parts(self) -> "tuple[Device, ...]":
        """The mechanisms inside this one, found in its fields: their budgets are checked with it."""
        values = [getattr(self, f.name) for f in fields(self)]
        listed: list[tuple[Any, ...]] = [value if isinstance(value, tuple) else (value,) for value in values]
        return tuple(part for value in listed for part in value if isinstance(part, Device))

    def _amplifies(self, budget: Amplified) -> bool:
        """Whether this mechanism samples in the way that the amplified epsilon of a part of it needs."""
        del budget
        return False

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @abstractmethod
    def _check(self) -> None:
        """Refuse fields that cannot exist, and fill in defaults that depend on other fields."""

    @abstractmethod
    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """The noisy report on one private value: the reference for batches and for JavaScript."""

    @abstractmethod
    def realised_odds(self) -> Fraction:
        """The exact largest likelihood ratio of any report between any two values."""

    @property
    def value_count(self) -> int:
        """How many values there are: integers from 0 to one less."""
        return getattr(self, "size", 1 << 64)

    @property
    def domain_size(self) -> int:
        """How many answers the domain of its question has; 0 where a value is a list of answers to several."""
        return getattr(self, "size", self.value_count)

    @property
    def stated_size(self) -> int | None:
        """How many values this states as its `size`, so that it fits the nodes or cells of a family; else None."""
        return self.value_count if any(f.name == "size" for f in fields(self)) else None

    @property
    def first_value(self) -> Any:
        """A value that every mechanism of this kind accepts, to measure the width of a report with."""
        return 0

    @property
    def drawn_from(self) -> Any:
        """The `Family` of which one member is drawn and answered; None for a mechanism that draws none."""
        return None

    @property
    def per_question(self) -> "tuple[Device, ...]":
        """The mechanism of every question, where each question has one of its own; else this one alone."""
        return (self,)

    def split(self, report: bytes) -> tuple[int, bytes]:
        """A report as a batch states it: the member that was drawn, 0 where none is, and its payload."""
        return 0, report

    def join(self, member: int, payload: bytes) -> bytes:
        """The report of a member and its payload: what `split` took apart."""
        del member
        return payload

    def check_value(self, value: Any) -> None:
        """Refuse a value outside the domain, without showing it."""
        self._index(value, self.value_count)

    @property
    def coin_words(self) -> int | None:
        """Coin words that one report takes, for kinds that always take the same number; None for all others.

        Batches rely on it: they hand each report exactly so many words.
        """
        return None

    @property
    def budget(self) -> Budget:
        """The privacy budget: what one report may spend."""
        return as_budget(self.epsilon)

    @cached_property
    def odds(self) -> int:
        """floor(e^epsilon * 2^64), the bound that `realised_odds` never exceeds."""
        return self.budget.odds

    @property
    def declared_odds(self) -> Fraction:
        """The likelihood ratio that is declared, which `realised_odds` must not exceed."""
        return Fraction(self.odds, WORD)

    def realised_epsilon(self) -> float:
        """ln of `realised_odds`, rounded up to 30 decimals (more than any epsilon has), then to the nearest float."""
        return float(log_upper(self.realised_odds()))

    def holds(self) -> bool:
        """Whether the realised likelihood ratio stays within the declared one, in exact arithmetic."""
        return self.realised_odds() <= self.declared_odds

    def guarantees(self) -> "list[tuple[str, Fraction, Fraction]]":
        """(what is protected, realised odds, declared odds bound), one entry per guarantee of this kind."""
        return [("one report", self.realised_odds(), self.declared_odds)]

    def spec(self) -> dict[str, Any]:
        """The wire spec: kind and fields, with numbers from 2^53 on as text."""
        return {"kind": self.kind} | {f.name: written(getattr(self, f.name)) for f in fields(self)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical spec."""
        return digest(self.spec())

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Rebuild from a wire spec; unknown, missing and non-canonical fields are refused by name."""
        return rebuild(cls.kind, cls, (f.name for f in fields(cls)), spec)

    def _integer(self, name: str, low: int, high: int, hint: str = "") -> int:
        """Check an integer field (digit text is accepted for large ones) and store it as an int."""
        value = as_integer(getattr(self, name))
        if value is None:
            raise InvalidSpec(f"{self.kind}: {name} must be an integer from {low} to {high}")
        if value < low:
            raise InvalidSpec(f"{self.kind}: {name} is {value}, must be at least {low}{_because(hint)}")
        if value > high:
            raise InvalidSpec(f"{self.kind}: {name} is {value}, must be at most {high}{_because(hint)}")
        self._set(name, value)
        return value

    def _state(self, largest_counts: int) -> None:
        """Check the field `state`: counts of the whole domain, or a log of reports for lazy candidates."""
        state: Any = getattr(self, "state")  # noqa: B009 - declared by the kinds that keep either
        if state == "":
            state = "counts" if getattr(self, "size") <= largest_counts else "log"  # noqa: B009
            self._set("state", state)
        if state not in ("counts", "log"):
            raise InvalidSpec(f'{self.kind}: state must be "counts" (small domains) or "log" (lazy candidates)')

    def _size(self, high: int, hint: str = "") -> int:
        """Check the domain size."""
        value = getattr(self, "size")  # noqa: B009 - declared by the kinds that have a size
        if not isinstance(value, str) and hasattr(value, "__len__"):
            raise InvalidSpec(f"{self.kind}: size is the number of values, not the values; write len(…)")
        if value in (0, 1):
            hint = "a one-value domain carries no information, drop this attribute"
        return self._integer("size", 2, high, hint)

    def _index(self, value: Any, size: int) -> int:
        """A private value as an index below `size`; the message never shows the value."""
        found = None if isinstance(value, str) else as_integer(value)
        if found is None or not 0 <= found < size:
            raise InvalidValue(
                f"{self.kind}: the value is outside the domain, must be an integer from 0 to {size - 1}; "
                "encode answers with the domain of the collection"
            )
        return found


def refuse_amplified(kind: str) -> NoReturn:
    """Refuse an amplified epsilon where nothing proves that it holds."""
    raise InvalidSpec(
        f"{kind}: an amplified epsilon holds only inside padding and sampling of as many elements; use Padded.amplified"
    )


def _because(hint: str) -> str:
    return f"; {hint}" if hint else ""
