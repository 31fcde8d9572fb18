"""Groups of values that are pushed together: bounds that hold for any number of reports, and power beyond single pairs.

Seeds are fixed. Where alarms are counted, the bound is one that the stated budget exceeds with probability below 1e-4.
"""

from typing import Any

import numpy as np
import pytest

import tacit
from tacit.core.statistics.binomial import upper_tail
from tacit.integrity.cosupport import CoSupport, co_support
from tacit.integrity.groups import PairSums, _GroupLaw, strongest_group
from tacit.integrity.structure import supported_counts
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.poisoning.attacks import Attack, fake_reports
from tacit.simulate.population import zipf_counts

KINDS: dict[str, Any] = {"oue": tacit.OUE, "olh": tacit.OLH, "ss": tacit.SS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("held", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n", [1, 6, 16])
def test_the_bound_of_a_group_is_above_the_exact_tail(kind: str, held: float, n: int) -> None:
    """The exact law of the sum of n reports is their n-fold convolution, on the values that sums can have."""
    law = _GroupLaw.of(KINDS[kind](9, "1"), 4)
    sums = {0.0: 1.0}
    mixed = (1 - held) * law.other + held * law.own
    assert float(mixed @ law.adds) == pytest.approx(0, abs=1e-12)
    for _ in range(n):
        more: dict[float, float] = {}
        for total, chance in sums.items():
            for add, part in zip(law.adds.tolist(), mixed.tolist(), strict=True):
                at = round(total + add, 9)
                more[at] = more.get(at, 0.0) + chance * part
        sums = {total: chance for total, chance in more.items() if chance > 1e-18}
    for total in sorted(sums)[:: max(1, len(sums) // 40)]:
        exact = sum(chance for other, chance in sums.items() if other >= total)
        assert np.exp(law.log_tail(total - 1e-9, n, held)) >= exact * (1 - 1e-6)


def test_what_reports_add_to_a_group_is_what_they_add_to_its_pairs() -> None:
    mechanism = tacit.OUE(12, "1")
    reports = mechanism.privatize(np.arange(500) % 12, SimulationCoins(2))
    shares = mechanism.estimate(mechanism.tally(reports)).value
    found = co_support(mechanism, reports, shares, 0.01)
    group = np.array([1, 4, 7, 9])
    law = _GroupLaw.of(mechanism, 4)
    added = law.adds[supported_counts(mechanism, reports, group)].sum()
    assert found.excess[np.ix_(group, group)][np.triu_indices(4, 1)].sum() == pytest.approx(added)


def looked_at(mechanism: Any, n: int, m: int, targets: Any, seed: int, alpha: float = 0.01) -> CoSupport:
    genuine = mechanism.privatize(
        np.repeat(np.arange(mechanism.size), zipf_counts(mechanism.size, n)), SimulationCoins(seed)
    )
    fakes = fake_reports(mechanism, Attack("mga", np.asarray(targets), search=1 << 16), m, seed)
    reports = np.concatenate([genuine, fakes])
    return co_support(mechanism, reports, mechanism.estimate(mechanism.tally(reports)).value, alpha)


@pytest.mark.parametrize(("kind", "fakes"), [("oue", 96), ("olh", 160)])
def test_groups_show_where_no_pair_does(kind: str, fakes: int) -> None:
    """0.6 % of fakes among 16,000 reports: z of a pair is 2 on average, of all 45 pairs together 14.

    Searched seeds of local hashing support about six of ten targets, so that there have to be more of them.
    """
    targets = np.arange(20, 30)
    found = looked_at(KINDS[kind](64, "1"), 16_000, fakes, targets, 3)
    assert not found.flagged.any() and found.p_value < 1e-4
    assert set(targets.tolist()) == set(found.hot.tolist())


def test_hot_values_grow_around_a_single_pair() -> None:
    """Three targets: the pairs with the third are a little below the threshold for pairs."""
    found = looked_at(tacit.OUE(64, "1"), 16_000, 200, [3, 9, 30], 1)
    assert {3, 9, 30} == set(found.hot.tolist())


@pytest.mark.parametrize("n", [60, 600])
def test_clean_crowds_alarm_no_more_than_a_large_budget(n: int) -> None:
    """A budget of 20 % for each of 60 crowds: 27 alarms or more have probability 5e-5 where all of it is spent."""
    assert float(upper_tail(27, 60, 0.2)) < 1e-4
    seen = [looked_at(KINDS[kind](12, "1"), n, 0, [1], seed, 0.2) for kind in KINDS for seed in range(20)]
    assert sum(one.p_value < 0.2 for one in seen) < 27
    assert sum(len(one.hot) > 0 for one in seen) < 27


def test_few_values_and_no_reports_have_no_group() -> None:
    mechanism = tacit.OUE(12, "1")
    nothing = np.zeros((2, 2))
    assert strongest_group(PairSums(mechanism, 10, nothing, nothing, np.zeros(2))) is None
    found = looked_at(mechanism, 0, 0, [1], 1)
    assert len(found.hot) == 0 and found.p_value == 1.0
