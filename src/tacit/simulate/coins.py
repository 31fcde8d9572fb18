"""Fast, reproducible and insecure coins for simulated respondents."""

import numpy as np

from tacit.device.numbers.coins import Coins

_TAG = int.from_bytes(b"coins", "little")


class SimulationCoins(Coins):
    """Words of a seeded PCG64 generator: fast, reproducible and insecure; a client refuses them."""

    def __init__(self, seed: int) -> None:
        """Start the stream of `seed`."""
        super().__init__()
        # Tagged, so that a population drawn from the same seed is independent of its coins.
        self._generator = np.random.default_rng([_TAG, seed])

    def _draw(self, size: int) -> bytes:
        # Whole blocks, so that the stream does not depend on how it is read.
        blocks = -(-size // (1 << 16))
        return self._generator.bytes(blocks << 16)
