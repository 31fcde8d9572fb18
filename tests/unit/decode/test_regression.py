"""The regression decoder: worked example, solvers against references, calibration, edges."""

from dataclasses import FrozenInstanceError
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import binom, chi2, norm
from sklearn.linear_model import Lasso

from tacit.core.statistics.least_squares import weighted_least_squares
from tacit.decode.regression import decode_candidates, nonnegative_lasso
from tacit.errors import InvalidSpec

# Rates of the default client, f = a0 = 1/2 and a1 = 3/4, for a single report.
R0, R1 = 0.5625, 0.6875


class Bloom(NamedTuple):
    cohorts: int
    bits: int
    hashes: int


def random_design(shape: Bloom, candidates: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    design = np.zeros((shape.cohorts, shape.bits, candidates), dtype=np.bool_)
    cohort, candidate = np.ogrid[: shape.cohorts, :candidates]
    for _ in range(shape.hashes):
        design[cohort, rng.integers(0, shape.bits, (shape.cohorts, candidates)), candidate] = True
    return design


def respond(
    design: NDArray[np.bool_], frequency: NDArray[np.float64], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Simulate the bit counts of n users exactly; return the corrected responses and variances."""
    cohorts = len(design)
    counts = rng.multinomial(n, np.full(cohorts, 1.0 / cohorts))
    held = rng.multinomial(counts, frequency)
    true_bits = np.einsum("cik,ck->ci", design, held)
    noisy = rng.binomial(true_bits, R1) + rng.binomial(counts[:, None] - true_bits, R0)
    y = (noisy / counts[:, None] - R0) / (R1 - R0)
    rate = R0 + (R1 - R0) * y.clip(0.0, 1.0)
    variance = rate * (1.0 - rate) / (counts[:, None] * (R1 - R0) ** 2)
    return y.ravel(), variance.ravel()


def flat(design: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return design.reshape(-1, design.shape[-1])


def worked_example() -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Two cohorts of four bits, one hash, candidates A, B, C."""
    design = np.zeros((2, 4, 3), dtype=np.bool_)
    for cohort, bits in enumerate([(0, 0, 1), (0, 1, 2)]):
        design[cohort, bits, range(3)] = True
    return flat(design), np.array([0.7, 0.3, 0.0, 0.0, 0.4, 0.3, 0.3, 0.0])


def zipf(present: int, size: int) -> NDArray[np.float64]:
    frequency = np.zeros(size)
    frequency[:present] = np.arange(1, present + 1) ** -1.1
    return frequency / frequency.sum()


def test_worked_example_is_recovered_exactly() -> None:
    design, y = worked_example()
    decoded = decode_candidates(design, y, np.full(8, 1e-4))
    assert decoded.method == "least_squares"
    assert decoded.frequency == pytest.approx([0.4, 0.3, 0.3], abs=1e-14)
    assert decoded.intercept == pytest.approx(0.0, abs=1e-14)
    assert decoded.significant.all()
    assert decoded.groups == ((0,), (1,), (2,))
    assert decoded.threshold == pytest.approx(float(norm.isf(0.05 / 3)), rel=1e-12)


def test_standard_errors_are_those_of_the_normal_equations() -> None:
    design, y = worked_example()
    variance = np.linspace(1.0, 2.0, 8) * 1e-3
    decoded = decode_candidates(design, y, variance)
    full = np.column_stack([design, np.ones(8)])
    covariance = np.linalg.inv(full.T @ (full / variance[:, None]))
    expected = np.sqrt(covariance.diagonal())
    assert decoded.standard_error == pytest.approx(expected[:3], rel=1e-12)
    assert decoded.intercept_standard_error == pytest.approx(expected[3], rel=1e-12)
    assert decoded.z == pytest.approx(decoded.frequency / expected[:3], rel=1e-12)


@pytest.mark.parametrize(("runs", "power"), [(900, 1.5), pytest.param(3000, 1.3, marks=pytest.mark.slow)])
def test_least_squares_is_calibrated_and_keeps_its_level(runs: int, power: float) -> None:
    # Independent collections; one candidate of each enters the test of bias and variance, so
    # that its terms are independent. Three tests at 1e-6 each: the test fails by chance with
    # probability below 3e-6 (the seed is fixed). A variance wrong by the factor `power` is rejected.
    alpha = 1e-6
    rng = np.random.default_rng(20140910)
    shape, frequency = Bloom(cohorts=8, bits=8, hashes=1), zipf(present=10, size=20)
    errors, runs_with_false_alarm = np.empty(runs), 0
    for run in range(runs):
        design = random_design(shape, 20, rng)
        decoded = decode_candidates(flat(design), *respond(design, frequency, 40_000, rng))
        candidate = run % len(decoded.groups)
        truth = frequency[list(decoded.groups[candidate])].sum()
        errors[run] = (decoded.frequency[candidate] - truth) / decoded.standard_error[candidate]
        absent = [frequency[list(group)].sum() == 0.0 for group in decoded.groups]
        runs_with_false_alarm += bool(decoded.significant[absent].any())
    assert abs(errors.mean()) * runs**0.5 < norm.isf(alpha / 2)
    low, high = chi2.isf([1 - alpha / 2, alpha / 2], runs)
    total = float((errors**2).sum())
    assert low < total < high
    assert total * power > high and total / power < low
    # Ten of the twenty candidates are absent, so Bonferroni at 0.05 leaves them 0.025 in total.
    assert runs_with_false_alarm <= binom.isf(alpha, runs, 0.025)


def test_intercept_estimates_the_mass_of_unlisted_values() -> None:
    # 22 % of the users hold one of 60 unlisted values. Their collisions are not in the standard
    # error; over 300 designs it is 3 % short. Five of them: chance 1.4e-6 or less (seed fixed).
    rng = np.random.default_rng(7)
    shape = Bloom(cohorts=16, bits=64, hashes=2)
    design = random_design(shape, 160, rng)
    frequency = np.concatenate([0.78 * zipf(50, 100), np.full(60, 0.22 / 60)])
    y, variance = respond(design, frequency, 10**6, rng)
    decoded = decode_candidates(flat(design)[:, :100], y, variance)
    factor = shape.bits / shape.hashes
    assert abs(decoded.intercept * factor - 0.22) < 5 * factor * decoded.intercept_standard_error
    assert factor * decoded.intercept_standard_error < 0.05


def test_more_candidates_than_rows_are_selected_by_lasso_first() -> None:
    # Nominally 0.05 false positives: three or more happen with probability 2e-5 (seed fixed).
    rng = np.random.default_rng(11)
    design = random_design(Bloom(cohorts=16, bits=128, hashes=2), 3000, rng)
    frequency = zipf(present=100, size=3000)
    decoded = decode_candidates(flat(design), *respond(design, frequency, 10**6, rng))
    assert decoded.method == "lasso_then_least_squares"
    assert decoded.threshold == pytest.approx(float(norm.isf(0.05 / 3000)), rel=1e-12)
    assert decoded.significant[frequency > 0.02].all()
    assert decoded.significant[frequency == 0.0].sum() < 3
    assert np.isinf(decoded.standard_error[~decoded.fitted]).all()
    assert not decoded.frequency[~decoded.fitted].any() and not decoded.z[~decoded.fitted].any()
    assert np.isfinite(decoded.standard_error[decoded.fitted]).all()


def test_selection_never_exceeds_what_the_rows_carry() -> None:
    rng = np.random.default_rng(3)
    design = np.eye(10, dtype=np.bool_)
    decoded = decode_candidates(design, rng.uniform(0.5, 1.0, 10), np.full(10, 1e-4), penalty_factor=0.0)
    assert decoded.fitted.sum() == 8
    assert np.isfinite(decoded.standard_error[decoded.fitted]).all()


def test_identical_columns_become_one_group() -> None:
    design, y = worked_example()
    doubled = design[:, [0, 1, 0, 2, 1]]
    decoded = decode_candidates(doubled, y, np.full(8, 1e-4))
    assert decoded.groups == ((0, 2), (1, 4), (3,))
    assert decoded.frequency == pytest.approx([0.4, 0.3, 0.3], abs=1e-14)
    # The level is still divided by all five names that could have been reported.
    assert decoded.threshold == pytest.approx(float(norm.isf(0.05 / 5)), rel=1e-12)


@pytest.mark.parametrize("missing", [(np.nan, np.inf), (0.0, np.inf), (np.nan, 1e-4)])
def test_rows_of_an_empty_cohort_are_dropped(missing: tuple[float, float]) -> None:
    design, y = worked_example()
    empty = np.random.default_rng(0).random((4, 3)) < 0.5
    padded = decode_candidates(
        np.concatenate([design, empty]),
        np.concatenate([y, np.full(4, missing[0])]),
        np.concatenate([np.full(8, 1e-4), np.full(4, missing[1])]),
    )
    plain = decode_candidates(design, y, np.full(8, 1e-4))
    assert np.array_equal(padded.frequency, plain.frequency)
    assert np.array_equal(padded.standard_error, plain.standard_error)


def test_columns_that_differ_only_in_an_empty_cohort_are_one_group() -> None:
    design, y = worked_example()
    variance = np.concatenate([np.full(4, 1e-4), np.full(4, np.inf)])
    decoded = decode_candidates(design, y, variance)
    assert decoded.groups == ((0, 1), (2,))
    assert decoded.frequency == pytest.approx([0.7, 0.3], abs=1e-14)


@pytest.mark.parametrize("intercept", [True, False])
def test_no_data_at_all_estimates_zero_with_infinite_error(intercept: bool) -> None:
    design, y = worked_example()
    decoded = decode_candidates(design, y, np.full(8, np.inf), intercept=intercept)
    assert decoded.method == "no_data"
    assert decoded.groups == ((0,), (1,), (2,))
    assert not decoded.frequency.any() and not decoded.significant.any()
    assert np.isinf(decoded.standard_error).all()
    assert decoded.intercept == 0.0


def test_an_empty_list_leaves_everything_to_the_intercept() -> None:
    decoded = decode_candidates(np.zeros((8, 0), dtype=np.bool_), np.full(8, 0.25), np.full(8, 1e-4))
    assert decoded.groups == () and decoded.frequency.shape == (0,)
    assert decoded.intercept * 4 == pytest.approx(1.0, rel=1e-12)


def test_intercept_that_the_design_cannot_tell_from_the_list_is_admitted() -> None:
    # In both cohorts every bit belongs to exactly one candidate: the columns add up to one.
    design = np.concatenate([np.eye(4, dtype=np.bool_), np.eye(4, dtype=np.bool_)[::-1]])
    y = np.array([0.4, 0.3, 0.2, 0.1, 0.1, 0.2, 0.3, 0.4])
    open_list = decode_candidates(design, y, np.full(8, 1e-4))
    assert np.isinf(open_list.standard_error).all() and np.isinf(open_list.intercept_standard_error)
    closed_list = decode_candidates(design, y, np.full(8, 1e-4), intercept=False)
    assert closed_list.frequency == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=1e-14)
    assert closed_list.significant.all()


def test_result_is_frozen() -> None:
    design, y = worked_example()
    decoded = decode_candidates(design, y, np.full(8, 1e-4))
    with pytest.raises(FrozenInstanceError):
        decoded.intercept = 1.0  # type: ignore[misc]


def test_unusable_input_is_refused() -> None:
    design, y = worked_example()
    variance = np.full(8, 1e-4)
    with pytest.raises(InvalidSpec, match="must be bool"):
        decode_candidates(design.astype(np.float64), y, variance)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="shape"):
        decode_candidates(design, y[:-1], variance)
    with pytest.raises(InvalidSpec, match="alpha is 1"):
        decode_candidates(design, y, variance, alpha=1.0)
    with pytest.raises(InvalidSpec, match="not positive"):
        decode_candidates(design, y, np.zeros(8))


