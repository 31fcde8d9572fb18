"""Adaptive plans: rounds, replay, empty rounds, and what they find on easy data."""

import json
from typing import Any

import numpy as np
import pytest

from tacit.baselines.itemsets import METHODS, plan_steps
from tacit.core.sets import Sets
from tacit.device.numbers.budget import Share
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.sets import Padded, SetSize
from tacit.simulate.itemsets import simulate_itemsets, true_itemsets
from tacit.tasks.itemsets.itemsets import Mining, svim
from tacit.tasks.itemsets.search import best_first, guess_itemsets, largest_itemset
from tacit.tasks.plans import PlanResult, Received, Round, Steps, drive, proceed

SIZE, K = 40, 8
OUTLINES: dict[str, list[tuple[str, float]]] = {
    "svim": [("items", 0.5), ("sizes", 0.1), ("counts", 0.4)],
    "svsm": [
        ("items", 0.25), ("sizes", 0.05), ("counts", 0.2), ("itemsets_sizes", 0.1), ("itemsets_counts", 0.4),
    ],
}  # fmt: skip
"""Rounds with their shares, where there are more items than candidates."""


def crowd(n: int = 4000, seed: int = 1) -> Sets:
    """Items 0 to 7 are frequent, 0 with 1 above all."""
    rng = np.random.default_rng(seed)
    chance = np.where(np.arange(SIZE) < 8, 0.5 - 0.05 * np.arange(SIZE), 0.01)
    held = rng.random((n, SIZE)) < chance
    held[:, 1] = np.where(rng.random(n) < 0.8, held[:, 0], held[:, 1])
    return Sets.of(np.flatnonzero(row).tolist() for row in held)


class Crowd:
    """Hands every round the next respondents, and remembers what was received."""

    def __init__(self, sets: Sets, seed: int = 1, empty: tuple[str, ...] = ()) -> None:
        self.sets, self.rng, self.empty = sets, np.random.default_rng(seed), empty
        self.rounds: list[Round] = []
        self.received: list[Any] = []

    def ask(self, question: Round) -> Any:
        mechanism: Any = question.mechanism
        chosen = np.arange(0 if question.name in self.empty else len(self.sets))
        tally = mechanism.simulate_sets(self.sets.take(chosen), self.rng)
        self.rounds.append(question)
        self.received.append((mechanism, tally))
        return tally


def resume(steps: Steps, received: list[Received]) -> Round | PlanResult:
    """What a plan says after these rounds."""
    said = proceed(steps)
    for answer in received:
        said = proceed(steps, answer)
    return said


@pytest.mark.parametrize("method", ["svim", "svsm"])
def test_rounds_are_as_outlined(method: str) -> None:
    asked = Crowd(crowd())
    result = drive(plan_steps(method, Mining("4", SIZE, K)), asked.ask)
    assert [(r.name, round(r.share, 6)) for r in asked.rounds] == OUTLINES[method]
    assert sum(r.share for r in asked.rounds) == pytest.approx(1)
    assert [r.group for r in asked.rounds] == list(range(len(asked.rounds)))
    assert all(float(r.mechanism.budget.declared) == 4 and r.mechanism.holds() for r in asked.rounds)
    assert result.respondents == 4000 * len(asked.rounds)
    assert len(result.rows) == K
    json.dumps([r.to_row() for r in asked.rounds] + [result.to_row()], allow_nan=False)


def test_svim_finds_the_items_and_covers_their_shares() -> None:
    sets = crowd(40_000)
    outcome = simulate_itemsets(sets, Mining("4", SIZE, K), "svim", seed=3)
    assert outcome.f1 == 1.0
    truth = dict(true_itemsets(sets, SIZE, K, "svim"))
    off = [abs(row.frequency - truth[row.items] / len(sets)) / row.standard_error for row in outcome.result.rows]
    assert max(off) < 6
    assert all(row.noise < 1e-6 for row in outcome.result.rows)
    assert outcome.result.detectable is not None


def test_svsm_finds_the_strongest_pair() -> None:
    outcome = simulate_itemsets(crowd(40_000), Mining("4", SIZE, K), "svsm", seed=3)
    assert (0, 1) in [row.items for row in outcome.result.rows]
    assert outcome.f1 >= 0.75


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_and_is_a_function_of_its_tallies(method: str) -> None:
    mining = Mining("4", SIZE, K)
    asked = Crowd(crowd(800))
    result = drive(plan_steps(method, mining, length=6), asked.ask)
    assert len(result.rows) == K
    for done in range(len(asked.rounds)):
        again = resume(plan_steps(method, mining, length=6), asked.received[:done])
        assert isinstance(again, Round)
        assert again.to_row() == asked.rounds[done].to_row()
    assert resume(plan_steps(method, mining, length=6), asked.received) == result


