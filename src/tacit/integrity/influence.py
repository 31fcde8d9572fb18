"""How far reports can push an answer, whoever sends them: the most that one report, or a coalition, can move it.

A raw estimate is a mean over reports of what each contributes, so that replacing a report moves it by at most the
distance of the largest and the least contribution over n; and adding one to an estimate within 0 and 1 by at most what
the largest is above 0, or the least below 1. For a pure oracle the contributions are (1 - q)/(p - q) and -q/(p - q).
"""

from dataclasses import dataclass
from typing import Any

from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.pure import PureOracle
from tacit.core.wrapper import Wrapper
from tacit.errors import InvalidSpec
from tacit.numeric.bit_flip import DBitFlip
from tacit.oracles.hadamard import HRRT
from tacit.oracles.histogram_encoding import SHE

COALITION = 0.01
"""The share of all reports that one coalition is taken to send, unless it is said."""


@dataclass(frozen=True)
class InfluenceCap:
    """The most that reports can move the estimated share of one value."""

    added: float
    """By adding one report to n whose estimate is within 0 and 1, times n; `replaced` bounds all others."""
    replaced: float
    """By replacing one of n reports, times n."""

    def one(self, n: int) -> float:
        """The most that one further report can move the share."""
        return self.added / max(1, n)

    def coalition(self, share: float = COALITION) -> float:
        """The most that a coalition that sends this share of all reports can move the share of a value.

        Its reports take the place of honest ones in the mean: share times the distance of the contributions.
        """
        if not 0 <= share <= 1:
            raise InvalidSpec(f"influence: the share of a coalition is {share:g}, must be from 0 to 1")
        return share * self.replaced

    def to_json(self, n: int) -> dict[str, Any]:
        """Plain values for an answer of n reports."""
        return {"one_report": self.one(n), "coalition_share": COALITION, "coalition": self.coalition()}


def reach_json(reach: float, n: int) -> dict[str, Any]:
    """Plain values for an answer of n reports of which one, replaced by any other, moves any cell by at most `reach`.

    Where respondents answer one of several members, the whole coalition may be in the one that weighs most.
    """
    return {"one_report": reach, "coalition_share": COALITION, "coalition": COALITION * n * reach}


def influence_cap(mechanism: Mechanism) -> InfluenceCap | None:
    """Return the cap on the share of a single value; None for kinds whose estimates are no means of contributions."""
    if isinstance(mechanism, Wrapper):
        inner = influence_cap(mechanism.sends)
        length = float(getattr(mechanism, "length", 1))
        # Padding and sampling multiplies the estimate of the oracle inside by the length.
        return None if inner is None else InfluenceCap(inner.added * length, inner.replaced * length)
    if isinstance(mechanism, PureOracle):
        p, q = float(mechanism.p), float(mechanism.q)
        return _between(-q / (p - q), (1 - q) / (p - q))
    if isinstance(mechanism, SHE):
        own, other = float(mechanism.mean_own), float(mechanism.mean_other)
        return _between(-other / (own - other), (mechanism.outputs - 1 - other) / (own - other))
    if isinstance(mechanism, DBitFlip):
        # Every debiased bit stands for size/sampled respondents.
        p, q, times = float(mechanism.p), float(mechanism.q), mechanism.size / mechanism.sampled
        return _between(-q * times / (p - q), (1 - q) * times / (p - q))
    if isinstance(mechanism, Oracle) and not isinstance(mechanism, HRRT):
        # Two contributions u and -l, whose variances give u + l and u - l (`Moments.step`); `hrr_t`, with several
        # coefficients in one report, has more of them.
        moments = mechanism.moments
        apart = 1 + moments.own - moments.other
        return _between((apart - moments.step) / 2, (apart + moments.step) / 2)
    return None


def _between(least: float, largest: float) -> InfluenceCap:
    """The cap where contributions lie between these two."""
    return InfluenceCap(max(largest, 1 - least), largest - least)
