"""Write spec/vectors/designs.json: block designs that every implementation must build bit for bit.

Usage: python tools/make_design_vectors.py
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from tacit.device.kinds.designs import Cyclic, paley, singer
from tacit.device.numbers.fields import next_prime, prime_power, primitive_polynomial

TARGET = Path(__file__).parents[1] / "spec" / "vectors" / "designs.json"

SINGER = (
    # Every density that matters for small epsilon, then planes and spaces over larger prime fields.
    *((2, 3), (2, 4), (2, 8), (2, 14), (3, 3), (3, 5), (3, 6), (3, 7), (3, 10)),
    *((5, 3), (5, 4), (7, 3), (7, 4), (11, 3), (11, 4), (13, 3), (19, 3), (23, 3)),
    *((37, 3), (41, 3), (53, 3), (53, 4), (41, 4), (257, 3)),
    # Prime powers.
    *((4, 3), (4, 4), (4, 5), (4, 7), (8, 3), (8, 5), (9, 3), (9, 6), (16, 3), (25, 3), (27, 3), (64, 3)),
    # About a million points.
    *((4, 11), (11, 7)),
)
PALEY = (7, 11, 19, 23, 67, 263, 1087, 65539, 1000003)
PRIMES_FROM = (0, 2, 3, 8, 64, 90, 100, 256, 1024, 4096, 65536, 1048576, 16777216, 67108800, 4294967296)


def entry(design: Cyclic) -> dict[str, Any]:
    """Describe one design by its integers and the digest of its bitmap."""
    numbers = {name: getattr(design, name) for name in ("family", "q", "t", "modulus", "k")}
    return numbers | {"lambda": design.lam, "sha256": hashlib.sha256(design.block).hexdigest()}


def singer_entry(q: int, t: int) -> dict[str, Any]:
    """Describe one Singer design, with its polynomial."""
    p, e = prime_power(q)
    return entry(singer(q, t)) | {"coefficients": list(primitive_polynomial(p, e * t, q))}


def main() -> None:
    """Write the file, one case a line."""
    designs = [singer_entry(q, t) for q, t in SINGER] + [entry(paley(m)) for m in PALEY]
    primes = [{"from": n, "prime": next_prime(n)} for n in PRIMES_FROM]
    sections = [f'"{name}": [\n{_lines(cases)}\n]' for name, cases in (("designs", designs), ("next_prime", primes))]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("{\n" + ",\n".join(sections) + "\n}\n", encoding="utf-8")


def _lines(cases: list[dict[str, Any]]) -> str:
    return ",\n".join("  " + json.dumps(case) for case in cases)


if __name__ == "__main__":
    main()
