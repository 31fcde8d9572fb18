"""Real data: clicks on the 128 most visited pages of a news portal (Kosarak), one page per user.

Wang's dissertation, section 3.5.2 (Figures 3.3 and 3.4): at epsilon 4 OLH finds more pages than RAPPOR, RAPPOR more
than BLH. The printed counts are of the full click stream; here the order and the predicted errors are tested. The
file is found through TACIT_DATA and never downloaded.
"""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import tacit
from tacit.decode.rappor import decode_rappor
from tacit.post.frequencies.significance import significance_threshold
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_variance

pytestmark = [pytest.mark.papers, pytest.mark.slow]

I64 = npt.NDArray[np.int64]
FILE = Path(os.environ.get("TACIT_DATA", "data")) / "kosarak_top128_one_item_per_user.csv"


@pytest.fixture(scope="module")
def pages() -> I64:
    if not FILE.exists():
        pytest.skip(f"{FILE.name} is not in TACIT_DATA")
    return np.loadtxt(FILE, np.int64)


@pytest.mark.parametrize("kind", ["GRR", "SUE", "OUE", "RUE", "BLH", "OLH", "HRR", "HRRSubspace", "SS", "CBR", "ABR"])
def test_errors_are_as_predicted(pages: I64, kind: str) -> None:
    """Squared errors of 128 frequencies over 6 runs against the exact variance.

    The cells of one run are weakly dependent for most kinds, so that the statistic is nearly a chi-square of 768
    degrees; GRR, SS and CBR are exact up to their sum. False-alarm probability about 1e-7; 1.4 times the variance is
    rejected.
    """
    mechanism = getattr(tacit, kind)(size=128, epsilon="4")
    truth, n = np.bincount(pages, minlength=128) / len(pages), len(pages)
    coins = SimulationCoins(2026)
    errors = [mechanism.estimate(mechanism.tally(mechanism.privatize(pages, coins))).value - truth for _ in range(6)]
    scale = np.sqrt(mechanism.moments.variance(truth) / n)
    assert_variance((np.array(errors) / scale).ravel(), np.ones(6 * 128), must_reject=1.4)


def test_olh_finds_more_pages_than_rappor_and_rappor_more_than_blh(pages: I64) -> None:
    found: dict[str, float] = {}
    for kind in ("BLH", "OLH"):
        mechanism = getattr(tacit, kind)(size=128, epsilon="4")
        estimate = mechanism.estimate(mechanism.tally(mechanism.privatize(pages, SimulationCoins(1))))
        found[kind] = float(significance_threshold(estimate, mechanism.variance_at_zero).kept.sum())
    rappor = tacit.RAPPOR(epsilon="4", bits=128, hashes=2, cohorts=8, key=1)
    tally = rappor.tally(rappor.privatize(pages, SimulationCoins(2)))
    found["RAPPOR"] = float(decode_rappor(rappor, tally, np.arange(128)).decoded.significant.sum())
    assert found["BLH"] < found["RAPPOR"] < found["OLH"]
