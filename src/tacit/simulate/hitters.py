"""Simulated searches for heavy hitters: populations, the registry of protocols, and one search from data to score.

Protocols with a plan send real reports through the devices' code; baselines of the literature are simulated in
aggregate. Reference for data and baselines: Wang's dissertation, chapter 4.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import I64, U64
from tacit.baselines import hitters as baselines
from tacit.baselines.hitters import HitterList, TrueCounts
from tacit.core.statistics.normal import normal_isf
from tacit.device.domains.domain import Bits, Domain
from tacit.errors import InvalidSpec
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.metrics import f1_score, hit_variance, ncr_score
from tacit.tasks.hitters.hitters import find_hitters
from tacit.tasks.hitters.plan import (
    MOST_EVALUATIONS,
    HittersPlan,
    plan_lengths,
    plan_naive,
    plan_pem,
    plan_pem1,
    prefix_lengths,
)
from tacit.tasks.hitters.spelling import Spelling, spelling_of

Advance = Callable[[float], None]

# Respondents that are privatized at a time.
_CHUNK = 1 << 16
_SYN_MEAN = 20.0


@dataclass(frozen=True, eq=False)
class Population:
    """Respondents by value of a domain."""

    domain: Domain
    values: U64
    counts: I64

    @property
    def n(self) -> int:
        """Number of respondents."""
        return int(self.counts.sum())

    def top(self, k: int) -> dict[int, int]:
        """Return the k most frequent values and their counts, most frequent first; ties are broken by the index."""
        order = np.lexsort((self.values, -self.counts))[:k]
        return dict(zip(self.values[order].tolist(), self.counts[order].tolist(), strict=True))


def syn(n: int, bits: int, seed: int) -> Population:
    """Draw ranks floor(Exponential(mean 20)), each a random bit string: SYN of Wang's dissertation, section 4.4."""
    rng = np.random.default_rng([0x5E5, seed])
    counts = np.bincount(np.floor(rng.exponential(_SYN_MEAN, n)).astype(np.int64))
    drawn = rng.integers(0, 1 << 64, len(counts), dtype=np.uint64) >> np.uint64(64 - bits)
    values, places = np.unique(drawn, return_inverse=True)  # Short strings may collide.
    return Population(Bits("value", bits), values, np.bincount(places, counts).astype(np.int64))


@dataclass(frozen=True)
class Search:
    """What is looked for, and by which means."""

    epsilon: str
    k: int
    threshold: float | None = None
    groups: int | None = None
    most_evaluations: float = MOST_EVALUATIONS


@dataclass(frozen=True)
class HittersOutcome:
    """One simulated search."""

    method: str
    f1: float
    ncr: float
    variance: float | None
    """Mean squared error of the counts of the hits."""
    found: list[dict[str, Any]]
    seconds: float
    walk_seconds: float
    evaluations: float
    plan: Mapping[str, Any] = field(default_factory=dict[str, Any])
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class HitterProtocol:
    """A protocol: real reports through devices where a plan is given, else an aggregate simulation."""

    name: str
    about: str
    plan: Callable[[Spelling, Search, int], HittersPlan] | None = None
    plain: bool = False
    simulate: Callable[[TrueCounts, float, int, np.random.Generator, float | None], HitterList] | None = None


def _pem(spelling: Spelling, search: Search, n: int) -> HittersPlan:
    return plan_pem(
        spelling, epsilon=search.epsilon, n=n, k=search.k, groups=search.groups,
        most_evaluations=search.most_evaluations,
    )  # fmt: skip


def _pem_plain(spelling: Spelling, search: Search, n: int) -> HittersPlan:
    lengths = prefix_lengths(spelling.digits, search.k, search.groups or 6, fanout=spelling.fanout)
    return plan_lengths(spelling, search.epsilon, n, search.k, lengths)


def _pem1(spelling: Spelling, search: Search, n: int) -> HittersPlan:
    return plan_pem1(spelling, epsilon=search.epsilon, n=n, k=search.k)


