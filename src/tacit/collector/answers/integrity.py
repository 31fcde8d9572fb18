"""Whether the reports of a collection look forged, as plain data: what was seen, how far it could go, and a repair."""

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from tacit.collector.answers.answer import BELOW, OK
from tacit.collector.collections.active import Active
from tacit.core.members import AnyTally
from tacit.core.tally import Counts
from tacit.integrity.cosupport import CoSupport
from tacit.integrity.detectors import Sighting
from tacit.integrity.influence import influence_cap
from tacit.integrity.inspection import VERSION, Inspection
from tacit.integrity.repair import Repaired, rec_model
from tacit.integrity.structure import Structured
from tacit.integrity.tails import spent_on_batch
from tacit.integrity.watch import WatchedSums, sum_sighting, watched_oracle

_FIRST_LOOK = 100
"""Looks are numbered by doublings of the number of reports from here on."""
_WITHIN = 4.0
"""Between two doublings somebody may look again and again at nearly the same sums: a part of the budget each."""
_ORDER = ("quiet", "look", "alarm")


def integrity(
    active: Active, tally: AnyTally, watches: Sequence[WatchedSums], rejected: Mapping[str, int]
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
        return shown | {"looked_at": "nothing", "state": "quiet", "inspections": [], "hot": [], "repair": None}
    oracle = watched_oracle(active.mechanism)
    looks = [] if oracle is None or not isinstance(tally, Counts) else _looks(oracle, tally, watches)
    state = max((look.state for look in looks), key=_ORDER.index, default="quiet")
    hot = sorted({value for look in looks for value in look.hot})
    repaired = _repaired(oracle, tally, looks)
    return shown | {
        "looked_at": "sums" if any(look.findings for look in looks) else "nothing",
        "state": state,
        "inspections": [look.to_json() for look in looks],
        "hot": [_label(active, value) for value in hot],
        "repair": None if repaired is None else _repair_json(active, oracle, tally, repaired),
    }


def _looks(oracle: Structured, tally: Counts, watches: Sequence[WatchedSums]) -> list[Inspection]:
    """One inspection of all counts, and one of the sums of every shard, which share the budget."""
    alpha = spent_on_batch(1 + int(log2(max(1.0, tally.n / _FIRST_LOOK)))) / _WITHIN
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


def _repair_json(active: Active, oracle: Structured | None, tally: AnyTally, repaired: Repaired) -> dict[str, Any]:
    """Raw and repaired shares of the hot values, side by side."""
    assert oracle is not None and isinstance(tally, Counts)
    raw = (tally.cells / tally.n - float(oracle.q)) / float(oracle.p - oracle.q)
    rows = [
        {"value": _label(active, value), "raw": float(raw[value]), "repaired": float(repaired.value[value])}
        | {"standard_error": float(repaired.variance[value]) ** 0.5}
        for value in repaired.hot.tolist()
    ]
    shown = repaired.to_json()
    return {"method": shown["method"], "fakes": shown["fakes"], "rows": rows}


def _label(active: Active, value: int) -> Any:
    """A value as the only question of the collection spells it; its number where values are no answers."""
    domain = active.collection.questions[0].domain
    return domain.decode(value) if domain.size == getattr(active.mechanism, "size", 0) else value
