"""How fast coins come: the operating system's generator, `SystemCoins` in large batches, and simulation coins."""

import os
from collections.abc import Callable
from time import perf_counter

from tacit.device.numbers.coins import SystemCoins
from tacit.simulate.coins import SimulationCoins

# Words per draw, one mebibyte: large enough that the cost of a call does not matter.
_WORDS = 1 << 17
_SECONDS = 0.5


def rate(draw: Callable[[], object]) -> float:
    """Megabytes per second of a source that returns one mebibyte."""
    draws, start = 0, perf_counter()
    while perf_counter() - start < _SECONDS:
        draw()
        draws += 1
    return draws * 8 * _WORDS / (perf_counter() - start) / 1e6


def main() -> None:
    system, simulation = SystemCoins(), SimulationCoins(1)
    sources: dict[str, Callable[[], object]] = {
        "os.urandom": lambda: os.urandom(8 * _WORDS),
        "SystemCoins": lambda: system.words(_WORDS),
        "SimulationCoins": lambda: simulation.words(_WORDS),
    }
    rates = {name: rate(draw) for name, draw in sources.items()}
    for name, speed in rates.items():
        print(f"{name:<16} {speed:>8.0f} MB/s   {speed / rates['os.urandom']:.2f}x")


if __name__ == "__main__":
    main()
