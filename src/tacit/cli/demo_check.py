"""The demo's own answers against the truth: what must agree exactly, and what only a broken collector would do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import Any

from tacit.cli.demo_crowd import Crowd
from tacit.core.normal import normal_isf

LEVEL = Fraction(95, 100)
FALSE_ALARM = Fraction(1, 10**6)
"""Probability that any one of the statistical checks complains about a correct collector. Estimates are taken for
normal, which holds from about 3,000 respondents on; with fewer, the smallest groups stray a little more often."""


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
    normal: bool = True
    """Whether it is held to the largest plausible deviation, by the normal law."""

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
    headings: dict[str, str]
    """What stands above the rows of a question; those without are compared and not shown."""
    told: tuple[str, ...] = ()
    """Sentences for below."""
    wrong: tuple[str, ...] = ()
    """What this collection alone is checked for."""
    summary: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the line of JSON has beside the counts."""


def compare(crowd: Crowd, status: dict[str, Any], answers: dict[str, Any]) -> Outcome:
    """Put the truth beside every raw, unbiased estimate of a collection."""
    rows, headings = list[Row](), dict[str, str]()
    for question, truths in zip(answers["questions"], crowd.truths, strict=False):
        group = f" ({question['n']:,} were asked)" if crowd.collection.policy == "one_of" else ""
        headings[question["name"]] = question["text"]["en"] + group
        for cell, truth in zip(question["rows"], truths.tolist(), strict=False):
            rows.append(Row(question["name"], question["unit"], str(cell["value"]), truth, **cell["raw"]))
    expected = sum(map(len, crowd.truths))
    wrong = [f"{len(rows)} of {expected} values were answered"] if len(rows) != expected else []
    groups, sent = sum(question["n"] for question in answers["questions"]), len(crowd.values)
    if crowd.collection.policy != "all_of" and groups != sent:
        wrong.append(f"{sent} reports sent, its questions have {groups} in all")
    return Outcome(crowd, status, answers, rows, headings, wrong=tuple(wrong))


def fewest_covered(intervals: int) -> int:
    """The least number of covering intervals that is not implausible.

    Intervals of one table depend on each other, so that the number of those that miss their truth varies more than if
    they were independent: 1.7 times as much, measured over tables of two questions. Here it is twice as much: as if
    they missed in pairs. Fewer than this cover with probability at most `FALSE_ALARM`, by the exact binomial tail.

    >>> fewest_covered(88), fewest_covered(0)
    (64, 0)
    """
    pairs = -(-intervals // 2)
    tail = Fraction(1)
    for missed in range(pairs + 1):
        tail -= comb(pairs, missed) * (1 - LEVEL) ** missed * LEVEL ** (pairs - missed)
        if tail <= FALSE_ALARM:
            return max(0, intervals - 2 * missed)
    return 0


def largest_deviation(intervals: int) -> float:
    """Standard errors that some of the estimates exceeds with probability `FALSE_ALARM` at most, however dependent."""
    return float(normal_isf(float(FALSE_ALARM) / (2 * max(1, intervals))))


def covered_of(rows: Iterable[Row]) -> tuple[int, int]:
    """How many intervals contain the truth, and how many there are."""
    found = [row.covered for row in rows]
    return sum(found), len(found)


def complaints(outcomes: Sequence[Outcome]) -> list[str]:
    """Everything that is wrong; nothing for a collector that works."""
    found = [text for outcome in outcomes for text in _alone(outcome)]
    rows = [row for outcome in outcomes for row in outcome.rows]
    covered, fewest = covered_of(rows)[0], fewest_covered(len(rows))
    if covered < fewest:
        found.append(f"only {covered} of {len(rows)} intervals contain the truth; at least {fewest} should")
    most = largest_deviation(len(rows))
    far = [row for row in rows if row.normal and not row.deviation <= most]
    found += [
        f"'{row.value}' of question '{row.question}' is {row.deviation:.1f} standard errors from the truth; "
        f"at most {most:.1f} are plausible"
        for row in far
    ]
    return found


def _alone(outcome: Outcome) -> list[str]:
    """What is wrong with one collection: counts that must agree to the last report, and its own checks."""
    sent, status, answers = len(outcome.crowd.values), outcome.status, outcome.answers
    found: list[str] = []
    if (status["reports"], answers["n"]) != (sent, sent):
        found.append(f"{sent} reports sent, {status['reports']} stored, {answers['n']} counted")
    if status["rejected"]:
        found.append(f"{sum(status['rejected'].values())} reports were refused")
    return [f"collection {outcome.crowd.collection.id[:6]}: {text}" for text in [*found, *outcome.wrong]]
