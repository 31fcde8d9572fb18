"""Planning and walking: sensitivity, layouts under the cap, the walk through real reports, scores and metrics."""

from dataclasses import replace
from math import exp, isinf
from typing import Any

import numpy as np
import pytest

from tacit.core.compose import OneOf
from tacit.core.members import PerMember
from tacit.device.domains.domain import Bits
from tacit.device.domains.text import Text
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.metrics import f1_score, hit_variance, ncr_score, true_top
from tacit.tasks.hitters.hitters import affordable_keep, find_hitters, groups_of
from tacit.tasks.hitters.options import detectable_words, hitters_options
from tacit.tasks.hitters.plan import (
    branching,
    plan_lengths,
    plan_naive,
    plan_pem,
    plan_pem1,
    prefix_lengths,
    sensitivity_threshold,
    smallest_groups,
)
from tacit.tasks.hitters.score import EVERYTHING, Beliefs, update
from tacit.tasks.hitters.spelling import bit_strings, spelling_of


def collected(plan: Any, values: Any, seed: int = 1) -> Any:
    return plan.mechanism.tally(plan.mechanism.privatize(values, SimulationCoins(seed)))


def crowd(bits: int, shares: "list[float]", n: int) -> "tuple[Any, Any]":
    """Hitters of these shares, the rest uniform; and the hitters."""
    rng = np.random.default_rng(5)
    hitters = rng.integers(0, 1 << bits, len(shares), dtype=np.uint64)
    counts = [int(n * share) for share in shares]
    rest = rng.integers(0, 1 << bits, n - sum(counts), dtype=np.uint64)
    return np.concatenate([np.repeat(hitters, counts), rest]), hitters


def test_the_lengths_of_plain_prefix_extension_are_rounded_up() -> None:
    assert prefix_lengths(64, 16, 6) == (14, 24, 34, 44, 54, 64)
    assert prefix_lengths(64, 32, 6)[-1] == 64 and prefix_lengths(10, 100, 4) == (8, 9, 10)
    assert prefix_lengths(1, 16, 3) == (1,)  # m <= s_0: a plain oracle.
    assert prefix_lengths(12, 3, 2, fanout=27) == (7, 12)


def test_the_fewest_groups_under_the_cap_are_those_of_the_literature() -> None:
    """Wang's dissertation, section 4.4: a cap of 2^20 queries."""
    table = {32: [2, 2, 2, 3], 48: [4, 4, 4, 4], 64: [5, 5, 5, 6], 128: [10, 11, 12, 15], 160: [13, 14, 16, 20]}
    for bits, groups in table.items():
        assert [smallest_groups(bits, k) for k in (16, 32, 64, 256)] == groups


def test_the_branching_factor_of_the_worked_example() -> None:
    assert branching(3.69165, 1e6 / 6, 1 << 10, 0.023) == pytest.approx(0.608, abs=0.001)


def test_a_plan_keeps_to_its_cap_and_more_respondents_detect_less() -> None:
    found = []
    for n in (10_000, 100_000, 1_000_000):
        plan = plan_pem(bit_strings(64), epsilon="2", n=n, k=16)
        assert plan.evaluations <= 5e10 and plan.lengths[-1] == 64 and 32 <= plan.keep <= 96
        assert plan.recall(plan.detectable(0.9)) == pytest.approx(0.9, abs=1e-3)
        found.append(plan.detectable())
    assert found == sorted(found, reverse=True)
    cheap = plan_pem(bit_strings(64), epsilon="2", n=1_000_000, k=16, most_evaluations=1e9)
    assert cheap.evaluations <= 1e9 and cheap.detectable() > found[-1]


def test_few_respondents_are_told_that_nothing_can_be_detected() -> None:
    plan = plan_pem(bit_strings(64), epsilon="0.5", n=50, k=16)
    assert isinf(plan.detectable()) and "no share can be detected" in detectable_words(plan)
    rows, words = hitters_options(size=1 << 64, epsilon="0.5", n=50, k=16)
    assert rows[0].to_row()["detectable_share"] is None and "no share" in words


@pytest.mark.parametrize(
    ("changed", "rule"),
    [({"n": 0}, "n is 0"), ({"k": 0}, "k is 0"), ({"groups": 65}, "groups is 65"), ({"k": 1 << 17}, "k is")],
)
def test_impossible_searches_are_refused(changed: "dict[str, int]", rule: str) -> None:
    with pytest.raises(InvalidSpec, match=rule):
        plan_pem(bit_strings(64), **{"epsilon": "1", "n": 100, "k": 4} | changed)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="use pem"):
        plan_naive(bit_strings(40), epsilon="1", n=100, k=4)


