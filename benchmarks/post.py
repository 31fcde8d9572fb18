"""Time post-processing on one core: isotonic regression of 10^7 counts, PowerNS and the rest at d = 10^5, n = 10^7.

Run with ``python benchmarks/post.py``. It prints CPU seconds, the best of three, which other work on the machine
disturbs least.
"""

import os
from collections.abc import Callable
from time import process_time

# Before numpy is imported, so that its matrix products stay on one core too.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TACIT_THREADS": "1"}

import numpy as np

from tacit import kernels
from tacit.post.frequencies.isotonic import isotonic_regression
from tacit.post.frequencies.methods import METHODS
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.priors import _table  # pyright: ignore[reportPrivateUsage]

COUNTS = 10_000_000
SIZE, RESPONDENTS, DEVIATION = 100_000, 10_000_000, 6067.0
"""OLH at epsilon 1: the noise of a count has variance 3.68 n."""


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of three runs."""
    best = float("inf")
    for _ in range(3):
        _table.cache_clear()
        start = process_time()
        work()
        best = min(best, process_time() - start)
    return best


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(1)
    print(f"compiled kernels: {kernels.compiled}")
    ordered = np.sort(rng.poisson(5, COUNTS)).astype(float)
    inputs = {
        "sorted counts with Laplace noise": ordered + rng.laplace(0, 1, COUNTS),
        "pure noise": rng.normal(size=COUNTS),
        "in order already": ordered,
        "in reverse order": -ordered,
    }
    for name, values in inputs.items():
        print(f"isotonic, {COUNTS:,} values, {name:34} {seconds(lambda v=values: isotonic_regression(v)):8.3f} s")
    frequency = np.arange(1, SIZE + 1.0) ** -1.1
    raw = frequency / frequency.sum() + rng.normal(0, DEVIATION / RESPONDENTS, SIZE)
    noise = Noise(RESPONDENTS, (DEVIATION / RESPONDENTS) ** 2)
    for method in METHODS:
        spent = seconds(lambda step=method.apply: step(raw, noise))
        print(f"{method.name:12} d = {SIZE:,}, n = {RESPONDENTS:,} {spent:8.3f} s")


if __name__ == "__main__":
    main()
