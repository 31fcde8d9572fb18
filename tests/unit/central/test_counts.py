"""Count mechanisms in closed form: exact privacy, worked numbers, properties, sampling and refusals."""

from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest

from tacit.central.count import CountMechanism, alpha_of, as_alpha
from tacit.central.mechanisms import em, exp, fair_probability, gm, lap, rr, um
from tacit.central.objectives import Objective, binomial_prior, error_histogram, error_probability, rmse
from tacit.central.properties import PROPERTIES, as_properties, properties_of
from tacit.central.select import CLOSED, derivable_from_gm, make, weakly_honest_from
from tacit.device.numbers.budget import as_epsilon
from tacit.device.numbers.coins import ScriptedCoins, SystemCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_fits

ALPHAS = ["0.1", "0.5", "0.51", "2/3", "0.9", "0.99"]
GROUPS = [1, 2, 3, 4, 7, 12]
L0 = Objective()


def scored(mechanism: CountMechanism) -> float:
    return L0.scaled(mechanism.matrix)


def held(mechanism: CountMechanism) -> set[str]:
    """The properties a matrix has in exact fractions."""
    return {name for name, has in properties_of(mechanism.exact, tolerance=0).items() if has}


@pytest.mark.parametrize("n", GROUPS)
@pytest.mark.parametrize("name", ["gm", "em", "um", "exp", "lap"])
def test_privacy_and_probability_by_enumeration(name: str, n: int) -> None:
    for alpha in ALPHAS:
        mechanism = make(name, n, alpha)
        p, a = mechanism.exact, as_alpha(alpha)
        assert all(sum(p[:, j]) == 1 for j in range(n + 1))
        ratios = [p[i, j] / p[i, j + 1] for i in range(n + 1) for j in range(n)]
        assert a <= min(ratios) and max(ratios) <= 1 / a
        assert mechanism.realised_alpha() == min(*ratios, *(1 / r for r in ratios))
        if name in ("gm", "em"):
            assert mechanism.realised_alpha() == a  # nothing is wasted


def test_randomised_response() -> None:
    for alpha in ALPHAS:
        a = as_alpha(alpha)
        assert rr(1, alpha).columns == ((1 / (1 + a), a / (1 + a)), (a / (1 + a), 1 / (1 + a)))
        assert rr(1, alpha).columns == gm(1, alpha).columns == em(1, alpha).columns
        assert held(rr(1, alpha)) == set(PROPERTIES)


def test_example_1_of_the_geometric_mechanism() -> None:
    p = gm(2, "0.9").matrix
    assert p[:, 1].round(4).tolist() == [0.4737, 0.0526, 0.4737]
    assert round(p[0, 0], 4) == 0.5263


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", GROUPS)
def test_the_geometric_mechanism_is_clamped_noise(n: int, alpha: str) -> None:
    a, reach, p = as_alpha(alpha), 40, gm(n, alpha).exact
    noise = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-reach, reach + 1)}
    for j in range(n + 1):
        for i in range(1, n):
            assert p[i, j] == noise[i - j]
        below = sum(share for z, share in noise.items() if j + z <= 0)
        assert 0 <= p[0, j] - below <= a ** (reach - n)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", GROUPS)
def test_what_the_geometric_mechanism_keeps(n: int, alpha: str) -> None:
    a, kept = as_alpha(alpha), held(gm(n, alpha))
    assert np.isclose(scored(gm(n, alpha)), float(2 * a / (1 + a)), rtol=1e-12)
    assert {"symmetry", "row-monotonicity", "row-honesty"} <= kept
    assert ("weak-honesty" in kept) == (n == 1 or n >= 2 * a / (1 - a))
    assert ("column-monotonicity" in kept) == ("column-honesty" in kept) == (n == 1 or a <= Fraction(1, 2))
    assert ("fairness" in kept) == (n == 1)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [*GROUPS, 39, 40])
