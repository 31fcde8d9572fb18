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
from tacit.integrity.parts import OraclePart, part_reports, parts_of_mechanism
from tacit.integrity.repair import Method, Repaired
from tacit.integrity.tails import look_number, spent_on_batch

WITHIN = 4.0
"""Between two doublings somebody may look again and again at nearly the same reports: a part of the budget each."""
_STATES = ("quiet", "look", "alarm")
_METHODS: tuple[Method, ...] = ("rec_hist", "rec_drop", "rec_model")


Stages = Sequence[tuple[int, Reports]]
"""Reports, and the doubling of their number at which they came."""


def stages_of(active: Active, kept: Sequence[KeptReports]) -> Stages:
    """Reports that a document keeps."""
    return [(one.part, active.mechanism.decode(one.payload)) for one in kept]


def look_at_reports(active: Active, stages: Stages) -> dict[str, Any]:
    """What the detectors make of all reports, what changed since the doubling before, and every repair."""
    reports = np.concatenate([stage for _, stage in stages])
    # A collection of one question has one part; of several, each has reports, and a part of the budget, of its own.
    parts = parts_of_mechanism(active.mechanism)
    jump = _jump(active, stages) if len(parts) == 1 and not parts[0].path else None
    looks, repairs, hot = list[dict[str, Any]](), list[dict[str, Any]](), list[Any]()
    for part in parts:
        mine = part_reports(active.mechanism, part.path, reports)
        if part.path and len(mine) < active.collection.least_reports:
            continue
        alpha = spent_on_batch(look_number(len(mine))) / WITHIN / len(parts)
        look = inspect_reports(part.oracle, mine, alpha=alpha)
        looks.append(inspection_json(active, part, look))
        repairs += _repairs(active, part, mine, look)
        hot += [label(active, part, value) for value in look.hot]
    return {
        "state": max((look["state"] for look in looks), key=_STATES.index, default="quiet"),
        "inspections": looks,
        "hot": hot,
        "repair": repairs[0] if repairs else None,
        "repairs": repairs,
        # Honest opinions change too: a jump ranks values for review, and makes no alarm.
        "jump": None
        if jump is None
        else jump[0].to_json() | {"values": [_label(active, parts[0], one) for one in jump[1]]},
    }


def inspection_json(active: Active, part: OraclePart, look: Inspection) -> dict[str, Any]:
    """An inspection with the name of what it is about."""
    return look.to_json() | {"part": part_name(active, part), "hot": [label(active, part, one) for one in look.hot]}


def _jump(active: Active, parts: Stages) -> tuple[Sighting, list[int]] | None:
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


def _repairs(active: Active, part: OraclePart, reports: Reports, look: Inspection) -> list[dict[str, Any]]:
    """Every repair that applies to a part, the one to be preferred first."""
    made = (repaired_estimate(part.oracle, reports, look, method=method) for method in _METHODS)
    found = [repaired for repaired in made if repaired is not None]
    if not found:
        return []
    oracle = part.structured
    assert oracle is not None
    raw = oracle.estimate(oracle.tally(reports)).value
    return [repair_json(active, part, raw, repaired) for repaired in found]


def repair_json(active: Active, part: OraclePart, raw: F64, repaired: Repaired) -> dict[str, Any]:
    """Raw and repaired shares of the hot values, side by side."""
    rows = [
        {"value": label(active, part, value), "raw": float(raw[value]), "repaired": float(repaired.value[value])}
        | {"standard_error": float(repaired.variance[value]) ** 0.5}
        for value in repaired.hot.tolist()
    ]
    shown = repaired.to_json()
    return {"method": shown["method"], "part": part_name(active, part), "fakes": shown["fakes"], "rows": rows}


def part_name(active: Active, part: OraclePart) -> str | None:
    """The name of the question that a part is about, and its place where it is not the whole; None if there is one."""
    asked = active.collection
    if not part.path:
        return None
    own = asked.policy in ("one_of", "all_of")
    inside = part.path[1:] if own else part.path
    names = [asked.questions[part.path[0]].name] if own else []
    return " ".join([*names, *(["part " + ".".join(map(str, inside))] if inside else [])])


def label(active: Active, part: OraclePart, value: int) -> Any:
    """A value as its question spells it, after the name of its part where there are several."""
    name, shown = part_name(active, part), _label(active, part, value)
    return shown if name is None else f"{name}: {shown}"


def _label(active: Active, part: OraclePart, value: int) -> Any:
    """A value as its question spells it; its number where values are no answers, such as nodes of a tree."""
    asked = active.collection
    if part.path and (len(part.path) > 1 or asked.policy not in ("one_of", "all_of")):
        return value
    domain = asked.questions[part.path[0] if part.path else 0].domain
    return domain.decode(value) if domain.size == getattr(part.oracle, "size", 0) else value
