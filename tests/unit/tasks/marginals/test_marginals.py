"""Tables over several attributes: algebra, agreement, exact variances, reconstruction, bad input."""

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.baselines.marginals_binary import BinaryEncoded, as_bits
from tacit.baselines.priview import PriView
from tacit.cli import cli
from tacit.core.statistics.chi_square import chi_square_tail
from tacit.core.statistics.normal import normal_isf
from tacit.decode.em import maximum_likelihood
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, NoData
from tacit.post.frequencies.simplex import project_to_simplex
from tacit.post.views.components import make_consistent
from tacit.post.views.nonneg import norm_sub_rows, ripple
from tacit.post.views.reconstruct import fit_entropy, fit_least_squares, fit_linear_program
from tacit.post.views.table import margin
from tacit.simulate.marginals import (
    latent_classes,
    predicted_sse,
    simulate_marginals,
    simulate_tally,
    taxi_like,
    true_table,
)
from tacit.tasks.marginals.association import (
    conditional,
    correlation,
    mutual_information,
    naive_chi_square,
    odds_ratio,
    wald_test,
)
from tacit.tasks.marginals.calm import cover_plan, select_views
from tacit.tasks.marginals.covering import balanced_views, cover_design, covers, lower_bound
from tacit.tasks.marginals.dependence import (
    chow_liu,
    logistic,
    majority,
    misclassified,
    naive_bayes,
    sample_table,
    sample_tree,
    sample_views,
    spanning_tree,
    true_information,
)
from tacit.tasks.marginals.each import expected_seconds, fit_each, most_likely
from tacit.tasks.marginals.methods import ask, make_method, one_of_views, optimal_weights
from tacit.tasks.marginals.plan import choose_marginals
from tacit.tasks.marginals.solve import solve_marginals
from tacit.testing.statistics import assert_unbiased, assert_variance

JOINT = np.array([0.20, 0.10, 0.05, 0.15, 0.10, 0.05, 0.15, 0.20]).reshape(1, 2, 2, 2)
PAIRS = [((0, 1), JOINT.sum(axis=3)), ((0, 2), JOINT.sum(axis=2)), ((1, 2), JOINT.sum(axis=1))]


def test_maximum_entropy_of_three_pairs():
    found = fit_entropy((2, 2, 2), PAIRS)
    wanted = [0.190276, 0.109724, 0.059724, 0.140276, 0.109724, 0.040276, 0.140276, 0.209724]
    assert np.allclose(found.tables.ravel(), wanted, atol=1e-6)
    t = found.tables[0]
    assert np.isclose(
        t[0, 0, 0] * t[1, 1, 0] * t[1, 0, 1] * t[0, 1, 1], t[0, 0, 1] * t[1, 1, 1] * t[0, 1, 0] * t[1, 0, 0]
    )


def test_maximum_entropy_of_two_pairs_is_conditional_independence():
    wanted = [0.2, 0.1, 0.072727, 0.127273, 0.1, 0.05, 0.127273, 0.222727]
    assert np.allclose(fit_entropy((2, 2, 2), [PAIRS[0], PAIRS[2]]).tables.ravel(), wanted, atol=1e-6)


def test_targets_that_contradict_each_other_settle_and_say_so():
    other = np.array([[[0.1, 0.2], [0.3, 0.4]]])
    found = fit_entropy((2, 2, 2), [PAIRS[0], ((1, 2), other)])
    assert not found.converged[0]
    assert np.isfinite(found.tables).all()
    assert np.isclose(found.tables.sum(), 1)


def test_least_squares_and_linear_program_meet_their_targets():
    for fit in (fit_least_squares, fit_linear_program):
        assert fit((2, 2, 2), PAIRS).violation[0] < 1e-9


def test_an_axis_without_a_target_stays_uniform():
    table = fit_entropy((2, 3), [((0,), np.array([[0.2, 0.8]]))]).tables[0]
    assert np.allclose(table, [[0.2 / 3] * 3, [0.8 / 3] * 3])


