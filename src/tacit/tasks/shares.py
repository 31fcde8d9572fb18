"""The task `shares`: the share of respondents who ticked each thing of a list, for questions that tick all that apply.

Each respondent is asked about one thing, drawn by public coins, with the whole epsilon. Dividing epsilon between d
things would multiply the variance by about d instead of the error by sqrt(d); see docs/maths/ticks.md.
"""

from dataclasses import replace
from math import sqrt
from typing import Any, cast

import numpy as np

from tacit.core.compose import OneOf
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism
from tacit.core.members import PerMember
from tacit.core.statistics.score import Law
from tacit.device.domains.domain import Domain
from tacit.device.domains.items import Items
from tacit.device.domains.optional import answered
from tacit.device.families.ticks import Ticks
from tacit.device.numbers.budget import Budget, Epsilon, Share
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.tasks.task import Answer, Forecast, QuestionTally, QuestionTask, largest_step

WITHIN = "clip"
"""How shares are made consistent: each by itself within 0 and 1; nothing says that they add up to one."""
TICKED = np.array([1])
"""The cell of a member that stands for yes."""


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    del n
    if not isinstance(answered(domain), Items):
        raise InvalidSpec(f"shares: the domain is {domain.kind}, must be items: a list of things to tick")
    return OneOf(family=Ticks(size=domain.size, mechanisms=(GRR(size=2, epsilon=budget),)))


def _answer(domain: Domain, part: QuestionTally) -> Answer:
    raw = _shares(part, domain.all_labels())
    clipped = replace(raw, value=np.clip(raw.value, 0, 1))
    return Answer("share", raw, clipped, WITHIN, reach=largest_step(raw))


def _shares(part: QuestionTally, labels: list[Any]) -> Estimate:
    """The cell "yes" of every item, in one estimate that speaks for all respondents."""
    assert isinstance(part.tally, PerMember)
    members = cast("OneOf", part.mechanism).estimate(part.tally, respondents=part.respondents)
    each = [cast("Estimate", member).take(TICKED) for member in members]
    if not all(member.has_data for member in each):
        return no_data(len(each), labels)
    return Estimate(
        np.concatenate([member.value for member in each]),
        np.concatenate([member.variance for member in each]),
        part.tally.n,
        total=float(part.respondents),
        labels=labels,
        effective=float(part.respondents),
        law=_law([member.law for member in each]),
    )


def _law(laws: list[Law | None]) -> Law | None:
    """The law of all items, which differ in how many respondents were asked; None where one has none."""
    known = [law for law in laws if law is not None]
    if len(known) < len(laws):
        return None
    slope, curve, step = (
        np.array([np.ravel(getattr(law, name))[-1] for law in known]) for name in ("slope", "curve", "step")
    )
    return Law(slope=slope, curve=curve, step=step, floor=max(law.floor for law in known))


def _error(noise: float, n: float, groups: int, share: float) -> float:
    """The standard error of one share: noise of 1/groups of n respondents, and of having asked only those."""
    sampling = share * (1 - share) * (1 - 1 / groups)
    return sqrt((noise + sampling) * groups / n)


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    noise = _noise(mechanism.budget)
    most, least = (_error(noise, n, domain.size, share) for share in (0.5, 0.0))
    rows = [_option("one item each", most, mechanism.report_bits, picked=True)]
    if isinstance(mechanism.budget, Epsilon) and domain.size > 1:
        divided = _error(_noise(Share(mechanism.budget, f"1/{domain.size}")), n, 1, 0.5)
        rows.append(_option("epsilon divided", divided, domain.size, picked=False))
    why = "each respondent is asked about one thing, with the whole epsilon"
    return Forecast(most, "the share of one thing", why, tuple(rows), between=(least, most))


def _noise(budget: Budget) -> float:
    """The variance that one report on a single item adds; it does not depend on the share."""
    return float(GRR(size=2, epsilon=budget).moments.variance(np.array([0.5]))[0])


def _option(name: str, error: float, bits: int, *, picked: bool) -> dict[str, Any]:
    return {"name": name, "standard_error": error, "report_bits": bits, "picked": picked}


SHARES = QuestionTask("shares", _plan, _answer, _forecast)
