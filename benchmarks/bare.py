"""Compile `bare.c` with the flags of the project and call it."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
FLAGS = ("-O3", "-fPIC", "-shared", "-std=gnu11", "-ffp-contract=off")


def compiler() -> list[str]:
    """Return the compiler's command: the environment variable CC, or `cc`."""
    return shlex.split(os.environ.get("CC", "")) or ["cc"]


def build() -> Path:
    """Compile the library unless it is newer than its source; return its path."""
    source, library = HERE / "bare.c", HERE / "_bare.so"
    if library.exists() and library.stat().st_mtime_ns > source.stat().st_mtime_ns:
        return library
    # A compiler without function multiversioning gets the plain loops, as it does for the project.
    for extra in ((), ("-DTACIT_PLAIN",)):
        command = [*compiler(), *FLAGS, *extra, "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return library
    raise RuntimeError(f"bare.c does not compile: {done.stderr.strip()}")


@cache
def load() -> ctypes.CDLL:
    """Return the loaded library."""
    return ctypes.CDLL(str(build()))


def _at(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def support(seeds: npt.NDArray[np.uint32], buckets: npt.NDArray[np.uint32], g: int, d: int) -> npt.NDArray[np.uint32]:
    """Count the reports that support each of the candidates 0..d-1."""
    count = np.zeros(d, np.uint32)
    size, word = ctypes.c_size_t(len(seeds)), ctypes.c_uint64(g)
    load().bare_support(_at(seeds), _at(buckets), size, word, ctypes.c_uint32(d), _at(count))
    return count


def lanes(words: npt.NDArray[np.uint64], blocks: int, threshold: int) -> int:
    """Draw blocks of 64 bits, each set with probability threshold/2^64; return the words that they took."""
    out = np.empty(blocks, np.uint64)
    load().bare_lanes.restype = ctypes.c_size_t
    return load().bare_lanes(_at(words), ctypes.c_size_t(blocks), ctypes.c_uint64(threshold), _at(out))


def bincount(codes: npt.NDArray[np.uint32], cells: int) -> npt.NDArray[np.int32]:
    """Count the codes in one pass."""
    count = np.zeros(cells, np.int32)
    load().bare_bincount(_at(codes), ctypes.c_size_t(len(codes)), _at(count))
    return count


def walsh_hadamard(x: npt.NDArray[Any]) -> None:
    """Transform an int32 or int64 array in place."""
    transform = load().bare_walsh_hadamard32 if x.dtype == np.int32 else load().bare_walsh_hadamard64
    transform(_at(x), ctypes.c_size_t(len(x)))


def spin(rounds: int, loops: int) -> None:
    """Run independent spin loops, each in a thread of its own."""
    with ThreadPoolExecutor(loops) as pool:
        list(pool.map(load().bare_spin, [ctypes.c_uint64(rounds)] * loops))


if __name__ == "__main__":
    print(build().name, file=sys.stderr)
