"""The demo's answers against the truth: what must agree exactly, and what only a broken collector would do.

Counts must agree to the last report. Estimates are random, so the checks are tests with a stated false-alarm
probability: the number of covering intervals, and the largest deviation in standard errors.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import Any

from tacit.core.statistics.normal import normal_isf
from tacit.demo.crowd import Crowd

# Fractions: the binomial tail below is exact, where floating point would lose a probability of one in a million.
LEVEL = Fraction(95, 100)
FALSE_ALARM = Fraction(1, 10**6)
"""Probability that any one of the statistical checks complains about a correct collector. Estimates are taken for
normal, which holds from about 3,000 respondents on; with fewer, the smallest groups stray a little more often."""


@dataclass(frozen=True)
class CheckedRow:
    """One estimate beside the truth, which only a demo knows."""

    question: str
    unit: str
    value: str
    truth: float
    estimate: float
    standard_error: float
    low: float
    high: float
    normal: bool = True
    """Whether the estimate is about normal, so that its deviation is checked; coverage is checked in any case."""

    @property
    def covered(self) -> bool:
        """Whether the interval contains the truth."""
        return self.low <= self.truth <= self.high

    @property
    def deviation(self) -> float:
        """The distance of the estimate from the truth, in standard errors."""
        return abs(self.estimate - self.truth) / self.standard_error


@dataclass(frozen=True)
class DemoOutcome:
    """One collection after the demo: what was sent, what the collector says about it, and the rows to compare."""

    crowd: Crowd
    status: dict[str, Any]
    answers: dict[str, Any]
    rows: list[CheckedRow]
    headings: dict[str, str]
    """The headings of questions as they are printed; rows of a question without one are compared but not shown."""
    told: tuple[str, ...] = ()
    """Sentences to print below the rows."""
    wrong: tuple[str, ...] = ()
    """Failures of the checks that only this collection has."""
    summary: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields that this collection adds to the line of JSON."""


def compare(crowd: Crowd, status: dict[str, Any], answers: dict[str, Any]) -> DemoOutcome:
    """Put the truth beside every raw, unbiased estimate of a collection."""
    rows, headings = list[CheckedRow](), dict[str, str]()
    # strict=False: a collector that answers too little must lead to a complaint below, not to an exception.
    for question, truths in zip(answers["questions"], crowd.truths, strict=False):
        group = f" ({question['n']:,} were asked)" if crowd.collection.policy == "one_of" else ""
        headings[question["name"]] = question["text"]["en"] + group
        for cell, truth in zip(question["rows"], truths.tolist(), strict=False):
            rows.append(CheckedRow(question["name"], question["unit"], str(cell["value"]), truth, **cell["raw"]))
    expected = sum(map(len, crowd.truths))
    wrong = [f"{len(rows)} of {expected} values were answered"] if len(rows) != expected else []
    groups, sent = sum(question["n"] for question in answers["questions"]), len(crowd.values)
    # Where each respondent answers one question, the groups partition the reports.
    if crowd.collection.policy != "all_of" and groups != sent:
        wrong.append(f"{sent} reports sent, its questions have {groups} in all")
    return DemoOutcome(crowd, status, answers, rows, headings, wrong=tuple(wrong))


def fewest_covered(intervals: int) -> int:
    """Return the least number of covering intervals that is not implausible.

    Intervals of one table depend on each other, so that the number of those that miss their truth varies more than if
    they were independent: 1.7 times as much, measured over tables of two questions. Here it is twice as much: as if
    they missed in pairs. Fewer than this cover with probability at most `FALSE_ALARM`, by the exact binomial tail.

    >>> fewest_covered(88), fewest_covered(0)
    (64, 0)
    """
    # `tail` is P(more than `missed` pairs miss), from exact binomial terms.
    pairs = -(-intervals // 2)
    tail = Fraction(1)
    for missed in range(pairs + 1):
        tail -= comb(pairs, missed) * (1 - LEVEL) ** missed * LEVEL ** (pairs - missed)
        if tail <= FALSE_ALARM:
            return max(0, intervals - 2 * missed)
    return 0


def largest_deviation(intervals: int) -> float:
    """Return the deviation that any estimate exceeds with probability at most `FALSE_ALARM` (Bonferroni, two-sided)."""
    return float(normal_isf(float(FALSE_ALARM) / (2 * max(1, intervals))))


def covered_of(rows: Iterable[CheckedRow]) -> tuple[int, int]:
    """Return how many intervals contain the truth, and how many there are."""
    inside = [row.covered for row in rows]
    return sum(inside), len(inside)


def complaints(outcomes: Sequence[DemoOutcome]) -> list[str]:
    """Return everything that is wrong; an empty list for a collector that works."""
    texts = [text for outcome in outcomes for text in _alone(outcome)]
    rows = [row for outcome in outcomes for row in outcome.rows]
    # Over all collections together: more intervals make the test of coverage sharper.
    covered, fewest = covered_of(rows)[0], fewest_covered(len(rows))
    if covered < fewest:
        texts.append(f"only {covered} of {len(rows)} intervals contain the truth; at least {fewest} should")
    most = largest_deviation(len(rows))
    # `not <=` instead of `>`: a NaN estimate must be a complaint as well.
    far = [row for row in rows if row.normal and not row.deviation <= most]
    texts += [
        f"'{row.value}' of question '{row.question}' is {row.deviation:.1f} standard errors from the truth; "
        f"at most {most:.1f} are plausible"
        for row in far
    ]
    return texts


def _alone(outcome: DemoOutcome) -> list[str]:
    """Return what is wrong with one collection: counts that must agree to the last report, and its own checks."""
    sent, status, answers = len(outcome.crowd.values), outcome.status, outcome.answers
    texts: list[str] = []
    if (status["reports"], answers["n"]) != (sent, sent):
        texts.append(f"{sent} reports sent, {status['reports']} stored, {answers['n']} counted")
    if status["rejected"]:
        texts.append(f"{sum(status['rejected'].values())} reports were refused")
    return [f"collection {outcome.crowd.collection.id[:6]}: {text}" for text in [*texts, *outcome.wrong]]
