"""Claims about ranges in Kulkarni's dissertation, chapter 5: those that hold, and what is wrong with those that do not.

Closed formulas at E = e^epsilon = 3 unless stated, where V = 3 for plain levels and V1 = 4 for signed ones. Numbers are
root mean squared errors with N = 2^26 respondents. Tables 5.2 and 5.3 are in test_ranges.py.
"""

from math import sqrt

import numpy as np
import pytest

from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.post.trees.levels import TreeShape
from tacit.tasks.ranges.error import Workload, first_pass, mean_variance, signed_variances
from tacit.tasks.ranges.options import expected_error
from tacit.tasks.ranges.plan import choose_ranges

pytestmark = pytest.mark.papers

N = 1 << 26
LN3 = "1.098612288668109691"


def root(size: int, fanout: int, workload: str, n: int = N) -> float:
    """The error of a tree of a fan-out with V = 3, of the Haar transform (0), or of a flat oracle (1)."""
    asked, shape = Workload.parse(workload, size), TreeShape(size, fanout or 2)
    if fanout == 1:  # Without the known total, as in the text.
        length = {"ranges": (size + 2) / 3, "prefixes": (size + 1) / 2}.get(workload, float(max(1, asked.length)))
        return sqrt(3 * length / n)
    level = float(shape.top * (3 if fanout else 4))
    variances = signed_variances(shape, [level] * shape.top, [0.0] * shape.top)
    if fanout:
        variances = first_pass(shape, [level] * shape.top)
    return sqrt(mean_variance(shape, asked, variances) / n)


# Fig. 5.3 at D = 2^8: flat, fan-out 2, 4, 16, Haar; times 10^4.
SPOTS = {"length:2": (2.99, 5.30, 4.75, 3.98, 4.76), "length:128": (23.9, 7.81, 7.69, 8.83, 8.03)}
# Measured by the authors with their code at length 2, in the same order.
MEASURED = (2.94, 5.52, 4.82, 3.89, 4.70)


@pytest.mark.parametrize("workload", SPOTS)
def test_figure_5_3_spots(workload: str) -> None:
    """Recomputed from the formulas, to half a unit of the last digit; the authors' five runs are within 5 %."""
    found = [1e4 * root(256, fanout, workload) for fanout in (1, 2, 4, 16, 0)]
    assert found == pytest.approx(SPOTS[workload], rel=0.002)
    if workload == "length:2":
        assert pytest.approx(MEASURED, rel=0.05) == found


