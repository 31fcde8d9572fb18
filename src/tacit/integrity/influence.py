"""How far reports can push an answer, whoever sends them: the most that one report, or a coalition, can move it.

A raw estimate is a mean over reports of what each contributes, so that adding a report moves it by at most the largest
contribution over n, and replacing one by the distance of the largest and the least. For a pure oracle the contributions
are (1 - q)/(p - q) and -q/(p - q).
"""

from dataclasses import dataclass
from typing import Any

from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.pure import PureOracle
from tacit.core.wrapper import Wrapper
from tacit.errors import InvalidSpec

COALITION = 0.01
"""The share of all reports that one coalition is taken to send, unless it is said."""


@dataclass(frozen=True)
class InfluenceCap:
    """The most that reports can move the estimated share of one value."""

    added: float
    """By adding one report to n, times n."""
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


def influence_cap(mechanism: Mechanism) -> InfluenceCap | None:
    """Return the cap on the share of a single value; None for kinds whose estimates are no means of contributions."""
    if isinstance(mechanism, Wrapper):
        inner = influence_cap(mechanism.inner)
        length = float(getattr(mechanism, "length", 1))
        # Padding and sampling multiplies the estimate of the oracle inside by the length.
        return None if inner is None else InfluenceCap(inner.added * length, inner.replaced * length)
    if isinstance(mechanism, PureOracle):
        p, q = float(mechanism.p), float(mechanism.q)
        return InfluenceCap(max(1 - q, q) / (p - q), 1 / (p - q))
    if isinstance(mechanism, Oracle):
        # Two contributions of known distance (`Moments.step`), symmetric about their mean where nothing else is known.
        step = mechanism.moments.step
        return InfluenceCap(step, step)
    return None
