"""Simulate a collection about several attributes and compare the error of its tables with the prediction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from time import perf_counter
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tacit.core.compose import AllOf, OneOf, PerMember
from tacit.core.mechanism import Mechanism
from tacit.core.members import Grid, per_member
from tacit.core.simulated import GeneratorCoins
from tacit.device.coefficients import Coefficients
from tacit.device.views import Views
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.post.marginal_table import Attributes, shape_of
from tacit.tasks.marginal_sources import F64
from tacit.tasks.marginals import Marginals, Table, kept_attributes
from tacit.tasks.marginals_solve import expected_source, solve_marginals

I64 = npt.NDArray[np.int64]
_CHUNK = 1 << 18


def simulate_records(mechanism: Mechanism, records: I64, rng: np.random.Generator) -> Any:
    """A tally of simulated respondents, one row of answers each; exact, and at once where a kind knows how."""
    if isinstance(mechanism, OneOf) and isinstance(mechanism.family, Views):
        return _views(mechanism, mechanism.family, records, rng)
    if isinstance(mechanism, OneOf) and isinstance(mechanism.family, Coefficients):
        return _signs(mechanism, mechanism.family, records, rng)
    if isinstance(mechanism, AllOf):
        return mechanism.tally(mechanism.privatize(records, GeneratorCoins(rng)))
    sizes = tuple(records.max(axis=0, initial=1) + 1)
    raise InvalidSpec(f"marginals: {mechanism.kind} needs counts of its {sizes} combinations; use simulate_tally")


def _drawn(mechanism: OneOf, n: int, rng: np.random.Generator) -> I64:
    """The member that every respondent draws."""
    return np.searchsorted(mechanism.bounds, rng.integers(0, mechanism.bounds[-1], n), side="right")


def _views(mechanism: OneOf, family: Views, records: I64, rng: np.random.Generator) -> PerMember:
    chosen = _drawn(mechanism, len(records), rng)
    order = np.argsort(chosen, kind="stable")
    ends = np.cumsum(np.bincount(chosen, minlength=len(family)))
    tallies: dict[int, Any] = {}
    for i, places in enumerate(np.split(order, ends[:-1])):
        cells = np.zeros(len(places), np.int64)
        for attribute in family.views[i]:
            cells = cells * family.sizes[attribute] + records[places, attribute]
        tallies[i] = mechanism.member(i).simulate_tally(np.bincount(cells, minlength=family.cells(i)), rng)
    return per_member(mechanism, mechanism.layout, len(records), tallies)


def _signs(mechanism: OneOf, family: Coefficients, records: I64, rng: np.random.Generator) -> PerMember:
    masks = np.zeros((len(family), len(family.sizes)), np.int64)
    for i in range(len(family)):
        for attribute, mask in family.member(i):
            masks[i, attribute] = mask
    true = np.zeros(2 * len(family), np.int64)
    for start in range(0, len(records), _CHUNK):
        some = records[start : start + _CHUNK]
        chosen = _drawn(mechanism, len(some), rng)
        parity = np.bitwise_count(some & masks[chosen]).sum(axis=1, dtype=np.int64) & 1
        true += np.bincount(2 * chosen + parity, minlength=len(true))
    sign = cast("GRR", mechanism.member(0))
    kept = rng.binomial(true, float(sign.p)).reshape(-1, 2)
    cells = (kept + (true.reshape(-1, 2) - kept)[:, ::-1]).astype(np.int64)
    n = cells.sum(axis=1)
    return PerMember(mechanism, len(records), mechanism.layout, (Grid(sign, n, cells, cells, n, n),))


def simulate_tally(mechanism: Mechanism, records: I64, sizes: Sequence[int], rng: np.random.Generator) -> Any:
    """A simulated tally of any method; an oracle over all combinations gets their counts."""
    kept = kept_attributes(sizes)
    if isinstance(mechanism, (OneOf, AllOf)):
        return simulate_records(mechanism, records[:, list(kept)], rng)
    shape = shape_of(sizes, kept)
    flat = np.ravel_multi_index(tuple(records[:, list(kept)].T), shape)
    return mechanism.simulate_tally(np.bincount(flat, minlength=prod(shape)), rng)


def simulate_split(mechanism: AllOf, cells: I64, rng: np.random.Generator) -> PerMember:
    """A simulated tally of respondents who report every table, member by member; see `tacit.tasks.marginals_split`."""
    members = [mechanism.member(i) for i in range(len(mechanism.members))]
    tallies: dict[int, Any] = {
        i: member.simulate_tally(np.bincount(cells[:, i], minlength=member.value_count), rng)
        for i, member in enumerate(members)
    }
    return per_member(mechanism, mechanism.layout, len(cells), tallies)


def true_table(records: I64, sizes: Sequence[int], attributes: Sequence[int]) -> F64:
    """The shares of all combinations of some attributes."""
    shape = shape_of(sizes, attributes)
    flat = np.ravel_multi_index(tuple(records[:, a] for a in attributes), shape)
    return np.bincount(flat, minlength=prod(shape)).reshape(shape) / max(1, len(records))


def all_tables(attributes: int, k: int, most: int, rng: np.random.Generator) -> list[Attributes]:
    """All sets of k attributes, or so many at random."""
    if comb(attributes, k) <= most:
        return list(combinations(range(attributes), k))
    found: set[Attributes] = set()
    while len(found) < most:
        found.add(tuple(sorted(rng.choice(attributes, k, replace=False).tolist())))
    return sorted(found)


@dataclass(frozen=True)
class MarginalOutcome:
    """How one or more simulated collections went; squared errors are summed over the cells of a table."""

    tables: int
    runs: int
    mean_sse: float
    """Of the consistent tables."""
    raw_sse: float
    uniform_sse: float
    """Of the table that knows nothing."""
    predicted_sse: float
    """Noise and sampling of the raw tables; what completing a table adds is not in it."""
    covered: int
    seconds: float
    last: Marginals


def predicted_sse(mechanism: Mechanism, records: I64, sizes: Sequence[int], tables: Sequence[Attributes]) -> float:
    """The expected squared error of raw tables, summed over cells, with the true tables plugged in."""
    kept = kept_attributes(sizes)
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
    """Simulated collections on records, one row of answers each: squared errors of tables of k attributes."""
    start, rng = perf_counter(), np.random.default_rng(seed)
    asked = all_tables(len(sizes), k, most_tables, rng)
    truth = [true_table(records, sizes, table) for table in asked]
    errors: list[tuple[float, float]] = []
    found: list[Table] = []
    answers: Marginals | None = None
    for _ in range(runs):
        tally = simulate_tally(mechanism, records, sizes, rng)
        answers = solve_marginals(mechanism, tally, sizes=sizes, **solve)
        found = answers.tables(asked)
        errors += [_squared(table, true) for table, true in zip(found, truth, strict=True)]
        if advance:
            advance(len(records))
    mean = np.mean(errors, axis=0)
    assert answers is not None
    return MarginalOutcome(
        tables=len(asked),
        runs=runs,
        mean_sse=float(mean[0]),
        raw_sse=float(mean[1]),
        uniform_sse=float(np.mean([np.sum((true - 1 / true.size) ** 2) for true in truth])),
        predicted_sse=predicted_sse(mechanism, records, sizes, asked),
        covered=sum(table.status == "covered" for table in found),
        seconds=perf_counter() - start,
        last=answers,
    )


def _squared(table: Table, true: F64) -> tuple[float, float]:
    """Errors of the consistent table and of the raw one, whose variances are not worked out."""
    raw = table.source.raw(tuple(a for a, size in zip(table.attributes, table.shape, strict=True) if size > 1))
    return float(np.sum((table.consistent - true) ** 2)), float(np.sum((raw.reshape(true.shape) - true) ** 2))


def latent_classes(n: int, m: int, rng: np.random.Generator) -> I64:
    """Binary attributes that three hidden classes make dependent, rare ones last: a stand-in for click data."""
    base = 0.6 * 0.75 ** np.arange(m)
    even = np.arange(m) % 2 == 0
    factors = np.stack([np.full(m, 0.35), np.where(even, 1.9, 0.8), np.where(even, 0.6, 2.4)])
    hidden = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return (rng.random((n, m)) < np.clip(base * factors[hidden], 0.005, 0.97)).astype(np.int64)


def taxi_like(n: int, rng: np.random.Generator) -> I64:
    """Eight binary attributes in four dependent pairs, pairs independent of each other; see docs/maths/marginals.md.

    Order: card, toll, far, night pick-up, night drop-off, Manhattan pick-up, Manhattan drop-off, tip.
    """
    pairs = [(0.55, 0.45, 0.02), (0.10, 0.50, 0.01), (0.30, 0.80, 0.05), (0.70, 0.55 / 0.70, 0.10 / 0.30)]
    first = [rng.random(n) < p for p, _, _ in pairs]
    second = [rng.random(n) < np.where(a, yes, no) for a, (_, yes, no) in zip(first, pairs, strict=True)]
    (card, far, pick, man), (tip, toll, drop, to) = first, second
    return np.stack([card, toll, far, pick, drop, man, to, tip], axis=1).astype(np.int64)


def movie_like(n: int, m: int, rng: np.random.Generator) -> I64:
    """Binary attributes that one hidden trait makes positively dependent."""
    trait = rng.standard_normal(n)[:, None]
    level = np.linspace(1.5, -1.5, m)
    return (rng.random((n, m)) < 1 / (1 + np.exp(-(level + 1.5 * trait)))).astype(np.int64)