@pytest.mark.slow_cases("naive")
@pytest.mark.parametrize("method", [pytest.param("pem", marks=pytest.mark.slow), "pem1", "naive", "plain"])
def test_planted_values_are_found_through_real_reports(method: str) -> None:
    """Shares of 10 and more standard deviations of every group; a miss has a probability below 1e-6."""
    spelling, n = bit_strings(16 if method != "pem" else 64), 40_000
    plan = {
        "pem": lambda: plan_pem(spelling, epsilon="4", n=n, k=4, most_evaluations=2e9),
        "pem1": lambda: plan_pem1(spelling, epsilon="4", n=n, k=4),
        "naive": lambda: plan_naive(spelling, epsilon="4", n=n, k=4),
        "plain": lambda: plan_lengths(spelling, "4", n, 4, prefix_lengths(16, 4, 3)),
    }[method]()
    values, hitters = crowd(spelling.digits, [0.3, 0.25, 0.2, 0.15], n)
    found = find_hitters(plan.mechanism, collected(plan, values), spelling, k=4, plain=method != "pem")
    assert set(found.values.tolist()) == set(hitters.tolist())
    assert found.significant() == 4
    for row in found.to_list(level=0.999_999):
        assert row.low < float(np.mean(values == row.index)) < row.high


def test_the_interval_is_that_of_the_last_group_against_everybody() -> None:
    spelling, n = bit_strings(12), 30_000
    plan = plan_lengths(spelling, "2", n, 2, (6, 12))
    values, hitters = crowd(12, [0.4, 0.3], n)
    tally = collected(plan, values)
    found = find_hitters(plan.mechanism, tally, spelling, k=2)
    assert isinstance(plan.mechanism, OneOf)
    direct = plan.mechanism.estimate(tally, [[0], found.values])[1]
    assert np.allclose(found.estimate.value, direct.value) and np.allclose(found.estimate.variance, direct.variance)
    assert set(found.values.tolist()) == set(hitters.tolist())


def test_intervals_of_listed_values_are_those_of_their_mechanism_for_few_reports_too() -> None:
    """With 50 reports at epsilon 16 a normal interval is too narrow; lists have score intervals."""
    mechanism = OUE(size=16, epsilon="16")
    tally = mechanism.tally(mechanism.privatize(np.repeat([1, 2, 3], [30, 15, 5]), SimulationCoins(4)))
    listed = {row.index: (row.low, row.high) for row in find_hitters(mechanism, tally, bit_strings(4), k=16).to_list()}
    estimate = mechanism.estimate(tally)
    low, high = estimate.interval()
    assert sorted(listed) == list(range(16))
    assert listed == {i: (pytest.approx(low[i]), pytest.approx(high[i])) for i in range(16)}
    normal = replace(estimate, law=None).interval()
    assert high[3] - low[3] > 1.2 * (normal[1][3] - normal[0][3])


def test_texts_are_found_and_impossible_prefixes_are_never_candidates() -> None:
    domain, n = Text("word", "bytes", 4), 30_000
    spelling = spelling_of(domain)
    plan = plan_pem(spelling, epsilon="4", n=n, k=3, most_evaluations=2e9)
    shares = {"caf\u00e9"[:4]: 0.0, "\u20ac": 0.4, "oh": 0.3, "": 0.2}
    indices = np.array([domain.encode(text) for text in ("\u20ac", "oh", "", "abcd")], np.uint64)
    values = np.repeat(indices, [12_000, 9_000, 6_000, 3_000])
    found = find_hitters(plan.mechanism, collected(plan, values), spelling, k=3)
    assert [domain.decode(index) for index in found.values.tolist()] == ["\u20ac", "oh", ""]
    assert found.examined < sum(plan.candidates) and shares
    noise = find_hitters(plan.mechanism, collected(plan, values[:0]), spelling, k=3)
    assert noise.flags == ("no_data",) and not len(noise.values)


def test_the_threshold_version_finds_what_is_above_and_refuses_what_would_explode() -> None:
    spelling, n = bit_strings(32), 60_000
    plan = plan_lengths(spelling, "4", n, 8, (12, 22, 32))
    values, hitters = crowd(32, [0.3, 0.2, 0.1], n)
    tally = collected(plan, values)
    found = find_hitters(plan.mechanism, tally, spelling, k=64, threshold=0.15)
    assert set(found.values.tolist()) == set(hitters[:2].tolist())
    with pytest.raises(InvalidSpec, match="false prefixes multiply") as error:
        find_hitters(plan.mechanism, tally, spelling, k=64, threshold=0.0001)
    assert "can be searched for" in str(error.value)
    with pytest.raises(InvalidSpec, match="between 0 and 1"):
        find_hitters(plan.mechanism, tally, spelling, k=64, threshold=1.5)
    flagged = find_hitters(plan.mechanism, tally, spelling, k=64, threshold=0.007)
    assert "slack_lowered" in flagged.flags or "branching" in flagged.flags


