"""Simulate a collection about several attributes and compare the error of its tables with the prediction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from math import comb, prod
from time import perf_counter
from typing import Any, cast

import numpy as np

from tacit.arrays import I64, flat_index
from tacit.core.compose import AllOf, OneOf, PerMember
from tacit.core.mechanism import Mechanism
from tacit.core.members import MemberCounts, per_member
from tacit.core.statistics.simulated import GeneratorCoins
from tacit.device.families.coefficients import Coefficients
from tacit.device.families.views import Views
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.post.views.table import Attributes, shape_of
from tacit.tasks.marginals.marginals import Marginals, Table, kept_attributes
from tacit.tasks.marginals.solve import asked_by, expected_source, solve_marginals
from tacit.tasks.marginals.sources import F64

# Records that are worked on at a time.
_CHUNK = 1 << 18


def simulate_records(mechanism: Mechanism, records: I64, rng: np.random.Generator, *, shuffled: bool = False) -> Any:
    """Return a tally of simulated respondents, one row of answers each, with the distribution of a real one.

    Families of views and coefficients are drawn member by member instead of report by report. Of `shuffled` records
    the first ones answer the first member and so on, which is as random and much faster for very many.
    """
    simulate = _SIMULATED.get(asked_by(mechanism))
    if simulate is not None:
        return simulate(mechanism, records, rng, shuffled)
    sizes = tuple(records.max(axis=0, initial=1) + 1)
    raise InvalidSpec(f"marginals: {mechanism.kind} needs counts of its {sizes} combinations; use simulate_tally")


def _drawn(mechanism: OneOf, n: int, rng: np.random.Generator, *, shuffled: bool) -> I64:
    """The member that every respondent draws."""
    if shuffled:
        chances = np.diff(mechanism.bounds, prepend=0) / mechanism.bounds[-1]
        return np.repeat(np.arange(len(chances)), rng.multinomial(n, chances))
    return np.searchsorted(mechanism.bounds, rng.integers(0, mechanism.bounds[-1], n), side="right")


def _each(mechanism: AllOf, records: I64, rng: np.random.Generator, shuffled: bool) -> Any:
    del shuffled  # Everybody answers everything.
    return mechanism.tally(mechanism.privatize(records, GeneratorCoins(rng)))


def _views(mechanism: OneOf, records: I64, rng: np.random.Generator, shuffled: bool) -> PerMember:
    """Every respondent draws a view; the tally of a view is simulated from the counts of its cells."""
    family = cast("Views", mechanism.family)
    chosen = _drawn(mechanism, len(records), rng, shuffled=shuffled)
    # Respondents sorted by their view, and where the run of every view ends.
    order = np.argsort(chosen, kind="stable")
    ends = np.cumsum(np.bincount(chosen, minlength=len(family)))
    tallies: dict[int, Any] = {}
    for i, places in enumerate(np.split(order, ends[:-1])):
        view = family.views[i]
        # Records of many respondents are bytes, in which products of sizes would overflow.
        digits = (records[places, a].astype(np.int64) for a in view)
        cells = flat_index(digits, (family.sizes[a] for a in view))
        tallies[i] = mechanism.member(i).simulate_tally(np.bincount(cells, minlength=family.cells(i)), rng)
    return per_member(mechanism, mechanism.layout, len(records), tallies)


def _signs(mechanism: OneOf, records: I64, rng: np.random.Generator, shuffled: bool) -> PerMember:
    """Every respondent draws a Hadamard coefficient; true signs are counted, then flipped by binomials."""
    # A sign is the parity of the bits that the answers share with the masks of the coefficient, over all attributes.
    family = cast("Coefficients", mechanism.family)
    masks = np.zeros((len(family), len(family.sizes)), np.int64)
    for i in range(len(family)):
        for attribute, mask in family.member(i):
            masks[i, attribute] = mask
    true = np.zeros(2 * len(family), np.int64)
    every = _drawn(mechanism, len(records), rng, shuffled=True) if shuffled else None
    for start in range(0, len(records), _CHUNK):
        some = records[start : start + _CHUNK]
        chosen = (
            _drawn(mechanism, len(some), rng, shuffled=False) if every is None else every[start : start + len(some)]
        )
        parity = np.bitwise_count(some & masks[chosen]).sum(axis=1, dtype=np.int64) & 1
        true += np.bincount(2 * chosen + parity, minlength=len(true))
    sign = cast("GRR", mechanism.member(0))
    truthful = rng.binomial(true, float(sign.p)).reshape(-1, 2)
    cells = (truthful + (true.reshape(-1, 2) - truthful)[:, ::-1]).astype(np.int64)
    n = cells.sum(axis=1)
    return PerMember(mechanism, len(records), mechanism.layout, (MemberCounts(sign, n, cells, cells, n, n),))


_SIMULATED: dict[str, Callable[[Any, I64, np.random.Generator, bool], Any]] = {
    "views": _views,
    "coefficients": _signs,
    "all_of": _each,
}
"""By `asked_by`, as the solvers of their tallies."""


def simulate_tally(
    mechanism: Mechanism, records: I64, sizes: Sequence[int], rng: np.random.Generator, *, shuffled: bool = False
) -> Any:
    """Return a simulated tally of any method; an oracle over all combinations is given their counts."""
    kept = kept_attributes(sizes)
    varied = records if len(kept) == len(sizes) else records[:, list(kept)]
    if asked_by(mechanism) in _SIMULATED:
        return simulate_records(mechanism, varied, rng, shuffled=shuffled)
    shape = shape_of(sizes, kept)
    flat = np.ravel_multi_index(tuple(varied.T), shape)
    return mechanism.simulate_tally(np.bincount(flat, minlength=prod(shape)), rng)


def true_table(records: I64, sizes: Sequence[int], attributes: Sequence[int]) -> F64:
    """Return the true shares of all combinations of some attributes."""
    shape = shape_of(sizes, attributes)
    flat = np.ravel_multi_index(tuple(records[:, a] for a in attributes), shape)
    return np.bincount(flat, minlength=prod(shape)).reshape(shape) / max(1, len(records))


def all_tables(attributes: int, k: int, most: int, rng: np.random.Generator) -> list[Attributes]:
    """Return all sets of k attributes, or `most` of them at random where there are more."""
    if comb(attributes, k) <= most:
        return list(combinations(range(attributes), k))
    drawn: set[Attributes] = set()
    while len(drawn) < most:
        drawn.add(tuple(sorted(rng.choice(attributes, k, replace=False).tolist())))
    return sorted(drawn)


@dataclass(frozen=True)
class MarginalOutcome:
    """How one or more simulated collections went; squared errors are summed over the cells of a table."""

    tables: int
    runs: int
    mean_sse: float
    """Mean squared error of the consistent tables."""
    raw_sse: float
    uniform_sse: float
    """Mean squared error of the uniform table, as a yardstick."""
    covered: int
    seconds: float
    last: Marginals
    predict: Callable[[], float]

    @cached_property
    def predicted_sse(self) -> float:
        """Noise and sampling of the raw tables, computed when asked for; what completing a table adds is not in it."""
        return self.predict()


def predicted_sse(mechanism: Mechanism, records: I64, sizes: Sequence[int], tables: Sequence[Attributes]) -> float:
    """Return the expected squared error of raw tables, summed over cells, with the true tables plugged in."""
    # Mechanisms number only attributes with more than one answer; tables are named by the numbers of all.
    kept, records = kept_attributes(sizes), np.asfortranarray(records)
    known: dict[Attributes, F64] = {}

    def truth(attributes: Attributes) -> F64:
        if attributes not in known:
            known[attributes] = true_table(records, sizes, [kept[a] for a in attributes])
        return known[attributes]

    source = expected_source(mechanism, max(2, len(records)), truth, sizes)
    total = 0.0
    for table in tables:
        inner = tuple(kept.index(a) for a in table if sizes[a] > 1)
        total += float(source.linear(inner, np.eye(prod(shape_of(sizes, table)))).sum()) if inner else 0.0
    return total / max(1, len(tables))


def simulate_marginals(
    mechanism: Mechanism, records: I64, sizes: Sequence[int], *, k: int, runs: int = 1, seed: int = 1,
    most_tables: int = 200, advance: Callable[[int], None] | None = None, **solve: Any,
) -> MarginalOutcome:  # fmt: skip
    """Simulate collections on records, one row of answers each: squared errors of tables of k attributes."""
    start, rng = perf_counter(), np.random.default_rng(seed)
    wanted = all_tables(len(sizes), k, most_tables, rng)
    # Column by column in memory: a table reads few of the columns.
    columns = np.asfortranarray(records)
    truth = [true_table(columns, sizes, table) for table in wanted]
    errors: list[tuple[float, float]] = []
    tables: list[Table] = []
    answers: Marginals | None = None
    for _ in range(runs):
        tally = simulate_tally(mechanism, records, sizes, rng)
        answers = solve_marginals(mechanism, tally, sizes=sizes, **solve)
        tables = answers.tables(wanted)
        errors += [_squared(table, true) for table, true in zip(tables, truth, strict=True)]
        if advance:
            advance(len(records))
    mean = np.mean(errors, axis=0)
    assert answers is not None
    return MarginalOutcome(
        tables=len(wanted),
        runs=runs,
        mean_sse=float(mean[0]),
        raw_sse=float(mean[1]),
        uniform_sse=float(np.mean([np.sum((true - 1 / true.size) ** 2) for true in truth])),
        covered=sum(table.status == "covered" for table in tables),
        seconds=perf_counter() - start,
        last=answers,
        predict=partial(predicted_sse, mechanism, columns, sizes, wanted),
    )


def _squared(table: Table, true: F64) -> tuple[float, float]:
    """Squared errors of the consistent table and of the raw one, without computing the raw table's variances."""
    raw = table.source.raw(tuple(a for a, size in zip(table.attributes, table.shape, strict=True) if size > 1))
    return float(np.sum((table.consistent - true) ** 2)), float(np.sum((raw.reshape(true.shape) - true) ** 2))


