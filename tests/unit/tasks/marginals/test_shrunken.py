"""Tables as they are answered: between independence and what was measured, agreeing, with intervals that hold."""

from functools import reduce
from itertools import combinations
from math import prod, sqrt

import numpy as np
import pytest

from tacit.errors import InvalidSpec
from tacit.post.views.table import centred
from tacit.simulate.marginals import movie_like, simulate_tally, true_table
from tacit.tasks.marginals.forecast import TableForecast, law_of, typical_shares
from tacit.tasks.marginals.methods import ask, make_method, split_views
from tacit.tasks.marginals.plan import choose_marginals
from tacit.tasks.marginals.solve import solve_marginals

SIZES = (2, 3, 5, 2, 4)
PAIRS = list(combinations(range(5), 2))


def _independent(n: int, seed: int) -> "np.ndarray":
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(size, n, p=typical_shares(size)) for size in SIZES], axis=1)


def _solved(method, records, sizes, epsilon, seed, **solve):
    mechanism = make_method(method, ask(sizes, 2, epsilon, len(records))) if isinstance(method, str) else method
    tally = simulate_tally(mechanism, records, sizes, np.random.default_rng(seed))
    return solve_marginals(mechanism, tally, sizes=sizes, **solve)


def _sse(tables, records, sizes) -> float:
    return float(np.mean([np.sum((t.consistent - true_table(records, sizes, t.attributes)) ** 2) for t in tables]))


@pytest.mark.parametrize("method", ["am", "inp_ht", "views"])
def test_without_association_tables_are_as_good_as_products(method):
    """At most 15 % worse in the mean, and better than tables with whole interactions."""
    records = _independent(20_000, 1)
    shrunken, product, whole = (np.zeros(4) for _ in range(3))
    for seed in range(4):
        solved = _solved(method, records, SIZES, "1", seed)
        tables = solved.tables(PAIRS)
        shrunken[seed] = _sse(tables, records, SIZES)
        shares = [solved.shrunken.share(a) for a in range(5)]
        truth = [true_table(records, SIZES, pair) for pair in PAIRS]
        errors = [np.outer(shares[a], shares[b]) - t for (a, b), t in zip(PAIRS, truth, strict=True)]
        product[seed] = np.mean([(e**2).sum() for e in errors])
        whole[seed] = _sse(_solved(method, records, SIZES, "1", seed, shrink=False).tables(PAIRS), records, SIZES)
    assert shrunken.mean() < 1.15 * product.mean()
    assert whole.mean() > 1.1 * shrunken.mean()


def test_strong_associations_stay_and_all_tables_agree():
    records = movie_like(60_000, 5, np.random.default_rng(2))
    solved = _solved("am", records, (2,) * 5, "2", 1)
    tables = solved.tables([*PAIRS, *combinations(range(5), 3)])
    assert _sse(tables[:10], records, (2,) * 5) < 1.1 * _sse(
        _solved("am", records, (2,) * 5, "2", 1, shrink=False).tables(PAIRS), records, (2,) * 5
    )
    assert min(solved.shrunken.factor(pair) for pair in PAIRS) > 0.8
    for table in tables:
        assert table.consistent.min() >= 0 and table.consistent.sum() == pytest.approx(1)
        for axis, attribute in enumerate(table.attributes):
            others = tuple(i for i in range(table.consistent.ndim) if i != axis)
            assert table.consistent.sum(axis=others) == pytest.approx(solved.shrunken.share(attribute), abs=1e-5)


def test_pairs_that_were_not_asked_are_products_and_say_so():
    records = movie_like(20_000, 4, np.random.default_rng(3))
    question = ask((2,) * 4, 2, "1", len(records))
    table = _solved(split_views(question, 1.0), records, (2,) * 4, "1", 1).table((0, 1))
    assert table.status == "independent" and table.missing == ((0, 1),)
    assert table.consistent == pytest.approx(np.outer(table.consistent.sum(axis=1), table.consistent.sum(axis=0)))
    low, high = table.interval(0.95)
    # Fréchet: any table with these shares is allowed, the true one among them.
    truth = true_table(records, (2,) * 4, (0, 1)).ravel()
    assert np.all(low <= truth) and np.all(truth <= high) and np.all(high - low > 0.05)


