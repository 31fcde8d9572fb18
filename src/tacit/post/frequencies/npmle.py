"""Posterior means under a prior that is itself estimated by nonparametric maximum likelihood (NPMLE).

J. Kiefer and J. Wolfowitz 1956; R. Koenker and I. Mizera, "Convex optimization, shape constraints, compound decisions,
and empirical Bayes rules", 2014; W. Jiang and C.-H. Zhang, "General maximum likelihood empirical Bayes estimation of
normal means", 2009. The derivation is in `docs/maths/post-processing.md`.
"""

from dataclasses import dataclass

import numpy as np

from tacit.arrays import F64
from tacit.core.patience import check
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.simplex import finite, project_to_simplex

LEAST_CELLS = 32
"""Fewer cells do not tell a prior: few strong ones are then answered worse than by the projection alone."""

STEPS, MOST_STEPS = 400, 2000
_CERTIFIED, _FAR_FROM_ONE = 1e-3, 0.05
"""Steps go on up to the larger number while the likelihood is not certified to this and the means do not sum to one."""

_STEP = 0.25
"""Atoms are this many standard deviations apart."""
_DENSE = 4.0
"""Up to here (in standard deviations) every atom is there; above, those within as many of an observation."""
_MOST_ATOMS = 512
_BIN, _FAR_BIN = 0.1, 0.5
_UNBINNED = 200
"""More observations than this are put into bins of a tenth of a standard deviation before the fit; above the dense
atoms, of half a deviation."""
_FLOOR = 0.05
"""The variance of an atom is at least this part of the variance at zero, where the slope is negative."""
_BLOCK = 1 << 20
"""Entries of the likelihood matrix that are evaluated at a time."""


