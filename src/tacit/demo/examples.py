"""What the demo asks, and what its made-up crowd says: one example for each sort of collection.

LANGUAGES     one question with a list of answers
_WORK         two questions, of which each device draws one (policy one_of)
_OVERTIME     the mean of a number
_WEEK         four questions asked together, for tables and associations (policy joint)
_GYM          private columns beside public rows, asked with SQL
"""

from importlib.util import find_spec

import numpy as np

from tacit.demo.crowd import I64, Columns, DemoQuery, Example, drawn_after, drawn_apart

LANGUAGES = Example(
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
    20,
    drawn_apart((29, 21, 14, 9, 7, 5, 4.5, 3.5, 2.5, 2, 1.5, 1)),
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
    30,
    drawn_apart((17, 16, 22, 13, 9, 11, 5, 7), (6, 17, 34, 25, 12, 6)),
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
    10,
    drawn_apart((35, 9, 10, 8, 7, 6, 5, 4, 4, 2, 3, 1, 2, 0.5, 0.5, 1, 0.5, 0.3, 0.3, 0.2, 0.7)),
)

_WEEK = Example(
    {
        "title": "A week at work",
        "about": "Which answers go together? You answer all four questions; your device draws two of them and sends "
        "that pair of answers, with noise.",
        "epsilon": "2",
        "policy": "joint",
        "questions": [
            {
                "name": "home",
                "text": "How often did you work from home?",
                "domain": {"kind": "ordered", "labels": ["never", "some days", "mostly"]},
            },
            {
                "name": "commute",
                "text": "How long was your way to work?",
                "domain": {"kind": "ordered", "labels": ["under 15 min", "15 to 45 min", "over 45 min"]},
            },
            {
                "name": "sleep",
                "text": "How did you sleep?",
                "domain": {"kind": "ordered", "labels": ["badly", "so-so", "well"]},
            },
            {
                "name": "mood",
                "text": "What was your mood?",
                "domain": {"kind": "ordered", "labels": ["low", "fair", "good"]},
            },
        ],
    },
    20,
    # Two independent pairs, each strongly dependent inside: the demo checks that the collector finds just these links.
    lambda n, rng: np.concatenate(
        [
            drawn_after((40, 35, 25), ((5, 35, 60), (30, 50, 20), (90, 8, 2)))(n, rng),
            drawn_after((25, 40, 35), ((80, 17, 3), (22, 56, 22), (3, 17, 80)))(n, rng),
        ],
        axis=1,
    ),
    groups=(("home", "commute"), ("sleep", "mood")),
)


def _members(n: int, rng: np.random.Generator) -> I64:
    """Draw members: ages from 16 on, as an index, and back pain that gets more frequent with age."""
    age = np.clip(rng.gamma(6, 5, n).astype(np.int64) - 4, 0, 63)
    return np.stack([age, rng.random(n) < 0.1 + 0.5 * age / 63], axis=1).astype(np.int64)


def _visits(values: I64, rng: np.random.Generator) -> Columns:
    """Draw the public columns: members in pain visit less often, premium members more often."""
    plan = rng.choice(np.array(["basic", "family", "premium"]), len(values), p=[0.55, 0.15, 0.3])
    return {"plan": plan, "visits": rng.poisson(9 - 4 * values[:, 1] + 2 * (plan == "premium"))}


def _older(members: Columns) -> dict[str, float]:
    chosen = (members["age"] >= 50) & members["back_pain"]
    return {"count": float(chosen.sum()), "avg": float(members["visits"][chosen].mean())}


def _hurt(members: Columns) -> dict[str, float]:
    plans = np.unique(members["plan"]).tolist()
    return {f"{plan}: count": float(((members["plan"] == plan) & members["back_pain"]).sum()) for plan in plans}


def _visits_by_pain(members: Columns) -> dict[str, float]:
    pain, visits = members["back_pain"], members["visits"]
    return {"false: avg": float(visits[~pain].mean()), "true: avg": float(visits[pain].mean())}


_GYM = Example(
    {
        "title": "Gym members",
        "about": "The gym knows your plan and your visits. It learns age and back pain only with noise.",
        "epsilon": "2",
        "rows": {
            "table": "members",
            "columns": [{"name": "plan", "type": "text"}, {"name": "visits", "type": "integer"}],
        },
        "questions": [
            {"name": "age", "text": "How old are you?", "domain": {"kind": "integers", "low": 16, "high": 79}},
            {"name": "back_pain", "text": "Does your back hurt?", "domain": {"kind": "booleans"}},
        ],
    },
    20,
    _members,
    public=_visits,
    queries=(
        DemoQuery("SELECT COUNT(*), AVG(visits) FROM members WHERE age >= 50 AND back_pain = TRUE", _older),
        DemoQuery("SELECT plan, COUNT(*) FROM members WHERE back_pain = TRUE GROUP BY plan", _hurt),
        DemoQuery("SELECT back_pain, AVG(visits) FROM members GROUP BY back_pain", _visits_by_pain),
    ),
)

EXAMPLES = (LANGUAGES, _WORK, _OVERTIME, _WEEK, _GYM)


def examples() -> tuple[Example, ...]:
    """Return the examples to publish; the table is left out where the libraries for SQL are not installed."""
    installed = all(find_spec(name) is not None for name in ("pyarrow", "sqlglot"))
    return tuple(example for example in EXAMPLES if installed or not example.queries)
