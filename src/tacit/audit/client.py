"""AUD-CP: a lower confidence bound of the epsilon that a client spends, from the reports it prints.

For two answers v and v' an event is chosen on a pilot sample; on fresh reports its shares are bounded by Clopper and
Pearson, the larger from below and the smaller from above, and the log of their ratio is a lower bound of epsilon. With
several pairs of answers each bound gets an equal part of the error probability (Bonferroni). An audit refutes a claim
or does not; it never proves one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.audit.events import Pilot, ReportEvent
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.statistics.binomial import clopper_pearson
from tacit.errors import InvalidSpec
from tacit.testing.laws import values_of

CONFIDENCE = 0.999
MOST_VALUES = 8
"""Answers that are compared with each other unless pairs are named: 28 pairs."""
_LEAST_PILOT, _MOST_PILOT = 2_000, 100_000
_MOST_COINCIDENCE = -30.0
"""The log of the probability below which it is no coincidence that a program prints the same reports again."""


class ReportPrinter(Protocol):
    """What prints reports on a value: a program, or a function in tests."""

    def sample(self, mechanism: Mechanism, value: Any, runs: int) -> Iterator[Reports]:
        """Yield batches of fresh reports on one value, `runs` in all."""
        ...


@dataclass(frozen=True)
class PairBound:
    """What was found about two answers; the event is the more frequent under the first of them."""

    values: tuple[Any, Any]
    event: str
    hits: tuple[int, int]
    runs: int
    epsilon_lower: float

    def to_json(self) -> dict[str, Any]:
        """A row of the result."""
        return {
            "values": list(self.values),
            "event": self.event,
            "hits": list(self.hits),
            "runs": self.runs,
            "epsilon_lower": _finite(self.epsilon_lower),
        }


@dataclass(frozen=True)
class ClientAudit:
    """The outcome of a black-box audit."""

    mechanism: Mechanism
    declared: float
    confidence: float
    runs: int
    pilot_runs: int
    pairs: tuple[PairBound, ...]
    repeats: tuple[Any, ...] = ()
    """Answers on which the program printed the very same reports when it was started again."""

    @property
    def worst(self) -> PairBound:
        """The pair with the largest lower bound."""
        return max(self.pairs, key=lambda pair: pair.epsilon_lower)

    @property
    def refuted(self) -> bool:
        """Whether the declared epsilon is refuted at this confidence."""
        return self.worst.epsilon_lower > self.declared or bool(self.repeats)

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain values."""
        return {
            "spec": self.mechanism.spec(),
            "declared": self.declared,
            "epsilon_lower": _finite(self.worst.epsilon_lower),
            "refuted": self.refuted,
            "confidence": self.confidence,
            "runs": self.runs,
            "pilot_runs": self.pilot_runs,
            "repeats": list(self.repeats),
            "worst": self.worst.to_json(),
            "pairs": [pair.to_json() for pair in self.pairs],
        }


def _finite(bound: float) -> float | None:
    """A bound as JSON has it; null where nothing was bounded."""
    return None if abs(bound) == inf else bound


def epsilon_lower(
    hits: npt.ArrayLike, others: npt.ArrayLike, runs: int, confidence: float, *, delta: float = 0.0
) -> F64:
    """Return lower bounds ln((low - delta)/high) of epsilon from hits of events under two answers, of `runs` each.

    >>> round(float(epsilon_lower(480, 180, 1000, 0.999)), 3)
    0.652
    """
    # Each of the two one-sided bounds has half of the error probability, as the interval's two ends have.
    low, high = clopper_pearson(hits, runs, confidence)[0] - delta, clopper_pearson(others, runs, confidence)[1]
    bound = np.full(low.shape, -inf)
    np.log(low / high, out=bound, where=low > 0)
    return bound


