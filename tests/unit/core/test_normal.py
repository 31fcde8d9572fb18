"""The normal distribution against SciPy and against itself, far into the tails."""

from math import inf, isinf, nan

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from tacit.core.statistics.normal import normal_cdf, normal_isf, normal_quantile, normal_sf
from tacit.errors import InvalidSpec

POINTS = [-8.0, -1.5, -1e-9, 0.0, 1e-9, 0.3, 1.0, 2.5, 6.0, 12.0, 25.0, 37.0]
TAILS = [
    *(10.0**-power for power in (1, 2, 3, 5, 8, 15, 16, 17, 20, 50, 100, 200, 300)),
    0.5 + 1e-12,  # the quantile itself is tiny here
    0.5 - 1e-12,
    0.5,
    0.7,
    0.975,
    1.0 - 1e-10,
]


@pytest.mark.parametrize("x", POINTS)
def test_tails_agree_with_scipy(x: float) -> None:
    assert normal_sf(x) == pytest.approx(float(norm.sf(x)), rel=1e-12)
    assert normal_cdf(-x) == pytest.approx(float(norm.cdf(-x)), rel=1e-12)


@pytest.mark.parametrize("tail", TAILS)
def test_inverse_survival_agrees_with_scipy(tail: float) -> None:
    # SciPy's own inverse carries an absolute error of one rounding near the median.
    assert normal_isf(tail) == pytest.approx(float(norm.isf(tail)), rel=1e-12, abs=1e-16)
    assert normal_quantile(tail) == -normal_isf(tail)


@pytest.mark.parametrize("tail", [1e-5, 1e-20, 1e-100, 1e-300])
def test_inverse_survival_solves_its_equation_in_logarithms(tail: float) -> None:
    # A relative error r of the quantile x shows as about r * x**2 in the logarithm of the tail.
    x = normal_isf(tail)
    assert float(log_ndtr(-x)) == pytest.approx(float(np.log(tail)), abs=1e-12 * x * x)


def test_smallest_double_still_has_a_quantile() -> None:
    assert normal_isf(5e-324) == pytest.approx(38.467405617144344, rel=1e-12)


def test_ends_are_infinite() -> None:
    assert normal_isf(0.0) == inf == normal_quantile(1.0)
    assert isinf(normal_isf(1.0)) and normal_quantile(0.0) == -inf
    assert (normal_sf(inf), normal_sf(-inf), normal_cdf(inf), normal_cdf(-inf)) == (0.0, 1.0, 1.0, 0.0)


@pytest.mark.parametrize("bad", [-1e-300, 1.0000001, nan, inf])
def test_what_is_no_probability_is_refused(bad: float) -> None:
    with pytest.raises(InvalidSpec, match="between 0 and 1"):
        normal_isf(bad)
