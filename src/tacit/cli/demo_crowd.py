"""What the demo asks, and the made-up crowd that answers: the truth that no real collector would know."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.wire.document import Collection, Question

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """A draft, and how its answers are distributed in the made-up crowd."""

    draft: dict[str, Any]
    respondents: int
    """Respondents per hundred of the whole demo."""
    weights: tuple[Sequence[float], ...]
    """For every question, how often each answer is given."""


@dataclass(frozen=True)
class Crowd:
    """The respondents of one published collection: a row of indices each, or one index for a single question."""

    collection: Collection
    values: I64

    @property
    def truths(self) -> list[F64]:
        """What every question would be answered with if nobody minded telling."""
        columns = self.values.reshape(len(self.values), -1).T
        return [_truth(question, column) for question, column in zip(self.collection.questions, columns, strict=True)]


def _truth(question: Question, indices: I64) -> F64:
    domain: Any = question.domain
    if question.task == "mean":
        return np.array([domain.low + domain.step * float(indices.mean())])
    return np.bincount(indices, minlength=domain.size) / len(indices)


def gather(collection: Collection, example: Example, n: int, rng: np.random.Generator) -> Crowd:
    """Draw n respondents of an example."""
    shares = [np.asarray(weights, np.float64) / np.sum(weights) for weights in example.weights]
    columns = [rng.choice(len(share), size=n, p=share) for share in shares]
    return Crowd(collection, columns[0] if collection.policy == "single" else np.stack(columns, axis=1))


def portions(n: int) -> list[int]:
    """How many of n respondents each example gets."""
    counts = [n * example.respondents // 100 for example in EXAMPLES]
    return [n - sum(counts[1:]), *counts[1:]]


_LANGUAGES = Example(
    {
        "title": {
            "en": "Languages at home",
            "de": "Sprachen zu Hause",
            "fr": "Langues à la maison",
            "es": "Idiomas en casa",
        },
        "about": {
            "en": "Which lessons should schools offer? Nobody needs to know which family speaks what.",
            "de": "Welchen Unterricht sollen Schulen anbieten? Niemand muss wissen, welche Familie was spricht.",
            "fr": "Quels cours l'école doit-elle proposer ? Personne n'a à savoir quelle famille parle quoi.",
            "es": "¿Qué clases debe ofrecer la escuela? Nadie necesita saber qué idioma habla cada familia.",
        },
        "epsilon": "1",
        "questions": [
            {
                "name": "language",
                "text": {
                    "en": "Which language do you mostly speak at home?",
                    "de": "Welche Sprache sprechen Sie zu Hause meistens?",
                    "fr": "Quelle langue parlez-vous le plus souvent à la maison ?",
                    "es": "¿Qué idioma habla sobre todo en casa?",
                },
                "domain": {
                    "kind": "categories",
                    "labels": [
                        "English", "Deutsch", "Français", "Español", "Türkçe", "Polski",
                        "Українська", "Português", "Italiano", "Română", "Ελληνικά", "Nederlands",
                    ],
                },
            }
        ],
    },
    40,
    ((29, 21, 14, 9, 7, 5, 4.5, 3.5, 2.5, 2, 1.5, 1),),
)  # fmt: skip

_WORK = Example(
    {
        "title": "How work feels",
        "about": "Two questions that people rarely answer truthfully with their name on it. You answer both; "
        "your device draws one of them and sends only that one, with noise.",
        "epsilon": "2",
        "policy": "one_of",
        "questions": [
            {
                "name": "wish",
                "text": "What would help you most?",
                "domain": {
                    "kind": "categories",
                    "labels": [
                        "fewer meetings", "more colleagues", "better pay", "flexible hours",
                        "another manager", "clearer goals", "quieter rooms", "nothing",
                    ],
                },
            },
            {
                "name": "exhausted",
                "text": "How often did work exhaust you in the past month?",
                "domain": {
                    "kind": "ordered",
                    "labels": ["never", "rarely", "sometimes", "often", "most days", "every day"],
                },
            },
        ],
    },
    40,
    ((17, 16, 22, 13, 9, 11, 5, 7), (6, 17, 34, 25, 12, 6)),
)  # fmt: skip

_OVERTIME = Example(
    {
        "title": {"en": "Unpaid overtime", "de": "Unbezahlte Überstunden"},
        "about": {
            "en": "The average is what counts. A report is a single noisy bit.",
            "de": "Es kommt auf den Durchschnitt an. Eine Meldung ist ein einziges verrauschtes Bit.",
        },
        "epsilon": "1",
        "questions": [
            {
                "name": "hours",
                "text": {
                    "en": "How many hours of unpaid overtime did you work last week?",
                    "de": "Wie viele unbezahlte Überstunden haben Sie letzte Woche geleistet?",
                },
                "domain": {"kind": "integers", "low": 0, "high": 20},
                "task": "mean",
            }
        ],
    },
    20,
    ((35, 9, 10, 8, 7, 6, 5, 4, 4, 2, 3, 1, 2, 0.5, 0.5, 1, 0.5, 0.3, 0.3, 0.2, 0.7),),
)

EXAMPLES = (_LANGUAGES, _WORK, _OVERTIME)
"""What the demo publishes."""
