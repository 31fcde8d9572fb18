"""The methods for joint distributions, each as the mechanism that a collection publishes.

Input perturbation (INP-*) works on all combinations of answers at once, marginal perturbation (MARG-*) on one table of
k attributes per respondent: Cormode, Kulkarni and Srivastava, SIGMOD 2018; Kulkarni's dissertation, section 4.3. FC,
AM, FT, EM and CALM: Wang's dissertation, chapter 6. FT is INP-HT with uniform weights, AM is MARG with the adaptive
oracle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import comb, exp, gcd, prod, sqrt
from typing import Any

import numpy as np

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
from tacit.post.views.shrink import STRONG, WEAK
from tacit.post.views.table import Attributes
from tacit.tasks.marginals.calm import ViewPlan, cover_plan, select_views, views_of
from tacit.tasks.marginals.covering import cover_design, lower_bound
from tacit.tasks.marginals.forecast import TableForecast, law_of
from tacit.tasks.marginals.marginals import kept_attributes

MAX_WHOLE = 1 << 22
"""The largest full domain for which a method over all combinations is offered."""

LEAST_GROUP = 30
"""Methods that would leave fewer respondents per question are refused."""

_MAX_UNARY = 1 << 16
"""The most cells of a unary report, one bit each; beyond it reports would be longer than 8 KiB."""
ALONE = (0.8, 0.65, 0.5, 0.35, 0.2, 0.1, 0.0)
"""Shares of the respondents that are asked about one attribute alone, where all others are asked about pairs."""

_LARGEST_VIEW, _MOST_VIEW_CELLS, _MOST_COVERED = 6, 1 << 12, 64
"""Views of more attributes or cells, or out of more attributes, are not planned by forecast."""

_SAMPLED_TABLES = 12
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
    law: tuple[float, ...] | None = None
    """Supposed strengths of association between attributes, by which plans are compared; None if nothing is known."""

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
    uniform: bool = False, cover: bool = False, association: str | Sequence[float] = "mixed",
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
    return Ask(plain, k, as_budget(epsilon), n, uniform, cover, law_of(association))


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


def one_of_views(
    sizes: Sequence[int], views: Sequence[tuple[int, ...]], oracle: Callable[[int], Device],
    weights: Sequence[int] = (),
) -> OneOf:  # fmt: skip
    """A mechanism that asks every respondent for one view; `oracle` gives the mechanism for a number of cells."""
    cells = sorted({prod(sizes[a] for a in view) for view in views})
    mechanisms = tuple(oracle(c) for c in cells)
    return OneOf(family=Views(sizes=tuple(sizes), views=tuple(views), mechanisms=mechanisms, weights=tuple(weights)))


def split_views(question: Ask, alone: float) -> Mechanism:
    """Ask this share of the respondents about one attribute each, and all others about a pair; all alike."""
    m = len(question.sizes)
    singles = [(a,) for a in range(m)] if alone > 0 else []
    pairs = list(combinations(range(m), 2)) if alone < 1 else []
    if pairs and question.n * (1 - alone) < LEAST_GROUP * len(pairs):
        raise InvalidSpec(f"marginals: {len(pairs)} pairs leave fewer than {LEAST_GROUP} respondents for each")
    # Whole numbers in the proportion alone/m to (1 - alone)/pairs, in lowest terms.
    each, both = round(_WEIGHT_UNIT * alone) * max(1, len(pairs)), round(_WEIGHT_UNIT * (1 - alone)) * m
    least = gcd(each, both) or 1
    weights = [each // least] * len(singles) + [both // least] * len(pairs)
    return one_of_views(
        question.sizes, [*singles, *pairs], lambda cells: adaptive_oracle(cells, question.budget), weights
    )


def _split(question: Ask) -> Mechanism:
    """Return the split of least forecast error between single attributes and pairs."""
    if len(question.sizes) < 2 or question.k < 2:
        raise InvalidSpec("marginals: pairs are of two attributes; ask each alone")
    return _least_error(question, [partial(split_views, question, alone) for alone in ALONE])


def _views_of_pairs(question: Ask) -> Mechanism:
    """Return the views of three to six attributes that cover all pairs with the least forecast error."""

    m = len(question.sizes)

    def made(s: int) -> Mechanism:
        # The bound stands in for the design, whose search takes long.
        if question.n < LEAST_GROUP * lower_bound(m, s, 2) or _most_cells(question.sizes, s) > _MOST_VIEW_CELLS:
            raise InvalidSpec(f"marginals: views of {s} attributes leave too few respondents for each cell")
        views = cover_design(m, s, 2)
        return one_of_views(question.sizes, views, lambda cells: adaptive_oracle(cells, question.budget))

    if m > _MOST_COVERED:
        raise InvalidSpec(f"marginals: views that cover all pairs of {m} attributes take long to find; ask for pairs")
    largest = min(_LARGEST_VIEW, m)
    return _least_error(question, [partial(made, s) for s in range(3, largest + 1)])


def _most_cells(sizes: Sequence[int], s: int) -> int:
    return prod(sorted(sizes)[-s:])


def _least_error(question: Ask, builders: Sequence[Callable[[], Mechanism]]) -> Mechanism:
    """The mechanism of least forecast error, averaged over some tables, among those that can be built."""
    best: tuple[float, Mechanism] | None = None
    for build in builders:
        try:
            mechanism = build()
        except InvalidSpec:  # Too few respondents, or too many cells.
            continue
        error = forecast_errors(mechanism, question)[0]
        if best is None or error < best[0]:
            best = error, mechanism
    if best is None:
        raise InvalidSpec("marginals: no split of the respondents leaves enough of them for each question")
    return best[1]


def forecast_errors(mechanism: Mechanism, question: Ask) -> tuple[float, float, float]:
    """Return the forecast squared error of a table of k attributes, and those under weak and strong association.

    Where nothing is known of the association the first is between the other two, by their ratio and not by their
    difference: strong associations would outweigh weak ones by far, which are three times as common among real tables.
    """
    forecast = TableForecast.of(mechanism, question.sizes, question.n)
    tables = sampled_tables(len(question.sizes), question.k)

    def mean(law: Sequence[float]) -> float:
        return sum(forecast.squared_error(table, law) for table in tables) / len(tables)

    weak, strong = mean(WEAK), mean(STRONG)
    return weak**0.75 * strong**0.25 if question.law is None else mean(question.law), weak, strong


def sampled_tables(m: int, k: int) -> list[Attributes]:
    """All tables of k attributes where they are few, else a random sample (with a fixed seed, for stable plans)."""
    if comb(m, k) <= _SAMPLED_TABLES:
        return list(combinations(range(m), k))
    rng = np.random.default_rng(0)
    return [tuple(sorted(rng.choice(m, k, replace=False).tolist())) for _ in range(_SAMPLED_TABLES)]


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
    "one_way": partial(split_views, alone=1.0),
    "pairs": _split,
    "views": _views_of_pairs,
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
"""Builders by name. `one_way` asks about single attributes alone, so that all tables are products. The papers' RR
methods flip every bit at epsilon/2 (SUE); the `_oue` variants use OUE instead."""

ALIASES = {"inp_em": "em", "inp_inv": "em"}


def make_method(name: str, question: Ask) -> Mechanism:
    """Return the mechanism of a method by name; `ft` is inp_ht with uniform weights."""
    if name == "ft":
        return _signs(replace(question, uniform=True))
    build = METHODS.get(ALIASES.get(name, name))
    if build is None:
        raise InvalidSpec(f"marginals: method is {name[:40]!r}, must be one of {', '.join([*METHODS, 'ft', *ALIASES])}")
    return build(question)
