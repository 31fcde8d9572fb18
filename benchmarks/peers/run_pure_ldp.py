"""Run one benchmark job on pure-ldp, inside its own environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common import Opened, main
from pure_ldp.frequency_oracles import (
    DEClient,
    DEServer,
    HadamardMechClient,
    HadamardMechServer,
    LHClient,
    LHServer,
    UEClient,
    UEServer,
)


def identity(value: int) -> int:
    """Map values to indices; pure-ldp's default mapper expects values that start at 1."""
    return value


def build(mechanism: str, d: int, epsilon: float) -> tuple[Any, Any]:
    """Return the client and a function that makes a fresh server."""
    zero_based = {"index_mapper": identity}
    if mechanism == "GRR":
        return DEClient(epsilon, d, **zero_based), lambda: DEServer(epsilon, d, **zero_based)
    if mechanism == "OLH":
        options = {"use_olh": True, **zero_based}
        return LHClient(epsilon, d, **options), lambda: LHServer(epsilon, d, **options)
    if mechanism == "OUE":
        options = {"use_oue": True, **zero_based}
        return UEClient(epsilon, d, **options), lambda: UEServer(epsilon, d, **options)
    if mechanism == "HRR":
        client = HadamardMechClient(epsilon, d, 1, **zero_based)
        return client, lambda: HadamardMechServer(epsilon, d, 1, **zero_based)
    raise ValueError(f"pure-ldp has no {mechanism}")


def open_mechanism(mechanism: str, d: int, epsilon: float) -> Opened:
    """Open a mechanism; the server half is aggregation only, without the final estimate."""
    client, new_server = build(mechanism, d, epsilon)

    def encode(values: Sequence[int]) -> list[Any]:
        return [client.privatise(value) for value in values]

    def serve(reports: list[Any]) -> None:
        new_server().aggregate_all(reports)

    # A unary report is an int64 array of d entries: 20,000 of them at d = 1024 are 160 MB.
    return Opened(encode, serve, largest=20_000 if mechanism == "OUE" else 10_000_000)


if __name__ == "__main__":
    main("pure-ldp", open_mechanism)
