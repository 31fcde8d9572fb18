"""Compare designs for SQL over private columns: what is planned for a query, and every other design that answers it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from tacit.errors import InvalidSpec
from tacit.simulate.analytics import Rehearsal, rehearse, simulate_analytics
from tacit.simulate.compare.outcome import DEFAULT, Advance, Contender, Trial, inside
from tacit.sql.engine.plan import PLANNED
from tacit.sql.schema.schema import Schema

BETTER = "better"
"""Counts made consistent, which stand beside the estimates of the default."""

MOST_ROWS = 1 << 17
"""Of longer tables a random part is compared, since every row sends a report to every design."""


@dataclass(frozen=True, eq=False)
class PrivateTable:
    """Rows with private columns, and the query that is asked about them."""

    table: Any
    schema: Schema
    sql: str

    @property
    def n(self) -> int:
        """Number of respondents."""
        return self.table.num_rows


def compare_sql(
    data: PrivateTable, epsilon: str, seeds: Sequence[int], *, advance: Advance | None = None
) -> list[Contender]:
    """Return every design that answers the query, one collection per seed.

    The error of a design is the root mean squared error of all aggregates, each in units of the root mean square of
    its true values over the groups. Aggregates that a design does not estimate count as if they were answered by zero.
    """
    some = _some_rows(data)
    plans = _plans(some, epsilon)
    found: dict[str, Contender] = {}
    for name, plan in plans.items():
        about = f"as planned ({plan.design.method}), the unbiased estimates" if name == DEFAULT else "unbiased"
        found[name] = _contender(name, about, plan)
    found[BETTER] = _contender(BETTER, "as planned, counts made consistent", plans[DEFAULT])
    for seed in seeds:
        for name, plan in plans.items():
            start = perf_counter()
            rows = simulate_analytics(plan, data.sql, seed=seed)[1]
            seconds = perf_counter() - start
            found[name].trials.append(_trial(rows, seconds))
            if name == DEFAULT:
                found[BETTER].trials.append(_trial([_bettered(row) for row in rows], seconds))
        if advance:
            advance(1)
    return list(found.values())


def _contender(name: str, about: str, plan: Rehearsal) -> Contender:
    return Contender(name, about, plan.design.mechanism.kind, plan.design.mechanism.report_bits)


def _some_rows(data: PrivateTable) -> PrivateTable:
    if data.n <= MOST_ROWS:
        return data
    kept = np.sort(np.random.default_rng(6).choice(data.n, MOST_ROWS, replace=False))
    return replace(data, table=data.table.take(kept))


def _plans(data: PrivateTable, epsilon: str) -> dict[str, Rehearsal]:
    """What is planned, and every other design; those that cannot answer the query are left out."""
    plans = {DEFAULT: rehearse(data.table, data.schema, epsilon=epsilon, queries=[data.sql])}
    planned = plans[DEFAULT]
    if planned.collect_nothing().parse(data.sql).explain:
        raise InvalidSpec("compare: the query is an EXPLAIN, must be one that has an answer")
    for method in PLANNED:
        try:
            made = rehearse(data.table, data.schema, epsilon=epsilon, queries=[data.sql], method=method)
        except InvalidSpec:
            continue
        if made.design.mechanism != planned.design.mechanism:
            plans[method] = made
    return plans


def _bettered(row: dict[str, Any]) -> dict[str, Any]:
    better = row.get("better")
    return row if better is None else row | {name: better[name] for name in ("estimate", "low", "high")}


def _trial(rows: Sequence[dict[str, Any]], seconds: float) -> Trial:
    """One answer against the truth, in units of every aggregate."""
    known = [row for row in rows if isinstance(row["truth"], (int, float))]
    if not known:
        raise InvalidSpec("compare: the query has no aggregate with a true number to compare with")
    truth = np.array([float(row["truth"]) for row in known])
    names = np.array([row["aggregate"] for row in known])
    unit = np.array([np.sqrt(np.mean(truth[names == name] ** 2)) or 1.0 for name in names])
    signed = (np.array([float(row["estimate"] or 0.0) for row in known]) - truth) / unit
    told = [i for i, row in enumerate(known) if row["low"] is not None and row["high"] is not None]
    low, high = (np.array([float(known[i][end]) for i in told]) for end in ("low", "high"))
    covered = inside((low, high), truth[told]) if told else None
    # Groups come and go with the noise where a query orders or limits them, so that biases have no fixed places.
    return Trial(float(np.sqrt(np.mean(signed**2))), covered, seconds)