def test_ripple_examples_and_refusals():
    assert np.allclose(ripple(np.array([[-0.2, 0.5], [0.3, 0.4]])).table, [[0, 0.4], [0.2, 0.4]])
    found = ripple(np.array([[-0.2, 0.05], [0.3, 0.85]]), tau=0.01)
    assert np.allclose(found.table, [[-0.00625, 0], [0.1875, 0.81875]])
    assert found.topples == 4
    with pytest.raises(InvalidSpec):
        ripple(np.array([[-1.0, 0.1]]))
    with pytest.raises(InvalidSpec):
        ripple(np.ones((2, 2)), tau=0.0)


def test_rows_are_projected_as_single_tables_are():
    rows = np.random.default_rng(1).normal(0.1, 0.3, (20, 8))
    assert np.allclose(norm_sub_rows(rows), [project_to_simplex(row) for row in rows])


def test_agreement_is_weighted_least_squares():
    """Against a generic solver: minimise the weighted squares over tables that are margins of one joint table."""
    rng, sizes = np.random.default_rng(3), (2, 3, 2, 2)
    views = [(0, 1), (1, 2, 3), (0, 3), (0, 1, 2)]
    shapes = [tuple(sizes[a] for a in view) for view in views]
    tables = [rng.normal(1 / np.prod(shape), 0.1, shape) for shape in shapes]
    variance = rng.uniform(0.5, 2, len(views))
    weight = np.array([1 / (v * np.prod(shape)) for v, shape in zip(variance, shapes, strict=True)])
    made = make_consistent(sizes, views, tables, weight)
    for (a, x), (b, y) in combinations(list(zip(views, made, strict=True)), 2):
        shared = [i for i in a if i in b]
        assert np.allclose(margin(x, a, shared), margin(y, b, shared), atol=1e-12)
    eye = np.eye(int(np.prod(sizes))).reshape(-1, *sizes)
    design = np.concatenate([margin(eye, range(4), view).reshape(len(eye), -1).T / np.sqrt(v)
                             for view, v in zip(views, variance, strict=True)])  # fmt: skip
    wanted = np.concatenate([t.ravel() / np.sqrt(v) for t, v in zip(tables, variance, strict=True)])
    # The total is one: a basis of tables that sum to zero, around the uniform one.
    start, basis = np.full(len(eye), 1 / len(eye)), np.linalg.qr(np.eye(len(eye)) - 1 / len(eye))[0][:, :-1]
    found = start + basis @ np.linalg.lstsq(design @ basis, wanted - design @ start, rcond=None)[0]
    for view, table in zip(views, made, strict=True):
        assert np.allclose(table, margin(found.reshape(sizes), range(4), view), atol=1e-8)


RECORDS = latent_classes(4000, 4, np.random.default_rng(7))
MIXED = np.stack([RECORDS[:, 0] + RECORDS[:, 1], RECORDS[:, 2], RECORDS[:, 3] * 2 + RECORDS[:, 0]], axis=1)


