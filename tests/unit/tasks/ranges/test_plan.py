"""The range planner against the coefficients of Kulkarni's dissertation (chapter 5, corrected) and dense least squares.

Coefficients are those of "average squared error = coefficient * constant / n" with all levels asked alike, V for plain
levels and V1 = V + 1 for signed ones.
"""

from math import exp, log, sqrt

import numpy as np
import pytest

from tacit.errors import InvalidSpec
from tacit.post.trees.levels import Level, TreeShape, fit_levels
from tacit.simulate.ranges import all_ranges_mse, predicted_mse
from tacit.tasks.ranges import options as range_plan_options
from tacit.tasks.ranges.error import Workload, first_pass, mean_variance, signed_variances, span_variances
from tacit.tasks.ranges.levels import level_weights
from tacit.tasks.ranges.options import averaged, contrast_noise, expected_error, expected_uncertainty
from tacit.tasks.ranges.plan import build, choose_ranges, fanouts_for
from tacit.tasks.ranges.ranges import solve_ranges

RANGES, PREFIXES, POINTS = Workload("ranges"), Workload("prefixes"), Workload("points")


def tree(size: int, fanout: int, workload: Workload = RANGES) -> float:
    """The coefficient of a tree whose levels are asked alike, per V/n."""
    shape = TreeShape(size, fanout)
    return mean_variance(shape, workload, first_pass(shape, [float(shape.top)] * shape.top))


def haar(size: int, workload: Workload = RANGES) -> float:
    """The coefficient of the Haar transform, per V1/n."""
    shape = TreeShape(size, 2)
    noise = [float(shape.top)] * shape.top
    return mean_variance(shape, workload, signed_variances(shape, noise, [0.0] * shape.top))


# Size: fan-out (or 0 for Haar) to the coefficients over all ranges and over all prefixes.
TABLE = {
    1 << 8: {2: (12.400, 7.211), 4: (11.800, 7.156), 16: (14.728, 10.020), 0: (9.571, 5.778)},
    1 << 10: {2: (18.856, 10.683), 4: (18.513, 10.822), 0: (15.283, 8.889)},
    1 << 12: {2: (26.636, 14.820), 4: (26.722, 15.237), 8: (29.912, 17.582), 16: (36.154, 22.062), 0: (22.335, 12.667)},
    1 << 16: {2: (46.186, 25.093), 4: (47.633, 26.316), 16: (66.958, 38.792), 0: (40.445, 22.222)},
    1 << 18: {2: (57.960, 31.230), 4: (60.337, 32.981), 8: (69.371, 38.623), 0: (51.500, 28.000)},
    1 << 20: {2: (71.067, 38.033), 4: (74.541, 40.396), 16: (107.135, 60.208), 0: (63.889, 34.444)},
    1 << 22: {2: (85.507, 45.503), 4: (90.245, 48.560), 0: (77.611, 41.556)},
}
CASES = [(size, fanout, *pair) for size, row in TABLE.items() for fanout, pair in row.items()]


@pytest.mark.parametrize(("size", "fanout", "ranges", "prefixes"), CASES)
def test_coefficients(size: int, fanout: int, ranges: float, prefixes: float) -> None:
    found = [haar(size, w) if not fanout else tree(size, fanout, w) for w in (RANGES, PREFIXES)]
    assert found == pytest.approx([ranges, prefixes], abs=6e-4)


@pytest.mark.parametrize("size", [2, 3, 64, 256, 1 << 16])
def test_flat_coefficients_with_and_without_the_known_total(size: int) -> None:
    """Without the total the average is (D + 2)/3, the mean length; knowing it takes off half."""
    lengths = np.arange(1, size + 1)
    mean = float(np.sum(lengths * (size - lengths + 1.0)) / (size * (size + 1) / 2))
    assert mean == pytest.approx((size + 2) / 3)
    assert tree(size, size) == pytest.approx((size - 1) * (size + 2) / (6 * size))
    assert tree(256, 256) == pytest.approx(42.8, abs=0.05)


@pytest.mark.parametrize("height", [3, 8, 20])
def test_closed_forms_of_the_haar_transform(height: int) -> None:
    """The averages over all ranges and prefixes in closed form: section 5.4.3, corrected."""
    size, h = 1 << height, height
    assert haar(size) == pytest.approx(h * (h / 6 + (1 - 4.0**-h) / 9 - (size - 1) / (4 * (size + 1))))
    assert haar(size, PREFIXES) == pytest.approx(h * (h / 12 + (1 - 4.0**-h) / 18))