def audit_values(mechanism: Mechanism) -> list[Any]:
    """Return up to 8 values that are compared: all of a small domain, else some from its first to its last."""
    size = mechanism.value_count
    if mechanism.drawn_from is not None or len(mechanism.per_question) > 1 or not hasattr(mechanism, "size"):
        return values_of(mechanism)[:MOST_VALUES]
    listed = values_of(mechanism)
    if not isinstance(listed[0], int) or size <= MOST_VALUES:
        return listed[:MOST_VALUES]
    return [i * (size - 1) // (MOST_VALUES - 1) for i in range(MOST_VALUES)]


@dataclass(frozen=True)
class _Question:
    """Two answers, the likelier one under the event first, and the event that is to tell them apart."""

    values: tuple[Any, Any]
    event: ReportEvent


@dataclass(frozen=True)
class _Sampling:
    """Where reports come from, and who is told how many there are."""

    mechanism: Mechanism
    source: ReportPrinter
    advance: Callable[[int], None]

    def pilot(self, value: Any, runs: int) -> Reports:
        parts = list(self._batches(value, runs))
        return np.concatenate([np.empty(0, self.mechanism.report_dtype), *parts])

    def fresh(self, value: Any, runs: int, events: Sequence[ReportEvent], pilot: Reports) -> tuple[list[int], bool]:
        """Hits of every event in fresh reports, and whether these begin with the whole pilot again."""
        hits, repeated = [0] * len(events), False
        for i, reports in enumerate(self._batches(value, runs)):
            repeated = repeated or (i == 0 and self._repeated(value, pilot, reports))
            hits = [k + int(np.count_nonzero(e.holds(reports))) for k, e in zip(hits, events, strict=True)]
        return hits, repeated

    def _batches(self, value: Any, runs: int) -> Iterator[Reports]:
        for reports in self.source.sample(self.mechanism, value, runs):
            self.advance(len(reports))
            yield reports

    def _repeated(self, value: Any, pilot: Reports, reports: Reports) -> bool:
        shared = min(len(pilot), len(reports))
        if pilot[:shared].tobytes() != reports[:shared].tobytes():
            return False
        # The probability that a program of the declared law prints these very reports again.
        return float(self.mechanism.log_prob(pilot[:shared], value).sum()) < _MOST_COINCIDENCE


def audit_client(
    mechanism: Mechanism, source: ReportPrinter, *, runs: int, pairs: Iterable[tuple[Any, Any]] | None = None,
    pilot_runs: int | None = None, confidence: float = CONFIDENCE, delta: float = 0.0,
    advance: Callable[[int], None] = lambda _: None,
) -> ClientAudit:  # fmt: skip
    """Bound the epsilon of a source of reports from below, over all pairs of up to 8 values or the given ones.

    Every value is sampled once: `pilot_runs` reports to choose events on, then `runs` fresh ones.
    """
    chosen = list(combinations(audit_values(mechanism), 2)) if pairs is None else list(pairs)
    _check(chosen, runs, confidence, delta)
    pilot_size = pilot_size_of(runs) if pilot_runs is None else pilot_runs
    sampling = _Sampling(mechanism, source, advance)
    values = list(dict.fromkeys(value for pair in chosen for value in pair))
    pilots = {value: sampling.pilot(value, pilot_size) for value in values}
    questions = [_question(mechanism, pair, pilots) for pair in chosen]
    hits, repeats = _answers(sampling, questions, pilots, runs)
    each = 1 - (1 - confidence) / len(questions)
    lower = epsilon_lower([k for k, _ in hits], [j for _, j in hits], runs, each, delta=delta).tolist()
    bounds = tuple(
        PairBound(q.values, q.event.name, (k, j), runs, bound)
        for q, (k, j), bound in zip(questions, hits, lower, strict=True)
    )
    declared = float(mechanism.budget.declared)
    return ClientAudit(mechanism, declared, confidence, runs, pilot_size, bounds, _telling(repeats, pilots))


def pilot_size_of(runs: int) -> int:
    """How many reports events are chosen on, unless it is said: a tenth of those that test them."""
    return min(_MOST_PILOT, max(_LEAST_PILOT, runs // 10))


def _check(pairs: Sequence[tuple[Any, Any]], runs: int, confidence: float, delta: float) -> None:
    if not pairs or any(a == b for a, b in pairs):
        raise InvalidSpec("audit: pairs must be one or more of two different values, such as 0:1")
    if runs < 1:
        raise InvalidSpec(f"audit: runs is {runs}, must be at least 1")
    if not 0.5 <= confidence < 1:
        raise InvalidSpec(f"audit: confidence is {confidence:g}, must be from 0.5 to below 1, such as 0.999")
    if not 0 <= delta < 1:
        raise InvalidSpec(f"audit: delta is {delta:g}, must be from 0 to below 1")


def _question(mechanism: Mechanism, pair: tuple[Any, Any], pilots: dict[Any, Reports]) -> _Question:
    # Either answer may be the one that an event gives away.
    orders = [Pilot(mechanism, (a, b), (pilots[a], pilots[b])) for a, b in (pair, pair[::-1])]
    best = max(((pilot.best(), pilot) for pilot in orders), key=lambda found: found[0][0])
    return _Question(best[1].values, best[0][1])


def _answers(
    sampling: _Sampling, questions: Sequence[_Question], pilots: dict[Any, Reports], runs: int
) -> tuple[list[list[int]], list[Any]]:
    """Hits of every question under its two values, and the values on which the source repeats itself."""
    hits, repeats = [[0, 0] for _ in questions], list[Any]()
    for value, pilot in pilots.items():
        places = [(i, q.values.index(value)) for i, q in enumerate(questions) if value in q.values]
        found, repeated = sampling.fresh(value, runs, [questions[i].event for i, _ in places], pilot)
        for (i, side), count in zip(places, found, strict=True):
            hits[i][side] = count
        if repeated:
            repeats.append(value)
    return hits, repeats


def _telling(repeats: Sequence[Any], pilots: dict[Any, Reports]) -> tuple[Any, ...]:
    """Values that give themselves away by repetition; a source that ignores its input repeats and tells nothing."""
    different = {pilots[value].tobytes() for value in repeats}
    return tuple(repeats) if len(different) > 1 else ()