@dataclass(frozen=True, eq=False)
class FittedPrior:
    """A discrete prior of frequencies: atoms with weights that sum to one, and how close it is to the most likely one.

    Cells beyond the last atom are so far apart that no prior can be learnt there; they keep their value.
    """

    atoms: F64
    weights: F64
    noise: Noise
    certificate: float
    """The mean log-likelihood of a cell is within this of the maximum, by concavity."""
    steps: int

    def mean(self, value: F64) -> F64:
        """Return posterior means; of cells with the same noise, equal values get equal means, and order is kept."""
        means = np.empty(len(value))
        for noise, places in self.noise.classes(len(value)):
            means[places] = self._class_mean(value[places], noise)
        return means

    def _class_mean(self, value: F64, noise: Noise) -> F64:
        points, places = np.unique(_ordered_part(value, noise), return_inverse=True)
        if len(points) > _UNBINNED:
            # The mean is a smooth function of the value: a table of bin centres is interpolated.
            low, high = points[0], points[-1]
            table = np.unique(np.append(_in_bins(points, noise.deviation, far=_BIN)[0], (low, high)))
            means = np.interp(points, table, self._means(table, noise))
        else:
            means = self._means(points, noise)
        return np.where(value > self.reach(noise), value, np.maximum.accumulate(means)[places])

    def reach(self, noise: Noise) -> float:
        """The largest frequency that the atoms describe; at the top of them posterior means end."""
        return _reach(self.atoms, noise)

    def draw(self, value: F64, rng: np.random.Generator) -> F64:
        """Draw a frequency for every cell from its posterior; cells beyond the atoms keep their value."""
        drawn = np.empty(len(value))
        for noise, places in self.noise.classes(len(value)):
            drawn[places] = self._class_draw(value[places], noise, rng)
        return drawn

    def _class_draw(self, value: F64, noise: Noise, rng: np.random.Generator) -> F64:
        drawn = np.empty(len(value))
        seen, rows = _ordered_part(value, noise), max(1, _BLOCK // len(self.atoms))
        for start in range(0, len(value), rows):
            block = slice(start, start + rows)
            posterior = _likelihood(seen[block], self.atoms, noise) * self.weights
            sums = np.cumsum(posterior, axis=1)
            at = (sums < rng.random((len(sums), 1)) * sums[:, -1:]).sum(axis=1)
            drawn[block] = self.atoms[np.minimum(at, len(self.atoms) - 1)]
        return np.where(value > self.reach(noise), value, drawn)

    def _means(self, points: F64, noise: Noise) -> F64:
        means = np.empty(len(points))
        rows = max(1, _BLOCK // len(self.atoms))
        for start in range(0, len(points), rows):
            check()
            posterior = _likelihood(points[start : start + rows], self.atoms, noise) * self.weights
            means[start : start + rows] = (posterior @ self.atoms) / np.maximum(posterior.sum(axis=1), _TINY)
        return means


_TINY = float(np.finfo(np.float64).tiny)


def _variance(noise: Noise, atoms: F64) -> F64:
    """The variance of an estimate if the frequency is the atom; no estimate is plugged into it."""
    return np.maximum(noise.at_zero + noise.slope * atoms, _FLOOR * noise.at_zero)


def _reach(atoms: F64, noise: Noise) -> float:
    """Where the atoms end: so many deviations above the last one."""
    return float(atoms[-1] + _DENSE * np.sqrt(_variance(noise, atoms[-1:])[0]))


def _ordered_part(value: F64, noise: Noise) -> F64:
    """The values cut to where larger ones always speak for larger frequencies.

    Beyond the pole -a/b of the variance a + b f an ever farther value speaks for the atom with the larger variance,
    whichever that is.
    """
    if noise.slope == 0:
        return value
    pole = -noise.at_zero / noise.slope
    return np.maximum(value, pole) if noise.slope > 0 else np.minimum(value, pole)


def _likelihood(points: F64, atoms: F64, noise: Noise) -> F64:
    """Normal densities of points (rows) under atoms (columns); every row is divided by its largest."""
    variance = _variance(noise, atoms)
    # Logarithms, so that a point far from all atoms does not underflow before its row is scaled.
    log = -((points[:, None] - atoms) ** 2) / (2 * variance) - np.log(variance) / 2
    return np.exp(log - log.max(axis=1, keepdims=True))


def _in_bins(value: F64, deviation: float, *, far: float) -> tuple[F64, F64]:
    """Means and sizes of bins of a tenth of a standard deviation, `far` above; few values are their own bins."""
    if len(value) <= _UNBINNED:
        return value, np.ones(len(value))
    width = np.where(value > _DENSE * deviation, far, _BIN) * deviation
    _, places, sizes = np.unique(np.round(value / width) * width, return_inverse=True, return_counts=True)
    return np.bincount(places, value) / sizes, sizes.astype(np.float64)


def _atoms(points: F64, noise: Noise) -> F64:
    """Zero and multiples of a quarter of a standard deviation, up to the largest point and never above one.

    Above four deviations there are only those within four of a point. Where these are too many, every second is left
    out, and if that does not do, those of the largest points.
    """
    step, top = _STEP * noise.deviation, float(np.clip(points.max(), 0, 1))
    dense = np.arange(min(_DENSE, np.ceil(top / step) * _STEP) / _STEP + 1)
    far = np.unique(points[points > _DENSE * noise.deviation].clip(None, 1))
    if not len(far):
        return dense * step
    reach = _DENSE * np.sqrt(_variance(noise, far))
    low = np.maximum(np.floor((far - reach) / step), len(dense))
    high = np.minimum(np.ceil((far + reach) / step), np.ceil(top / step))
    # Windows in order of their points begin and end in that order too, so each adds what lies beyond the last.
    ends = np.maximum.accumulate(high)
    starts = np.maximum(low, np.concatenate([[0.0], ends[:-1] + 1]))
    widths = np.maximum(0, ends - starts + 1)
    stride = 1.0 if widths.sum() <= _MOST_ATOMS else 2.0
    fits = np.cumsum(np.ceil(widths / stride)) <= _MOST_ATOMS
    windows = [np.arange(a, b + 1, stride) for a, b in zip(starts[fits], ends[fits], strict=True)]
    return np.unique(np.concatenate([dense, *windows])) * step


def fit_prior(value: F64, noise: Noise, *, steps: int = STEPS, most_steps: int = MOST_STEPS) -> FittedPrior:
    """Return the prior under which the estimates are most likely, by expectation maximisation over fixed atoms.

    The variance of an atom is the exact one at its own frequency. The likelihood is concave in the weights, and a
    gradient of at most 1 + c certifies it to within c; the risk of the means settles long before that.
    """
    # Bins make the matrix small whatever the number of cells; the atoms follow the bins.
    binned = [
        (each, *_in_bins(_ordered_part(finite(value[places]), each), each.deviation, far=_FAR_BIN))
        for each, places in noise.classes(len(value))
    ]
    atoms = _atoms(np.sort(np.concatenate([points for _, points, _ in binned])), noise)
    matrix, sizes = _seen(binned, atoms)
    share = sizes / sizes.sum()
    weights, done, gain = np.full(len(atoms), 1 / len(atoms)), 0, np.zeros(0)
    while done < steps or (done < most_steps and _unsettled(atoms, weights, gain, matrix, sizes)):
        if done % 100 == 0:
            check()
        for _ in range(min(steps, 100)):
            # The gradient of the mean log-likelihood: an atom gains weight while it explains cells better than average.
            gain = (share / np.maximum(matrix @ weights, _TINY)) @ matrix
            weights = weights * gain
        done += min(steps, 100)
        weights = weights / weights.sum()
    return FittedPrior(atoms, weights, noise, max(0.0, float(gain.max()) - 1), done)


def _seen(binned: list[tuple[Noise, F64, F64]], atoms: F64) -> tuple[F64, F64]:
    """The likelihoods of the bins within reach of the atoms, and their sizes.

    Where all are beyond (above one, say), any prior will do, and all count: none of them is moved by it.
    """
    known = [points <= _reach(atoms, noise) for noise, points, _ in binned]
    if not any(mask.any() for mask in known):
        known = [np.ones_like(mask) for mask in known]
    pairs = list(zip(binned, known, strict=True))
    rows = [_likelihood(points[mask], atoms, noise) for (noise, points, _), mask in pairs]
    return np.concatenate(rows), np.concatenate([sizes[mask] for (*_, sizes), mask in pairs])


def _unsettled(atoms: F64, weights: F64, gain: F64, matrix: F64, sizes: F64) -> bool:
    """Whether neither the certificate is small nor the posterior means add up to about one."""
    if gain.max() - 1 <= _CERTIFIED:
        return False
    posterior = matrix * weights
    total = float(sizes @ ((posterior @ atoms) / np.maximum(posterior.sum(axis=1), _TINY)))
    return abs(total - 1) > _FAR_FROM_ONE


def npmle(value: F64, noise: Noise, *, whole: bool = True, steps: int = STEPS, most_steps: int = MOST_STEPS) -> F64:
    """Return posterior means under the fitted prior, projected onto the simplex (NPMLE). Biased.

    A list that is not `whole`, such as the candidates of a search, sums to at most one: it is projected only if it
    exceeds that, and never scaled up. Fit all examined candidates, as printed ones are truncated by selection.

    >>> noise = Noise(10_000, 1e-4)
    >>> flat = 1 / 64 + np.random.default_rng(1).normal(size=64) / 100
    >>> float(np.abs(npmle(flat, noise) - 1 / 64).max()) < 0.01 < float(np.abs(flat - 1 / 64).max())
    True
    """
    if len(finite(value)) == 1 or noise.at_zero <= 0:
        return _projected(value, whole=whole)
    prior = fit_prior(value, noise, steps=steps, most_steps=most_steps)
    return _projected(prior.mean(value), whole=whole)


def _projected(value: F64, *, whole: bool) -> F64:
    """The projection onto the simplex, or (of a part of it) onto what sums to at most one."""
    positive = np.clip(value, 0, None)
    return positive if not whole and positive.sum() <= 1 else project_to_simplex(value)
