"""Print reports of the Python device, for audits: `python -m tacit.audit.python_reports SPEC VALUE RUNS`."""

import json
import sys

from tacit.device.catalog import device_of
from tacit.device.numbers.coins import SystemCoins


def main(spec: str, value: str, runs: str) -> None:
    """Print so many reports on a value, each drawn with coins of the operating system."""
    device, answer, coins = device_of(json.loads(spec)), json.loads(value), SystemCoins()
    print("\n".join(device.privatize_one(answer, coins).hex() for _ in range(int(runs))))


if __name__ == "__main__":
    main(*sys.argv[1:])
