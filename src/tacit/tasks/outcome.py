"""Plan by outcome: the least epsilon that reaches a wanted error, and what it may tell about a respondent, in words."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, floor, log10
from typing import Any

from tacit.device.numbers.budget import HIGHEST, LOWEST
from tacit.device.numbers.canonical import shortest_decimal
from tacit.errors import InvalidSpec

_DIGITS = 3
"""Significant digits of the epsilon that is found: more would say nothing."""


@dataclass(frozen=True)
class EpsilonChoice:
    """An epsilon, the error that it reaches, and its risk."""

    epsilon: str
    error: float
    target_error: float

    @property
    def risk(self) -> str:
        """The largest posterior probability an observer can reach, in words."""
        return risk_words(self.epsilon)

    @property
    def words(self) -> str:
        """The choice and its risk, in words."""
        return f"{self.epsilon} is the least that reaches an error of {self.target_error:g}. {self.risk}"

    def to_row(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"epsilon": self.epsilon, "error": self.error, "risk": self.risk}


def posterior(epsilon: float, prior: float = 0.5) -> float:
    """Return the largest posterior probability of an answer after one report, from this prior probability.

    The odds grow by a factor of e^epsilon at most, whatever else is known (Bayes' theorem).

    >>> round(posterior(1.0), 3), round(posterior(1.0, 0.1), 3)
    (0.731, 0.232)
    """
    odds = exp(epsilon) * prior / (1 - prior)
    return odds / (1 + odds)


def risk_words(epsilon: str) -> str:
    """Return the risk of one report in two sentences.

    >>> risk_words("1")
    'Who suspects an answer at even odds (50 %) can be about 73 % sure of it after seeing the report, and no surer
    (odds of 2.7 to 1). A suspicion of 10 % can grow to about 23 %.'
    """
    number = float(epsilon)
    sure, odds = _percent(posterior(number)), exp(number)
    shown = f"{odds:.2g}" if odds < 100 else f"{odds:,.0f}" if odds < 1e6 else f"{odds:.1e}"
    return (
        f"Who suspects an answer at even odds (50 %) can be {sure} sure of it after seeing the report, and no "
        f"surer (odds of {shown} to 1). A suspicion of 10 % can grow to {_percent(posterior(number, 0.1))}."
    )


def _percent(share: float) -> str:
    """A share in whole per cent, near certainty with decimals, and never 100 %: a report proves nothing."""
    if share > 0.9999:
        return "more than 99.99 %"
    return f"about {100 * share:.0f} %" if share < 0.985 else f"about {100 * share:.2f} %"


def least_epsilon(
    error_at: Callable[[str], float], target_error: float, *, highest: float = float(HIGHEST)
) -> EpsilonChoice:
    """Return the least epsilon, of three digits, whose error is at most the target; InvalidSpec where none is.

    Errors fall as epsilon grows. Planners change their pick on the way, within a few per cent, so that the error of
    the epsilon found is computed and not concluded.
    """
    if not target_error > 0:
        raise InvalidSpec(f"plan: target_error is {target_error}, must be above 0")
    low, high = _grid(float(LOWEST)), _grid(highest)
    best = error_at(_text(high))
    if best > target_error:
        raise InvalidSpec(
            f"plan: no epsilon reaches an error of {target_error:g}; the largest, {_text(high)}, has {best:.3g}. "
            "Ask more respondents, or for less"
        )
    # Bisection over places, so that the answer has three digits wherever it lies between 0.001 and 32.
    found = best
    while low < high:
        middle = (low + high) // 2
        error = error_at(_text(middle))
        if error <= target_error:
            high, found = middle, error
        else:
            low = middle + 1
    return EpsilonChoice(_text(high), found, target_error)


_STEPS = 9 * 10 ** (_DIGITS - 1)
"""Numbers of three digits between two powers of ten: 100 to 999."""


def _grid(epsilon: float) -> int:
    """The place of an epsilon among all numbers of three digits."""
    power = floor(log10(epsilon) + 1e-12)
    return power * _STEPS + round(epsilon / 10.0 ** (power - _DIGITS + 1)) - 10 ** (_DIGITS - 1)


def _text(place: int) -> str:
    """The decimal text of a place: 0 is 1.00, one more is 1.01."""
    power, digits = divmod(place, _STEPS)
    decimals = max(0, _DIGITS - 1 - power)
    return shortest_decimal(f"{(digits + 10 ** (_DIGITS - 1)) * 10.0 ** (power - _DIGITS + 1):.{decimals}f}")
