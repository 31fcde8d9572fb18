"""What a task is: how questions of a collection are planned before they are asked, and answered afterwards.

There are four sorts, which differ in what is planned and in what an answer is made of:

| sort           | planned                            | answered from                    |
|----------------|------------------------------------|----------------------------------|
| `QuestionTask` | one question at a time             | the tally of the question        |
| `JointTask`    | several questions as one mechanism | the tally of all of them         |
| `RowsTask`     | private columns beside public rows | SQL, query by query              |
| `AdaptiveTask` | one question, round after round    | the tallies of all closed rounds |
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, PerMember, against_everyone
from tacit.device.domains.domain import Domain
from tacit.device.numbers.budget import Budget, Epsilon
from tacit.errors import InvalidSpec
from tacit.tasks.memo import Memo
from tacit.tasks.plans import PlanResult, Steps

Of = TypeVar("Of")
"""What a query is about: the domain of one question, or questions that are asked together."""


@dataclass(frozen=True, eq=False)
class QuestionTally:
    """The reports on one question, counted, and the respondents that they speak for."""

    mechanism: Mechanism
    tally: AnyTally
    respondents: int
    """Everybody who took part; more than the reports where each respondent answered one of several questions."""
    other: "QuestionTally | None" = None
    """What the same question got in another collection, for queries that compare two."""
    place: int = 0
    """The question's index in its collection: the attribute of the mechanism, where several are asked together."""
    memo: Memo = field(default_factory=Memo)
    """Results computed from the tally of the collection, shared by all its questions."""

    def estimate(self) -> Estimate:
        """Return the estimate of a plain mechanism, with variances that speak for all respondents."""
        assert not isinstance(self.tally, PerMember)
        return against_everyone(self.mechanism.estimate(self.tally), self.tally, self.respondents)