@pytest.mark.parametrize(
    ("rows", "columns", "penalty"),
    [
        (40, 10, 0.5),
        (30, 120, 1.0),  # more columns than rows
        (200, 600, 3.0),  # several rounds of the working set
        (40, 10, 1e9),  # a penalty that empties the solution
    ],
)
def test_lasso_agrees_with_scikit_learn(rows: int, columns: int, penalty: float) -> None:
    rng = np.random.default_rng(rows * columns)
    design = rng.normal(size=(rows, columns)) + 0.3
    truth = np.where(rng.random(columns) < 0.1, rng.uniform(0.0, 2.0, columns), 0.0)
    response = design @ truth + rng.normal(size=rows)
    # scikit-learn divides the loss by the number of rows.
    reference = Lasso(alpha=penalty / rows, positive=True, fit_intercept=False, tol=1e-13, max_iter=10**6)
    expected = reference.fit(design, response).coef_
    fit = nonnegative_lasso(design, response, penalty, tolerance=1e-12)
    assert fit.converged
    assert fit.coefficients == pytest.approx(expected, abs=1e-6)


def test_lasso_without_penalty_is_nonnegative_least_squares() -> None:
    rng = np.random.default_rng(4)
    design, response = rng.normal(size=(40, 10)) + 0.3, rng.normal(size=40) + 1.0
    expected, _ = nnls(design, response)
    assert 0 < np.count_nonzero(expected) < 10
    fit = nonnegative_lasso(design, response, 0.0, tolerance=1e-12)
    assert fit.converged and fit.coefficients == pytest.approx(expected, abs=1e-9)


