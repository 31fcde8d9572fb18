"""Run one benchmark job on ldp-toolbox, inside its own environment."""

from __future__ import annotations

from typing import Any

from common import Opened, main
from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse
from ldp_toolbox.protocols.frequency.lh import LocalHashing
from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

PROTOCOLS: dict[str, Any] = {"GRR": GeneralizedRandomizedResponse, "OLH": LocalHashing, "OUE": UnaryEncoding}


def open_mechanism(mechanism: str, d: int, epsilon: float) -> Opened:
    """Open a mechanism; its estimators count, invert, clip and normalise in one call."""
    if mechanism not in PROTOCOLS:
        raise ValueError(f"ldp-toolbox has no {mechanism}")
    protocol = PROTOCOLS[mechanism](d, epsilon)
    return Opened(
        lambda values: [protocol.obfuscate(value) for value in values],
        protocol.estimate,
        # Local hashing is decoded by worker processes on all cores, which only a wall clock sees.
        server_clock="wall" if mechanism == "OLH" else "cpu",
        largest=20_000 if mechanism == "OUE" else 10_000_000,
    )


if __name__ == "__main__":
    main("ldp-toolbox", open_mechanism)
