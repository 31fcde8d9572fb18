"""Count mechanisms by linear program: optima against closed forms and printed values, and exact privacy afterwards."""

from fractions import Fraction
from itertools import combinations
from time import process_time

import numpy as np
import pytest

from tacit.central.count import as_alpha
from tacit.central.design import design, design_local
from tacit.central.mechanisms import em, gm, rr, um
from tacit.central.objectives import Objective
from tacit.central.properties import PROPERTIES, as_properties, properties_of
from tacit.central.realise import realise, symmetrise
from tacit.central.select import PROGRAMS, derivable_from_gm, gm_shortfall, make, select
from tacit.errors import InvalidSpec

L0 = Objective()
SUBSETS = [subset for k in range(8) for subset in combinations(PROPERTIES, k)]


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("alpha", ["0.3", "0.62", "0.9"])
def test_without_properties_the_optimum_is_the_geometric_mechanism(n: int, alpha: str) -> None:
    """Theorem 12: GM is the unique L0 optimum, so that even the matrices agree."""
    best = design(n, alpha)
    assert np.allclose(best.matrix, gm(n, alpha).matrix, atol=1e-7)


@pytest.mark.parametrize("n", [2, 3, 6, 7])
@pytest.mark.parametrize("alpha", ["0.3", "0.62", "0.9"])
def test_the_fair_optimum_is_the_explicit_fair_mechanism(n: int, alpha: str) -> None:
    """Lemma 15 and Theorem 13: fairness alone, or everything, costs what EM costs."""
    expected = L0.scaled(em(n, alpha).matrix)
    for properties in (["fairness"], ["all"]):
        assert np.isclose(L0.scaled(design(n, alpha, "l0", properties).matrix), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("alpha", "n", "weak", "column"),
    [
        ("0.76", 2, 0.89474, 0.89474),
        ("0.76", 4, 0.88532, 0.89529),
        ("0.76", 6, 0.86729, 0.88928),
        ("0.76", 8, 0.86364, 0.88284),
        ("2/3", 3, 0.81667, 0.83333),
        ("2/3", 4, 0.80000, 0.82500),
        ("2/3", 8, 0.80000, 0.81250),
        ("10/11", 4, 0.96800, 0.96900),
        ("10/11", 12, 0.96264, 0.96811),
        ("10/11", 20, 0.95238, 0.96414),
        ("0.99", 12, 0.99719, 0.99723),
    ],
)
def test_costs_of_weak_honesty(alpha: str, n: int, weak: float, column: float) -> None:
    got = [L0.scaled(make(name, n, alpha).matrix) for name in ("gm", "wm-wh", "wm-cm", "em")]
    assert round(got[1], 5) == weak and round(got[2], 5) == column
    assert got == sorted(got) or np.all(np.diff(got) > -1e-8)


@pytest.mark.parametrize(
    ("alpha", "n", "objective", "expected"),
    [  # UCM, WM, FM, AM: unscaled values for all counts equally likely
        ("10/11", 4, "l1", (1.2, 1.4327, 1.4602, 1.4738)),
        ("10/11", 4, "l2", (2.0, 3.3086, 3.4634, 3.5137)),
        ("10/11", 8, "l1", (2.1404, 2.4485, 2.5182, 2.5686)),
        ("10/11", 8, "l2", (6.4737, 9.5057, 10.1536, 10.5027)),
        ("10/11", 12, "l1", (3.0047, 3.3107, 3.4146, 3.5062)),
        ("10/11", 12, "l2", (12.7912, 17.4094, 18.8904, 19.7451)),
        ("2/3", 4, "l1", (1.0044, 1.0528, 1.0881, 1.1111)),
        ("2/3", 4, "l2", (1.677, 1.9862, 2.1793, 2.2483)),
        ("2/3", 8, "l1", (1.4883, 1.511, 1.548, 1.5966)),
        ("2/3", 8, "l2", (3.8861, 4.1615, 4.5231, 4.6983)),
        ("2/3", 12, "l1", (1.7486, 1.7602, 1.7992, 1.8459)),
        ("2/3", 12, "l2", (5.7241, 5.9018, 6.2899, 6.4701)),
    ],
)
def test_distances_under_four_sets_of_properties(
    alpha: str, n: int, objective: str, expected: tuple[float, ...]
) -> None:
    goal = Objective.parse(objective)
    got = [goal.value(make(name, n, alpha, objective).matrix) for name in ("ucm", "wm", "fm", "am")]
    assert np.round(got, 4).tolist() == list(expected)


