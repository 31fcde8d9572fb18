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
