"""The demo's questions that are asked together: tables of all pairs, associations and the Chow-Liu tree.

The crowd is drawn so that some pairs are strongly dependent and all others independent (`Example.groups`). The checks
ask that the collector tells these apart, with margins that make a false alarm as rare as `check.FALSE_ALARM`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tacit.client.operator import Operator
from tacit.core.statistics.normal import normal_isf
from tacit.demo.check import FALSE_ALARM, LEVEL, CheckedRow, DemoOutcome, covered_of, largest_deviation
from tacit.demo.crowd import F64, Crowd
from tacit.tasks.marginals.association import entropy_gain

Names = tuple[str, ...]

_LEAST_P = float(FALSE_ALARM) / 100
"""The smallest plausible p-value. The chi-square law is approximate that far out: a factor of 100 allows for it."""

_LARGEST_NOISE = 3
"""Of tables of 3 x 3, noise alone exceeds this many times the upper end of an interval of 95 % with a probability far
below `FALSE_ALARM`: 36 over 11, the quantiles of chi-square with 4 degrees of freedom, less its mean."""


@dataclass(frozen=True)
class DemoPair:
    """Two questions: their true mutual information, and what the collector says about them."""

    names: Names
    linked: bool
    """Whether they were drawn dependent on each other."""
    truth: float
    """The mutual information of the crowd's true answers, in nats."""
    high: float
    """The upper end of the collector's interval for it."""
    standard_error: float
    p_value: float
    dependent: bool
    in_tree: bool

    @property
    def spoken(self) -> str:
        """The names of both questions as words."""
        return " and ".join(self.names)


def compare_joint(place: Operator, crowd: Crowd, status: dict[str, Any], answers: dict[str, Any]) -> DemoOutcome:
    """Put the truth beside the tables of all pairs, and judge what the collector says about them."""
    names = [question.name for question in crowd.collection.questions]
    rows = [row for pair in combinations(names, 2) for row in _table(place, crowd, pair)]
    pairs = _pairs(place, crowd, names)
    linked, dependent = ([pair.names for pair in pairs if getattr(pair, name)] for name in ("linked", "dependent"))
    tree = [pair.names for pair in pairs if pair.in_tree]
    # All tables are compared, one of them is printed.
    shown = crowd.example.groups[-1]
    headings = {
        " and ".join(shown): f"{' and '.join(shown).capitalize()}, one of the {len(pairs)} tables of two questions"
    }
    summary = {"joint": {"dependent": dependent, "truly_dependent": linked, "tree": tree}}
    told = (_verdict(pairs), _tree(pairs), _coverage(rows, len(pairs)))
    return DemoOutcome(crowd, status, answers, rows, headings, told, tuple(judge(pairs)), summary)


def _true_table(crowd: Crowd, names: Names) -> F64:
    """Return the true shares of all combinations of two questions' answers."""
    questions = crowd.collection.questions
    places = [next(i for i, question in enumerate(questions) if question.name == name) for name in names]
    shape = tuple(questions[place].domain.size for place in places)
    flat = np.ravel_multi_index(tuple(crowd.values[:, place] for place in places), shape)
    return (np.bincount(flat, minlength=int(np.prod(shape))) / len(flat)).reshape(shape)


def _ask(place: Operator, crowd: Crowd, query: str, names: Names = ()) -> dict[str, Any]:
    parameters = {"attributes": ",".join(names)} if names else {}
    return place.joint(crowd.collection.id, query, parameters, float(LEVEL))


def _table(place: Operator, crowd: Crowd, names: Names) -> list[CheckedRow]:
    """Ask for the table of two questions, and put the true shares beside its cells."""
    cells, truth = _ask(place, crowd, "table", names)["cells"], _true_table(crowd, names).ravel()
    return [
        CheckedRow(" and ".join(names), "share", ", ".join(cell["values"]), share, **cell["raw"])
        for cell, share in zip(cells, truth.tolist(), strict=True)
    ]


def _pairs(place: Operator, crowd: Crowd, names: Sequence[str]) -> list[DemoPair]:
    """Ask the collector about every pair, and put the truth beside its answers."""
    tested = {frozenset(pair["attributes"]): pair for pair in _ask(place, crowd, "associations")["pairs"]}
    tree = [frozenset((edge["from"], edge["to"])) for edge in _ask(place, crowd, "tree")["edges"]]
    # An interval has no standard error of its own: its width over that of a normal interval serves as one.
    width = 2 * float(normal_isf(float(1 - LEVEL) / 2))
    rows: list[DemoPair] = []
    for pair in combinations(names, 2):
        measured, verdict = _ask(place, crowd, "association", pair)["mutual_information"], tested[frozenset(pair)]
        rows.append(
            DemoPair(
                names=pair,
                linked=any(set(pair) <= set(group) for group in crowd.example.groups),
                truth=entropy_gain(_true_table(crowd, pair)),
                high=measured["high"],
                standard_error=(measured["high"] - measured["low"]) / width,
                p_value=verdict["p_value"],
                dependent=verdict["dependent"],
                in_tree=frozenset(pair) in tree,
            )
        )
    return rows


def plain(pairs: Sequence[DemoPair]) -> list[DemoPair]:
    """Return the dependent pairs that stand out so far that the collector must find them, and rank them first.

    It does not with probability `FALSE_ALARM` at most, whichever of them. The test of such a pair is surer still:
    information of z standard errors moves it by 2 z.
    """
    # Two margins: the information must exceed what noise shows between independent questions, by more than its own
    # interval could be off. With few respondents no pair passes, and nothing is demanded of the collector.
    linked = [pair for pair in pairs if pair.linked]
    noise = _LARGEST_NOISE * max(pair.high for pair in pairs if not pair.linked)
    most = largest_deviation(len(linked))
    return [pair for pair in linked if pair.truth - most * pair.standard_error > noise]


def judge(pairs: Sequence[DemoPair]) -> list[str]:
    """Return what only a broken collector would say about independent pairs, or about plainly dependent ones."""
    apart = [pair for pair in pairs if not pair.linked]
    wrong = [
        f"{pair.spoken} were drawn independently, but the test finds them connected with p = {pair.p_value:.1g}"
        for pair in apart
        # Bonferroni over the independent pairs; `not >=` also catches NaN.
        if not pair.p_value >= _LEAST_P / len(apart)
    ]
    for pair in plain(pairs):
        if not pair.dependent:
            wrong.append(f"{pair.spoken} plainly go together, which was not found")
        if not pair.in_tree:
            wrong.append(f"{pair.spoken} plainly go together, but no line of the tree joins them")
    return wrong


def _verdict(pairs: Sequence[DemoPair]) -> str:
    linked, dependent = ([pair.spoken for pair in pairs if getattr(pair, name)] for name in ("linked", "dependent"))
    claim = f"{len(dependent)} of {len(pairs)} pairs go together, with 95 % confidence"
    truth = "as in truth" if dependent == linked else f"in truth {'; '.join(linked)}"
    return f"{claim}: {'; '.join(dependent)}, {truth}." if dependent else f"{claim}; {truth}."


def _tree(pairs: Sequence[DemoPair]) -> str:
    lines = [pair.spoken + ("" if pair.dependent else " (may be noise)") for pair in pairs if pair.in_tree]
    return f"The tree of what tells the most about what: {'; '.join(lines)}."


def _coverage(rows: Sequence[CheckedRow], tables: int) -> str:
    covered, intervals = covered_of(rows)
    return f"In all {tables} tables, {covered} of {intervals} intervals contain the truth."
