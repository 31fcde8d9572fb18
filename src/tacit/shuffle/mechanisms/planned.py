"""Oracles planned for a central epsilon by the published closed forms: SH-GRR, SOLH, SH-RAP, SH-RAP_R and AUE.

    central target (epsilon, delta, n) --closed form--> local epsilon and buckets --> a mechanism of this package

SH-GRR is GRR and SOLH is OLH with its own number of buckets, so that both are published and answered like any other
collection; what is planned here is their local epsilon. The others send messages by location (`messages`) and cannot be
published. Where shuffling proves nothing, the mechanism spends the central epsilon locally, which is always private
enough, and `amplified` is False. Reference: T. Wang's dissertation (Purdue, 2021), sections 9.2 and 9.3.
"""

from dataclasses import dataclass
from math import ceil, floor, inf, log
from typing import Literal

from tacit.core.mechanism import Oracle
from tacit.device.kinds.grr import MAX_SIZE as LARGEST_GRR
from tacit.device.kinds.local_hash import MAX_BUCKETS
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.shuffle.mechanisms.closed_forms import (
    CentralTarget,
    appended_noise,
    blanket,
    decimal_down,
    decimal_up,
    unary_blanket,
)
from tacit.shuffle.mechanisms.messages import AppendedUnary, FragmentedUnary

Neighbours = Literal["replacement", "removal"]
_HIGHEST_LOCAL = 32.0
"""The largest epsilon that a mechanism can be declared with."""


