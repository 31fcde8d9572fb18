"""The published closed forms of privacy amplification by shuffling, solved for what a device may do.

| inverse          | source                                        | what it says                                      |
|------------------|-----------------------------------------------|---------------------------------------------------|
| `blanket`        | Table 9.1, Theorem 9.3.2; also section 9.3.4  | m: e^local + d - 1 may be this large              |
| `unary_blanket`  | Theorem 9.3.1                                 | the same for two locations at half of the budget  |
| `appended_noise` | section 9.3.4 (Balcer and Cheu, ITC 2020)     | z: the noise that every location must get         |

The forms themselves stand in `accounting.published`.

All of them are for epsilon up to 1 only: the Chernoff bound in their proofs needs it. Section numbers are those of
T. Wang's dissertation (Purdue, 2021), chapter 9.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, log

from tacit.device.base import as_integer
from tacit.device.numbers.budget import Epsilon, as_epsilon
from tacit.device.numbers.canonical import shortest_decimal
from tacit.errors import InvalidSpec
from tacit.shuffle.accounting.published import capacity, unary_capacity

LARGEST_EPSILON = 1
LARGEST_DELTA = 0.25
"""Up to here the second condition of Theorem 9.2.1, at least 27/epsilon random reports, follows from epsilon <= 1."""
_DIGITS = 12
"""Decimals of a planned parameter; rounding it towards more noise then costs nothing that could be measured."""


@dataclass(frozen=True)
class CentralTarget:
    """What all shuffled reports together may reveal about one respondent: (epsilon, delta), with n honest reports.

    The guarantee is against whoever sees the reports in no order. n is the number that is sure before anything is
    released, not the number that is hoped for.
    """

    epsilon: str
    delta: float
    n: int

    def __post_init__(self) -> None:
        """Refuse targets for which the closed forms prove nothing."""
        epsilon = as_epsilon(self.epsilon)
        object.__setattr__(self, "epsilon", epsilon.text)
        if epsilon.declared > LARGEST_EPSILON:
            raise InvalidSpec(
                f"shuffle: the central epsilon is {epsilon.text}, must be at most {LARGEST_EPSILON}; the closed forms "
                "are not proven beyond"
            )
        if not 0 < self.delta <= LARGEST_DELTA:
            raise InvalidSpec(f"shuffle: delta is {self.delta}, must be above 0 and at most {LARGEST_DELTA}")
        if (as_integer(self.n) or 0) < 1:
            raise InvalidSpec(f"shuffle: n is {str(self.n)[:40]}, must be an integer of at least 1, the honest reports")

    @property
    def declared(self) -> Epsilon:
        """The central epsilon as a budget, which a mechanism that is not amplified spends locally."""
        return Epsilon(self.epsilon)

    @property
    def value(self) -> float:
        """The central epsilon as a number."""
        return float(self.declared.declared)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader of the guarantee should know about it."""
        if self.delta * self.n < 1:
            return ()
        return (f"delta is {self.delta:g}, not below 1/n: releasing one answer in the clear would satisfy it",)

    def split(self, rounds: int) -> "CentralTarget":
        """The target of each of several reports of the same respondents: epsilon and delta add up (basic composition).

        >>> CentralTarget("1", 6e-9, 1000).split(6)
        CentralTarget(epsilon='0.166666666666', delta=1e-09, n=1000)
        """
        # Rounded down, so that the parts never add up to more than the whole.
        share = self.declared.declared / rounds
        return replace(self, epsilon=decimal_down(share), delta=self.delta / rounds)

    def grouped(self, groups: int) -> "CentralTarget":
        """The target of one of several disjoint groups: all of epsilon, and only its own reports to hide in."""
        return replace(self, n=max(1, self.n // groups))


def decimal_down(number: float | Fraction, digits: int = _DIGITS) -> str:
    """A non-negative number as decimal text, rounded down."""
    return _decimal(floor(Fraction(number) * 10**digits), digits)


def decimal_up(number: float | Fraction, digits: int = _DIGITS) -> str:
    """A non-negative number as decimal text, rounded up."""
    return _decimal(ceil(Fraction(number) * 10**digits), digits)


def _decimal(scaled: int, digits: int) -> str:
    # By integers: formatting a float would round to nearest, which may be the side with less noise.
    whole, part = divmod(scaled, 10**digits)
    return shortest_decimal(f"{whole}.{part:0{digits}d}")


def blanket(target: CentralTarget) -> float:
    """Return m: how large e^local + d - 1 may be, for d values or hash buckets (`published.capacity`).

    Of the n - 1 other reports, each says a given value at random with probability 1/(e^local + d - 1).

    >>> round(blanket(CentralTarget("0.675", 1e-9, 602_325)), 1)
    915.3
    """
    return capacity(target.value, n=target.n, delta=target.delta)


def unary_blanket(target: CentralTarget) -> float:
    """Return one over the probability that a bit flips (`published.unary_capacity`).

    Replacing a value changes two locations, each of which gets half of epsilon and of delta.
    """
    return unary_capacity(target.value, n=target.n, delta=target.delta)


def appended_noise(target: CentralTarget) -> float:
    """Return z = 200 ln(4/delta)/(epsilon^2 n), the probability of noise at a location; above 1/2 nothing is proven."""
    return 200 * log(4 / target.delta) / (target.value**2 * target.n)
