"""Streams to follow: the share that says yes, window by window (LDP-IDS, Ren et al., SIGMOD 2022, section 7)."""

import numpy as np

from tacit.arrays import F64, I64
from tacit.errors import InvalidSpec

_STEP_WINDOWS = 70


def _lns(windows: int, rng: np.random.Generator) -> F64:
    """A random walk from .05 with steps of standard deviation .0025, kept inside (0, 1)."""
    shares = np.empty(windows)
    share = 0.05
    for t, step in enumerate(rng.normal(0, 0.0025, windows)):
        share = min(max(share + step, 0.001), 0.999)
        shares[t] = share
    return shares


def _sin(windows: int, rng: np.random.Generator) -> F64:
    """A sine of amplitude .05 around .075."""
    del rng
    return 0.05 * np.sin(0.01 * np.arange(1, windows + 1)) + 0.075


def _log(windows: int, rng: np.random.Generator) -> F64:
    """Logistic growth from .125 to .25."""
    del rng
    return 0.25 / (1 + np.exp(-0.01 * np.arange(1, windows + 1)))


def _step(windows: int, rng: np.random.Generator) -> F64:
    """Levels between .05 and .25 that last 70 windows each."""
    levels = rng.uniform(0.05, 0.25, -(-windows // _STEP_WINDOWS))
    return np.repeat(levels, _STEP_WINDOWS)[:windows]


def _flat(windows: int, rng: np.random.Generator) -> F64:
    """A quarter, always."""
    del rng
    return np.full(windows, 0.25)


STREAMS = {"lns": _lns, "sin": _sin, "log": _log, "step": _step, "flat": _flat}
"""Made-up streams by name; each takes the number of windows and a generator."""


def stream_counts(name: str, windows: int, n: int, seed: int) -> I64:
    """Return how many of n devices say yes, in every window of a made-up stream."""
    if name not in STREAMS:
        raise InvalidSpec(f"stream is {name[:40]!r}, must be one of {', '.join(STREAMS)}")
    return np.rint(STREAMS[name](windows, np.random.default_rng(seed)) * n).astype(np.int64)
