"""Answer golden vectors with the Python device, a JSON object per line: `python -m tacit.audit.python_answers`."""

import json
import sys
from typing import Any, cast

from tacit.device.catalog import device_of
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import TacitError


def plain(value: Any) -> Any:
    """A private value from its JSON: {"integer": digits} stands for integers from 2^53 on."""
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return int(pairs["integer"]) if pairs.keys() == {"integer"} else {k: plain(v) for k, v in pairs.items()}
    return value


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The report on a value and the digest of the device, or the name of the error."""
    try:
        device = device_of(asked["spec"])
        coins = ReplayCoins(bytes.fromhex(asked.get("seed", "")))
        report = device.privatize_one(plain(asked["value"]), coins) if "value" in asked else b""
    except TacitError as error:
        return {"error": type(error).__name__}
    return {"report": report.hex(), "digest": device.digest}


def main() -> None:
    """Answer every line of standard input."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), separators=(",", ":")))


if __name__ == "__main__":
    main()
