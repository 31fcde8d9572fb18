"""Adaptive plans: generators that ask fresh respondents round by round and return what was found.

A plan yields a `Round`, receives the mechanism and the tally of its reports, and goes on; it does no input or output
and draws no coins. Being a function of its fields and of what it received, it is resumed by replaying stored tallies.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

from tacit.core.mechanism import Mechanism
from tacit.core.normal import normal_isf
from tacit.errors import InvalidSpec


@dataclass(frozen=True)
class Round:
    """One question of a plan, put to respondents who have not been asked before."""

    name: str
    share: float
    """Of all respondents of the plan."""
    mechanism: Mechanism
    about: str
    """What is asked, in words."""
    group: int
    """Which respondents: rounds of one group ask the same people again, which only a simulation does."""

    def to_row(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "share": self.share,
            "about": self.about,
            "group": self.group,
            "mechanism": self.mechanism.spec(),
        }


@dataclass(frozen=True)
class Bounds:
    """What the true share is at least and at most: two unbiased estimates with their standard errors."""

    least: float
    least_error: float
    most: float
    most_error: float
    listed: float = 1.0
    """The part of all candidates that is listed: the highest of many estimates are too high more often than others."""

    def interval(self, level: float) -> tuple[float, float]:
        """Of all intervals that are listed, a share `level` at least holds the truth; the true share ends at 1.

        Adjusted for having chosen what to list (Benjamini and Yekutieli 2005: 1 - level times the part that is listed).
        """
        z = normal_isf((1 - level) * self.listed / 2)
        return self.least - z * self.least_error, min(1.0, self.most + z * self.most_error)


@dataclass(frozen=True)
class Row:
    """One thing that was found, with its uncertainty."""

    items: tuple[int, ...]
    frequency: float
    standard_error: float
    bounds: Bounds
    noise: float
    """The probability that noise alone lifts any of the candidates of the plan as high, at most (Bonferroni)."""

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval."""
        return self.bounds.interval(0.95)[0]

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval."""
        return self.bounds.interval(0.95)[1]

    def to_row(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "items": list(self.items),
            "frequency": self.frequency,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "noise": self.noise,
        }


@dataclass(frozen=True)
class Result:
    """What a plan found: the k highest estimates, best first, and what to think of them."""

    rows: tuple[Row, ...]
    respondents: int
    detectable: float | None
    """The smallest share that stands out from noise among all candidates; None without data."""
    notes: tuple[str, ...] = ()
    details: "dict[str, Any]" = field(default_factory=dict[str, Any])
    """Numbers met on the way, such as padding lengths."""

    @property
    def status(self) -> str:
        """Whether there is anything to show."""
        return "ok" if self.rows else "no_data"

    def to_row(self) -> dict[str, Any]:
        """Plain data."""
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

Steps = Generator[Round, Received, Result]


class Diary:
    """What a running plan keeps: who answered which round, and remarks for the reader."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.notes: list[str] = []
        self.details: dict[str, Any] = {}
        self.asked = 0.0
        """The share of all respondents that the plan has asked so far."""
        self._answered: dict[int, int] = {}

    @property
    def respondents(self) -> int:
        """Everybody who answered; a group that is asked twice counts once."""
        return sum(self._answered.values())

    def ask(
        self, name: str, share: float, mechanism: Mechanism, about: str, *, group: int | None = None
    ) -> Generator[Round, Received, Any]:
        """The tally of a round; None if nobody answered it, with a note."""
        number = len(self._answered) if group is None else group
        given, tally = yield Round(name, share, mechanism, about, number)
        if given.digest != mechanism.digest or tally.mechanism.digest != mechanism.digest:
            raise InvalidSpec(f"plan: round {name} received a tally of another mechanism; replay rounds in their order")
        self.asked += 0.0 if number in self._answered else share
        self._answered[number] = max(self._answered.get(number, 0), tally.n)
        self.details[f"{name}_respondents"] = tally.n
        if tally.n == 0:
            self.notes.append(f"round {name} had no respondents")
            return None
        return tally

    def result(self, rows: Iterable[Row], detectable: float | None) -> Result:
        """What the plan returns."""
        return Result(tuple(rows), self.respondents, detectable, tuple(self.notes), self.details)


def drive(steps: Steps, ask: Callable[[Round], Any]) -> Result:
    """Run a plan to its end; `ask` puts a round to respondents and returns the tally of their reports."""
    received: Received | None = None
    while True:
        try:
            question = next(steps) if received is None else steps.send(received)
        except StopIteration as stop:
            return stop.value
        received = question.mechanism, ask(question)


def resume(steps: Steps, received: Iterable[Received]) -> "Round | Result":
    """The round that comes next after these, or the result if there is none."""
    try:
        question = next(steps)
        for answer in received:
            question = steps.send(answer)
    except StopIteration as stop:
        return stop.value
    return question
