"""A mechanism for the count of a group of n: a matrix of exact probabilities. Not local.

Somebody who knows how many of n people said yes releases an integer from 0 to n instead. Column j of the matrix is
the distribution of what is released when the truth is j. Kulkarni, dissertation, chapter 6.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations, pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.central.reals import UniformReal
from tacit.device.base import as_integer
from tacit.device.domains.reals import as_number
from tacit.device.numbers.budget import as_epsilon
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue

Neighbours = Literal["adjacent", "all"]
Columns = tuple[tuple[Fraction, ...], ...]
Alpha = str | float | Fraction

# Matrices of exact fractions grow with n^2, and their numerators with n.
MAX_N = 256


def check_n(n: Any) -> int:
    """Return the size of a group as an integer; InvalidSpec if it is none."""
    whole = as_integer(n)
    if whole is None or not 1 <= whole <= MAX_N:
        raise InvalidSpec(f"n is {str(n)[:40]}, must be an integer from 1 to {MAX_N}, the number of people in a group")
    return whole


def as_alpha(alpha: Alpha) -> Fraction:
    """Return alpha as the exact number that was written: "0.9", "10/11", or a float's shortest decimal.

    >>> as_alpha("10/11"), as_alpha(0.9)
    (Fraction(10, 11), Fraction(9, 10))
    """
    exact = _ratio(alpha) if isinstance(alpha, str) and "/" in alpha else as_number(alpha)
    if exact is None or not 0 < exact < 1:
        raise InvalidSpec(
            f"alpha is {str(alpha)[:40]}, must be strictly between 0 and 1: it is e^-epsilon, so that 0.9 is strong "
            "privacy and 0.1 weak"
        )
    return exact


def _ratio(text: str) -> Fraction | None:
    """Text such as "10/11" as an exact number; None if it is not."""
    above, _, below = text.partition("/")
    numerator, denominator = as_number(above.strip()), as_number(below.strip())
    return numerator / denominator if numerator is not None and denominator else None


def alpha_of(epsilon: str) -> Fraction:
    """Return e^-epsilon as a rational that is never below it, so that the privacy is never less than declared."""
    return Fraction(WORD, as_epsilon(epsilon).odds)


@dataclass(frozen=True, eq=False)
class CountMechanism:
    """What is released for each true count of a group, with exact probabilities. NOT LOCAL.

    Privacy: when one person of the group changes the answer, no output becomes likelier than 1/alpha = e^epsilon times;
    counts that differ by m are told apart with m epsilon. `holds()` checks it in exact arithmetic.
    Sampling: `release`, one coin word a count; more only when a word falls on a threshold.

    >>> from tacit.central.mechanisms import gm
    >>> gm(2, "0.9").matrix.round(4).tolist()
    [[0.5263, 0.4737, 0.4263], [0.0474, 0.0526, 0.0474], [0.4263, 0.4737, 0.5263]]
    """

    name: str
    alpha: Fraction
    columns: Columns
    """columns[j][i] is the probability of releasing i when the truth is j."""
    neighbours: Neighbours = "adjacent"
    """Which columns privacy compares: counts that differ by one, or all (which makes the matrix eps-LDP)."""
    mixed: Fraction = Fraction(0)
    """How much of the uniform mechanism was mixed in to make a solver's rounding errors private."""

    def __post_init__(self) -> None:
        """Refuse a matrix that is no mechanism, or not private: it could not be released from."""
        size = len(self.columns)
        if size < 2 or any(len(column) != size for column in self.columns):
            raise InvalidSpec(f"{self.name}: the matrix must be square, with at least two outputs")
        if any(sum(column) != 1 or min(column) < 0 for column in self.columns):
            raise InvalidSpec(f"{self.name}: every column must be non-negative and sum to 1 exactly")
        if not self.holds():
            raise InvalidSpec(f"{self.name}: two neighbouring columns have a ratio beyond alpha = {self.alpha}")

    @property
    def n(self) -> int:
        """Number of people in the group."""
        return len(self.columns) - 1

    @cached_property
    def matrix(self) -> F64:
        """The probabilities as floats: row = released count, column = true count."""
        return np.array([[float(p) for p in column] for column in self.columns]).T

    @cached_property
    def exact(self) -> "npt.NDArray[np.object_]":
        """The matrix in exact fractions."""
        return np.array(self.columns, object).T

    def _neighbours(self) -> "Iterator[tuple[Sequence[Fraction], Sequence[Fraction]]]":
        return pairwise(self.columns) if self.neighbours == "adjacent" else combinations(self.columns, 2)

    def realised_alpha(self) -> Fraction:
        """Return the smallest ratio of an output's probabilities between neighbouring counts.

        Outputs that occur under neither count are left out; one that occurs under one of them has ratio 0.
        """
        ratios = (
            min(a / b, b / a) if a and b else Fraction(0)
            for one, other in self._neighbours()
            for a, b in zip(one, other, strict=True)
            if a or b
        )
        return min(ratios)

    def holds(self) -> bool:
        """Whether no ratio is below alpha: privacy, without a float."""
        return self.realised_alpha() >= self.alpha

    @cached_property
    def _sums(self) -> list[list[Fraction]]:
        """Running sums of every column without the last, 1."""
        return [list(accumulate(column[:-1])) for column in self.columns]

    @cached_property
    def _edges(self) -> list[list[int]]:
        """The running sums as thresholds of coin words, rounded down."""
        return [[sum_.numerator * WORD // sum_.denominator for sum_ in sums] for sums in self._sums]

    def release_one(self, count: int, coins: Coins) -> int:
        """Draw one output for a true count, exactly, by inversion: a uniform real against the running sums."""
        edges, word = self._edges[count], coins.word()
        place = bisect_right(edges, word)
        # Thresholds were rounded down, so only a word equal to one of them leaves the comparison open (fast path).
        if not place or edges[place - 1] != word:
            return place
        # Rare: the word is a threshold itself, and further words decide on which side of the fraction the real lies.
        real = UniformReal(word, coins)
        return next((i for i, bound in enumerate(self._sums[count]) if real.below(bound)), self.n)

    def release(self, counts: npt.ArrayLike, coins: Coins) -> I64:
        """Draw the released count for each of several groups."""
        array = np.asarray(counts)
        if array.size and (array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < 0 or array.max() > self.n):
            raise InvalidValue(f"{self.name}: a count is not an integer from 0 to {self.n}, the size of the group")
        return np.array([self.release_one(count, coins) for count in array.tolist()], np.int64)

    def estimate(self, released: npt.ArrayLike) -> F64:
        """Return unbiased shares of groups with each true count, from how often each output was released.

        Outputs themselves are biased, because counts end at 0 and n; sums over groups must go through this inverse.
        """
        seen = np.asarray(released, np.float64)
        if seen.shape != (self.n + 1,) or not seen.sum() > 0:
            raise InvalidSpec(f"{self.name}: must be {self.n + 1} frequencies, one for each output")
        # The uniform mechanism, for example, releases nothing about the counts.
        if np.linalg.matrix_rank(self.matrix) <= self.n:
            raise InvalidSpec(f"{self.name}: the matrix is singular, so that its outputs do not determine the counts")
        return np.asarray(np.linalg.solve(self.matrix, seen / seen.sum()), np.float64)
