"""Time the walk of prefix extension: 10^6 reports, 64-bit values, k = 32, epsilon 4, six groups.

Usage: python benchmarks/heavy_hitters.py [n]

Prints seconds, hash evaluations per second, their ratio to the bare loop of bare.c on as many threads, and memory.
"""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import numpy as np

from tacit.kernels.build import FLAG_SETS, find_compiler
from tacit.kernels.threads import thread_count
from tacit.simulate.hitters import Search, simulate_hitters, syn

HERE = Path(__file__).resolve().parent
CANDIDATES, REPORTS, BUCKETS = 1024, 200_000, 56


def bare_rate(threads: int) -> float:
    """Hash evaluations per second of the bare loop, on so many threads at once."""
    compiler = find_compiler()
    if compiler is None:
        raise SystemExit("there is no C compiler")
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch) / "bare.so"
        subprocess.run([*compiler, *FLAG_SETS[0], "-o", str(library), str(HERE / "bare.c")], check=True)
        bare = ctypes.CDLL(str(library))
    rng = np.random.default_rng(1)
    seeds = rng.integers(0, 1 << 32, REPORTS, dtype=np.uint32)
    buckets = rng.integers(0, BUCKETS, REPORTS, dtype=np.uint32)

    def once(_: int) -> None:
        count = np.zeros(CANDIDATES, np.uint32)
        for _ in range(8):
            bare.bare_support(
                ctypes.c_void_p(seeds.ctypes.data), ctypes.c_void_p(buckets.ctypes.data), ctypes.c_size_t(REPORTS),
                ctypes.c_uint64(BUCKETS), ctypes.c_uint32(CANDIDATES), ctypes.c_void_p(count.ctypes.data),
            )  # fmt: skip

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(once, range(threads)))  # Warm.
        start = perf_counter()
        list(pool.map(once, range(threads)))
        return threads * 8 * REPORTS * CANDIDATES / (perf_counter() - start)


def main() -> None:
    """Run the walk between two measurements of the bare loop."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    threads, population = thread_count(), syn(n, 64, 1)
    before = bare_rate(threads)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = simulate_hitters(population, Search("4", 32, groups=6), "pem-plain", seed=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    planned = simulate_hitters(population, Search("4", 32), "pem", seed=1)
    bare = (before + bare_rate(threads)) / 2
    for name, each in (("plain, g=6", outcome), ("planned", planned)):
        rate = each.evaluations / each.walk_seconds
        print(f"{name}: {n:,} reports, {each.evaluations:.3g} hash evaluations in {each.walk_seconds:.2f} s on "
              f"{threads} threads, {rate / 1e9:.2f} G/s, {rate / bare:.2f} of the bare loop's")  # fmt: skip
    print(
        f"bare loop {bare / 1e9:.2f} G/s; peak memory {peak / 1024:.0f} MB, {(peak - base) / 1024:.0f} MB of it added"
    )


if __name__ == "__main__":
    main()
