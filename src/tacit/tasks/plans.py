"""Adaptive plans: generators that ask fresh respondents round by round and return what was found.

    plan (generator)                          driver (simulation or collector)
    yield Round(name, share, mechanism)  -->  puts it to fresh respondents, waits, counts
    receives (mechanism, tally)          <--  send((mechanism, tally))
    ...
    return PlanResult                    -->  StopIteration.value

A plan does no input or output and draws no coins. Being a deterministic function of its fields and of what it received,
it needs no saved state: after a restart it is resumed by replaying the stored tallies (`resume`).
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.mechanism import Mechanism
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec


@dataclass(frozen=True)
class Round:
    """One question of a plan, put to respondents who have not been asked before."""

    name: str
    share: float
    """The share of all respondents of the plan that this round is put to."""
    mechanism: Mechanism
    about: str
    """What is asked, in a sentence for respondents and analysts."""
    group: int
    """Which respondents: rounds of one group ask the same people again, which only a simulation does."""

    def to_row(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "name": self.name,
            "share": self.share,
            "about": self.about,
            "group": self.group,
            "mechanism": self.mechanism.spec(),
        }


@dataclass(frozen=True)
class Bounds:
    """Lower and upper bounds of a true share: two unbiased estimates with their standard errors."""

    least: float
    least_error: float
    most: float
    most_error: float
    listed: float = 1.0
    """The part of all candidates that is listed: intervals of selected, thus high, estimates must be wider."""

    def interval(self, level: float) -> tuple[float, float]:
        """Return an interval; of all listed ones, a share of at least `level` holds the truth on average.

        Adjusted for having chosen what to list (Benjamini and Yekutieli 2005: 1 - level times the part that is listed).
        """
        z = normal_isf((1 - level) * self.listed / 2)
        return self.least - z * self.least_error, min(1.0, self.most + z * self.most_error)


@dataclass(frozen=True)
class RankedItem:
    """One item or itemset of a result, with its uncertainty."""

    items: tuple[int, ...]
    frequency: float
    standard_error: float
    bounds: Bounds
    noise: float
    """An upper bound on the probability that noise alone lifts any candidate of the plan as high (Bonferroni)."""

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval."""
        return self.bounds.interval(0.95)[0]

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval."""
        return self.bounds.interval(0.95)[1]

    def to_row(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "items": list(self.items),
            "frequency": self.frequency,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "noise": self.noise,
        }


@dataclass(frozen=True)
class PlanResult:
    """The result of a plan: the k highest estimates, best first, with notes on how to read them."""

    rows: tuple[RankedItem, ...]
    respondents: int
    detectable: float | None
    """The smallest share that stands out from noise among all candidates; None without data."""
    notes: tuple[str, ...] = ()
    details: "dict[str, Any]" = field(default_factory=dict[str, Any])
    """Intermediate numbers for diagnosis, such as padding lengths."""

    @property
    def status(self) -> str:
        """`ok`, or `no_data` where there is nothing to show."""
        return "ok" if self.rows else "no_data"

    def intervals(self, level: float) -> tuple[F64, F64]:
        """Return both ends of the interval of every row; they are not symmetric, see `Bounds`."""
        ends = np.array([row.bounds.interval(level) for row in self.rows]).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]

    def to_row(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "status": self.status,
            "respondents": self.respondents,
            "detectable": self.detectable,
            "rows": [row.to_row() for row in self.rows],
            "notes": list(self.notes),
            "details": self.details,
        }


Received = tuple[Mechanism, Any]
"""The mechanism of a round and the tally of its reports."""

Steps = Generator[Round, Received, PlanResult]
"""A running plan."""


class Diary:
    """The record of a running plan: how many answered which round, and notes for the reader of the result."""

    def __init__(self) -> None:
        """Start an empty record."""
        self.notes: list[str] = []
        self.details: dict[str, Any] = {}
        self.asked = 0.0
        """The share of all respondents that the plan has asked so far."""
        self._answered: dict[int, int] = {}

    @property
    def respondents(self) -> int:
        """The number of respondents who answered; a group that is asked twice counts once."""
        return sum(self._answered.values())

    def ask(
        self, name: str, share: float, mechanism: Mechanism, about: str, *, group: int | None = None
    ) -> Generator[Round, Received, Any]:
        """Yield a round and return its tally; None, with a note, if nobody answered."""
        number = len(self._answered) if group is None else group
        answered_with, tally = yield Round(name, share, mechanism, about, number)
        # A replay with tallies in another order would silently give nonsense: compare the mechanisms' digests.
        if answered_with.digest != mechanism.digest or tally.mechanism.digest != mechanism.digest:
            raise InvalidSpec(f"plan: round {name} received a tally of another mechanism; replay rounds in their order")
        # A group that is asked twice has the larger of its turnouts, and its share counts once.
        self.asked += 0.0 if number in self._answered else share
        self._answered[number] = max(self._answered.get(number, 0), tally.n)
        self.details[f"{name}_respondents"] = tally.n
        if tally.n == 0:
            self.notes.append(f"round {name} had no respondents")
            return None
        return tally

    def result(self, rows: Iterable[RankedItem], detectable: float | None) -> PlanResult:
        """Return the plan's result with everything recorded."""
        return PlanResult(tuple(rows), self.respondents, detectable, tuple(self.notes), self.details)


def proceed(steps: Steps, received: Received | None = None) -> "Round | PlanResult":
    """The round that comes next, or the result if there is none; a plan begins with nothing received."""
    try:
        return next(steps) if received is None else steps.send(received)
    except StopIteration as stop:
        return stop.value


def drive(steps: Steps, ask: Callable[[Round], Any]) -> PlanResult:
    """Run a plan to its end; `ask` puts a round to respondents and returns the tally of their reports."""
    said = proceed(steps)
    while isinstance(said, Round):
        said = proceed(steps, (said.mechanism, ask(said)))
    return said
