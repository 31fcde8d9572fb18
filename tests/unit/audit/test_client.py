"""Black-box audits: no false alarm on honest sources, power on wrong ones, and the bounds that were published.

Every statistical assertion states its false-alarm probability; coins are seeded, so a run repeats.
"""

from collections.abc import Iterator
from math import exp
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.audit.client import audit_client, audit_values, epsilon_lower
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.statistics.binomial import upper_tail
from tacit.errors import InvalidSpec
from tacit.simulate.coins import SimulationCoins
from tacit.testing.examples import example


class Source:
    """Reports of one mechanism, whatever another one claims."""

    def __init__(self, true: Mechanism, seed: int) -> None:
        self.true, self.coins = true, SimulationCoins(seed)

    def sample(self, mechanism: Mechanism, value: Any, runs: int) -> Iterator[Reports]:
        del mechanism
        half = runs // 2
        for part in (half, runs - half):
            yield self.true.privatize([value] * part, self.coins)


@pytest.mark.parametrize(
    "kind", ["grr", "oue", "olh", "hrr", "ss", "onebit", "one_of", "all_of", "padded", "cms", "memo"]
)
def test_honest_clients_stand(kind: str) -> None:
    """False-alarm probability 0.001 per kind, and seeds are fixed."""
    mechanism = example(kind, "1")
    values = audit_values(mechanism)
    pairs = None if kind == "grr" else [(values[0], values[-1])]
    outcome = audit_client(mechanism, Source(mechanism, 3), runs=2_000, pairs=pairs, pilot_runs=1_000)
    assert not outcome.refuted
    assert -0.2 < outcome.worst.epsilon_lower < 1
    assert len(outcome.pairs) == (10 if kind == "grr" else 1)


@pytest.mark.parametrize(("kind", "size"), [("grr", 8), ("oue", 8), ("olh", 16), ("hrr", 8), ("ss", 8)])
def test_clients_that_spend_twice_the_claim_are_refuted(kind: str, size: int) -> None:
    """At 10,000 reports the bound is within 0.4 of the truth, as the table of published bounds says."""
    fields: dict[str, Any] = (
        {"size": size} | ({"buckets": 4} if kind == "olh" else {}) | ({"subset": 2} if kind == "ss" else {})
    )
    cls: Any = next(entry for entry in tacit.CATALOG if entry.kind == kind)
    claimed, true = cls(epsilon="1", **fields), cls(epsilon="2", **fields)
    outcome = audit_client(claimed, Source(true, 5), runs=10_000, pairs=[(0, 1), (0, 5)])
    assert outcome.refuted
    assert 1.2 < outcome.worst.epsilon_lower < 2


def test_false_alarms_are_rarer_than_the_confidence_says() -> None:
    """400 bounds at 95 %: 20 alarms would be the budget; more than 40 have probability 1e-5 even if it were spent."""
    mechanism = tacit.GRR(4, "1")
    rng = np.random.default_rng(11)
    p, q = float(mechanism.p), float(mechanism.q)
    ks, js = rng.binomial(5_000, p, 400), rng.binomial(5_000, q, 400)
    alarms = int(np.count_nonzero(epsilon_lower(ks, js, 5_000, 0.95) > 1))
    assert float(upper_tail(41, 400, 0.05)) < 1e-4
    assert alarms <= 40


BOUNDS = [  # kind, epsilon, size, runs, published median bound at 99.9 %
    ("grr", 1.0, 4, 10**4, 0.894),
    ("grr", 1.0, 4, 10**5, 0.967),
    ("grr", 1.0, 4, 10**6, 0.989),
    ("grr", 1.0, 4, 10**7, 0.997),
    ("grr", 1.0, 64, 10**4, 0.581),
    ("grr", 1.0, 64, 10**5, 0.866),
    ("grr", 1.0, 64, 10**6, 0.958),
    ("grr", 1.0, 64, 10**7, 0.987),
    ("grr", 4.0, 64, 10**4, 3.65),
    ("grr", 4.0, 64, 10**5, 3.88),
    ("grr", 4.0, 64, 10**6, 3.96),
    ("oue", 1.0, 64, 10**5, 0.960),
    ("oue", 1.0, 64, 10**6, 0.987),
]


