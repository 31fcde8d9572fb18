"""Several questions to one respondent: one of them at full epsilon, or all of them at shares of it."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, ClassVar

from tacit.device.base import Device
from tacit.device.families.family import Family, as_members
from tacit.device.numbers.budget import Budget
from tacit.device.numbers.coins import Coins, ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue

MAX_MEMBERS = 1 << 20
MAX_WEIGHT = 1 << 32
MAX_ANSWERS = 256
MAX_PAYLOAD = 1 << 16
MEMBER_BYTES = 4
STATES = ("joint", "log", "members")


@dataclass(frozen=True, kw_only=True)
class Questions(Family):
    """The explicit family: question i is attribute i of the respondent's answers, with its own mechanism."""

    kind: ClassVar[str] = "questions"

    mechanisms: tuple[Device, ...]
    weights: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the mechanisms; without weights, all questions are drawn alike."""
        self._set("mechanisms", as_members(self.kind, self.mechanisms, MAX_MEMBERS))
        if not isinstance(self.weights, (list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec("questions: weights must be a list of positive integers, one per question")
        self._set("weights", tuple(self.weights) or (1,) * len(self.mechanisms))

    def __len__(self) -> int:
        """Number of questions."""
        return len(self.mechanisms)

    def view(self, i: int) -> Callable[[Any], Any]:
        """Attribute i of a list of answers."""
        return lambda value: answers_of(self.kind, value, len(self))[i]

    def mechanism(self, i: int) -> Device:
        """The mechanism of question i."""
        return self.mechanisms[i]

    def answer_sizes(self) -> tuple[int, ...]:
        """How many answers every question has."""
        return tuple(mechanism.value_count for mechanism in self.mechanisms)

    @property
    def first_value(self) -> Any:
        """The first answer to every question; some kinds take sets, so it is not 0 for all."""
        return [mechanism.first_value for mechanism in self.mechanisms]

    def describe(self, *, spelled: bool = False, several: bool = False) -> str:
        """What the device does with the answers, in plain words for its owner."""
        del spelled, several
        return (
            f"The device draws one of {len(self):,} questions and reports, with the whole epsilon, on the answer to "
            "that one. It says nothing about the other questions."
        )


def answers_of(kind: str, value: Any, count: int) -> Any:
    """A respondent's answers, one per question; also an array whose first axis is the question."""
    if isinstance(value, (str, bytes, Mapping, Set)) or not hasattr(value, "__len__") or len(value) != count:
        raise InvalidValue(f"{kind}: the value must be a list of {count} answers, one per question")
    return value


@dataclass(frozen=True, kw_only=True)
class OneOfDevice(Device):
    """One member of a family, drawn by public coins, at the full epsilon: the largest of the members'.

    A report is the member (4 bytes) and its payload, padded with zeros to the width of the widest member.
    """

    kind: ClassVar[str] = "one_of"

    epsilon: Budget | str = ""
    family: Family
    payload_bytes: int = 0

    def __post_init__(self) -> None:
        """Without an epsilon, it is the largest of the members'."""
        if self.epsilon == "" and isinstance(self.family, Family):  # pyright: ignore[reportUnnecessaryIsInstance]
            self._set("epsilon", max((m.budget for m in self.distinct), key=lambda budget: budget.declared))
        super().__post_init__()

    def _check(self) -> None:
        if not isinstance(self.family, Family):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec('one_of: family must be a family of questions, such as "questions"')
        self._check_weights()
        for member in self.distinct:
            if member.budget.declared > self.budget.declared:
                raise InvalidSpec("one_of: a member's epsilon exceeds epsilon, which must be the largest of them")
        if self.payload_bytes == 0:
            self._set("payload_bytes", self._widest())
        widest = max(map(_report_bytes, self.distinct))
        self._integer("payload_bytes", widest, MAX_PAYLOAD, "a member's report is wider")

    def _check_weights(self) -> None:
        weights = self.family.weights
        if not 1 <= len(self.family) <= MAX_MEMBERS or len(weights) != len(self.family):
            raise InvalidSpec(f"one_of: the family must have 1 to {MAX_MEMBERS} members with one weight each")
        if not all(type(weight) is int and weight >= 1 for weight in weights) or sum(weights) > MAX_WEIGHT:
            raise InvalidSpec(f"one_of: weights must be positive integers that add up to at most {MAX_WEIGHT}")

    def _widest(self) -> int:
        raise InvalidSpec("one_of: payload_bytes is missing, must be the width of the widest member's report")

    def spec(self) -> dict[str, Any]:
        """The wire spec, with that of the family inside."""
        return super().spec() | {"family": self.family.spec()}

    @cached_property
    def distinct(self) -> tuple[Device, ...]:
        """The different mechanisms of the family, in order of their first member."""
        return tuple(dict.fromkeys(self.family.mechanism(i) for i in range(len(self.family))))

    @property
    def parts(self) -> tuple[Device, ...]:
        """The different mechanisms of the family."""
        return self.distinct

    @cached_property
    def bounds(self) -> list[int]:
        """Sums of the weights up to and including each member."""
        return list(accumulate(self.family.weights))

    @property
    def drawn_from(self) -> Family:
        """The family of which one member is drawn."""
        return self.family

    @property
    def per_question(self) -> tuple[Device, ...]:
        """One per question of a family of questions; other families ask about parts of the same answers."""
        return self.family.mechanisms if isinstance(self.family, Questions) else (self,)

    @property
    def value_count(self) -> int:
        """Values of a family over one domain; neither sets nor answers to several questions are counted."""
        return 1 << 64 if self.family.holds_sets else self.family.domain_size or 1 << 64

    @property
    def domain_size(self) -> int:
        """Answers of a family over one domain; 0 for one over several."""
        return self.family.domain_size

    @property
    def first_value(self) -> Any:
        """A value that every such family has."""
        return self.family.first_value

    @property
    def coin_words(self) -> int | None:
        """One word for the member and its own, where all members take as many."""
        costs = {member.coin_words for member in self.distinct}
        cost = costs.pop() if len(costs) == 1 else None
        return None if cost is None else 1 + cost

    def realised_odds(self) -> Fraction:
        """The worst member's: which member is drawn does not depend on the value."""
        return max(member.realised_odds() for member in self.distinct)

    def check_value(self, value: Any) -> None:
        """Check the whole value: whether it is refused must not depend on the member that is drawn."""
        self.family.check_value(value)

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word for the member, then the words of its mechanism."""
        self.check_value(value)
        # The member is drawn before anything looks at its answer, so which one it is says nothing about the value.
        member = bisect_right(self.bounds, coins.uniform(self.bounds[-1]))
        payload = self.family.mechanism(member).privatize_one(self.family.view(member)(value), coins)
        # All members' reports have the same width: the length of a report must not tell more than its member.
        return self.join(member, payload.ljust(self.payload_bytes, b"\0"))

    def split(self, report: bytes) -> tuple[int, bytes]:
        """The member (4 bytes, little-endian) and the payload behind it, padding included."""
        return int.from_bytes(report[:MEMBER_BYTES], "little"), report[MEMBER_BYTES:]

    def join(self, member: int, payload: bytes) -> bytes:
        """The member, then its padded payload."""
        return member.to_bytes(MEMBER_BYTES, "little") + payload


def _report_bytes(member: Device) -> int:
    """The width of a member's reports, which does not depend on the value: that of a report on the first one."""
    return len(member.privatize_one(member.first_value, ReplayCoins(b"")))