def latent_classes(n: int, m: int, rng: np.random.Generator) -> I64:
    """Draw binary attributes that three hidden classes make dependent, rare ones last: a stand-in for click data."""
    base = 0.6 * 0.75 ** np.arange(m)
    even = np.arange(m) % 2 == 0
    factors = np.stack([np.full(m, 0.35), np.where(even, 1.9, 0.8), np.where(even, 0.6, 2.4)])
    hidden = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return (rng.random((n, m)) < np.clip(base * factors[hidden], 0.005, 0.97)).astype(np.int64)


def taxi_like(n: int, rng: np.random.Generator) -> I64:
    """Draw eight binary attributes in four dependent pairs, independent of each other; see docs/maths/marginals.md.

    Order: card, toll, far, night pick-up, night drop-off, Manhattan pick-up, Manhattan drop-off, tip.
    """
    pairs = [(0.55, 0.45, 0.02), (0.10, 0.50, 0.01), (0.30, 0.80, 0.05), (0.70, 0.55 / 0.70, 0.10 / 0.30)]
    first = [rng.random(n) < p for p, _, _ in pairs]
    second = [rng.random(n) < np.where(a, yes, no) for a, (_, yes, no) in zip(first, pairs, strict=True)]
    (card, far, pick, man), (tip, toll, drop, to) = first, second
    return np.stack([card, toll, far, pick, drop, man, to, tip], axis=1).astype(np.int64)


def movie_like(n: int, m: int, rng: np.random.Generator) -> I64:
    """Draw binary attributes that one hidden trait makes positively dependent."""
    trait = rng.standard_normal(n)[:, None]
    level = np.linspace(1.5, -1.5, m)
    return (rng.random((n, m)) < 1 / (1 + np.exp(-(level + 1.5 * trait)))).astype(np.int64)
