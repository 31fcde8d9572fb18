"""Detectors: honest crowds of every shape alarm no more often than the budget, and attacks show as they should.

Seeds are fixed. Where alarms are counted, the bound is one that the stated budget exceeds with probability below 1e-4.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.core.mechanism import Reports
from tacit.core.statistics.binomial import upper_tail
from tacit.errors import InvalidSpec
from tacit.integrity.cosupport import co_support
from tacit.integrity.detectors import det_jump, det_ones, det_seed, det_sum, poisson_tail
from tacit.integrity.influence import influence_cap
from tacit.integrity.inspection import inspect_reports, repaired_estimate
from tacit.integrity.repair import rec_drop, repair
from tacit.integrity.structure import count_laws, pair_law, structured, supported_counts
from tacit.integrity.tails import ALPHA, spent_on_batch, upper_tail_of_sum
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.population import zipf_counts
from tacit.testing.examples import example

KINDS: dict[str, Callable[..., Any]] = {
    "oue": tacit.OUE,
    "sue": tacit.SUE,
    "olh": tacit.OLH,
    "ss": tacit.SS,
    "hrr": tacit.HRR,
}
SHAPES: dict[str, Callable[[int, int], Any]] = {
    "zipf": zipf_counts,
    "one value": lambda d, n: np.bincount(np.full(n, 3), minlength=d),
    "empty cells": lambda d, n: np.bincount(np.arange(n) % 3, minlength=d),
    "ties": lambda d, n: np.bincount(np.arange(n) % d, minlength=d),
}


def alarms(mechanism: Any, counts: Any, seeds: int) -> int:
    values, coins = np.repeat(np.arange(len(counts)), counts), SimulationCoins(9)
    return sum(inspect_reports(mechanism, mechanism.privatize(values, coins)).state == "alarm" for _ in range(seeds))


@pytest.mark.parametrize("kind", KINDS)
def test_clean_seeds_alarm_no_more_than_the_budget(kind: str) -> None:
    """200 clean crowds at 1 % each: 10 alarms or more have probability 6e-5 where all of the budget is spent."""
    assert float(upper_tail(10, 200, ALPHA)) < 1e-4
    assert alarms(KINDS[kind](12, "1"), zipf_counts(12, 400), 200) < 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [30, 3000])
def test_200_clean_seeds_of_every_shape_alarm_no_more_than_the_budget(kind: str, shape: str, n: int) -> None:
    """200 clean crowds at 1 % each: 12 alarms or more have probability 2e-6, in any of 40 cases below 1e-4."""
    assert 40 * float(upper_tail(12, 200, ALPHA)) < 1e-4
    assert alarms(KINDS[kind](12, "1"), SHAPES[shape](12, n), 200) < 12


@pytest.mark.parametrize("kind", ["oue", "olh", "ss"])
@pytest.mark.parametrize("shape", SHAPES)
def test_honest_data_of_every_shape_is_quiet(kind: str, shape: str) -> None:
    """Few and many reports, small and large epsilon: 60 crowds in all, of which 6 alarm with probability 5e-5."""
    assert float(upper_tail(6, 60, ALPHA)) < 1e-4
    total = sum(
        alarms(KINDS[kind](10, epsilon), SHAPES[shape](10, n), 10) for epsilon in ("0.5", "8") for n in (10, 100, 500)
    )
    assert total < 6


def poisoned(mechanism: Any, n: int, m: int, targets: Any, *, padded: bool = True, seed: int = 1) -> Reports:
    from tacit.simulate.poisoning.attacks import Attack, fake_reports

    counts = zipf_counts(mechanism.size, n)
    genuine = mechanism.privatize(np.repeat(np.arange(mechanism.size), counts), SimulationCoins(seed))
    fakes = fake_reports(mechanism, Attack("mga", np.asarray(targets), padded, search=1 << 17), m, seed)
    return np.concatenate([genuine, fakes])


def test_the_sum_sees_fakes_without_padding_and_nothing_of_padded_ones() -> None:
    """Unpadded MGA of 1 %: Z is -15 for OUE and -25 for SUE; padded it moves by less than one half."""
    for kind, expected in ((tacit.OUE, -15), (tacit.SUE, -25)):
        mechanism = kind(128, "1")
        for padded, centre, within in ((False, expected, 4.0), (True, 0.0, 4.0)):
            reports = poisoned(mechanism, 100_000, 1_000, np.arange(50, 60), padded=padded)
            found = det_sum(mechanism, len(reports), mechanism.tally(reports).cells)
            assert found is not None and abs(found.statistic - centre) < within
            assert (found.p_value < 1e-6) == (not padded)


def test_ones_see_constant_numbers_of_bits_and_both_extremes() -> None:
    mechanism = tacit.OUE(128, "1")
    for padded in (False, True):
        found = det_ones(mechanism, poisoned(mechanism, 50_000, 1_000, np.arange(50, 60), padded=padded))
        assert found is not None and found.p_value < 1e-6
    assert det_ones(tacit.OLH(16, "1"), np.empty(0, tacit.OLH(16, "1").report_dtype)) is None


def test_seeds_that_are_used_again_are_seen() -> None:
    mechanism = tacit.OLH(64, "1")
    reports = poisoned(mechanism, 20_000, 0, np.arange(4)).copy()
    assert all(found.p_value > 1e-4 for found in det_seed(mechanism, reports))
    reports["seed"][:300] = 12345
    assert min(found.p_value for found in det_seed(mechanism, reports)) < 1e-12
    rows = tacit.HRR(64, "1")
    skewed = rows.privatize(np.zeros(20_000, np.int64), SimulationCoins(1)).copy()
    skewed[:400] = 2 * 7
    assert det_seed(rows, skewed)[0].p_value < 1e-12


@pytest.mark.parametrize(
    ("kind", "share", "z", "least"), [("oue", 0.005, 4.3, 6), ("oue", 0.01, 8.6, 10), ("ss", 0.01, 7.6, 10)]
)
def test_pairs_are_flagged_as_published(kind: str, share: float, z: float, least: int) -> None:
    """m (1 - q)/(q sqrt(n)), and on top the largest of 45 standard normal deviations, which is one to four."""
    mechanism = KINDS[kind](64 if kind == "ss" else 128, "1")
    targets = np.arange(20, 30)
    reports = poisoned(mechanism, 100_000, round(share * 100_000), targets)
    seen = inspect_reports(mechanism, reports)
    assert seen.state == "alarm" and seen.pairs is not None
    assert z + 0.5 < seen.pairs.largest < z + 4.5
    assert set(seen.hot) <= set(targets.tolist()) and len(seen.hot) >= least


def test_pairs_of_the_largest_estimates_are_looked_at_in_large_domains() -> None:
    mechanism = tacit.OUE(300, "1")
    targets = np.arange(200, 206)
    reports = poisoned(mechanism, 20_000, 800, targets)
    found = co_support(mechanism, reports, mechanism.estimate(mechanism.tally(reports)).value, 0.01, most=64)
    assert len(found.values) == 64 and set(targets) <= set(found.hot.tolist())


@pytest.mark.parametrize("kind", ["oue", "olh", "ss"])
def test_pair_laws_are_those_of_real_reports(kind: str) -> None:
    """Six standard deviations of the share of reports: a false alarm has probability 1e-8."""
    mechanism, n = KINDS[kind](9, "1"), 40_000
    law, oracle = pair_law(mechanism), structured(mechanism)
    assert oracle is not None
    reports = mechanism.privatize(np.full(n, 2), SimulationCoins(3))
    for values, expected in (([2, 5], law.both_own), ([4, 5], law.both_other)):
        share = float(np.mean(supported_counts(oracle, reports, np.array(values)) == 2))
        assert abs(share - expected) < 6 * (expected * (1 - expected) / n) ** 0.5
    other, own = count_laws(mechanism, 3)
    assert other.sum() == pytest.approx(1) and own.sum() == pytest.approx(1)
    for values, expected in (([2, 5, 7], own), ([4, 5, 7], other)):
        seen = np.bincount(supported_counts(oracle, reports, np.array(values)), minlength=4) / n
        assert np.abs(seen - expected).max() < 6 * (0.25 / n) ** 0.5


@pytest.mark.parametrize("kind", ["oue", "olh", "ss"])
@pytest.mark.parametrize("method", ["rec_hist", "rec_drop", "rec_model"])
def test_repairs_take_the_gain_off(kind: str, method: Any) -> None:
    """Published: residues within noise (0.02) for rec_hist; rec_drop and rec_model need fakes that support all."""
    mechanism = KINDS[kind](64, "1")
    targets = np.arange(20, 28)
    clean = mechanism.estimate(mechanism.tally(poisoned(mechanism, 50_000, 0, targets))).value
    reports = poisoned(mechanism, 50_000, 1_500, targets)
    seen = inspect_reports(mechanism, reports)
    repaired = repaired_estimate(mechanism, reports, seen, method=method)
    assert repaired is not None and repaired.hot.tolist() == targets.tolist()
    gain = float((mechanism.estimate(mechanism.tally(reports)).value - clean)[targets].sum())
    left = float((repaired.value - clean)[targets].sum())
    assert gain > 0.2
    if kind != "olh" or method == "rec_hist":  # Searched seeds support most targets, not all.
        assert abs(left) < 0.35 * gain
    if method == "rec_hist":
        assert abs(left) < 4 * repaired.hot_variance**0.5
        assert abs(repaired.fakes - 1_500) < 600
    assert repaired.to_json()["method"] == method


def test_without_three_hot_values_nothing_is_repaired() -> None:
    mechanism = tacit.OUE(32, "1")
    reports = poisoned(mechanism, 5_000, 0, [1])
    seen = inspect_reports(mechanism, reports)
    assert repaired_estimate(mechanism, reports, seen) is None
    assert seen.pairs is not None
    with pytest.raises(InvalidSpec, match="method"):
        repair(mechanism, reports, seen.pairs, method="rec_magic")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidSpec, match="least"):
        rec_drop(mechanism, reports, np.arange(3), least=9)


def test_kinds_without_structure_are_quiet_and_wrappers_are_looked_into() -> None:
    grr = tacit.GRR(8, "1")
    assert inspect_reports(grr, grr.privatize([0] * 50, SimulationCoins(1))).to_json()["state"] == "quiet"
    memo = tacit.Memoized(inner=tacit.OUE(8, "1"), most_values=2)
    assert structured(memo) is not None and structured(example("grr", "1")) is None
    empty = inspect_reports(tacit.OUE(8, "1"), np.empty((0, 1), np.uint8))
    assert empty.state == "quiet" and empty.hot == []


def test_jumps_between_batches_are_ranked() -> None:
    mechanism = tacit.OUE(16, "2")
    before, after = (
        mechanism.estimate(mechanism.tally(mechanism.privatize(np.full(4_000, value), SimulationCoins(value))))
        for value in (3, 9)
    )
    found, ranked = det_jump(before, after)
    assert found.p_value < 1e-12 and set(ranked[:2]) == {3, 9}
    assert det_jump(before, before)[0].p_value == 1.0


def test_the_budget_is_spent_over_batches_and_tails_are_bounds() -> None:
    assert sum(map(spent_on_batch, range(1, 10_000))) < ALPHA
    assert poisson_tail(0, 3.0) == 1.0 and poisson_tail(40, 1e-3) < 1e-100
    # A sum of n rare parts: the tail of a binomial against its bound.
    n, q = 2_000, 2e-4
    sd = (n * q * (1 - q)) ** 0.5
    for count in (1, 2, 4, 6):
        exact = float(upper_tail(count, n, q))
        assert upper_tail_of_sum((count - n * q) / sd, (1 - 2 * q) / sd, (1 - q) / sd) >= exact


def test_caps_are_reached_and_never_exceeded() -> None:
    for kind in ("grr", "oue", "olh", "ss", "hrr"):
        mechanism: Any = KINDS.get(kind, tacit.GRR)(16, "1")
        cap = influence_cap(mechanism)
        assert cap is not None
        values = np.arange(16).repeat(20)
        reports = mechanism.privatize(values, SimulationCoins(1))
        base = mechanism.estimate(mechanism.tally(reports)).value
        extra = mechanism.privatize(np.arange(16).repeat(5), SimulationCoins(2))
        moved = max(
            float(
                np.abs(
                    mechanism.estimate(mechanism.tally(np.concatenate([reports, extra[i : i + 1]]))).value - base
                ).max()
            )
            for i in range(len(extra))
        )
        # The share itself counts for a little: (contribution - share)/(n + 1).
        assert 0.3 * cap.one(len(reports)) < moved <= cap.one(len(reports)) * 1.2
    assert influence_cap(example("onebit", "1")) is None
    with pytest.raises(InvalidSpec):
        influence_cap(tacit.OUE(8, "1")).coalition(2)  # pyright: ignore[reportOptionalMemberAccess]
