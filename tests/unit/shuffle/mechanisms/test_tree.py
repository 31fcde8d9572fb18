"""The prefix tree over shuffled oracles: exact walks, both policies, and the prediction that picks one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.baselines.hitters import TrueCounts
from tacit.core.estimate import Estimate, no_data
from tacit.errors import InvalidSpec, NoData
from tacit.shuffle.mechanisms.closed_forms import CentralTarget
from tacit.shuffle.mechanisms.messages import LocationMessages
from tacit.shuffle.mechanisms.tree import (
    AT_ONCE,
    ORACLES,
    Policy,
    TreePlan,
    TreeRound,
    ask_reports,
    choose_policy,
    run_tree,
    walk_tree,
)
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.shuffle import simulate_tree

TARGET = CentralTarget("1", 1e-9, 300_000)


def crowd(bits: int, seed: int = 1) -> TrueCounts:
    """Thirty strings with shares like 1/rank, and single respondents on many others."""
    rng = np.random.default_rng(seed)
    values = rng.choice(1 << bits, 2030, replace=False).astype(np.uint64)
    counts = np.append(np.round(60_000 / np.arange(1, 31)), np.full(2000, 30)).astype(np.int64)
    return TrueCounts(values, counts, bits)


def exact(truth: TrueCounts):
    """Respondents without noise, who report real indices."""

    def ask(asked: TreeRound) -> Estimate:
        counts = np.bincount(asked.indices(truth.values, truth.bits).astype(np.int64), truth.counts, asked.dummy + 1)
        return Estimate(counts / truth.n, np.full(asked.dummy + 1, 1e-12), truth.n)

    return ask


@pytest.mark.parametrize("bits", [16, 20])  # 20 bits: the last round has fewer bits than the others
def test_without_noise_the_most_frequent_strings_are_found_in_their_order(bits: int):
    truth = crowd(bits)
    found = run_tree(TreePlan("solh", TARGET, "budget", bits=bits, keep=25), exact(truth))
    # The fifth share is above all that others can have together under one prefix of the first round.
    assert found.values[:5].tolist() == truth.values[:5].tolist()
    assert found.share[:5] == pytest.approx(truth.counts[:5] / truth.n)


def test_respondents_without_a_surviving_prefix_report_the_dummy():
    walk = walk_tree(TreePlan("sh_grr", TARGET, "budget", bits=8, step=4, keep=2))
    first = next(walk)
    assert first.candidates.tolist() == list(range(16)) and first.dummy == 16
    assert first.oracle.mechanism.size == 17
    estimate = Estimate(np.array([0.0, 0.9] + [0.0] * 12 + [0.5, 0.1, 1.0]), np.ones(17), 10)
    second = walk.send(estimate)  # the dummy, although it is highest, does not survive
    assert second.candidates.tolist() == [*range(16, 32), *range(224, 240)]
    values = np.array([0x1F, 0xE0, 0x30], np.uint64)
    assert second.indices(values, 8).tolist() == [15, 16, second.dummy]


def test_budgets_are_split_over_rounds_or_respondents_over_groups():
    budget, groups = (TreePlan("solh", TARGET, policy) for policy in ("budget", "groups"))
    assert budget.lengths == (8, 16, 24, 32, 40, 48)
    assert (budget.round_target.epsilon[:6], budget.round_target.n) == ("0.1666", 300_000)
    assert budget.round_target.delta == pytest.approx(1e-9 / 6)
    assert (groups.round_target.epsilon, groups.round_target.n, groups.round_target.delta) == ("1", 50_000, 1e-9)
    assert [budget.most_candidates(i) for i in range(6)] == [256] + [8192] * 5
    # Groups add the error of asking a part, f(1 - f)(g - 1)/n.
    share = np.array([0.01])
    assert groups.sampling(share)[0] == pytest.approx(0.01 * 0.99 * 5 / 300_000) and budget.sampling(share)[0] == 0


@pytest.mark.parametrize("oracle", ORACLES)
def test_every_oracle_can_carry_a_tree_of_real_reports(oracle: str):
    """Two rounds with real reports of every kind; 300,000 respondents would be needed to find much, so few bits."""
    plan = TreePlan(oracle, CentralTarget("1", 1e-6, 60_000), "budget", bits=6, step=3, keep=3)
    rng, truth = np.random.default_rng(4), np.array([9, 9, 9, 9, 33, 33, 33, 50, 50, 1], np.uint64)
    values = np.repeat(truth, 6_000)

    def ask(asked: TreeRound) -> Estimate:
        mechanism, indices = asked.oracle.mechanism, asked.indices(values, 6)
        reports = rng.permutation(mechanism.privatize(indices, SimulationCoins(asked.number)))
        if isinstance(mechanism, LocationMessages):
            return mechanism.estimate(mechanism.tally(reports, respondents=len(values)))
        return mechanism.estimate(mechanism.tally(reports))

    found = run_tree(plan, ask)
    assert found.values.tolist() == [9, 33, 50]
    assert np.abs(found.share - [0.4, 0.3, 0.2]).max() < 6 * found.standard_error.max() < 0.3


@pytest.mark.parametrize("policy", ["budget", "groups"])
def test_reports_of_all_rounds_are_made_before_any_prefix_is_known(policy: Policy):
    """Real reports, made and shuffled at once; the search then only tests them."""
    plan = TreePlan("solh", CentralTarget("1", 1e-6, 60_000), policy, bits=30, step=10, keep=3, at_once=True)
    top = np.array([0x2AAAAAAA, 0x15555555, 0x0F0F0F0F, 0x3FFFFFFF], np.uint64)
    values = np.random.default_rng(4).permutation(np.repeat(top, [24_000, 18_000, 12_000, 6_000]))
    rng, tallies = np.random.default_rng(5), list[Any]()
    for number in range(len(plan.lengths)):
        mechanism = plan.planned(number, 0).mechanism
        # What devices report on does not depend on what any earlier round found.
        assert mechanism.size == 1 << plan.lengths[number]
        part = values[number :: plan.groups]
        reports = mechanism.privatize(plan.prefixes(part, number), SimulationCoins(number))
        tallies.append(mechanism.tally(rng.permutation(reports)))
    found = run_tree(plan, ask_reports(tallies))
    assert found.values.tolist() == top[:3].tolist()
    # Six deviations of three shares each: a false alarm below 1e-8.
    assert np.all(np.abs(found.share - [0.4, 0.3, 0.2]) < 6 * found.standard_error)
    assert found.standard_error.max() < 0.05


def test_at_once_finds_as_much_as_round_by_round():
    truth = crowd(24)
    plans = [TreePlan("solh", CentralTarget("0.25", 1e-9, truth.n), "groups", bits=24, keep=16, at_once=once)
             for once in (True, False)]  # fmt: skip
    once, rounds = (simulate_tree(truth, plan, runs=6, seed=3) for plan in plans)
    assert once.plan.at_once and once.to_row()["at_once"]
    # Local hashing does not notice how many values there are, so that the forecasts differ by the first round alone.
    assert once.expected == pytest.approx(rounds.expected, abs=0.1)
    assert np.mean(once.hits) == pytest.approx(once.expected, abs=2)
    small = TreePlan("solh", CentralTarget("0.1", 1e-9, truth.n), "budget", bits=24, keep=16, at_once=True)
    assert choose_policy(small).policy == "groups" and choose_policy(small).at_once


def test_only_hashed_reports_can_be_tested_afterwards():
    for oracle in sorted(ORACLES.keys() - set(AT_ONCE)):
        with pytest.raises(InvalidSpec, match="must be one of solh, olh"):
            TreePlan(oracle, TARGET, "budget", at_once=True)
    # Beyond what randomised response can have, hashing is not compared with it.
    last = TreePlan("solh", CentralTarget("1", 1e-9, 10**9), "budget", at_once=True).planned(5, 0)
    assert last.mechanism.kind == "olh" and last.mechanism.size == 1 << 48


def test_the_prediction_says_how_many_are_found_and_which_policy_finds_more():
    """Over 6 runs each; a prediction is off by at most 2 of 16 where all of it is in transition."""
    truth = crowd(24)
    found: dict[str, float] = {}
    for epsilon in ("0.1", "0.25", "0.6"):
        for policy in ("budget", "groups"):
            plan = TreePlan("solh", CentralTarget(epsilon, 1e-9, truth.n), policy, bits=24, keep=16)
            outcome = simulate_tree(truth, plan, runs=6, seed=3)
            found[epsilon + policy] = float(np.mean(outcome.hits))
            assert outcome.expected == pytest.approx(found[epsilon + policy], abs=2)
    # At a small epsilon a split budget has no amplification left.
    assert found["0.1groups"] > found["0.1budget"] + 1
    small = TreePlan("solh", CentralTarget("0.1", 1e-9, truth.n), "budget", bits=24, keep=16)
    assert choose_policy(small).policy == "groups"


def test_a_policy_that_the_oracle_refuses_is_not_picked():
    """AUE with a sixth of epsilon 0.6 would need more noise than it can have."""
    plan = TreePlan("aue", CentralTarget("0.6", 1e-9, 657_427), "budget")
    with pytest.raises(InvalidSpec, match="aue: 657427 respondents"):
        plan.expected_found()
    assert choose_policy(plan).policy == "groups"
    with pytest.raises(InvalidSpec, match="aue"):
        choose_policy(replace(plan, target=CentralTarget("0.1", 1e-9, 10_000)))


def test_a_round_without_respondents_ends_the_search():
    with pytest.raises(NoData, match="round 1 has no respondents"):
        run_tree(TreePlan("solh", TARGET, "budget"), lambda asked: no_data(asked.dummy + 1))


def test_trees_that_cannot_be_are_refused():
    for wrong in ({"oracle": "oue"}, {"policy": "both"}, {"step": 0}, {"bits": 65}, {"bits": 4}, {"keep": 0}):
        with pytest.raises(InvalidSpec, match="tree: "):
            TreePlan(**{"oracle": "solh", "target": TARGET, "policy": "budget"} | wrong)  # type: ignore[arg-type]
