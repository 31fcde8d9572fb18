"""Fitting distributions to square-wave reports: EM climbs, agrees with a dense matrix, and EMS smooths."""

import numpy as np
import pytest

from tacit.decode.square_wave import fit_wave, report_shares, smoothed
from tacit.numeric.square_wave import SquareWave


def dense(mechanism: SquareWave) -> np.ndarray:
    """The matrix of the mechanism, codes by numbers."""
    codes = np.arange(mechanism.outputs)[:, None] - np.arange(mechanism.size)
    return np.where((codes >= 0) & (codes < mechanism.width), mechanism.near, mechanism.far)


@pytest.mark.parametrize("width", [1, 3, 9, 33])
def test_running_sums_are_the_matrix(width: int) -> None:
    mechanism = SquareWave(size=16, width=width, epsilon="1")
    shares = np.random.default_rng(1).dirichlet(np.ones(16), size=3)
    assert np.allclose(report_shares(mechanism, shares), shares @ dense(mechanism).T, atol=1e-14)
    assert np.allclose(report_shares(mechanism, shares[0]), dense(mechanism) @ shares[0], atol=1e-14)


def test_em_finds_the_most_likely_distribution() -> None:
    """At a maximum of the likelihood no number explains the reports better than average, by concavity."""
    mechanism = SquareWave(size=12, epsilon="2")
    counts = np.random.default_rng(2).multinomial(100_000, np.arange(1, 13) / 78)
    cells = mechanism.simulate_tally(counts, np.random.default_rng(2)).cells.astype(float)
    fitted = fit_wave(mechanism, cells, smooth=False)
    gain = dense(mechanism).T @ (cells / (dense(mechanism) @ fitted)) / cells.sum()
    assert fitted.sum() == pytest.approx(1) and (fitted >= 0).all()
    # Steps end by the change of the likelihood, a little before the maximum.
    assert gain.max() < 1 + 2e-3
    assert np.abs(np.cumsum(fitted) - np.cumsum(counts) / 100_000).max() < 0.02


def test_several_rows_are_fitted_as_if_alone() -> None:
    mechanism = SquareWave(size=20, epsilon="1")
    rng = np.random.default_rng(3)
    cells = np.array([rng.multinomial(5_000, report_shares(mechanism, rng.dirichlet(np.ones(20)))) for _ in range(4)])
    for smooth in (False, True):
        together = fit_wave(mechanism, cells.astype(float), smooth=smooth)
        alone = [fit_wave(mechanism, row.astype(float), smooth=smooth) for row in cells]
        assert np.allclose(together, alone, atol=1e-12)


def test_smoothing_keeps_the_sum_and_spreads_a_spike() -> None:
    assert smoothed(np.array([0, 0, 1.0, 0, 0])).tolist() == [0, 0.25, 0.5, 0.25, 0]
    rows = smoothed(np.array([[1.0, 0, 0], [0.2, 0.3, 0.5]]))
    assert np.allclose(rows.sum(axis=1), 1)
