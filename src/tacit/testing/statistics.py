"""Statistical assertions that state their false-alarm probability and prove their power."""

from math import lgamma, log

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64

ALPHA = 1e-7
"""False-alarm probability of one assertion; the suite's budget is 1e-4 over at most a thousand of them."""


def _gamma_tail(shape: float, x: float) -> tuple[float, float]:
    """Lower and upper tail of the regularised incomplete gamma function (series or continued fraction)."""
    if x <= 0:
        return 0.0, 1.0
    front = np.exp(shape * log(x) - x - lgamma(shape))
    # The series converges quickly left of the mean, Lentz's continued fraction right of it.
    if x < shape + 1:
        term = total = 1.0 / shape
        k = shape
        while abs(term) > abs(total) * 1e-15:
            k += 1
            term *= x / k
            total += term
        lower = float(front * total)
        return lower, 1 - lower
    b = x + 1 - shape
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 100_000):
        a = -i * (i - shape)
        b += 2
        d = 1 / (a * d + b)
        c = b + a / c
        step = d * c
        h *= step
        if abs(step - 1) < 1e-15:
            break
    upper = float(front * h)
    return 1 - upper, upper


def chi_square_p(statistic: float, degrees: int) -> float:
    """Return the two-sided p-value of a chi-square statistic."""
    lower, upper = _gamma_tail(degrees / 2, statistic / 2)
    return min(1.0, 2 * min(lower, upper))


def assert_fits(observed: npt.NDArray[np.int64], probability: F64, *, alpha: float = ALPHA) -> None:
    """Assert that counts fit the stated probabilities, by a chi-square test with false-alarm probability `alpha`."""
    expected = probability * observed.sum()
    # The chi-square law needs expected counts of about 5: the rarest cells are pooled until they reach it.
    order = np.argsort(expected)
    sums, seen = np.cumsum(expected[order]), np.cumsum(observed[order])
    pool = int(np.searchsorted(sums, 5)) + 1 if expected.min() < 5 else 0
    big_e, big_o = expected[order][pool:], observed[order][pool:]
    if pool:
        big_e, big_o = np.append(big_e, sums[pool - 1]), np.append(big_o, seen[pool - 1])
    statistic = float(np.sum((big_o - big_e) ** 2 / big_e))
    p = chi_square_p(statistic, max(1, len(big_e) - 1))
    assert p > alpha, f"counts do not fit their probabilities: chi-square {statistic:.1f}, p {p:.1e} < {alpha:.0e}"


def assert_unbiased(errors: F64, variance: F64, *, alpha: float = ALPHA) -> None:
    """Assert that means over runs (axis 0) of the errors are zero, per cell, given the exact variance of one run."""
    z = errors.mean(axis=0) / np.sqrt(variance / len(errors))
    p = chi_square_p(float(np.sum(z**2)), z.size)
    assert p > alpha, f"biased: chi-square {np.sum(z**2):.1f} of {z.size} cells, p {p:.1e} < {alpha:.0e}"


def assert_variance(errors: F64, variance: F64, *, alpha: float = ALPHA, must_reject: float = 1.3) -> None:
    """Assert that squared errors fit the stated variance, two-sidedly, and that one wrong by `must_reject` would not.

    `errors` must be (nearly) independent normal; (error^2/variance) then sums to a chi-square.
    """
    statistic = float(np.sum(errors**2 / variance))
    p = chi_square_p(statistic, errors.size)
    assert p > alpha, f"variance is off: mean square {statistic / errors.size:.3f} over {errors.size} errors, p {p:.1e}"
    # Power: the p-value that errors of a wrong variance would have on average must be a rejection.
    for factor in (must_reject, 1 / must_reject):
        power = chi_square_p(errors.size * factor, errors.size)
        assert power < alpha, f"the test has no power: a variance off by {factor:.2f} gives p {power:.1e}"