@dataclass(frozen=True)
class JointQuestions:
    """Questions that are asked together: their names and domains, in the order of the mechanism's attributes."""

    names: tuple[str, ...]
    domains: tuple[Domain, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of answers of every question."""
        return tuple(domain.size for domain in self.domains)


@dataclass(frozen=True)
class Answer:
    """The answer to one question: raw and unbiased, and (where it exists) made consistent, which is biased."""

    unit: str
    raw: Estimate
    consistent: Estimate | None
    method: str
    listed: tuple[int, int] | None = None
    """How many values are listed out of how many examined, where the estimate chose them: intervals are then wider."""
    reach: float | None = None
    """The most that one report, replaced by any other, moves any raw cell; None where that is not known."""


def largest_step(estimate: Estimate) -> float | None:
    """Return the most that one report moves any cell of an estimate that comes from one mechanism; None if not known.

    The law states it on the scale where the truth lies between 0 and 1.
    """
    law = estimate.law
    return None if law is None or not len(estimate) else float(np.max(law.step)) * (law.high - law.low)


def plain_number(value: Any) -> float | None:
    """Return a number for JSON: None for NaN, infinity and what is not known."""
    return float(value) if value is not None and isfinite(value) else None


def plain_label(label: Any) -> Any:
    """Return a label for JSON: that of several attributes is a list instead of a tuple."""
    return [plain_label(part) for part in cast("tuple[Any, ...]", label)] if isinstance(label, tuple) else label


@dataclass(frozen=True)
class TaskQuery(Generic[Of]):
    """A query that an analyst may send about one question, or several together; parameters are text, as in a URL."""

    name: str
    about: str
    parameters: Mapping[str, str]
    """The names of the parameters, with a description of each."""
    run: Callable[[Of, QuestionTally, Mapping[str, str], float], dict[str, Any]]


def find_query(queries: Sequence[TaskQuery[Of]], name: str, given: Mapping[str, str], who: str) -> TaskQuery[Of]:
    """Return the query of a name that takes these parameters; InvalidSpec lists the known ones if there is none."""
    match = next((query for query in queries if query.name == name), None)
    if match is None:
        known = ", ".join(query.name for query in queries) or "none"
        raise InvalidSpec(f"{who}: query is {name[:40]!r}, must be one of {known}")
    for unknown in sorted(given.keys() - match.parameters.keys()):
        known = ", ".join(match.parameters) or "none"
        raise InvalidSpec(f"query {name}: unknown parameter '{unknown[:40]}', must be one of {known}")
    return match


@dataclass(frozen=True)
class Forecast:
    """How precise an answer would be: the typical standard error of one number, and what that number is."""

    standard_error: float
    of: str = "a share"
    why: str = ""
    """One sentence on why the mechanism was picked; empty where there was no choice."""
    options: tuple[Mapping[str, Any], ...] = ()
    """What it was compared with, best first: name, standard_error, report_bits and whether it was picked."""
    raw: float | None = None
    """Where answers are made consistent: the error of the raw ones, to which options and intervals refer."""
    between: tuple[float, float] | None = None
    """The least and the largest error over shapes of the data, where it depends on them."""


UNPLANNED = "the published mechanism is not one that would be planned now; the error is that of the published one"
"""Why a forecast is of no option it is compared with: the planner or the number of respondents has changed since."""


@dataclass(frozen=True)
class QuestionTask:
    """A task whose questions are planned and answered one by one."""

    name: str
    plan: Callable[[Domain, Budget, int], Mechanism]
    """Returns the mechanism for about this many respondents."""
    answer: Callable[[Domain, QuestionTally], Answer]
    forecast: Callable[[Domain, Mechanism, int], Forecast]
    """Returns how precise the answer from n reports would be."""
    queries: tuple[TaskQuery[Domain], ...] = ()
    """The queries about one question beyond its answer."""
    plan_word: Callable[[Domain, Budget, int], Mechanism] | None = None
    """Like `plan`, among mechanisms whose reports fit the word of a shuffler; None if `plan` has no such choice."""


@dataclass(frozen=True)
class JointTask:
    """A task whose questions are attributes of one mechanism, so that tables over k of them can be estimated."""

    rule: ClassVar[str] = 'questions of this task are asked together; set the policy to "joint"'

    name: str
    plan: Callable[[JointQuestions, Budget, int, int], Mechanism]
    """The mechanism for about n respondents and tables of k questions."""
    answer: Callable[[Domain, QuestionTally], Answer]
    """The answer to one of the questions, from the tally of all of them."""
    forecast: Callable[[JointQuestions, Mechanism, int, int], Forecast]
    """How precise a table of k questions would be with n respondents."""


@dataclass(frozen=True)
class PublicRows:
    """The public side of a table that is asked with SQL, and the queries it is planned for."""

    table: str
    columns: tuple[tuple[str, str], ...]
    """Names and types of the public columns."""
    queries: tuple[str, ...]


@dataclass(frozen=True)
class RowsTask:
    """A task whose questions are private columns of a table with public ones; there is no answer without a query."""

    rule: ClassVar[str] = "questions of this task come with public rows and are asked with SQL; state rows in the draft"

    name: str
    plan: Callable[[JointQuestions, PublicRows, Epsilon, int], tuple[str, Mechanism]]
    """The policy and the mechanism for about n respondents."""
    forecast: Callable[[JointQuestions, Mechanism, int], Forecast]
    """How precise the share of a condition would be with n respondents."""


@dataclass(frozen=True)
class AdaptiveTask:
    """A task that asks one question in rounds, each of which goes to fresh respondents and depends on those before."""

    rule: ClassVar[str] = (
        "goes round by round and must be the only question; ask the other questions in a collection of their own"
    )

    name: str
    method: str
    """The name of the plan, which documents state."""
    steps: Callable[[Domain, Budget, int, int], Steps]
    """The rounds that look for the k best with about n respondents."""
    answer: Callable[[Domain, PlanResult], Answer]
    """The answer of a plan that has come to its end."""
    forecast: Callable[[Domain, Mechanism, int], Forecast]
    """How precise the first round would be if n respondents took part in all of them."""


Task = QuestionTask | JointTask | RowsTask | AdaptiveTask
"""Any of the four sorts; `tasks.table` lists all tasks."""
