"""The task `histogram`: the share of every answer to a question with a list of answers, of sets, and the largest."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.statistics.level import selected_level
from tacit.core.tally import Counts
from tacit.device.domains.domain import MAX_LABELS, Domain
from tacit.device.domains.items import Items
from tacit.device.domains.optional import answered
from tacit.device.domains.text import Text
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec, InvalidValue
from tacit.post.frequencies.methods import Method, Processed, default_method, process
from tacit.post.frequencies.select import Replay, Selection, select_methods
from tacit.post.frequencies.sums import share_of_set
from tacit.tasks.choose import OPTIONS, WORD_OPTIONS, choose_oracle
from tacit.tasks.task import (
    UNPLANNED,
    Answer,
    Forecast,
    QuestionTally,
    QuestionTask,
    TaskQuery,
    plain_label,
    plain_number,
)

_OTHERWISE = {
    "strings": "set its task to heavy_hitters, which looks up the texts that are named later",
    "bits": "set its task to heavy_hitters, or ask for fewer bits",
    "integers": "set its task to mean, ranges or heavy_hitters, or give it a larger step",
    "product": "ask for fewer attributes, or for coarser ones",
}
"""What to do with a question that has too many answers to list them, by kind of domain."""


def question_name(domain: Domain) -> str:
    """What messages call the question of a domain."""
    return getattr(domain, "name", domain.kind)


def check_listed(domain: Domain, who: str) -> None:
    """Raise InvalidSpec unless every respondent gives one answer of a list; the message says what to do instead."""
    if isinstance(answered(domain), Items):
        raise InvalidSpec(
            f"{who}: '{question_name(domain)}' is answered with a set of items, not with one label; set its task to "
            "shares for the share of every item, or to items or itemsets and make it the only question of its draft"
        )
    if isinstance(domain, Text):
        raise InvalidSpec(
            f"{who}: '{domain.name}' is answered with free text, whose values are not listed; set its task to "
            "heavy_hitters, which finds the most frequent ones, or list the answers as categories"
        )
    # Answers list every label, so the limit is on what can be shown, not on what an oracle can estimate.
    if domain.size > MAX_LABELS:
        name, todo = question_name(domain), _OTHERWISE.get(domain.kind, "declare fewer answers")
        raise InvalidSpec(f"{who}: '{name}' has {domain.size} values, at most {MAX_LABELS} are listed; {todo}")


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    check_listed(domain, "histogram")
    return choose_oracle(size=domain.size, epsilon=budget, n=n).pick.mechanism


def _plan_word(domain: Domain, budget: Budget, n: int) -> Mechanism:
    check_listed(domain, "histogram")
    return choose_oracle(size=domain.size, epsilon=budget, n=n, options=WORD_OPTIONS).pick.mechanism


MOST_LARGEST = 1000
"""The longest list of largest answers."""

_ORDERED = ("ordered", "integers", "buckets")
"""Domains whose answers have an order, so that neighbours make a range."""


def _answer(domain: Domain, part: QuestionTally) -> Answer:
    labelled = replace(part.estimate(), labels=domain.all_labels())
    processed = process(labelled, _picked(domain, part, labelled, "cells"))
    return Answer("share", labelled, processed.estimate, processed.method.name)


def _picked(domain: Domain, part: QuestionTally, estimate: Estimate, query: str) -> Method:
    """The method for a type of query, chosen once per tally: a dashboard asks for the same answer again and again."""
    if not estimate.has_data or not np.isfinite(estimate.variance).all():
        return default_method(query, cells=len(estimate))
    chosen: dict[str, Selection] = part.memo.get(
        ("post", part.place), lambda: select_methods(estimate, _replay(part, estimate), ordered=domain.kind in _ORDERED)
    )
    return chosen[query].pick


def _replay(part: QuestionTally, estimate: Estimate) -> Replay | None:
    """The exact simulation of the mechanism; None where noise is taken as normal instead.

    Weighted reports, and those of a group that answers for everybody, have other variances than a plain simulation.
    """
    mechanism = part.mechanism
    plain = part.tally.n == part.respondents and estimate.effective == estimate.n
    if not (plain and mechanism.exact_simulation and isinstance(part.tally, Counts)):
        return None

    def again(counts: I64, rng: np.random.Generator) -> Estimate:
        return mechanism.estimate(mechanism.simulate_tally(counts, rng))

    return again


def _set(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `set`: the share of several answers together."""
    places = _places(domain, given.get("values", ""))
    members = np.zeros(domain.size)
    members[places] = 1
    raw = part.estimate()
    found = share_of_set(raw, members, _picked(domain, part, raw, "sets"), ordered=domain.kind in _ORDERED)
    about = {"answers": [plain_label(domain.decode(place)) for place in places], "method": found.answered.method.name}
    note = {"note": found.note} if found.note else {}
    return about | _both(found.answered, 0, level) | note


