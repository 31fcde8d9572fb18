"""Isotonic regression: against its formula, against scipy, and C against numpy bit for bit."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression as scipy_isotonic
from scipy.optimize import minimize
from tests.examples import examples

from tacit.core.estimate import Estimate, no_data
from tacit.errors import InvalidSpec
from tacit.kernels import compiled, isotonic, twin
from tacit.post.frequencies.isotonic import isotonic as isotonic_estimate
from tacit.post.frequencies.isotonic import isotonic_regression, monotone_distribution, monotone_shares

F64 = npt.NDArray[np.float64]


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(value=st.lists(st.floats(-100, 100), max_size=40).map(lambda x: np.array(x, float)), seed=st.integers(0, 99))
@examples(40)
def test_isotonic_regression_is_the_formula_of_minima_and_maxima(value: F64, seed: int) -> None:
    """Theorem 1 of Hay et al., scipy, the twin bit for bit, and the flipped order."""
    found, n = isotonic_regression(value), len(value)
    expected = [max(min(value[i : j + 1].mean() for j in range(max(i, k), n)) for i in range(k + 1)) for k in range(n)]
    assert found == pytest.approx(np.array(expected), abs=1e-9)
    assert np.array_equal(isotonic_regression(found), found)
    assert np.array_equal(isotonic_regression(value, increasing=False), -isotonic_regression(-value))
    for weights in (None, rng(seed).uniform(0.1, 3, n)):
        made = isotonic_regression(value, weights)
        assert np.array_equal(made, twin.isotonic(value, weights))
        if n:
            assert made == pytest.approx(scipy_isotonic(value, weights=weights).x, abs=1e-9)


@pytest.mark.skipif(not compiled, reason="the C core is not built, or TACIT_KERNELS=numpy")
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 5000])
def test_the_compiled_isotonic_regression_equals_its_twin(n: int) -> None:
    draws = rng(n)
    for value in (draws.normal(size=n), draws.integers(0, 5, n) * 0.1, np.arange(n) ^ 1, -np.arange(n) * 1.0):
        for weights in (None, draws.uniform(0.01, 9, n)):
            a, b = isotonic(value.astype(float), weights), twin.isotonic(value.astype(float), weights)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.array_equal(a, b)


def test_estimates_can_be_made_monotone() -> None:
    raw = Estimate(np.array([0.1, 0.5, 0.3]), np.array([1.0, 1.0, 3.0]), 100)
    assert isotonic_estimate(raw).value == pytest.approx([0.1, 0.4, 0.4])
    assert isotonic_estimate(raw, weighted=True).value == pytest.approx([0.1, 0.45, 0.45])
    assert isotonic_estimate(raw, increasing=False).value == pytest.approx([0.3, 0.3, 0.3])
    assert not isotonic_estimate(no_data(3)).has_data


@pytest.mark.parametrize(("value", "weights"), [([np.nan], None), ([[1.0]], None), ([1.0], [0.0]), ([1.0], [1.0, 2.0])])
def test_isotonic_regression_refuses_what_has_no_nearest(value: Any, weights: Any) -> None:
    with pytest.raises(InvalidSpec, match="isotonic"):
        isotonic_regression(np.array(value), None if weights is None else np.array(weights))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_monotone_distribution_is_the_solution_of_a_quadratic_program(weighted: bool) -> None:
    """12 inner boundaries: never falling, within [0, 1], ends 0 and 1; clipping afterwards is exact."""
    for seed in range(5):
        draw = rng(seed)
        noisy = np.concatenate([[0.0], np.linspace(-0.2, 1.2, 12) + draw.normal(size=12) / 4, [1.0]])
        weights = draw.uniform(0.2, 5, 12) if weighted else None
        each = np.ones(12) if weights is None else weights
        found = monotone_distribution(noisy, weights)
        steps = [{"type": "ineq", "fun": lambda x: np.diff(np.concatenate([[0.0], x, [1.0]]))}]
        best = minimize(
            lambda x, e=each, y=noisy: float(e @ (x - y[1:-1]) ** 2), np.linspace(0, 1, 14)[1:-1],
            jac=lambda x, e=each, y=noisy: 2 * e * (x - y[1:-1]), constraints=steps, tol=1e-12,
        )  # fmt: skip
        assert best.success
        assert found[1:-1] == pytest.approx(best.x, abs=1e-5)
        assert float(each @ (found - noisy)[1:-1] ** 2) <= best.fun + 1e-9


def test_prefixes_are_never_worse_for_being_monotone() -> None:
    """1,000 cases: the projection onto a convex set that holds the truth is never farther from it."""
    draw = rng(1)
    for _ in range(1000):
        size = int(draw.integers(2, 40))
        truth = np.append(0.0, np.cumsum(draw.dirichlet(np.full(size, 0.2))))
        noisy = truth + np.append(0.0, draw.normal(size=size) * draw.exponential(0.3))
        found = monotone_distribution(noisy)
        assert ((found - truth) ** 2).sum() <= ((noisy - truth) ** 2)[:-1].sum() + 1e-12
        assert found[0] == 0 and found[-1] == 1 and (np.diff(found) >= 0).all()


def test_monotone_shares_are_steps_of_a_distribution() -> None:
    assert monotone_shares(np.array([0.2, 0.3, 0.5])) == pytest.approx([0.2, 0.3, 0.5])
    assert monotone_shares(np.array([0.4])).tolist() == [1]
    assert monotone_distribution(np.array([0.0, 0.7])).tolist() == [0, 1]