def _naive(spelling: Spelling, search: Search, n: int) -> HittersPlan:
    return plan_naive(spelling, epsilon=search.epsilon, n=n, k=search.k)


def _baseline(function: Callable[..., HitterList], **settings: Any) -> Any:
    """A baseline with its settings fixed, as a function of population and search; it has no use for a threshold."""

    def run(truth: TrueCounts, epsilon: float, k: int, rng: np.random.Generator, threshold: float | None) -> HitterList:
        del threshold
        return function(truth, epsilon, k, rng, **settings)

    return run


def _private_trie(
    truth: TrueCounts, epsilon: float, k: int, rng: np.random.Generator, threshold: float | None
) -> HitterList:
    if threshold is None:
        raise InvalidSpec("privtrie: needs a threshold, the share from which on values are looked for")
    return baselines.private_trie(truth, epsilon, k, rng, threshold=threshold)


_C, _S, _F = baselines.channels, baselines.segment_pairs, baselines.fragments

METHODS: tuple[HitterProtocol, ...] = (
    HitterProtocol("pem", "prefix extension, planned by detectable share, ranked by all groups", _pem),
    HitterProtocol("pem-plain", "prefix extension as in the literature: k prefixes kept, ranked by the last group",
                   _pem_plain, plain=True),
    HitterProtocol("pem1", "prefix extension by one digit per group", _pem1, plain=True),
    HitterProtocol("naive", "whole values, all of them looked at; small domains only", _naive, plain=True),
    HitterProtocol("hash", "multiple channels, blocks of 8 bits, 10 % of the respondents test",
                   simulate=_baseline(_C)),
    HitterProtocol("hash-split", "multiple channels, blocks of 8 bits, half of epsilon tests",
                   simulate=_baseline(_C, partitioned=False)),
    HitterProtocol("hash-16", "multiple channels, blocks of 16 bits, 10 % of the respondents test",
                   simulate=_baseline(_C, block=16)),
    HitterProtocol("hash-16-split", "multiple channels, blocks of 16 bits, half of epsilon tests",
                   simulate=_baseline(_C, block=16, partitioned=False)),
    HitterProtocol("spm", "segment pairs of 16 bits, 10 % of the respondents test", simulate=_baseline(_S, block=16)),
    HitterProtocol("spm-split", "segment pairs of 16 bits, three reports of a third of epsilon",
                   simulate=_baseline(_S, block=16, partitioned=False)),
    HitterProtocol("treehist", "a prefix of whole bytes and the word, half of epsilon each",
                   simulate=_baseline(baselines.tree_histogram)),
    HitterProtocol("sfp", "sequence fragment puzzle, 10 % of the respondents send words", simulate=_baseline(_F)),
    HitterProtocol("sfp-split", "sequence fragment puzzle, half of epsilon for the word",
                   simulate=_baseline(_F, partitioned=False)),
    HitterProtocol("privtrie", "an interactive trie of bytes, with a threshold", simulate=_private_trie),
)  # fmt: skip
"""Every protocol. Those without a plan are simulated in aggregate, over bit strings alone, for comparison."""


def find_hitters_method(name: str) -> HitterProtocol:
    """Return the protocol of a name; InvalidSpec lists the known ones."""
    for method in METHODS:
        if method.name == name:
            return method
    raise InvalidSpec(f"method is {name[:40]!r}, must be one of {', '.join(method.name for method in METHODS)}")


