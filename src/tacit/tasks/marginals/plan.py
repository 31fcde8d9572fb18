"""Choose the method for tables over several attributes by the forecast error of its answers (SEL-MARGINALS).

All methods are compared by the squared error of tables of k attributes as they are answered, summed over the cells and
averaged over tables: noise, sampling of groups, and what is taken for independent because it was not measured or drowns
in noise (`marginals.forecast`). The last depends on how strongly attributes go together, which nobody knows beforehand,
so that the errors under weak and under strong association are stated, and a compromise of both decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, log2, prod, sqrt
from typing import Any

import numpy as np

from tacit.core.compose import AllOf
from tacit.core.mechanism import Mechanism
from tacit.core.patience import check
from tacit.device.numbers.budget import Declared
from tacit.errors import InvalidSpec
from tacit.post.views.table import MAX_TABLE, Attributes, shape_of
from tacit.tasks.choose import TOLERANCE
from tacit.tasks.marginals.methods import METHODS, Ask, ask, calm_plan, forecast_errors, make_method, sampled_tables
from tacit.tasks.marginals.solve import expected_source
from tacit.tasks.marginals.sources import F64, FromViews

COMPARED = (
    "one_way", "pairs", "views", "inp_ht", "calm", "marg_ps", "marg_ht", "marg_rr", "marg_rr_oue", "fc", "inp_ps",
    "inp_rr", "inp_olh", "em",
)  # fmt: skip
"""Methods whose error is compared; the others are variants of them."""

MAX_OPERATIONS = 1e12
"""Options that need more server work than this are picked only where all do."""


@dataclass(frozen=True)
class MarginalOption:
    """One method, what it would cost and how well it would do."""

    method: str
    mechanism: Mechanism
    sse: float
    """Forecast squared error of a table as it is answered, summed over its cells."""
    raw_sse: float
    """Squared error of a raw table on uniform data, summed over its cells: noise and sampling of what is measured."""
    between: tuple[float, float]
    """The forecast under weak and under strong association."""
    cells: int
    covered: float
    """The share of the tables of k attributes that are asked as a whole."""
    report_bits: int
    server_operations: float
    extra: tuple[tuple[str, Any], ...] = ()
    n_needed: int | None = None

    @property
    def rmse(self) -> float:
        """The root mean squared error of a cell, as it is answered."""
        return sqrt(self.sse / self.cells)

    @property
    def raw_rmse(self) -> float:
        """The root mean squared error of a raw cell."""
        return sqrt(self.raw_sse / self.cells)

    @property
    def rmse_between(self) -> tuple[float, float]:
        """The root mean squared error of a cell under weak and under strong association."""
        low, high = (sqrt(sse / self.cells) for sse in self.between)
        return low, high

    def to_row(self) -> dict[str, Any]:
        """Plain numbers for JSON and tables."""
        weak, strong = self.rmse_between
        row = {
            "method": self.method, "rmse": self.rmse, "rmse_weak": weak, "rmse_strong": strong,
            "raw_rmse": self.raw_rmse, "sse": self.sse, "raw_sse": self.raw_sse,
            "prediction": "noise + sampling + what is taken for independent",
            "covered": self.covered, "report_bits": self.report_bits, "server_operations": self.server_operations,
        } | dict(self.extra)  # fmt: skip
        return row if self.n_needed is None else row | {"n_needed": self.n_needed}


@dataclass(frozen=True)
class MarginalChoice:
    """The pick and every option it was compared with, best first."""

    pick: MarginalOption
    options: tuple[MarginalOption, ...]
    reason: str


def choose_marginals(
    *,
    sizes: Sequence[int],
    k: int,
    epsilon: Declared,
    n: int,
    target_error: float | None = None,
    max_report_bits: int | None = None,
    methods: Sequence[str] = COMPARED,
    cover: bool = False,
    association: str | Sequence[float] = "mixed",
) -> MarginalChoice:
    """Choose how to ask for tables of up to k attributes with these numbers of answers, at `epsilon`, of n respondents.

    `association` is weak or strong if that is known, a list of strengths phi^2 that a pilot found (of yes-or-no
    questions, squared correlations), or mixed. Options within 3 % of the least squared error compete on server work.

    >>> choose_marginals(sizes=[2] * 8, k=2, epsilon="1", n=2**16).pick.method
    'pairs'
    """
    question = ask(sizes, k, epsilon, n, cover=cover, association=association)
    if target_error is not None and not target_error > 0:
        raise InvalidSpec(f"marginals: target_error is {target_error}, must be above 0")
    options = [option for name in methods if (option := _option(name, question, target_error))]
    limit = inf if max_report_bits is None else max_report_bits
    ranked = sorted((option for option in options if option.report_bits <= limit), key=lambda option: option.sse)
    # Methods that cannot be built for this request were dropped above, so the list may be empty.
    if not ranked:
        raise InvalidSpec("marginals: no method fits; allow longer reports, ask for smaller tables or more respondents")
    pick = _cheapest(ranked)
    return MarginalChoice(pick, tuple(ranked), _reason(pick, ranked))


def _option(name: str, question: Ask, target: float | None) -> MarginalOption | None:
    """Return the option of one method; None where the method does not fit the request."""
    if name not in METHODS:
        raise InvalidSpec(f"marginals: method is {name[:40]!r}, must be one of {', '.join(METHODS)}")
    check()
    try:
        mechanism = make_method(name, question)
        raw_sse, cells, covered = expected_sse(mechanism, question)
        errors = forecast_errors(mechanism, question)
    except InvalidSpec:  # Too many combinations, tables or coefficients for this many respondents.
        return None
    extra = _view_fields(question, mechanism) if name == "calm" else ()
    # Variances are proportional to 1/n, so the respondents that a target error of raw cells needs follow by scaling.
    needed = None if target is None else ceil(raw_sse / cells / target**2 * question.n)
    work, (sse, *between) = _operations(mechanism, question), errors
    return MarginalOption(
        name, mechanism, sse, raw_sse, (between[0], between[1]), cells, covered, mechanism.report_bits, work, extra,
        needed,
    )  # fmt: skip


def _view_fields(question: Ask, mechanism: Mechanism) -> tuple[tuple[str, Any], ...]:
    plan = calm_plan(question)
    fields = {"views": mechanism.member_count, "view_size": plan.size, "noise_error": plan.noise_error}
    return tuple((fields | {"sampling_error": plan.sampling_error}).items())


def expected_sse(mechanism: Mechanism, question: Ask) -> tuple[float, int, float]:
    """The mean squared error of a table on uniform data, its number of cells, and the share of covered tables."""

    def uniform(attributes: Attributes) -> F64:
        shape = shape_of(question.sizes, attributes)
        return np.full(shape, 1 / prod(shape))

    source = expected_source(mechanism, max(2, question.n), uniform, question.sizes)
    tables = sampled_tables(len(question.sizes), question.k)
    cells = [prod(shape_of(question.sizes, table)) for table in tables]
    if max(cells) > MAX_TABLE >> 8:
        raise InvalidSpec(f"marginals: tables of {max(cells)} cells are too large to compare methods by")
    # On uniform data all cells of a table are known alike.
    sums = [
        count * float(source.linear(table, np.eye(1, count))[0]) for table, count in zip(tables, cells, strict=True)
    ]
    if isinstance(source, FromViews):
        covered = float(np.mean([not source.missing(table) for table in tables]))
    else:
        covered = 1.0
    return float(np.mean(sums)), round(float(np.mean(cells))), covered


def option_of(mechanism: Mechanism, question: Ask) -> MarginalOption:
    """A mechanism that is published already, as the option that it would be."""
    raw_sse, cells, covered = expected_sse(mechanism, question)
    sse, *between = forecast_errors(mechanism, question)
    work = _operations(mechanism, question)
    return MarginalOption(
        "published", mechanism, sse, raw_sse, (between[0], between[1]), cells, covered, mechanism.report_bits, work
    )


def _operations(mechanism: Mechanism, question: Ask) -> float:
    """Server work: reports, times cells where every report is held against every cell, and cells of all tables."""
    if mechanism.drawn_from is not None:
        return float(question.n) + sum(part.value_count for part in mechanism.parts)
    if isinstance(mechanism, AllOf):
        return float(question.n) * len(question.sizes)
    per_report = {"oue": question.cells / 8, "sue": question.cells / 8, "olh": question.cells}
    return question.n * max(1.0, per_report.get(mechanism.kind, 1.0)) + question.cells


def _cheapest(ranked: Sequence[MarginalOption]) -> MarginalOption:
    doable = [option for option in ranked if option.server_operations <= MAX_OPERATIONS] or list(ranked)
    close = [option for option in doable if option.sse <= TOLERANCE * doable[0].sse]
    # Work that differs by less than a factor of two is the same work.
    return min(close, key=lambda o: (round(log2(o.server_operations)), o.sse, o.report_bits))


def _reason(pick: MarginalOption, ranked: Sequence[MarginalOption]) -> str:
    other = next((option for option in ranked if option is not pick), None)
    ahead = "" if other is None else f", {100 * pick.rmse / other.rmse:.0f} % of the error of {other.method}"
    partly = "" if pick.covered == 1 else "; what no respondent is asked together is taken for independent"
    return f"{pick.method} has the least forecast error of tables as they are answered{ahead}{partly}"
