"""The task `marginals`: questions that are asked together, for any table over a few of them afterwards.

Every respondent reports on some of the questions, which the device draws: a view of a few of them, or the sign of one
Hadamard coefficient. The answer to one question is its own table; queries about several are in `tacit.tasks.joint`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from math import prod

import numpy as np

from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally
from tacit.core.one_of import OneOf
from tacit.device.budget import Budget
from tacit.device.domain import Domain
from tacit.device.views import Views
from tacit.errors import InvalidSpec
from tacit.tasks.association import Information, Verdict, mutual_information, wald_test
from tacit.tasks.dependence import Tree, tree_of
from tacit.tasks.histogram import check_listed
from tacit.tasks.marginal_covering import covers
from tacit.tasks.marginal_plan import MarginalChoice, choose_marginals
from tacit.tasks.marginals import Marginals, Status, Table
from tacit.tasks.marginals_solve import solve_marginals
from tacit.tasks.task import Answer, Asked, Forecast, Part, Task, Together

DEFAULT_K = 2
"""Tables of this many questions are planned for unless told."""

MAX_CELLS = 2048
"""The most cells of a table that is planned for, or shown."""

CARRIED = ("inp_ht", "calm", "marg_ps", "marg_ht", "marg_rr", "marg_rr_oue")
"""The methods that a document of questions asked together can carry: views and coefficients."""

MAX_TESTED = 256
"""The most cells of a table that is tested: a test needs the covariance of all pairs of cells."""

_SOLVED = 16


def _check(asked: Asked, k: int) -> None:
    """Refuse questions that say nothing, and tables that nobody could fill, naming what works."""
    for domain in asked.domains:
        check_listed(domain, "marginals")
    for name, size in zip(asked.names, asked.sizes, strict=True):
        if size < 2:
            raise InvalidSpec(f"marginals: question '{name}' has one value, which says nothing; drop it")
        if size > MAX_CELLS:
            raise InvalidSpec(
                f"marginals: question '{name}' has {size} values, at most {MAX_CELLS} can be asked together with "
                "others; ask it alone, or give it fewer and wider answers"
            )
    if not 1 <= k <= len(asked.names):
        raise InvalidSpec(f"marginals: k is {k}, must be from 1 to the {len(asked.names)} questions")
    rising = sorted(asked.sizes)
    works = max(j for j in range(1, k + 1) if prod(rising[-j:]) <= MAX_CELLS)
    if works < k:
        raise InvalidSpec(
            f"marginals: a table of {k} questions may have {prod(rising[-k:])} cells, at most {MAX_CELLS} can be "
            f"planned for; set k to {works}, or give the questions fewer and wider answers"
        )


@lru_cache(maxsize=16)
def plan_choice(sizes: tuple[int, ...], budget: Budget, n: int, k: int) -> MarginalChoice:
    """The options that documents can carry, the pick first among those that answer every table of k questions.

    The option with the least predicted error is picked. Views that leave out tables would look precise for what they
    do not answer, so they are taken only where no views can be found that cover all tables; every question is in one.
    """
    choice = choose_marginals(sizes=sizes, k=k, epsilon=budget, n=n, methods=CARRIED)
    if _covered(choice.pick.mechanism, k):
        return choice
    try:
        return choose_marginals(sizes=sizes, k=k, epsilon=budget, n=n, methods=CARRIED, cover=True)
    except InvalidSpec:
        return choice


def _covered(mechanism: Mechanism, k: int) -> bool:
    """Whether every table of k attributes is asked as a whole."""
    family = mechanism.family if isinstance(mechanism, OneOf) else None
    return not isinstance(family, Views) or covers(family.views, len(family.sizes), k)


def _plan_together(asked: Asked, budget: Budget, n: int, k: int) -> Mechanism:
    _check(asked, k)
    return plan_choice(asked.sizes, budget, n, k).pick.mechanism


def _forecast_together(asked: Asked, mechanism: Mechanism, n: int, k: int) -> Forecast:
    choice = plan_choice(asked.sizes, mechanism.budget, n, k)
    pick = next((option for option in choice.options if option.mechanism == mechanism), choice.pick)
    rows = tuple(
        {"name": option.method, "standard_error": option.rmse, "report_bits": option.report_bits}
        | {"picked": option is pick, "covered": option.covered}
        for option in choice.options
    )
    of = "a share" if k == 1 else f"a cell of a table of {k} questions"
    return Forecast(pick.rmse, of, _why(pick.mechanism, k), rows)


def _why(mechanism: Mechanism, k: int) -> str:
    """What respondents report, and why so."""
    family = mechanism.family if isinstance(mechanism, OneOf) else None
    if not isinstance(family, Views):
        asked = f"each respondent reports one yes or no, drawn by the device, about up to {k} of the questions"
        return f"{asked}; no other way has a smaller predicted error"
    sizes = sorted({len(view) for view in family.views})
    some = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    asked = f"each respondent reports on {some} of the {len(family.sizes)} questions, drawn by the device"
    if _covered(mechanism, k):
        return f"{asked}; no other way that answers every table of {k} has a smaller predicted error"
    return f"{asked}; tables of questions that are never drawn together are completed, which adds an error not counted"


@dataclass(frozen=True)
class Pair:
    """What is known of two attributes together; nothing where they were not asked so, or have too many answers."""

    status: Status
    verdict: Verdict | None
    information: Information | None


class Solved:
    """What a tally says about all attributes; what takes longer is worked out when it is first asked for."""

    def __init__(self, marginals: Marginals) -> None:
        """Hold the solved answers."""
        self.marginals = marginals

    @cached_property
    def pairs(self) -> dict[tuple[int, int], Pair]:
        """Tests and information of all pairs of attributes."""
        asked = list(combinations(range(len(self.marginals.sizes)), 2))
        return dict(zip(asked, map(_pair, self.marginals.tables(asked)), strict=True))

    @cached_property
    def tree(self) -> Tree:
        """The tree over all attributes; pairs of which nothing is known count as independent."""
        nothing = Information(0.0, 0.0)
        found = {places: pair.information or nothing for places, pair in self.pairs.items()}
        return tree_of(len(self.marginals.sizes), found)


def _pair(table: Table) -> Pair:
    known = table.status == "covered" and prod(table.shape) <= MAX_TESTED
    return Pair(table.status, *((wald_test(table), mutual_information(table)) if known else (None, None)))


@lru_cache(maxsize=_SOLVED)
def _solved(mechanism: Mechanism, tally: AnyTally, respondents: int) -> Solved:
    return Solved(solve_marginals(mechanism, tally, respondents=respondents))


def solved(part: Part) -> Solved:
    """What a part says about all attributes; the same tally is solved once."""
    return _solved(part.mechanism, part.tally, part.respondents)


def forget() -> None:
    """Drop what was worked out of tallies."""
    _solved.cache_clear()


def _answer(domain: Domain, part: Part) -> Answer:
    table = solved(part).marginals.table([part.place])
    raw = replace(table.raw, labels=domain.all_labels())
    return Answer("share", raw, replace(raw, value=np.clip(table.consistent, 0, 1)), "marginals")


_TOGETHER = 'marginals: questions of this task are asked together; set the policy to "joint"'


def _plan_alone(domain: Domain, budget: Budget, n: int) -> Mechanism:
    del domain, budget, n
    raise InvalidSpec(_TOGETHER)


def _forecast_alone(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    del domain, mechanism, n
    raise InvalidSpec(_TOGETHER)


def names_of(asked: Asked, places: Sequence[int]) -> list[str]:
    """The names of some questions."""
    return [asked.names[place] for place in places]


MARGINALS = Task(
    "marginals", _plan_alone, _answer, _forecast_alone, together=Together(_plan_together, _forecast_together)
)  # fmt: skip