def test_the_fair_mechanism_keeps_everything(n: int, alpha: str) -> None:
    mechanism, y = em(n, alpha), float(fair_probability(n, as_alpha(alpha)))
    assert held(mechanism) == set(PROPERTIES)
    assert np.isclose(scored(mechanism), (n + 1) / n * (1 - y), rtol=1e-12)
    prior = np.random.default_rng(n).dirichlet(np.ones(n + 1))
    assert np.isclose(error_probability(mechanism.matrix, prior), 1 - y)  # whatever the truths (Lemma 11)


def test_the_printed_constant_of_the_fair_mechanism_is_for_even_groups() -> None:
    """With it the columns of odd groups sum to less than one: 0.9941 at n = 3, 0.9877 at n = 1, alpha = 0.9."""
    a = Fraction(9, 10)
    for n, expected in ((3, 0.9941), (1, 0.9877)):
        printed = (1 - a) / (1 + a - 2 * a ** Fraction(n + 2, 2))
        assert round(float(printed) / float(fair_probability(n, a)), 4) == expected


def test_exponents_of_the_fair_mechanism_at_seven() -> None:
    p, a = em(7, "0.5").exact, Fraction(1, 2)
    powers = {p[0, 0] * a**k: k for k in range(8)}
    rows = [[0, 1, 2, 3, 4, 4, 4, 4], [1, 0, 1, 2, 3, 3, 3, 3], [1, 1, 0, 1, 2, 3, 3, 3], [2, 2, 1, 0, 1, 2, 2, 2]]
    found = [[powers[entry] for entry in row] for row in p]
    assert found[:4] == rows
    assert found[4:] == [row[::-1] for row in rows[::-1]]


@pytest.mark.parametrize(
    ("n", "alpha", "expected"),
    [
        (2, "0.9", 0.964286),
        (3, "0.9", 0.963989),
        (4, "0.62", 0.834552),
        (5, "0.76", 0.908326),
        (7, "0.9", 0.967951),
        (8, "0.5", 0.733696),
    ],
)
def test_worked_numbers_of_the_fair_mechanism(n: int, alpha: str, expected: float) -> None:
    assert round(scored(em(n, alpha)), 6) == expected


def test_the_exponential_mechanism_spends_less_than_its_epsilon() -> None:
    for n, epsilon, spent in ((4, "1", 0.684), (8, "0.1", 0.087)):
        assert round(-log(exp(n, alpha_of(epsilon)).realised_alpha()), 3) == spent
    four = [scored(make(name, 4, alpha_of("1"))) for name in ("exp", "em", "gm")]
    assert np.round(four, 3).tolist() == [0.773, 0.627, 0.538]
    half = exp(1, alpha_of("1")).matrix[0, 0]
    assert np.isclose(half, np.exp(0.5) / (1 + np.exp(0.5)), rtol=1e-8)


def test_rounded_laplace_noise() -> None:
    """Cells are integrals of the Laplace density around each integer, tails at the ends."""

    def tail(x: float) -> float:
        return np.exp(-x) / 2  # noise above x >= 0 at epsilon 1

    p = lap(3, alpha_of("1")).matrix
    assert np.allclose(p[:, 1], [tail(0.5), 1 - 2 * tail(0.5), tail(0.5) - tail(1.5), tail(1.5)], atol=1e-9)
    assert np.allclose(p[:, 0], [1 - tail(0.5), tail(0.5) - tail(1.5), tail(1.5) - tail(2.5), tail(2.5)], atol=1e-9)


def test_uniform_is_the_unit_of_every_objective() -> None:
    for name in ("l0", "l1", "l2", "l0,2", "l1,1"):
        assert Objective.parse(name).scaled(um(6, "0.9").matrix) == 1.0
        assert Objective.parse(name, worst=True).scaled(um(6, "0.9").matrix) == 1.0
    assert np.isclose(L0.value(um(6, "0.9").matrix), 6 / 7)
    assert np.isclose(Objective.parse("l1").value(um(4, "0.9").matrix), 1.6)
    assert np.isclose(Objective.parse("l2").value(um(4, "0.9").matrix), 4.0)


