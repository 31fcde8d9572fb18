"""How often two and three values share a bucket: the shipped hash against a plain XOR of seed and value.

Run with ``python benchmarks/hash_quality.py [log2 of the number of seeds]``. For every number of buckets it
prints the largest deviation of a pair's collision rate from 1/g and of a triple's from 1/g^2, in standard errors
and in per cent, over pairs of small, neighbouring and shifted values.
"""

import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.kernels import hash32, mix32

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Hash = Callable[[U32, U64], U32]

BUCKETS = (2, 4, 8, 56)
# Neighbours, steps of a byte and of two bytes, odd values, single high bits, and values beyond 32 bits.
TRIPLES = [
    (0, 1, 2),
    (3, 4, 5),
    (0, 256, 512),
    (0, 1 << 16, 1 << 17),
    (1, 3, 5),
    (0, 1 << 24, 1 << 31),
    (7, 1 << 33, 9),
]


def plain(seeds: U32, values: U64) -> U32:
    """One mixer after a XOR: what a first draft of the hash was."""
    high, low = (values >> np.uint64(32)).astype(np.uint32), values.astype(np.uint32)
    return mix32(mix32(seeds ^ high) ^ low)


def deviations(scheme: Hash, log_seeds: int) -> list[tuple[int, float, float, float, float]]:
    """Per number of buckets: worst pair and triple, in standard errors and per cent."""
    n, rng = 1 << log_seeds, np.random.default_rng(1)
    worst = {g: [0.0, 0.0, 0.0, 0.0] for g in BUCKETS}
    for triple in TRIPLES:
        seeds = rng.integers(0, 1 << 32, n, dtype=np.uint32)
        hashes = [scheme(seeds, np.array([value], np.uint64)).astype(np.uint64) for value in triple]
        for g in BUCKETS:
            a, b, c = (h * np.uint64(g) >> np.uint64(32) for h in hashes)
            # Slots of `worst`: 0 and 1 for pairs, 2 and 3 for triples; standard errors, then per cent.
            for at, (rate, expected) in enumerate([(np.mean(a == b), 1 / g), (np.mean((a == b) & (b == c)), 1 / g**2)]):
                z = abs(rate - expected) / np.sqrt(expected * (1 - expected) / n)
                worst[g][2 * at] = max(worst[g][2 * at], float(z))
                worst[g][2 * at + 1] = max(worst[g][2 * at + 1], float(100 * abs(rate / expected - 1)))
    return [(g, *worst[g]) for g in BUCKETS]


def main() -> None:
    log_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 22
    print(f"2^{log_seeds} seeds, {len(TRIPLES)} triples of values")
    print("hash      buckets   pair (se)   pair (%)  triple (se)  triple (%)")
    for name, scheme in (("plain", plain), ("shipped", hash32)):
        for g, pair, pair_percent, triple, triple_percent in deviations(scheme, log_seeds):
            print(f"{name:<8} {g:>8} {pair:>11.1f} {pair_percent:>10.3f} {triple:>12.1f} {triple_percent:>11.3f}")


if __name__ == "__main__":
    main()
