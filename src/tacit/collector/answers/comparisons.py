"""What a series says beside its windows: differences between them, and means over all of them."""

from collections.abc import Sequence
from typing import Any

from tacit.core.estimate import Estimate, Target
from tacit.errors import InvalidQuery
from tacit.post.series.differences import compared, constant_mean, window_mean
from tacit.post.series.series import Series

PREVIOUS = "previous"
"""Every window is compared with the answered one before it."""
DIFFERENCES = ("against", "difference", "difference_error", "difference_low", "difference_high")
"""What a cell gains that is compared with another window."""


def check_against(text: str) -> None:
    """InvalidQuery for what no window can be compared with."""
    if text not in ("", PREVIOUS) and not is_window(text):
        raise InvalidQuery(f"against is {text[:20]!r}, must be {PREVIOUS} or the number of a window")


def is_window(text: str) -> bool:
    """Whether a text of a query is the number of a window, as far as can be told without its calendar."""
    return text.isascii() and text.isdigit() and len(text) <= 4


def compare(
    rows: list[dict[str, Any]], told: Sequence[int], series: Series, against: str, *, level: float, target: Target
) -> None:
    """Write differences to another window into the cells of answered rows, with intervals that hold one by one."""
    if not against:
        return
    row = None if against == PREVIOUS else _row_of(series, int(against))
    found = compared(series, row, target=target)
    low, high = found.interval(level)
    for i, other in enumerate(found.rows):
        columns = (found.value[i], found.error[i], low[i], high[i])
        for cell, numbers in zip(
            rows[told[i]]["rows"], zip(*(one.tolist() for one in columns), strict=True), strict=True
        ):
            named = (None,) * len(DIFFERENCES) if other is None else (series.spans[other][0], *numbers)
            cell |= dict(zip(DIFFERENCES, named, strict=True))


def _row_of(series: Series, window: int) -> int:
    """The row of a series that a window is in."""
    for i, (first, last) in enumerate(series.spans):
        if first <= window <= last:
            return i
    raise InvalidQuery(f"against is {window}, a window that is not answered here; pick one that is")


def mean_rows(series: Series, labels: Sequence[Any], *, level: float, target: Target) -> dict[str, Any]:
    """Means over all answered windows: each counted once, and by precision as if shares had never changed."""
    return {
        "windows": len(series),
        "each_once": _mean(window_mean(series, target=target), labels, level),
        "if_constant": _mean(constant_mean(series, target=target), labels, level),
    }


def _mean(estimate: Estimate, labels: Sequence[Any], level: float) -> list[dict[str, Any]]:
    low, high = estimate.interval(level)
    columns = (estimate.value, estimate.standard_error, low, high)
    names = ("value", "estimate", "standard_error", "low", "high")
    cells = zip(labels, *(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, cell, strict=True)) for cell in cells]