@pytest.mark.parametrize(
    ("alpha", "n", "p", "name", "expected"),
    [
        ("10/11", 4, 0.1, "gm", (0.4539, 2.349)),
        ("10/11", 4, 0.5, "em", (0.3951, 1.678)),
        ("10/11", 8, 0.3, "gm", (0.7547, 3.786)),
        ("10/11", 8, 0.5, "um", (0.6675, 2.944)),
        ("10/11", 12, 0.5, "em", (0.7098, 3.775)),
        ("2/3", 8, 0.1, "em", (0.5139, 3.148)),
        ("2/3", 8, 0.1, "um", (0.7145, 4.198)),
        ("2/3", 12, 0.5, "gm", (0.5316, 2.841)),
    ],
)
def test_errors_for_binomial_counts(alpha: str, n: int, p: float, name: str, expected: tuple[float, float]) -> None:
    matrix = make(name, n, alpha).matrix
    for prior in (binomial_prior(n, p), binomial_prior(n, 1 - p)):
        assert round(error_probability(matrix, prior, beyond=1), 4) == expected[0]
        assert round(rmse(matrix, prior), 3) == expected[1]


def test_error_histogram_sums_to_one() -> None:
    histogram = error_histogram(gm(5, "0.9").matrix, binomial_prior(5, 0.3))
    assert np.isclose(sum(histogram.values()), 1) and sorted(histogram) == list(range(-5, 6))


def test_checker_on_matrices_that_lack_one_property() -> None:
    even = np.full((3, 3), 1 / 3)
    assert all(properties_of(even).values())
    tilted = even + np.array([[0.1, 0, 0], [-0.1, 0, 0], [0, 0, 0]])
    lacking = {name for name, has in properties_of(tilted).items() if not has}
    assert lacking == {"column-monotonicity", "fairness", "symmetry"}
    dip = np.array([[0.4, 0.3, 0.35], [0.25, 0.4, 0.25], [0.35, 0.3, 0.4]])  # rows and columns rise again
    assert {name for name, has in properties_of(dip).items() if not has} == {"row-monotonicity", "column-monotonicity"}
    shy = np.array([[0.5, 0.45, 0.4], [0.1, 0.1, 0.1], [0.4, 0.45, 0.5]])
    lacking = {name for name, has in properties_of(shy).items() if not has}
    assert lacking == {"column-honesty", "column-monotonicity", "fairness", "weak-honesty"}


def test_row_monotonicity_compares_with_the_diagonal() -> None:
    """The printed index sets leave the diagonal out; a matrix below its neighbours there must not pass."""
    p = np.array([[0.2, 0.3, 0.2], [0.4, 0.4, 0.4], [0.4, 0.3, 0.4]])
    assert not properties_of(p)["row-monotonicity"] and not properties_of(p)["row-honesty"]


def test_derivability_from_the_geometric_mechanism() -> None:
    """Gupte and Sundararajan's rule: EM fails beyond n = 1, GM and UM pass."""
    for alpha in ALPHAS:
        for n in (2, 3, 8):
            assert derivable_from_gm(gm(n, alpha))
            assert derivable_from_gm(um(n, alpha))
            assert not derivable_from_gm(em(n, alpha))
        assert derivable_from_gm(em(1, alpha))


def test_derivable_means_a_stochastic_map_of_gm() -> None:
    """GM then a column-stochastic map T: T = P GM^-1 has no negative entry exactly when the rule holds."""
    for name in CLOSED.keys() - {"rr"}:
        mechanism = make(name, 5, "0.8")
        mapped = mechanism.matrix @ np.linalg.inv(gm(5, "0.8").matrix)
        assert derivable_from_gm(mechanism) == bool(mapped.min() >= -1e-9)


