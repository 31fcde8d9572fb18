"""Epsilon at a delta: reference values, accountants against each other, shortcuts and refusals."""

from decimal import Decimal
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest
from tests.unit.shuffle.enumeration import table, true_deltas

import tacit
from tacit.core.compose import OneOf
from tacit.core.statistics.binomial import mass
from tacit.device.families.compose import Questions
from tacit.device.numbers.exact import as_probability
from tacit.device.numbers.hashing import bucket, hash32, mix32
from tacit.errors import InvalidSpec
from tacit.shuffle.accounting import published
from tacit.shuffle.accounting.account import ShuffledCrowd, delta_of, epsilon_of
from tacit.shuffle.accounting.cells import cells_of, hashed_cells
from tacit.shuffle.accounting.limit import gaussian_mu
from tacit.shuffle.accounting.solve import rounded
from tacit.shuffle.accounting.variation import Diagnostic, variation_delta, variation_epsilon

# Ideal local hashing with the best number of buckets, delta = 1e-9: epsilon at a million and at 100,000 respondents,
# and that of clones at 100,000.
HASHED = {"1": (0.0039, 0.0129, 0.0229), "2": (0.0102, 0.0341, 0.0647), "4": (0.0346, 0.1149, 0.2349),
          "6": (0.1006, 0.3329, 0.7178)}  # fmt: skip


@pytest.mark.parametrize("local", HASHED)
def test_local_hashing_of_large_crowds(local: str) -> None:
    mechanism, (million, fewer, clones) = tacit.OLH(size=1024, epsilon=local), HASHED[local]
    for n, wanted, off in ((10**6, million, 8e-3), (10**5, fewer, 4e-3)):
        found = ShuffledCrowd(mechanism, n, hashing="pairwise").epsilon(1e-9)
        assert found is not None and float(found) == pytest.approx(wanted, rel=off)
    among = ShuffledCrowd(mechanism, 10**5, accountant="amp_clone").epsilon(1e-9)
    assert among is not None and float(among) == pytest.approx(clones, rel=2e-3)


def test_a_public_value_of_clones() -> None:
    # Public code of the authors brackets it between 0.16754 and 0.17279, and prints 0.53780 for the closed form.
    mechanism = tacit.GRR(size=2, epsilon="4")
    found = ShuffledCrowd(mechanism, 10**5, accountant="amp_clone").epsilon(1e-6)
    assert found == Decimal("0.1698")
    odds = float(mechanism.realised_odds())
    assert published.fmt(odds, n=10**5, delta=1e-6) == pytest.approx(0.53780, abs=5e-6)


def test_without_knowing_how_hashes_collide_the_claim_is_larger() -> None:
    for local, looser in (("1", 0.0150), ("4", 0.1157)):
        assert float(epsilon_of(tacit.OLH(size=1024, epsilon=local), 1e-9, n=10**5)) == pytest.approx(looser, rel=3e-3)


def test_the_hash_of_devices_has_values_that_never_collide() -> None:
    # Their spread values differ in the top bit alone, so that their hashes differ by a constant, 18 % of the range,
    # whatever the seed: never one bucket of six or more, and more often than they should one of two.
    first, second = 81_226, 85_608
    assert mix32(first) ^ mix32(second) == 1 << 31
    gaps = {(hash32(seed, first) - hash32(seed, second)) % (1 << 32) for seed in range(2_000)}
    assert gaps == {0x2E350000, (1 << 32) - 0x2E350000}
    # Six buckets: the two values never hide behind each other, which is what the claim must be made for.
    mechanism = tacit.OLH(size=1 << 17, epsilon="1", buckets=6)
    assert not any(bucket(seed, first, 6) == bucket(seed, second, 6) for seed in range(2_000))
    assert cells_of(mechanism) == hashed_cells(as_probability(mechanism.low), 6, Fraction(0))


def test_claims_hold_and_the_next_smaller_one_does_not() -> None:
    for mechanism in (tacit.GRR(size=16, epsilon="3"), tacit.OLH(size=64, epsilon="3")):
        crowd = ShuffledCrowd(mechanism, 20_000)
        claim = crowd.epsilon(1e-7)
        assert claim is not None and len(claim.as_tuple().digits) == 4
        assert crowd.holds(claim, 1e-7)
        smaller = claim - Decimal(1).scaleb(claim.adjusted() - 3)
        assert not crowd.holds(smaller, 1e-7)


# The variation-ratio bound is no guarantee.


@pytest.mark.parametrize(("n", "epsilon"), [(4, 1.0), (4, 1.2)])
def test_variation_ratios_fall_below_the_truth(n: int, epsilon: float) -> None:
    mechanism = tacit.GRR(size=3, epsilon="1.5")
    cells = cells_of(mechanism)
    assert cells is not None
    truth = true_deltas(table(mechanism), n, [epsilon], pairs=[(0, 1)])[0]
    said = variation_delta(cells, epsilon, n=n)
    assert isinstance(said, Diagnostic) and said.value < truth <= delta_of(mechanism, epsilon, n=n)
    reference = {1.0: (0.1001, 0.0918), 1.2: (0.0592, 0.0302)}[epsilon]
    assert (truth, said.value) == pytest.approx(reference, rel=2e-3)


