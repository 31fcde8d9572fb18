"""Ask every respondent one of Q questions, or all of them at epsilon/Q each (SPLIT-USERS)?

Wang's dissertation, section 3.4.2, compares the noise alone, and asking one question always wins. Counting
the error of having asked a random part of the respondents, splitting the budget wins above some epsilon.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tacit.core.mechanism import Oracle
from tacit.device.numbers.budget import HIGHEST, LOWEST, Budget, Share, as_epsilon
from tacit.errors import InvalidSpec

MakeOracle = Callable[..., Oracle]
"""An oracle class, called with `size` and `epsilon`."""

_DECIMALS = 4
"""The crossover is found to so many decimals; a budget is a decimal text, so this is its precision too."""
_SCAN = 1.05


@dataclass(frozen=True)
class Comparison:
    """The exact variance of one frequency, averaged over the questions, under both ways of asking them."""

    questions: int
    frequency: float
    n: int
    one_question_variance: float
    all_questions_variance: float
    crossover: float | None
    """The epsilon above which splitting it is better; None if there is none up to 32."""

    @property
    def ratio(self) -> float:
        """Variance of splitting epsilon over that of asking one question: above 1, ask one question."""
        return self.all_questions_variance / self.one_question_variance

    @property
    def better(self) -> str:
        """The kind with the smaller error: one_of or all_of."""
        return "one_of" if self.ratio >= 1 else "all_of"

    @property
    def standard_error(self) -> float:
        """The standard error of the better way."""
        return sqrt(min(self.one_question_variance, self.all_questions_variance))


def split_users_or_budget(
    oracle: MakeOracle, *, sizes: Sequence[int], epsilon: str, n: int, frequency: float
) -> Comparison:
    """Compare both ways for questions of these sizes, at a frequency one is interested in.

    >>> from tacit.oracles.unary import OUE
    >>> advice = split_users_or_budget(OUE, sizes=[8, 8], epsilon="1", n=10_000, frequency=0.1)
    >>> advice.better, round(advice.crossover, 1)
    ('one_of', 6.1)
    """
    if not sizes:
        raise InvalidSpec("questions: sizes is empty, must name at least one question")
    if n <= len(sizes):
        raise InvalidSpec(f"questions: n is {n}, must be more than the {len(sizes)} questions")
    if not 0 <= frequency <= 1:
        raise InvalidSpec(f"questions: frequency is {frequency}, must be from 0 to 1")
    text = as_epsilon(epsilon).text
    sampled, split = _variances(oracle, sizes, text, n, frequency)
    crossover = _crossover(oracle, sizes, n, frequency)
    return Comparison(len(sizes), frequency, n, sampled, split, crossover)


def _variances(oracle: MakeOracle, sizes: Sequence[int], epsilon: str, n: int, frequency: float) -> tuple[float, float]:
    """Return the mean variance of asking one question, with groups of n/Q, and of asking all at epsilon/Q."""
    count = len(sizes)

    def noise(budget: Budget) -> float:
        """n times the mean variance; questions of one size are worked out once."""
        at, times = np.array([frequency]), Counter(sizes).items()
        return sum(k * float(oracle(size=d, epsilon=budget).moments.variance(at)[0]) for d, k in times) / count

    # A group of n/Q out of n without replacement: f(1 - f)/(n/Q) * (n - n/Q)/(n - 1), the finite population correction.
    sampling = frequency * (1 - frequency) * (count - 1) / (n - 1)
    whole, part = noise(as_epsilon(epsilon)), noise(Share(epsilon, f"1/{count}"))
    return whole * count / n + sampling, part / n


def _crossover(oracle: MakeOracle, sizes: Sequence[int], n: int, frequency: float) -> float | None:
    """Return the least epsilon at which splitting wins, by a geometric scan and bisection; None if there is none.

    The scan comes first because variances need not cross only once.
    """

    def splitting_wins(epsilon: float) -> bool:
        sampled, split = _variances(oracle, sizes, f"{epsilon:.{_DECIMALS}f}", n, frequency)
        return split < sampled

    # First upwards in steps of 5 % to the first win, then bisection between the last loss and that win.
    low = high = float(LOWEST)
    while not splitting_wins(high):
        if high >= HIGHEST:
            return None
        low, high = high, min(float(HIGHEST), high * _SCAN)
    while high - low > 0.5 * 10**-_DECIMALS:
        middle = (low + high) / 2
        low, high = (low, middle) if splitting_wins(middle) else (middle, high)
    return round(high, _DECIMALS)
