"""Which step may follow which, for shufflers and for the collector, and what is done about each failure: as data.

A service stores the progress with everything it belongs to in one transaction, and refuses an event that the table does
not have. All secrets are erased on the way into ERASED and into ABORTED.

    shuffler    JOINED -> COLLECTING -> FROZEN -> ROUND -> SENT -> ERASED, any of them -> ABORTED
    collector   DRAFT -> PUBLISHED -> COLLECTING -> SHUFFLING -> RECEIVED -> VERIFIED -> RELEASED, any -> ABORTED
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tacit.errors import ProtocolViolation

ABORT = "abort"

SHUFFLER_TABLE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "JOINED": {"open": "COLLECTING", ABORT: "ABORTED"},
        "COLLECTING": {"freeze": "FROZEN", ABORT: "ABORTED"},
        "FROZEN": {"begin": "ROUND", ABORT: "ABORTED"},
        "ROUND": {"step": "ROUND", "send": "SENT", ABORT: "ABORTED"},
        "SENT": {"acknowledged": "ERASED", ABORT: "ABORTED"},
        "ERASED": {},
        "ABORTED": {},
    }
)
"""open: all parties have signed. freeze: the roster is agreed and signed. begin, step, send: as in `resharing`; a hop
of a chain begins and sends. acknowledged: the collector's signed statement has arrived."""

COLLECTOR_TABLE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "DRAFT": {"publish": "PUBLISHED", ABORT: "ABORTED"},
        "PUBLISHED": {"open": "COLLECTING", ABORT: "ABORTED"},
        "COLLECTING": {"shuffle": "SHUFFLING", ABORT: "ABORTED"},
        "SHUFFLING": {"receive": "RECEIVED", "retry": "COLLECTING", ABORT: "ABORTED"},
        "RECEIVED": {"receive": "RECEIVED", "retry": "COLLECTING", "verify": "VERIFIED", ABORT: "ABORTED"},
        "VERIFIED": {"release": "RELEASED", ABORT: "ABORTED"},
        "RELEASED": {},
        "ABORTED": {},
    }
)
"""open: all signatures are there. shuffle: the shufflers have frozen the roster. receive: one output vector. retry: a
new attempt from the uploads on. verify: all vectors are there and were opened. release: all checks have passed."""


@dataclass(frozen=True)
class ShufflerProgress:
    """Where a shuffler is; round and phase as in its `ShareState`."""

    state: str = "JOINED"
    round: int = 0
    phase: str = ""

    def after(self, event: str, *, round_number: int = 0, phase: str = "") -> "ShufflerProgress":
        """The progress after an event.

        >>> ShufflerProgress().after("open").after("freeze").state
        'FROZEN'
        """
        state = _next(SHUFFLER_TABLE, "shuffler", self.state, event)
        # A second random split of the same vector would leak; see `resharing`.
        if event == "step" and (round_number, phase) == (self.round, self.phase):
            raise ProtocolViolation("shuffler: a step leads to another phase; send what is stored instead")
        return ShufflerProgress(state, round_number, phase) if state == "ROUND" else ShufflerProgress(state)


@dataclass(frozen=True)
class CollectorProgress:
    """Where the collector is: the attempt, and how many of the vectors that it needs have arrived."""

    needed: int
    state: str = "DRAFT"
    attempt: int = 1
    received: int = 0

    def after(self, event: str) -> "CollectorProgress":
        """The progress after an event.

        >>> CollectorProgress(2, "RECEIVED", received=2).after("retry")
        Traceback (most recent call last):
        tacit.errors.ProtocolViolation: collector: it holds all vectors, so that the result stands; no second attempt
        """
        state = _next(COLLECTOR_TABLE, "collector", self.state, event)
        complete = self.received == self.needed
        # Two shuffles of the same reports with different participants would tell the difference.
        if event == "retry" and complete:
            raise ProtocolViolation("collector: it holds all vectors, so that the result stands; no second attempt")
        if event == "verify" and not complete:
            raise ProtocolViolation(f"collector: {self.received} of {self.needed} vectors have arrived; wait")
        if event == "receive" and complete:
            raise ProtocolViolation("collector: it holds all vectors already")
        if event == "retry":
            return CollectorProgress(self.needed, state, self.attempt + 1, 0)
        return replace(self, state=state, received=self.received + (event == "receive"))


@dataclass(frozen=True)
class FailureRule:
    """What is done when something goes wrong, and what it costs the respondents."""

    name: str
    action: str
    privacy_cost: str
    event: str
    """The event that follows for both tables; empty if the session goes on."""


NO_COST = "none"

FAILURES: tuple[FailureRule, ...] = (
    FailureRule("shuffler_restarts", "resume from the stored phase and send the stored bodies again", NO_COST, ""),
    FailureRule(
        "shuffler_lost_before_freeze",
        "start a new session without it; clients send the same memoised report in fresh shares",
        "none: the collector saw nothing",
        ABORT,
    ),
    FailureRule(
        "shuffler_lost_in_rounds",
        "abort the attempt; a new session or attempt from the uploads on",
        "none: fewer than t shares are uniform",
        ABORT,
    ),
    FailureRule(
        "collector_holds_all_vectors",
        "the result stands; a second run over the same reports only with the identical slots",
        "a run with other slots composes: account for both",
        "",
    ),
    FailureRule("part_late", "wait phase_seconds, then abort and name the party", NO_COST, ABORT),
    FailureRule("rows_do_not_open", "count; any is an alarm, more than 1 in 1000 stops the release", NO_COST, ""),
    FailureRule("too_few_respondents", "abort before anything reaches the collector", NO_COST, ABORT),
    FailureRule("equivocation", "abort and publish both envelopes", NO_COST, ABORT),
    FailureRule("wrong_reveal", "abort and name the party", NO_COST, ABORT),
)
"""A lost shuffler cannot be replaced inside a session: shares have no threshold. (Shares with one would let t colluding
shufflers read them.)"""


def failure(name: str) -> FailureRule:
    """The rule for a failure."""
    return next(rule for rule in FAILURES if rule.name == name)


def _next(table: Mapping[str, Mapping[str, str]], who: str, state: str, event: str) -> str:
    if event not in table[state]:
        allowed = ", ".join(table[state]) or "nothing"
        raise ProtocolViolation(f"{who}: {event} does not follow {state}; {allowed} does")
    return table[state][event]