def test_variation_ratios_reproduce_public_numbers() -> None:
    for mechanism, epsilon in (
        (tacit.GRR(size=100, epsilon="3"), 0.010210), (tacit.GRR(size=100, epsilon="5"), 0.059503),
        (tacit.HRR(size=1024, epsilon="3", skip_zero=False), 0.017629), (tacit.GRR(size=2, epsilon="3"), 0.025372),
        (tacit.SS(size=100, epsilon="3", subset=5), 0.017954),
    ):  # fmt: skip
        cells = cells_of(mechanism)
        assert cells is not None
        assert variation_epsilon(cells, 1e-8, n=10**6).value == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize("n", [10**4, pytest.param(10**6, marks=pytest.mark.slow)])
def test_large_crowds_are_within_two_per_cent_of_variation_ratios(n: int) -> None:
    kinds = [tacit.GRR(size=100, epsilon="3"), tacit.OLH(size=100, epsilon="3"), tacit.OUE(size=100, epsilon="2")]
    for mechanism in kinds:
        cells = cells_of(mechanism)
        assert cells is not None
        low, claimed = variation_epsilon(cells, 1e-8, n=n).value, float(epsilon_of(mechanism, 1e-8, n=n))
        assert low <= claimed * (1 + 1e-4) and claimed <= 1.02 * low


# Looser reductions stay above.


def simple_exact(mechanism: Any, n: int, epsilon: float) -> float:
    """(1 - gamma) E[(1 - E N'/N)_+]: only those who do not send noise are hidden, by noise on two values alone."""
    cells = cells_of(mechanism)
    assert cells is not None and cells.b == 0
    a, gamma = float(cells.a), float(cells.gamma)
    own = np.arange(int(n * a + 12 * (n * a) ** 0.5 + 20))
    law = mass(own, n - 1, a)[:, None] * mass(own[None, :], (n - 1 - own)[:, None], a / (1 - a))
    ratio = own[None, :] / (1 + own[:, None])
    return float((1 - gamma) * (law * np.maximum(1 - np.exp(epsilon) * ratio, 0)).sum())


def test_blanket_below_simple_reduction_below_closed_form() -> None:
    mechanism, n, delta = tacit.GRR(size=4, epsilon="2"), 2_400, 1e-6
    closed = published.bbgn(float(mechanism.realised_odds()), n=n, delta=delta, size=4)
    assert simple_exact(mechanism, n, closed) <= delta
    for epsilon in (0.15, 0.3):
        assert delta_of(mechanism, epsilon, n=n) <= simple_exact(mechanism, n, epsilon)


# Shortcuts and refusals.


def test_nobody_hides_alone() -> None:
    mechanism = tacit.GRR(size=4, epsilon="2")
    for n in (0, 1):
        assert epsilon_of(mechanism, 1e-9, n=n) == Decimal(2)
    assert delta_of(mechanism, 2.0, n=1) == 0.0
    assert epsilon_of(mechanism, 1e-9, n=1, fakes=5_000) < Decimal("0.3")


def test_a_generous_delta_needs_no_epsilon() -> None:
    assert epsilon_of(tacit.GRR(size=4, epsilon="1"), 0.5, n=1000) == 0


def test_a_small_crowd_keeps_the_local_epsilon() -> None:
    assert epsilon_of(tacit.GRR(size=1024, epsilon="8"), 1e-9, n=20) == Decimal(8)


def test_shares_are_rounded_up() -> None:
    mechanism = tacit.GRR(size=4, epsilon={"of": "1", "share": "1/3"})  # pyright: ignore
    local = epsilon_of(mechanism, 1e-9, n=1)
    assert Fraction(local) * 3 > 1 and float(local) == pytest.approx(1 / 3)


def test_kinds_without_cells_hide_among_clones() -> None:
    mechanism = tacit.DiscreteLaplace(top=4, epsilon="1")
    assert ShuffledCrowd(mechanism, 1000).accountant == "amp_clone"
    with pytest.raises(InvalidSpec, match="must be amp_clone for dlap"):
        ShuffledCrowd(mechanism, 1000, accountant="amp_blanket")
    assert epsilon_of(mechanism, 1e-6, n=10**5) == epsilon_of(tacit.OneBit(top=4, epsilon="1"), 1e-6, n=10**5)


def test_a_family_is_accounted_for_by_group() -> None:
    family = OneOf(family=Questions(mechanisms=(tacit.GRR(size=2, epsilon="1"), tacit.GRR(size=5, epsilon="1"))))
    with pytest.raises(InvalidSpec, match="least size of its own group"):
        epsilon_of(family, 1e-9, n=1000)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_deltas_that_mean_nothing_are_refused(delta: float) -> None:
    with pytest.raises(InvalidSpec, match="delta"):
        epsilon_of(tacit.GRR(size=2, epsilon="1"), delta, n=100)


def test_the_gaussian_limit_of_published_points() -> None:
    points = {0.1: 0.01992, 0.2: 0.03881, 0.3: 0.05734, 0.5: 0.09369, 0.8: 0.14702, 1.0: 0.18197}
    for epsilon, mu in points.items():
        assert gaussian_mu(epsilon, 1e-9) == pytest.approx(mu, abs=5e-6)


def test_claims_round_up() -> None:
    assert rounded(0.169770) == Decimal("0.1698") and rounded(1.0) == 1 and rounded(log(2)) == Decimal("0.6932")