def variance_constant(epsilon: float) -> float:
    """V = 4 E / (E - 1)^2."""
    return 4 * exp(epsilon) / (exp(epsilon) - 1) ** 2


def crossover(size: int, workload: Workload) -> float:
    """The epsilon below which the Haar transform beats the trees of fan-out 2 and 4."""
    best, signed = min(tree(size, 2, workload), tree(size, 4, workload)), haar(size, workload)
    low, high = 0.1, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        v = variance_constant(middle)
        low, high = (middle, high) if signed * (v + 1) < best * v else (low, middle)
    return low


SIZES = [1 << k for k in (8, 10, 12, 16, 18, 20, 22)]


@pytest.mark.parametrize(("workload", "expected"), [
    (RANGES, (0.93, 0.89, 0.85, 0.74, 0.69, 0.66, 0.63)),
    (PREFIXES, (0.94, 0.87, 0.80, 0.70, 0.67, 0.64, 0.61)),
])  # fmt: skip
def test_haar_wins_below_an_epsilon_that_falls_with_the_domain(workload: Workload, expected: tuple[float, ...]) -> None:
    assert [crossover(size, workload) for size in SIZES] == pytest.approx(expected, abs=0.006)


# Size: the first length at which each method beats flat OUE at E = 3 (a range of length r has variance r V / n there).
FIRST_LENGTHS = {
    1 << 5: {0: 5, 2: 6},
    1 << 8: {0: 9, 2: 10, 4: 9, 16: 11},
    1 << 16: {0: 23, 2: 23, 4: 21, 16: 26},
    1 << 20: {0: 30, 2: 30, 4: 28, 16: 34},
}


@pytest.mark.parametrize(
    ("size", "fanout", "first"), [(s, b, r) for s, row in FIRST_LENGTHS.items() for b, r in row.items()]
)
def test_flat_wins_for_short_ranges_only(size: int, fanout: int, first: int) -> None:
    def mean(length: int) -> float:
        workload = Workload("length", length)
        return 4 / 3 * haar(size, workload) if not fanout else tree(size, fanout, workload)

    assert next(r for r in range(1, 100) if mean(r) < r) == first


def least_squares(shape: TreeShape, noise: list[float]) -> np.ndarray:
    """The covariance of the leaves by dense generalised least squares, the total known."""
    size = shape.size
    precision = np.zeros((size, size))
    for height, level in enumerate(noise):
        rows = np.arange(size) // shape.fanout**height == np.arange(shape.nodes(height))[:, None]
        precision += rows.T.astype(float) @ rows / level
    free = np.linalg.svd(np.ones((1, size)))[2][1:].T
    return free @ np.linalg.inv(free.T @ precision @ free) @ free.T


def answers(size: int, workload: Workload) -> np.ndarray:
    """The rows of a workload."""
    if workload.name == "prefixes":
        ends = [(0, x) for x in range(1, size + 1)]
    elif workload.name == "ranges":
        ends = [(a, b) for a in range(size) for b in range(a + 1, size + 1)]
    else:
        length = max(1, workload.length)
        ends = [(a, a + length) for a in range(size - length + 1)]
    return np.array([[a <= x < b for x in range(size)] for a, b in ends], float)


@pytest.mark.parametrize("workload", [RANGES, PREFIXES, POINTS, Workload("length", 5)])
@pytest.mark.parametrize(("size", "fanout"), [(16, 2), (27, 3), (16, 4), (13, 2), (23, 3), (17, 4), (11, 10), (9, 9)])
def test_averages_are_those_of_dense_least_squares(size: int, fanout: int, workload: Workload) -> None:
    """Closed forms of complete trees and the recursion of ragged ones, with unequal noise."""
    shape = TreeShape(size, fanout)
    noise = [1.0 + 0.7 * height + 0.3 * (height % 2) for height in range(shape.top)]
    rows, covariance = answers(size, workload), least_squares(shape, noise)
    each = np.einsum("ij,jk,ik->i", rows, covariance, rows)
    assert mean_variance(shape, workload, first_pass(shape, noise)) == pytest.approx(each.mean())
    ends = [(int(row.argmax()), int(row.argmax() + row.sum())) for row in rows]
    low, high = np.array(ends).T
    assert span_variances(shape, first_pass(shape, noise), low, high) == pytest.approx(each, abs=1e-12)


