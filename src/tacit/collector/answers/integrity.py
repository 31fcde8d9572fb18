"""Whether the reports of a collection look forged, as plain data: what was seen, how far it could go, and a repair."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.arrays import F64
from tacit.collector.answers.answer import BELOW, OK
from tacit.collector.answers.kept import WITHIN, label, look_at_reports, repair_json
from tacit.collector.collections.active import Active
from tacit.collector.ports import KeptReports
from tacit.core.members import AnyTally
from tacit.core.tally import Counts
from tacit.integrity.cosupport import CoSupport
from tacit.integrity.detectors import Sighting
from tacit.integrity.influence import influence_cap
from tacit.integrity.inspection import VERSION, Inspection
from tacit.integrity.repair import Repaired, rec_model
from tacit.integrity.structure import Structured
from tacit.integrity.tails import look_number, spent_on_batch
from tacit.integrity.watch import WatchedSums, sum_sighting, watched_oracle

_NOTHING: dict[str, Any] = {"inspections": [], "hot": [], "repair": None, "repairs": [], "jump": None}
_ORDER = ("quiet", "look", "alarm")


def integrity(
    active: Active,
    tally: AnyTally,
    watches: Sequence[WatchedSums],
    rejected: Mapping[str, int],
    kept: Sequence[KeptReports] = (),
) -> dict[str, Any]:
    """Return what the detectors make of everything that was counted; answers are never changed by it.

    Below the minimum cohort nothing is said but how many reports were refused.
    """
    enough = tally.n >= active.collection.least_reports
    about = {"id": active.id, "version": VERSION, "n": tally.n, "status": OK if enough else BELOW}
    cap = influence_cap(active.mechanism)
    shown = about | {
        "rejected": dict(rejected),
        "influence": None if cap is None or not enough else cap.to_json(tally.n),
    }
    # Detectors read the same counts as answers do, so that the minimum cohort holds for what they say as well.
    if not enough:
        return shown | {"looked_at": "nothing", "state": "quiet"} | _NOTHING
    if kept:
        return shown | look_at_reports(active, kept)
    oracle = watched_oracle(active.mechanism)
    looks = [] if oracle is None or not isinstance(tally, Counts) else _looks(oracle, tally, watches)
    state = max((look.state for look in looks), key=_ORDER.index, default="quiet")
    hot = sorted({value for look in looks for value in look.hot})
    repaired = _repaired(oracle, tally, looks)
    return shown | {
        "looked_at": "sums" if any(look.findings for look in looks) else "nothing",
        "state": state,
        "inspections": [look.to_json() for look in looks],
        "hot": [label(active, value) for value in hot],
        "repair": None if repaired is None else repair_json(active, _raw(oracle, tally), repaired),
        "repairs": [],
        "jump": None,
    }


def _looks(oracle: Structured, tally: Counts, watches: Sequence[WatchedSums]) -> list[Inspection]:
    """One inspection of all counts, and one of the sums of every shard, which share the budget."""
    alpha = spent_on_batch(look_number(tally.n)) / WITHIN
    each = alpha / (1 + len(watches))
    total = sum_sighting(oracle, tally)
    looks = [Inspection(tally.n, each, () if total is None else (total,), None)]
    for watch in watches:
        single = watch.sightings(oracle)
        pairs = watch.pairs(oracle, each / (1 + len(single)))
        looks.append(Inspection(watch.n, each, (*single, _of_pairs(pairs)), pairs))
    return looks


def _of_pairs(pairs: CoSupport) -> Sighting:
    note = f"{len(pairs.hot)} values are supported together" if len(pairs.hot) else "no pair stands out"
    return Sighting("det_cosup", pairs.largest, pairs.p_value, note)


def _repaired(oracle: Structured | None, tally: AnyTally, looks: Sequence[Inspection]) -> Repaired | None:
    """REC-MODEL where one shard has seen everything: with several, their hot values may differ."""
    whole = [look.pairs for look in looks if look.pairs is not None and look.n == tally.n]
    if oracle is None or not isinstance(tally, Counts) or len(whole) != 1:
        return None
    return rec_model(oracle, tally, whole[0])


def _raw(oracle: Structured | None, tally: AnyTally) -> F64:
    assert oracle is not None and isinstance(tally, Counts)
    return (tally.cells / tally.n - float(oracle.q)) / float(oracle.p - oracle.q)