def test_a_group_that_nobody_answered_is_skipped_by_extending_twice() -> None:
    spelling, n = bit_strings(16), 20_000
    plan = plan_lengths(spelling, "4", n, 2, (4, 10, 16))
    values, hitters = crowd(16, [0.5, 0.4], n)
    assert isinstance(plan.mechanism, OneOf)
    reports = plan.mechanism.privatize(values, SimulationCoins(1))
    tally = plan.mechanism.tally(reports[reports["member"] != 1])
    assert isinstance(tally, PerMember)
    found = find_hitters(plan.mechanism, tally, spelling, k=2, keep=2)
    assert found.flags == ("empty_group",) and set(found.values.tolist()) == set(hitters.tolist())


def test_an_empty_first_group_that_cannot_be_skipped_is_walked_through() -> None:
    spelling, n = bit_strings(28), 2000
    plan = plan_lengths(spelling, "4", n, 2, (10, 24, 28))
    reports = plan.mechanism.privatize(crowd(28, [0.5, 0.4], n)[0], SimulationCoins(1))
    tally = plan.mechanism.tally(reports[reports["member"] != 0])
    found = find_hitters(plan.mechanism, tally, spelling, k=2, keep=2)
    assert np.isfinite(found.beliefs.expected).all() and len(found.values) == 2


def test_merged_shards_are_walked_like_one() -> None:
    spelling, n = bit_strings(16), 20_000
    plan = plan_lengths(spelling, "3", n, 2, (8, 16))
    values, _ = crowd(16, [0.5, 0.2], n)
    reports = plan.mechanism.privatize(values, SimulationCoins(1))
    whole = plan.mechanism.tally(reports)
    shards = plan.mechanism.tally(reports[:7000]) + plan.mechanism.tally(reports[7000:])
    one, two = (find_hitters(plan.mechanism, tally, spelling, k=2) for tally in (whole, shards))
    assert np.array_equal(one.values, two.values) and np.array_equal(one.estimate.value, two.estimate.value)


def test_other_mechanisms_are_not_walked() -> None:
    oracle = GRR(size=8, epsilon="1")
    with pytest.raises(InvalidSpec, match="does not ask for prefixes"):
        groups_of(oracle, oracle.tally(oracle.decode(b"")), bit_strings(4))


def test_the_kept_prefixes_follow_the_cap() -> None:
    spelling = bit_strings(32)
    plan = plan_lengths(spelling, "1", 1000, 4, (16, 32))
    groups = groups_of(plan.mechanism, collected(plan, np.zeros(1000, np.uint64)), spelling)
    assert affordable_keep(groups, spelling, 4, 1e12) == 12 and affordable_keep(groups, spelling, 4, 1) == 4


def test_an_extension_of_a_doubtful_prefix_is_doubted_more_than_an_equal_one_of_a_sure_prefix() -> None:
    noise = 1e-6
    first = update(EVERYTHING, np.zeros(3, np.int64), np.array([0.05, 0.04, 0.002]), noise, 1 << 14, 2)
    assert np.all(first.present[:2] > 0.999) and first.present[2] < 0.5
    parents = Beliefs(np.array([1.0, 0.01]), np.array([0.005, 0.005]), np.full(2, noise))
    value = np.array([0.004, 0.004])
    after = update(parents, np.array([0, 1]), value, noise, 1 << 10, 2)
    assert after.expected[0] > after.expected[1]
    assert np.all(after.variance >= 0) and np.all((after.present >= 0) & (after.present <= 1))


def test_metrics() -> None:
    assert f1_score([1, 2], []) == 0 and f1_score([], []) == 0 and f1_score([1, 2], [2, 1]) == 1
    assert ncr_score(["a", "b"], ["b"]) == pytest.approx(1 / 3) and ncr_score([], ["x"]) == 0
    assert hit_variance({1: 5.0}, {2: 5.0}) is None
    assert true_top({"x": 3, "b": 5, "a": 5}, 2) == ["a", "b"]


def test_the_sensitivity_threshold_never_falls_below_zero() -> None:
    assert sensitivity_threshold(exp(1), 1, 100) == 0
    assert sensitivity_threshold(1.0, 1 << 64, 10_000) > sensitivity_threshold(1.0, 1 << 32, 10_000)


def test_bits_and_text_are_planned_differently() -> None:
    assert spelling_of(Bits("x", 48)).last_weight == 1
    plan = plan_pem(spelling_of(Text("query", "bytes", 6)), epsilon="4", n=600_000, k=32)
    assert plan.weights[-1] == 3 and plan.lengths[-1] == 48
