"""The queries that an analyst may send about questions that were asked together.

Tables, tests of independence, conditional shares, the Chow-Liu tree and synthetic records. Every handler takes the
questions, the tally, the request's parameters as text (`given`) and the confidence level, and returns plain JSON; the
table `JOINT` at the end lists them for the HTTP interface and the command line.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, cast

import numpy as np

from tacit.device.domains.domain import Booleans, Categories, Domain, Ordered
from tacit.device.domains.reals import Buckets, Integers
from tacit.errors import InvalidSpec
from tacit.tasks.marginals.association import (
    Measured,
    conditional,
    conditional_interval,
    correlation,
    naive_chi_square,
    odds_ratio,
    wald_test,
)
from tacit.tasks.marginals.dependence import Edge, sample_tree, sample_views
from tacit.tasks.marginals.information import information_interval
from tacit.tasks.marginals.marginals import Table
from tacit.tasks.marginals.sources import F64
from tacit.tasks.marginals.strength import cramers_v, rejected_together
from tacit.tasks.marginals.target import fit_target
from tacit.tasks.marginals.task import MAX_CELLS, MAX_TESTED, AttributePair, names_of, solved
from tacit.tasks.marginals.words import (
    NAIVE_WORDS,
    association_words,
    pairs_words,
    table_words,
    tree_words,
    unknown_words,
)
from tacit.tasks.task import JointQuestions, QuestionTally, TaskQuery, plain_label, plain_number

MAX_PAIRED = 64
"""The most questions of which all pairs are looked at."""

MAX_ROWS = 100_000
_WHOLE_CELLS = 1 << 12


def _chosen(asked: JointQuestions, given: Mapping[str, str], name: str, least: int, most: int) -> tuple[int, ...]:
    """Parse a parameter with names of questions to their places; InvalidSpec for unknown, repeated or too many."""
    texts = [text.strip() for text in given.get(name, "").split(",") if text.strip()]
    if not least <= len(texts) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise InvalidSpec(f"{name} must name {wanted} questions, with commas, out of {_some(asked.names)}")
    for text in texts:
        if text not in asked.names:
            raise InvalidSpec(f"{name}: there is no question '{text[:40]}', must be out of {_some(asked.names)}")
    if len(set(texts)) < len(texts):
        raise InvalidSpec(f"{name}: a question is named twice; name different ones")
    return tuple(asked.names.index(text) for text in texts)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _table_of(asked: JointQuestions, part: QuestionTally, places: Sequence[int], most: int) -> Table:
    cells = prod(asked.sizes[place] for place in places)
    if cells > most:
        raise InvalidSpec(f"attributes: their table has {cells} cells, must be at most {most}; name fewer questions")
    return solved(part).marginals.table(places)


def _ordered(table: Table, places: Sequence[int], flat: F64) -> F64:
    """Reshape flat cells to a table whose axes are in the requested order; tables have theirs in rising order."""
    return flat.reshape(table.shape).transpose([table.attributes.index(place) for place in places])


def _labels(domain: Domain) -> list[Any]:
    return [plain_label(label) for label in domain.all_labels()]


def _attributes(asked: JointQuestions, places: Sequence[int]) -> list[dict[str, Any]]:
    return [{"name": asked.names[place], "labels": _labels(asked.domains[place])} for place in places]


def _missing(asked: JointQuestions, table: Table) -> list[list[str]]:
    return [names_of(asked, unknown) for unknown in table.missing]


def _table(asked: JointQuestions, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `table`: every cell raw and consistent, each with its interval."""
    places = _chosen(asked, given, "attributes", 1, 8)
    table = _table_of(asked, part, places, MAX_CELLS)
    about, missing = _attributes(asked, places), _missing(asked, table)
    raw, (low, high) = table.raw, table.raw.interval(level)
    columns = [_ordered(table, places, flat) for flat in (raw.value, raw.standard_error, low, high)]
    consistent = _ordered(table, places, table.consistent)
    ends = [_ordered(table, places, flat) for flat in table.interval(level)]
    names = ("estimate", "standard_error", "low", "high")
    cells: list[dict[str, Any]] = [
        {
            "values": [about[axis]["labels"][i] for axis, i in enumerate(at)],
            "raw": {name: plain_number(float(column[at])) for name, column in zip(names, columns, strict=True)},
            "consistent": float(consistent[at]),
            "consistent_low": float(ends[0][at]),
            "consistent_high": float(ends[1][at]),
        }
        for at in np.ndindex(*consistent.shape)
    ]
    words = table_words(names_of(asked, places), missing, table)
    answer = {"attributes": about, "cells": cells, "coverage": table.status, "missing": missing}
    return answer | {"agrees": table.agrees, "words": words}


