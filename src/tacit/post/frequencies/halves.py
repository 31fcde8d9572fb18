"""The risk of any method without bias, from one estimate: its noise is split, one half is answered, the other judges.

With x the estimate and w independent noise of the same covariance, x + w and x - w are uncorrelated, and independent
where the noise is normal. So |g(x + w) - (x - w)|^2 less the noise of x - w has the mean of the loss of g, whatever g
and the truth are, at twice the variance. Replays cannot judge methods that use the order of cells, since they draw
every cell without its neighbours. N. L. Oliveira, J. Lei and R. J. Tibshirani, "Unbiased risk estimation in the normal
means problem via coupled bootstrap techniques", 2021; A. Neufeld et al., "Data thinning", 2024.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate
from tacit.core.patience import check
from tacit.post.frequencies.noise import Noise

Step = Callable[[F64, Noise], F64]


def split_noise(estimate: Estimate, rng: np.random.Generator) -> tuple[F64, F64]:
    """Return two estimates of the same shares, each with twice the variance, whose noises are uncorrelated.

    Cells of reports of a fixed size (GRR) are correlated: all pairs then share the covariance that the variance of
    the sum of all cells implies.
    """
    d = len(estimate)
    variance, total = estimate.variance, float(estimate.variance_of(np.ones((1, d)))[0])
    shared = (total - float(variance.sum())) / (d * (d - 1)) if d > 1 else 0.0
    noise = rng.normal(size=d) * np.sqrt(np.clip(variance - shared, 0, None))
    # Taking a part of the mean off leaves the sum the variance that it has, and the cells about theirs.
    alone = float(variance.sum()) - d * shared
    noise -= (1 - np.sqrt(max(0.0, total / alone) if alone > 0 else 1.0)) * noise.mean()
    return estimate.value + noise, estimate.value - noise


def doubled(noise: Noise) -> Noise:
    """Return the noise of a half: twice the variance."""
    cells = None if noise.cells is None else 2 * noise.cells
    return replace(noise, at_zero=2 * noise.at_zero, slope=2 * noise.slope, cells=cells)


def risks_by_halves(
    estimate: Estimate, steps: Mapping[str, Step], *, largest: int, runs: int, rng: np.random.Generator
) -> dict[str, F64]:
    """Return for every method estimated mean squared errors: two rows, of all cells and of the largest, by run.

    The largest are those of the half that is answered, since lists are ordered by what is seen. All methods of a run
    see the same halves, so that their differences scatter less than their errors.
    """
    noise = doubled(Noise.of(estimate))
    found: dict[str, F64] = {name: np.zeros((2, runs)) for name in steps}
    for run in range(runs):
        check()
        seen, judge = split_noise(estimate, rng)
        top: I64 = np.argsort(-seen, kind="stable")[:largest]
        for name, step in steps.items():
            excess = (step(seen, noise) - judge) ** 2 - 2 * estimate.variance
            found[name][:, run] = float(excess.mean()), float(excess[top].mean())
    return found
