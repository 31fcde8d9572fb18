"""AMP-BLANKET: the privacy blanket of a mechanism, evaluated exactly. The certified accountant of kinds with cells.

Of n respondents the victim is one; each of the others sends, with probability gamma, a draw from a law omega that
tells nothing, and everything else they send is given away. So m = 1 + Bin(n - 1, gamma) + fakes slots hold draws from
omega, one of them the victim's report in its stead, and with W_i drawn from omega

    delta = E_m[D_m],   D_m = (gamma/m) E[(l(W_1) + ... + l(W_m))_+],   l = (R_v - E R_v')/(gamma omega).

Let S and S' be how many slots support v and v'. The sum is (x - 1)(S - E S') - (E - 1) m, whatever the mechanism.
Balle, Bell, Gascón and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019, section 5.
"""

from functools import cached_property
from math import exp, expm1

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.statistics.binomial import mass, upper_tail
from tacit.shuffle.accounting.cells import Cells
from tacit.shuffle.accounting.fakes import UNCOUNTED
from tacit.shuffle.accounting.tails import EXACT, ROUNDING, excess, half_excess, sliced, window

TAIL = 1e-24
"""Mass that may be cut off, and is counted in full, unless a smaller or larger one is asked for."""

FINE, COARSE = 16, 5
"""Slices of the crowd: for a claim, and for the search that precedes it. Fewer are looser, never wrong."""
_CHUNK = 1 << 13
"""Tails that are computed at once: as many as fit into a cache with all that their computation needs."""
_UNEVEN = 1 + 2.0**-20
"""Covers draws of the device that are uneven in the last of their 64 bits."""


class _IndependentSlots:
    """Draws of which any supports v and v' independently: two binomial counts of the same law."""

    def __init__(self, cells: Cells, numbers: I64, weights: F64, tail: float) -> None:
        """Lay out the counts for every number m of slots, which has this weight."""
        self._x, self._tail, self._weights = float(cells.x), tail, weights * float(cells.gamma) / numbers
        self._laws = [(m, *self._law(m, float(cells.support))) for m in numbers.tolist()]

    def _law(self, m: int, chance: float) -> tuple[F64, F64]:
        low, high = window(m, chance, self._tail)
        counts = np.arange(low, high + 1, dtype=np.float64)
        return counts, mass(counts, m, chance)

    def delta(self, epsilon: float) -> float:
        """Return the weighted sum of D_m, rounded up."""
        gain, total = self._x - 1, 0.0
        for weight, (m, counts, chances) in zip(self._weights.tolist(), self._laws, strict=True):
            thresholds = exp(epsilon) * counts + expm1(epsilon) * m / gain
            over, tail = excess(counts, chances, thresholds)
            # A threshold is off by a few of its last bits, and so is the excess over it.
            terms = over * (1 + 10 * ROUNDING) + 1e-15 * thresholds * tail
            total += weight * gain * float(chances @ terms)
        # Either of the two counts may leave its window.
        return total + 2 * self._tail


class _Slots:
    """Draws of any mechanism: c of them support exactly one of the two values, either of which is as likely."""

    def __init__(self, cells: Cells, numbers: I64, weights: F64, tail: float, slices: int) -> None:
        """Lay out the counts for every number m of slots, which has this weight, in one long table."""
        self._x, self._tail = float(cells.x), tail
        single = float(2 * cells.a / cells.gamma)
        share = float(cells.b / (cells.b + cells.z)) if cells.b else 0.0
        tables: list[list[F64]] = []
        for m, weight in zip(numbers.tolist(), weights.tolist(), strict=True):
            low, high = window(m, single, tail)
            counts = np.arange(low, high + 1, dtype=np.float64)
            # Reports that support both values weigh x instead of 1 among those that do not tell.
            both, parts = _overlaps(m - counts, share, slices)
            chances = weight * float(cells.gamma) / m * mass(counts, m, single) * parts
            # A row for every slice of the overlap, a column for every count; all are flattened alike.
            tables.append(
                [np.broadcast_to(column, both.shape).ravel() for column in (np.float64(m), counts, both, chances)]
            )
        self._m, self._c, self._both, self._chances = map(np.concatenate, zip(*tables, strict=True))

    def delta(self, epsilon: float) -> float:
        """Return the weighted sum of D_m, rounded up."""
        gain, odds = self._x - 1, exp(epsilon)
        # The sum of the terms is gain (1 + E) (K - threshold), K of the c supporting v.
        spread = gain * (1 + odds)
        threshold = (odds * gain * self._c + expm1(epsilon) * (self._m + gain * self._both)) / spread
        total = 0.0
        for start in range(0, len(threshold), _CHUNK):
            part = slice(start, start + _CHUNK)
            total += float(self._chances[part] @ half_excess(self._c[part], threshold[part]))
        return spread * total + 2 * self._tail


def _overlaps(trials: F64, chance: float, slices: int) -> tuple[F64, F64]:
    """How many of so many draws support both values: lower ends of slices (a row each) and their weights.

    More overlap tells less, so the lower end is the worst of a slice.
    """
    if chance == 0:
        return np.zeros((1, len(trials))), np.ones((1, len(trials)))
    if trials.max() <= EXACT:
        every: F64 = np.arange(float(trials.max()) + 1, dtype=np.float64)[:, None]
        return np.broadcast_to(every, (len(every), len(trials))), mass(every, trials, chance)
    places = np.array([-8.0, *np.linspace(-5, 3, slices)])[:, None]
    inner = np.floor(trials * chance + places * np.sqrt(trials * chance * (1 - chance)))
    # The first slice starts at none, so that nothing is missing.
    ends = np.vstack([np.zeros_like(trials), np.clip(inner, 0, trials)])
    above = upper_tail(ends, trials, chance)
    below_next = np.vstack([above[1:], np.zeros_like(trials)])
    return ends, np.maximum(above - below_next, 0.0) + ROUNDING * above


class Blanket:
    """The blanket of n respondents and honest fakes drawn from omega; `delta` falls in n, in fakes and in epsilon."""

    def __init__(self, cells: Cells, n: int, fakes: int = 0, *, tail: float = TAIL, slices: int = FINE) -> None:
        """Slice the number of slots; laws of their supports are computed when they are first needed, and kept."""
        self._cells, self._fakes, self._tail = cells, fakes, tail
        # Where the overlap is sliced as well, half as many of each keep the work in bounds.
        self._slices = slices if cells.independent or not cells.b else max(slices // 2, COARSE)
        self._crowd = sliced(max(n - 1, 0), float(cells.gamma), tail, self._slices, 1 + fakes)

    @cached_property
    def _slots(self) -> "_IndependentSlots | _Slots":
        numbers = (self._crowd.ends + (1 + self._fakes)).astype(np.int64)
        if self._cells.independent:
            return _IndependentSlots(self._cells, numbers, self._crowd.weights, self._tail)
        return _Slots(self._cells, numbers, self._crowd.weights, self._tail, self._slices)

    def delta(self, epsilon: float) -> float:
        """Return the delta that holds at epsilon against whoever sees the shuffled reports, rounded up."""
        if exp(epsilon) >= float(self._cells.x):
            return 0.0
        spoilt = UNCOUNTED if self._fakes else 0.0
        return min(1.0, self._slots.delta(epsilon) * _UNEVEN + self._crowd.missing + spoilt)