def _numbers(domain: Domain) -> F64 | None:
    """Return the numbers that answers count as in a correlation: integers themselves, else ranks; None if unordered."""
    if isinstance(domain, Integers):
        return np.array(domain.all_labels(), np.float64)
    ordered = isinstance(domain, (Ordered, Buckets, Booleans)) and not isinstance(domain, Categories)
    return np.arange(domain.size, dtype=np.float64) if ordered else None


def _measured(found: Measured) -> dict[str, Any] | None:
    ends = {"estimate": found.value, "low": found.low, "high": found.high}
    return {name: plain_number(end) for name, end in ends.items()} if np.isfinite(found.value) else None


_NO_VERDICT: dict[str, Any] = dict.fromkeys((
    "statistic", "degrees", "p_value", "dependent", "reliable", "mutual_information", "cramers_v", "correlation",
    "odds_ratio", "naive",
))  # fmt: skip


def _association(asked: JointQuestions, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `association`: test, effect sizes and intervals of two questions; None values where not asked together."""
    places = _chosen(asked, given, "attributes", 2, 2)
    table, names = _table_of(asked, part, places, MAX_TESTED), names_of(asked, places)
    about = {"attributes": names, "coverage": table.status}
    if table.status != "covered":
        return about | _NO_VERDICT | {"words": unknown_words(names, table)}
    verdict, naive = wald_test(table), naive_chi_square(table)
    # A correlation needs an order on both sides.
    numbers = tuple(_numbers(asked.domains[place]) for place in table.attributes)
    related = None if any(x is None for x in numbers) else correlation(table, level=level, values=cast("Any", numbers))
    return about | {
        "statistic": verdict.statistic,
        "degrees": verdict.degrees,
        "p_value": verdict.p_value,
        "dependent": verdict.rejects(1 - level),
        "reliable": verdict.reliable,
        "words": association_words(names, verdict, level),
        "mutual_information": _measured(information_interval(table, level=level)),
        "cramers_v": cramers_v(table),
        "correlation": None if related is None else _measured(related),
        "odds_ratio": _measured(odds_ratio(table, level=level)) if table.shape == (2, 2) else None,
        "naive": {"statistic": naive.statistic, "p_value": naive.p_value, "words": NAIVE_WORDS},
    }


def _check_pairs(asked: JointQuestions, query: str) -> None:
    """Raise InvalidSpec where there are too many pairs to test within a request."""
    if len(asked.names) > MAX_PAIRED:
        raise InvalidSpec(
            f"{query}: {len(asked.names)} questions have too many pairs, must be at most {MAX_PAIRED} questions; "
            "ask for the association of two at a time"
        )


def _associations(asked: JointQuestions, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `associations`: tests of all pairs, the most informative first, corrected for their number."""
    del given
    _check_pairs(asked, "associations")
    pairs = solved(part).pairs
    dependent = _dependent(pairs, level)
    rows = [_pair(asked, places, pair) | {"dependent": dependent.get(places)} for places, pair in pairs.items()]
    rows.sort(key=lambda row: -(row["mutual_information"] or 0.0))
    return {"pairs": rows, "words": pairs_words(len(dependent), sum(dependent.values()), len(rows) - len(dependent))}


def _dependent(pairs: Mapping[Edge, AttributePair], level: float) -> dict[Edge, bool]:
    """Return which testable pairs are dependent, with the family-wise error rate held at 1 - level (Holm)."""
    tested = {places: pair.verdict.p_value for places, pair in pairs.items() if pair.verdict is not None}
    return dict(zip(tested, rejected_together(list(tested.values()), 1 - level), strict=True))


def _pair(asked: JointQuestions, places: Edge, pair: AttributePair) -> dict[str, Any]:
    """Return the JSON of one pair; None for what was not asked, or is too large to test."""
    return {
        "attributes": names_of(asked, places),
        "p_value": None if pair.verdict is None else pair.verdict.p_value,
        "mutual_information": None if pair.information is None else pair.information.corrected,
        "coverage": pair.status,
    }


def _conditional(asked: JointQuestions, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `conditional`: the shares of one question's answers given each answer of another."""
    places = (*_chosen(asked, given, "attributes", 1, 1), *_chosen(asked, given, "given", 1, 1))
    if places[0] == places[1]:
        raise InvalidSpec("given: a question is named twice; name different ones")
    table = _table_of(asked, part, places, MAX_TESTED)
    # Axis of the question whose shares are wanted; `conditional` moves it last, after the dividing question.
    axis = table.attributes.index(places[0])
    known = table.status not in ("unseen", "no_data")
    shares = conditional(table, axis)
    low, high = conditional_interval(table, axis, level=level) if known else (shares.value, shares.value)
    about, cells = _attributes(asked, places), list[dict[str, Any]]()
    for at in np.ndindex(*shares.value.shape):
        numbers = (float(column[at]) if known else None for column in (shares.value, low, high))
        cells.append(
            {"given": about[1]["labels"][at[0]], "value": about[0]["labels"][at[1]]}
            | dict(zip(("estimate", "low", "high"), numbers, strict=True))
        )
    words = table_words(names_of(asked, places), _missing(asked, table), table)
    return {"attributes": about, "cells": cells, "coverage": table.status, "words": words}


def _tree(asked: JointQuestions, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `tree`: the Chow-Liu tree, each edge with its mutual information and whether it is significant."""
    del given
    _check_pairs(asked, "tree")
    solution = solved(part)
    dependent = _dependent(solution.pairs, level)
    edges: list[dict[str, Any]] = []
    for a, b in solution.tree.edges:
        pair = min(a, b), max(a, b)
        about = {"from": asked.names[a], "to": asked.names[b], "mutual_information": solution.tree.corrected[pair]}
        edges.append(about | {"dependent": dependent.get(pair)})
    linked, unknown = sum(edge["dependent"] is True for edge in edges), len(solution.pairs) - len(dependent)
    return {"nodes": list(asked.names), "edges": edges, "words": tree_words(len(edges), linked, unknown)}


def _whole(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise InvalidSpec(f"{name} must be an integer from {least} to {most}")
    return int(text)


def _models(asked: JointQuestions, part: QuestionTally) -> list[tuple[int, ...]]:
    """The sets of questions whose tables a sample of views is drawn from."""
    if part.mechanism.drawn_from is not None:
        return part.mechanism.drawn_from.tables()
    everything = tuple(range(len(asked.names)))
    return [everything] if prod(asked.sizes) <= _WHOLE_CELLS else list(combinations(everything, 2))


def _synthetic(asked: JointQuestions, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `synthetic`: records drawn from the tree or from the views' tables; post-processing, so free of budget."""
    del level
    n, seed = _whole(given, "rows", 1000, 1, MAX_ROWS), _whole(given, "seed", 0, 0, (1 << 63) - 1)
    model = given.get("model", "target" if "target" in given else "tree")
    if model not in ("tree", "views", "target"):
        raise InvalidSpec("model must be tree, views or target")
    _check_pairs(asked, "synthetic")
    rng, solution = np.random.default_rng(seed), solved(part)
    if model == "target":
        records = fit_target(solution.marginals, _chosen(asked, given, "target", 1, 1)[0]).sample(n, rng)
    elif model == "tree":
        records = sample_tree(solution.marginals, solution.tree, n, rng)
    else:
        records = sample_views(solution.marginals, _models(asked, part), n, rng)
    labels = [_labels(domain) for domain in asked.domains]
    rows = [[labels[i][at] for i, at in enumerate(row)] for row in records.tolist()]
    return {"columns": list(asked.names), "rows": rows}


_NAMED = "names of questions, with commas"
JOINT: tuple[TaskQuery[JointQuestions], ...] = (
    TaskQuery("table", "The shares of all combinations of answers to a few questions.", {"attributes": _NAMED}, _table),
    TaskQuery("association", "Whether two questions go together, and how strongly.",
          {"attributes": "names of two questions, with a comma"}, _association),
    TaskQuery("associations", "Whether they go together, for all pairs of questions.", {}, _associations),
    TaskQuery("conditional", "The answers to one question among those with each answer to another.",
          {"attributes": "whose shares are asked for", "given": "the question that divides"}, _conditional),
    TaskQuery("tree", "The tree of the questions that tell the most about each other (Chow-Liu).", {}, _tree),
    TaskQuery("synthetic", "Made-up respondents with the connections that were found.",
          {"rows": "how many", "seed": "of the random numbers", "model": "tree, views or target",
           "target": "the question that all others depend on"}, _synthetic),
)  # fmt: skip
"""The queries by name, each with its description, its parameters and its handler."""