@dataclass(frozen=True, kw_only=True)
class AllOfDevice(Device):
    """Every member is answered; the members' epsilons add up to at most epsilon.

    A report is the members' reports one after the other. `state` says what the collector keeps: the
    contingency table of joint reports, the log of reports, or the members' tallies without their connection.
    """

    kind: ClassVar[str] = "all_of"

    members: tuple[Device, ...]
    state: str = ""

    def _check(self) -> None:
        self._set("members", as_members(self.kind, self.members, MAX_ANSWERS))
        spent = sum((member.budget.declared for member in self.members), Fraction(0))
        if spent > self.budget.declared:
            raise InvalidSpec(
                f"all_of: the members' epsilons add up to {spent}, must be at most {self.budget.declared}; "
                "give every member a share of epsilon"
            )
        if self.state == "":
            self._set("state", self._planned_state())
        if self.state not in STATES:
            raise InvalidSpec('all_of: state must be "joint", "log" or "members"')

    def _planned_state(self) -> str:
        raise InvalidSpec('all_of: state is missing, must be "joint", "log" or "members"')

    @property
    def per_question(self) -> tuple[Device, ...]:
        """The members, one per question."""
        return self.members

    @property
    def domain_size(self) -> int:
        """A list of answers is that of several questions."""
        return 0

    @property
    def first_value(self) -> Any:
        """The list of the members' first values."""
        return [member.first_value for member in self.members]

    @property
    def coin_words(self) -> int | None:
        """The words of all members, where each always takes as many."""
        costs = [member.coin_words for member in self.members]
        fixed = [cost for cost in costs if cost is not None]
        return sum(fixed) if len(fixed) == len(costs) else None

    def realised_odds(self) -> Fraction:
        """The product of the members': their coins are independent."""
        return prod((member.realised_odds() for member in self.members), start=Fraction(1))

    def guarantees(self) -> "list[tuple[str, Fraction, Fraction]]":
        """All answers together, against the product of the members' bounds, each of which is rounded down.

        The product is at most e^epsilon as it is; rounding it to a multiple of 2^-64 could only blur that.
        """
        bound = prod((Fraction(member.odds, WORD) for member in self.members), start=Fraction(1))
        return [("all answers together", self.realised_odds(), bound)]

    def holds(self) -> bool:
        """Whether the realised likelihood ratio stays within the members' bounds, in exact arithmetic."""
        return all(realised <= bound for _, realised, bound in self.guarantees())

    def check_value(self, value: Any) -> None:
        """Check all answers before a coin is spent on any."""
        answers = answers_of(self.kind, value, len(self.members))
        for member, answer in zip(self.members, answers, strict=True):
            member.check_value(answer)

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """The words of every member, in order."""
        self.check_value(value)
        answers = answers_of(self.kind, value, len(self.members))
        pairs = zip(self.members, answers, strict=True)
        return b"".join(member.privatize_one(answer, coins) for member, answer in pairs)