def test_lasso_converges_fast_on_strongly_correlated_columns() -> None:
    # Sixteen bits and two hashes are the defaults of the public client; sweeps alone need over
    # four thousand rounds here.
    rng = np.random.default_rng(16)
    design = random_design(Bloom(cohorts=64, bits=16, hashes=2), 3000, rng)
    y, variance = respond(design, zipf(3000, 3000), 10**6, rng)
    scaled = flat(design) / np.sqrt(variance)[:, None]
    penalty = 2.0 * float(np.linalg.norm(scaled, axis=0).mean())
    fit = nonnegative_lasso(scaled, y / np.sqrt(variance), penalty, max_iterations=500)
    assert fit.converged


def test_lasso_satisfies_its_optimality_conditions() -> None:
    rng = np.random.default_rng(5)
    design = (rng.random((256, 1000)) < 0.05).astype(np.float64)
    response = design[:, :20].sum(axis=1) + rng.normal(size=256)
    fit = nonnegative_lasso(design, response, 4.0)
    gradient = design.T @ (response - design @ fit.coefficients) - 4.0
    slack = 1e-9 * np.linalg.norm(response) * np.linalg.norm(design, axis=0)
    support = fit.coefficients > 0.0
    assert (fit.coefficients >= 0.0).all() and 0 < support.sum() < 256
    assert (np.abs(gradient) <= slack)[support].all()
    assert (gradient <= slack).all()


