"""The certified accountants against enumeration, against 60-digit arithmetic and against each other."""

from fractions import Fraction
from itertools import product
from math import exp
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.shuffle.enumeration import blanket_deltas, hashing_table, merged, table, true_deltas

import tacit
from tacit.core.statistics.binomial import mass
from tacit.shuffle.accounting.blanket import COARSE, Blanket
from tacit.shuffle.accounting.cells import Cells, cells_of, hashed_cells
from tacit.shuffle.accounting.clone import Clones

EPSILONS = (0.05, 0.2, 0.5, 0.8, 1.0, 1.2, 1.4)
UNEVEN = 2e-6  # what covers the last bits of a device's draws

MECHANISMS: dict[str, Any] = {
    "grr 3": tacit.GRR(size=3, epsilon="1.5"),
    "grr 4": tacit.GRR(size=4, epsilon="1.5"),
    "hrr 4": tacit.HRR(size=4, epsilon="1.5"),
    "hrr 4 with row 0": tacit.HRR(size=4, epsilon="1.5", skip_zero=False),
    "ss 4 2": tacit.SS(size=4, epsilon="1.5", subset=2),
    "oue 3": tacit.OUE(size=3, epsilon="1.5"),
    "sue 3": tacit.SUE(size=3, epsilon="1.5"),
    "cbr 7": tacit.CBR(size=4, epsilon="1.5", family="singer", order=2, dimension=3),
    "cbr paley 3": tacit.CBR(size=3, epsilon="1.5", family="paley", order=3, dimension=1),
    "abr 3": tacit.ABR(size=3, epsilon="1.5", modulus=3, block=2),
    "abr 5": tacit.ABR(size=4, epsilon="1.5", modulus=5, block=2),
    "hrr_t": tacit.HRRT(size=4, epsilon="1.5", coefficients=2),
    "hrr_subspace": tacit.HRRSubspace(size=4, epsilon="1.5", coefficients=2),
    "hrr_signed": tacit.HRRSigned(size=4, epsilon="1.5"),
    "flh": tacit.FLH(size=3, epsilon="1.5", buckets=3, pool=2, key=5),
}
LOOSE = {"hrr_t", "hrr_subspace", "hrr_signed", "flh"}
"""Kinds that are accounted for as if two values never collided: their blanket is looser than it could be."""


def crowd(name: str) -> tuple[np.ndarray, np.ndarray, Cells]:
    """Chances of the reports, gamma omega over them, and the cells."""
    if name == "lh 3 2":
        rows, cells = hashing_table(4.0, 3, 2), hashed_cells(Fraction(1, 5), 2, Fraction(1, 2))
        return *uniform_blanket(rows), cells
    mechanism = MECHANISMS[name]
    rows, cells = table(mechanism), cells_of(mechanism)
    assert cells is not None
    if mechanism.kind in ("oue", "sue"):
        # Bits drawn with q each; reports with all bits set could give a little more.
        p, q = float(mechanism.p), float(mechanism.q)
        bits = np.unpackbits(mechanism.all_reports(), axis=1, count=mechanism.size, bitorder="little").sum(axis=1)
        return rows, (1 - p) / (1 - q) * q**bits * (1 - q) ** (mechanism.size - bits), cells
    return *uniform_blanket(rows), cells