@pytest.mark.slow_cases("3-0.8")
@pytest.mark.parametrize(("n", "alpha"), [(3, "0.8"), pytest.param(4, "0.4", marks=pytest.mark.slow)])
def test_128_sets_of_properties_have_four_answers(n: int, alpha: str) -> None:
    """The selector's mechanism costs what the linear program finds, and has what was asked for, for every set."""
    costs: set[float] = set()
    for subset in SUBSETS:
        picked, _ = select(n, alpha, subset)
        kept = {name for name, has in properties_of(picked.matrix).items() if has}
        assert set(subset) <= kept
        cost = L0.scaled(picked.matrix)
        assert np.isclose(cost, L0.scaled(design(n, alpha, "l0", subset).matrix), atol=1e-7)
        costs.add(round(cost, 6))
    assert len(costs) <= 4


def test_selector_names_and_reasons() -> None:
    cases = [
        (1, "0.9", ["all"], "rr"),
        (8, "0.9", ["all"], "em"),
        (8, "0.9", ["fairness"], "em"),
        (8, "0.5", ["column-honesty"], "gm"),
        (8, "0.9", ["column-honesty"], "wm-cm"),
        (8, "0.9", ["weak-honesty"], "wm-wh"),
        (18, "0.9", ["weak-honesty"], "gm"),  # n = 2 alpha/(1 - alpha)
        (8, "0.9", ["symmetry", "row-monotonicity"], "gm"),
        (8, "0.9", [], "gm"),
    ]
    for n, alpha, properties, expected in cases:
        picked, why = select(n, alpha, properties)
        assert picked.name == expected and why


def test_every_program_is_exactly_private() -> None:
    """What may be released from is rational, sums to one and keeps alpha in fractions; little was mixed in."""
    for name in PROGRAMS:
        for objective in ("l0", "l1", "l2", "l0,1"):
            mechanism = make(name, 6, "10/11", objective)
            assert all(sum(column) == 1 and min(column) >= 0 for column in mechanism.columns)
            p, a = mechanism.exact, Fraction(10, 11)
            steps = [(j, j + d) for j in range(7) for d in (-1, 1) if 0 <= j + d <= 6]
            assert all(p[i, j] >= a * p[i, k] for i in range(7) for j, k in steps)
            assert mechanism.mixed < Fraction(1, 10**7)
            wanted = as_properties(PROGRAMS[name])
            assert all(properties_of(mechanism.matrix)[name] for name in wanted)


def test_symmetry_is_exact() -> None:
    mechanism = design(7, "0.8", "l1", ["symmetry"])
    assert symmetrise(mechanism.columns) == mechanism.columns


def test_symmetriser_keeps_privacy_properties_and_cost() -> None:
    """Theorem 8, on a program's optimum that is not symmetric."""
    lopsided = design(5, "0.9", "l0", ["weak-honesty"])
    mirrored = type(lopsided)("mirrored", lopsided.alpha, symmetrise(lopsided.columns))
    assert mirrored.holds()
    assert properties_of(mirrored.matrix)["symmetry"] and properties_of(mirrored.matrix)["weak-honesty"]
    assert np.isclose(L0.scaled(mirrored.matrix), L0.scaled(lopsided.matrix), atol=1e-12)


def test_a_sum_objective_needs_a_symmetric_prior_for_that() -> None:
    """The condition that the text leaves out: with a prior on small counts symmetrising costs."""
    goal = Objective(prior=(5.0, 3.0, 1.0, 0.5))
    best = design(3, "0.5", goal)
    assert goal.value(np.array(symmetrise(best.columns), np.float64).T) > goal.value(best.matrix) + 1e-3


def test_symmetry_is_free_for_symmetric_priors_and_worst_cases() -> None:
    for goal in (L0, Objective(power=1), Objective(power=2), Objective(worst=True), Objective(power=1, worst=True)):
        plain, symmetric = (goal.value(design(5, "0.7", goal, extra).matrix) for extra in ([], ["symmetry"]))
        assert np.isclose(plain, symmetric, atol=1e-8)


def test_worst_case_is_minimised() -> None:
    goal = Objective(power=1, worst=True)
    best = goal.value(design(6, "0.8", goal).matrix)
    others = [gm(6, "0.8"), em(6, "0.8"), um(6, "0.8"), design(6, "0.8", "l1")]
    assert all(best <= goal.value(other.matrix) + 1e-9 for other in others)


