"""Splitting the tally of a collection into the tallies of its questions."""

from dataclasses import dataclass, field

from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally
from tacit.tasks.memo import Memo
from tacit.tasks.task import QuestionTally
from tacit.wire.document import Collection


@dataclass(frozen=True, eq=False)
class Total:
    """The tally of a whole collection, with a memo of results computed from it."""

    tally: AnyTally
    memo: Memo = field(default_factory=Memo)

    @property
    def n(self) -> int:
        """Number of reports."""
        return self.tally.n


def parts_of(collection: Collection, mechanism: Mechanism, total: Total) -> list[QuestionTally]:
    """The tally of every question, in order; how the total is split depends on the collection's policy."""
    members = _members(collection, mechanism, total.tally)
    return [
        QuestionTally(member, tally, total.n, place=place, memo=total.memo)
        for place, (member, tally) in enumerate(members)
    ]


def _members(collection: Collection, mechanism: Mechanism, tally: AnyTally) -> list[tuple[Mechanism, AnyTally]]:
    """The mechanism and the tally of every question, in order."""
    # single and joint: one mechanism for all. one_of: a tally per member. all_of: marginals of the joint tally.
    if collection.policy in ("single", "joint"):
        return [(mechanism, tally)] * len(collection.questions)
    return [(mechanism.member(i), mechanism.marginal(tally, i)) for i in range(mechanism.member_count)]
