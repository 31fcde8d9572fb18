"""An estimate: unbiased values that always carry their variance and the number of reports behind them."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.extras import load
from tacit.core.statistics.normal import normal_isf
from tacit.core.statistics.score import Law, score_interval
from tacit.errors import InvalidSpec

Target = Literal["respondents", "population"]
Table = Literal["rows", "pandas", "arrow"]


def check_choice(who: str, name: str, choice: Any, known: tuple[str, ...]) -> None:
    """Refuse a mode that does not exist, instead of taking it for another one."""
    if choice not in known:
        raise InvalidSpec(f"{who}: {name} is {str(choice)[:40]!r}, must be one of {', '.join(known)}")


def check_level(level: Any) -> None:
    """Refuse a level of intervals that is no number between 0 and 1."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise InvalidSpec(
            f"interval: level is {str(level)[:40]!r}, must be a number between 0 and 1; write interval(0.95), "
            "which gives the ends of all values in their order"
        )


@dataclass(frozen=True, eq=False)
class Estimate:
    """Frequencies (or means) with exact variances; raw, so single values may be negative or above one.

    `total` is what a value of 1 stands for: the number of reports, or the sum of their weights. `covariance`
    gives the variance of linear combinations; without it the cells are independent.
    """

    value: F64
    variance: F64
    n: int
    _: KW_ONLY
    total: float = -1.0
    labels: Sequence[Any] | None = None
    covariance: Callable[[F64], F64] | None = field(default=None, repr=False)
    spread: F64 | None = field(default=None, repr=False)
    """Variance of one respondent's true contribution, for `interval(target="population")`; f(1 - f) if None."""
    effective: float = field(default=0.0, repr=False)
    """How many equally weighted respondents the estimate speaks for: n unless told, which is less where weights
    differ and more where a random group answered for everybody."""
    law: Law | None = field(default=None, repr=False)
    """How the variance depends on the truth, which makes intervals hold for few reports; None: they are normal."""
    caution: str = ""
    """Why intervals are to be read with care; empty where nothing speaks against them."""

    def __post_init__(self) -> None:
        """A value of 1 stands for all reports, and each of them for one respondent, unless told otherwise."""
        if self.total < 0:
            object.__setattr__(self, "total", float(self.n))
        if self.effective == 0:
            object.__setattr__(self, "effective", float(self.n))

    def __len__(self) -> int:
        """Number of cells."""
        return len(self.value)

    @property
    def has_data(self) -> bool:
        """False for an empty group: all values are 0 and all variances infinite."""
        return self.n > 0

    def take(self, places: npt.NDArray[np.int64]) -> "Estimate":
        """Return some cells, in the order of `places`; their covariance is not carried over."""
        law = self.law if self.law is None or self.law.is_uniform else self.law.take(places)
        return replace(
            self,
            value=self.value[places],
            variance=self.variance[places],
            labels=None if self.labels is None else [self.labels[place] for place in places.tolist()],
            covariance=None,
            spread=None if self.spread is None else self.spread[places],
            law=law,
        )

    @property
    def standard_error(self) -> F64:
        """Square root of the variance."""
        return np.sqrt(self.variance)

    @property
    def counts(self) -> F64:
        """The values on the scale of the reports (or of their weights)."""
        return self.value * self.total

    def interval(self, level: float = 0.95, *, target: Target = "respondents") -> tuple[F64, F64]:
        """Return lower and upper ends per cell: score intervals where the law of the variance is known, else normal.

        The target is the respondents of this collection, or the population they were drawn from at random, which
        adds f(1 - f)/n; n is the effective number of respondents under weights.
        """
        check_level(level)
        check_choice("interval", "target", target, get_args(Target))
        # The tail is half of 1 - level on either side; normal_isf keeps its digits where 1 - tail would round to 1.
        z, variance, law = normal_isf((1 - level) / 2), self.variance, self.law
        if target == "population" and self.has_data:
            # Only f(1 - f) depends on the truth and enters the law; a stated spread is a number added to the variance.
            variance = variance + self.cell_spread / self.effective
            law = law.sampled(1 / self.effective) if law is not None and self.spread is None else law
        if law is None or not self.has_data:
            half = z * np.sqrt(variance)
            return self.value - half, self.value + half
        return score_interval(self.value, variance, law, z)

    @property
    def cell_spread(self) -> F64:
        """Variance of one respondent's true contribution to every cell, f(1 - f) plugged in unless told."""
        plug_in = np.clip(self.value, 0, 1)
        return plug_in * (1 - plug_in) if self.spread is None else self.spread

    def variance_of(self, rows: F64) -> F64:
        """Return the variances of `rows @ value`, as the cells' covariance implies them."""
        return rows**2 @ self.variance if self.covariance is None else self.covariance(rows)

    def spread_of(self, rows: F64) -> F64:
        """Return the variance of one respondent's true contribution to `rows @ value`."""
        if self.spread is not None:
            return rows**2 @ self.spread
        # A respondent is in one cell: E[w^2] - E[w]^2 under the multinomial law, at the estimated frequencies.
        plug_in = np.clip(self.value, 0, 1)
        return np.clip(rows**2 @ plug_in - (rows @ plug_in) ** 2, 0, None)

    def combine(self, weights: npt.ArrayLike, *, labels: Sequence[Any] | None = None) -> "Estimate":
        """Return the linear answers `weights @ value`, with the variance that the cells' covariance implies."""
        rows = np.atleast_2d(np.asarray(weights, np.float64))
        if rows.shape[-1] != len(self.value):
            raise InvalidSpec(
                f"combine: {rows.shape[-1]} weights for {len(self.value)} cells; give one weight per cell"
            )
        if not self.has_data:
            return replace(self, value=np.zeros(len(rows)), variance=np.full(len(rows), np.inf), labels=labels)
        law = self._law_of(rows)
        return replace(
            self,
            value=rows @ self.value,
            variance=self.variance_of(rows),
            labels=labels,
            covariance=None,
            spread=self.spread_of(rows) if law is None else None,
            law=law,
        )

    def _law_of(self, rows: F64) -> Law | None:
        """The law of sums of cells (weights 0 and 1); other combinations have none and get normal intervals."""
        if self.law is None or not self.law.is_uniform or not np.all((rows == 0) | (rows == 1)):
            return None
        return self.law.of_sums(rows.sum(axis=1))

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return one plain dictionary per cell, ready for JSON.

        An empty group has None and the status "no_data", never NaN. A caution stands in every row.
        """
        low, high = self.interval(level)
        labels = range(len(self.value)) if self.labels is None else self.labels
        columns = zip(labels, self.value, self.standard_error, low, high, strict=True)
        if not self.has_data:
            blank = {
                "frequency": None,
                "standard_error": None,
                "low": None,
                "high": None,
                "status": "no_data",
            }
            return [{"value": _plain(row[0])} | blank for row in columns]
        names = ("value", "frequency", "standard_error", "low", "high")
        caution = {"caution": self.caution} if self.caution else {}
        return [dict(zip(names, (_plain(cell) for cell in row), strict=True)) | caution for row in columns]

    def to_table(self, kind: Table = "rows", *, level: float = 0.95) -> Any:
        """The cells as rows, as a pandas DataFrame or as an Arrow table (both optional extras)."""
        check_choice("to_table", "kind", kind, get_args(Table))
        rows = self.to_rows(level)
        if kind == "pandas":
            return load("pandas").DataFrame(rows)
        if kind == "arrow":
            return load("pyarrow").Table.from_pylist(rows)
        return rows


def no_data(cells: int, labels: Sequence[Any] | None = None) -> Estimate:
    """The estimate of an empty group: zero with infinite variance, so that solvers give it no weight."""
    return Estimate(np.zeros(cells), np.full(cells, np.inf), 0, labels=labels)


def _plain(cell: Any) -> Any:
    """A numpy scalar as the Python number it stands for; anything else as it is."""
    item: Callable[[], Any] | None = getattr(cell, "item", None)
    return cell if item is None else item()
