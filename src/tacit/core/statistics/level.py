"""Confidence levels as users give them: a share such as 0.95, checked."""

from tacit.errors import InvalidSpec

LEAST_LEVEL, MOST_LEVEL = 0.01, 0.9999
"""Below, an interval says nothing; above, it says more about the normal approximation than about the answer."""


def check_level(level: object) -> float:
    """Return a confidence level given as a number or as text; anything else is refused, NaN and bool included.

    >>> check_level("0.9")
    0.9
    """
    try:
        number = float(level) if isinstance(level, (int, float, str)) and not isinstance(level, bool) else 0.0
    except (OverflowError, ValueError):
        number = 0.0
    if not LEAST_LEVEL <= number <= MOST_LEVEL:
        raise InvalidSpec(
            f"level is {str(level)[:20]}, must be a number from {LEAST_LEVEL} to {MOST_LEVEL}, such as 0.95"
        )
    return number


def selected_level(level: float, listed: int, examined: int) -> float:
    """Return the level of single intervals so that, of those listed for being high, a share `level` holds on average.

    1 - (1 - level) R/d for R listed out of d examined: the false coverage rate of Y. Benjamini and D. Yekutieli, "False
    discovery rate-adjusted multiple confidence intervals for selected parameters", JASA 2005.

    >>> round(selected_level(0.95, 10, 1000), 6)
    0.9995
    """
    return 1 - (1 - level) * min(1.0, max(1, listed) / max(1, examined))