@pytest.mark.parametrize(
    ("weights", "kind"),
    [((1, 1), "rr"), ((1, 0.51), "rr"), ((0.51, 1), "rr"), ((1, 0.49), "always 0"), ((0.49, 1), "always 1")],
)
def test_one_person_and_a_prior(weights: tuple[float, float], kind: str) -> None:
    """Theorem 10, corrected: randomised response iff alpha <= w1/w0 <= 1/alpha, else a constant (alpha = 1/2)."""
    expected = {"rr": rr(1, "0.5").matrix, "always 0": [[1, 1], [0, 0]], "always 1": [[0, 0], [1, 1]]}[kind]
    assert np.allclose(design(1, "0.5", Objective(prior=weights)).matrix, expected, atol=1e-7)


def test_gaps_and_spikes_without_properties() -> None:
    """Section 6.3, Figure 6.1; the text gives alpha = 0.62 for all, the spikes need the larger alphas used here."""
    for n in (4, 5, 6, 7):
        for objective in ("l1", "l2"):
            p = design(n, "0.62", objective).matrix
            assert p[[0, -1]].max() < 1e-6
    assert design(5, "0.62", "l0,1").matrix[[0, -1]].max() < 1e-6
    assert design(4, "0.78", "l2").matrix[2].min() > 1 - 1e-6
    assert design(4, "0.62", "l2").matrix[2].min() < 0.9
    seven = design(7, "0.75", "l1").matrix
    assert seven[[0, 1, 6, 7]].max() < 1e-6
    assert np.isclose((seven[2] + seven[5]).min(), 0.75, atol=1e-6)
    for alpha in (0.62, 0.9):
        five = design(5, alpha, "l0,1").matrix
        assert np.isclose((five[1] + five[4]).min(), alpha, atol=1e-6)


def test_derivability_of_weakly_honest_mechanisms() -> None:
    assert not derivable_from_gm(make("wm-cm", 4, "0.9"))
    assert not derivable_from_gm(make("wm-wh", 4, "0.9"))
    assert gm_shortfall(make("wm-wh", 20, "10/11")) < 1e-6  # it is GM, up to the solver
    assert gm_shortfall(make("wm-wh", 12, "10/11")) > 1e-4


@pytest.mark.parametrize("items", [2, 3, 5, 6, 20])
@pytest.mark.parametrize("alpha", ["0.2", "0.5", "0.9"])
def test_the_local_optimum_is_generalised_randomised_response(items: int, alpha: str) -> None:
    best, a = design_local(items, alpha), float(as_alpha(alpha))
    expected = np.full((items, items), a) + (1 - a) * np.eye(items)
    assert np.allclose(best.matrix, expected / (1 + (items - 1) * a), atol=1e-7)
    assert best.holds() and best.neighbours == "all"
    assert all(properties_of(best.matrix, tolerance=1e-7).values())


def test_local_distances_are_degenerate() -> None:
    assert np.allclose(design_local(5, "0.5", "l2").matrix[2], 1, atol=1e-6)  # always the middle item
    assert design_local(5, "0.5", "l1").matrix[[0, 4]].max() < 1e-6


def test_a_float_matrix_is_made_private_by_the_least_mixing() -> None:
    wanted = gm(4, "0.9").matrix
    made = realise(wanted, "0.9")
    assert made.holds() and made.mixed < 1e-13
    bent = np.full((2, 2), 0.5) + np.array([[0.3, -0.3], [-0.3, 0.3]])  # odds 4, asked for 2
    made = realise(bent, "0.5")
    assert made.holds() and np.isclose(float(made.mixed), 4 / 9)
    assert np.isclose(float(made.realised_alpha()), 0.5)


def test_matrices_that_are_no_mechanisms_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="columns are the true counts"):
        realise(np.array([[0.9, 0.1], [0.9, 0.1]]).T * [[1], [2]], "0.5")
    with pytest.raises(InvalidSpec, match="square"):
        realise(np.ones((2, 3)), "0.5")
    with pytest.raises(InvalidSpec, match="at most 128"):
        design(129, "0.5")


@pytest.mark.slow
def test_sixty_four_people_with_all_properties_in_ten_seconds() -> None:
    before = process_time()
    mechanism = design(64, "0.9", "l1", ["all"])
    assert process_time() - before < 10
    assert mechanism.holds() and all(properties_of(mechanism.matrix).values())
