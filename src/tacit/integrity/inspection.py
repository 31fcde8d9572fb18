"""All detectors that apply to a batch of reports, under one budget of false alarms; and what they conclude."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Mechanism, Oracle, Reports
from tacit.integrity.cosupport import MOST_VALUES, CoSupport, co_support
from tacit.integrity.detectors import Sighting, det_seed, findings
from tacit.integrity.repair import Method, Repaired, repair
from tacit.integrity.structure import structured, unwrapped
from tacit.integrity.tails import ALPHA

State = Literal["quiet", "look", "alarm"]
VERSION = 1
"""Of the detectors, kept with what they found."""
_LOOK = 10.0
"""A p-value within this factor of an alarm is worth a look."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """What the detectors saw in one batch."""

    n: int
    alpha: float
    """The false-alarm probability of this inspection."""
    findings: tuple[Sighting, ...]
    pairs: CoSupport | None

    @property
    def each(self) -> float:
        """The false-alarm probability of every detector."""
        return self.alpha / max(1, len(self.findings))

    @property
    def state(self) -> State:
        """Quiet, worth a look, or an alarm."""
        return self.state_of(self.least)

    @property
    def least(self) -> float:
        """The smallest p-value of any detector."""
        return min((finding.p_value for finding in self.findings), default=1.0)

    def state_of(self, p_value: float) -> State:
        """What one p-value means under the budget of every detector."""
        return "alarm" if p_value < self.each else "look" if p_value < _LOOK * self.each else "quiet"

    @property
    def hot(self) -> list[int]:
        """Values that fakes seem to support together."""
        return [] if self.pairs is None else self.pairs.hot.tolist()

    def _judged(self, finding: Sighting) -> dict[str, Any]:
        state = self.state_of(finding.p_value)
        return {"alarm": state == "alarm", "state": state}

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "version": VERSION,
            "n": self.n,
            "state": self.state,
            "alpha": self.alpha,
            "hot": self.hot,
            "findings": [finding.to_json() | self._judged(finding) for finding in self.findings],
        }


def inspect_reports(
    mechanism: Mechanism, reports: Reports, *, alpha: float = ALPHA, most: int = MOST_VALUES
) -> Inspection:
    """Run every detector that applies to the reports of a mechanism; quiet where none does, as for `grr`."""
    oracle = structured(mechanism)
    if oracle is None:
        return Inspection(len(reports), alpha, tuple(det_seed(unwrapped(mechanism), reports)), None)
    estimates, supports = _counted(oracle, reports)
    single = findings(oracle, reports, supports)
    listed = len(estimates) > 0
    # Every detector gets an equal part of the budget; the pairs share theirs.
    each = alpha / (len(single) + listed)
    pairs = co_support(oracle, reports, estimates, each, most=most) if listed and len(reports) else None
    return Inspection(len(reports), alpha, (*single, *_pair_finding(pairs)), pairs)


def _counted(oracle: Oracle, reports: Reports) -> tuple[F64, I64]:
    """Raw shares of all values and the supports behind them; nothing of domains that nobody enumerates."""
    if getattr(oracle, "state", "counts") != "counts":
        return np.zeros(0), np.zeros(0, np.int64)
    tally = oracle.tally(reports)
    return oracle.estimate(tally).value, tally.cells


def _pair_finding(pairs: CoSupport | None) -> Sequence[Sighting]:
    if pairs is None:
        return ()
    note = f"{len(pairs.hot)} values are supported together" if len(pairs.hot) else "no pair stands out"
    return (Sighting("det_cosup", pairs.largest, pairs.p_value, note),)


def repaired_estimate(
    mechanism: Mechanism, reports: Reports, inspection: Inspection, *, method: Method = "rec_hist"
) -> Repaired | None:
    """Return the repaired estimate after an inspection; None where nothing can be repaired. Never automatic."""
    oracle = structured(mechanism)
    return (
        None if oracle is None or inspection.pairs is None else repair(oracle, reports, inspection.pairs, method=method)
    )