@pytest.mark.parametrize(("size", "fanout"), [(64, 4), (50, 3), (300, 10)])
def test_first_pass_is_that_of_the_fit(size: int, fanout: int) -> None:
    option = choose_ranges(size=size, epsilon="1", n=1000, methods=["hh"], fanouts=[fanout], oracles=["oue"]).pick
    scales = [1 / (weight / sum(option.weights)) for weight in option.weights]
    shape = option.shape
    levels = [
        Level(height, np.zeros(shape.nodes(height)), made.moments, scales[height])  # pyright: ignore
        for height, made in enumerate(option.members)
    ]
    noise = [contrast_noise(made, shape.nodes(h)) * scales[h] for h, made in enumerate(option.members)]
    found = first_pass(shape, noise)
    steps = fit_levels(size, fanout, levels).steps
    assert np.array([step.variance for step in steps]) == pytest.approx(np.stack([found.full, found.edge], axis=1))


METHODS = [
    ("flat", 0, "oue"),
    ("hh", 2, "oue"),
    ("hh", 3, "hrr_subspace"),
    ("hh", 4, "grr"),
    ("hh", 16, "hrr"),
    ("haar", 0, "hrr"),
]


@pytest.mark.parametrize("workload", ["ranges", "prefixes", "points", "length:7", "length:200"])
@pytest.mark.parametrize(("method", "fanout", "oracle"), METHODS)
@pytest.mark.parametrize("size", [256, 513, 700])
def test_errors_agree_with_the_variances_that_answers_will_state(
    size: int, method: str, fanout: int, oracle: str, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly on complete trees, within 1 % on ragged ones; both on uniform data."""
    monkeypatch.setattr(range_plan_options, "EXACT_RAGGED", 0)
    n, fanouts = 1 << 24, [fanout] if fanout else None
    option = choose_ranges(
        size=size, epsilon="1", n=n, workload=workload, methods=[method], fanouts=fanouts, oracles=[oracle]
    ).pick
    shares = [weight / sum(option.weights) for weight in option.weights]
    asked = zip(range(option.shape.top), option.members, shares, strict=True)
    known = expected_uncertainty(option.shape, asked, n, np.full(size, 1 / size))
    exact = n * averaged(known, Workload.parse(workload, size))
    assert option.error == pytest.approx(exact, rel=1e-6 if option.shape.complete else 0.01)


@pytest.mark.parametrize("workload", [RANGES, PREFIXES, POINTS, Workload("length", 3)])
@pytest.mark.parametrize("method", ["hh:2:oue", "hh:4:hrr", "haar:hrr"])
def test_level_weights_are_optimal(method: str, workload: Workload) -> None:
    """No level gains from being asked 5 % more or less often, and the least asked is still asked."""
    choice = choose_ranges(size=256, epsilon="1", n=1000, workload=str(workload), oracles=["oue", "hrr"])
    option = next(option for option in choice.options if option.name == method)
    weights = list(option.weights)
    assert min(weights) >= 1
    assert sum(weights) <= 10_000
    assert option.error <= option.uniform_error
    for level, weight in enumerate(weights):
        for factor in (0.95, 1.05):
            other = [*weights[:level], weight * factor, *weights[level + 1 :]]
            # Integers out of ten thousand are a little off the optimum.
            assert expected_error(option.shape, workload, option.members, other, 1000) >= option.error * (1 - 1e-4)


def test_the_gain_of_level_weights_is_small_for_all_ranges_of_the_haar_transform() -> None:
    """4.3 % of the squared error with 8 levels."""
    option = choose_ranges(size=256, epsilon="1", n=1000, methods=["haar"]).pick
    shape, noise = TreeShape(256, 2), [1.0] * 8
    weights = level_weights(shape, RANGES, noise, signed=True)
    scales = [sum(weights) / weight for weight in weights]
    weighted = mean_variance(shape, RANGES, signed_variances(shape, scales, [0.0] * 8))
    assert 1 - weighted / haar(256) == pytest.approx(0.043, abs=0.001)
    assert option.gain == pytest.approx(0.022, abs=0.001)


def test_fanouts_are_those_that_a_domain_can_have() -> None:
    assert fanouts_for(2) == ()
    assert fanouts_for(5) == (2, 3, 4)
    assert set(fanouts_for(1000)) >= {2, 4, 10, 32}
    assert max(fanouts_for(1 << 22)) <= 64


def test_options_are_ranked_and_the_pick_explains_itself() -> None:
    choice = choose_ranges(size=256, epsilon="1.1", n=1 << 26, target_error=0.001)
    errors = [option.error for option in choice.options]
    assert errors == sorted(errors)
    assert choice.pick.error <= 1.03**2 * errors[0]
    assert choice.reason.startswith(choice.pick.name)
    names = [option.name for option in choice.options]
    assert len(names) == len(set(names))
    assert {"flat:oue", "hh:2:oue", "hh:4:oue", "hh:16:mixed", "haar:hrr"} <= set(names)
    needed = choice.pick.n_needed
    assert needed is not None
    assert sqrt(choice.pick.error / needed) == pytest.approx(0.001, rel=1e-4)


def test_mixed_trees_are_no_worse_than_the_slack_of_their_choice() -> None:
    choice = choose_ranges(size=1000, epsilon="2", n=1000, methods=["hh"], fanouts=[4, 10])
    for fanout in (4, 10):
        trees = {option.oracle: option for option in choice.options if option.shape.fanout == fanout}
        assert trees["mixed"].error <= 1.005 * min(trees[kind].error for kind in ("grr", "oue", "hrr", "hrr_subspace"))


def test_kinds_that_cannot_be_built_are_left_out() -> None:
    names = {option.name for option in choose_ranges(size=1 << 17, epsilon="1", n=1000).options}
    assert "hh:2:oue" not in names
    assert {"hh:2:hrr", "haar:hrr", "flat:hrr"} <= names


def test_short_reports() -> None:
    choice = choose_ranges(size=4096, epsilon="1", n=10**6, max_report_bits=17)
    assert all(option.report_bits <= 17 for option in choice.options)
    assert choice.pick.mechanism.report_bits == choice.pick.report_bits
    with pytest.raises(InvalidSpec, match="at most 1 bits"):
        choose_ranges(size=4096, epsilon="1", n=10**6, max_report_bits=1)


@pytest.mark.parametrize(("given", "match"), [
    ({"size": 1}, "size is 1"),
    ({"size": (1 << 24) + 1}, "bucket larger domains"),
    ({"n": 0}, "n is 0"),
    ({"workload": "medians"}, "must be one of ranges"),
    ({"workload": "length:x"}, "must be one of ranges"),
    ({"workload": "length:64"}, "from 1 to 63"),
    ({"target_error": 0.0}, "above 0"),
    ({"methods": ["tree"]}, "must be one of flat"),
    ({"oracles": ["rappor"]}, "must be one of grr"),
    ({"methods": ["hh"], "fanouts": [1]}, "from 2 to 64"),
    ({"methods": ["haar"], "oracles": ["oue"]}, "no method fits"),
])  # fmt: skip
def test_bad_questions(given: dict[str, object], match: str) -> None:
    with pytest.raises(InvalidSpec, match=match):
        choose_ranges(**({"size": 64, "epsilon": "1", "n": 1000} | given))  # pyright: ignore[reportArgumentType]


SLOW_TO_DRAW = ("hh", 3, "hrr_subspace")
BUILT = [pytest.param(*way, marks=pytest.mark.slow) if way == SLOW_TO_DRAW else way for way in METHODS]


@pytest.mark.parametrize(("method", "fanout", "oracle"), [*BUILT, ("hh", 5, "mixed")])
@pytest.mark.slow_cases("hh-16-hrr", "hh-5-mixed", "hh-2-oue", "haar-0-hrr")
def test_what_is_built_answers_with_the_predicted_error(method: str, fanout: int, oracle: str) -> None:
    """200 collections: the mean of (squared error over all ranges)/(prediction) is 1 within 5 standard errors.

    False alarms: the mean of 200 is close to normal, about 1e-6. A prediction wrong by 40 % is rejected. The tree is
    ragged; complete ones are in tests/papers.
    """
    size = 75
    fanouts = [fanout] if fanout else None
    choice = choose_ranges(size=size, epsilon="1", n=1 << 11, methods=[method], fanouts=fanouts, oracles=[oracle])
    mechanism, rng = build(choice.pick), np.random.default_rng(7)
    counts = np.random.default_rng(8).multinomial(1 << 11, np.linspace(1, 3, size) / np.linspace(1, 3, size).sum())
    truth = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    runs = [solve_ranges(mechanism, mechanism.simulate_tally(counts, rng)).cumulative - truth for _ in range(200)]
    ratios = np.array([all_ranges_mse(error) for error in runs]) / predicted_mse(mechanism, counts)
    margin = 5 * ratios.std() / sqrt(len(ratios))
    assert abs(ratios.mean() - 1) < margin < 0.4


def test_epsilon_of_three_to_one() -> None:
    """V is 3 and V1 is 4 at E = 3."""
    assert variance_constant(log(3)) == pytest.approx(3)
