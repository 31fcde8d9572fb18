"""A finding: values with intervals, as numbers, as a table, as a plot, and as text that fits a terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit.core.estimate import Estimate, check_level
from tacit.core.extras import load
from tacit.core.mechanism import Mechanism
from tacit.library.show import Shown, html_of, text_of_finding

if TYPE_CHECKING:
    from tacit.library.inquiry import Inquiry
    from tacit.library.local import LocalDevice

LEAKS = "the domain was read off the values, which tells them; declare it (domain=…, low=…, high=…) to ask anybody"
"""Why a finding is a simulation, and what to do about it."""

Ends = tuple[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Finding:
    """The answer to an inquiry. `value` is unbiased, so that a share may be below zero; `interval()` says how sure.

    What it was made of is at hand: `mechanism`, `tally`, `estimate`, and `answers`, the solved object of the task.
    """

    inquiry: "Inquiry"
    tally: Any
    """What was counted; the reports themselves for SQL, and a tally per round for itemsets."""
    names: tuple[str, ...]
    """What the labels are of: a column each."""
    labels: Sequence[Any]
    """One per value; of several columns a tuple."""
    value: Any
    """One number per label; a single one for a mean."""
    ends: Callable[[float], Ends]
    """Gives both ends of the interval of every value, at a level."""
    unit: str = "share"
    estimate: Estimate | None = None
    consistent: Estimate | None = None
    """Made non-negative and consistent, which is biased; for showing. None where the task has no such version."""
    answers: Any = None
    notes: tuple[str, ...] = ()
    next: "Inquiry | None" = None
    """The next round, where the question is asked in rounds and this one was not the last."""
    is_line: bool = False
    """Whether labels are numbers in order, which a plot draws as a curve."""

    @property
    def mechanism(self) -> Mechanism:
        """What perturbed the values."""
        return self.inquiry.mechanism

    @property
    def is_simulation(self) -> bool:
        """Whether the domain was read off the values: good for trying out, and not private."""
        return not self.inquiry.is_declared

    @property
    def device(self) -> "LocalDevice":
        """What respondents are given to answer the same question."""
        return self.inquiry.device

    def collect(self, reports: Any) -> "Finding":
        """Answer the same question from reports that devices made."""
        return self.inquiry.collect(reports)

    @property
    def n(self) -> int:
        """Number of reports."""
        counted: Any = self.tally
        if type(counted) is tuple:
            return sum(part.n for part in cast("tuple[Any, ...]", counted))
        return int(counted.n) if hasattr(counted, "n") else len(counted)

    def __len__(self) -> int:
        """Number of values."""
        return len(self.labels)

    def interval(self, level: float = 0.95) -> Ends:
        """Return the lower and the upper end of every value; both are single numbers for a mean."""
        check_level(level)
        return self.ends(level)

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return one plain dictionary per value."""
        # Through object arrays: quantiles of labels or dates are not numbers, and a mean is a single one.
        low, high = (np.ravel(np.asarray(end, object)).tolist() for end in self.interval(level))
        found = np.ravel(np.asarray(self.value, object)).tolist()
        errors = self._errors()
        rows: list[dict[str, Any]] = []
        for i, label in enumerate(self.labels):
            row = dict(zip(self.names, label if len(self.names) > 1 else (label,), strict=True))
            row |= {self.unit: found[i], "low": low[i], "high": high[i]}
            rows.append(row | {name: numbers[i] for name, numbers in errors.items()})
        return rows

    def _errors(self) -> dict[str, list[float]]:
        """The columns that only estimates have."""
        if self.estimate is None or len(self.estimate) != len(self.labels):
            return {}
        found = {"standard_error": self.estimate.standard_error.tolist()}
        return found if self.consistent is None else found | {"consistent": self.consistent.value.tolist()}

    def to_pandas(self, level: float = 0.95) -> Any:
        """Return a DataFrame with one row per value."""
        rows = self.to_rows(level)
        return load("pandas").DataFrame(rows, columns=None if rows else [*self.names, self.unit, "low", "high"])

    def to_polars(self, level: float = 0.95) -> Any:
        """Return a polars DataFrame with one row per value."""
        rows, names = self.to_rows(level), [*self.names, self.unit, "low", "high"]
        # All rows decide the type of a column: labels of one may be numbers first and text later.
        return load("polars").DataFrame(rows, schema=None if rows else names, infer_schema_length=None)

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw the values with error bars (needs matplotlib) and return the axes."""
        from tacit.library.plot import plot_finding

        return plot_finding(self, ax, level)

    def _shown(self) -> Shown:
        title = f"{self.inquiry.task} · epsilon {self.inquiry.epsilon} · {self.mechanism.kind} · {self.n:,} reports"
        notes = (*self.notes, *((f"simulation: {LEAKS}",) if self.is_simulation else ()))
        rows = self.to_rows()
        cells = [tuple(row[name] for name in (*self.names, self.unit, "low", "high")) for row in rows]
        return Shown(title, self.names, self.unit, cells, notes)

    def __repr__(self) -> str:
        return text_of_finding(self._shown())

    def _repr_html_(self) -> str:
        """The table that notebooks show."""
        return html_of(self._shown())
