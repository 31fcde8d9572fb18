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

# The lists of kinds begin: tools/make_lists.py writes them.
_KIND_HOMES = {
    "tacit.core.all_of": ("AllOf",),
    "tacit.core.one_of": ("OneOf",),
    "tacit.numeric.bit_flip": ("DBitFlip",),
    "tacit.numeric.laplace": ("DiscreteLaplace",),
    "tacit.numeric.mean": ("OneBit",),
    "tacit.numeric.memo": ("Memoized",),
    "tacit.numeric.rounded": ("Rounded",),
    "tacit.oracles.blocks": ("ABR", "CBR", "SS"),
    "tacit.oracles.grr": ("GRR",),
    "tacit.oracles.hadamard": ("HRR", "HRRSubspace", "HRRT"),
    "tacit.oracles.hadamard_signed": ("HRRSigned",),
    "tacit.oracles.histogram_encoding": ("SHE",),
    "tacit.oracles.local_hash": ("BLH", "FLH", "OLH", "RMP"),
    "tacit.oracles.rappor": ("BasicRAPPOR", "RAPPOR"),
    "tacit.oracles.sets": ("Padded", "SetSize"),
    "tacit.oracles.sketch": ("CMS", "HCMS"),
    "tacit.oracles.unary": ("OUE", "RUE", "SUE", "THE"),
}
# The lists of kinds end.

_OTHER_HOMES = {
    "tacit.catalog": ("CATALOG", "parse"),
    "tacit.core.compose": ("Questions",),
    "tacit.core.estimate": ("Estimate",),
    "tacit.device.families.levels": ("Tree",),
    "tacit.device.numbers.budget": ("Amplified", "Epsilon", "Share"),
    "tacit.device.numbers.coins": ("ReplayCoins", "SystemCoins"),
    "tacit.oracles.grr": ("RR",),
    "tacit.post.frequencies.methods": ("METHODS", "default_method", "process"),
    "tacit.tasks.choose": ("choose_oracle",),
    "tacit.tasks.ranges.ranges": ("Ranges", "solve_ranges"),
}
_HOME = {name: home for homes in (_KIND_HOMES, _OTHER_HOMES) for home, names in homes.items() for name in names}

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