def mean_nodes(size: int, fanout: int) -> float:
    """Nodes in the decomposition of a range without the root, averaged over all ranges, by brute force."""
    low, high = np.triu_indices(size + 1, 1)
    whole, nodes = (low == 0) & (high == size), np.zeros(len(low))
    while np.any(low < high):
        up, down = -(-low // fanout) * fanout, high // fanout * fanout
        inner = up <= down
        nodes += np.where(inner, up - low + high - down, np.maximum(high - low, 0))
        low, high = np.where(inner, up, 0) // fanout, np.where(inner, down, 0) // fanout
    return float(np.where(whole, 0, nodes).sum() / len(nodes))


@pytest.mark.parametrize(("size", "fanout", "nodes", "gain"), [
    (32, 2, 3.273, None), (64, 2, 4.154, None), (256, 2, 6.047, 3.90), (64, 4, 5.908, None), (256, 4, 8.739, 2.96),
    (256, 16, 18.872, 2.56),
])  # fmt: skip
def test_constrained_inference_divides_the_variance(size: int, fanout: int, nodes: float, gain: float | None) -> None:
    """By 2.6 to 3.9 at D = 2^8: "2 to 4 times more accurate" (section 5.5) is true of variances, 1.6 to 2 of roots."""
    assert mean_nodes(size, fanout) == pytest.approx(nodes, abs=6e-4)
    if gain:
        shape = TreeShape(size, fanout)
        with_it = mean_variance(shape, Workload("ranges"), first_pass(shape, [float(shape.top)] * shape.top))
        assert shape.top * nodes / with_it == pytest.approx(gain, abs=0.01)


def test_flat_is_far_behind_on_long_ranges_of_large_domains() -> None:
    """At least 16 times less accurate (section 5.5): 25 times at D = 2^16 on half the domain."""
    flat, trees = root(1 << 16, 1, "length:32768"), root(1 << 16, 4, "length:32768")
    assert flat / trees == pytest.approx(25.4, abs=0.1)


def test_the_best_fanout() -> None:
    """The bound (5.2) recommends 8, the text finds 4 to 16 best; the exact averages over all ranges prefer 2 or 4."""
    for size in (1 << 12, 1 << 24):
        errors = {fanout: root(size, fanout, "ranges") for fanout in (2, 4, 8, 16)}
        assert min(errors, key=errors.__getitem__) in (2, 4)
        assert errors[4] < errors[8] < errors[16]


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("size", [1 << 5, 1 << 8, 1 << 16, 1 << 22])
def test_haar_is_close_to_the_best_tree_on_short_ranges(size: int, share: float) -> None:
    """ "Best or equal for lengths of 0.1 to 10 %, and at D = 2^5" (section 5.5) holds within 11 %, with V1 for Haar.

    At D = 2^5 it is true: 8 to 14 % better than the one complete tree.
    """
    workload = f"length:{max(1, round(share * size))}"
    best = min(root(size, fanout, workload) for fanout in (2, 4, 16) if TreeShape(size, fanout).complete)
    assert root(size, 0, workload) < (0.93 if size == 32 else 1.11) * best


# Rows of Tables 5.2 and 5.3 that the text speaks about: fan-out 2, 4, 16, Haar.
RANGES_2_8_AT = {"0.2": (4.269, 4.037, 4.176, 3.684), "1.0": (0.844, 0.744, 0.844, 0.811),
                 "1.2": (0.684, 0.658, 0.642, 0.732), "1.4": (0.571, 0.542, 0.592, 0.601)}  # fmt: skip


def test_the_text_contradicts_its_tables() -> None:
    """ "Haar is never the least accurate and trails by at most 10 %": at D = 2^8 it is last at 1.2 and 1.4.

    "0.787 and 0.763 at epsilon 1, about 3 %": the table has 0.811 and 0.744, 9 %. "Prefixes are up to 30 % more
    precise": fan-out 4 at 0.4 and D = 2^8 is 34 %. By theory Haar and fan-out 16 are last together at 1.4.
    """
    for epsilon in ("1.2", "1.4"):
        *trees, haar = RANGES_2_8_AT[epsilon]
        assert haar > max(trees)
    assert RANGES_2_8_AT["1.0"][3] / RANGES_2_8_AT["1.0"][1] == pytest.approx(1.09, abs=0.005)
    assert 1 - 1.439 / 2.193 == pytest.approx(0.34, abs=0.005)
    errors = {f: choose_ranges(size=256, epsilon="1.4", n=N, even_levels=True, methods=["hh"], fanouts=[f],
                               oracles=["oue"]).pick.rmse for f in (2, 4, 16)}  # fmt: skip
    signed = choose_ranges(size=256, epsilon="1.4", n=N, even_levels=True, methods=["haar"]).pick.rmse
    assert signed > max(errors.values())


def test_quantiles_cannot_be_as_precise_as_printed() -> None:
    """Section 5.5 reads medians at the quantiles 0.5002 and 0.5003 with N = 2^21, D = 2^18.

    The expected error of a prefix there is 7.3e-3 for Haar and 6.9e-3 for fan-out 4; 3e-4 needs about 2^30 respondents.
    """
    assert root(1 << 18, 0, "prefixes", 1 << 21) == pytest.approx(7.3e-3, abs=5e-5)
    assert root(1 << 18, 4, "prefixes", 1 << 21) == pytest.approx(6.9e-3, abs=5e-5)
    assert root(1 << 18, 4, "prefixes", 1 << 30) == pytest.approx(3e-4, rel=0.05)


def test_local_hashing_is_equalled_by_unary_encoding() -> None:
    """Section 5.5, D = 2^8. Whole numbers of buckets make OLH a little worse, or within 1e-4 of equal."""
    for epsilon in ("0.2", "0.5", LN3, "1.4"):
        hashed, unary = OLH(size=256, epsilon=epsilon).moments.other, OUE(size=256, epsilon=epsilon).moments.other
        assert hashed > (1 - 1e-4) * unary
    assert OLH(size=256, epsilon="0.2").moments.other == pytest.approx(100.67, abs=0.005)
    assert OLH(size=256, epsilon="1.4").moments.other == pytest.approx(1.738, abs=0.0005)


def test_hadamard_levels_cost_a_seventh() -> None:
    """Trees with HRR levels: 2/sqrt(3) = 1.155 times the error of OUE levels, less where row 0 is skipped."""
    shape, workload = TreeShape(256, 4), Workload("ranges")

    def error(make: type, **fields: bool) -> float:
        members = [make(size=shape.nodes(height), epsilon=LN3, **fields) for height in range(shape.top)]
        return sqrt(expected_error(shape, workload, members, (1,) * shape.top, N))

    unary = error(OUE)
    assert error(HRR, skip_zero=False) / unary == pytest.approx(1.155, abs=0.03)
    assert 1 < error(HRR) / unary < error(HRR, skip_zero=False) / unary


def test_regret_of_always_using_haar() -> None:
    """Against the better of fan-out 2 and 4 at epsilon 1.4: 13 % at D = 2^8 and 20 % at 2^22 (V = 1.719)."""
    odds = np.exp(1.4)
    scale = (4 * odds / (odds - 1) ** 2 + 1) / (4 * odds / (odds - 1) ** 2) * 3 / 4
    for size, regret in ((1 << 8, 0.13), (1 << 22, 0.20)):
        best = min(root(size, 2, "ranges"), root(size, 4, "ranges"))
        assert sqrt(scale) * root(size, 0, "ranges") / best - 1 == pytest.approx(regret, abs=0.006)