@dataclass(frozen=True)
class PlannedOracle:
    """An oracle and the central guarantee that it was planned for."""

    method: str
    mechanism: Oracle
    target: CentralTarget
    amplified: bool
    """Whether shuffling is what makes the central epsilon hold; if not, the mechanism spends it locally."""
    neighbours: Neighbours = "replacement"
    """Which change of one respondent the central epsilon is about. Under removal it is worth 2 epsilon of replacement:
    the two must not be compared as they are."""
    local: bool = True
    """Whether there is a local guarantee at all."""

    @property
    def epsilon_local(self) -> float | None:
        """The local epsilon of a report towards an observer who knows its sender; None if it is unprotected."""
        return self.mechanism.realised_epsilon() if self.local else None

    @property
    def replacement_epsilon(self) -> float:
        """The central epsilon against replacing one respondent's value, the one to compare methods by."""
        return self.target.value * (2 if self.neighbours == "removal" else 1)

    @property
    def mse(self) -> float:
        """The expected mean squared error of a frequency over the domain, exactly and whatever the data."""
        return self.mechanism.average_error() / self.target.n

    @property
    def variance_at_zero(self) -> float:
        """The variance of the frequency of a value that nobody holds: what the source prints as "the" variance."""
        return self.mechanism.variance_at_zero / self.target.n

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader should know."""
        found = list(self.target.cautions)
        if not self.amplified:
            found.append("not amplified: the central epsilon is spent locally")
        if not self.local:
            found.append("not local: whoever links the messages of a respondent learns the value")
        if self.neighbours == "removal":
            found.append(f"epsilon is for removing a respondent; for replacing one it is {self.replacement_epsilon:g}")
        return tuple(found)


def _local_epsilon(target: CentralTarget, odds: float) -> tuple[str, bool]:
    """The local epsilon whose odds are at most `odds`, and whether it is more than the central one.

    A local epsilon is a central one as well, so that the larger of both is spent.
    """
    # Just above the threshold of amplification the odds tend to 1, where the variance of an oracle is infinite.
    amplified = log(odds) if odds > 1 else 0.0
    if amplified <= target.value:
        return target.epsilon, False
    return decimal_down(min(_HIGHEST_LOCAL, amplified)), True


def sh_grr(target: CentralTarget, size: int) -> PlannedOracle:
    """Plan GRR for shuffled reports (SH): e^local = m - d + 1. Without m > d, GRR at the central epsilon.

    >>> plan = sh_grr(CentralTarget("0.8", 1e-9, 602_325), 915)
    >>> plan.mechanism.kind, round(plan.epsilon_local, 3), plan.amplified
    ('grr', 5.918, True)
    """
    epsilon, amplified = _local_epsilon(target, blanket(target) - size + 1)
    return PlannedOracle("sh_grr", GRR(size=size, epsilon=epsilon), target, amplified)


def solh(target: CentralTarget, size: int, *, buckets: int | None = None, or_grr: bool = True) -> PlannedOracle:
    """Plan shuffler-optimal local hashing: OLH with d' near (m + 2)/3 buckets and e^local = m - d' + 1.

    With few values GRR is better, and is planned instead unless `or_grr` is False. Where m is too small to gain
    anything, OLH at the central epsilon. `buckets` fixes d'.

    >>> plan = solh(CentralTarget("0.4", 1e-9, 990_002), 42_178)
    >>> plan.mechanism.buckets, round(plan.epsilon_local, 3)
    (177, 5.864)
    """
    m = blanket(target)
    chosen = _best_buckets(m) if buckets is None else buckets
    # More values than randomised response can have are hashed in any case.
    or_grr = or_grr and size <= LARGEST_GRR
    direct = sh_grr(target, min(size, LARGEST_GRR))
    # Compared by the printed variances, whose difference is far above what they leave out.
    if or_grr and (size <= max(2, chosen) or _published_variance(direct.amplified, m, size) < _hashing(m, chosen)):
        return direct
    epsilon, amplified = _local_epsilon(target, m - chosen + 1)
    if not amplified:
        plain = PlannedOracle("solh", OLH(size=size, epsilon=target.epsilon), target, False)
        return min(plain, direct, key=lambda plan: plan.mse) if or_grr else plain
    return PlannedOracle("solh", OLH(size=size, epsilon=epsilon, buckets=chosen), target, True)


def _best_buckets(m: float) -> int:
    """The integer next to (m + 2)/3 of least variance; between 2 and what a report can hold."""
    best = (m + 2) / 3
    # The variance is convex in d', so that one of the two neighbours of the real optimum is best.
    nearby = {min(MAX_BUCKETS, max(2, whole)) for whole in (floor(best), ceil(best))}
    return min(nearby, key=lambda d: _hashing(m, d))


def _hashing(m: float, buckets: int) -> float:
    """n times the variance of SOLH with these buckets, Proposition 9.3.5: m^2/((m - d')^2 (d' - 1))."""
    return m**2 / ((m - buckets) ** 2 * (buckets - 1)) if m > buckets else inf


def _published_variance(amplified: bool, m: float, size: int) -> float:
    """n times the variance of SH-GRR, Proposition 9.3.3: (m - 1)/(m - d)^2; infinite where it is not amplified."""
    return (m - 1) / (m - size) ** 2 if amplified else inf


def sh_rap(target: CentralTarget, size: int) -> PlannedOracle:
    """Plan symmetric unary encoding sent location by location (SH-RAP): a bit flips with probability 1/m_u.

    The local epsilon is 2 ln(m_u - 1). Whole vectors are refused by the mechanism: the theorem is not about them.

    >>> plan = sh_rap(CentralTarget("0.5", 1e-9, 602_325), 915)
    >>> round(float(plan.mechanism.q), 5), round(plan.mechanism.messages_each, 2)
    (0.00822, 8.51)
    """
    epsilon, amplified = _local_epsilon(target, max(1.0, unary_blanket(target) - 1) ** 2)
    return PlannedOracle("sh_rap", FragmentedUnary(size=size, epsilon=epsilon), target, amplified)


def sh_rap_r(target: CentralTarget, size: int) -> PlannedOracle:
    """Plan SH-RAP_R: a bit flips with probability 1/m, and epsilon is for *removing* a respondent.

    Its error is that of SH-RAP at twice the epsilon, nearly; so is its guarantee.

    >>> round(float(sh_rap_r(CentralTarget("0.5", 1e-9, 602_325), 915).mechanism.q), 6)
    0.001991
    """
    odds = max(1.0, blanket(target) - 1)
    # Under removal a bit may spend all of epsilon; SUE states what replacing a value costs, which is twice that.
    amplified = log(odds) > target.value
    epsilon = decimal_down(min(_HIGHEST_LOCAL, 2 * max(log(odds), target.value)))
    return PlannedOracle("sh_rap_r", FragmentedUnary(size=size, epsilon=epsilon), target, amplified, "removal")


def aue(target: CentralTarget, size: int, *, fewer: bool = True) -> PlannedOracle:
    """Plan appended unary encoding: z = 200 ln(4/delta)/(epsilon^2 n). Not local; refused where z is above 1/2.

    The source appends with probability 1 - z. With probability z, the default here, noise and guarantee are the same
    (counts are mirrored) and far fewer messages are sent; `fewer=False` does as the source.

    >>> plan = aue(CentralTarget("0.5", 1e-9, 602_325), 915)
    >>> plan.mechanism.rate[:7], round(plan.mechanism.messages_each, 1), plan.epsilon_local
    ('0.02936', 27.9, None)
    """
    z = appended_noise(target)
    if z > 0.5:
        least = ceil(target.n * z * 2)
        raise InvalidSpec(
            f"aue: {target.n} respondents need noise with probability {z:.3g}, must be at most 1/2; ask at least "
            f"{least} respondents, or allow a larger epsilon or delta"
        )
    # Rounded towards one half, which is more noise, whichever way the location is appended.
    noise = decimal_up(z)
    rate = noise if fewer else decimal_down(1 - z)
    mechanism = AppendedUnary(size=size, epsilon=target.epsilon, rate=rate)
    return PlannedOracle("aue", mechanism, target, amplified=True, local=False)
