"""Tacit learns what a crowd knows without anyone saying it: local differential privacy, from device to answer.

>>> import numpy as np, tacit
>>> mechanism = tacit.OLH(size=4, epsilon="1.0")
>>> reports = mechanism.privatize(np.array([0, 1, 1, 3]), tacit.SystemCoins())
>>> tally = mechanism.tally(reports[:2]) + mechanism.tally(reports[2:])
>>> mechanism.estimate(tally).n
4

Names are imported on first use, so that `import tacit` and `tacit --help` stay fast.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "tacit.catalog": ("CATALOG", "parse"),
    "tacit.core.compose": ("AllOf", "OneOf", "Questions"),
    "tacit.core.estimate": ("Estimate",),
    "tacit.device.budget": ("Amplified", "Epsilon", "Share"),
    "tacit.device.coins": ("ReplayCoins", "SystemCoins"),
    "tacit.device.levels": ("Tree",),
    "tacit.numeric.bit_flip": ("DBitFlip",),
    "tacit.numeric.laplace": ("DiscreteLaplace",),
    "tacit.numeric.mean": ("OneBit",),
    "tacit.numeric.memo": ("Memoized",),
    "tacit.oracles.blocks": ("ABR", "CBR", "SS"),
    "tacit.oracles.grr": ("GRR", "RR"),
    "tacit.oracles.hadamard": ("HRR", "HRRT", "HRRSubspace"),
    "tacit.oracles.hadamard_signed": ("HRRSigned",),
    "tacit.oracles.histogram_encoding": ("SHE",),
    "tacit.oracles.local_hash": ("BLH", "FLH", "OLH", "RMP"),
    "tacit.oracles.rappor": ("RAPPOR", "BasicRAPPOR"),
    "tacit.oracles.sketch": ("CMS", "HCMS"),
    "tacit.oracles.unary": ("OUE", "RUE", "SUE", "THE"),
    "tacit.post.methods": ("METHODS", "default_method", "process"),
    "tacit.tasks.choose": ("choose_oracle",),
    "tacit.tasks.ranges": ("Ranges", "solve_ranges"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__, "__version__"]
