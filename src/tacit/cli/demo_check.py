"""The demo's own answers against the truth: what must agree exactly, and what only a broken collector would do."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

from tacit.cli.demo_crowd import Crowd
from tacit.core.normal import normal_isf

LEVEL = Fraction(95, 100)
FALSE_ALARM = Fraction(1, 10**6)
"""Probability that either statistical check complains about a correct collector."""


@dataclass(frozen=True)
class Row:
    """One estimate beside the truth."""

    question: str
    unit: str
    value: str
    truth: float
    estimate: float
    standard_error: float
    low: float
    high: float

    @property
    def covered(self) -> bool:
        """Whether the interval contains the truth."""
        return self.low <= self.truth <= self.high

    @property
    def deviation(self) -> float:
        """How many standard errors the estimate is away from the truth."""
        return abs(self.estimate - self.truth) / self.standard_error


@dataclass(frozen=True)
class Outcome:
    """One collection after the demo: what was sent, what the collector says about it, and the rows to compare."""

    crowd: Crowd
    status: dict[str, Any]
    answers: dict[str, Any]
    rows: list[Row]


def compare(crowd: Crowd, status: dict[str, Any], answers: dict[str, Any]) -> Outcome:
    """Put the truth beside every raw, unbiased estimate of a collection."""
    rows: list[Row] = []
    for question, truths in zip(answers["questions"], crowd.truths, strict=False):
        for cell, truth in zip(question["rows"], truths.tolist(), strict=False):
            rows.append(Row(question["name"], question["unit"], str(cell["value"]), truth, **cell["raw"]))
    return Outcome(crowd, status, answers, rows)


def fewest_covered(intervals: int) -> int:
    """The least number of covering intervals that is not implausible.

    The largest k such that fewer than k of the intervals contain their truth with probability at most `FALSE_ALARM`,
    by the exact binomial tail. Intervals of one question depend on each other a little, which the tail leaves out.

    >>> fewest_covered(27), fewest_covered(0)
    (18, 0)
    """
    tail = Fraction(0)
    for covered in range(intervals + 1):
        tail += comb(intervals, covered) * LEVEL**covered * (1 - LEVEL) ** (intervals - covered)
        if tail > FALSE_ALARM:
            return covered
    return intervals


def largest_deviation(intervals: int) -> float:
    """Standard errors that some of the estimates exceeds with probability `FALSE_ALARM` at most, however dependent."""
    return float(normal_isf(float(FALSE_ALARM) / (2 * max(1, intervals))))


def complaints(outcomes: Sequence[Outcome]) -> list[str]:
    """Everything that is wrong; nothing for a collector that works."""
    found = [text for outcome in outcomes for text in _miscounted(outcome)]
    rows = [row for outcome in outcomes for row in outcome.rows]
    covered, fewest = sum(row.covered for row in rows), fewest_covered(len(rows))
    if covered < fewest:
        found.append(f"only {covered} of {len(rows)} intervals contain the truth; at least {fewest} should")
    most = largest_deviation(len(rows))
    far = [row for row in rows if not row.deviation <= most]
    found += [
        f"'{row.value}' of question '{row.question}' is {row.deviation:.1f} standard errors from the truth; "
        f"at most {most:.1f} are plausible"
        for row in far
    ]
    return found


def _miscounted(outcome: Outcome) -> list[str]:
    """Counts that must agree to the last report."""
    sent, name = len(outcome.crowd.values), f"collection {outcome.crowd.collection.id[:6]}"
    status, answers = outcome.status, outcome.answers
    found: list[str] = []
    if (status["reports"], answers["n"]) != (sent, sent):
        found.append(f"{name}: {sent} reports sent, {status['reports']} stored, {answers['n']} counted")
    if status["rejected"]:
        found.append(f"{name}: {sum(status['rejected'].values())} reports were refused")
    expected = sum(map(len, outcome.crowd.truths))
    if len(outcome.rows) != expected:
        found.append(f"{name}: {len(outcome.rows)} of {expected} values were answered")
    groups = sum(question["n"] for question in answers["questions"])
    if outcome.crowd.collection.policy != "all_of" and groups != sent:
        found.append(f"{name}: {sent} reports sent, its questions have {groups} in all")
    return found
