"""Several rounds: reference values, single rounds, and the brute force of two small ones."""

from itertools import product
from math import exp

import numpy as np
import pytest
from tests.unit.shuffle.enumeration import several, table

import tacit
from tacit.errors import InvalidSpec
from tacit.shuffle.accounting.account import ShuffledCrowd, delta_of
from tacit.shuffle.accounting.compose import ShuffleRound, compose_delta, compose_epsilon

# Randomised response on 16 values, epsilon 3, 100,000 respondents, delta = 1e-6: rounds and their epsilon.
REFERENCE = {4: 0.1065, 16: 0.2235, 64: 0.469}


@pytest.mark.slow
@pytest.mark.parametrize("times", REFERENCE)
def test_reference_values(times: int) -> None:
    rounds = [ShuffleRound(tacit.GRR(size=16, epsilon="3"), 10**5, times=times)]
    assert float(compose_epsilon(rounds, 1e-6, step=2e-5)) == pytest.approx(REFERENCE[times], rel=3e-3)


def test_rounds_compose_better_than_their_sum() -> None:
    mechanism = tacit.OLH(size=16, epsilon="3")
    once, sixteen = (compose_epsilon([ShuffleRound(mechanism, 5_000, times=k)], 1e-6) for k in (1, 16))
    assert once == ShuffledCrowd(mechanism, 5_000).epsilon(1e-6)
    assert 4 * once < sixteen < 5 * once


def test_one_round_is_a_little_above_the_accountant_itself() -> None:
    sketch = tacit.CMS(size=5, rows=2, width=4, key=7, epsilon="1")
    for mechanism in (tacit.GRR(size=16, epsilon="3"), tacit.OUE(size=4, epsilon="2"), sketch):
        alone, looser = (delta_of(mechanism, epsilon, n=6_000) for epsilon in (0.12, 0.11))
        composed = compose_delta([ShuffleRound(mechanism, 6_000)], 0.12, step=5e-5, delta=1e-6)
        # Losses are rounded up, and the crowd is taken to be as small as it is once in 10^12 times.
        assert alone <= composed <= looser


def brute_two_rounds(mechanism: tacit.GRR, n: int, epsilon: float) -> float:
    """Two independent rounds of the same crowd, the others on the victim's value or on a third one."""
    rows, worst = table(mechanism), 0.0
    for others in product(range(len(rows)), repeat=n - 1):
        laws = [several([rows[v] for v in (*others, victim)], rows.shape[1]) for victim in (0, 1)]
        keys = sorted(laws[0])
        own, other = (np.array([law[key] for key in keys]) for law in laws)
        both = np.maximum(np.outer(own, own) - exp(epsilon) * np.outer(other, other), 0).sum()
        worst = max(worst, float(both))
    return worst


def test_two_small_rounds_cover_the_truth() -> None:
    mechanism = tacit.GRR(size=3, epsilon="1")
    for epsilon in (0.5, 1.0, 1.5):
        claimed = compose_delta([ShuffleRound(mechanism, 4, times=2)], epsilon, step=1e-3, delta=1e-6)
        assert brute_two_rounds(mechanism, 4, epsilon) <= claimed


def test_different_rounds_compose() -> None:
    parts = [
        ShuffleRound(tacit.GRR(size=8, epsilon="2"), 3_000),
        ShuffleRound(tacit.OUE(size=8, epsilon="2"), 3_000, times=2),
    ]
    whole = compose_delta(parts, 0.5, step=5e-4, delta=1e-6)
    assert max(compose_delta([part], 0.5, step=5e-4, delta=1e-6) for part in parts) < whole < 1


def test_no_rounds_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="at least one round"):
        compose_epsilon([], 1e-6)
