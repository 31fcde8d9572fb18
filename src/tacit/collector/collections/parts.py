"""Splitting the tally of a collection into the tallies of its questions."""

from dataclasses import dataclass, field

from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally
from tacit.core.tally import Tally
from tacit.errors import InvalidSpec
from tacit.tasks.memo import Memo
from tacit.tasks.task import QuestionTally
from tacit.wire.document import Collection

MOST_VALUES = 1 << 22
"""Of a domain whose values are counted one by one, which is how fakes are taken out."""


@dataclass(frozen=True, eq=False)
class Total:
    """The tally of a whole collection, with a memo of results computed from it."""

    tally: AnyTally
    memo: Memo = field(default_factory=Memo)
    sessions: int = 1
    """Of a shuffled collection: how many sessions are in the tally, each with its own fakes."""

    @property
    def n(self) -> int:
        """Number of reports."""
        return self.tally.n


def answering(collection: Collection, mechanism: Mechanism, sessions: int = 1) -> Mechanism:
    """The mechanism that answers are computed with: where shufflers add fakes, one that takes them out again."""
    if collection.shuffle is None or not collection.shuffle.fakes:
        return mechanism
    from tacit.shuffle.mechanisms.fakes import with_fakes

    # Sessions have disjoint respondents and equal mechanisms, so that they are one batch with the fakes of all.
    return with_fakes(mechanism, sessions * collection.shuffle.fakes)


def settled(collection: Collection, mechanism: Mechanism, tally: AnyTally, sessions: int) -> AnyTally:
    """The tally of a whole collection as one that counts respondents, without the fakes among the reports."""
    # Either nothing is there, or whole sessions: tallies of shards are added up before.
    if collection.shuffle is None or not collection.shuffle.fakes or not tally.n:
        return tally
    from tacit.shuffle.mechanisms.fakes import with_fakes

    assert isinstance(tally, Tally)
    return with_fakes(mechanism, sessions * collection.shuffle.fakes).settle(tally)


def check_fakes(collection: Collection, mechanism: Mechanism) -> None:
    """Refuse fakes where they could not be taken out: that is done for all values of a domain at once."""
    terms = collection.shuffle
    if terms is None or not terms.fakes or mechanism.domain_size <= MOST_VALUES:
        return
    raise InvalidSpec(
        f"draft.shuffle.fakes is {terms.fakes}, must be 0 for a question of more than {MOST_VALUES} values: fakes are "
        "taken out of the counts of all values, and of so many there are none"
    )


def parts_of(collection: Collection, mechanism: Mechanism, total: Total) -> list[QuestionTally]:
    """The tally of every question, in order; how the total is split depends on the collection's policy."""
    # An empty tally has no fakes in it either.
    answers = answering(collection, mechanism, total.sessions) if total.n else mechanism
    members = _members(collection, answers, total.tally)
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
