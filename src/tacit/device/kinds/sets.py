"""Sets on the device: padding and sampling before a frequency oracle, and the number of candidates in a set.

A respondent holds a set of items. What is asked about are *candidates*: single items, or itemsets that the set may
contain. Padding to a public length makes sampling one of them reveal nothing about how many there are.
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, fields
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, Self, cast

from tacit.device.base import Device, refuse_amplified
from tacit.device.domains.items import places_of
from tacit.device.kinds.blocks import CBRDevice, SSDevice
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.local_hash import BLHDevice, OLHDevice
from tacit.device.kinds.unary import OUEDevice, RUEDevice, SUEDevice
from tacit.device.nested import rebuild
from tacit.device.numbers.budget import Amplified, Budget, Epsilon, as_budget, as_epsilon
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, ceil_div
from tacit.errors import InvalidSpec

MAX_ITEMS = 1 << 22
MAX_CANDIDATES = 1 << 16
MAX_LENGTH = 1 << 16

Itemsets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class SampledGRRDevice(GRRDevice):
    """Randomised response inside padding and sampling, where it may run at an amplified epsilon.

    Not a kind of its own: at an amplified epsilon it is built by `padded` alone, whose distinct dummies are the proof
    that it holds. Taken out of there it spends more than it declares, and `holds` says so.
    """

    padding: InitVar["PaddedDevice | None"] = None
    """The mechanism that is being built around this one."""

    def __post_init__(self, padding: "PaddedDevice | None") -> None:
        """An amplified epsilon needs padding to as many elements as it is amplified for, which is being built now."""
        budget = as_budget(self.epsilon)
        if isinstance(budget, Amplified) and (padding is None or not padding.awaits(budget)):
            refuse_amplified(self.kind)
        super().__post_init__()

    def _check_amplified(self) -> None:
        """Not here: `__post_init__` checks an amplified epsilon together with the padding around it."""

    @property
    def declared_odds(self) -> Fraction:
        """Those of the whole protocol, which randomised response alone exceeds."""
        budget = self.budget
        return Fraction(as_epsilon(budget.of).odds if isinstance(budget, Amplified) else self.odds, WORD)

    @cached_property
    def odds(self) -> int:
        """Odds that leave those of the whole within the declared ones, the unevenness of sampling included.

        The likeliest element is sampled with probability c/2^64, c = ceil(2^64/l), so the odds of the whole are
        1 + (odds - 1) c/2^64.
        """
        budget = self.budget
        if not isinstance(budget, Amplified):
            return budget.odds
        return WORD + (as_epsilon(budget.of).odds - WORD) * WORD // ceil_div(WORD, budget.sampled)


@dataclass(frozen=True, kw_only=True)
class SetDevice(Device):
    """What mechanisms on sets share: items, candidates and an inner oracle."""

    own_parts: ClassVar[tuple[str, ...]] = ("inner",)
    """Parts that this kind builds itself: an amplified epsilon is good nowhere else."""

    inner_kinds: ClassVar[tuple[type[Device], ...]] = ()

    epsilon: Budget | str
    size: int
    candidates: Itemsets = ()
    inner: Device

    def __post_init__(self) -> None:
        """Build the inner mechanism, which may be given as its spec, before the checks."""
        self._set("inner", self._built(self.inner))
        super().__post_init__()

    def _built(self, inner: Any) -> Device:
        spec = inner.spec() if isinstance(inner, Device) else inner
        name = str(cast("dict[str, Any]", spec).get("kind"))[:40] if isinstance(spec, dict) else "none"
        for kind in self.inner_kinds:
            if kind.kind == name:
                return inner if isinstance(inner, kind) else self._from_spec(kind, cast("dict[str, Any]", spec))
        known = ", ".join(kind.kind for kind in self.inner_kinds)
        raise InvalidSpec(f"{self.kind}: the inner kind is {name!r}, must be one of {known}")

    def _from_spec(self, kind: type[Device], spec: dict[str, Any]) -> Device:
        return kind.from_spec(spec)

    def _check(self) -> None:
        self._integer("size", 1, MAX_ITEMS, "name the candidates of interest first")
        self._set("candidates", checked_itemsets(self.kind, self.candidates, self.size))
        self._check_inner()

    def _check_inner(self) -> None:
        """Refuse an inner mechanism of another size, or one that spends more than is declared."""

    def _check_values(self, values: int) -> None:
        found = getattr(self.inner, "size")  # noqa: B009 - all inner kinds have a size
        if found != values:
            raise InvalidSpec(f"{self.kind}: the inner mechanism is for {found} values, must be for {values}")

    def _check_spent(self) -> None:
        if self.inner.budget.declared > self.budget.declared:
            raise InvalidSpec(f"{self.kind}: epsilon is below that of the inner mechanism")

    @property
    def value_count(self) -> int:
        """Sets are not indices, so the number of values is reported as unlimited."""
        return 1 << 64

    @property
    def first_value(self) -> Any:
        """The empty set."""
        return ()

    @property
    def choices(self) -> int:
        """Number of candidates."""
        return len(self.candidates) or self.size

    def check_value(self, value: Any) -> None:
        """Refuse a set with items outside the domain, or with repeated ones, without showing it."""
        self.items_of(value)

    def items_of(self, value: Any) -> tuple[int, ...]:
        """A private set as increasing items; the message never shows it."""
        return places_of(self.kind, value, self.size)

    def contained(self, value: Any) -> tuple[int, ...]:
        """Which candidates a set contains, increasing."""
        items = self.items_of(value)
        if not self.candidates:
            return items
        held = set(items)
        return tuple(i for i, itemset in enumerate(self.candidates) if held.issuperset(itemset))


def checked_itemsets(kind: str, given: Any, size: int) -> Itemsets:
    """Itemsets in canonical form: increasing items, itemsets in order, all different."""
    if not isinstance(given, (list, tuple)) or len(cast("Sequence[Any]", given)) > MAX_CANDIDATES:
        raise InvalidSpec(f"{kind}: candidates must be a list of at most {MAX_CANDIDATES} itemsets")
    itemsets = tuple(_checked_itemset(kind, itemset, size) for itemset in cast("Sequence[Any]", given))
    if any(first >= second for first, second in pairwise(itemsets)):
        raise InvalidSpec(f"{kind}: candidates must be in increasing order, each of them once")
    return itemsets


def _checked_itemset(kind: str, given: Any, size: int) -> tuple[int, ...]:
    items = tuple(cast("Sequence[Any]", given)) if isinstance(given, (list, tuple)) else ()
    inside = bool(items) and all(type(item) is int and 0 <= item < size for item in items)
    if not inside or any(first >= second for first, second in pairwise(items)):
        raise InvalidSpec(f"{kind}: a candidate must be a list of increasing integers from 0 to {size - 1}")
    return items


ORACLES: tuple[type[Device], ...] = (
    SUEDevice,
    OUEDevice,
    RUEDevice,
    BLHDevice,
    OLHDevice,
    SSDevice,
    CBRDevice,
)
"""Oracles that may stand behind a sampled element, besides randomised response."""


@dataclass(frozen=True, kw_only=True)
class PaddedDevice(SetDevice):
    """Padding and sampling: one element of the set, filled up to `length` with distinct dummies, through an oracle.

    The inner oracle is for the candidates (by default every item) and `length` dummies behind them. Sets of more than
    `length` candidates are sampled from evenly, which estimates low.
    """

    kind: ClassVar[str] = "padded"
    inner_kinds: ClassVar[tuple[type[Device], ...]] = (SampledGRRDevice, *ORACLES)

    length: int

    @classmethod
    def amplified(cls, *, epsilon: Budget | str, size: int, length: int, candidates: Itemsets = ()) -> Self:
        """With randomised response inside, at the epsilon that sampling one of `length` elements allows.

        There is none for shares of an epsilon, which are spent as they are.
        """
        budget = as_budget(epsilon)
        spent = Amplified(budget, length) if isinstance(budget, Epsilon) else budget
        inner = {"kind": "grr", "epsilon": spent.to_spec(), "size": (len(candidates) or size) + length}
        return cls(epsilon=budget, size=size, candidates=candidates, length=length, inner=cast("Device", inner))

    def _from_spec(self, kind: type[Device], spec: dict[str, Any]) -> Device:
        if not issubclass(kind, SampledGRRDevice):
            return kind.from_spec(spec)
        self._set("inner", spec)  # The device half of the inner mechanism may have been given to the server half.
        return rebuild(kind.kind, partial(kind, padding=self), (f.name for f in fields(kind)), spec)

    def awaits(self, budget: Amplified) -> bool:
        """Whether this is a mechanism whose inner one, at this budget, is still a spec."""
        return isinstance(self.inner, dict) and self._amplifies(budget)

    def _amplifies(self, budget: Amplified) -> bool:
        return budget.sampled == self.length

    def _check_inner(self) -> None:
        self._integer("length", 1, MAX_LENGTH)
        self._check_values(self.choices + self.length)
        self._check_spent()

    @property
    def coin_words(self) -> int | None:
        """One coin word to sample an element, then those of the inner oracle."""
        words = self.inner.coin_words
        return None if words is None else 1 + words

    def element(self, held: Sequence[int], place: int) -> int:
        """The element at a place of the padded set: a candidate, or the next of the dummies."""
        # The oracle's values:   candidates 0 .. choices - 1, then dummies choices .. choices + length - 1
        return held[place] if place < len(held) else self.choices + place - len(held)

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word for the place, then the report of the oracle on the element there."""
        held = self.contained(value)
        place = coins.uniform(max(len(held), self.length))
        return self.inner.privatize_one(self.element(held, place), coins)

    def realised_odds(self) -> Fraction:
        """The odds 1 + (R - 1) s, R those of the oracle and s the largest shift of probability between two sets.

        A report of randomised response speaks for one element, which is sampled with at most ceil(2^64/l)/2^64: this
        is exact. One of any other oracle may speak for every candidate of one set and for none of another: exact with
        at least `length` candidates or a length that is a power of two, else a bound within length/2^64.
        """
        return 1 + (self.inner.realised_odds() - 1) * Fraction(self._shifted_words(), WORD)

    def _shifted_words(self) -> int:
        most, least = ceil_div(WORD, self.length), WORD // self.length
        if isinstance(self.inner, GRRDevice):
            return most
        moved = min(self.choices, self.length)
        # Elements that both sets have may sit at places whose cells differ by a word.
        return min(WORD, moved * most + (self.length - moved) * (most - least))


@dataclass(frozen=True, kw_only=True)
class SetSizeDevice(SetDevice):
    """How many candidates a set contains, `most` and more counting alike, through an oracle on 0 .. most."""

    kind: ClassVar[str] = "set_size"
    inner_kinds: ClassVar[tuple[type[Device], ...]] = (GRRDevice, *ORACLES)

    most: int = 0

    def _check_inner(self) -> None:
        if self.most == 0:
            self._set("most", min(self.choices, MAX_LENGTH))
        self._integer("most", 1, min(self.choices, MAX_LENGTH))
        self._check_values(self.most + 1)
        self._check_spent()

    @property
    def coin_words(self) -> int | None:
        """The coin words of the inner oracle; counting the candidates takes none."""
        return self.inner.coin_words

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """The report of the oracle on the number of candidates."""
        return self.inner.privatize_one(min(len(self.contained(value)), self.most), coins)

    def realised_odds(self) -> Fraction:
        """As the oracle: every number is that of some set."""
        return self.inner.realised_odds()
