"""Windows of memoised reports: the covariance by enumeration, and the rules that hold without knowing who changed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tacit.core.estimate import Estimate
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec
from tacit.numeric.mean import OneBit
from tacit.numeric.memo import Memoized
from tacit.oracles.grr import GRR
from tacit.oracles.layered import LayeredMemo
from tacit.post.series.memoised import least_covariance, memoised_difference, memoised_mean


def layered(size: int) -> LayeredMemo:
    return LayeredMemo(inner=GRR(size=size, epsilon="2"), first="1", most_values=2)


def moment(m: LayeredMemo, cell: int, values: tuple[int, int]) -> Fraction:
    """E of the product of a device's contributions to a cell in two windows, over memos and fresh layers, exactly."""
    inner, w = m.permanent, Fraction(2) ** 64
    fresh_q = Fraction(m.fresh_low) / w
    fresh_p = 1 - (m.size - 1) * fresh_q
    total = Fraction(0)
    same = values[0] == values[1]
    for memos in product(range(m.size), repeat=1 if same else 2):
        chance = Fraction(1)
        for memo, value in zip(memos, dict.fromkeys(values), strict=True):
            chance *= inner.p if memo == value else inner.q
        said = [fresh_p if memo == cell else fresh_q for memo in (memos * 2 if same else memos)]
        for reports in product((True, False), repeat=2):
            both = chance
            for is_cell, p in zip(reports, said, strict=True):
                both *= (p if is_cell else 1 - p) * ((1 if is_cell else 0) - m.q) / (m.p - m.q)
            total += both
    return total


@pytest.mark.parametrize("size", [2, 3, 4])
def test_unchanged_answers_have_the_covariance_of_the_permanent_layer(size: int) -> None:
    m = layered(size)
    inner = m.permanent
    for value, cell in product(range(size), repeat=2):
        truth = Fraction(value == cell)
        found = moment(m, cell, (value, value)) - truth**2
        p = inner.p if value == cell else inner.q
        assert found == p * (1 - p) / (inner.p - inner.q) ** 2
    # Averaged over respondents of whom a share f holds the cell, per respondent:
    f = np.array([0.3])
    p, q = float(inner.p), float(inner.q)
    expected = (0.3 * p * (1 - p) + 0.7 * q * (1 - q)) / (p - q) ** 2
    assert least_covariance(m, f, 1, 1.0)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [2, 4])
def test_changed_answers_have_none(size: int) -> None:
    m = layered(size)
    for one, other, cell in product(range(size), repeat=3):
        if one != other:
            assert moment(m, cell, (one, other)) == Fraction(one == cell) * Fraction(other == cell)


def rounds(n: int, unchanged: float, runs: int) -> tuple[LayeredMemo, np.ndarray, list[tuple[Estimate, Estimate]]]:
    """Two rounds of the same devices, by their permanent answers: a share keeps theirs, the others are drawn anew."""
    m, rng = layered(4), np.random.default_rng(3)
    stay, values = int(n * unchanged), rng.integers(0, 4, n)
    later = np.concatenate([values[:stay], (values[stay:] + 1) % 4])
    made: list[tuple[Estimate, Estimate]] = []

    def through(given: np.ndarray, low: int) -> np.ndarray:
        move = rng.random(given.shape) < 3 * low / 2**64
        return np.where(move, (given + rng.integers(1, 4, given.shape)) % 4, given)

    for _ in range(runs):
        first = through(values, m.permanent.low)
        second = np.concatenate([first[:stay], through(later[stay:], m.permanent.low)])
        said = [through(one, m.fresh_low).astype(m.report_dtype) for one in (first, second)]
        made.append((m.estimate(m.tally(said[1])), m.estimate(m.tally(said[0]))))
    truth = (np.bincount(later, minlength=4) - np.bincount(values, minlength=4)) / n
    return m, truth, made


