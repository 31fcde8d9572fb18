"""The task `histogram`: the share of every answer to a question with a list of answers."""

from dataclasses import replace
from typing import cast

from tacit.core.mechanism import Mechanism, Oracle
from tacit.device.domains.domain import MAX_LABELS, Domain
from tacit.device.domains.items import Items
from tacit.device.domains.text import Text
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec
from tacit.post.frequencies.methods import default_method, process
from tacit.tasks.choose import OPTIONS, WORD_OPTIONS, choose_oracle
from tacit.tasks.task import UNPLANNED, Answer, Forecast, QuestionTally, QuestionTask

_OTHERWISE = {
    "strings": "set its task to heavy_hitters, which looks up the texts that are named later",
    "bits": "set its task to heavy_hitters, or ask for fewer bits",
    "integers": "set its task to mean, ranges or heavy_hitters, or give it a larger step",
    "product": "ask for fewer attributes, or for coarser ones",
}
"""What to do with a question that has too many answers to list them, by kind of domain."""


def check_listed(domain: Domain, who: str) -> None:
    """Raise InvalidSpec unless every respondent gives one answer of a list; the message says what to do instead."""
    if isinstance(domain, Items):
        raise InvalidSpec(
            f"{who}: '{domain.name}' is answered with a set of items, not with one label; set its task to items or "
            "itemsets and make it the only question of its draft, or ask one yes-or-no question per item"
        )
    if isinstance(domain, Text):
        raise InvalidSpec(
            f"{who}: '{domain.name}' is answered with free text, whose values are not listed; set its task to "
            "heavy_hitters, which finds the most frequent ones, or list the answers as categories"
        )
    # Answers list every label, so the limit is on what can be shown, not on what an oracle can estimate.
    if domain.size > MAX_LABELS:
        name, todo = getattr(domain, "name", domain.kind), _OTHERWISE.get(domain.kind, "declare fewer answers")
        raise InvalidSpec(f"{who}: '{name}' has {domain.size} values, at most {MAX_LABELS} are listed; {todo}")


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    check_listed(domain, "histogram")
    return choose_oracle(size=domain.size, epsilon=budget, n=n).pick.mechanism


def _plan_word(domain: Domain, budget: Budget, n: int) -> Mechanism:
    check_listed(domain, "histogram")
    return choose_oracle(size=domain.size, epsilon=budget, n=n, options=WORD_OPTIONS).pick.mechanism


def _answer(domain: Domain, part: QuestionTally) -> Answer:
    labelled = replace(part.estimate(), labels=domain.all_labels())
    processed = process(labelled, default_method("histogram"))
    return Answer("share", labelled, processed.estimate, processed.method.name)


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


HISTOGRAM = QuestionTask("histogram", _plan, _answer, _forecast, plan_word=_plan_word)
