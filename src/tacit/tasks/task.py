"""What a task is: how one question of a collection is planned before and answered after."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Generic, TypeVar, cast

from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, PerMember, against_everyone
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.errors import InvalidSpec
from tacit.tasks.plans import Steps

Of = TypeVar("Of")
"""What a query is about: the domain of one question, or questions that are asked together."""


@dataclass(frozen=True, eq=False)
class Part:
    """What one question got: the reports of its mechanism, and the respondents that they speak for."""

    mechanism: Mechanism
    tally: AnyTally
    respondents: int
    """Everybody who took part; more than the reports where each respondent answered one of several questions."""
    other: "Part | None" = None
    """What the same question got in another collection, for queries that compare two."""
    place: int = 0
    """Which attribute of the mechanism the question is, where several are asked together."""

    def estimate(self) -> Estimate:
        """The estimate of a plain mechanism, against all respondents."""
        assert not isinstance(self.tally, PerMember)
        return against_everyone(self.mechanism.estimate(self.tally), self.tally, self.respondents)


@dataclass(frozen=True)
class Asked:
    """Questions that are asked together: their names and domains, in the order of the mechanism's attributes."""

    names: tuple[str, ...]
    domains: tuple[Domain, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of answers."""
        return tuple(domain.size for domain in self.domains)


@dataclass(frozen=True)
class Answer:
    """The answer to one question: raw and unbiased, and (where it exists) made consistent, which is biased."""

    unit: str
    raw: Estimate
    consistent: Estimate | None
    method: str


def plain_number(value: Any) -> float | None:
    """A number as JSON has it: None for what is not known, or not finite."""
    return float(value) if value is not None and isfinite(value) else None


def plain_label(label: Any) -> Any:
    """A label of a domain as JSON has it: that of several attributes is a list."""
    return [plain_label(part) for part in cast("tuple[Any, ...]", label)] if isinstance(label, tuple) else label


@dataclass(frozen=True)
class Query(Generic[Of]):
    """What an analyst may ask of one question, or of several together, with text parameters as an address has them."""

    name: str
    about: str
    parameters: Mapping[str, str]
    """Names and what they mean."""
    run: Callable[[Of, Part, Mapping[str, str], float], dict[str, Any]]


def find_query(queries: Sequence[Query[Of]], name: str, given: Mapping[str, str], who: str) -> Query[Of]:
    """The query of a name that takes these parameters, or InvalidSpec naming what is known."""
    found = next((query for query in queries if query.name == name), None)
    if found is None:
        known = ", ".join(query.name for query in queries) or "none"
        raise InvalidSpec(f"{who}: query is {name[:40]!r}, must be one of {known}")
    for unknown in sorted(given.keys() - found.parameters.keys()):
        known = ", ".join(found.parameters) or "none"
        raise InvalidSpec(f"query {name}: unknown parameter '{unknown[:40]}', must be one of {known}")
    return found


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
class Together:
    """How questions that are asked together are planned: for tables of k of them."""

    plan: Callable[[Asked, Budget, int, int], Mechanism]
    forecast: Callable[[Asked, Mechanism, int, int], Forecast]


@dataclass(frozen=True)
class Task:
    """What a question asks for."""

    name: str
    plan: Callable[[Domain, Budget, int], Mechanism]
    """The mechanism for about this many respondents."""
    answer: Callable[[Domain, Part], Answer]
    forecast: Callable[[Domain, Mechanism, int], Forecast]
    """How precise the answer of n reports would be."""
    queries: tuple[Query[Domain], ...] = field(default=())
    steps: Callable[[Domain, Budget, int, int], Steps] | None = None
    """For adaptive tasks: the rounds that look for the k best with about n respondents."""
    method: str = ""
    """The name of the plan of an adaptive task."""
    together: Together | None = None
    """For tasks whose questions are asked together."""
