"""The laws of samplers that read whole coin words; see tests/laws/intervals.py for how they are found."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from tests.laws.intervals import (
    EPSILONS,
    ID,
    below,
    boxes,
    check_complete,
    check_law,
    check_log_prob,
    check_unbiased,
    largest_ratio,
    law,
    laws_of,
    mean,
)

from tacit.core.mechanism import Oracle
from tacit.core.pure import PureOracle
from tacit.device.kinds.grr import grr_draw, grr_odds, low_cell
from tacit.device.kinds.hadamard import distinct, independent, parity
from tacit.device.numbers.budget import Amplified, Epsilon, Share
from tacit.device.numbers.exact import WORD, as_probability, uniform_spread
from tacit.errors import InvalidSpec
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.laplace import DiscreteLaplace
from tacit.numeric.mean import OneBit
from tacit.numeric.rounded import Rounded
from tacit.numeric.square_wave import SquareWave
from tacit.oracles.blocks import ABR, CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR, HRRT, HRRSubspace
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.oracles.histogram_encoding import SHE
from tacit.oracles.local_hash import BLH, FLH, OLH, RMP
from tacit.oracles.sketch import HCMS


def test_intervals_find_every_break_point():
    assert law(lambda c: c.below(5)) == {True: Fraction(5, WORD), False: Fraction(WORD - 5, WORD)}
    thirds = law(lambda c: c.uniform(3))
    assert [thirds[i] * WORD for i in range(3)] == [WORD // 3 + 1, WORD // 3, WORD // 3]
    twisted = law(lambda c: c.uniform(4) in (0, 3))
    assert twisted == {True: Fraction(1, 2), False: Fraction(1, 2)}


def test_an_operation_that_is_not_understood_is_an_error():
    for run in (
        lambda c: c.word() + 1,
        lambda c: c.word() & 1,
        lambda c: c.word() == 3,
        lambda c: not c.word(),
        lambda c: c.words(1),
    ):
        with pytest.raises(TypeError):
            law(run)


@pytest.mark.parametrize("m", [1, 2, 3, 10, 100])
def test_uniform_is_as_even_as_its_spread_says(m: int):
    shares = [chance * WORD for chance in law(lambda c: c.uniform(m)).values()]
    assert set(shares) <= {WORD // m, -(-WORD // m)}
    assert len(shares) == m
    assert max(shares) / min(shares) <= uniform_spread(m)


# Kinds of fixed cost.

EXACT: dict[str, Callable[[Any], Any]] = {
    "grr": lambda e: GRR(size=4, epsilon=e),
    "hrr": lambda e: HRR(size=3, epsilon=e),
    "hrr_all_rows": lambda e: HRR(size=4, epsilon=e, skip_zero=False),
    "hrr_t": lambda e: HRRT(size=4, epsilon=e, coefficients=2),
    "hrr_subspace": lambda e: HRRSubspace(size=4, epsilon=e, coefficients=2),
    "hrr_signed": lambda e: HRRSigned(size=5, epsilon=e),
    "hrr_signed_one_node": lambda e: HRRSigned(size=2, epsilon=e),
    "hrr_signed_full": lambda e: HRRSigned(size=8, epsilon=e),
    "flh": lambda e: FLH(size=4, epsilon=e, pool=3, key=7, buckets=3),
    "rmp": lambda e: RMP(size=4, epsilon=e, pool=3, key=7),
    "hcms": lambda e: HCMS(size=4, epsilon=e, rows=3, width=4, key=7),
    "hcms_all": lambda e: HCMS(size=4, epsilon=e, rows=2, width=2, key=7, skip_zero=False),
    "she": lambda e: SHE(size=2, epsilon=e, grid=2, bound=1),
    "she_wide": lambda e: SHE(size=2, epsilon=e, grid=4, bound=3),
    "onebit": lambda e: OneBit(top=3, epsilon=e),
    "dlap": lambda e: DiscreteLaplace(top=3, epsilon=e),
    "dlap_one": lambda e: DiscreteLaplace(top=1, epsilon=e),
    "dlap_bound": lambda e: DiscreteLaplace(top=4, bound=1, epsilon=e),
    "sw": lambda e: SquareWave(size=4, epsilon=e),
    "sw_width": lambda e: SquareWave(size=3, width=3, epsilon=e),
    "sw_wide": lambda e: SquareWave(size=2, width=5, epsilon=e),
    "dbitflip": lambda e: DBitFlip(size=3, sampled=2, epsilon=e),
    "dbitflip_one": lambda e: DBitFlip(size=3, sampled=1, epsilon=e),
    "dbitflip_all": lambda e: DBitFlip(size=2, sampled=2, epsilon=e),
    "rounded": lambda e: Rounded(top=3, inner=GRR(size=4, epsilon=e)),
    "rounded_one": lambda e: Rounded(top=2, inner=HRR(size=2, epsilon=e)),
}
"""Kinds whose `realised_odds` is the exact largest ratio."""

BOUNDED: dict[str, Callable[[Any], Any]] = {
    "ss": lambda e: SS(size=4, epsilon=e, subset=2),
    "ss_one": lambda e: SS(size=3, epsilon=e, subset=1),
    "ss_most": lambda e: SS(size=4, epsilon=e, subset=3),
    "cbr_singer": lambda e: CBR(size=5, epsilon=e, family="singer", order=2, dimension=3),
    "cbr_paley": lambda e: CBR(size=11, epsilon=e, family="paley", order=11, dimension=1),
    "abr": lambda e: ABR(size=5, epsilon=e, block=2),
    "abr_padded": lambda e: ABR(size=4, epsilon=e, modulus=7, block=3),
}
"""Kinds that state a bound: uneven draws depend on the value there."""

FIXED = {**EXACT, **BOUNDED}
OVER_KEYS = ("flh", "rmp", "hcms", "hcms_all")
"""Estimators that are unbiased over random public keys, not for one key."""


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("name", FIXED)
def test_fixed_cost_kinds_have_the_law_they_state(name: str, epsilon: Any):
    m = FIXED[name](epsilon)
    laws = laws_of(m, below(m))
    check_law(m, laws, below(m), exact=name in EXACT)
    check_complete(m, laws)
    if isinstance(m, Oracle) and name not in (*OVER_KEYS, "dbitflip", "dbitflip_one"):
        check_unbiased(m, laws)


@pytest.mark.parametrize("name", FIXED)
def test_every_value_takes_the_same_number_of_words(name: str):
    m = FIXED[name]("1")
    sizes = {len(box) for v in below(m) for box, _ in boxes(lambda c, v=v: m.privatize_one(v, c))}
    assert len(sizes) == 1
    assert m.coin_words in (None, *sizes)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_bounds_are_tight_to_a_part_in_two_to_the_fifty(name: str, epsilon: str):
    m = BOUNDED[name](epsilon)
    assert m.realised_odds() / largest_ratio(laws_of(m, below(m))) <= 1 + Fraction(1, 1 << 50)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
def test_support_probabilities_are_p_and_q_exactly(epsilon: Any):
    m = GRR(size=4, epsilon=epsilon)
    for v, found in enumerate(laws_of(m, below(m))):
        assert [found[bytes([y])] for y in range(4)] == [m.p if y == v else m.q for y in range(4)]


@pytest.mark.parametrize("name", ["ss", "cbr_singer", "cbr_paley", "abr", "abr_padded"])
def test_blocks_contain_the_value_with_probability_p_exactly(name: str):
    m: PureOracle = BOUNDED[name]("1")
    for v, found in enumerate(laws_of(m, below(m))):
        inside = {y: bool(m.log_prob(m.decode(y), v)[0] == m.log_prob(m.all_reports(), v).max()) for y in found}
        assert mean(found, lambda y, inside=inside: inside[y]) == m.p


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
def test_numbers_are_unbiased_in_rationals(epsilon: Any):
    one = OneBit(top=3, epsilon=epsilon)
    for v, found in enumerate(laws_of(one, below(one))):
        assert (mean(found, lambda y: y[0]) * WORD - one.low) / one.slope == v
    she = SHE(size=2, epsilon=epsilon, grid=2, bound=1)
    for v, found in enumerate(laws_of(she, below(she))):
        codes = [mean(found, lambda y, i=i: y[i]) for i in range(2)]
        assert codes == [she.mean_own if i == v else she.mean_other for i in range(2)]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
def test_laplace_tables_decode_without_bias(epsilon: Any):
    m = DiscreteLaplace(top=3, bound=1, epsilon=epsilon)
    scale = float(np.abs(m.decoded).max())
    for v, found in enumerate(laws_of(m, below(m))):
        assert abs(sum(float(chance) * m.decoded[y[0]] for y, chance in found.items()) - v) <= 1e-12 * scale


@pytest.mark.parametrize("sampled", [1, 2, 3])
def test_dbitflip_bits_are_set_with_p_and_q_whatever_was_sampled(sampled: int):
    m = DBitFlip(size=3, sampled=sampled, epsilon="1")
    for v, found in enumerate(laws_of(m, below(m))):
        for buckets in combinations(range(3), sampled):
            held = {y: c for y, c in found.items() if tuple(y[:sampled]) == buckets}
            for i, bucket in enumerate(buckets):
                rate = mean(held, lambda y, i=i: y[-1] >> i & 1) / sum(held.values())
                assert rate == (m.p if bucket == v else m.q)


@pytest.mark.parametrize("sampled", [2, 7, 1000, 1 << 20])
def test_an_amplified_epsilon_realises_at_most_its_amplified_odds(sampled: int):
    """The draw alone: that a document may use it is for padding and sampling to decide."""
    budget = Amplified("1", sampled)
    low = low_cell(budget.odds, 4)
    laws = [law(lambda c, v=v: grr_draw(v, 4, low, c)) for v in range(4)]
    assert all(sum(found.values()) == 1 for found in laws)
    assert largest_ratio(laws) == grr_odds(4, low) <= Fraction(budget.odds, WORD)
    assert budget.odds == sampled * (Epsilon("1").odds - WORD) + WORD


# Hash functions: what the first word chooses is the same for every value.


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("make", [lambda e: BLH(size=1 << 64, epsilon=e), lambda e: OLH(size=5, buckets=3, epsilon=e)])
def test_local_hashing_for_single_seeds(make: Callable[[Any], Any], epsilon: Any):
    m = make(epsilon)
    values = [0, 1, 2, 3, 4, m.size - 1]
    for seed in (0, 1, 12345, (1 << 32) - 1):
        laws = laws_of(m, values, ((seed << 32, seed + 1 << 32),))
        assert all(report[:4] == seed.to_bytes(4, "little") for found in laws for report in found)
        assert all(sum(found.values()) == 1 for found in laws)
        assert max(max(f.values()) for f in laws) == m.p
        assert largest_ratio(laws) <= m.realised_odds() <= Fraction(m.odds, WORD)
        check_log_prob(m, laws, values, Fraction(1, 1 << 32))
    assert any(largest_ratio(laws_of(m, values, ((s << 32, s + 1 << 32),))) == m.realised_odds() for s in range(5))


# What is drawn without looking at the value.


@pytest.mark.parametrize(("count", "below_"), [(1, 2), (1, 5), (2, 3), (2, 5), (3, 4), (3, 5), (4, 4)])
def test_floyd_draws_every_subset_alike(count: int, below_: int):
    found = law(lambda c: tuple(distinct(count, below_, c)))
    assert sorted(found) == list(combinations(range(below_), count))
    assert max(found.values()) / min(found.values()) - 1 < Fraction(1, 1 << 58)


@pytest.mark.parametrize(("count", "order"), [(1, 2), (1, 8), (2, 4), (2, 8), (3, 8)])
def test_independent_rows_are_uniform_over_independent_tuples(count: int, order: int):
    found = law(lambda c: tuple(independent(count, order, c)))
    expected = [
        rows
        for rows in product(range(1, order), repeat=count)
        if all(xor_of(part) for size in range(1, count + 1) for part in combinations(rows, size))
    ]
    assert sorted(found) == expected
    assert max(found.values()) / min(found.values()) - 1 < Fraction(1, 1 << 58)


def xor_of(rows: "tuple[int, ...]") -> int:
    total = 0
    for row in rows:
        total ^= row
    return total


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_signed_rows_are_unbiased_with_the_stated_variance_in_rationals(size: int, epsilon: Any):
    """All rows are drawn alike, so a report (row, sign) is worth its entry over `keep`: mean +-1, square 1/keep^2."""
    m = HRRSigned(size=size, epsilon=epsilon)
    for v, found in enumerate(laws_of(m, below(m))):
        for row, sign in product(range(m.order), (0, 1)):
            words = WORD - m.low if sign == parity(row & v >> 1) ^ v & 1 else m.low
            assert found[bytes([2 * row + sign])] == Fraction(words, m.order * WORD)
        for u in range(m.nodes):
            worth = {y: (-1) ** (y[0] & 1) * (-1) ** parity(y[0] >> 1 & u) / m.keep for y in found}
            truth = (1 - 2 * (v & 1)) * (v >> 1 == u)
            assert mean(found, lambda y, worth=worth: worth[y]) == truth
            variance = mean(found, lambda y, worth=worth: worth[y] ** 2) - truth**2
            assert variance == 1 / m.keep**2 - (v >> 1 == u)


def test_hrr_t_reports_the_signs_of_its_rows():
    m = HRRT(size=4, epsilon="1", coefficients=2)
    for v, found in enumerate(laws_of(m, below(m))):
        true = {y: sum(parity(y[i] & v) << i for i in range(2)) for y in found}
        kept = mean(found, lambda y, true=true: y[-1] == true[y])
        assert kept == as_probability(WORD - 3 * m.low)


def test_bound_kinds_refuse_what_they_cannot_realise():
    with pytest.raises(InvalidSpec, match="too small"):
        ABR(size=1 << 31, epsilon=Share("0.001", "1/999999999"))
