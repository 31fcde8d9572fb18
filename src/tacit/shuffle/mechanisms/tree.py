"""Frequent bit strings from a prefix tree over shuffled oracles (TreeHist, Wang's dissertation, section 9.6.3).

    round 1     8 bits        256 candidates, the `keep` best survive
    round 2    16 bits        every survivor is extended by 8 bits: keep * 256 candidates
    ...                       respondents whose prefix is no candidate report a dummy
    round 6    48 bits        the `keep` best are the answer

Respondents answer every round with a part of the budget, or one round each with all of it (`Policy`). The source takes
the former and says it is better. That was not reproduced: noise is equal to leading order, a split budget loses
amplification at small epsilon, and groups add sampling error. So both are predicted and the better one is taken.

With local hashing nobody has to be asked round by round (`at_once`): respondents report their prefixes of all lengths
together, or of one under groups, each hashed from all 2^length prefixes and each in a shuffle of its own. The server
then tests the extensions of what survived on the reports that it holds. Nothing else can do that: a unary report on
48 bits would have 2^48 of them.

The walk is a generator: it yields a round, receives the estimate of its candidates, and returns what was found.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from tacit.arrays import F64, U64
from tacit.core.estimate import Estimate, check_choice
from tacit.core.statistics.normal import normal_cdf
from tacit.errors import InvalidSpec, NoData
from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import OLH
from tacit.shuffle.mechanisms.closed_forms import CentralTarget
from tacit.shuffle.mechanisms.planned import PlannedOracle, aue, sh_grr, sh_rap, sh_rap_r, solh

Policy = Literal["budget", "groups"]
"""Everybody answers every round with a part of epsilon and delta; or one round each, with all of both."""

_ASSUMED = 1024
"""Values of the assumed Zipf law; rarer ones are lost in noise under either policy."""
_ZIPF = 1.1
_HALVINGS = 48


def _local_hashing(target: CentralTarget, size: int) -> PlannedOracle:
    return PlannedOracle("olh", OLH(size=size, epsilon=target.epsilon), target, amplified=False)


def _hadamard(target: CentralTarget, size: int) -> PlannedOracle:
    return PlannedOracle("hadamard", HRR(size=size, epsilon=target.epsilon), target, amplified=False)


def _hashing(target: CentralTarget, size: int) -> PlannedOracle:
    return solh(target, size)


def _appended(target: CentralTarget, size: int) -> PlannedOracle:
    return aue(target, size)


ORACLES: Mapping[str, Callable[[CentralTarget, int], PlannedOracle]] = {
    "sh_grr": sh_grr,
    "solh": _hashing,
    "aue": _appended,
    "rap": sh_rap,
    "rap_r": sh_rap_r,
    "olh": _local_hashing,
    "hadamard": _hadamard,
}
"""Every oracle that a tree can be built on; the last two spend the central epsilon locally, for comparison."""

AT_ONCE = ("solh", "olh")
"""Those whose reports can be tested for prefixes that were not known when they were made."""


@dataclass(frozen=True)
class TreePlan:
    """A search for the `keep` most frequent of 2^bits strings, `step` bits a round."""

    oracle: str
    target: CentralTarget
    policy: Policy
    bits: int = 48
    step: int = 8
    keep: int = 32
    at_once: bool = False
    """Whether respondents report on all rounds together, before anything is known of the first."""

    def __post_init__(self) -> None:
        """Refuse trees that cannot be walked."""
        check_choice("tree", "oracle", self.oracle, AT_ONCE if self.at_once else tuple(ORACLES))
        check_choice("tree", "policy", self.policy, get_args(Policy))
        if not (1 <= self.step <= 16 and self.step <= self.bits <= 64 and 1 <= self.keep <= 1 << 12):
            raise InvalidSpec(
                f"tree: bits is {self.bits}, step {self.step} and keep {self.keep}; step must be 1 to 16, bits from "
                "step to 64, and keep 1 to 4096"
            )

    @property
    def lengths(self) -> tuple[int, ...]:
        """The prefix length of every round."""
        return (*range(self.step, self.bits, self.step), self.bits)

    @property
    def groups(self) -> int:
        """How many groups respondents are split into."""
        return len(self.lengths) if self.policy == "groups" else 1

    @cached_property
    def round_target(self) -> CentralTarget:
        """The central target of one round."""
        rounds = len(self.lengths)
        return self.target.grouped(rounds) if self.policy == "groups" else self.target.split(rounds)

    def most_candidates(self, number: int) -> int:
        """The candidates of round `number`, if as many prefixes survive as may."""
        before = 0 if number == 0 else self.lengths[number - 1]
        kept = min(1 << before, self.keep)
        return kept << (self.lengths[number] - before)

    def planned(self, number: int, candidates: int) -> PlannedOracle:
        """The oracle of a round: its values are the candidates, and behind them the dummy; at once, all prefixes."""
        size = 1 << self.lengths[number] if self.at_once else candidates + 1
        return ORACLES[self.oracle](self.round_target, size)

    def prefixes(self, values: U64, number: int) -> U64:
        """The prefixes of whole values in a round: what respondents report on at once."""
        return values >> np.uint64(self.bits - self.lengths[number])

    def variances(self, number: int, shares: F64) -> F64:
        """Variances of estimated shares in a round, with the sampling error of asking one group instead of all."""
        oracle = self.planned(number, self.most_candidates(number))
        noise = oracle.mechanism.moments.variance(shares) / oracle.target.n
        return noise + self.sampling(shares)

    def sampling(self, shares: F64) -> F64:
        """What asking one group instead of everybody adds to the variance: f(1 - f)(groups - 1)/n."""
        inside = np.clip(shares, 0, 1)
        return inside * (1 - inside) * (self.groups - 1) / self.target.n

    def expected_found(self, shares: "Sequence[RoundShares] | None" = None) -> float:
        """Predict how many of the `keep` most frequent values are found; by Zipf's law where shares are not given.

        A prefix passes a round if its estimate is among the `keep` highest. Rounds have independent noise, so that the
        probabilities of passing them multiply.
        """
        rounds = [assumed_shares(self.keep)] * len(self.lengths) if shares is None else shares
        found = np.ones(len(rounds[0].own))
        for number, known in enumerate(rounds):
            found = found * self._passing(number, known)
        return float(found.sum())

    def _passing(self, number: int, known: "RoundShares") -> F64:
        """The probability that each of the wanted prefixes passes a round."""
        candidates = self.most_candidates(number)
        largest = np.sort(known.largest)[::-1][:candidates]
        deviation = np.sqrt(self.variances(number, np.append(largest, 0.0)))
        absent = candidates - len(largest)

        def above(threshold: float) -> float:
            # Prefixes that somebody holds, and the many that nobody does, which noise alone lifts.
            held = sum(_exceeds(largest, deviation, threshold))
            return held + absent * normal_cdf(-threshold / deviation[-1])

        # The threshold that `keep` estimates exceed on average, by bisection: the higher, the fewer.
        low, high = -10 * float(deviation.max()), float(largest.max(initial=0.0) + 10 * deviation.max())
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if above(middle) > self.keep else (low, middle)
        return np.array(_exceeds(known.own, np.sqrt(self.variances(number, known.own)), high))

    def to_row(self) -> dict[str, Any]:
        """The plan as plain data."""
        last = len(self.lengths) - 1
        planned = self.planned(last, self.most_candidates(last))
        return {
            "oracle": self.oracle,
            "policy": self.policy,
            "at_once": self.at_once,
            "rounds": len(self.lengths),
            "round_epsilon": self.round_target.epsilon,
            "round_respondents": self.round_target.n,
            "kind": planned.mechanism.kind,
            "epsilon_local": planned.epsilon_local,
            "amplified": planned.amplified,
        }


def _exceeds(shares: F64, deviation: F64, threshold: float) -> list[float]:
    return [normal_cdf((f - threshold) / s) for f, s in zip(shares.tolist(), deviation.tolist(), strict=False)]


@dataclass(frozen=True, eq=False)
class RoundShares:
    """What a prediction supposes about one round: the shares of the prefixes that should pass, and of all others."""

    own: F64
    """The share of the prefix of every wanted value."""
    largest: F64
    """The largest shares of all prefixes."""


def assumed_shares(keep: int) -> RoundShares:
    """The shares that a prediction without data supposes: Zipf's law over 2^16 values, no two of which begin alike."""
    shares = np.arange(1, (1 << 16) + 1, dtype=np.float64) ** -_ZIPF
    shares = (shares / shares.sum())[:_ASSUMED]
    return RoundShares(shares[:keep], shares)