@pytest.mark.parametrize(("kind", "epsilon", "size", "runs", "bound"), BOUNDS)
def test_bounds_at_expected_counts_are_the_published_medians(
    kind: str, epsilon: float, size: int, runs: int, bound: float
) -> None:
    """The bound at the expected counts is close to the median; the published ones are simulated to 1 %."""
    odds = exp(epsilon)
    if kind == "grr":
        p, q = odds / (odds + size - 1), 1 / (odds + size - 1)
    else:
        p, q = odds / (2 * (odds + 1)), 1 / (2 * (odds + 1))
    found = float(epsilon_lower(round(runs * p), round(runs * q), runs, 0.999))
    assert found == pytest.approx(bound, abs=0.012 * max(1.0, epsilon))


@pytest.mark.slow_cases("1000000-1.05", "100000-1.05", "100000-1.1")
@pytest.mark.parametrize(
    ("runs", "true", "power"), [(10**5, 1.05, 0.01), (10**5, 1.1, 0.13), (10**5, 1.2, 0.995), (10**6, 1.05, 0.81)]
)
def test_power_is_the_published_one(runs: int, true: float, power: float) -> None:
    """Over 1,000 bounds the standard deviation of a power is at most 0.016: five of them, and rounding."""
    rng, size = np.random.default_rng(7), 64
    p, q = exp(true) / (exp(true) + size - 1), 1 / (exp(true) + size - 1)
    ks, js = rng.binomial(runs, p, 1_000), rng.binomial(runs, q, 1_000)
    assert abs(float(np.mean(epsilon_lower(ks, js, runs, 0.999) > 1)) - power) < 0.08


class FixedCoins:
    """A client that is seeded: whoever knows the seed knows the answer."""

    def __init__(self, *, constant: bool = False) -> None:
        self.constant = constant

    def sample(self, mechanism: Mechanism, value: Any, runs: int) -> Iterator[Reports]:
        yield mechanism.privatize([0 if self.constant else value] * runs, SimulationCoins(1))


def test_fixed_coins_are_noticed_and_a_client_that_ignores_its_input_is_not_accused() -> None:
    mechanism = tacit.OUE(16, "1")
    outcome = audit_client(mechanism, FixedCoins(), runs=2_000, pairs=[(0, 1)])
    assert outcome.refuted and set(outcome.repeats) == {0, 1}
    assert not audit_client(mechanism, FixedCoins(constant=True), runs=2_000, pairs=[(0, 1)]).refuted


def test_high_epsilon_repeats_honestly() -> None:
    mechanism = tacit.GRR(2, "16")
    outcome = audit_client(mechanism, Source(mechanism, 1), runs=2_000)
    assert not outcome.repeats and not outcome.refuted


class LeakySeed:
    """Local hashing whose seed is even for even values: the declared ratio sees nothing, single bits do."""

    def sample(self, mechanism: Mechanism, value: Any, runs: int) -> Iterator[Reports]:
        reports = mechanism.privatize([value] * runs, SimulationCoins(int(value))).copy()
        reports["seed"] = reports["seed"] & np.uint32(0xFFFFFFFE) | np.uint32(value % 2)
        yield reports


def test_values_that_leak_through_the_noise_are_found() -> None:
    outcome = audit_client(tacit.OLH(16, "1"), LeakySeed(), runs=3_000, pairs=[(0, 1)])
    assert outcome.refuted and "bit 0" in outcome.worst.event


@pytest.mark.parametrize(
    "wrong", [{"pairs": []}, {"pairs": [(1, 1)]}, {"runs": 0}, {"confidence": 1.0}, {"delta": 1.0}, {"confidence": 0.1}]
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    mechanism = tacit.GRR(4, "1")
    with pytest.raises(InvalidSpec):
        audit_client(mechanism, Source(mechanism, 1), **({"runs": 10} | wrong))


def test_delta_is_taken_off() -> None:
    assert epsilon_lower(500, 100, 1000, 0.99, delta=0.1) < epsilon_lower(500, 100, 1000, 0.99)
    assert epsilon_lower(0, 0, 10, 0.99) == -np.inf
    assert tacit.GRR(300, "1").size - 1 in audit_values(tacit.GRR(300, "1"))
