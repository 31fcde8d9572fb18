"""Attacks on whole tasks: a range, a cell of a joint table, a list of heavy hitters, a count in SQL.

What is measured is the answer that people see: by how much the target rises, and what is predicted from the fakes alone
(bt times the distance of what they say to the truth, as answers are close to linear in the reports).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.statistics.simulated import GeneratorCoins
from tacit.errors import InvalidSpec
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.hitters import syn
from tacit.simulate.poisoning.attacks import Attack
from tacit.simulate.poisoning.composed import composed_fakes
from tacit.simulate.poisoning.run import PoisoningPlan
from tacit.simulate.population import respondents, zipf_counts
from tacit.tasks.hitters.hitters import find_hitters
from tacit.tasks.hitters.plan import plan_pem
from tacit.tasks.hitters.spelling import spelling_of
from tacit.tasks.marginals.methods import ask, make_method
from tacit.tasks.marginals.solve import solve_marginals
from tacit.tasks.ranges.plan import choose_ranges
from tacit.tasks.ranges.ranges import solve_ranges

_BITS = 20
"""Values of simulated heavy hitters: 2^20."""
_ATTRIBUTES = (4, 3, 4, 2, 3)
"""Answers of the questions of simulated joint tables."""


@dataclass(frozen=True)
class Poisonable:
    """A task under attack: its reports, what the targets are, and the answer that counts."""

    mechanism: Mechanism
    genuine: Reports
    targets: Any
    """The values that fakes push: indices, or rows of answers."""
    answer: Callable[[Reports], float]
    """What the answer says of the targets, from all of these reports."""
    truth: float
    linear: bool = True
    """Whether the answer is about linear in the reports; whether a value is in a list is not."""


@dataclass(frozen=True)
class TaskRun:
    """One simulated collection under attack."""

    gain: float
    predicted_gain: float | None


def simulate_task_poisoning(
    task: str, plan: PoisoningPlan, *, size: int, epsilon: str, n: int, seed: int = 1
) -> list[TaskRun]:
    """Attack a task several times, each on data and targets of its own."""
    if task not in TASKS:
        raise InvalidSpec(f"poisoning: task is {task[:40]!r}, must be one of {', '.join(TASKS)}")
    return [_run(TASKS[task](plan, size, epsilon, n, seed + i), plan, seed + i) for i in range(plan.seeds)]


def _run(victim: Poisonable, plan: PoisoningPlan, seed: int) -> TaskRun:
    attack = Attack(plan.attack, np.zeros(1, np.int64), plan.padded, plan.support, plan.search)
    count = round(plan.share * len(victim.genuine))
    fakes = composed_fakes(victim.mechanism, attack, victim.targets, count, seed)
    clean = victim.answer(victim.genuine)
    gain = victim.answer(np.concatenate([victim.genuine, fakes])) - clean
    share = count / (len(victim.genuine) + count)
    if not victim.linear or not count:
        return TaskRun(gain, None if count else 0.0)
    return TaskRun(gain, share * (victim.answer(fakes) - victim.truth))


def _ranges(plan: PoisoningPlan, size: int, epsilon: str, n: int, seed: int) -> Poisonable:
    """A range of `targets` neighbouring values."""
    rng, counts = np.random.default_rng([seed, 1]), zipf_counts(size, n)
    if plan.targets >= size:
        raise InvalidSpec(f"poisoning: a range of {plan.targets} among {size} values is everything; take fewer targets")
    low = int(rng.integers(size - plan.targets + 1))
    high = low + plan.targets - 1
    mechanism = choose_ranges(size=size, epsilon=epsilon, n=n).pick.mechanism
    genuine = mechanism.privatize(respondents(counts, rng), SimulationCoins(seed))

    def answer(reports: Reports) -> float:
        return float(solve_ranges(mechanism, mechanism.tally(reports)).ranges([low], [high]).value[0])

    return Poisonable(mechanism, genuine, np.arange(low, high + 1), answer, float(counts[low : high + 1].sum()) / n)


def _marginals(plan: PoisoningPlan, size: int, epsilon: str, n: int, seed: int) -> Poisonable:
    """A cell of the table of the first two attributes, which have 12 cells together."""
    del plan, size
    rng = np.random.default_rng([seed, 2])
    records: I64 = np.stack([rng.integers(answers, size=n) for answers in _ATTRIBUTES], axis=1)
    mechanism = make_method("calm", ask(list(_ATTRIBUTES), 2, epsilon, n))
    cell = tuple(int(rng.integers(answers)) for answers in _ATTRIBUTES[:2])
    pushed = np.stack([rng.integers(answers, size=64) for answers in _ATTRIBUTES], axis=1)
    pushed[:, 0], pushed[:, 1] = cell

    def answer(reports: Reports) -> float:
        solved = solve_marginals(mechanism, mechanism.tally(reports), sizes=list(_ATTRIBUTES))
        cells: F64 = solved.table((0, 1)).cells
        return float(cells[cell[0], cell[1]])

    genuine = mechanism.privatize(records, SimulationCoins(seed))
    held = np.count_nonzero((records[:, 0] == cell[0]) & (records[:, 1] == cell[1])) / n
    return Poisonable(mechanism, genuine, pushed, answer, held)


def _heavy_hitters(plan: PoisoningPlan, size: int, epsilon: str, n: int, seed: int) -> Poisonable:
    """Values that nobody holds, pushed into the list: the answer is how many of them are in it."""
    del size
    rng, population = np.random.default_rng([seed, 3]), syn(n, _BITS, seed)
    strangers = np.setdiff1d(
        rng.choice(1 << _BITS, 4 * plan.targets, replace=False).astype(np.uint64), population.values
    )
    targets = strangers[: plan.targets]
    spelling = spelling_of(population.domain)
    search = plan_pem(spelling, epsilon=epsilon, n=n, k=16)
    mechanism = search.mechanism
    genuine = mechanism.privatize(np.repeat(population.values, population.counts), SimulationCoins(seed))

    def answer(reports: Reports) -> float:
        found = find_hitters(mechanism, mechanism.tally(reports), spelling, k=16, keep=search.keep)
        return float(sum(row.index in set(targets.tolist()) for row in found.to_list()))

    return Poisonable(mechanism, genuine, targets, answer, 0.0, linear=False)


def _sql(plan: PoisoningPlan, size: int, epsilon: str, n: int, seed: int) -> Poisonable:
    """SELECT COUNT(*) over a range of a private column, as a share of all rows."""
    # Only this task needs SQL, whose libraries are an extra.
    import pyarrow as pa

    from tacit.simulate.analytics import read_schema, rehearse
    from tacit.sql.engine.linked import collect_reports
    from tacit.sql.open import open_table

    rng = np.random.default_rng([seed, 4])
    low = int(rng.integers(max(1, size - plan.targets)))
    high = min(size, low + plan.targets) - 1
    values: I64 = respondents(zipf_counts(size, n), rng)
    table = pa.table({"answer": values, "row": np.zeros(n, np.int64)})
    query = f"SELECT COUNT(*) FROM t WHERE answer BETWEEN {low} AND {high}"
    schema = read_schema(f"answer:0-{size - 1}", table)
    rehearsal = rehearse(table, schema, epsilon=epsilon, queries=[query], method="hio")
    genuine = collect_reports(rehearsal.design, rehearsal.values, GeneratorCoins(rng), rng)

    def answer(reports: Reports) -> float:
        rows = pa.table({"row": np.zeros(len(reports), np.int64)})
        connection = open_table(schema, rows, rehearsal.design, reports)
        return float(connection.query(connection.parse(query)).to_rows()[0]["estimate"]) / max(1, len(reports))

    truth = float(np.mean((values >= low) & (values <= high)))
    return Poisonable(rehearsal.design.mechanism, genuine, np.arange(low, high + 1), answer, truth)


TASKS: dict[str, Callable[[PoisoningPlan, int, str, int, int], Poisonable]] = {
    "ranges": _ranges,
    "marginals": _marginals,
    "heavy-hitters": _heavy_hitters,
    "sql": _sql,
}
"""By name: how a task is set up for an attack."""
