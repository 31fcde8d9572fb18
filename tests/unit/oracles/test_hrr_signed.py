"""Signed Hadamard randomised response: bytes, exact probabilities, differences and their variance."""

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.device.kinds.hadamard import HRRSignedDevice, parity
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_unbiased, assert_variance

F64 = npt.NDArray[np.float64]

SIZES = [2, 3, 4, 5, 8, 11, 16, 17]
SIGNED = [(size, epsilon) for size in SIZES for epsilon in ("0.01", "1", "5")]


@pytest.mark.parametrize("size", [*SIZES, 257, 258, 1000, 1 << 30])
def test_a_batch_makes_the_bytes_of_the_device(size: int):
    m = HRRSigned(size=size, epsilon="1")
    values, coins = np.random.default_rng(size).integers(0, size, 300), ReplayCoins(b"s")
    batch = m.privatize(values, ReplayCoins(b"s"))
    assert batch.tobytes() == b"".join(m.privatize_one(value, coins) for value in values.tolist())
    assert m.valid(batch).all()
    assert issubclass(HRRSigned, HRRSignedDevice)


@pytest.mark.parametrize(
    ("size", "nodes", "order", "bits"),
    [(2, 1, 1, 1), (3, 2, 2, 2), (4, 2, 2, 2), (5, 3, 4, 3), (11, 6, 8, 4), (16, 8, 8, 4), (17, 9, 16, 5)],
)
def test_an_odd_size_leaves_the_last_node_one_half(size: int, nodes: int, order: int, bits: int):
    m = HRRSigned(size=size, epsilon="1")
    assert (m.nodes, m.order, m.report_bits) == (nodes, order, bits)
    assert len(m.all_reports()) == 2 * order
    assert len(m.estimate(m.tally(m.all_reports())).value) == nodes


def enumerated(m: HRRSigned) -> tuple[F64, F64, F64]:
    """Chances of all reports given each value, the estimate from each report alone, and the truth of each value."""
    reports = m.all_reports()
    chances = np.array([np.exp(m.log_prob(reports, value)) for value in range(m.size)])
    estimates = np.array([m.estimate(m.tally(reports[k : k + 1])).value for k in range(len(reports))])
    truth = np.array([np.eye(m.nodes)[v // 2] * (1 - 2 * (v % 2)) for v in range(m.size)])
    return chances, estimates, truth


@pytest.mark.parametrize(("size", "epsilon"), SIGNED)
def test_probabilities_are_exact(size: int, epsilon: str):
    m = HRRSigned(size=size, epsilon=epsilon)
    false = Fraction(m.low, WORD)
    for value in range(size):
        found = np.exp(m.log_prob(m.all_reports(), value))
        for row in range(m.order):
            true = parity(row & value >> 1) ^ value & 1
            assert found[2 * row + true] == pytest.approx(float((1 - false) / m.order), rel=1e-14)
            assert found[2 * row + 1 - true] == pytest.approx(float(false / m.order), rel=1e-14)
    assert m.realised_odds() == (1 - false) / false <= Fraction(m.odds, WORD)


@pytest.mark.parametrize(("size", "epsilon"), SIGNED)
def test_differences_are_unbiased_with_variance_v1_minus_the_mass_of_the_node(size: int, epsilon: str):
    """Averaged over any respondents: V1 I - diag(g), where g is the mass of both halves; nodes are uncorrelated."""
    m = HRRSigned(size=size, epsilon=epsilon)
    chances, estimates, truth = enumerated(m)
    scale = np.abs(estimates).max() ** 2
    assert np.allclose(chances @ estimates, truth, atol=1e-13 * scale)
    shares = np.random.default_rng(size).dirichlet(np.ones(size))
    second = np.einsum("v,vr,ra,rb->ab", shares, chances, estimates, estimates)
    covariance = second - np.einsum("v,va,vb->ab", shares, truth, truth)
    mass = np.zeros(m.nodes)
    np.add.at(mass, np.arange(size) // 2, shares)
    assert np.allclose(covariance, np.eye(m.nodes) * m.moments.other - np.diag(mass), atol=1e-12 * scale)
    assert np.allclose(m.moments.variance(mass), np.diag(covariance), atol=1e-12 * scale)


@pytest.mark.parametrize("epsilon", ["0.2", "1", "1.4"])
def test_the_constant_is_v1_and_not_v(epsilon: str):
    odds = exp(float(epsilon))
    v = 4 * odds / (odds - 1) ** 2
    m = HRRSigned(size=8, epsilon=epsilon)
    assert m.moments.other == pytest.approx(v + 1, rel=1e-12)
    assert m.moments.other == pytest.approx(((odds + 1) / (odds - 1)) ** 2, rel=1e-12)
    assert m.standard_error(100) == pytest.approx(((v + 1) / 100) ** 0.5)


def test_the_constant_row_carries_the_sum_of_the_signs():
    """Every other row sums to zero over the nodes, so without row 0 the differences of a full tree would add to 0."""
    m = HRRSigned(size=16, epsilon="1")
    _, estimates, truth = enumerated(m)
    sums = estimates.sum(axis=1)
    assert np.all(np.abs(sums[:2]) > 1)
    assert np.allclose(sums[2:], 0, atol=1e-12)
    assert np.array_equal(np.abs(truth.sum(axis=1)), np.ones(16))


def test_named_nodes_are_those_of_the_whole():
    m = HRRSigned(size=11, epsilon="1")
    tally = m.tally(m.privatize(np.arange(11), ReplayCoins(b"n")))
    whole, named = m.estimate(tally), m.estimate(tally, [5, 0])
    assert np.array_equal(named.value, whole.value[[5, 0]])
    assert named.n == 11
    with pytest.raises(InvalidValue):
        m.estimate(tally, [6])


@pytest.mark.parametrize("value", [11, -1, True, "1", 1.5, None, 1 << 70])
def test_halves_outside_the_domain_are_refused(value: Any):
    m = HRRSigned(size=11, epsilon="1")
    with pytest.raises(InvalidValue):
        m.privatize_one(value, ReplayCoins(b""))
    with pytest.raises(InvalidValue):
        m.privatize([value], ReplayCoins(b""))


def test_specs_and_reports_that_cannot_exist_are_refused():
    for size in (0, 1, "x", 2.5, (1 << 30) + 1):
        with pytest.raises(InvalidSpec, match=r"^hrr_signed: size"):
            HRRSigned(size=size, epsilon="1")  # pyright: ignore[reportArgumentType]
    m = HRRSigned(size=5, epsilon="1")
    with pytest.raises(ReportRejected, match="1 of 2 reports"):
        m.tally(np.array([7, 8], np.uint8))


def test_differences_of_many_collections_have_the_stated_mean_and_variance():
    """910 collections of 600 respondents; false-alarm probability 1e-7 for each of the three assertions.

    A variance that is off by a factor of 1.3 is rejected, so V in place of V1 (3 instead of 4 at e^epsilon = 3) is.
    """
    m = HRRSigned(size=5, epsilon="1.0986122886681098")
    values = np.repeat(np.arange(5), [300, 60, 20, 120, 100])
    coins, truth = SimulationCoins(20_250_117), np.array([240, -100, 100]) / 600
    errors = np.array([m.estimate(m.tally(m.privatize(values, coins))).value - truth for _ in range(910)])
    variance = m.moments.variance(np.array([360, 140, 100]) / 600) / 600
    assert m.moments.other == pytest.approx(4, rel=1e-12)
    assert_unbiased(errors, variance)
    assert_variance(errors[:, 0], variance[0])
    assert_variance(errors[:, 2], variance[2])
