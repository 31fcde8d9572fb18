"""Privelet: a histogram as Haar coefficients with noise (Xiao, Wang and Gehrke, ICDE 2010). Not local.

The coefficients here are integers: the total, and for every node of a binary tree the mass of its left half less that
of its right half. One tuple changes the total and one node per height, each by one, so that equal integer noise on
all of them is Privelet's weighted noise on its averages.

    total                       [ x0 + x1 + x2 + x3 ]
    height 1             [ (x0 + x1) - (x2 + x3) ]
    height 0         [ x0 - x1 ]             [ x2 - x3 ]
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.central.histograms import MAX_CELLS, Noisy, true_counts
from tacit.central.noise import Randomness, geometric_variance, noise_of
from tacit.device.numbers.budget import as_epsilon
from tacit.device.numbers.exact import root_floor
from tacit.errors import InvalidSpec


def _halves(values: Noisy) -> tuple[Noisy, Noisy]:
    return values[..., ::2], values[..., 1::2]


@dataclass(frozen=True, kw_only=True)
class Privelet:
    """Noisy Haar coefficients of a histogram whose size is padded to a power of two. Not local.

    Privacy: epsilon for one tuple; sensitivity 1 + heights. Variance: `variance_of`, exact, of order log^3 of the size
    for ranges; consistent without further steps.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> wavelet = Privelet(size=4, epsilon="1")
    >>> coefficients = wavelet.release([5, 1, 0, 2], ReplayCoins(b"seed"))
    >>> wavelet.infer(coefficients).sum() == coefficients[-1][0]
    np.True_
    """

    size: int
    epsilon: str

    def __post_init__(self) -> None:
        """Check epsilon and the size."""
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon).text)
        if not 2 <= self.size <= MAX_CELLS:
            raise InvalidSpec(f"privelet: size is {self.size}, must be from 2 to {MAX_CELLS}")

    @property
    def heights(self) -> int:
        """Levels of the binary tree above the leaves."""
        return (self.size - 1).bit_length()

    @property
    def node_variance(self) -> float:
        """Variance of one noisy coefficient, of integer noise; Laplace noise has 2 (1 + heights)^2/epsilon^2."""
        return geometric_variance(root_floor(as_epsilon(self.epsilon).odds, 1 + self.heights))

    def coefficients(self, counts: npt.ArrayLike) -> list[Noisy]:
        """Return the true coefficients, the lowest height first, the total last."""
        mass: Noisy = true_counts(counts, self.size)
        # Padding cells are zero and public; what noise puts on them is cut off by `infer`.
        mass = np.pad(mass, (0, (1 << self.heights) - self.size))
        differences: list[Noisy] = []
        for _ in range(self.heights):
            left, right = _halves(mass)
            differences.append(left - right)
            mass = left + right
        return [*differences, mass]

    def release(self, counts: npt.ArrayLike, randomness: Randomness) -> list[Noisy]:
        """Return the coefficients with noise, unbiased."""
        noise = noise_of(self.epsilon, 1 + self.heights, randomness)
        return [level + noise.draw(len(level)) for level in self.coefficients(counts)]

    def infer(self, released: "list[Noisy]") -> F64:
        """Return noisy counts, unbiased and consistent by construction: the inverse transform."""
        if len(released) != self.heights + 1:
            raise InvalidSpec(f"privelet: there must be {self.heights + 1} lists of coefficients, the total last")
        # From the total down: a sum s and a difference d split into halves (s + d)/2 and (s - d)/2.
        mass = np.asarray(released[-1], np.float64)
        for level in released[-2::-1]:
            mass = np.stack([(mass + level) / 2, (mass - level) / 2], axis=-1).ravel()
        return mass[: self.size]

    def variance_of(self, queries: F64, *, node_variance: float | None = None) -> F64:
        """Return the exact variance of linear queries of the inferred counts, one query a row."""
        # The transpose of `infer`: the coefficient that a query puts on every difference, squared and added up.
        weight = np.atleast_2d(np.asarray(queries, np.float64))
        weight = np.pad(weight, ((0, 0), (0, (1 << self.heights) - self.size)))
        total = np.zeros(len(weight))
        for _ in range(self.heights):
            left, right = _halves(weight)
            total += (((left - right) / 2) ** 2).sum(axis=-1)
            weight = (left + right) / 2
        total += weight[:, 0] ** 2
        return total * (self.node_variance if node_variance is None else node_variance)
