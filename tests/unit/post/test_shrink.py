"""How much of a measured interaction is kept: reference numbers, noise by simulation, and edge cases."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE
from tacit.post.views.reconstruct import rake
from tacit.post.views.shrink import (
    MIXED,
    MeasuredInteraction,
    fit_prior,
    interaction_noise,
    linear_risk,
    on_grid,
)
from tacit.post.views.table import centred


def _pairs(ratios: list[float], degrees: float) -> list[MeasuredInteraction]:
    return [MeasuredInteraction(1e-3 * ratio, 1e-3, degrees, 0.25) for ratio in ratios]


@pytest.mark.parametrize(
    ("ratios", "degrees", "factor"),
    [
        ([1.0] * 100, 1, 0.074),  # nothing but noise, in one direction
        ([1.0] * 100, 20, 0.015),  # in many, where energy scatters less
        ([100.0] * 100, 1, 0.99),  # nothing but signal
        ([100.0] + [1.0] * 99, 1, 0.985),  # one signal among noise
    ],
)
def test_factors_of_reference(ratios: list[float], degrees: float, factor: float):
    measured = _pairs(ratios, degrees)
    prior = fit_prior(measured)
    assert replace(prior, evidence=np.inf).factor(measured[0]) == pytest.approx(factor, abs=0.002)
    # Where there is only noise the gate is closed.
    assert prior.factor(measured[0]) == (0.0 if max(ratios) == 1 else pytest.approx(factor, abs=0.002))


def test_few_pairs_lean_on_what_real_tables_have_and_none_are_that_law():
    nothing = fit_prior([])
    assert nothing.is_gated and nothing.mean == pytest.approx(float(np.mean(MIXED)), rel=0.15)
    strong = _pairs([60.0], 1)[0]
    assert fit_prior([strong]).factor(strong) > 0.9
    assert on_grid((0.0, 1.0))[[0, -1]].tolist() == [0.5, 0.5]


def test_degenerate_measurements_give_numbers():
    for one in (MeasuredInteraction(0.0, 0.0, 0.0, 0.0), MeasuredInteraction(1.0, 0.0, 1.0, 0.0)):
        factor = replace(fit_prior([one]), evidence=np.inf).factor(one)
        assert 0 <= factor <= 1


@pytest.mark.parametrize(
    ("mechanism", "shape"), [(GRR(size=4, epsilon="1"), (2, 2)), (OUE(size=30, epsilon="1"), (6, 5))]
)
@pytest.mark.slow_cases("mechanism1-shape1")
def test_noise_is_that_of_simulated_tables(mechanism, shape):
    """4,000 tables of 500: the mean energy of noise has a relative deviation below 0.022, so 0.11 is five of them."""
    share = np.multiply.outer(*(np.arange(1, size + 1) / np.arange(1, size + 1).sum() for size in shape)).ravel()
    counts = np.round(500 * share).astype(np.int64)
    n, rng = int(counts.sum()), np.random.default_rng(3)
    eye = np.eye(len(share))
    own = mechanism.moments.combined(eye, counts / n)
    sums = np.array([mechanism.moments.combined(eye[i] + eye, counts / n) for i in range(len(eye))])
    covariance = (sums - own[:, None] - own[None, :]) / 2 / n
    np.fill_diagonal(covariance, own / n)
    noise, degrees = interaction_noise(covariance, shape)
    drawn = [mechanism.estimate(mechanism.simulate_tally(counts, rng)).value - counts / n for _ in range(4000)]
    energy = np.array([(centred(error.reshape(shape), 2) ** 2).sum() for error in drawn])
    assert energy.mean() == pytest.approx(noise, rel=0.11)
    assert energy.var() == pytest.approx(2 * noise**2 / degrees, rel=0.3)
    assert 1 <= degrees <= (shape[0] - 1) * (shape[1] - 1) + 1e-9


def test_the_risk_is_below_that_of_raw_and_of_independence():
    signal = float(np.mean(MIXED)) * 0.2
    assert linear_risk(np.inf, 0.2) == pytest.approx(signal)
    for noise in (1e-5, 1e-3, 1.0):
        assert linear_risk(noise, 0.2) < min(noise, signal)
    assert linear_risk(0.0, 0.2) == 0.0


def test_raking_reaches_margins_even_from_empty_rows():
    table = np.array([[[0.5, 0.5], [0.0, 0.0]]])
    targets = [((0,), np.array([[0.7, 0.3]])), ((1,), np.array([[0.6, 0.4]]))]
    fitted = rake(table, targets)
    assert fitted.converged.all() and fitted.tables[0].sum(axis=1) == pytest.approx([0.7, 0.3], abs=1e-6)