def test_sampling_walks_the_thresholds_exactly() -> None:
    mechanism = gm(2, "0.9")  # column 1: 9/19, 1/19, 9/19
    first = 9 * WORD // 19  # 2^64 9/19 is not whole: this very word is undecided
    cases = [([0], 0), ([first - 1], 0), ([first, 0], 0), ([first, WORD - 1], 1), ([first + 1], 1), ([WORD - 1], 2)]
    for script, expected in cases:
        assert mechanism.release_one(1, ScriptedCoins(script)) == expected
    even = um(1, "0.5")  # thresholds on whole words need no second one
    assert [even.release_one(0, ScriptedCoins([word])) for word in (WORD // 2 - 1, WORD // 2)] == [0, 1]


@pytest.mark.parametrize("name", ["gm", "em", "exp", "lap"])
def test_samples_follow_the_columns(name: str) -> None:
    """20,000 samples of three columns; false-alarm probability 1e-7 each."""
    mechanism = make(name, 6, "0.8")
    for j in (0, 2, 6):
        released = mechanism.release(np.full(20_000, j), SimulationCoins(j))
        assert_fits(np.bincount(released, minlength=7).astype(np.int64), mechanism.matrix[:, j])


def test_shares_of_groups_are_recovered() -> None:
    mechanism, truth = em(4, "0.5"), np.array([0.1, 0.2, 0.4, 0.3, 0.0])
    assert np.allclose(mechanism.estimate(mechanism.matrix @ truth), truth)
    with pytest.raises(InvalidSpec, match="singular"):
        um(4, "0.5").estimate(np.ones(5))
    with pytest.raises(InvalidSpec, match="5 frequencies"):
        mechanism.estimate(np.ones(4))


def test_alpha_of_an_epsilon_is_never_less_private() -> None:
    assert alpha_of("1") * Fraction(as_epsilon("1").odds, WORD) == 1
    assert 0 <= float(alpha_of("1")) - np.exp(-1) < 1e-15


@pytest.mark.parametrize(
    "alpha", ["0", "1", "1.5", "-0.1", "nan", "", "a/b", "1/0", "10/", "2/1", float("nan"), 0.0, 1, None, True]
)
def test_alpha_outside_its_range_is_refused(alpha: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"alpha is .*, must be strictly between 0 and 1"):
        gm(4, alpha)


@pytest.mark.parametrize("n", [0, -1, 257, 2.5, None, True])
def test_groups_that_cannot_be_are_refused(n: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"n is .*, must be an integer from 1 to 256"):
        em(n, "0.9")


def test_other_bad_input() -> None:
    with pytest.raises(InvalidSpec, match="must be 1"):
        rr(2, "0.9")
    with pytest.raises(InvalidSpec, match=r"'bravery' does not exist, must be one of row-honesty.*all"):
        as_properties(["wh", "bravery"])
    with pytest.raises(InvalidSpec, match=r"'l3', must be l0, l1, l2"):
        Objective.parse("l3")
    with pytest.raises(InvalidSpec, match="distance is 4, must be below n = 4"):
        Objective.parse("l0,4").value(gm(4, "0.9").matrix)
    with pytest.raises(InvalidSpec, match="prior must be 5 weights"):
        Objective(prior=(1.0, 2.0)).value(gm(4, "0.9").matrix)
    with pytest.raises(InvalidSpec, match="does not exist"):
        make("xm", 4, "0.9")
    with pytest.raises(InvalidSpec, match="p is 2"):
        binomial_prior(3, 2)
    for counts in ([5], [-1], [0.5], [[1]], ["a"]):
        with pytest.raises(InvalidValue, match="0 to 4"):
            gm(4, "0.9").release(counts, SystemCoins())


def test_a_matrix_that_is_not_private_cannot_become_a_mechanism() -> None:
    identity = tuple(tuple(Fraction(int(i == j)) for i in range(3)) for j in range(3))
    with pytest.raises(InvalidSpec, match="ratio beyond alpha"):
        CountMechanism("identity", Fraction(1, 2), identity)
    with pytest.raises(InvalidSpec, match="sum to 1 exactly"):
        CountMechanism("short", Fraction(1, 2), ((Fraction(1, 2), Fraction(1, 3)),) * 2)
    with pytest.raises(InvalidSpec, match="square"):
        CountMechanism("oblong", Fraction(1, 2), ((Fraction(1),),) * 2)


def test_weak_honesty_crossover() -> None:
    for alpha in ("2/3", "10/11", "0.76", "0.9"):
        crossover = weakly_honest_from(alpha)
        n = -(-crossover.numerator // crossover.denominator)
        assert "weak-honesty" in held(gm(n, alpha))
        assert "weak-honesty" not in held(gm(n - 1, alpha))
