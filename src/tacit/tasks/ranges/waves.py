"""Ranges from square-wave reports: a fitted distribution whose errors come from a parametric bootstrap.

Two distributions explain the reports: the most likely one (EM), which is rough, and the smoothed one (EMS). Reports are
drawn again from both and both are fitted to them. The fit with the smaller error over all ranges is answered; the error
of a range is the larger of the two root mean squares, so that the bias of smoothing shows where the data are rough.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.tally import Counts
from tacit.decode.square_wave import fit_wave, report_shares
from tacit.numeric.square_wave import SquareWave

DRAWS = 30
"""Bootstrap draws from each of the two distributions: an error is then known to within 13 %."""

FITS = ("em", "ems")

CAUTION = 1.5
"""Root mean squares of replays are widened by this factor: replays cannot know of structure that noise hides.

Without it, of 95 % intervals about 72 to 99 % held on real and made-up data, see docs/maths/sw.md.
"""

NOTE = "fitted to square-wave reports: biased, and its interval is approximate, by replaying the collection"


@dataclass(frozen=True, eq=False)
class WaveFit:
    """The answered distribution and the errors of its replays, on either of the two distributions."""

    method: str
    """Which fit is answered: `em` or `ems`."""
    leaves: F64
    errors: F64
    """By distribution, draw and boundary 0 .. size: error of the cumulative share."""

    def spans(self, low: I64, high: I64) -> F64:
        """Squared errors of the masses between boundaries, for intervals."""
        return self._worst(self.errors[:, :, high] - self.errors[:, :, low])

    def linear(self, rows: F64) -> F64:
        """Squared errors of linear answers over the leaves, for intervals."""
        return self._worst(np.diff(self.errors, axis=2) @ np.atleast_2d(rows).T)

    @staticmethod
    def _worst(errors: F64) -> F64:
        return CAUTION**2 * (errors**2).mean(axis=1).max(axis=0)


def fit_waves(mechanism: SquareWave, tally: Counts) -> WaveFit:
    """Fit a tally, replay it, and keep the better fit with its errors."""
    # Weighted counts stand for fewer respondents than their sum.
    n = max(1, round(tally.total**2 / tally.total2)) if tally.is_weighted else tally.n
    return _fitted(mechanism, n, tally.cells.astype(np.int64).tobytes())


@lru_cache(maxsize=8)
def _fitted(mechanism: SquareWave, n: int, cells: bytes) -> WaveFit:
    """The fit of counts, cached: one page asks for many ranges of one tally. The counts themselves are the seed."""
    counts, seed = np.frombuffer(cells, np.int64).astype(np.float64), sha256(cells).digest()[:8]
    shares = np.array([fit_wave(mechanism, counts, smooth=fit == "ems") for fit in FITS])
    rng = np.random.default_rng(int.from_bytes(seed, "little"))
    errors = np.array([replayed_errors(mechanism, one, n, DRAWS, rng) for one in shares])
    # Axes: distribution, fit, draw, boundary. The variance over boundaries is the error averaged over all ranges.
    pick = int(np.argmin(errors.var(axis=3).mean(axis=(0, 2))))
    return WaveFit(FITS[pick], shares[pick], errors[:, pick])


def replayed_errors(mechanism: SquareWave, shares: F64, n: int, draws: int, rng: np.random.Generator) -> F64:
    """Errors of cumulative shares, by fit and draw, if n respondents were drawn from these shares."""
    output = report_shares(mechanism, shares)
    cells = rng.multinomial(n, output / output.sum(), size=draws).astype(np.float64)
    truth = np.append(0.0, np.cumsum(shares))
    found = (fit_wave(mechanism, cells, smooth=fit == "ems") for fit in FITS)
    return np.array([np.pad(np.cumsum(one, axis=1), ((0, 0), (1, 0))) - truth for one in found])


@lru_cache(maxsize=64)
def forecast_errors(mechanism: SquareWave, n: int, shares: tuple[float, ...], draws: int = 4) -> F64:
    """Errors of cumulative shares on a distribution, of the better fit; by draw. Seeded, so that plans repeat."""
    errors = replayed_errors(mechanism, np.array(shares), n, draws, np.random.default_rng(20200614))
    return errors[int(np.argmin(errors.var(axis=2).mean(axis=1)))]