def test_lasso_copes_with_empty_and_equal_columns() -> None:
    design = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
    fit = nonnegative_lasso(design, np.array([2.0, 2.0]), 0.0)
    assert fit.converged and fit.coefficients[1] == 0.0
    assert design @ fit.coefficients == pytest.approx([2.0, 2.0])
    assert nonnegative_lasso(design, np.zeros(2), 1.0).iterations == 0


def test_lasso_reports_that_it_ran_out_of_iterations() -> None:
    rng = np.random.default_rng(6)
    design = rng.normal(size=(30, 10)) + 5.0
    fit = nonnegative_lasso(design, design @ rng.random(10), 0.0, max_iterations=3)
    assert fit.iterations == 3 and not fit.converged


def test_lasso_refuses_a_negative_penalty() -> None:
    with pytest.raises(InvalidSpec, match="must not be negative"):
        nonnegative_lasso(np.eye(2), np.ones(2), -1.0)


def test_least_squares_agrees_with_lstsq() -> None:
    rng = np.random.default_rng(8)
    design, sd = rng.normal(size=(50, 6)), rng.uniform(0.5, 2.0, 50)
    response = rng.normal(size=50)
    full = np.column_stack([design, np.ones(50)]) / sd[:, None]
    expected = np.linalg.lstsq(full, response / sd, rcond=None)[0]
    fit = weighted_least_squares(design, response, sd)
    assert [*fit.coefficients, fit.intercept] == pytest.approx(expected, rel=1e-10)
    variances = np.linalg.inv(full.T @ full).diagonal()
    assert [*fit.variances, fit.intercept_variance] == pytest.approx(variances, rel=1e-10)
    through_origin = weighted_least_squares(design, response, sd, intercept=False)
    assert (through_origin.intercept, through_origin.intercept_variance) == (0.0, 0.0)


def test_dependent_columns_have_infinite_variance_and_spare_the_others() -> None:
    rng = np.random.default_rng(9)
    base = rng.normal(size=(50, 4))
    # Column 4 is the sum of columns 0 and 1; column 5 is empty.
    design = np.column_stack([base, base[:, 0] + base[:, 1], np.zeros(50)])
    response = base @ np.array([1.0, 2.0, 3.0, 4.0])
    fit = weighted_least_squares(design, response, np.ones(50))
    assert np.isinf(fit.variances).tolist() == [True, True, False, False, True, True]
    assert fit.coefficients[[2, 3]] == pytest.approx([3.0, 4.0], rel=1e-9)
    clean = weighted_least_squares(base, response, np.ones(50))
    assert fit.variances[[2, 3]] == pytest.approx(clean.variances[[2, 3]], rel=1e-9)
    assert design @ fit.coefficients + fit.intercept == pytest.approx(response, abs=1e-9)
