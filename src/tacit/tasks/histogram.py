"""The task `histogram`: the share of every answer."""

from dataclasses import replace
from typing import cast

from tacit.core.mechanism import Mechanism, Oracle
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.post.methods import default_method, process
from tacit.tasks.choose import choose_oracle
from tacit.tasks.task import Answer, Forecast, Part, Task


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
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