def test_only_ldpminer_asks_twice_and_splits_its_budget() -> None:
    asked = Crowd(crowd(800))
    drive(plan_steps("ldpminer", Mining("4", SIZE, K), length=6), asked.ask)
    assert [r.group for r in asked.rounds] == [0, 0]
    assert all(r.mechanism.budget == Share("4", "1/2") for r in asked.rounds)
    with pytest.raises(InvalidSpec, match="share already"):
        next(plan_steps("ldpminer", Mining(Share("4", "1/2"), SIZE, K), length=6))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("empty", ["items", "sizes", "counts", "itemsets_sizes", "itemsets_counts", "all"])
def test_a_round_without_respondents_is_said_and_nothing_breaks(method: str, empty: str) -> None:
    names = ("items", "sizes", "counts", "itemsets_sizes", "itemsets_counts")
    asked = Crowd(crowd(800), empty=names if empty == "all" else (empty,))
    result = drive(plan_steps(method, Mining("4", SIZE, K), length=6), asked.ask)
    if any(question.name in asked.empty for question in asked.rounds):
        assert any("had no respondents" in note for note in result.notes)
    if empty in ("items", "counts", "all") and "svsm" not in method:
        assert (result.status, result.rows, result.detectable) == ("no_data", (), None)
    json.dumps(result.to_row(), allow_nan=False)


def test_few_items_need_no_pruning() -> None:
    asked = Crowd(crowd(800))
    result = drive(svim(Mining("2", SIZE, 20)), asked.ask)
    assert [(r.name, r.share) for r in asked.rounds] == [("sizes", 0.2), ("counts", 0.8)]
    assert len(result.rows) == 20


def test_more_than_the_noise_allows_is_said() -> None:
    result = drive(svim(Mining("0.1", SIZE, 20)), Crowd(crowd(300)).ask)
    assert any("stand out from noise" in note for note in result.notes)
    assert result.detectable is not None
    assert result.detectable > 0.1


def test_sets_of_nobody_have_the_shortest_length() -> None:
    """Everybody's set is empty: no size but 0 is significant, the length falls back to 1."""
    asked = Crowd(Sets.of([[]] * 3000))
    drive(svim(Mining("4", SIZE, K)), asked.ask)
    mechanism = asked.rounds[-1].mechanism
    assert isinstance(mechanism, Padded)
    assert mechanism.length == 1
    assert isinstance(asked.rounds[1].mechanism, SetSize)


def test_a_tally_of_another_round_is_refused() -> None:
    steps = svim(Mining("4", SIZE, K))
    next(steps)
    stranger = GRR(size=3, epsilon="1")
    with pytest.raises(InvalidSpec, match="another mechanism"):
        steps.send((stranger, stranger.tally(stranger.all_reports())))


@pytest.mark.parametrize("fields", [("4", 1, 8), ("4", 40, 0), ("4", 40, 5000), ("99", 40, 8), ("4", 40, 8, 0)])
def test_impossible_searches_are_refused(fields: Any) -> None:
    with pytest.raises(InvalidSpec):
        Mining(*fields)
    with pytest.raises(InvalidSpec, match="must be one of svim"):
        plan_steps("apriori", Mining("4", 40, 8))


# Candidates.


def test_candidates_come_in_order_of_their_product() -> None:
    weights = sorted((0.9 * np.random.default_rng(2).random(9)).tolist(), reverse=True)
    products = [float(np.prod([weights[i] for i in places])) for places in best_first(weights, 4)]
    assert products == sorted(products, reverse=True)
    found = list(best_first(weights, 4))
    assert len(set(found)) == len(found) == 36 + 84 + 126
    assert all(2 <= len(places) <= 4 for places in found)


def test_the_largest_itemset_allows_pairs_for_three() -> None:
    """2^s - 1 <= k; the printed bound s < log2 k would exclude pairs for k = 3 and 4."""
    assert [largest_itemset(k) for k in (1, 2, 3, 6, 7, 63, 64, 127)] == [1, 1, 2, 2, 3, 6, 6, 7]
    assert guess_itemsets([(0, 0.5), (1, 0.4)], 6, largest_itemset(2)) == ()


def test_guesses_cope_with_few_and_with_negative_estimates() -> None:
    assert guess_itemsets([], 4, 3) == ()
    assert guess_itemsets([(5, -0.1), (2, -0.2)], 4, 3) == ((2, 5),)
    assert guess_itemsets([(5, 0.2), (2, -0.2), (9, 0.1)], 1, 3) == ((5, 9),)


def test_a_finished_plan_gives_its_result_again() -> None:
    asked = Crowd(crowd(500))
    result = drive(svim(Mining("4", SIZE, K)), asked.ask)
    assert isinstance(result, PlanResult)
    assert resume(svim(Mining("4", SIZE, K)), asked.received) == result
