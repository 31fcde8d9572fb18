"""Compare the methods for joint tables: every way to ask, the raw answers, and what needs no association at all."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.mechanism import Mechanism
from tacit.device.numbers.budget import as_epsilon
from tacit.errors import InvalidSpec
from tacit.simulate.compare.draws import MOST_DRAWN, is_cheap
from tacit.simulate.compare.outcome import DEFAULT, UNIFORM, Advance, Contender, Trial, inside
from tacit.simulate.marginals import all_tables, simulate_tally, true_table
from tacit.tasks.marginals.each import expected_seconds
from tacit.tasks.marginals.marginals import Marginals, Table
from tacit.tasks.marginals.methods import METHODS, Ask, ask, make_method
from tacit.tasks.marginals.solve import solve_marginals
from tacit.tasks.marginals.task import plan_choice

MOST_TABLES = 200
"""More tables are sampled, always the same ones."""

MOST_COVERED = 24
"""Intervals are looked at in so many tables, evenly spread: variances of larger tables take most of the time."""

MOST_EM_SECONDS = 5.0
"""Maximum likelihood (method `em`) is left out where it takes longer for one collection."""

MOST_WHOLE = 1 << 18
"""The most combinations of all answers for which methods over the whole table are compared."""


def compare_tables(
    records: Any, sizes: Sequence[int], epsilon: str, seeds: Sequence[int], *, k: int = 2,
    advance: Advance | None = None,
) -> list[Contender]:  # fmt: skip
    """Return every method on collections about these records, one row of answers each; a collection per seed.

    The error of a method is the squared error of a table of k attributes, summed over its cells, averaged over tables.
    """
    crowd = _Crowd(records, sizes, k)
    question = ask(sizes, k, epsilon, len(records))
    choice = plan_choice(question.sizes, as_epsilon(epsilon), len(records), k)
    planned, forecasts = choice.pick, {o.method: (o.sse, *o.between) for o in choice.options}
    plans = {name: mechanism for name in METHODS if (mechanism := _plan(name, question))}
    about = f"as planned ({planned.method})"
    found = {
        DEFAULT: _contender(DEFAULT, f"{about}, as it is answered", planned.mechanism, forecasts[planned.method]),
        UNIFORM: Contender(UNIFORM, "all cells alike; needs no reports"),
        "raw": _contender("raw", f"{about}, the unbiased tables", planned.mechanism),
        "unshrunken": _contender("unshrunken", f"{about}, whole interactions made consistent", planned.mechanism),
    }
    for name, mechanism in plans.items():
        about = _ABOUT.get(name, "as it is answered")
        found[_named(name)] = _contender(_named(name), about, mechanism, forecasts.get(name))
    for seed in seeds:
        shuffled = crowd.shuffled(seed)
        start = perf_counter()
        solved = crowd.solve(planned.mechanism, shuffled, seed)
        found[DEFAULT].trials.append(crowd.trial(solved, start))
        found["raw"].trials.append(crowd.trial(solved, start, raw=True))
        found["unshrunken"].trials.append(crowd.trial(replace(solved, shrink=False), start))
        found[UNIFORM].trials.append(crowd.uniform())
        for name, mechanism in plans.items():
            start = perf_counter()
            found[_named(name)].trials.append(crowd.trial(crowd.solve(mechanism, shuffled, seed), start))
        if advance:
            advance(1)
    return list(found.values())


_ABOUT = {"one_way": "single attributes alone, and their products"}


def _named(method: str) -> str:
    """The plan that measures no interaction goes by what it assumes."""
    return "independence" if method == "one_way" else method


def _contender(
    name: str, about: str, mechanism: Mechanism, forecast: tuple[float, float, float] | None = None
) -> Contender:
    return Contender(name, about, mechanism.kind, mechanism.report_bits, forecast)


def _plan(name: str, question: Ask) -> Mechanism | None:
    """The mechanism of a method; None where it does not fit the data, or takes too long on so many respondents."""
    # The same generator as in `_Crowd`, so that the time is foreseen for the tables that are solved.
    pairs = all_tables(len(question.sizes), question.k, MOST_TABLES, np.random.default_rng(0))
    if name == "em" and (
        question.n * len(question.sizes) > MOST_DRAWN or expected_seconds(question.sizes, pairs) > MOST_EM_SECONDS
    ):
        return None
    try:
        mechanism = make_method(name, question)
    except InvalidSpec:
        return None
    whole = mechanism.drawn_from is None and name != "em"
    if whole and (question.cells > MOST_WHOLE or mechanism.kind == "olh"):
        return None
    return mechanism if is_cheap(mechanism, question.n) or name == "em" else None


class _Crowd:
    """Respondents with several attributes, the true tables, and the errors of estimated ones."""

    def __init__(self, records: Any, sizes: Sequence[int], k: int) -> None:
        self.records, self.sizes = records, tuple(sizes)
        self.wanted = all_tables(len(self.sizes), k, MOST_TABLES, np.random.default_rng(0))
        # Every table reads whole columns, so that each of them lies in one piece.
        columns = np.asfortranarray(records)
        self.truth = [true_table(columns, self.sizes, table) for table in self.wanted]

    def shuffled(self, seed: int) -> Any:
        """The respondents in random order, the same for all methods and every epsilon."""
        return self.records[np.random.default_rng([seed, 3]).permutation(len(self.records))]

    def solve(self, mechanism: Mechanism, shuffled: Any, seed: int) -> Marginals:
        # Every method starts from the same stream, so that they differ by what they do and less by luck.
        rng = np.random.default_rng([seed, 4])
        tally = simulate_tally(mechanism, shuffled, self.sizes, rng, shuffled=True)
        return solve_marginals(mechanism, tally, sizes=self.sizes)

    def trial(self, solved: Marginals, start: float, *, raw: bool = False) -> Trial:
        tables = solved.tables(self.wanted)
        values = [table.cells if raw else table.consistent for table in tables]
        seconds = perf_counter() - start
        ends = _raw_ends if raw else _consistent_ends
        some = range(0, len(tables), -(-len(tables) // MOST_COVERED))
        covered = np.concatenate([_held(ends, tables[i], self.truth[i]) for i in some])
        return self._trial(values, float(covered.mean()), seconds)

    def uniform(self) -> Trial:
        return self._trial([np.full(true.shape, 1 / true.size) for true in self.truth], None, 0.0)

    def _trial(self, values: Sequence[F64], covered: float | None, seconds: float) -> Trial:
        errors = [(value - true).ravel() for value, true in zip(values, self.truth, strict=True)]
        return Trial(float(np.mean([e @ e for e in errors])), covered, seconds, np.concatenate(errors))


Ends = Callable[[Table], tuple[F64, F64]]


def _held(ends: Ends, table: Table, true: F64) -> F64:
    """The share of intervals of a table that hold the truth, once per cell."""
    return np.full(true.size, inside(ends(table), true.ravel()))


def _raw_ends(table: Table) -> tuple[F64, F64]:
    return table.raw.interval(0.95)


def _consistent_ends(table: Table) -> tuple[F64, F64]:
    return table.interval(0.95)
