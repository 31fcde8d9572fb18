"""The task `histogram`: the share of every answer."""

from dataclasses import replace
from typing import cast

from tacit.core.mechanism import Mechanism, Oracle
from tacit.device.budget import Budget
from tacit.device.domain import MAX_LABELS, Domain
from tacit.device.items import Items
from tacit.device.text import Text
from tacit.errors import InvalidSpec
from tacit.post.methods import default_method, process
from tacit.tasks.choose import choose_oracle
from tacit.tasks.task import Answer, Forecast, Part, Task

_OTHERWISE = {
    "strings": "set its task to heavy_hitters, which looks up the texts that are named later",
    "bits": "set its task to heavy_hitters, or ask for fewer bits",
    "integers": "set its task to mean, ranges or heavy_hitters, or give it a larger step",
    "product": "ask for fewer attributes, or for coarser ones",
}
"""What to do with a question that has too many answers to list them, by kind of domain."""


def check_listed(domain: Domain, who: str) -> None:
    """Refuse questions whose answers are no list of which every respondent gives one, and say what to do."""
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
    if domain.size > MAX_LABELS:
        name, todo = getattr(domain, "name", domain.kind), _OTHERWISE.get(domain.kind, "declare fewer answers")
        raise InvalidSpec(f"{who}: '{name}' has {domain.size} values, at most {MAX_LABELS} are listed; {todo}")


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    check_listed(domain, "histogram")
    return choose_oracle(size=domain.size, epsilon=budget, n=n).pick.mechanism


def _answer(domain: Domain, part: Part) -> Answer:
    labelled = replace(part.estimate(), labels=domain.all_labels())
    made = process(labelled, default_method("histogram"))
    return Answer("share", labelled, made.estimate, made.method.name)


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    error = cast("Oracle", mechanism).standard_error(n)
    choice = choose_oracle(size=domain.size, epsilon=mechanism.budget, n=n)
    if choice.pick.kind != mechanism.kind:
        return Forecast(error)
    rows = (
        {"name": o.kind, "standard_error": o.standard_error, "report_bits": o.report_bits, "picked": o is choice.pick}
        for o in choice.options
    )
    return Forecast(error, why=choice.reason, options=tuple(rows))


HISTOGRAM = Task("histogram", _plan, _answer, _forecast)
