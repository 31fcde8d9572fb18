"""The demo's questions that are asked together: tables of all pairs, what goes together, and the tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tacit.cli.collections import Remote
from tacit.cli.demo_check import FALSE_ALARM, LEVEL, Outcome, Row, covered_of, largest_deviation
from tacit.cli.demo_crowd import F64, Crowd
from tacit.core.normal import normal_isf
from tacit.tasks.association import entropy_gain

Names = tuple[str, ...]

_LEAST_P = float(FALSE_ALARM) / 100
"""Tests have the law of chi-square approximately; so far out, a hundredth is left for the difference."""

_LARGEST_NOISE = 3
"""Of tables of 3 x 3, noise alone exceeds this many times the upper end of an interval of 95 % with a probability far
below `FALSE_ALARM`: 36 over 11, the quantiles of chi-square with 4 degrees of freedom, less its mean."""


@dataclass(frozen=True)
class Pair:
    """Two questions: how much they tell about each other in truth, and what the collector found."""

    names: Names
    linked: bool
    """Whether they were drawn together."""
    truth: float
    """Their mutual information, in nats."""
    high: float
    """Upper end of the interval for it."""
    standard_error: float
    p_value: float
    dependent: bool
    in_tree: bool

    @property
    def spoken(self) -> str:
        """Its names as words."""
        return " and ".join(self.names)


def compare_joint(place: Remote, crowd: Crowd, status: dict[str, Any], answers: dict[str, Any]) -> Outcome:
    """Put the truth beside the tables of all pairs, and judge what the collector says about them."""
    names = [question.name for question in crowd.collection.questions]
    rows = [row for pair in combinations(names, 2) for row in _table(place, crowd, pair)]
    found = _pairs(place, crowd, names)
    linked, dependent = ([pair.names for pair in found if getattr(pair, name)] for name in ("linked", "dependent"))
    tree = [pair.names for pair in found if pair.in_tree]
    shown = crowd.example.groups[-1]
    headings = {
        " and ".join(shown): f"{' and '.join(shown).capitalize()}, one of the {len(found)} tables of two questions"
    }
    summary = {"joint": {"dependent": dependent, "truly_dependent": linked, "tree": tree}}
    told = (_verdict(found), _tree(found), _coverage(rows, len(found)))
    return Outcome(crowd, status, answers, rows, headings, told, tuple(judge(found)), summary)


def _true_table(crowd: Crowd, names: Names) -> F64:
    """The true shares of all combinations of two answers."""
    asked = crowd.collection.questions
    places = [next(i for i, question in enumerate(asked) if question.name == name) for name in names]
    shape = tuple(asked[place].domain.size for place in places)
    flat = np.ravel_multi_index(tuple(crowd.values[:, place] for place in places), shape)
    return (np.bincount(flat, minlength=int(np.prod(shape))) / len(flat)).reshape(shape)


def _ask(place: Remote, crowd: Crowd, query: str, names: Names = ()) -> dict[str, Any]:
    given = {"attributes": ",".join(names)} if names else {}
    return place.joint(crowd.collection.id, query, given, float(LEVEL))


def _table(place: Remote, crowd: Crowd, names: Names) -> list[Row]:
    cells, truth = _ask(place, crowd, "table", names)["cells"], _true_table(crowd, names).ravel()
    return [
        Row(" and ".join(names), "share", ", ".join(cell["values"]), share, **cell["raw"])
        for cell, share in zip(cells, truth.tolist(), strict=True)
    ]


def _pairs(place: Remote, crowd: Crowd, names: Sequence[str]) -> list[Pair]:
    """What the collector says about every pair, beside the truth."""
    tested = {frozenset(pair["attributes"]): pair for pair in _ask(place, crowd, "associations")["pairs"]}
    tree = [frozenset((edge["from"], edge["to"])) for edge in _ask(place, crowd, "tree")["edges"]]
    width = 2 * float(normal_isf(float(1 - LEVEL) / 2))
    found: list[Pair] = []
    for pair in combinations(names, 2):
        measured, verdict = _ask(place, crowd, "association", pair)["mutual_information"], tested[frozenset(pair)]
        found.append(
            Pair(
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
    return found


def plain(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs whose information the collector must see, and see to be more than that of pairs that were drawn apart.

    It does not with probability `FALSE_ALARM` at most, whichever of them. The test of such a pair is surer still:
    information of z standard errors moves it by 2 z.
    """
    linked = [pair for pair in pairs if pair.linked]
    noise = _LARGEST_NOISE * max(pair.high for pair in pairs if not pair.linked)
    most = largest_deviation(len(linked))
    return [pair for pair in linked if pair.truth - most * pair.standard_error > noise]


def judge(pairs: Sequence[Pair]) -> list[str]:
    """What only a broken collector would say about pairs that were drawn apart, or that plainly go together."""
    apart = [pair for pair in pairs if not pair.linked]
    found = [
        f"{pair.spoken} were drawn independently, but the test finds them connected with p = {pair.p_value:.1g}"
        for pair in apart
        if not pair.p_value >= _LEAST_P / len(apart)
    ]
    for pair in plain(pairs):
        if not pair.dependent:
            found.append(f"{pair.spoken} plainly go together, which was not found")
        if not pair.in_tree:
            found.append(f"{pair.spoken} plainly go together, but no line of the tree joins them")
    return found


def _verdict(pairs: Sequence[Pair]) -> str:
    linked, dependent = ([pair.spoken for pair in pairs if getattr(pair, name)] for name in ("linked", "dependent"))
    found = f"{len(dependent)} of {len(pairs)} pairs go together, with 95 % confidence"
    truth = "as in truth" if dependent == linked else f"in truth {'; '.join(linked)}"
    return f"{found}: {'; '.join(dependent)}, {truth}." if dependent else f"{found}; {truth}."


def _tree(pairs: Sequence[Pair]) -> str:
    lines = [pair.spoken + ("" if pair.dependent else " (may be noise)") for pair in pairs if pair.in_tree]
    return f"The tree of what tells the most about what: {'; '.join(lines)}."


def _coverage(rows: Sequence[Row], tables: int) -> str:
    covered, intervals = covered_of(rows)
    return f"In all {tables} tables, {covered} of {intervals} intervals contain the truth."
