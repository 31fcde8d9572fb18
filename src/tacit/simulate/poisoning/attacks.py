"""Fake reports: at random (RPA), honest reports on a target (RIA), and reports that gain the most (MGA).

Cao, Jia and Gong, "Data poisoning attacks to local differential privacy protocols", USENIX Security 2021, section 4;
here for every oracle. RIA has the law of honest respondents who hold a target, so that nobody can tell it from them.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from tacit import kernels
from tacit.arrays import F64, I64, U8
from tacit.core.estimate import check_choice
from tacit.core.mechanism import CodeCounting, Mechanism, Oracle, Reports
from tacit.core.pure import PureOracle
from tacit.core.wrapper import Wrapper
from tacit.errors import InvalidSpec
from tacit.oracles.blocks import SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import LocalHashOracle
from tacit.oracles.unary import UnaryOracle
from tacit.simulate.coins import SimulationCoins

AttackName = Literal["rpa", "ria", "mga"]
SEARCH = 1 << 20
"""Hash seeds that an attacker tries unless it is said, all fakes together."""
_AT_ONCE = 1 << 17
_POOL = 256
"""Random reports among which the best are taken, for kinds without an attack of their own."""


@dataclass(frozen=True)
class Attack:
    """Who attacks how: fakes that push the targets."""

    name: AttackName
    targets: I64
    padded: bool = True
    """Unary fakes set as many bits as honest reports do on average."""
    support: float = 1.0
    """The share of the targets that each fake pushes, drawn anew for every fake."""
    search: int = SEARCH

    def __post_init__(self) -> None:
        """Raise InvalidSpec for an unknown attack or parameters out of range."""
        check_choice("poisoning", "attack", self.name, get_args(AttackName))
        if len(self.targets) == 0 or len(np.unique(self.targets)) < len(self.targets):
            raise InvalidSpec("poisoning: targets must be one or more different values")
        if not 0 < self.support <= 1:
            raise InvalidSpec(f"poisoning: support is {self.support:g}, must be above 0 and at most 1")
        if self.search < 1:
            raise InvalidSpec(f"poisoning: search is {self.search}, must be at least 1 seed")

    @property
    def each(self) -> int:
        """How many targets one fake pushes."""
        return max(1, round(self.support * len(self.targets)))


def fake_reports(mechanism: Mechanism, attack: Attack, count: int, seed: int) -> Reports:
    """Return so many fake reports."""
    rng = np.random.default_rng([0x66616B65, seed])
    if attack.name == "ria":
        return mechanism.privatize(rng.choice(attack.targets, count), SimulationCoins(seed + (1 << 40)))
    oracle = mechanism
    # A server cannot tell whether a wrapper ran, so that fakes are made of what the oracle inside accepts.
    while isinstance(oracle, Wrapper):
        oracle = oracle.sends
    if attack.name == "rpa":
        return random_reports(oracle, count, rng)
    return _most_gain(oracle, attack, count, rng)


def random_reports(oracle: Mechanism, count: int, rng: np.random.Generator) -> Reports:
    """Return reports drawn evenly from all that the mechanism accepts, or honest ones on random values."""
    if isinstance(oracle, UnaryOracle):
        return np.packbits(rng.integers(2, size=(count, oracle.size), dtype=np.uint8), axis=1, bitorder="little")
    if isinstance(oracle, LocalHashOracle):
        return _hashed(oracle, rng.integers(1 << 32, size=count), rng.integers(oracle.g, size=count))
    if isinstance(oracle, SS):
        return _packed(_random_bits(np.zeros((count, oracle.size), np.uint8), oracle.k, rng))
    if isinstance(oracle, CodeCounting):
        return _random_codes(oracle, count, rng)
    values = rng.integers(oracle.value_count, size=count)
    return oracle.privatize(values, SimulationCoins(int(rng.integers(1 << 40))))


def _random_codes(oracle: CodeCounting, count: int, rng: np.random.Generator) -> Reports:
    """Codes drawn evenly from those that are accepted: some kinds never send some of theirs."""
    # Enough to be left with `count` of them even if only about one code in eight is ever sent.
    drawn = rng.integers(oracle.codes.start, oracle.codes.stop, size=8 * count + 64).astype(oracle.report_dtype)
    return drawn[oracle.valid(drawn)][:count]


def _most_gain(oracle: Mechanism, attack: Attack, count: int, rng: np.random.Generator) -> Reports:
    if isinstance(oracle, GRR):
        return rng.choice(attack.targets, count).astype(oracle.report_dtype)
    if isinstance(oracle, UnaryOracle):
        ones = _pushed(oracle.size, attack, count, rng)
        usual = round(float(oracle.p + (oracle.size - 1) * oracle.q))
        return _packed(_random_bits(ones, usual, rng, avoid=attack.targets) if attack.padded else ones)
    if isinstance(oracle, SS):
        ones = _pushed(oracle.size, attack, count, rng, most=oracle.k)
        return _packed(_random_bits(ones, oracle.k, rng, avoid=attack.targets))
    if isinstance(oracle, LocalHashOracle):
        return _searched_seeds(oracle, attack, count, rng)
    if isinstance(oracle, HRR):
        return _best_rows(oracle, attack, count, rng)
    return _best_of_pool(oracle, attack, count, rng)


def _pushed(size: int, attack: Attack, count: int, rng: np.random.Generator, *, most: int | None = None) -> U8:
    """Rows of bits with the pushed targets set, in every row a random choice of them."""
    each = attack.each if most is None else min(attack.each, most)
    ones = np.zeros((count, size), np.uint8)
    # Sorting random keys draws a subset without replacement in all rows at once.
    order = np.argsort(rng.random((count, len(attack.targets))), axis=1)[:, :each]
    np.put_along_axis(ones, attack.targets[order], 1, axis=1)
    return ones


def _random_bits(ones: U8, total: int, rng: np.random.Generator, *, avoid: I64 | None = None) -> U8:
    """Rows with random further bits set, until each has so many; `avoid` stay as they are."""
    keys = rng.random(ones.shape)
    keys[ones == 1] = -1.0  # Those that are set come first and stay.
    if avoid is not None:
        # Random keys are below 1, so that 2 comes last: a target that this fake does not push stays clear.
        keys[:, avoid] = np.where(ones[:, avoid] == 1, -1.0, 2.0)
    filled = ones.copy()
    np.put_along_axis(filled, np.argsort(keys, axis=1)[:, :total], 1, axis=1)
    return filled


def _packed(bits: U8) -> U8:
    return np.packbits(bits, axis=1, bitorder="little")


def _hashed(oracle: LocalHashOracle, seeds: I64, buckets: I64) -> Reports:
    reports = np.empty(len(seeds), oracle.report_dtype)
    reports["seed"], reports["bucket"] = seeds, buckets
    return reports


def _searched_seeds(oracle: LocalHashOracle, attack: Attack, count: int, rng: np.random.Generator) -> Reports:
    """The seeds, out of those that were tried, that send the most targets to one bucket; each is used once."""
    best_hits, best = np.zeros(0, np.int64), _hashed(oracle, np.zeros(0, np.int64), np.zeros(0, np.int64))
    targets = attack.targets.astype(np.uint64)
    for start in range(0, max(attack.search, count), _AT_ONCE):
        seeds = rng.integers(1 << 32, size=min(_AT_ONCE, max(attack.search, count) - start), dtype=np.uint32)
        buckets = kernels.buckets_of(seeds[:, None], targets[None, :], oracle.g)
        hits = np.stack([(buckets == y).sum(axis=1) for y in range(oracle.g)], axis=1)
        found = _hashed(oracle, seeds.astype(np.int64), hits.argmax(axis=1))
        best_hits, best = np.append(best_hits, hits.max(axis=1)), np.append(best, found)
        # Only the best so far are kept, so that memory does not grow with the search.
        keep = np.argsort(-best_hits, kind="stable")[:count]
        best_hits, best = best_hits[keep], best[keep]
    return best


def _best_rows(oracle: HRR, attack: Attack, count: int, rng: np.random.Generator) -> Reports:
    """Rows of the Hadamard matrix whose signs agree at the most targets, with that sign; the best, drawn evenly."""
    rows = np.arange(oracle.first, oracle.order, dtype=np.uint64)
    odd = np.bitwise_count(rows[:, None] & attack.targets.astype(np.uint64)[None, :]) & 1
    minus = odd.sum(axis=1, dtype=np.int64)
    # The sign of a report is free: a row that is -1 at most targets is as good as one that is +1 there.
    agreeing = np.maximum(minus, len(attack.targets) - minus)
    best = np.flatnonzero(agreeing == agreeing.max())
    chosen = rng.choice(best, count)
    signs = (minus[chosen] * 2 > len(attack.targets)).astype(np.uint64)
    return (rows[chosen] << np.uint64(1) | signs).astype(oracle.report_dtype)


def _best_of_pool(oracle: Mechanism, attack: Attack, count: int, rng: np.random.Generator) -> Reports:
    """The best of a pool of random reports and honest ones on targets, scored one by one; sent again and again."""
    if not isinstance(oracle, Oracle):
        raise InvalidSpec(f"poisoning: there is no attack mga on {oracle.kind}; take rpa or ria, or an oracle")
    honest = oracle.privatize(rng.choice(attack.targets, _POOL), SimulationCoins(int(rng.integers(1 << 40))))
    pool = np.concatenate([random_reports(oracle, _POOL, rng), honest])
    scores = np.array([target_sum(oracle, pool[i : i + 1], attack.targets) for i in range(len(pool))])
    best = np.argsort(-scores, kind="stable")[: max(1, len(pool) // 100)]
    return pool[rng.choice(best, count)]


def target_sum(oracle: Oracle, reports: Reports, targets: I64) -> float:
    """Return the estimated share of all targets together, from these reports alone."""
    return float(oracle.estimate(oracle.tally(reports), targets).value.sum())


def predicted_target_sum(oracle: Mechanism, attack: Attack, fakes: Reports) -> float | None:
    """Return what the fakes alone are expected to say of the targets, by formula; None where there is none.

    A fake that supports s of r targets says (s - r q)/(p - q) of them together (Wang's equation (3.1)).
    """
    r = len(attack.targets)
    # All of these respondents hold a target, and estimates are unbiased, so that the targets' shares add up to one.
    if attack.name == "ria":
        return 1.0
    if not isinstance(oracle, PureOracle):
        return None
    p, q = float(oracle.p), float(oracle.q)
    supported = _expected_support(oracle, attack, fakes)
    return None if supported is None else (supported - r * q) / (p - q)


def _expected_support(oracle: PureOracle, attack: Attack, fakes: Reports) -> float | None:
    r = len(attack.targets)
    # A report of randomised response names one value, so that it supports one target at the most.
    if isinstance(oracle, GRR):
        return r / oracle.size if attack.name == "rpa" else 1.0
    if isinstance(oracle, UnaryOracle):
        return r / 2 if attack.name == "rpa" else float(attack.each)
    if isinstance(oracle, SS):
        return r * oracle.k / oracle.size if attack.name == "rpa" else float(min(attack.each, oracle.k))
    if isinstance(oracle, LocalHashOracle):
        return r / oracle.g if attack.name == "rpa" else _mean_matches(oracle, fakes, attack.targets)
    return None


def _mean_matches(oracle: LocalHashOracle, fakes: Reports, targets: I64) -> float:
    """How many targets the seeds that were found support, which depends on the luck of the search alone."""
    matches: F64 = kernels.hash_matches(fakes["seed"], fakes["bucket"], oracle.g, targets.astype(np.uint64)).astype(
        np.float64
    )
    return float(matches.mean()) if len(matches) else 0.0
