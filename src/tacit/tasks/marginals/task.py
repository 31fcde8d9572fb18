"""The task `marginals`: questions that are asked together, for any table over a few of them afterwards.

Every respondent reports on some of the questions, which the device draws: a view of a few of them, or the sign of one
Hadamard coefficient. The answer to one question is its own table; queries about several are in `marginals.joint`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from math import prod

import numpy as np

from tacit.core.mechanism import Mechanism
from tacit.device.domains.domain import Domain
from tacit.device.families.views import Views
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec
from tacit.tasks.histogram import check_listed
from tacit.tasks.marginals.association import Information, Verdict, mutual_information, wald_test
from tacit.tasks.marginals.covering import covers
from tacit.tasks.marginals.dependence import DependenceTree, tree_of
from tacit.tasks.marginals.marginals import Marginals, Status, Table
from tacit.tasks.marginals.methods import ask
from tacit.tasks.marginals.plan import MarginalChoice, choose_marginals, option_of
from tacit.tasks.marginals.solve import solve_marginals
from tacit.tasks.task import UNPLANNED, Answer, Forecast, JointQuestions, JointTask, QuestionTally

DEFAULT_K = 2
"""The number of questions per table that is planned for by default."""

MAX_CELLS = 2048
"""The most cells of a table that is planned for, or shown."""

CARRIED = ("one_way", "pairs", "views", "inp_ht", "calm", "marg_ps", "marg_ht", "marg_rr", "marg_rr_oue")
"""The methods that a document of questions asked together can carry: views and coefficients."""

MAX_TESTED = 256
"""The most cells of a table that is tested: a test needs the covariance of all pairs of cells."""


def _check(asked: JointQuestions, k: int) -> None:
    """Raise InvalidSpec for questions with one value and for tables that are too large, naming what would work."""
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
    # The worst table is the one of the k largest questions; `works` is the largest k for which even that one fits.
    rising = sorted(asked.sizes)
    works = max(j for j in range(1, k + 1) if prod(rising[-j:]) <= MAX_CELLS)
    if works < k:
        raise InvalidSpec(
            f"marginals: a table of {k} questions may have {prod(rising[-k:])} cells, at most {MAX_CELLS} can be "
            f"planned for; set k to {works}, or give the questions fewer and wider answers"
        )


@lru_cache(maxsize=16)
def plan_choice(sizes: tuple[int, ...], budget: Budget, n: int, k: int) -> MarginalChoice:
    """Return the comparison of the methods that documents can carry, cached, since planning and forecast both need it.

    The option with the least forecast error is picked; what it leaves out is in its error.
    """
    return choose_marginals(sizes=sizes, k=k, epsilon=budget, n=n, methods=CARRIED)


def _covered(mechanism: Mechanism, k: int) -> bool:
    """Whether every table of k attributes is asked as a whole."""
    family = mechanism.drawn_from
    return family is None or covers(family.tables(), len(family.answer_sizes()), k)


def _plan(asked: JointQuestions, budget: Budget, n: int, k: int) -> Mechanism:
    _check(asked, k)
    return plan_choice(asked.sizes, budget, n, k).pick.mechanism


def _forecast(asked: JointQuestions, mechanism: Mechanism, n: int, k: int) -> Forecast:
    """Return the expected error of a cell, why the mechanism was picked, and the options it was compared with."""
    choice = plan_choice(asked.sizes, mechanism.budget, n, k)
    pick = next((option for option in choice.options if option.mechanism == mechanism), None)
    rows = tuple(
        {"name": option.method, "standard_error": option.rmse, "report_bits": option.report_bits}
        | {"picked": option is pick, "covered": option.covered}
        for option in choice.options
    )
    of = "a share" if k == 1 else f"a cell of a table of {k} questions"
    found = pick or option_of(mechanism, ask(asked.sizes, k, mechanism.budget, n))
    why = _why(mechanism, k, planned=pick is choice.pick)
    return Forecast(found.rmse, of, why, rows, raw=found.raw_rmse, between=found.rmse_between)


def _why(mechanism: Mechanism, k: int, *, planned: bool) -> str:
    """What respondents report, and why so; for another mechanism than would be planned now, that it is one."""
    family = mechanism.drawn_from
    if not isinstance(family, Views):
        asked = f"each respondent reports one yes or no, drawn by the device, about up to {k} of the questions"
        return f"{asked}; {'no other way has a smaller predicted error' if planned else UNPLANNED}"
    sizes = sorted({len(view) for view in family.views})
    some = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    asked = f"each respondent reports on {some} of the {len(family.sizes)} questions, drawn by the device"
    if not _covered(mechanism, min(2, k)):
        asked += "; questions that are never drawn together are taken for independent, which the forecast counts"
    elif not _covered(mechanism, k):
        asked += f"; tables of {k} are completed from those of two"
    best = "no other way has a smaller forecast error for tables as they are answered"
    return f"{asked}; {best if planned else UNPLANNED}"


@dataclass(frozen=True)
class AttributePair:
    """Test and information of two attributes; None where they were not asked together, or have too many answers."""

    status: Status
    verdict: Verdict | None
    information: Information | None


class Solved:
    """The solved answers of a tally; tests of all pairs and the tree are computed on first use and cached."""

    def __init__(self, marginals: Marginals) -> None:
        """Keep the solved marginals."""
        self.marginals = marginals

    @cached_property
    def pairs(self) -> dict[tuple[int, int], AttributePair]:
        """Tests and information of all pairs of attributes."""
        edges = list(combinations(range(len(self.marginals.sizes)), 2))
        return dict(zip(edges, map(_pair, self.marginals.tables(edges)), strict=True))

    @cached_property
    def tree(self) -> DependenceTree:
        """The tree over all attributes; pairs of which nothing is known count as independent."""
        nothing = Information(0.0, 0.0)
        information = {places: pair.information or nothing for places, pair in self.pairs.items()}
        return tree_of(len(self.marginals.sizes), information)


def _pair(table: Table) -> AttributePair:
    known = table.status == "covered" and prod(table.shape) <= MAX_TESTED
    return AttributePair(table.status, *((wald_test(table), mutual_information(table)) if known else (None, None)))


def solved(part: QuestionTally) -> Solved:
    """Return the solved answers of a tally, cached in its memo, so that all questions and queries solve it once."""
    return part.memo.get(
        "marginals", lambda: Solved(solve_marginals(part.mechanism, part.tally, respondents=part.respondents))
    )


def _answer(domain: Domain, part: QuestionTally) -> Answer:
    table = solved(part).marginals.table([part.place])
    raw = replace(table.raw, labels=domain.all_labels())
    consistent = replace(raw, value=np.clip(table.consistent, 0, 1))
    return Answer("share", raw, consistent, "marginals", reach=solved(part).marginals.reach([part.place]))


def names_of(asked: JointQuestions, places: Sequence[int]) -> list[str]:
    """Return the names of some questions."""
    return [asked.names[place] for place in places]


MARGINALS = JointTask("marginals", _plan, _answer, _forecast)
