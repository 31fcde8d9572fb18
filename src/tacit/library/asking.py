"""`tacit.ask` plans a question before there are values; `tacit.plan_epsilon` finds the epsilon for a wanted error."""

from collections.abc import Callable
from typing import Any

from tacit.device.arguments import explained
from tacit.device.numbers.budget import Declared
from tacit.errors import InvalidSpec
from tacit.library.inquiry import RESPONDENTS, Inquiry
from tacit.library.ordered import ask_quantiles, ask_ranges
from tacit.library.rows import ask_table
from tacit.library.search import ask_heavy_hitters, ask_itemsets
from tacit.library.shares import ask_histogram, ask_mean
from tacit.library.tables import ask_marginals
from tacit.tasks.outcome import EpsilonChoice, least_epsilon

ASKED: dict[str, Callable[..., Inquiry]] = {
    "histogram": ask_histogram,
    "mean": ask_mean,
    "ranges": ask_ranges,
    "quantiles": ask_quantiles,
    "heavy_hitters": ask_heavy_hitters,
    "itemsets": ask_itemsets,
    "marginals": ask_marginals,
    "table": ask_table,
}
"""How every question is planned."""


def _planner(who: str, task: Any) -> Callable[..., Inquiry]:
    if task not in ASKED:
        raise InvalidSpec(f"{who}: task is {str(task)[:40]!r}, must be one of {', '.join(ASKED)}")
    return ASKED[task]


@explained
def ask(task: str, epsilon: Declared | None = None, *, n: int = RESPONDENTS, **declared: Any) -> Inquiry:
    """Plan a question for about n respondents, before there is any value; the domain must be declared.

    Further arguments are those of the function of that name, such as `domain`, `low` and `high`.

    >>> asked = ask("histogram", epsilon=1, n=1_000, domain=["yes", "no"])
    >>> reports = [asked.device("yes") for _ in range(1_000)]  # On a thousand devices, one value each.
    >>> asked.collect(reports).n
    1000
    """
    return _planner("ask", task)(None, epsilon=epsilon, n=n, **declared)


@explained
def plan_epsilon(task: str, *, target_error: float, n: int, **declared: Any) -> EpsilonChoice:
    """Return the least epsilon with which n respondents reach an error, and what it may tell about one of them.

    The error is the standard error that `ask(...).expected_error` forecasts; further arguments are those of `ask`.

    >>> choice = plan_epsilon("histogram", target_error=0.01, n=10_000, domain=["yes", "no"])
    >>> choice.epsilon, round(choice.error, 4)
    ('0.963', 0.01)
    """
    # Every step plans anew: the best mechanism changes with epsilon.
    planner = _planner("plan_epsilon", task)
    return least_epsilon(lambda epsilon: planner(None, epsilon=epsilon, n=n, **declared).expected_error, target_error)
