"""Tacit learns what a crowd knows without anyone saying it: local differential privacy, from device to answer.

Ask, with values at hand (each is perturbed before it is counted, by a mechanism that is chosen for you):

    histogram(values, epsilon=1)                  the share of every label
    mean(values, epsilon=1, low=0, high=100)      the mean of a number
    ranges(values, epsilon=1, low=0, high=99)     any range of ordered values
    quantiles(values, epsilon=1, low=0, high=99)  the median and its like
    heavy_hitters(values, epsilon=4)              frequent words and ids out of up to 2^64
    itemsets(values, epsilon=4)                   frequent items and sets of items
    marginals(frame, epsilon=2)                   joint tables of several columns
    table(frame, 2, private={"age": (0, 99)})     SQL over rows with private columns

A finding has `value`, `interval()`, `to_pandas()`, `to_polars()` and `plot()`; it is made of `mechanism`,
`tally` and `estimate`.

>>> import tacit
>>> found = tacit.histogram(["tea", "tea", "milk"] * 1_000, epsilon=1, domain=["tea", "milk"])
>>> found.labels, found.n
(['tea', 'milk'], 3000)

Ask people, who keep their values: hand out a device, gather the bytes it returns, collect them.

>>> asked = tacit.ask("histogram", epsilon=1, domain=["tea", "milk"], n=3_000)
>>> report = asked.device("tea")  # On a respondent's machine: the only thing that leaves it.
>>> asked.collect([report]).n
1

Plan: `plan_epsilon("histogram", target_error=0.01, n=10_000, domain=[...])` says which epsilon it takes.

Underneath: kinds such as `GRR(4, 1)` (size, epsilon) with `privatize`, `tally` and `estimate`, domains such as
`Categories`, budgets (`Epsilon`) and coins (`SystemCoins`); errors are in `tacit.errors`. Names are imported on first
use, so that `import tacit` stays fast; `dir(tacit)` lists them, and `help(tacit.histogram)` says more. On servers,
surveys and the command line: `tacit --help` and the pages in docs.
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
    "tacit.numeric.layered": ("LayeredMemo",),
    "tacit.numeric.mean": ("OneBit",),
    "tacit.numeric.memo": ("Memoized",),
    "tacit.numeric.rounded": ("Rounded",),
    "tacit.numeric.square_wave": ("SquareWave",),
    "tacit.numeric.steps": ("TreeSteps",),
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

_TASK_HOMES = {
    "tacit.library.asking": ("ask", "plan_epsilon"),
    "tacit.library.ordered": ("quantiles", "ranges"),
    "tacit.library.rows": ("table",),
    "tacit.library.search": ("heavy_hitters", "itemsets"),
    "tacit.library.shares": ("histogram", "mean"),
    "tacit.library.tables": ("marginals",),
}
_OTHER_HOMES = {
    "tacit.catalog": ("CATALOG", "parse"),
    "tacit.core.compose": ("Questions",),
    "tacit.core.estimate": ("Estimate",),
    "tacit.device.domains.domain": ("Bits", "Booleans", "Categories", "Ordered", "Strings"),
    "tacit.device.domains.items": ("Items",),
    "tacit.device.domains.product": ("Product",),
    "tacit.device.domains.reals": ("Buckets", "Integers"),
    "tacit.device.domains.text": ("Text",),
    "tacit.device.families.levels": ("Tree",),
    "tacit.device.numbers.budget": ("Amplified", "Epsilon", "Share"),
    "tacit.device.numbers.coins": ("ReplayCoins", "SystemCoins"),
    "tacit.library.finding": ("Finding",),
    "tacit.library.inquiry": ("Inquiry",),
    "tacit.library.local": ("LocalDevice",),
    "tacit.oracles.grr": ("RR",),
    "tacit.post.frequencies.methods": ("METHODS", "default_method", "process"),
    "tacit.tasks.choose": ("choose_oracle",),
    "tacit.tasks.ranges.ranges": ("Ranges", "solve_ranges"),
}
_HOME = {
    name: home for homes in (_TASK_HOMES, _OTHER_HOMES, _KIND_HOMES) for home, names in homes.items() for name in names
}

# Tasks first, as they are what one comes for; then what they are made of. No `__all__`: with one, `help(tacit)` prints
# the whole documentation of every name in it, some ten thousand lines.
_NAMES = sorted(_HOME, key=lambda name: (name[0].isupper(), name))


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name == "errors":
        return import_module("tacit.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return [*_NAMES, "errors", "__version__"]
