"""Integrity from the reports themselves, where a collection keeps them until it is closed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.collector.collections.active import Active
from tacit.collector.ports import KeptReports
from tacit.core.mechanism import Reports
from tacit.core.tally import Counts
from tacit.integrity.detectors import Sighting, det_jump
from tacit.integrity.inspection import Inspection, inspect_reports, repaired_estimate
from tacit.integrity.repair import Method, Repaired
from tacit.integrity.tails import look_number, spent_on_batch

WITHIN = 4.0
"""Between two doublings somebody may look again and again at nearly the same reports: a part of the budget each."""
_METHODS: tuple[Method, ...] = ("rec_hist", "rec_drop", "rec_model")


def look_at_reports(active: Active, kept: Sequence[KeptReports]) -> dict[str, Any]:
    """What the detectors make of all reports, what changed since the doubling before, and every repair."""
    parts = [(one.part, active.mechanism.decode(one.payload)) for one in kept]
    reports = np.concatenate([part for _, part in parts])
    alpha = spent_on_batch(look_number(len(reports))) / WITHIN
    jump = _jump(active, parts)
    look = inspect_reports(active.mechanism, reports, alpha=alpha)
    repairs = _repairs(active, reports, look)
    return {
        "looked_at": "reports",
        "state": look.state,
        "inspections": [look.to_json()],
        "hot": [label(active, value) for value in look.hot],
        "repair": repairs[0] if repairs else None,
        "repairs": repairs,
        # Honest opinions change too: a jump ranks values for review, and makes no alarm.
        "jump": None if jump is None else jump[0].to_json() | {"values": [label(active, one) for one in jump[1]]},
    }


def _jump(active: Active, parts: Sequence[tuple[int, Reports]]) -> tuple[Sighting, list[int]] | None:
    """The last doubling against everything before; None where nothing is enumerated, or one of both is small.

    The minimum cohort holds for each of them: just after a doubling the last one has a report or two.
    """
    last = max(part for part, _ in parts)
    sides = [[reports for part, reports in parts if (part == last) is new] for new in (False, True)]
    if min(sum(map(len, side)) for side in sides) < active.collection.least_reports:
        return None
    tallies: list[Any] = [active.mechanism.tally(np.concatenate(side)) for side in sides]
    if not isinstance(tallies[0], Counts):
        return None
    before, after = (active.mechanism.estimate(tally) for tally in tallies)
    return det_jump(before, after)


def _repairs(active: Active, reports: Reports, look: Inspection) -> list[dict[str, Any]]:
    """Every repair that applies, the one to be preferred first."""
    made = (repaired_estimate(active.mechanism, reports, look, method=method) for method in _METHODS)
    found = [repaired for repaired in made if repaired is not None]
    if not found:
        return []
    raw = active.mechanism.estimate(active.mechanism.tally(reports)).value
    return [repair_json(active, raw, repaired) for repaired in found]


def repair_json(active: Active, raw: F64, repaired: Repaired) -> dict[str, Any]:
    """Raw and repaired shares of the hot values, side by side."""
    rows = [
        {"value": label(active, value), "raw": float(raw[value]), "repaired": float(repaired.value[value])}
        | {"standard_error": float(repaired.variance[value]) ** 0.5}
        for value in repaired.hot.tolist()
    ]
    shown = repaired.to_json()
    return {"method": shown["method"], "fakes": shown["fakes"], "rows": rows}


def label(active: Active, value: int) -> Any:
    """A value as the only question of the collection spells it; its number where values are no answers."""
    domain = active.collection.questions[0].domain
    return domain.decode(value) if domain.size == getattr(active.mechanism, "size", 0) else value
