"""A made-up survey whose questions are asked together, in four languages, and a crowd that answers it."""

from typing import Any

import numpy as np

SPORT = ["never", "at times", "often"]
HOME = ["city", "suburb", "village"]
_TEXTS = {
    "smoking": ("Do you smoke?", "Rauchen Sie?", "Fumez-vous ?", "¿Fuma usted?"),
    "sport": ("How often do you do sport?", "Wie oft treiben Sie Sport?", "Faites-vous du sport ?", "¿Hace deporte?"),
    "home": ("Where do you live?", "Wo wohnen Sie?", "Où habitez-vous ?", "¿Dónde vive?"),
    "sleeping_badly": ("Do you sleep badly?", "Schlafen Sie schlecht?", "Dormez-vous mal ?", "¿Duerme usted mal?"),
}
_DOMAINS: dict[str, dict[str, Any]] = {
    "smoking": {"kind": "booleans"},
    "sport": {"kind": "ordered", "labels": SPORT},
    "home": {"kind": "categories", "labels": HOME},
    "sleeping_badly": {"kind": "booleans"},
}
QUESTIONS = [
    {"name": name, "text": dict(zip(("en", "de", "fr", "es"), texts, strict=True)), "domain": _DOMAINS[name]}
    for name, texts in _TEXTS.items()
]
_TITLES = {"en": "Habits", "de": "Gewohnheiten", "fr": "Habitudes", "es": "Costumbres"}
HABITS: dict[str, Any] = {
    "title": _TITLES, "about": _TITLES, "questions": QUESTIONS, "policy": "joint", "k": 2, "epsilon": "3",
    "respondents": 20_000, "minimum_cohort": 10,
}  # fmt: skip
COLUMNS = [
    {"name": "region", "type": "text"},
    {"name": "visits", "type": "integer"},
    {"name": "paid", "type": "number"},
    {"name": "insured", "type": "boolean"},
    {"name": "asked_on", "type": "date"},
]


def habits(n: int, seed: int) -> np.ndarray[Any, Any]:
    """A row of answers per respondent: smokers do less sport and sleep worse, wherever they live."""
    rng = np.random.default_rng(seed)
    smoking = rng.random(n) < 0.3
    sport = np.where(smoking, rng.choice(3, n, p=[0.7, 0.2, 0.1]), rng.choice(3, n, p=[0.2, 0.3, 0.5]))
    home = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    sleeping = rng.random(n) < np.where(smoking, 0.5, 0.2)
    return np.stack([smoking.astype(np.int64), sport, home, sleeping.astype(np.int64)], axis=1)