def choose_policy(plan: TreePlan, shares: Sequence[RoundShares] | None = None) -> TreePlan:
    """Return the plan under the policy that is predicted to find more; a policy that the oracle refuses is left out.

    >>> target = CentralTarget("0.2", 1e-9, 657_427)
    >>> choose_policy(TreePlan("solh", target, "budget")).policy
    'groups'
    """
    scored: list[tuple[float, float, TreePlan]] = []
    refusal: InvalidSpec | None = None
    for policy in get_args(Policy):
        other = replace(plan, policy=policy)
        try:
            noise = float(other.variances(len(other.lengths) - 1, np.zeros(1))[0])
            # Where neither finds anything, less noise is better.
            scored.append((other.expected_found(shares), -noise, other))
        except InvalidSpec as error:
            refusal = error
    if not scored:
        assert refusal is not None
        raise refusal
    return max(scored, key=lambda row: row[:2])[2]


@dataclass(frozen=True, eq=False)
class TreeRound:
    """One round: what its respondents are asked."""

    number: int
    length: int
    """Bits of the prefixes that are asked about."""
    candidates: U64
    """The prefixes, in ascending order; the value behind the last of them is the dummy, unless all report at once."""
    oracle: PlannedOracle

    @property
    def dummy(self) -> int:
        """What respondents report whose prefix is no candidate."""
        return len(self.candidates)

    def indices(self, values: U64, bits: int) -> U64:
        """Return what respondents with these whole values report on: the place of their prefix, or the dummy."""
        prefixes = values >> np.uint64(bits - self.length)
        # A prefix beyond the last candidate would be out of range; the comparison finds it absent.
        at = np.minimum(np.searchsorted(self.candidates, prefixes), self.dummy - 1)
        return np.where(self.candidates[at] == prefixes, at, self.dummy).astype(np.uint64)