def test_intervals_hold_the_answer_and_the_raw_interval_that_is_possible():
    records = _independent(3_000, 4)
    for table in _solved("am", records, SIZES, "1", 2).tables([*PAIRS, (0,), (0, 1, 2)]):
        low, high = table.interval(0.95)
        value = table.consistent.ravel()
        assert np.all(low <= value + 1e-12) and np.all(value <= high + 1e-12) and np.all((0 <= low) & (high <= 1))
        if table.status == "covered":
            down, up = (np.clip(end, 0, 1) for end in table.raw.interval(0.95))
            assert np.all(low <= down + 1e-12) and np.all(up <= high + 1e-12)


def test_odd_data_give_no_nan():
    """An attribute with one answer, an answer that nobody gives, and groups without reports."""
    records = np.zeros((40, 3), np.int64)
    records[::3, 2] = 1
    for method in ("one_way", "inp_ht", "calm"):
        try:
            solved = _solved(method, records, (2, 1, 3), "0.5", 1)
        except InvalidSpec:  # Too few respondents for this way of asking.
            continue
        for table in solved.tables([(0,), (1,), (0, 2), (0, 1, 2)]):
            assert np.isfinite(table.consistent).all() and np.isfinite(table.interval(0.95)).all()


@pytest.mark.slow
def test_forecasts_are_near_what_tables_have_and_between_weak_and_strong():
    """Independent attributes with the shares that a forecast supposes: 12 collections, within 30 %."""
    records, n = _independent(20_000, 5), 20_000
    for alone in (1.0, 0.5):
        mechanism = split_views(ask(SIZES, 2, "1", n), alone)
        forecast = TableForecast.of(mechanism, SIZES, n)
        expected = np.mean([forecast.squared_error(pair, (0.0,)) for pair in PAIRS])
        found = np.mean(
            [_sse(_solved(mechanism, records, SIZES, "1", s).tables(PAIRS), records, SIZES) for s in range(12)]
        )
        assert 0.6 < expected / found < 1.7
    choice = choose_marginals(sizes=SIZES, k=2, epsilon="1", n=n)
    for option in choice.options:
        assert option.between[0] <= option.sse <= option.between[1]


def test_a_stated_association_decides_what_is_asked():
    few = {a: choose_marginals(sizes=[5] * 8, k=2, epsilon="1", n=8_000, association=a) for a in ("weak", "strong")}
    assert few["weak"].pick.covered < few["strong"].pick.covered == 1
    pilot = choose_marginals(sizes=[5] * 8, k=2, epsilon="1", n=8_000, association=[0.3, 0.4])
    assert pilot.pick.covered == 1
    with pytest.raises(InvalidSpec, match="weak, mixed, strong"):
        law_of("none")
    with pytest.raises(InvalidSpec, match="from 0 to 1"):
        law_of([2.0])


def test_typical_shares_are_shares():
    for size in (2, 3, 4, 16):
        shares = typical_shares(size)
        assert shares.sum() == pytest.approx(1) and shares.min() > 0
        assert float(shares @ shares) == pytest.approx(0.65 if size == 2 else max(0.33, 1 / size), abs=0.01)
    product = reduce(np.multiply.outer, [typical_shares(2)] * 3)
    assert product.sum() == pytest.approx(1)


