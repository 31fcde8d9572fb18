"""Other libraries for the same question, where they happen to be installed: pure-ldp and multi-freq-ldpy.

They are never a dependency. They ask one respondent at a time, so that only small crowds are compared, and draw from
generators of their own that cannot be seeded from outside: their rows do not repeat exactly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.simulate.compare.outcome import Contender, Trial

MOST_VALUES, MOST_CELLS = 1 << 17, 1 << 22
"""The most respondents, and of libraries that go through all answers of each of them, respondents times answers."""


@dataclass(frozen=True)
class Peer:
    """A mechanism of another library: from the values of all respondents to the shares of all answers."""

    package: str
    mechanism: str
    run: Callable[[Sequence[int], int, float], F64]

    @property
    def name(self) -> str:
        """What the rows of a comparison call it."""
        return f"peer:{self.package}:{self.mechanism}"


def installed_peers() -> list[Peer]:
    """Return the mechanisms of all peers that can be imported here."""
    found: list[Peer] = []
    for package, offers in (("pure-ldp", _pure_ldp), ("multi-freq-ldpy", _multi_freq)):
        # Some releases fail on import with newer dependencies, by other errors than a missing module.
        try:
            found += [Peer(package, mechanism, run) for mechanism, run in offers().items()]
        except (ImportError, AttributeError, TypeError):
            continue
    return found


Run = Callable[[Sequence[int], int, float], F64]


def _pure_ldp() -> dict[str, Run]:
    oracles: Any = import_module("pure_ldp.frequency_oracles")

    def runner(client: Any, server: Any, **options: Any) -> Run:
        # Its default mapping takes values that begin at one.
        options |= {"index_mapper": _same}

        def run(values: Sequence[int], d: int, epsilon: float) -> F64:
            device, collector = client(epsilon, d, **options), server(epsilon, d, **options)
            collector.aggregate_all([device.privatise(value) for value in values])
            return np.asarray(collector.estimate_all(range(d), normalization=0), np.float64) / len(values)

        return run

    return {
        "GRR": runner(oracles.DEClient, oracles.DEServer),
        "OLH": runner(oracles.LHClient, oracles.LHServer, use_olh=True),
        "OUE": runner(oracles.UEClient, oracles.UEServer, use_oue=True),
    }


def _same(value: int) -> int:
    return value


def _multi_freq() -> dict[str, Run]:
    grr, lh, ue = (import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}") for name in ("GRR", "LH", "UE"))

    def run_grr(values: Sequence[int], d: int, epsilon: float) -> F64:
        return grr.GRR_Aggregator_MI([grr.GRR_Client(value, d, epsilon) for value in values], d, epsilon)

    def run_olh(values: Sequence[int], d: int, epsilon: float) -> F64:
        return lh.LH_Aggregator_MI([lh.LH_Client(value, d, epsilon) for value in values], d, epsilon)

    def run_oue(values: Sequence[int], d: int, epsilon: float) -> F64:
        return ue.UE_Aggregator_MI([ue.UE_Client(value, d, epsilon) for value in values], epsilon)

    return {"GRR": run_grr, "OLH": run_olh, "OUE": run_oue}


def compare_peers(counts: I64, epsilon: str, seeds: Sequence[int], peers: Sequence[Peer]) -> list[Contender]:
    """Return a row for every peer that is not too slow for these respondents; one collection per seed."""
    n, truth = int(counts.sum()), counts / counts.sum()
    found: list[Contender] = []
    for peer in peers:
        if n > MOST_VALUES or (peer.mechanism != "GRR" and n * len(counts) > MOST_CELLS):
            continue
        contender = Contender(peer.name, f"{peer.mechanism} of {peer.package}, as it answers by default", bits=None)
        contender.trials += [_trial(peer, counts, truth, float(epsilon)) for _ in seeds]
        found.append(contender)
    return found


def _trial(peer: Peer, counts: I64, truth: F64, epsilon: float) -> Trial:
    values = np.repeat(np.arange(len(counts)), counts).tolist()
    start = perf_counter()
    error = np.asarray(peer.run(values, len(counts), epsilon), np.float64) - truth
    return Trial(float(np.mean(error**2)), None, perf_counter() - start, error)
