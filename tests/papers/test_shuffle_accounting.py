"""Closed forms of the shuffle model: what Table 9.2 prints, from the capacities of Table 9.1.

Source: Wang, dissertation on locally private protocols, chapter 9; Kosarak, 990,002 respondents, delta = 1e-9.
Printed numbers are means of 100 simulated runs over 42,178 values, so they agree to about one unit of their last digit.
"""

import pytest

from tacit.shuffle.accounting.published import capacity

pytestmark = pytest.mark.papers

N, DELTA = 990_002, 1e-9
EPSILONS = (0.2, 0.4, 0.6, 0.8)
BUCKETS = (45, 177, 397, 705)
SOLH = (5.27e-8, 1.30e-8, 5.76e-9, 3.24e-9)
RAP_R = (7.82e-9, 1.92e-9, 8.53e-10, 4.78e-10)


@pytest.mark.parametrize("column", range(4))
def test_table_9_2_buckets_and_error_of_local_hashing(column: int):
    m = capacity(EPSILONS[column], n=N, delta=DELTA)
    buckets = round((m + 2) / 3)
    assert buckets == BUCKETS[column]
    # Proposition 9.3.5: the variance of a rare value at x = m - buckets + 1.
    assert m * m / (N * (m - buckets) ** 2 * (buckets - 1)) == pytest.approx(SOLH[column], rel=0.005)


@pytest.mark.parametrize("column", range(4))
def test_table_9_2_error_of_removal_unary_bits(column: int):
    # Every bit flips with 1/m; epsilon is for a respondent who is removed.
    m = capacity(EPSILONS[column], n=N, delta=DELTA)
    assert (m - 1) / (N * (m - 2) ** 2) == pytest.approx(RAP_R[column], rel=0.005)
