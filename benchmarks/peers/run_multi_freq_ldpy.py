"""Run one benchmark job on multi-freq-ldpy, inside its own environment."""

from __future__ import annotations

from common import Opened, main
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client


def open_mechanism(mechanism: str, d: int, epsilon: float) -> Opened:
    """Open a mechanism; its aggregators count, invert, clip and normalise in one call."""
    if mechanism == "GRR":
        return Opened(
            lambda values: [GRR_Client(value, d, epsilon) for value in values],
            lambda reports: GRR_Aggregator_MI(reports, d, epsilon),
        )
    if mechanism == "OLH":
        return Opened(
            lambda values: [LH_Client(value, d, epsilon) for value in values],
            lambda reports: LH_Aggregator_MI(reports, d, epsilon),
        )
    if mechanism == "OUE":
        return Opened(
            lambda values: [UE_Client(value, d, epsilon) for value in values],
            lambda reports: UE_Aggregator_MI(reports, epsilon),
            largest=20_000,
        )
    raise ValueError(f"multi-freq-ldpy has no {mechanism}")


if __name__ == "__main__":
    main("multi-freq-ldpy", open_mechanism)