def uniform_blanket(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Chances and gamma omega where all reports are alike under omega; those that tell the same are merged."""
    whole = merged(np.vstack([rows, np.full(rows.shape[1], rows.min())]))
    return whole[:-1], whole[-1]


def check_enumeration(name: str, n: int, fakes: int) -> None:
    rows, blanket, cells = crowd(name)
    omega = blanket / blanket.sum()
    claimed = np.array([Blanket(cells, n, fakes).delta(epsilon) for epsilon in EPSILONS])
    every = None if name == "lh 3 2" else MECHANISMS[name]
    symmetric = every is None or every.kind in ("grr", "ss", "oue", "sue", "hrr")
    truth = true_deltas(rows, n, EPSILONS, fakes, omega, [(0, 1)] if symmetric else ())
    assert np.all(claimed >= truth * (1 - 1e-12))
    if name not in LOOSE:
        exact = blanket_deltas(rows, blanket, n, EPSILONS, fakes)
        assert np.allclose(claimed, exact, rtol=UNEVEN, atol=1e-15)


@pytest.mark.parametrize("name", [*MECHANISMS, "lh 3 2"])
def test_small_crowds_equal_the_enumerated_blanket_and_cover_the_truth(name: str) -> None:
    check_enumeration(name, 3, 0)


@pytest.mark.parametrize("name", ["grr 3", "lh 3 2", "hrr 4"])
def test_small_crowds_with_fakes(name: str) -> None:
    check_enumeration(name, 3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("fakes", [0, 2])
@pytest.mark.parametrize("n", [4, 5, 6])
@pytest.mark.parametrize("name", [*MECHANISMS, "lh 3 2"])
def test_crowds_up_to_six_equal_the_enumerated_blanket_and_cover_the_truth(name: str, n: int, fakes: int) -> None:
    if len(crowd(name)[0][0]) > 8 and n + fakes > 6:
        pytest.skip("too many multisets of reports to enumerate")
    check_enumeration(name, n, fakes)


def test_enumeration_would_notice_a_blanket_that_is_too_good() -> None:
    # Cells of a mechanism with more values than there are: more noise than is sent.
    rows, _, _ = crowd("grr 3")
    cells = cells_of(tacit.GRR(size=5, epsilon="1.5"))
    assert cells is not None
    assert Blanket(cells, 4).delta(0.5) < true_deltas(rows, 4, [0.5], pairs=[(0, 1)])[0]


def test_the_claim_for_an_ideal_hash_is_too_small_where_two_values_never_collide() -> None:
    """Every function from three values to three buckets under which the first two differ: what no seed may do."""
    odds, buckets = Fraction(4), 3
    columns = [
        [float(odds if function[value] == y else 1) for value in range(3)]
        for function in product(range(buckets), repeat=3) if function[0] != function[1] for y in range(buckets)
    ]  # fmt: skip
    whole = np.array(columns).T
    rows = merged(whole / whole.sum(axis=1, keepdims=True))
    truth = true_deltas(rows, 3, EPSILONS, pairs=[(0, 1)])
    low = 1 / (odds + buckets - 1)
    ideal, any_hash = (
        np.array([Blanket(hashed_cells(low, buckets, rate), 3).delta(epsilon) for epsilon in EPSILONS])
        for rate in (Fraction(1, buckets), Fraction(0))
    )
    assert np.all(any_hash >= truth) and np.any(ideal < 0.9 * truth)


def test_clones_cover_the_truth() -> None:
    for name in ("grr 3", "oue 3", "hrr 4"):
        rows, _, cells = crowd(name)
        truth = true_deltas(rows, 4, EPSILONS, pairs=[(0, 1)])
        assert np.all([Clones(cells.x, 4).delta(epsilon) for epsilon in EPSILONS] >= truth)


# Large crowds: 60 digits.


def binomial_masses(n: int, p: Any, low: int, high: int) -> list[Any]:
    """Pr[X = k] for k from low to high, with 60 digits."""
    mass_ = mpmath.binomial(n, low) * p**low * (1 - p) ** (n - low)
    found = [mass_]
    for k in range(low, high):
        mass_ *= p * (n - k) / ((1 - p) * (k + 1))
        found.append(mass_)
    return found


def exact_slot_delta(cells: Cells, m: int, epsilon: float) -> Any:
    """D_m of independent supports or of disjoint ones, with 60 digits."""
    with mpmath.workdps(60):
        x, gamma, ratio = (mpmath.mpf(v.numerator) / v.denominator for v in (cells.x, cells.gamma, Fraction(1)))
        ratio = mpmath.exp(epsilon)
        shift = (ratio - 1) * m / (x - 1)
        total = mpmath.mpf(0)
        if cells.independent:
            chance = mpmath.mpf(cells.support.numerator) / cells.support.denominator
            mean, sd = m * chance, mpmath.sqrt(m * chance * (1 - chance))
            low, high = max(0, int(mean - 14 * sd)), min(m, int(mean + 16 * sd) + 20)
            masses = binomial_masses(m, chance, low, high)
            above, first = [mpmath.mpf(0)], [mpmath.mpf(0)]
            for k, mass_ in zip(range(high, low - 1, -1), reversed(masses), strict=True):
                above.append(above[-1] + mass_)
                first.append(first[-1] + k * mass_)
            for j, mass_ in zip(range(low, high + 1), masses, strict=True):
                threshold = ratio * j + shift
                tail = max(0, high + 1 - max(low, int(mpmath.ceil(threshold))))
                total += mass_ * (first[tail] - threshold * above[tail])
        else:
            single = mpmath.mpf(2) * cells.a.numerator / cells.a.denominator / gamma
            mean = m * single
            low, high = max(0, int(mean - 14 * mpmath.sqrt(mean))), min(m, int(mean + 16 * mpmath.sqrt(mean)) + 20)
            for c, likely in zip(range(low, high + 1), binomial_masses(m, single, low, high), strict=True):
                threshold = (ratio * c + shift) / (1 + ratio)
                halves = binomial_masses(c, mpmath.mpf("0.5"), int(mpmath.ceil(threshold)), c) if threshold <= c else []
                k = int(mpmath.ceil(threshold))
                total += likely * (1 + ratio) * sum((k + i - threshold) * half for i, half in enumerate(halves))
        return gamma * (x - 1) * total / m


FIXED = [
    (tacit.GRR(size=64, epsilon="4"), 600, 1.0),  # delta near 1e-9
    (tacit.GRR(size=64, epsilon="4"), 600, 1.5),  # near 1e-15
    (tacit.OLH(size=64, epsilon="4"), 3_000, 0.4),
    (tacit.OLH(size=64, epsilon="4"), 3_000, 0.55),
    (tacit.OUE(size=64, epsilon="2"), 20_000, 0.06),
]


@pytest.mark.parametrize(("mechanism", "m", "epsilon"), FIXED)
def test_sums_are_never_below_sixty_digits_and_hardly_above(mechanism: Any, m: int, epsilon: float) -> None:
    cells = cells_of(mechanism)
    assert cells is not None
    # One respondent and m - 1 fakes are a fixed number of slots.
    claimed = Blanket(cells, 1, m - 1).delta(epsilon)
    exact = exact_slot_delta(cells, m, epsilon)
    assert 1e-20 < exact < 1e-6
    assert exact <= claimed <= exact * (1 + 2e-6) + 1e-23


@pytest.mark.slow
def test_a_million_respondents_in_sixty_digits() -> None:
    for mechanism, m, epsilon in (
        (tacit.GRR(size=1024, epsilon="9.62"), 63_000, 1.0),
        (tacit.OLH(size=1024, epsilon="4"), 510_000, 0.0346),
    ):
        cells = cells_of(mechanism)
        assert cells is not None
        exact = exact_slot_delta(cells, m, epsilon)
        assert exact <= Blanket(cells, 1, m - 1).delta(epsilon) <= exact * (1 + 2e-6) + 1e-23


# Large crowds: a lower bound of the truth, when all others hold a third value and the victim one of two others.


def third_value_delta(size: int, odds: float, n: int, epsilon: float) -> float:
    q = 1 / (odds + size - 1)
    high = int(n * q + 14 * (n * q) ** 0.5 + 30)
    own = np.arange(high)
    # Others' reports on the two values: one binomial, then another among the rest.
    law = mass(own, n - 1, q)[:, None] * mass(own[None, :], (n - 1 - own)[:, None], q / (1 - q))
    up, left = np.zeros_like(law), np.zeros_like(law)
    up[1:], left[:, 1:] = law[:-1], law[:, :-1]
    p, rest = odds * q, (size - 2) * q
    return float(np.maximum(p * up + q * left + rest * law - exp(epsilon) * (q * up + p * left + rest * law), 0).sum())


def test_at_scale_the_claim_is_a_few_per_cent_above_a_lower_bound_of_the_truth() -> None:
    for size, local, n, epsilon in ((1024, "9.62", 10**6, 1.0), (64, "5", 20_000, 0.5)):
        mechanism = tacit.GRR(size=size, epsilon=local)
        claimed = Blanket(_cells(mechanism), n).delta(epsilon)
        below = third_value_delta(size, float(mechanism.realised_odds()), n, epsilon)
        assert below <= claimed <= 1.08 * below


def _cells(mechanism: Any) -> Cells:
    cells = cells_of(mechanism)
    assert cells is not None
    return cells


def test_reference_deltas_of_a_large_crowd() -> None:
    claimed = Blanket(_cells(tacit.GRR(size=1024, epsilon="9.62")), 10**6).delta(1.0)
    assert claimed == pytest.approx(1.059e-9, rel=2e-3)
    assert third_value_delta(1024, exp(9.62), 10**6, 1.0) == pytest.approx(1.038e-9, rel=1e-3)


def check_monotone(kind: str, n: int, fakes: int, epsilon: float, more: int) -> None:
    cells = _cells(MECHANISMS[kind])
    here = Blanket(cells, n, fakes).delta(epsilon)
    # Slices are cut anew for every crowd, so two neighbours may differ by what slicing costs.
    slack = 1.0 if n + more <= 60 else 1.05
    assert Blanket(cells, n + more, fakes).delta(epsilon) <= here * slack * (1 + 1e-9) + 1e-20
    assert Blanket(cells, n, fakes + more).delta(epsilon) <= here * slack * (1 + 1e-9) + 1e-20
    assert Blanket(cells, n, fakes).delta(epsilon + 0.01 * more) <= here * (1 + 1e-9) + 1e-20
    assert Blanket(cells, n, fakes, slices=COARSE).delta(epsilon) >= here * (1 - 1e-9)


CROWDS = {
    "n": st.integers(1, 400),
    "fakes": st.integers(0, 40),
    "epsilon": st.floats(0.0, 1.6),
    "more": st.integers(1, 60),
}


@examples(6)
@given(kind=st.sampled_from(["grr 4", "oue 3"]), **CROWDS)
def test_delta_falls_with_respondents_fakes_and_epsilon(**case: Any) -> None:
    check_monotone(**case)


@pytest.mark.slow
@examples(50)
@given(kind=st.sampled_from(["grr 4", "oue 3", "hrr 4", "ss 4 2"]), **CROWDS)
def test_delta_falls_for_mechanisms_with_overlap_too(**case: Any) -> None:
    check_monotone(**case)


@examples(15)
@given(
    x=st.fractions(Fraction(3, 2), 20, max_denominator=50), g=st.integers(2, 6), m=st.integers(1, 40),
    first=st.fractions(0, 1, max_denominator=20), second=st.fractions(0, 1, max_denominator=20),
    epsilon=st.floats(0, 2),
)  # fmt: skip
def test_values_that_collide_more_often_tell_less(
    x: Fraction, g: int, m: int, first: Fraction, second: Fraction, epsilon: float
) -> None:
    rare, often = sorted((min(first, Fraction(19, 20)), min(second, Fraction(19, 20))))
    low = 1 / (x + g - 1)
    more, less = (Blanket(hashed_cells(low, g, collide), 1, m - 1).delta(epsilon) for collide in (rare, often))
    assert less <= more * (1 + 1e-9) + 1e-20
