"""Everything a privacy reviewer signs, as plain values: mechanism, exact ratios, black-box bounds, assumptions."""

import platform
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tacit import __version__
from tacit.audit.presets import client_hash
from tacit.core.mechanism import Mechanism
from tacit.device.numbers.exact import WORD, log_upper
from tacit.errors import InvalidSpec, ProgramFailed
from tacit.testing.examples import examples
from tacit.testing.guarantees import enumerated_guarantees
from tacit.testing.laws import reports_to_audit, values_of
from tacit.wire.document import Collection

_THRESHOLDS = ("thresholds", "low", "include")
"""Where kinds keep the integers that words of 64 random bits are compared with."""

ASSUMPTIONS = (
    "Coins are uniform: the operating system's generator is trusted, and its expansion is as good as random.",
    "The device runs the code that was audited; a page is served by whoever operates it.",
    "Guarantees are per report unless a row says otherwise; other questions and other collections add up.",
    "That a person takes part, when, and from which address, is not protected by the mechanism.",
    "A black-box bound is a lower bound: it can refute a claim and never proves one.",
)


def dossier(
    mechanism: Mechanism, collection: Collection | None = None, clients: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return the findings about one mechanism; `clients` are outcomes of black-box audits, each with its program."""
    return _about(collection) | _findings(mechanism, clients)


def dossier_of_questions(
    whole: Mechanism, collection: Collection, questions: Mapping[str, tuple[Mechanism, Sequence[dict[str, Any]]]]
) -> dict[str, Any]:
    """Return the findings about every question of a document by name, and the guarantees of all together."""
    found = [{"question": name} | _findings(mechanism, clients) for name, (mechanism, clients) in questions.items()]
    return _about(collection) | {
        "mechanism": {"spec": whole.spec(), "digest": whole.digest},
        "guarantees": _guarantees(whole),
        "questions": found,
        "holds": whole.holds() and all(one["holds"] for one in found),
    }


def _about(collection: Collection | None) -> dict[str, Any]:
    """What is said once, whatever the number of questions."""
    return {
        "document": None if collection is None else _document(collection),
        "assumptions": list(ASSUMPTIONS),
        "versions": {"tacit": __version__, "python": platform.python_version(), "numpy": np.__version__},
        "script": _script(),
    }


def _findings(mechanism: Mechanism, clients: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "mechanism": {"spec": mechanism.spec(), "digest": mechanism.digest},
        "thresholds": _thresholds(mechanism),
        "guarantees": _guarantees(mechanism),
        "witness": _witness(mechanism),
        "longitudinal": longitudinal(mechanism),
        "clients": list(clients),
        "holds": mechanism.holds() and not any(client["refuted"] for client in clients),
    }


def _document(collection: Collection) -> dict[str, Any]:
    return {
        "id": collection.id,
        "title": collection.title,
        "epsilon": collection.epsilon,
        "policy": collection.policy,
        "minimum_cohort": collection.minimum_cohort,
        "questions": [question.to_json() for question in collection.questions],
    }


def _thresholds(mechanism: Mechanism) -> dict[str, Any]:
    """Integers over 2^64, as text; those of the mechanisms inside under their kind."""
    own: dict[str, Any] = {name: getattr(mechanism, name) for name in _THRESHOLDS if hasattr(mechanism, name)}
    inside = {part.kind: _thresholds(part) for part in mechanism.parts if isinstance(part, Mechanism)}
    return {name: str(value) for name, value in own.items()} | {kind: found for kind, found in inside.items() if found}


def _guarantees(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Declared, realised in exact arithmetic, and enumerated: of this mechanism, else of a tiny one of its kind."""
    enumerated, listed = enumerated_guarantees(mechanism), mechanism
    if None in enumerated and isinstance(mechanism.budget.to_spec(), str):
        listed = examples(mechanism.kind, mechanism.budget.to_spec())[0]
        enumerated = (enumerated_guarantees(listed) + [None] * len(enumerated))[: len(enumerated)]
    return [
        {
            "guarantee": what,
            "declared": _declared(mechanism, bound),
            "realised": float(log_upper(realised)),
            "enumerated": by_enumeration,
            "enumerated_on": None if by_enumeration is None else listed.spec(),
            "holds": realised <= bound,
        }
        for (what, realised, bound), by_enumeration in zip(mechanism.guarantees(), enumerated, strict=True)
    ]


def _declared(mechanism: Mechanism, bound: Fraction) -> float:
    """The epsilon as it was written where a guarantee is about all of it, else the logarithm of its bound."""
    return float(mechanism.budget.declared if bound == Fraction(mechanism.odds, WORD) else log_upper(bound))


def _witness(mechanism: Mechanism) -> dict[str, Any] | None:
    """The report and the two values with the largest likelihood ratio; None where reports are too many to list."""
    try:
        reports = reports_to_audit(mechanism)
    except InvalidSpec:
        return None
    values = values_of(mechanism)
    logs = np.array([mechanism.log_prob(reports, value) for value in values])
    at = int(np.argmax(logs.max(axis=0) - logs.min(axis=0)))
    likely, unlikely = int(np.argmax(logs[:, at])), int(np.argmin(logs[:, at]))
    return {
        "values": [values[likely], values[unlikely]],
        "report": reports[at : at + 1].tobytes().hex(),
        "probabilities": [float(np.exp(logs[likely, at])), float(np.exp(logs[unlikely, at]))],
        "log_ratio": float(logs[likely, at] - logs[unlikely, at]),
    }


def longitudinal(mechanism: Mechanism) -> str:
    """Say in one sentence which guarantee holds when the same question is answered again."""
    over_time = [what for what, _, _ in mechanism.guarantees() if "report" in what and what != "one report"]
    if over_time:
        return f"Guaranteed beyond one report: {'; '.join(over_time)}. Clearing the device's storage draws anew."
    return (
        "Every report is drawn anew, so that T reports on one value spend T times epsilon; the ledger of our clients "
        "answers a question once and repeats the same bytes. Clearing the device's storage lets it answer again."
    )


def _script() -> dict[str, Any]:
    """The digest of the JavaScript client that this installation serves."""
    try:
        return {"sha256": client_hash()}
    except ProgramFailed:
        return {"sha256": None}
