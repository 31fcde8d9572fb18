"""What a comparison finds: how every method did, draw by draw, and the row that sums it up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arrays import F64

DEFAULT = "default"
"""The method that stands for what a user gets without asking for anything else; it alone is the pick."""

UNIFORM = "uniform"
"""The baseline that needs no report: all answers are equally frequent."""

FORECAST = ("forecast", "forecast_low", "forecast_high")
"""Fields of a row for what a plan says of the error before there are reports."""

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Trial:
    """One method in one draw."""

    error: float
    covered: float | None
    """The share of 95 % intervals that hold the truth; None for a method without intervals."""
    seconds: float
    signed: F64 | None = None
    """The error of every number, from which the bias is estimated over the draws."""
    chosen: str = ""
    """What the method decided on after looking at the reports, where it decides anything."""
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """Further scores of a list of found values: F1 and NCR."""


@dataclass
class Contender:
    """A method at one epsilon, with all its draws."""

    method: str
    about: str
    mechanism: str = ""
    """Name of the mechanism that reports were made with; empty for baselines that need none."""
    bits: int | None = 0
    """Length of a report; 0 for what needs none, None where it differs between rounds or is not known."""
    forecast: tuple[float, float, float] | None = None
    """The error that a plan states beforehand, and the least and the largest that it allows; None where it has none."""
    trials: list[Trial] = field(default_factory=list[Trial])

    def to_row(self, epsilon: str, **about: Any) -> dict[str, Any]:
        """Return plain numbers for JSON and pages: means over the draws, and the standard error of the mean error."""
        errors = np.array([trial.error for trial in self.trials])
        several = len(errors) > 1
        covered = [trial.covered for trial in self.trials if trial.covered is not None]
        row: dict[str, Any] = {
            "method": self.method,
            "pick": self.method == DEFAULT,
            "epsilon": float(epsilon),
            "error": float(errors.mean()),
            "error_se": float(errors.std(ddof=1) / np.sqrt(len(errors))) if several else None,
            "bias": _bias([trial.signed for trial in self.trials if trial.signed is not None]),
            "coverage": float(np.mean(covered)) if covered else None,
            **dict(zip(FORECAST, self.forecast or (None,) * 3, strict=True)),
            "seconds": float(np.mean([trial.seconds for trial in self.trials])),
            "bits": self.bits,
            "mechanism": self.mechanism,
            "about": self.about,
        }
        return row | self._scores() | self._chosen() | about

    def _scores(self) -> dict[str, float]:
        names = self.trials[0].scores if self.trials else ()
        return {name: float(np.mean([trial.scores[name] for trial in self.trials])) for name in names}

    def _chosen(self) -> dict[str, Any]:
        names = [trial.chosen for trial in self.trials if trial.chosen]
        return {"chosen": {name: names.count(name) for name in sorted(set(names))}} if names else {}


def _bias(signed: list[F64]) -> float | None:
    """The root mean square of the bias over all numbers, less what the scatter of the mean of so few draws adds."""
    if len(signed) < 2:
        return None
    stacked = np.stack(signed)
    squares = stacked.mean(axis=0) ** 2 - stacked.var(axis=0, ddof=1) / len(stacked)
    return float(np.sqrt(max(0.0, float(squares.mean()))))


def inside(ends: tuple[F64, F64], truth: F64) -> float:
    """Return the share of intervals that hold the truth; rounding must not miss a truth at the end of one."""
    low, high = ends
    return float(np.mean((low <= truth + 1e-12) & (truth - 1e-12 <= high)))
