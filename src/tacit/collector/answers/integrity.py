"""Whether the reports of a collection look forged, as plain data: what was seen, how far it could go, and a repair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.collector.answers.answer import BELOW, OK
from tacit.collector.answers.kept import WITHIN, inspection_json, label, look_at_reports, repair_json, stages_of
from tacit.collector.collections.active import Active
from tacit.collector.ingest.watching import Watches
from tacit.collector.ports import KeptReports
from tacit.core.members import AnyTally
from tacit.core.tally import Counts, Log
from tacit.integrity.cosupport import CoSupport
from tacit.integrity.detectors import Sighting
from tacit.integrity.influence import influence_cap
from tacit.integrity.inspection import VERSION, Inspection
from tacit.integrity.parts import OraclePart, part_counts
from tacit.integrity.repair import rec_model
from tacit.integrity.structure import Structured
from tacit.integrity.tails import look_number, spent_on_batch
from tacit.integrity.watch import WatchedSums, added_up, sum_sighting, watched_oracle, watched_parts

_NOTHING: dict[str, Any] = {"inspections": [], "hot": [], "repair": None, "repairs": [], "jump": None}
_ORDER = ("quiet", "look", "alarm")
_NEARLY_ALL = 0.5
"""The share of all reports that must have been watched for a repair."""


def integrity(
    active: Active,
    tally: AnyTally,
    watches: Sequence[Watches],
    kept: Sequence[KeptReports] = (),
) -> dict[str, Any]:
    """Return what the detectors make of everything that was counted; answers are never changed by it.

    Below the minimum cohort nothing is said.
    """
    enough = tally.n >= active.collection.least_reports
    about = {"id": active.id, "version": VERSION, "n": tally.n, "status": OK if enough else BELOW}
    cap = influence_cap(active.mechanism)
    shown = about | {
        "influence": None if cap is None or not enough else cap.to_json(tally.n),
    }
    # Detectors read the same counts as answers do, so that the minimum cohort holds for what they say as well.
    if not enough:
        return shown | {"looked_at": "nothing", "state": "quiet"} | _NOTHING
    if kept:
        return shown | {"looked_at": "reports"} | look_at_reports(active, stages_of(active, kept))
    if isinstance(tally, Log) and active.collection.shuffle is None:
        # Answers are computed from these reports as well, so that they are here.
        return shown | {"looked_at": "log"} | look_at_reports(active, [(1, np.concatenate(tally.chunks))])
    looks = _looks(active, tally, watches)
    state = max((look.look.state for look in looks), key=_ORDER.index, default="quiet")
    hot = dict.fromkeys(label(active, look.part, value) for look in looks for value in look.look.hot)
    repairs = [made for look in looks if (made := look.repaired(active)) is not None]
    return shown | {
        "looked_at": "sums" if any(look.look.findings for look in looks) else "nothing",
        "state": state,
        "inspections": [inspection_json(active, look.part, look.look) for look in looks],
        "hot": list(hot),
        "repair": repairs[0] if repairs else None,
        "repairs": repairs,
        "jump": None,
    }


@dataclass(frozen=True, eq=False)
class _Look:
    """What was seen of one part: in all of its counts, or in sums that were kept of some of its reports."""

    part: OraclePart
    oracle: Structured
    counts: Counts
    look: Inspection

    def repaired(self, active: Active) -> dict[str, Any] | None:
        """REC-MODEL where nearly everything was watched in one sum."""
        pairs, seen = self.look.pairs, self.look.n
        if pairs is None or seen < _NEARLY_ALL * self.counts.n:
            return None
        made = rec_model(self.oracle, self.counts, pairs, seen=seen)
        p, q = float(self.oracle.p), float(self.oracle.q)
        raw = (self.counts.cells / self.counts.n - q) / (p - q)
        return None if made is None else repair_json(active, self.part, raw, made)


def _looks(active: Active, tally: AnyTally, watches: Sequence[Watches]) -> list[_Look]:
    """For every part one inspection of all counts, and one of the sums that were kept; they share the budget."""
    parts = watched_parts(active.mechanism)
    least, looks = active.collection.least_reports, list[_Look]()
    for part in parts:
        oracle, counts = watched_oracle(part.oracle), part_counts(active.mechanism, part.path, tally)
        # The cohort holds for every question, as it does for answers.
        if oracle is None or counts is None or counts.n < max(1, least):
            continue
        alpha = spent_on_batch(look_number(counts.n)) / WITHIN / len(parts)
        mine = added_up([shard[part.path] for shard in watches if part.path in shard])
        looks += [_Look(part, oracle, counts, look) for look in _inspected(oracle, counts, mine, alpha)]
    return looks


def _inspected(
    oracle: Structured, counts: Counts, watches: Sequence[WatchedSums], alpha: float
) -> Iterator[Inspection]:
    each = alpha / (1 + len(watches))
    total = sum_sighting(oracle, counts)
    yield Inspection(counts.n, each, () if total is None else (total,), None)
    for watch in watches:
        single = watch.sightings(oracle)
        pairs = watch.pairs(oracle, each / (1 + len(single)))
        yield Inspection(watch.n, each, (*single, _of_pairs(pairs)), pairs)


def _of_pairs(pairs: CoSupport) -> Sighting:
    note = f"{len(pairs.hot)} values are supported together" if len(pairs.hot) else "no pair stands out"
    return Sighting("det_cosup", pairs.largest, pairs.p_value, note)
