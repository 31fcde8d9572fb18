"""Tallies: integer counts, or a log of reports where the domain is too large to enumerate.

A tally belongs to one mechanism; adding tallies of different mechanisms is refused and the differing field is
named. All numbers are integers, so every order of adding, on any machine, gives the same bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64
from tacit.core.cell_rule import LIMIT, largest
from tacit.device.base import Device
from tacit.errors import NoData, Overflow, SpecMismatch

MOST_UNEVEN = 2.0
"""Weights are uneven where n reports are worth less than n over this many of equal weight."""


def same_mechanism(here: Device, there: Device, *, action: str = "merge tallies") -> None:
    """Refuse to mix reports of two mechanisms, naming the first field that differs."""
    if here.digest == there.digest:
        return
    a, b = here.spec(), there.spec()
    # Other fields often follow from these three, so they are named first.
    names = ["kind", "epsilon", "size", *sorted(a.keys() | b.keys())]
    name = next(field for field in names if a.get(field) != b.get(field))
    raise SpecMismatch(
        f"cannot {action}: {name} is {a.get(name)!r} here and {b.get(name)!r} there "
        f"(digests {here.digest[:6]}…, {there.digest[:6]}…)"
    )


def own_tally(mechanism: Device, tally: Any) -> None:
    """Refuse to estimate what is no tally, or the tally of another mechanism."""
    if not isinstance(getattr(tally, "mechanism", None), Device):
        raise SpecMismatch(
            f"{mechanism.kind}: estimate takes a tally, this is of type {type(tally).__name__}; count reports first: "
            "write mechanism.estimate(mechanism.tally(reports))"
        )
    same_mechanism(mechanism, tally.mechanism, action="estimate this tally")


class Weighted(Protocol):
    """What every state of a tally tells about its reports."""

    @property
    def n(self) -> int:
        """Number of reports."""
        ...

    @property
    def is_weighted(self) -> bool:
        """Whether reports carried weights."""
        ...


def same_weighting(here: Weighted, there: Weighted) -> None:
    """Refuse to mix weighted and unweighted reports; an empty tally mixes with either."""
    if here.is_weighted != there.is_weighted and here.n and there.n:
        raise SpecMismatch("cannot merge tallies: one is weighted and the other is not; tally both with weights")


def check_sums(*sums: float) -> None:
    """Raise Overflow for sums beyond 62 bits; two sums below that can still be added in 64 bits."""
    if max(map(abs, sums)) >= LIMIT:
        raise Overflow("tally: a sum of weights exceeds 62 bits; use a coarser decimal scale for the weights")


def check_weights(*weights: I64) -> None:
    """Raise Overflow if the squares of the weights add up to more than 62 bits.

    For integers |w| <= w^2, so that sums of the weights themselves are then in range too. The sum is taken in doubles:
    it must not overflow while it is being checked.
    """
    check_sums(sum(float(np.sum(np.square(chunk, dtype=np.float64))) for chunk in weights))


@dataclass(frozen=True, eq=False)
class Counts:
    """Element-wise sums over reports.

    Unweighted, `total = total2 = n` and `cells2 is cells`. Weighted, `cells` sums w and `cells2` sums w^2, with
    the integer weights' own totals beside them.
    """

    mechanism: Device
    n: int
    cells: I64
    cells2: I64
    total: int
    total2: int

    @property
    def is_weighted(self) -> bool:
        """Whether reports carried weights."""
        return self.cells2 is not self.cells

    @property
    def is_empty(self) -> bool:
        """Whether no report was counted."""
        return self.n == 0

    @property
    def variance_scale(self) -> float:
        """Sum of squared weights over the squared sum of weights (Kish): 1/n without weights, 1/n effective with."""
        if self.total == 0:
            raise NoData(f"{self.mechanism.kind}: the weights of the reports sum to zero; there is no whole of shares")
        return self.total2 / self.total**2

    @property
    def is_uneven(self) -> bool:
        """Whether the weights differ so much that a single report may hold most of the variance."""
        return self.is_weighted and self.n * self.variance_scale > MOST_UNEVEN

    @property
    def heaviest(self) -> float:
        """An upper bound of the share of all weight that one report has, from mean and deviation of the weights.

        No weight is further from the mean than sqrt(n - 1) standard deviations (Samuelson, JASA 1968).
        """
        return (1 + np.sqrt(max(0.0, (self.n - 1) * (self.n * self.variance_scale - 1)))) / self.n

    def __add__(self, other: Self) -> "Counts":
        """The tally of both groups of reports."""
        same_mechanism(self.mechanism, other.mechanism)
        same_weighting(self, other)
        total, total2 = self.total + other.total, self.total2 + other.total2
        weighted = self.is_weighted or other.is_weighted
        n = self.n + other.n
        # Checked before adding, on bounds of the sums: numpy would wrap round without a word.
        check_sums(n, total, total2, *(largest(a) + largest(b) for a, b in self._pairs(other)))
        cells = self.cells + other.cells
        cells2 = self.cells2 + other.cells2 if weighted else cells
        return Counts(self.mechanism, n, cells, cells2, total, total2)

    def _pairs(self, other: "Counts") -> "list[tuple[I64, I64]]":
        """The pairs of arrays that an addition adds: cells, and their squares where reports are weighted."""
        plain = [(self.cells, other.cells)]
        return [*plain, (self.cells2, other.cells2)] if self.is_weighted or other.is_weighted else plain


@dataclass(frozen=True, eq=False)
class Log:
    """The reports themselves, for domains too large to enumerate; candidates are counted when they are named."""

    mechanism: Device
    chunks: tuple[npt.NDArray[Any], ...]
    weights: tuple[I64, ...] | None = None

    @property
    def n(self) -> int:
        """Number of reports."""
        return sum(len(chunk) for chunk in self.chunks)

    @property
    def is_empty(self) -> bool:
        """Whether no report was counted."""
        return self.n == 0

    @property
    def is_weighted(self) -> bool:
        """Whether reports carried weights."""
        return self.weights is not None

    def __add__(self, other: Self) -> "Log":
        """The log of both groups of reports."""
        same_mechanism(self.mechanism, other.mechanism)
        # An empty log has no weights to show whether it is weighted, so it takes on what the other one is.
        if self.is_empty or other.is_empty:
            full = other if self.is_empty else self
            return Log(self.mechanism, full.chunks, full.weights)
        same_weighting(self, other)
        weights = None if self.weights is None else self.weights + (other.weights or ())
        if weights is not None:
            check_weights(*weights)
        return Log(self.mechanism, self.chunks + other.chunks, weights)

    @property
    def weight_sums(self) -> tuple[int, int, int]:
        """Sum, sum of squares and largest absolute value of the weights, exactly; without weights all of them are 1."""
        if self.weights is None:
            return self.n, self.n, min(1, self.n)
        # Integers, so that these do not depend on how the reports are cut into chunks. `check_weights` bounds the sums.
        return (
            sum(int(chunk.sum()) for chunk in self.weights),
            sum(int((chunk**2).sum()) for chunk in self.weights),
            max((int(np.abs(chunk).max()) for chunk in self.weights if len(chunk)), default=0),
        )

    def fold(self, count: Callable[[npt.NDArray[Any], I64 | None], I64]) -> Counts:
        """Return the counts of all reports, where `count` maps a chunk of reports to the cells of the candidates."""
        weights = self.weights or tuple(None for _ in self.chunks)
        parts = [count_reports(self.mechanism, chunk, w, count) for chunk, w in zip(self.chunks, weights, strict=True)]
        folded = parts[0]
        for part in parts[1:]:
            folded = folded + part
        return folded


Tally = Counts | Log


def count_reports(
    mechanism: Device,
    reports: npt.NDArray[Any],
    weights: npt.ArrayLike | None,
    count: Callable[[npt.NDArray[Any], I64 | None], I64],
) -> Counts:
    """Return the counts of one chunk of reports; weighted chunks are counted twice, with w and with w^2."""
    n = len(reports)
    if weights is None:
        cells = count(reports, None)
        return Counts(mechanism, n, cells, cells, n, n)
    checked = checked_weights(weights, n)
    total, total2 = int(checked.sum()), int((checked**2).sum())
    return Counts(mechanism, n, count(reports, checked), count(reports, checked**2), total, total2)


def checked_weights(weights: npt.ArrayLike, n: int) -> I64:
    """Return integer weights, one per report, or refuse them: their squares must add up to less than 2^62."""
    array = np.asarray(weights)
    if array.dtype.kind not in "iu" or array.shape != (n,):
        raise SpecMismatch(f"tally: weights must be {n} integers, one per report, in a declared decimal scale")
    check_weights(array)
    return array.astype(np.int64)
