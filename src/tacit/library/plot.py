"""Findings as plots: bars with error bars, or a curve with a band where labels are numbers in order."""

from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.extras import load
from tacit.errors import InvalidSpec
from tacit.library.finding import Finding
from tacit.library.show import label_text

MOST_BARS = 40
"""Bars that can be told apart; of more values, the first ones are drawn."""


def plot_finding(found: Finding, ax: Any, level: float) -> Any:
    """Draw a finding on axes, new ones unless given, and return them."""
    pyplot = load("matplotlib.pyplot")
    rows = found.to_rows(level)
    if not rows:
        raise InvalidSpec(f"{found.inquiry.task}: there is nothing to draw; the finding has no values")
    # As high as its bars need, so that labels do not overlap.
    height = 1.2 + 0.3 * min(len(rows), MOST_BARS)
    if ax is None:
        ax = pyplot.subplots(figsize=(6.4, 4.0 if found.is_line else min(10.0, height)), layout="constrained")[1]
    (_curve if found.is_line else _bars)(ax, found, rows[:MOST_BARS] if not found.is_line else rows)
    shown = f" (the first {MOST_BARS} of {len(rows)})" if not found.is_line and len(rows) > MOST_BARS else ""
    kept = "simulation, " if found.is_simulation else ""
    ax.set_title(
        f"{found.inquiry.task}{shown}: {kept}epsilon {found.inquiry.epsilon}, {100 * level:g} % intervals", fontsize=10
    )
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _ends(found: Finding, rows: list[dict[str, Any]]) -> tuple[F64, F64, F64]:
    """Value and distances to both ends, in per cent for shares; a consistent value lies outside of no interval."""
    scale = 100.0 if found.unit == "share" else 1.0
    value, low, high = (
        np.array([row[name] for row in rows], np.float64) * scale for name in (found.unit, "low", "high")
    )
    return value, np.maximum(0, value - low), np.maximum(0, high - value)


def _axis(found: Finding) -> str:
    return "share in %" if found.unit == "share" else found.unit


def _bars(ax: Any, found: Finding, rows: list[dict[str, Any]]) -> None:
    """One bar per value, the first on top."""
    value, below, above = _ends(found, rows)
    places = np.arange(len(rows))
    names = [" · ".join(label_text(row[name])[:28] for name in found.names) for row in rows]
    if found.unit == "share":
        ax.barh(places, value, color="#4f7cac", height=0.7)
    mark = "." if found.unit == "share" else "o"
    ax.errorbar(value, places, xerr=np.array([below, above]), fmt=mark, color="#1d2b3a", capsize=3, markersize=4)
    ax.set_yticks(places, names)
    ax.set_ylabel("" if found.names == ("value",) else ", ".join(found.names))
    ax.invert_yaxis()
    ax.set_xlabel(_axis(found))


def _curve(ax: Any, found: Finding, rows: list[dict[str, Any]]) -> None:
    """Values over numbers in order, with the band of their intervals."""
    value, below, above = _ends(found, rows)
    at = [row[found.names[0]] for row in rows]
    # Labels that are no numbers, such as buckets, stand at their places.
    places: Any = at if all(isinstance(label, (int, float)) for label in at) else np.arange(len(at))
    ax.fill_between(places, value - below, value + above, step="mid", color="#4f7cac", alpha=0.3, linewidth=0)
    ax.step(places, value, where="mid", color="#4f7cac", linewidth=1.5)
    ax.axhline(0, color="#1d2b3a", linewidth=0.8)
    if places is not at:
        chosen = np.unique(np.linspace(0, len(at) - 1, min(6, len(at))).round().astype(int))
        ax.set_xticks(chosen, [label_text(at[i]) for i in chosen], rotation=20, ha="right")
    ax.set_xlabel(found.names[0])
    ax.set_ylabel(_axis(found))
