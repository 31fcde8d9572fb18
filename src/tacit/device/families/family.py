"""What a family of questions is: each respondent answers one member of it, drawn by public coins.

A family says everything that is particular to it: what a respondent's value is, what each member asks of it, and in
plain words what the device does. Mechanisms, planners and pages ask the family instead of looking at its class, so
that a new family is one file here, an entry in `tacit.device.catalog`, and its twin in JavaScript.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self, cast

from tacit.device.base import Device, refuse_amplified, written
from tacit.device.nested import rebuild
from tacit.device.numbers.budget import Amplified
from tacit.errors import InvalidSpec


class Levels(NamedTuple):
    """Members as combined levels of trees: trees of these fan-outs stand over attributes of these sizes.

    Member i reports one node per attribute, of height `heights[i][a]`: height 0 is a single answer of attribute a,
    the top height is all of its answers, about which the member then says nothing.
    """

    sizes: tuple[int, ...]
    fanouts: tuple[int, ...]
    heights: tuple[tuple[int, ...], ...]


class Family(ABC):
    """Questions of which a respondent answers one. A few fields describe them all; members are computed.

    Families are frozen dataclasses whose fields, with `kind`, are the wire spec.
    """

    kind: ClassVar[str]

    together: ClassVar[bool] = False
    """Whether its attributes are several questions of a document, which are then asked together."""

    unit: ClassVar[str] = ""
    """What the values of a member are called where its probabilities are explained; empty for answers."""

    holds_sets: ClassVar[bool] = False
    """Whether a value is a set of items; a batch of such values is an array of 0 and 1, with a column per item."""

    checks_batches: ClassVar[bool] = False
    """Whether `check_value` takes a batch of values too: an array with one value per place of its last axis."""

    weights: tuple[int, ...]
    """How often each member is drawn, relative to the others: positive integers."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of members."""

    @abstractmethod
    def view(self, i: int) -> Callable[[Any], Any]:
        """The projection of a value that member i reports on.

        It uses indexing and arithmetic alone, so that it takes one value or, in a batch, an array of values along
        the last axis.
        """

    @abstractmethod
    def mechanism(self, i: int) -> Device:
        """The mechanism of member i."""

    @abstractmethod
    def answer_sizes(self) -> tuple[int, ...]:
        """How many answers every attribute has; a family over one domain has one attribute."""

    def of_answers(self, answers: Sequence[int]) -> Any:
        """The value of a respondent with these answers, one per attribute: what the device is given."""
        return tuple(answers)

    def values(self) -> Iterator[Any]:
        """All values a respondent may have. Families over large domains have more than anybody can list."""
        return map(self.of_answers, product(*map(range, self.answer_sizes())))

    @property
    def domain_size(self) -> int:
        """How many values there are where a value is one index; 0 where it is a list of answers."""
        return 0

    @property
    def first_value(self) -> Any:
        """A value that every such family has."""
        return self.of_answers((0,) * len(self.answer_sizes()))

    def check_value(self, value: Any) -> None:
        """Refuse a value outside the domain, without showing it.

        All members check their part of it: whether a value is refused must not depend on the member that is drawn.
        """
        for i in range(len(self)):
            self.mechanism(i).check_value(self.view(i)(value))

    @abstractmethod
    def describe(self, *, spelled: bool = False, several: bool = False) -> str:
        """What the device does with the answers, in plain words for its owner.

        `spelled`: answers are texts, and coarser levels of them are their beginnings. `several`: the attributes are
        several questions rather than parts of one answer.
        """

    def levels(self) -> Levels | None:
        """The members as combined levels of trees, where they are such."""
        return None

    def tables(self) -> list[tuple[int, ...]]:
        """The sets of attributes that one report may be about; sets within one of these may be left out."""
        return [(attribute,) for attribute in range(len(self.answer_sizes()))]

    def spec(self) -> dict[str, Any]:
        """The wire spec."""
        return {"kind": self.kind} | {f.name: written(getattr(self, f.name)) for f in fields(cast("Any", self))}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Rebuild from a wire spec whose mechanisms are built already; see `tacit.device.nested`."""
        return rebuild(cls.kind, cls, (f.name for f in fields(cast("Any", cls))), spec)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def as_members(kind: str, given: Any, most: int) -> tuple[Device, ...]:
    """Mechanisms that may be combined, or InvalidSpec with the rule."""
    members = tuple(cast("Sequence[Any]", given)) if isinstance(given, (list, tuple)) else ()
    if not 1 <= len(members) <= most or not all(isinstance(member, Device) for member in members):
        raise InvalidSpec(f"{kind}: members must be a list of 1 to {most} mechanisms")
    for member in members:
        if isinstance(member.budget, Amplified):
            refuse_amplified(kind)
    return members