@dataclass(frozen=True, eq=False)
class TreeFound:
    """What a tree found, most frequent first."""

    values: U64
    share: F64
    standard_error: F64
    plan: TreePlan


Walk = Generator[TreeRound, Estimate, TreeFound]


def walk_tree(plan: TreePlan) -> Walk:
    """Yield the rounds of a search, receive the estimate of each, and return what was found."""
    prefixes, length = np.zeros(1, np.uint64), 0
    share, error = np.zeros(1), np.zeros(1)
    for number, to in enumerate(plan.lengths):
        ends = np.arange(1 << (to - length), dtype=np.uint64)
        candidates = (np.sort(prefixes)[:, None] << np.uint64(to - length) | ends).reshape(-1)
        estimate = yield TreeRound(number, to, candidates, plan.planned(number, len(candidates)))
        if not estimate.has_data:
            raise NoData(f"tree: round {number + 1} has no respondents; nothing can be found without it")
        # Without the dummy behind them, which many respondents may have reported.
        values = estimate.value[: len(candidates)]
        best = np.argsort(-values, kind="stable")[: plan.keep]
        prefixes, length, share = candidates[best], to, values[best]
        error = np.sqrt(estimate.variance[best] + plan.sampling(share))
    return TreeFound(prefixes, share, error, plan)


def ask_reports(tallies: Sequence[Any]) -> Callable[[TreeRound], Estimate]:
    """What answers the rounds of a tree whose respondents report at once: tallies of their reports, one per round."""

    def ask(asked: TreeRound) -> Estimate:
        return asked.oracle.mechanism.estimate(tallies[asked.number], asked.candidates)

    return ask


def run_tree(plan: TreePlan, ask: Callable[[TreeRound], Estimate]) -> TreeFound:
    """Walk a tree to its end; `ask` puts a round to respondents and returns the estimate of all its values."""
    walk = walk_tree(plan)
    said = next(walk)
    while True:
        try:
            said = walk.send(ask(said))
        except StopIteration as stop:
            return stop.value
