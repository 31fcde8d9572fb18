"""Empirical Bayes: the fitted prior is the most likely one, and its means are better than the projection alone."""

from time import process_time

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from tacit.core.estimate import Estimate
from tacit.errors import InvalidSpec
from tacit.oracles.unary import OUE
from tacit.post.frequencies import npmle as module
from tacit.post.frequencies.methods import find_method, process
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.npmle import fit_prior, npmle
from tacit.post.frequencies.simplex import project_to_simplex

F64 = npt.NDArray[np.float64]
NOISE = Noise(10_000, 1e-4, 2e-4)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def crowd(size: int, seed: int = 1) -> F64:
    """Shares of a falling curve with the noise of `NOISE`."""
    truth = 1 / np.arange(1, size + 1)
    truth /= truth.sum()
    return truth + rng(seed).normal(size=size) * np.sqrt(NOISE.at_zero + NOISE.slope * truth)


def log_likelihood(value: F64, atoms: F64, weights: F64) -> float:
    variance = NOISE.at_zero + NOISE.slope * atoms
    density = np.exp(-((value[:, None] - atoms) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    return float(np.log(density @ weights).mean())


def test_the_certificate_falls_and_bounds_the_distance_to_the_most_likely_prior() -> None:
    value = crowd(60)
    fits = [fit_prior(value, NOISE, steps=steps, most_steps=steps) for steps in (30, 100, 1000)]
    certificates = [fit.certificate for fit in fits]
    assert certificates == sorted(certificates, reverse=True)
    # An independent maximiser over the same atoms, with softmax weights.
    atoms = fits[0].atoms

    def lost(free: F64) -> float:
        weights = np.exp(free - free.max())
        return -log_likelihood(value, atoms, weights / weights.sum())

    best = -float(minimize(lost, np.log(fits[-1].weights + 1e-12), method="L-BFGS-B").fun)
    for fit in fits:
        gap = best - log_likelihood(value, atoms, fit.weights)
        assert -1e-9 <= gap <= fit.certificate + 1e-9


def test_posterior_means_are_those_of_the_formula() -> None:
    value = crowd(60)
    fit = fit_prior(value, NOISE)
    variance = NOISE.at_zero + NOISE.slope * fit.atoms
    density = np.exp(-((value[:, None] - fit.atoms) ** 2) / (2 * variance)) / np.sqrt(variance)
    expected = (density * fit.weights) @ fit.atoms / (density @ fit.weights)
    assert fit.mean(value) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_bins_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    value = crowd(500)
    binned = npmle(value, NOISE)
    monkeypatch.setattr(module, "_UNBINNED", 1000)
    assert np.abs(binned - npmle(value, NOISE)).max() < 1e-2 * NOISE.deviation


def test_cells_are_treated_alike_wherever_they_stand() -> None:
    value = crowd(300)
    value[[5, 17, 200]] = value[9]
    order = rng(2).permutation(300)
    made = npmle(value, NOISE)
    assert npmle(value[order], NOISE) == pytest.approx(made[order], abs=1e-14)
    assert len(set(made[[5, 9, 17, 200]].tolist())) == 1
    assert (np.diff(made[np.argsort(value, kind="stable")]) >= 0).all()


def test_cells_of_different_noise_are_trusted_differently() -> None:
    rng = np.random.default_rng(3)
    truth = np.sort(rng.dirichlet(np.full(400, 0.3)))[::-1]
    deviation = np.where(np.arange(400) % 2, 0.0005, 0.004)
    value = truth + rng.normal(size=400) * deviation
    known = Noise.of(Estimate(value, deviation**2, 10_000))
    # The slope is fitted, so that a few large cells are put beside the class of the others.
    assert {round(each.deviation, 4) for each, at in known.classes(400) if len(at) > 100} == {0.0005, 0.004}
    together = Noise(10_000, float((deviation**2).mean()))
    wrong, right = (((npmle(value, noise) - truth) ** 2).sum() for noise in (together, known))
    assert right < 0.8 * wrong
    # Equal estimates of equal noise get equal answers, wherever they stand.
    order = rng.permutation(400)
    moved = npmle(value[order], Noise.of(Estimate(value[order], deviation[order] ** 2, 10_000)))
    assert np.allclose(moved, npmle(value, known)[order], atol=1e-12)


def test_equal_variances_make_one_class_and_unequal_ones_at_most_eight() -> None:
    line = Estimate(np.array([-0.1, 0.2, 0.5]), np.array([1.0, 1.2, 1.5]) * 1e-4, 100)
    assert Noise.of(line).cells is None and len(Noise.of(line).classes(3)) == 1
    spread = Noise.of(Estimate(np.zeros(64), np.geomspace(1e-8, 1e-2, 64), 100)).classes(64)
    assert len(spread) == 8 and sorted(np.concatenate([at for _, at in spread])) == list(range(64))


def test_flat_data_are_found_to_be_flat() -> None:
    """64 equal shares, n = 10^4, epsilon 1: on average less than a tenth of the projection's error.

    Over 100 seeds the ratio of a single run was 0.03 on average and 0.37 at most; the sums of 20 runs are compared.
    """
    mechanism, counts = OUE(size=64, epsilon="1"), np.full(64, 157)
    draws = rng(5)
    runs = [mechanism.estimate(mechanism.simulate_tally(counts, draws)) for _ in range(20)]
    error = {
        name: sum(float(((process(raw, name).value - 1 / 64) ** 2).sum()) for raw in runs)
        for name in ("npmle", "norm_sub")
    }
    assert error["npmle"] < 0.1 * error["norm_sub"]


def test_it_is_not_offered_for_few_cells() -> None:
    raw = Estimate(crowd(40)[:31], np.full(31, 1e-4), 10_000)
    assert process(raw, "npmle").method.name == "norm_sub"
    raw = Estimate(crowd(40)[:32], np.full(32, 1e-4), 10_000)
    assert process(raw, "npmle").method.name == "npmle"
    assert find_method("npmle").least_cells == 32


def test_lists_of_candidates_are_never_scaled_up() -> None:
    value = crowd(2000)[:64] * 0.2
    made = npmle(value, NOISE, whole=False)
    assert made.sum() == pytest.approx(fit_prior(value, NOISE).mean(value).sum())
    assert made.sum() < 0.9
    too_much = npmle(np.full(64, 0.1), NOISE, whole=False)
    assert too_much.sum() == pytest.approx(1)
    raw = Estimate(value, np.full(64, 1e-4), 10_000)
    # The noise is read from the variances here, which have no slope.
    assert process(raw, "npmle", whole=False).value.sum() < 0.9
    with pytest.raises(InvalidSpec, match="norm_sub needs every value"):
        process(raw, "norm_sub", whole=False)
    few = Estimate(value[:5], np.full(5, 1e-4), 10_000)
    assert process(few, "npmle", whole=False).method.name == "base_pos"


def test_cells_nobody_was_asked_about_stay_out() -> None:
    value, variance = np.append(crowd(40), [0.0, 0.0]), np.append(np.full(40, 1e-4), [np.inf, np.inf])
    made = process(Estimate(value, variance, 10_000), "npmle")
    assert made.value[-2:].tolist() == [0, 0]
    assert made.value[:40] == pytest.approx(process(Estimate(value[:40], variance[:40], 10_000), "npmle").value)


@pytest.mark.parametrize("value", [[0.3], [0.0] * 40, [2.0] * 40, [-1.0] * 40, [1.0] + [0.0] * 40])
def test_edge_cases_are_the_projection_or_close_to_it(value: list[float]) -> None:
    """d = 1, nothing positive, beyond one, one cell alone; and no noise at all."""
    made = npmle(np.array(value), NOISE)
    assert made == pytest.approx(project_to_simplex(np.array(value)), abs=0.01)
    assert npmle(np.array(value), Noise(100, 0.0)) == pytest.approx(project_to_simplex(np.array(value)))


def test_values_far_apart_keep_their_estimates() -> None:
    """Where every value is far above the noise there is nothing to learn from the others."""
    value = np.linspace(0.0001, 1, 1000)
    value /= value.sum()
    made = fit_prior(value, Noise(1e12, 1e-14)).mean(value)
    assert made == pytest.approx(value, abs=2e-7)


@pytest.mark.slow
def test_a_million_values_take_seconds() -> None:
    truth = np.arange(1, 1_000_001) ** -1.1
    truth /= truth.sum()
    noise = Noise(1e7, 3.7e-7, 1e-7)
    value = truth + rng().normal(size=len(truth)) * noise.deviation
    start = process_time()
    made = npmle(value, noise)
    assert process_time() - start < 5
    assert ((made - truth) ** 2).sum() < 0.6 * ((project_to_simplex(value) - truth) ** 2).sum()
