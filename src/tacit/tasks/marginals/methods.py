"""The methods for joint distributions, each as the mechanism that a collection publishes.

Input perturbation (INP-*) works on all combinations of answers at once, marginal perturbation (MARG-*) on one table of
k attributes per respondent: Cormode, Kulkarni and Srivastava, SIGMOD 2018; Kulkarni's dissertation, section 4.3. FC,
AM, FT, EM and CALM: Wang's dissertation, chapter 6. FT is INP-HT with uniform weights, AM is MARG with the adaptive
oracle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, exp, prod, sqrt
from typing import Any

from tacit.core.compose import AllOf, OneOf
from tacit.core.mechanism import Mechanism
from tacit.device.base import Device
from tacit.device.families.coefficients import Coefficients
from tacit.device.families.compose import MAX_MEMBERS
from tacit.device.families.views import Views
from tacit.device.numbers.budget import Budget, Declared, Share, as_budget
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.sketch import HCMS
from tacit.oracles.unary import OUE, SUE
from tacit.tasks.marginals.calm import ViewPlan, cover_plan, select_views, views_of
from tacit.tasks.marginals.marginals import kept_attributes

MAX_WHOLE = 1 << 22
"""The largest full domain for which a method over all combinations is offered."""

LEAST_GROUP = 30
"""Methods that would leave fewer respondents per question are refused."""

_MAX_UNARY = 1 << 16
"""The most cells of a unary report, one bit each; beyond it reports would be longer than 8 KiB."""
_WEIGHT_UNIT = 1000
"""Sampling weights are published as integers, so that devices draw exactly; real weights are scaled by this."""


@dataclass(frozen=True)
class Ask:
    """A checked request: tables of up to k of these attributes, all with more than one answer, from n respondents."""

    sizes: tuple[int, ...]
    k: int
    budget: Budget
    n: int
    uniform: bool = False
    """Draw all Hadamard coefficients alike, as the papers do."""
    cover: bool = False
    """Make the views of CALM cover all tables, whatever the threshold says."""

    @property
    def cells(self) -> int:
        """The number of combinations of all answers."""
        return prod(self.sizes)

    @property
    def epsilon(self) -> float:
        """The budget as a number."""
        return float(self.budget.declared)


def ask(
    sizes: Sequence[int], k: int, epsilon: Declared, n: int, *,
    uniform: bool = False, cover: bool = False,
) -> Ask:  # fmt: skip
    """Check a request; attributes with one answer are known without asking and are dropped."""
    varied = kept_attributes(sizes)
    if not 1 <= k <= len(varied):
        raise InvalidSpec(
            f"marginals: k is {k}, must be from 1 to the {len(varied)} attributes with more than one answer"
        )
    if n < 1:
        raise InvalidSpec(f"marginals: n is {n}, must be at least 1")
    plain = tuple(sizes[i] for i in varied)
    return Ask(plain, k, as_budget(epsilon), n, uniform, cover)


def adaptive_oracle(cells: int, budget: Budget) -> Mechanism:
    """The oracle of least variance: GRR below 3 e^epsilon + 2 cells, else OUE, or OLH where OUE reports are too long.

    The threshold is where the variances of GRR and OUE cross (Wang et al., USENIX Security 2017, section 5).
    """
    if cells - 2 < 3 * exp(min(50.0, float(budget.declared))):
        return GRR(size=cells, epsilon=budget)
    return OUE(size=cells, epsilon=budget) if cells <= _MAX_UNARY else OLH(size=cells, epsilon=budget)


def _whole(make: Callable[..., Mechanism], most: int = MAX_WHOLE) -> Callable[[Ask], Mechanism]:
    """Return a builder for one oracle over all combinations, which refuses more than `most` of them."""

    def made(question: Ask) -> Mechanism:
        if question.cells > most:
            raise InvalidSpec(
                f"marginals: {question.cells} combinations are too many for one table of {most}; use calm or inp_ht"
            )
        return make(size=question.cells, epsilon=question.budget)

    return made


def one_of_views(sizes: Sequence[int], views: Sequence[tuple[int, ...]], oracle: Callable[[int], Device]) -> OneOf:
    """A mechanism that asks every respondent for one view; `oracle` gives the mechanism for a number of cells."""
    cells = sorted({prod(sizes[a] for a in view) for view in views})
    return OneOf(family=Views(sizes=tuple(sizes), views=tuple(views), mechanisms=tuple(oracle(c) for c in cells)))


def _all_tables(make: Callable[[int, Budget], Device]) -> Callable[[Ask], Mechanism]:
    """Return a builder that asks each respondent for one of all tables of k attributes."""

    def made(question: Ask) -> Mechanism:
        groups = comb(len(question.sizes), question.k)
        if question.n < LEAST_GROUP * groups:
            raise InvalidSpec(
                f"marginals: {groups} tables leave fewer than {LEAST_GROUP} respondents for each; use calm"
            )
        # Every table of k attributes is a view of its own: no overlap beyond margins, nothing to reconstruct.
        views = list(combinations(range(len(question.sizes)), question.k))
        return one_of_views(question.sizes, views, lambda cells: make(cells, question.budget))

    return made


def optimal_weights(m: int, k: int) -> tuple[int, ...]:
    """Return the weights of coefficients of 1 .. k attributes, by the root of the number of tables that need them.

    A coefficient of j attributes is in C(m - j, k - j) tables, and its variance is inverse to its weight, so square
    roots are optimal (Cauchy-Schwarz). They minimise the squared error summed over all tables of k attributes: 80 % of
    uniform's at 8 attributes, k = 2.
    """
    roots = [sqrt(comb(m - j, k - j)) for j in range(1, k + 1)]
    return tuple(max(1, round(_WEIGHT_UNIT * root)) for root in roots)


def _signs(question: Ask) -> Mechanism:
    """Return INP-HT: one Hadamard coefficient of up to k attributes per respondent, its sign by randomised response."""
    m, k = len(question.sizes), question.k
    weights = (1,) * k if question.uniform else optimal_weights(m, k)
    sign = GRR(size=2, epsilon=question.budget)
    wanted = _coefficients(question)
    if wanted > MAX_MEMBERS or question.n < LEAST_GROUP * wanted:
        raise InvalidSpec(
            f"marginals: {wanted} coefficients leave fewer than {LEAST_GROUP} respondents for each; use calm"
        )
    return OneOf(family=Coefficients(sizes=question.sizes, k=k, mechanisms=(sign,), by_order=weights))


def _coefficients(question: Ask) -> int:
    """Count the coefficients of 1 .. k attributes: elementary symmetric polynomials in the numbers of nonzero masks."""
    sums = [1] + [0] * question.k
    for size in question.sizes:
        # From high orders to low, so that each attribute is multiplied in at most once.
        for j in range(question.k, 0, -1):
            sums[j] += sums[j - 1] * ((1 << (size - 1).bit_length()) - 1)
    return sum(sums[1:])


def _each(question: Ask) -> Mechanism:
    """Return INP-EM: every attribute reported by GRR at an equal share of epsilon."""
    # Sequential composition: m reports at epsilon/m each cost epsilon together.
    part = f"1/{len(question.sizes)}"
    shared = Share(question.budget.to_spec(), part) if len(question.sizes) > 1 else question.budget  # type: ignore[arg-type]
    members = tuple(GRR(size=size, epsilon=shared) for size in question.sizes)
    return AllOf(epsilon=question.budget, members=members)


def calm_plan(question: Ask) -> ViewPlan:
    """Return the number and the size of the views that CALM would use."""
    plan: Any = {"n": question.n, "sizes": question.sizes, "epsilon": question.epsilon, "k": question.k}
    return cover_plan(**plan) if question.cover else select_views(**plan)


def _calm(question: Ask) -> Mechanism:
    views = views_of(calm_plan(question), len(question.sizes), question.k)
    return one_of_views(question.sizes, views, lambda cells: adaptive_oracle(cells, question.budget))


def _adaptive(*, size: int, epsilon: Budget) -> Mechanism:
    return adaptive_oracle(size, epsilon)


def _sketch(*, size: int, epsilon: Budget) -> Mechanism:
    return HCMS(size=size, epsilon=epsilon, rows=5, width=256, key=1)


METHODS: dict[str, Callable[[Ask], Mechanism]] = {
    "inp_ht": _signs,
    "calm": _calm,
    "marg_ps": _all_tables(lambda cells, budget: GRR(size=cells, epsilon=budget)),
    "marg_ht": _all_tables(lambda cells, budget: HRR(size=cells, epsilon=budget)),
    "marg_rr": _all_tables(lambda cells, budget: SUE(size=cells, epsilon=budget)),
    "marg_rr_oue": _all_tables(lambda cells, budget: OUE(size=cells, epsilon=budget)),
    "am": _all_tables(adaptive_oracle),
    "fc": _whole(_adaptive),
    "inp_ps": _whole(GRR),
    "inp_rr": _whole(SUE, _MAX_UNARY),
    "inp_rr_oue": _whole(OUE, _MAX_UNARY),
    "inp_olh": _whole(OLH),
    "inp_hcms": _whole(_sketch),
    "em": _each,
}
"""Builders by name. The papers' RR methods flip every bit at epsilon/2 (SUE); the `_oue` variants use OUE instead."""

ALIASES = {"inp_em": "em", "inp_inv": "em"}


def make_method(name: str, question: Ask) -> Mechanism:
    """Return the mechanism of a method by name; `ft` is inp_ht with uniform weights."""
    if name == "ft":
        return _signs(replace(question, uniform=True))
    build = METHODS.get(ALIASES.get(name, name))
    if build is None:
        raise InvalidSpec(f"marginals: method is {name[:40]!r}, must be one of {', '.join([*METHODS, 'ft', *ALIASES])}")
    return build(question)