def test_the_noise_of_a_large_table_is_that_of_its_interaction(monkeypatch):
    """Where most respondents are asked alone, cells have less noise in their margins; a part tells all."""
    sizes = (9, 8)
    records = np.random.default_rng(3).integers(0, 8, (4000, 2))
    solved = _solved(split_views(ask(sizes, 2, "1", 4000), 0.8), records, sizes, "1", 1)
    some = solved.shrunken._noise_of((0, 1), sizes)
    monkeypatch.setattr("tacit.tasks.marginals.shrunken.EXACT_CELLS", 100)
    exact = solved.shrunken._noise_of((0, 1), sizes)
    assert some == pytest.approx(exact, rel=0.05)


LARGE = (9, 8, 2, 3)
LARGE_PAIRS = list(combinations(range(4), 2))


def _together(n: int, share: float) -> "np.ndarray":
    """Attributes with typical shares; that part of the variance behind each of them is common to all."""
    rng = np.random.default_rng(1)
    common, columns = rng.standard_normal(n), []
    for size in LARGE:
        rank = np.argsort(np.argsort(sqrt(share) * common + sqrt(1 - share) * rng.standard_normal(n))) / n
        columns.append(np.searchsorted(np.cumsum(typical_shares(size))[:-1], rank, side="right"))
    return np.stack(columns, axis=1)


def _strength(table: "np.ndarray") -> float:
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    energy = ((table - np.outer(rows, columns)) ** 2).sum()
    return float(energy / ((1 - rows @ rows) * (1 - columns @ columns)))


@pytest.mark.parametrize("alone", [0.8, 0.0])
def test_the_noise_of_interactions_is_forecast_as_it_is_found(alone: float):
    """100 collections; five standard deviations of a chi-square law are passed once in 10^5 by luck.

    Power: where most respondents are asked about single attributes, margins are known better than the rest of a table,
    and the noise of whole cells, spread evenly over all directions, is refused as too low.
    """
    n, times = 6000, 100
    records, mechanism = _together(n, 0.0), split_views(ask(LARGE, 2, "1", n), alone)
    forecast = TableForecast.of(mechanism, LARGE, n)
    raw = [_solved(mechanism, records, LARGE, "1", seed).source for seed in range(times)]
    for pair in ((0, 1), (2, 3)):
        shape = tuple(LARGE[a] for a in pair)
        truth, degrees = true_table(records, LARGE, pair), prod(size - 1 for size in shape)
        found = np.mean([(centred(source.raw(pair) - truth, 2) ** 2).sum() for source in raw])
        allowed = 5 * sqrt(2 / (degrees * times))
        assert abs(found / forecast.noise(pair) - 1) < allowed
        whole = float(forecast.source.linear(pair, np.eye(prod(shape))).sum()) * degrees / (prod(shape) - 1)
        if alone > 0:
            assert found / whole - 1 > allowed


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("epsilon", ["1", "2"])
def test_plans_are_ranked_by_the_error_that_is_found(share: float, epsilon: str):
    """Given the strengths, forecasts are within 40 % (eight collections each), so that the pick loses at most that."""
    n = 20_000
    records = _together(n, share)
    truth = [true_table(records, LARGE, pair) for pair in LARGE_PAIRS]
    plans = [split_views(ask(LARGE, 2, epsilon, n), alone) for alone in (1.0, 0.8, 0.5, 0.0)]
    plans.append(make_method("views", ask(LARGE, 2, epsilon, n)))
    expected, found = [], []
    for mechanism in plans:
        forecast = TableForecast.of(mechanism, LARGE, n)
        pairs = zip(LARGE_PAIRS, truth, strict=True)
        expected.append(np.mean([forecast.squared_error(pair, (_strength(table),)) for pair, table in pairs]))
        solved = (_solved(mechanism, records, LARGE, epsilon, seed) for seed in range(8))
        found.append(np.mean([_sse(one.tables(LARGE_PAIRS), records, LARGE) for one in solved]))
    assert all(0.7 < e / f < 1.4 for e, f in zip(expected, found, strict=True))
    assert found[int(np.argmin(expected))] < 1.25 * min(found)
