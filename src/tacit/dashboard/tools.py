"""The tools page for the central model, NOT LOCAL: design a mechanism for the count of a small group, and see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tacit.central import MODEL
from tacit.central.count import CountMechanism, as_alpha
from tacit.central.design import design
from tacit.central.objectives import Objective
from tacit.central.properties import PROPERTIES, has_property
from tacit.central.select import CLOSED, make
from tacit.errors import InvalidSpec, TacitError

MOST_N = 32
"""A page has a deadline: mechanisms for larger groups are designed on the command line."""

# Characters of alpha: enough for exact fractions, too few for numbers that take long to compute with.
MOST_TEXT = 24
DESIGNED = "designed"
OBJECTIVES: dict[str, str] = {
    "l0": "fewest wrong counts",
    "l0,1": "fewest counts off by more than one",
    "l1": "least mean distance",
    "l2": "least mean squared distance",
}
MECHANISMS: dict[str, str] = {
    DESIGNED: "The best one, by linear program",
    "gm": "Geometric (gm)",
    "em": "Explicit fair (em)",
    "um": "Uniform (um)",
    "exp": "Exponential (exp)",
    "lap": "Laplace, rounded (lap)",
}
MEANINGS: dict[str, str] = {
    "row-honesty": "A released count is likeliest when it is true.",
    "row-monotonicity": "A released count becomes less likely the further the truth is from it.",
    "column-honesty": "The true count is the likeliest to be released.",
    "column-monotonicity": "Released counts become less likely the further they are from the truth.",
    "fairness": "The truth is released with the same probability for every count.",
    "symmetry": "Counting those who said no instead changes nothing.",
    "weak-honesty": "The truth is at least as likely as by releasing any count at random.",
}


@dataclass(frozen=True)
class Wish:
    """A checked request: which mechanism, for which group, by which objective and properties."""

    n: int
    alpha: str
    objective: str
    mechanism: str
    properties: tuple[str, ...]

    @property
    def query(self) -> str:
        """The request as the query string of an address."""
        pairs = [
            ("n", str(self.n)),
            ("alpha", self.alpha),
            ("objective", self.objective),
            ("mechanism", self.mechanism),
        ]
        return urlencode([*pairs, *(("property", name) for name in self.properties)])

    def make(self) -> CountMechanism:
        """Return the mechanism; InvalidSpec says what is wrong, MissingExtra what has to be installed."""
        if self.mechanism == DESIGNED:
            return design(self.n, self.alpha, self.objective, self.properties)
        return make(self.mechanism, self.n, self.alpha)


def read_wish(given: Mapping[str, str], properties: Sequence[str]) -> Wish:
    """Return the checked request of an address; InvalidSpec says which rule it breaks."""
    n, alpha = given.get("n", "8"), given.get("alpha", "0.9").strip()
    objective, mechanism = given.get("objective", "l0"), given.get("mechanism", DESIGNED)
    if not (n.isascii() and n.isdecimal() and len(n) <= 3 and 1 <= int(n) <= MOST_N):
        raise InvalidSpec(f"n must be an integer from 1 to {MOST_N} here; the command line designs for larger groups")
    if len(alpha) > MOST_TEXT:
        raise InvalidSpec(f"alpha must be written with at most {MOST_TEXT} characters, such as 0.9 or 10/11")
    # Called for its check alone; the text goes on, so that the page shows what was typed.
    as_alpha(alpha)
    if objective not in OBJECTIVES or mechanism not in MECHANISMS:
        raise InvalidSpec("objective and mechanism must be among those listed")
    if not set(properties) <= set(PROPERTIES):
        raise InvalidSpec(f"properties must be among {', '.join(PROPERTIES)}")
    return Wish(int(n), alpha, objective, mechanism, tuple(sorted(set(properties))))


def _described(wish: Wish) -> dict[str, Any]:
    """The requested mechanism with its score and properties, as the template shows them."""
    mechanism = wish.make()
    matrix = mechanism.matrix
    # Matrices in closed form are checked in exact arithmetic, a solver's up to its tolerance.
    exact = mechanism.name in CLOSED
    goal = Objective.parse(wish.objective)
    return {
        "mechanism": mechanism,
        "score": None if goal.beyond >= wish.n else goal.scaled(matrix),
        "truthful": [float(p) for p in matrix.diagonal()],
        "properties": [
            (
                name,
                MEANINGS[name],
                has_property(mechanism.exact, name, tolerance=0) if exact else has_property(matrix, name),
            )
            for name in PROPERTIES
        ],
        "exact": exact,
        "realised": float(mechanism.realised_alpha()),
    }


def tools(given: Mapping[str, str], properties: Sequence[str]) -> dict[str, Any]:
    """Return everything that the page shows for a request; one that is refused comes back with the reason."""
    shown: dict[str, Any] = {
        "model": MODEL,
        "most_n": MOST_N,
        "objectives": OBJECTIVES,
        "mechanisms": MECHANISMS,
        "meanings": MEANINGS,
        "given": {"n": "8", "alpha": "0.9", "objective": "l0", "mechanism": DESIGNED, **given},
        "wanted": set(properties) if given else {"weak-honesty", "symmetry"},
        "found": None,
        "problem": "",
        "query": "",
    }
    if not given:
        return shown
    try:
        wish = read_wish(given, properties)
        return shown | {"found": _described(wish), "query": wish.query}
    except TacitError as error:
        return shown | {"problem": str(error)}