def _places(domain: Domain, text: str) -> list[int]:
    """Parse labels with commas (quoted where a label holds one) to indices, each once and in order."""
    labels = next(csv.reader([text]), list[str]())
    try:
        places = sorted({domain.encode(label) for label in labels})
    except InvalidValue:
        raise InvalidSpec("set: a value is not one of the answers; give labels of the question, with commas") from None
    if not places:
        raise InvalidSpec("set: values is empty, must be labels of the question, with commas")
    return places


def _both(found: Processed, place: int, level: float) -> dict[str, Any]:
    """One cell as it is answered and raw, as plain numbers."""
    rows = (("share", found.estimate, found.interval(level)), ("raw", found.raw, found.raw.interval(level)))
    return {name: _cell(estimate, ends, place) for name, estimate, ends in rows}


def _cell(estimate: Estimate, ends: tuple[F64, F64], place: int) -> dict[str, float | None]:
    columns = {"estimate": estimate.value, "standard_error": estimate.standard_error, "low": ends[0], "high": ends[1]}
    return {name: plain_number(column[place]) if estimate.has_data else None for name, column in columns.items()}


def _largest(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `largest`: the k answers that are estimated largest, with intervals that allow for their selection."""
    text = given.get("k", "10")
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_LARGEST:
        raise InvalidSpec(f"largest: k must be an integer from 1 to {MOST_LARGEST}")
    raw = part.estimate()
    places = np.argsort(-raw.value, kind="stable")[: int(text)]
    found = process(raw, _picked(domain, part, raw, "largest"))
    listed = Processed(found.method, raw.take(places), found.estimate.take(places))
    # Of ordinary intervals of listed answers far fewer than stated hold: they were listed because noise lifted them.
    wide = selected_level(level, len(places), len(raw))
    labels = (plain_label(domain.decode(place)) for place in places.tolist())
    rows = [{"value": label} | _both(listed, i, wide) for i, label in enumerate(labels)]
    about = {"k": len(places), "answers": len(raw), "method": found.method.name}
    return about | {"adjusted_for_selection": len(places) < len(raw), "single_level": wide, "rows": rows}


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    """Return the expected error of a share, and the oracles that the pick was compared with."""
    error = cast("Oracle", mechanism).standard_error(n)
    # Shuffled collections are planned among fewer oracles.
    choices = (
        choose_oracle(size=domain.size, epsilon=mechanism.budget, n=n, options=o) for o in (OPTIONS, WORD_OPTIONS)
    )
    choice = next((choice for choice in choices if choice.pick.mechanism == mechanism), None)
    # A hand-written document may use another oracle than the planner's pick; then the comparison does not explain it.
    if choice is None:
        return Forecast(error, why=UNPLANNED)
    rows = (
        {"name": o.kind, "standard_error": o.standard_error, "report_bits": o.report_bits, "picked": o is choice.pick}
        for o in choice.options
    )
    return Forecast(error, why=choice.reason, options=tuple(rows))


HISTOGRAM = QuestionTask(
    "histogram",
    _plan,
    _answer,
    _forecast,
    (
        TaskQuery("largest", "The answers that are estimated largest, with intervals adjusted for selection.",
              {"k": "how many answers"}, _largest),
        TaskQuery("set", "The share of several answers together.",
              {"values": "labels, with commas; quote those that hold one"}, _set),
    ),
    plan_word=_plan_word,
)  # fmt: skip
