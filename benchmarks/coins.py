"""How fast coins come, in CPU time: the operating system's generator, `SystemCoins` in large batches, simulation coins.

`SystemCoins` expand their keys with the standard library, or with the compiled core, which batches of reports use."""

import os

# Before the core is loaded, so that everything stays on one core.
os.environ["TACIT_THREADS"] = "1"

from collections.abc import Callable
from time import process_time

from tacit.device.numbers.coins import SystemCoins
from tacit.kernels import expand_keys
from tacit.simulate.coins import SimulationCoins

# Words per draw, one mebibyte: large enough that the cost of a call does not matter.
_WORDS = 1 << 17
_SECONDS = 0.5


def rate(draw: Callable[[], object]) -> float:
    """Megabytes per second of a source that returns one mebibyte."""
    draws, start = 0, process_time()
    while process_time() - start < _SECONDS:
        draw()
        draws += 1
    return draws * 8 * _WORDS / (process_time() - start) / 1e6


def main() -> None:
    system, simulation = SystemCoins(), SimulationCoins(1)
    sources: dict[str, Callable[[], object]] = {
        "os.urandom": lambda: os.urandom(8 * _WORDS),
        "SystemCoins": lambda: system.words(_WORDS),
        "with the core": lambda: system.words(_WORDS, expand_keys),
        "SimulationCoins": lambda: simulation.words(_WORDS),
    }
    rates = {name: rate(draw) for name, draw in sources.items()}
    for name, speed in rates.items():
        print(f"{name:<16} {speed:>8.0f} MB/s   {speed / rates['os.urandom']:.2f}x")


if __name__ == "__main__":
    main()
