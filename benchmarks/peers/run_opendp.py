"""Run one benchmark job on OpenDP, inside its own environment.

OpenDP has the client halves only: randomized response over categories, and over bit vectors
(symmetric, so the unary mechanism here is SUE). Its debiasing of bit vectors is the server half of SUE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import opendp.prelude as dp
from common import Opened, main

dp.enable_features("contrib")


def open_grr(d: int, epsilon: float) -> Opened:
    """Open randomized response over d categories."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + d - 1)
    randomize = dp.m.make_randomized_response(list(range(d)), truth)
    return Opened(lambda values: [randomize(value) for value in values], _no_server)


def open_sue(d: int, epsilon: float) -> Opened:
    """Open randomized response over bit vectors of weight one; f solves epsilon = 2 ln((2 - f) / f)."""
    flip = 2.0 / (math.exp(epsilon / 2) + 1)
    randomize = dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=flip)

    def one_hot(value: int) -> bytes:
        return (1 << value).to_bytes((d + 7) // 8, "little")

    def encode(values: Sequence[int]) -> list[bytes]:
        return [randomize(one_hot(value)) for value in values]

    return Opened(encode, lambda reports: dp.m.debias_randomized_response_bitvec(reports, flip))


def _no_server(reports: list[int]) -> None:
    raise ValueError("opendp has no server half for randomized response")


def open_mechanism(mechanism: str, d: int, epsilon: float) -> Opened:
    """Open the OpenDP measurement that corresponds to a mechanism."""
    openers = {"GRR": open_grr, "SUE": open_sue}
    if mechanism not in openers:
        raise ValueError(f"opendp has no {mechanism}")
    return openers[mechanism](d, epsilon)


if __name__ == "__main__":
    main("opendp", open_mechanism)