def simulate_hitters(
    population: Population, search: Search, method: str, *, seed: int, advance: Advance | None = None
) -> HittersOutcome:
    """Run one search and score it by F1 and NCR, against the k most frequent values or those above the threshold."""
    chosen = find_hitters_method(method)
    if not population.n:
        raise InvalidSpec("heavy hitters: there are no respondents")
    truth = population.top(search.k if search.threshold is None else len(population.values))
    if search.threshold is not None:
        truth = {value: count for value, count in truth.items() if count > search.threshold * population.n}
    start = perf_counter()
    if chosen.plan is None:
        return _scored(population, truth, method, _aggregate(population, search, chosen, seed), start)
    spelling = spelling_of(population.domain)
    plan = chosen.plan(spelling, search, population.n)
    tally = _collect(plan, population, seed, advance)
    begun = perf_counter()
    # With a threshold the number of hits is unknown, so the list is given room before it is cut at the threshold.
    found = find_hitters(
        plan.mechanism, tally, spelling, k=search.k if search.threshold is None else 4 * search.k, keep=plan.keep,
        threshold=search.threshold, plain=chosen.plain, most_evaluations=search.most_evaluations,
        advance=None if advance is None else lambda done: advance(population.n * done / max(1.0, plan.evaluations)),
    )  # fmt: skip
    walk = perf_counter() - begun
    rows = [vars(row) | {"frequency": row.share} for row in found.to_list()]
    return _outcome(population, truth, method, rows, start, walk, found.evaluations, plan.to_row(), found.flags)


def work_of(population: Population) -> float:
    """Return the total that `advance` reaches over one search: collecting and walking count alike."""
    return 2.0 * population.n


def _collect(plan: HittersPlan, population: Population, seed: int, advance: Advance | None) -> Any:
    """The tally of simulated respondents in random order, chunk by chunk."""
    # Shuffled, as devices do not report in the order of their values; chunks then differ by chance alone.
    values = np.repeat(population.values, population.counts)
    np.random.default_rng([0xC0FFEE, seed]).shuffle(values)
    mechanism, coins = plan.mechanism, SimulationCoins(seed)
    tally = mechanism.tally(mechanism.decode(b""))
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        tally = tally + mechanism.tally(mechanism.privatize(chunk, coins))
        if advance:
            advance(len(chunk))
    return tally


def _aggregate(population: Population, search: Search, method: HitterProtocol, seed: int) -> HitterList:
    spelling = spelling_of(population.domain)
    if spelling.fanout != 2 or spelling.size != 1 << spelling.digits:
        raise InvalidSpec(f"{method.name}: is simulated over bit strings and bytes alone")
    assert method.simulate is not None
    truth = TrueCounts(population.values, population.counts, spelling.digits)
    rng = np.random.default_rng([0xBA5E, seed])
    return method.simulate(truth, float(search.epsilon), search.k, rng, search.threshold)


def _scored(
    population: Population, truth: dict[int, int], method: str, found: HitterList, start: float
) -> HittersOutcome:
    """The outcome of a baseline, whose list has normal 95 % intervals."""
    half = normal_isf(0.025) * found.deviation
    columns = (found.values, found.share, found.share - half, found.share + half, found.deviation)
    names = ("index", "frequency", "low", "high", "standard_error")
    lists = zip(*(column.tolist() for column in columns), strict=True)
    rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in lists]
    return _outcome(population, truth, method, rows, start, 0.0, 0.0, {}, ())


def _outcome(
    population: Population, truth: dict[int, int], method: str, rows: list[dict[str, Any]], start: float, walk: float,
    evaluations: float, plan: Mapping[str, Any], flags: tuple[str, ...],
) -> HittersOutcome:  # fmt: skip
    indices = [row["index"] for row in rows]
    counts = {row["index"]: row["frequency"] * population.n for row in rows}
    return HittersOutcome(
        method=method,
        f1=f1_score(truth, indices),
        ncr=ncr_score(list(truth), indices),
        variance=hit_variance(truth, counts),
        found=[{"value": population.domain.decode(row["index"])} | _shown(row) for row in rows],
        seconds=perf_counter() - start,
        walk_seconds=walk,
        evaluations=evaluations,
        plan=plan,
        flags=flags,
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    names = ("frequency", "low", "high", "standard_error", "noise_probability", "score")
    return {name: row[name] for name in names if name in row}