def test_a_declared_share_of_unchanged_answers_makes_differences_sharper() -> None:
    """500 runs of 1,000 devices, 80 % unchanged: squared errors over stated variances, summed over cells.

    The mean of 2,000 squared scores has a standard deviation of at most sqrt(2/500) = .063 (cells that depend on each
    other wholly), so that .28 either side is missed with probability 1e-5; a ratio of 1.35 would be noticed.
    """
    m, truth, made = rounds(1000, 0.8, 500)
    ratios: list[float] = []
    plain: list[float] = []
    for later, earlier in made:
        exact = memoised_difference(later, earlier, mechanism=m, unchanged=0.8)
        ratios.append(float(np.mean((exact.value - truth) ** 2 / exact.variance)))
        plain.append(float(np.mean((exact.value - truth) ** 2 / memoised_difference(later, earlier).variance)))
    assert abs(np.mean(ratios) - 1) < 0.28
    assert np.mean(plain) < np.mean(ratios)


@pytest.mark.parametrize("unchanged", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.97])
def test_a_declared_share_never_makes_a_variance_too_small(share: float, unchanged: float) -> None:
    """Whoever changed: with `held` of the unchanged answers in the cell, the variance follows from both layers."""
    # A fresh layer that hides little, so that nearly all of the noise repeats.
    m, n = LayeredMemo(inner=GRR(size=10, epsilon="2"), first="1.95", most_values=2), 1000
    f = np.array([share, 1 - share])
    window = Estimate(f, m.moments.variance(f) / n, n)
    stated = memoised_difference(window, window, mechanism=m, unchanged=unchanged).variance
    own, other = (float(m.permanent.moments.variance(np.array([cell]))[0]) for cell in (1.0, 0.0))
    for cell in range(2):
        held = np.linspace(max(0.0, f[cell] + unchanged - 1), min(f[cell], unchanged), 9)
        truth = 2 * window.variance[cell] - 2 * (own * held + other * (unchanged - held)) / n
        assert stated[cell] == pytest.approx(float(truth.max()), rel=1e-9)


def test_means_of_memoised_windows_have_the_mean_error() -> None:
    _, _, ((later, earlier), *_) = rounds(200, 1.0, 1)
    mean = memoised_mean([later, earlier])
    assert mean.standard_error == pytest.approx((later.standard_error + earlier.standard_error) / 2)
    assert np.all(mean.variance > later.variance / 2)
    with pytest.raises(InvalidSpec, match="no window has reports"):
        memoised_mean([Estimate(np.zeros(4), np.full(4, np.inf), 0)])


def test_a_share_needs_the_mechanism_and_the_same_devices() -> None:
    m, _, ((later, earlier), *_) = rounds(200, 1.0, 1)
    with pytest.raises(InvalidSpec, match="needs the mechanism"):
        memoised_difference(later, earlier, unchanged=0.5)
    with pytest.raises(InvalidSpec, match="must be a share"):
        memoised_difference(later, earlier, mechanism=m, unchanged=1.5)


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_trends_of_memoised_numbers_have_the_noise_of_what_changed(epsilon: str) -> None:
    """Numbers rounded to an end of the grid, a permanent bit for either end: |D| (E^2 + 1)/(E - 1)^2 - D^2, exactly.

    Enumerated over the point at which a device rounds and over both bits; nothing changed, no noise.
    """
    m = Memoized(inner=OneBit(top=6, epsilon=epsilon), most_values=2)
    inner, top = m.inner, 6
    assert isinstance(inner, OneBit)
    chance = {key: Fraction(inner.threshold(key), WORD) for key in (0, top)}
    told = {bit: Fraction(bit * WORD - inner.low, inner.slope * top) for bit in (0, 1)}
    square = sum(
        (chance[top] if a else 1 - chance[top]) * (chance[0] if b else 1 - chance[0]) * (told[a] - told[b]) ** 2
        for a, b in product((0, 1), repeat=2)
    )
    e = np.exp(float(epsilon))
    for before, after in product(range(top + 1), repeat=2):
        keys = [[m.value_key((alpha,), value) for value in (before, after)] for alpha in range(top)]
        different = Fraction(sum(one != other for one, other in keys), top)
        step = Fraction(after - before, top)
        found = different * square - step**2
        expected = abs(float(step)) * (e**2 + 1) / (e - 1) ** 2 - float(step) ** 2
        assert float(found) == pytest.approx(expected, abs=1e-12)
