"""What a task is: how one question of a collection is planned before and answered after."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, PerMember, against_everyone
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.errors import InvalidSpec
from tacit.tasks.plans import Steps


@dataclass(frozen=True, eq=False)
class Part:
    """What one question got: the reports of its mechanism, and the respondents that they speak for."""

    mechanism: Mechanism
    tally: AnyTally
    respondents: int
    """Everybody who took part; more than the reports where each respondent answered one of several questions."""
    other: "Part | None" = None
    """What the same question got in another collection, for queries that compare two."""

    def estimate(self) -> Estimate:
        """The estimate of a plain mechanism, against all respondents."""
        assert not isinstance(self.tally, PerMember)
        return against_everyone(self.mechanism.estimate(self.tally), self.tally, self.respondents)


@dataclass(frozen=True)
class Answer:
    """The answer to one question: raw and unbiased, and (where it exists) made consistent, which is biased."""

    unit: str
    raw: Estimate
    consistent: Estimate | None
    method: str


@dataclass(frozen=True)
class Query:
    """A question that an analyst may put to the answers of a task, with text parameters as an address has them."""

    name: str
    about: str
    parameters: Mapping[str, str]
    """Names and what they mean."""
    run: Callable[[Domain, Part, Mapping[str, str], float], dict[str, Any]]


@dataclass(frozen=True)
class Forecast:
    """How precise an answer would be: the typical standard error of one number, and what that number is."""

    standard_error: float
    of: str = "a share"
    why: str = ""
    """One sentence on why the mechanism was picked; empty where there was no choice."""
    options: tuple[Mapping[str, Any], ...] = ()
    """What it was compared with, best first: name, standard_error, report_bits and whether it was picked."""


@dataclass(frozen=True)
class Task:
    """What a question asks for."""

    name: str
    plan: Callable[[Domain, Budget, int], Mechanism]
    """The mechanism for about this many respondents."""
    answer: Callable[[Domain, Part], Answer]
    forecast: Callable[[Domain, Mechanism, int], Forecast]
    """How precise the answer of n reports would be."""
    queries: tuple[Query, ...] = field(default=())
    steps: Callable[[Domain, Budget, int, int], Steps] | None = None
    """For adaptive tasks: the rounds that look for the k best with about n respondents."""
    method: str = ""
    """The name of the plan of an adaptive task."""

    def query(self, name: str) -> Query:
        """The query of a name, or InvalidSpec naming what is known."""
        for query in self.queries:
            if query.name == name:
                return query
        known = ", ".join(query.name for query in self.queries) or "none"
        raise InvalidSpec(f"task {self.name}: query is {name[:40]!r}, must be one of {known}")