@pytest.mark.parametrize(("runs", "power"), [(100, 1.8), pytest.param(250, 1.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["inp_ht", "calm", "marg_ps", "marg_ht", "marg_rr", "fc", "inp_ps", "em"])
@pytest.mark.slow_cases("inp_ht-100-1.8", "marg_ps-100-1.8", "marg_ht-100-1.8", "calm-100-1.8", "em-100-1.8")
def test_variances_are_exact(method: str, runs: int, power: float):
    """Every cell of three tables unbiased with the stated variance; false alarms 1e-7 each.

    Cells of a table are dependent, so that one cell of each table is taken; a variance off by `power` is rejected.
    """
    sizes, rng, n = (3, 2, 4), np.random.default_rng(11), len(MIXED)
    mechanism = make_method(method, ask(sizes, 2, "1.5", n))
    tables = [(0, 1), (1, 2), (0, 2)]
    errors, predicted = [], []
    for run in range(runs):
        answers = solve_marginals(mechanism, simulate_tally(mechanism, MIXED, sizes, rng), sizes=sizes)
        found = [answers.source.raw(table) for table in tables]
        truth = [true_table(MIXED, sizes, table) for table in tables]
        errors.append([float((f - t).flat[1]) for f, t in zip(found, truth, strict=True)])
        if run < 12:
            predicted.append([answers.table(table).raw.variance[1] for table in tables])
    variance = np.mean(predicted, axis=0)
    assert_unbiased(np.array(errors), variance)
    assert_variance((np.array(errors) / np.sqrt(variance)).ravel(), np.ones(3 * runs), must_reject=power)


def test_covariances_agree_with_variances_of_sums():
    mechanism = make_method("calm", ask((3, 2, 4), 2, "1", 4000))
    answers = solve_marginals(mechanism, simulate_tally(mechanism, MIXED, (3, 2, 4), np.random.default_rng(1)))
    table = answers.table((0, 2))
    covariance, row = table.covariance(), np.arange(12) % 5 - 1.0
    assert np.isclose(row @ covariance @ row, table.raw.variance_of(row[None])[0])
    assert np.isclose(covariance.sum(), 0, atol=1e-12)  # The total is known.


@pytest.mark.parametrize("method", ["inp_ht", "ft", "marg_ps", "marg_ht", "marg_rr", "am", "fc", "inp_ps", "inp_rr"])
@pytest.mark.slow_cases("inp_ps", "fc", "ft", "marg_ps", "marg_rr", "marg_ht", "am", "inp_rr")
def test_predicted_errors_are_those_of_the_answers(method: str):
    """Raw squared errors against the prediction, 6 runs of 56 tables: within 25 %, which is over five deviations."""
    records = latent_classes(1 << 14, 8, np.random.default_rng(2))
    mechanism = make_method(method, ask([2] * 8, 3, "1.5", len(records)))
    found = simulate_marginals(mechanism, records, [2] * 8, k=3, runs=6, seed=5)
    assert found.raw_sse == pytest.approx(found.predicted_sse, rel=0.25)


def test_attributes_with_one_answer_are_known():
    sizes, rng = (2, 1, 2), np.random.default_rng(1)
    records = np.stack([RECORDS[:, 0], 0 * RECORDS[:, 0], RECORDS[:, 1]], axis=1)
    mechanism = make_method("calm", ask(sizes, 2, "2", 4000))
    answers = solve_marginals(mechanism, simulate_tally(mechanism, records, sizes, rng), sizes=sizes)
    table = answers.table((1, 2))
    assert table.shape == (1, 2)
    assert len(table.raw) == 2
    known = answers.table((1,))
    assert known.consistent.tolist() == [1.0]
    assert known.raw.variance.tolist() == [0.0]


def test_an_attribute_in_no_view_is_uniform_and_flagged():
    mechanism = one_of_views((2, 2, 3), [(0, 1)], lambda cells: make_method("fc", ask([2, 2], 1, "1", 10)))
    answers = solve_marginals(
        mechanism, simulate_tally(mechanism, MIXED[:, [1, 1, 0]], (2, 2, 3), np.random.default_rng(1))
    )
    table = answers.table((0, 2))
    assert table.status == "unseen"
    assert (2,) in table.missing
    assert np.isinf(table.raw.variance).all()
    assert np.allclose(table.consistent / table.consistent.sum(axis=1, keepdims=True), 1 / 3)


def test_tables_that_no_view_covers_are_reconstructed_and_flagged():
    records = latent_classes(20_000, 4, np.random.default_rng(3))
    pairs = list(combinations(range(4), 2))
    mechanism = one_of_views((2,) * 4, pairs, lambda cells: make_method("fc", ask([2, 2], 1, "3", 10)))
    for how in ("entropy", "least_squares", "linear_program"):
        tally = simulate_tally(mechanism, records, (2,) * 4, np.random.default_rng(1))
        answers = solve_marginals(mechanism, tally, reconstruct=how)  # type: ignore[arg-type]
        table = answers.table((0, 1, 2))
        assert table.status == "reconstructed"
        assert table.missing == ((0, 1, 2),)
        assert np.isfinite(table.raw.variance).all()
        assert table.consistent.min() >= 0
        assert np.isclose(table.consistent.sum(), 1)
        assert np.abs(table.consistent - true_table(records, (2,) * 4, (0, 1, 2))).max() < 0.08


def test_no_reports_are_no_data_and_an_empty_group_has_no_weight():
    mechanism = make_method("calm", ask((2, 2, 2), 2, "1", 1000))
    nothing = solve_marginals(mechanism, mechanism.tally(mechanism.decode(b"")))
    assert nothing.table((0, 1)).status == "no_data"
    assert not nothing.table((0, 1)).raw.has_data
    few = solve_marginals(
        mechanism, mechanism.tally(mechanism.privatize(np.zeros((1, 3), np.int64), ReplayCoins(b"a")))
    )
    assert {few.table(pair).status for pair in combinations(range(3), 2)} >= {"covered"}
    assert any(few.table(pair).status != "covered" for pair in combinations(range(3), 2))
    for pair in combinations(range(3), 2):
        assert np.isfinite(few.table(pair).consistent).all()


def test_bad_questions_name_what_works():
    for bad, match in (
        (lambda: ask([2] * 3, 4, "1", 100), "k is 4"),
        (lambda: ask([1, 1], 1, "1", 100), "one answer only"),
        (lambda: make_method("fc", ask([2] * 40, 2, "1", 100)), "use calm"),
        (lambda: make_method("inp_ht", ask([2] * 32, 8, "1", 10**6)), "use calm"),
        (lambda: make_method("am", ask([2] * 32, 8, "1", 10**6)), "use calm"),
        (lambda: make_method("wishful", ask([2] * 3, 2, "1", 100)), "must be one of"),
    ):
        with pytest.raises(InvalidSpec, match=match):
            bad()
    mechanism = make_method("calm", ask([2] * 40, 2, "1", 100_000))
    answers = solve_marginals(mechanism, mechanism.tally(mechanism.decode(b"")))
    with pytest.raises(InvalidSpec, match="cells"):
        answers.table(range(40))
    with pytest.raises(InvalidSpec, match="different integers"):
        answers.table((0, 0))


def test_covering_designs_cover_and_state_their_bound():
    for m, s, k, size in (
        (8, 4, 3, 14),
        (16, 4, 3, 140),
        (32, 4, 3, 1240),
        (16, 3, 2, 43),
        (16, 4, 2, 20),
        (8, 4, 2, 6),
    ):
        design = cover_design(m, s, k)
        assert len(design) == size
        assert covers(design, m, k)
        assert lower_bound(m, s, k) <= size
    assert covers(cover_design(11, 4, 2), 11, 2)
    views = balanced_views(16, 2, 3, 65)
    assert len(set(views)) == 65
    used = np.bincount(np.array(views).ravel(), minlength=16)
    assert used.min() >= 7
    assert used.max() <= 9


def test_selection_keeps_its_guards():
    assert select_views(n=100, sizes=[2], epsilon=1.0, k=1).size == 1
    assert select_views(n=10**9, sizes=[2] * 3, epsilon=5.0, k=2).size <= 3
    assert select_views(n=2**18, sizes=[2] * 16, epsilon=1.6, k=3).count == 140
    assert select_views(n=2**18, sizes=[2] * 16, epsilon=1.6, k=3, strict_paper=True).count == 262
    assert cover_plan(n=10**6, sizes=[5] * 12, epsilon=1.0, k=2).covering
    with pytest.raises(InvalidSpec):
        select_views(n=100, sizes=[2] * 3, epsilon=1.0, k=4)


def test_optimal_weights_beat_uniform_ones_as_predicted():
    records = latent_classes(1 << 14, 8, np.random.default_rng(2))
    pairs = list(combinations(range(8), 2))
    two = [
        predicted_sse(make_method(m, ask([2] * 8, 2, "1", 1 << 14)), records, [2] * 8, pairs) for m in ("inp_ht", "ft")
    ]
    assert two[0] / two[1] == pytest.approx(0.80, abs=0.02)
    assert optimal_weights(8, 2)[1] == 1000


def test_plan_ranks_by_error_and_knows_the_paper():
    choice = choose_marginals(sizes=[2] * 8, k=3, epsilon="2", n=1 << 16, target_error=0.01)
    calm = next(option for option in choice.options if option.method == "calm")
    assert (dict(calm.extra)["views"], dict(calm.extra)["view_size"]) == (14, 4)
    assert [o.sse for o in choice.options] == sorted(o.sse for o in choice.options)
    assert calm.to_row()["prediction"] == "noise + sampling + what is taken for independent"
    assert calm.n_needed is not None


def test_em_is_bounded_in_time_and_says_how_long_it_takes():
    mechanism = make_method("em", ask([2] * 4, 2, "1", len(RECORDS)))
    answers = solve_marginals(mechanism, simulate_tally(mechanism, RECORDS, [2] * 4, np.random.default_rng(1)))
    pairs, told = [(0, 1), (0, 2), (0, 3)], list[int]()
    assert expected_seconds([2] * 4, pairs) == pytest.approx(3 * 10_000 * (2e-5 + 1.5e-9 * 16))
    assert all(one.converged for one in fit_each(answers.source, pairs, advance=told.append)) and told == [1, 1, 1]  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="the first 2 of them"):
        fit_each(answers.source, pairs, time_limit=0.45)  # type: ignore[arg-type]
    # No time at all: it stops where it first looks at the clock.
    cut = most_likely(answers.source, (0, 1), omega=0.0, seconds=0.0)  # type: ignore[arg-type]
    assert (cut.steps, cut.converged) == (256, False)


def test_em_that_does_not_move_says_so():
    mechanism = make_method("em", ask([2] * 8, 2, "0.01", 100))
    answers = solve_marginals(
        mechanism, simulate_tally(mechanism, RECORDS[:, [0, 1, 2, 3] * 2], [2] * 8, np.random.default_rng(1))
    )
    assert not most_likely(answers.source, (0, 1)).moved  # type: ignore[arg-type]


def test_binary_encoding_is_a_worse_copy():
    bits = as_bits(MIXED, (3, 2, 4))
    mechanism = make_method("calm", ask([2] * bits.shape[1], 3, "3", len(bits)))
    tally = simulate_tally(mechanism, bits, [2] * bits.shape[1], np.random.default_rng(1))
    table = BinaryEncoded((3, 2, 4), solve_marginals(mechanism, tally)).table((0, 2))
    assert table.shape == (3, 4)
    assert np.isclose(table.sum(), 1)
    assert np.abs(table - true_table(MIXED, (3, 2, 4), (0, 2))).max() < 0.12


def test_priview_is_far_better_and_not_local():
    records = latent_classes(20_000, 8, np.random.default_rng(3))
    views = cover_design(8, 4, 2)
    released = PriView(epsilon="1", sizes=(2,) * 8, views=views).release(records, ReplayCoins(b"seed"))
    for table in ((0, 1), (0, 1, 2), (2, 5, 7)):
        assert np.abs(released.table(table) - true_table(records, (2,) * 8, table)).max() < 0.02
    with pytest.raises(InvalidSpec):
        PriView(epsilon="1", sizes=(2, 2), views=())


def answers_on_taxis(epsilon: str = "2", n: int = 1 << 16, method: str = "inp_ht"):
    records = taxi_like(n, np.random.default_rng(4))
    mechanism = make_method(method, ask([2] * 8, 2, epsilon, n))
    return records, solve_marginals(mechanism, simulate_tally(mechanism, records, [2] * 8, np.random.default_rng(5)))


def test_association_measures_hold_the_truth():
    records, answers = answers_on_taxis()
    table, true = answers.table((3, 4)), true_table(records, [2] * 8, (3, 4))
    odds = odds_ratio(table, level=0.9999)
    assert odds.low < true[0, 0] * true[1, 1] / (true[0, 1] * true[1, 0]) < odds.high
    found = correlation(table, level=0.9999)
    assert found.low < np.corrcoef(records[:, 3], records[:, 4])[0, 1] < found.high
    wide = correlation(table, level=1 - 1e-15)
    assert -1 <= wide.low < wide.high <= 1
    few = correlation(answers_on_taxis(epsilon="0.1", n=4000)[1].table((3, 4)))
    assert np.isnan(few.value) or -1 <= few.low <= few.high <= 1
    given = conditional(table)
    assert np.allclose(given.value.sum(axis=1), 1)
    assert np.all(np.abs(given.value - true / true.sum(axis=1, keepdims=True)) < 5 * given.standard_error)
    assert wald_test(table).rejects(1e-6)
    assert naive_chi_square(table).method.startswith("naive")


@pytest.mark.parametrize("population", [True, False])
def test_a_test_and_the_intervals_beside_it_speak_about_the_same_people(population: bool):
    """Near independence the Wald statistic is the square of every measure over its standard error."""
    _, answers = answers_on_taxis(epsilon="8", n=4000)
    table = answers.table((0, 6))
    statistic = wald_test(table, population=population).statistic
    related = correlation(table, population=population)
    assert statistic == pytest.approx((related.value / related.standard_error) ** 2, rel=0.02)
    odds = odds_ratio(table, population=population)
    half = np.log(odds.high / odds.low) / (2 * normal_isf(0.025))
    assert statistic == pytest.approx((np.log(odds.value) / half) ** 2, rel=0.25)
    assert (related.standard_error > correlation(table, population=False).standard_error) == population


def test_information_is_corrected_for_noise():
    _, answers = answers_on_taxis("1")
    independent = [mutual_information(answers.table(pair)) for pair in ((0, 3), (0, 5), (1, 3), (2, 5), (1, 6))]
    assert sum(i.corrected for i in independent) < 0.5 * sum(i.plugged_in for i in independent)
    dependent = mutual_information(answers.table((3, 4)))
    assert dependent.corrected > 0.15


def test_tests_refuse_what_they_cannot_answer():
    mechanism = one_of_views((2, 2, 2), [(0, 1)], lambda cells: make_method("fc", ask([2, 2], 1, "1", 10)))
    answers = solve_marginals(mechanism, simulate_tally(mechanism, RECORDS[:, :3], (2, 2, 2), np.random.default_rng(1)))
    with pytest.raises(NoData):
        wald_test(answers.table((0, 2)))
    with pytest.raises(InvalidSpec):
        wald_test(answers.table((0,)))


def test_chi_square_tails():
    for statistic, degrees in ((3.841459, 1), (5.991465, 2), (7.814728, 3), (18.307038, 10)):
        assert chi_square_tail(statistic, degrees) == pytest.approx(0.05, abs=1e-6)


def test_chow_liu_finds_the_pairs_and_synthetic_data_keeps_them():
    records, answers = answers_on_taxis()
    tree = chow_liu(answers)
    assert {(0, 7), (1, 2), (3, 4), (5, 6)} <= {(min(e), max(e)) for e in tree.edges}
    best = spanning_tree(8, {p: true_information(records, [2] * 8, [p]) for p in combinations(range(8), 2)})
    assert true_information(records, [2] * 8, tree.edges) > 0.98 * true_information(records, [2] * 8, best)
    rng = np.random.default_rng(6)
    for made in (
        sample_tree(answers, tree, 40_000, rng),
        sample_views(answers, [(0, 7), (1, 2), (3, 4), (5, 6)], 40_000, rng),
    ):
        for pair in ((3, 4), (5, 6), (0, 7)):
            assert np.abs(true_table(made, [2] * 8, pair) - true_table(records, [2] * 8, pair)).max() < 0.04
    assert sample_table(answers, (3, 4), 100, rng).shape == (100, 2)


def test_models_from_tables_beat_the_majority():
    records, answers = answers_on_taxis()
    for model in (naive_bayes(answers, 4, [3, 0]), logistic(answers, 4, [3])):
        features = records[:, [3, 0]] if len(getattr(model, "given", ())) == 2 else records[:, [3]]
        assert misclassified(model.predict(features), records[:, 4]) < 0.5 * majority(records[:, 4], records[:, 4])
    with pytest.raises(InvalidSpec):
        naive_bayes(answers, 4, [4])


def test_maximum_likelihood_of_any_method_from_its_law():
    """EM-GEN: the general decoder on views, over all combinations; near the truth, and non-negative."""
    records = MIXED[:, :2]
    mechanism = make_method("am", ask((3, 2), 2, "3", len(records)))
    tally = simulate_tally(mechanism, records, (3, 2), np.random.default_rng(1))
    fit = maximum_likelihood(mechanism, tally, values=list(product(range(3), range(2))))
    assert fit.converged
    assert np.abs(fit.frequency - true_table(records, (3, 2), (0, 1)).ravel()).max() < 0.05


@pytest.mark.slow
def test_plan_on_the_command_line():
    line = ["plan", "--task", "marginals", "--binary", "8", "--n", "65536", "--epsilon", "2.0", "--k", "3", "--json"]
    shown = json.loads(CliRunner().invoke(cli, line, catch_exceptions=False).output)
    calm = next(option for option in shown["options"] if option["method"] == "calm")
    assert (calm["views"], calm["view_size"]) == (14, 4)
    assert shown["pick"]["spec"]["family"]["kind"] == "views"
    assert CliRunner().invoke(cli, ["plan", "--task", "marginals", "--n", "9", "--epsilon", "1"]).exit_code == 2
    assert "calm" in CliRunner().invoke(cli, line[:-1], catch_exceptions=False).output


@pytest.mark.slow_cases("auto")
@pytest.mark.parametrize("method", ["calm", "auto"])
def test_simulate_on_the_command_line(tmp_path: Path, method: str):
    file = tmp_path / "answers.csv"
    rows = ["a,b,c,d", *(",".join(map(str, row)) for row in RECORDS.tolist())]
    file.write_text("\n".join(rows))
    line = [
        "simulate",
        "marginals",
        "--data",
        str(file),
        "--method",
        method,
        "--k",
        "3",
        "--epsilon",
        "1.0",
        "--seed",
        "1",
    ]
    shown = json.loads(CliRunner().invoke(cli, [*line, "--json"], catch_exceptions=False).output)
    assert shown.keys() >= {"mean_sse", "uniform_sse", "predicted_sse", "seconds"}
    assert shown["mean_sse"] < shown["uniform_sse"]
    again = json.loads(CliRunner().invoke(cli, [*line, "--json"], catch_exceptions=False).output)
    assert again["mean_sse"] == shown["mean_sse"]
    assert "mean_sse" in CliRunner().invoke(cli, line, catch_exceptions=False).output


def test_records_that_are_none_are_refused(tmp_path: Path):
    file = tmp_path / "answers.csv"
    for text in ("", "a,b\n", "a,b\n1\n"):
        file.write_text(text)
        line = ["simulate", "marginals", "--data", str(file), "--epsilon", "1"]
        assert CliRunner().invoke(cli, line).exit_code == 2
