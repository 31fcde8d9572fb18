"""Measure one job on Tacit and its bare baseline, in a process of its own; print the answer as JSON.

The only argument is a JSON object: `"job"` names a function of this file, the rest are its arguments.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import bare
import numpy as np
import numpy.typing as npt
from timing import Action, medians, seconds_of, wall_seconds

import tacit

Answer = dict[str, float]

# How long one run of a spin loop takes, and so the tallies that are compared with it.
SPIN_SECONDS = 0.15
# The plane of order 53 has m = 151,740 points and is the best cyclic design at this epsilon.
CBR_EPSILON = "4.0"
# A sketch of 2^20 cells: as many counters, and as long a transform, as Hadamard response over 2^20 values.
HCMS_CELLS = 1 << 20
HCMS_ROWS = 2


def zipf_values(n: int, d: int) -> npt.NDArray[np.int64]:
    """Return n values of [0, d) with frequencies proportional to 1/rank^1.1."""
    shares = np.cumsum(1.0 / np.arange(1, d + 1) ** 1.1)
    uniform = np.random.default_rng(20).random(n)
    return np.minimum(np.searchsorted(shares / shares[-1], uniform), d - 1)


def build(kind: str, d: int, epsilon: str = "1.0", **fields: Any) -> Any:
    """Return a Tacit mechanism by its class name."""
    return getattr(tacit, kind)(size=d, epsilon=epsilon, **fields)


def reports_of(mechanism: Any, n: int, d: int) -> Any:
    """Return n reports on Zipf values."""
    return mechanism.privatize(zipf_values(n, d), tacit.SystemCoins())


def privatize(kind: str, n: int, d: int, repeats: int) -> Answer:
    """CPU seconds of privatizing n values with the operating system's entropy."""
    mechanism, values = build(kind, d), zipf_values(n, d)
    return medians({"tacit": lambda: mechanism.privatize(values, tacit.SystemCoins())}, repeats)


def tally(kind: str, n: int, d: int, repeats: int) -> Answer:
    """CPU seconds of tallying n reports."""
    mechanism = build(kind, d)
    reports = reports_of(mechanism, n, d)
    return medians({"tacit": lambda: mechanism.tally(reports)}, repeats)


def olh_tally(n: int, d: int, repeats: int) -> Answer:
    """CPU seconds of the OLH tally, and of the bare loop over as many hashes."""
    mechanism = build("OLH", d)
    reports = reports_of(mechanism, n, d)
    rng = np.random.default_rng(21)
    seeds = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    buckets = rng.integers(0, mechanism.g, n, dtype=np.uint32)
    actions: dict[str, Action] = {
        "tacit": lambda: mechanism.tally(reports),
        "bare": lambda: bare.support(seeds, buckets, mechanism.g, d),
    }
    return medians(actions, repeats)


def olh_threads(n: int, d: int, repeats: int) -> Answer:
    """Wall seconds of the OLH tally and of spin loops, each with one and with two threads."""
    mechanism = build("OLH", d)
    reports = reports_of(mechanism, n, d)
    rounds = int(1e6 * SPIN_SECONDS / seconds_of(lambda: bare.spin(1_000_000, 1)))

    # As long as the spin loops, so that waking the second core is paid once on both sides.
    times = max(1, round(SPIN_SECONDS / seconds_of(lambda: mechanism.tally(reports))))

    def tally_with(threads: int) -> None:
        os.environ["TACIT_THREADS"] = str(threads)
        for _ in range(times):
            mechanism.tally(reports)

    actions: dict[str, Action] = {
        "spin_1": lambda: bare.spin(rounds, 1),
        "tacit_1": lambda: tally_with(1),
        "tacit_2": lambda: tally_with(2),
        "spin_2": lambda: bare.spin(rounds, 2),
    }
    return medians(actions, repeats, wall_seconds)


def unpack_and_sum(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Column sums by numpy alone, in blocks that stay in the cache."""
    total = np.zeros(8 * packed.shape[1], np.int64)
    for start in range(0, len(packed), 4096):
        total += np.unpackbits(packed[start : start + 4096], axis=1).sum(axis=0, dtype=np.uint32)
    return total


def oue_tally(n: int, d: int, repeats: int) -> Answer:
    """CPU seconds of the OUE tally, and of numpy's unpackbits and sum over as many bits."""
    mechanism = build("OUE", d)
    reports = reports_of(mechanism, n, d)
    packed = np.random.default_rng(22).integers(0, 256, (n, d // 8), dtype=np.uint8)
    actions: dict[str, Action] = {
        "tacit": lambda: mechanism.tally(reports),
        "numpy": lambda: unpack_and_sum(packed),
    }
    return medians(actions, repeats)


def cbr_decode(n: int, d: int, repeats: int) -> Answer:
    """Wall seconds of tallying and estimating cyclic block response; the first time is given apart."""
    mechanism = build("CBR", d, CBR_EPSILON)
    reports = reports_of(mechanism, n, d)

    def decode() -> None:
        mechanism.estimate(mechanism.tally(reports))

    first = seconds_of(decode, wall_seconds)
    return {
        "first": first,
        "cells": float(getattr(mechanism, "m", 0)),
        **medians({"tacit": decode}, repeats, wall_seconds),
    }


def _bare_hadamard(n: int, cells: int) -> dict[str, Action]:
    codes = np.random.default_rng(23).integers(0, cells, n, dtype=np.uint32)
    # The time of a transform does not depend on its numbers, and zeros may be transformed again and again.
    zeros = np.full(cells, 0, np.int32)
    return {
        "bincount": lambda: bare.bincount(codes, cells),
        "transform": lambda: bare.walsh_hadamard(zeros),
        "numpy_bincount": lambda: np.bincount(codes, minlength=cells),
    }


def hrr_estimate(n: int, d: int, repeats: int) -> Answer:
    """CPU seconds of tallying and estimating HRR, and of one bincount pass and one transform."""
    mechanism = build("HRR", d)
    reports = reports_of(mechanism, n, d)
    actions: dict[str, Action] = {"tacit": lambda: mechanism.estimate(mechanism.tally(reports))}
    return medians({**actions, **_bare_hadamard(n, d)}, repeats)


def hcms_estimate(n: int, d: int, repeats: int) -> Answer:
    """The same for the Hadamard count mean sketch with as many cells as HRR has."""
    mechanism = build("HCMS", d, **hcms_fields(min(d, HCMS_CELLS)))
    reports = reports_of(mechanism, n, d)
    actions: dict[str, Action] = {"tacit": lambda: mechanism.estimate(mechanism.tally(reports))}
    return medians({**actions, **_bare_hadamard(n, d)}, repeats)


def hcms_fields(cells: int) -> dict[str, Any]:
    """The fields of a sketch of `cells` counters."""
    return {"rows": HCMS_ROWS, "width": cells // HCMS_ROWS, "key": 1}


JOBS = (privatize, tally, olh_tally, olh_threads, oue_tally, cbr_decode, hrr_estimate, hcms_estimate)


def main() -> None:
    """Run the job of the command line."""
    arguments = json.loads(sys.argv[1])
    job = {function.__name__: function for function in JOBS}[arguments.pop("job")]
    print(json.dumps(job(**arguments)))


if __name__ == "__main__":
    main()
