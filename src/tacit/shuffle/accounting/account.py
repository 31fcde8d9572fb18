"""The certified accountants behind two questions: which delta holds at an epsilon, and which epsilon at a delta."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import log, sqrt

from tacit.device.base import Device
from tacit.device.families.compose import OneOfDevice
from tacit.device.numbers.exact import log_upper
from tacit.errors import InvalidSpec
from tacit.shuffle.accounting.blanket import COARSE, FINE, TAIL, Blanket
from tacit.shuffle.accounting.cells import ANY_HASH, Cells, cells_of
from tacit.shuffle.accounting.clone import Clones
from tacit.shuffle.accounting.solve import Curve, smallest_claim

BLANKET, CLONES = "amp_blanket", "amp_clone"
"""Ids of the certified accountants, as certificates name them."""


@dataclass(frozen=True)
class ShuffledCrowd:
    """A mechanism, at least n honest respondents and so many honest fakes, whose reports arrive in random order.

    >>> from tacit import GRR
    >>> crowd = ShuffledCrowd(GRR(size=1024, epsilon="4"), n=100_000)
    >>> crowd.accountant, crowd.epsilon(1e-9)
    ('amp_blanket', Decimal('0.03532'))
    """

    mechanism: Device
    n: int
    fakes: int = 0
    hashing: str = ANY_HASH
    accountant: str = ""

    def __post_init__(self) -> None:
        """Choose the accountant: the blanket of kinds that have one, else clones."""
        if isinstance(self.mechanism, OneOfDevice):
            raise InvalidSpec(
                "one_of: groups are labelled in their reports and shuffle on their own; account for each member "
                "with the least size of its own group, and take the largest epsilon"
            )
        for name, value in (("n", self.n), ("fakes", self.fakes)):
            if type(value) is not int or value < 0:
                raise InvalidSpec(f"shuffle: {name} is {value}, must be a whole number of at least 0")
        best = CLONES if self.cells is None else BLANKET
        object.__setattr__(self, "accountant", self.accountant or best)
        if self.accountant not in (BLANKET, CLONES) or (self.accountant == BLANKET and self.cells is None):
            raise InvalidSpec(
                f"shuffle: accountant is {self.accountant[:40]!r}, must be {best} for {self.mechanism.kind}"
            )

    @cached_property
    def cells(self) -> Cells | None:
        """The four numbers of the mechanism, where it has them."""
        return cells_of(self.mechanism, hashing=self.hashing)

    @cached_property
    def local_epsilon(self) -> float:
        """The local epsilon that one report realises without any shuffling."""
        odds = self.mechanism.realised_odds()
        return float(log_upper(odds))

    def _curve(self, tail: float, slices: int) -> Curve:
        if self.accountant == BLANKET and self.cells is not None:
            return Blanket(self.cells, self.n, self.fakes, tail=tail, slices=slices).delta
        return Clones(self.mechanism.realised_odds(), self.n, self.fakes, tail=tail).delta

    def delta(self, epsilon: float, *, tail: float = TAIL) -> float:
        """Return a delta that holds at epsilon: an upper bound, zero from the local epsilon on."""
        _check_epsilon(epsilon)
        return 0.0 if epsilon >= self.local_epsilon else self._curve(tail, FINE)(epsilon)

    def used(self, epsilon: Decimal, delta: float) -> float:
        """Return how much of delta is used up at epsilon: above 1, the two are not kept."""
        return self.delta(float(epsilon), tail=_cut(delta)) / delta

    def holds(self, epsilon: Decimal, delta: float) -> bool:
        """Whether (epsilon, delta) is kept: the question that verifies a claim."""
        return self.used(epsilon, delta) <= 1

    def epsilon(self, delta: float) -> Decimal | None:
        """Return the least epsilon of four digits that holds at delta; None if nothing below the local one does."""
        _check_delta(delta)
        if self.n + self.fakes <= 1:
            return None
        # Two curves of the same bound: one that is quick to search, and the one that the claim is checked on.
        fine, coarse = self._curve(_cut(delta), FINE), self._curve(_cut(delta), COARSE)
        return smallest_claim(fine, coarse, delta, self.local_epsilon, self._guess(delta))

    def epsilon_or_local(self, delta: float) -> Decimal:
        """Return `epsilon`, or the declared local one where nothing smaller holds."""
        found = self.epsilon(delta)
        return local_decimal(self.mechanism) if found is None else found

    def _guess(self, delta: float) -> float:
        """Where to start: the Gaussian limit, or that of clones."""
        cells, x = self.cells, float(self.mechanism.realised_odds())
        single = 1 / (2 * x) if cells is None else float(cells.a)
        seen = self.n * single + (0 if cells is None else self.fakes * float(cells.a / cells.gamma))
        return single * (x - 1) * sqrt(2 / max(seen, single)) * sqrt(2 * log(1 / delta))


def _cut(delta: float) -> float:
    """The mass that may be cut off tails beside a delta of this size."""
    return min(1e-12, 1e-7 * delta)


def _check_epsilon(epsilon: float) -> None:
    if not epsilon >= 0:
        raise InvalidSpec(f"shuffle: epsilon is {epsilon}, must be at least 0")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InvalidSpec(f"shuffle: delta is {delta}, must be between 0 and 1, well below one over the respondents")


def delta_of(mechanism: Device, epsilon: float, *, n: int, fakes: int = 0) -> float:
    """Return a delta that shuffled reports of n respondents keep at epsilon."""
    return ShuffledCrowd(mechanism, n, fakes).delta(epsilon)


def epsilon_of(mechanism: Device, delta: float, *, n: int, fakes: int = 0) -> Decimal:
    """Return the epsilon that shuffled reports of n respondents keep at delta: at most the local one."""
    return ShuffledCrowd(mechanism, n, fakes).epsilon_or_local(delta)


def local_decimal(mechanism: Device) -> Decimal:
    """The declared local epsilon as a decimal; a share that has none is rounded up."""
    declared = mechanism.budget.declared
    text = Decimal(declared.numerator) / Decimal(declared.denominator)
    return text if text * declared.denominator == declared.numerator else text.next_plus()
