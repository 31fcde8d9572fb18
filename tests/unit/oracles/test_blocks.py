"""Subset selection, cyclic and affine block response: exact laws, exact estimators, exact sums."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.core.estimate import Estimate
from tacit.core.tally import Counts
from tacit.device.kinds import blocks as device
from tacit.device.numbers.coins import ReplayCoins, ScriptedCoins
from tacit.device.numbers.exact import WORD, ceil_div
from tacit.errors import InvalidSpec, Overflow
from tacit.kernels import twin
from tacit.oracles import blocks
from tacit.oracles.blocks import ABR, CBR, SS, BlockOracle, cyclic_convolution, smooth_length

Array = npt.NDArray[Any]

SMALL: list[BlockOracle] = [
    SS(size=2, epsilon="1"),  # Warner's randomised response
    SS(size=4, epsilon="4"),  # k = 1, the law of GRR
    SS(size=7, epsilon="0.5"),
    SS(size=9, epsilon="1", subset=4),  # not the best k
    CBR(size=13, epsilon="1", family="singer", order=3, dimension=3),
    CBR(size=9, epsilon="2", family="singer", order=2, dimension=4),  # 6 points are no values
    CBR(size=11, epsilon="0.5", family="paley", order=11, dimension=1),
    CBR(size=4, epsilon="1"),  # GRR would be better here; a proper design is used all the same
    ABR(size=7, epsilon="1"),
    ABR(size=11, epsilon="1", block=3),
    ABR(size=2, epsilon="3"),  # the smallest modulus, 3
    ABR(size=9, epsilon="0.1", state="log"),
]
LARGE: list[BlockOracle] = [
    SS(size=300, epsilon="1.5"),
    SS(size=4096, epsilon="0.01"),  # the largest domain, blocks of half of it
    SS(size=64, epsilon="32"),
    CBR(size=300, epsilon="2"),
    CBR(size=66000, epsilon="4"),
    ABR(size=1000, epsilon="1"),
    ABR(size=(1 << 32) - 5, epsilon="8"),  # the largest domain
]


def name(mechanism: BlockOracle) -> str:
    return f"{mechanism.kind}-{mechanism.size}-{mechanism.epsilon}"


def law(mechanism: BlockOracle) -> tuple[Array, Array]:
    """All reports, and the probability of each (rows) given each value (columns)."""
    reports = mechanism.all_reports()
    return reports, np.exp(np.stack([mechanism.log_prob(reports, v) for v in range(mechanism.size)], axis=1))


def contributions(mechanism: BlockOracle, reports: Array) -> Array:
    """The unbiased counts that each report alone would give, one row per report."""
    alone = [mechanism.estimate(mechanism.tally(reports[i : i + 1])).value for i in range(len(reports))]
    return np.stack(alone)


@pytest.mark.slow_cases("ss-4096")
@pytest.mark.parametrize("mechanism", SMALL + LARGE, ids=name)
def test_a_batch_is_the_loop(mechanism: BlockOracle):
    n = 40 if mechanism.kind == "ss" and mechanism.size > 1000 else 200
    values = np.random.default_rng(5).integers(mechanism.size, size=n)
    batch = mechanism.privatize(values, ReplayCoins(b"blocks"))
    coins = ReplayCoins(b"blocks")
    loop = b"".join(mechanism.privatize_one(int(v), coins) for v in values)
    assert batch.tobytes() == loop
    assert mechanism.valid(batch).all()
    assert np.array_equal(mechanism.decode(loop), batch)


def test_the_batch_of_subsets_is_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch):
    mechanism = SS(size=50, epsilon="1")
    values = np.arange(50)
    whole = mechanism.privatize(values, ReplayCoins(b"x"))
    monkeypatch.setattr(blocks, "_CHUNK_WORDS", 7 * (1 + mechanism.k))
    assert np.array_equal(mechanism.privatize(values, ReplayCoins(b"x")), whole)


@pytest.mark.parametrize("mechanism", SMALL, ids=name)
def test_probabilities_sum_to_one_and_odds_are_the_realised_ones(mechanism: BlockOracle):
    _, given = law(mechanism)
    assert given.sum(axis=0) == pytest.approx(1, abs=1e-12)
    ratio = (given.max(axis=1) / given.min(axis=1)).max()
    assert ratio == pytest.approx(float(mechanism.realised_odds()), rel=1e-12)
    assert mechanism.realised_epsilon() == pytest.approx(float(mechanism.budget.declared), rel=1e-11)


@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "1", "7.7", "32"])
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (SS, 2),
        (SS, 100),
        (SS, 4096),
        (CBR, 4),
        (CBR, 100),
        (CBR, 5000),
        (ABR, 2),
        (ABR, 70000),
        (ABR, 1 << 31),
    ],
)
def test_odds_never_exceed_the_declared_ones(kind: type[BlockOracle], size: int, epsilon: str):
    if kind is CBR and epsilon == "32":
        pytest.skip("no cyclic design has blocks so small")
    mechanism = kind(size=size, epsilon=epsilon)
    assert mechanism.realised_odds() <= Fraction(mechanism.odds, WORD)
    assert mechanism.holds()
    # At epsilon = 32 one word in 2^64 is still one part in 2^17 of the rarer outcome.
    assert mechanism.realised_odds() > Fraction(mechanism.odds, WORD) * (1 - Fraction(1, 1 << 16))


def floyd_law(size: int, count: int, value: int) -> dict[frozenset[int], Fraction]:
    """The law of Floyd's sampler with the exact cells of uniform(m) = (word * m) >> 64."""
    laws: dict[frozenset[int], Fraction] = {frozenset(): Fraction(1)}
    for top in range(size - 1 - count, size - 1):
        after: dict[frozenset[int], Fraction] = {}
        for (chosen, chance), t in product(laws.items(), range(top + 1)):
            m = top + 1
            cell = Fraction(ceil_div((t + 1) * WORD, m) - ceil_div(t * WORD, m), WORD)
            at = t + (t >= value)
            at = top + (top >= value) if at in chosen else at
            key = chosen | {at}
            after[key] = after.get(key, Fraction(0)) + chance * cell
        laws = after
    return laws


def test_the_exact_law_of_subsets_with_uneven_draws_stays_within_the_realised_odds():
    mechanism = SS(size=6, epsilon="1", subset=3)
    include = Fraction(mechanism.include, WORD)
    given: list[dict[frozenset[int], Fraction]] = []
    for v in range(6):
        inside = {s | {v}: include * p for s, p in floyd_law(6, 2, v).items()}
        outside = {s: (1 - include) * p for s, p in floyd_law(6, 3, v).items()}
        given.append(inside | outside)
        assert len(given[-1]) == comb(6, 3) and sum(given[-1].values()) == 1
    worst = max(max(g[s] for g in given) / min(g[s] for g in given) for s in given[0])
    # The bound is attained up to the cells of one word in 2^64.
    assert worst <= mechanism.realised_odds() <= worst * (1 + Fraction(1, 1 << 55))


@pytest.mark.parametrize(
    "mechanism",
    [CBR(size=7, epsilon="1", family="singer", order=2, dimension=3), ABR(size=7, epsilon="1")],
    ids=name,
)
def test_the_exact_law_of_shifts_with_uneven_draws_stays_within_the_realised_odds(mechanism: BlockOracle):
    def cells(m: int) -> list[Fraction]:
        return [Fraction(ceil_div((t + 1) * WORD, m) - ceil_div(t * WORD, m), WORD) for t in range(m)]

    include, k = Fraction(mechanism.include, WORD), mechanism.k
    places = [include * c for c in cells(k)] + [(1 - include) * c for c in cells(mechanism.m - k)]
    assert sum(places) == 1
    # Given the multiplier, each report is one place of the base block for each value.
    worst = max(places) / min(places)
    assert worst <= mechanism.realised_odds() <= worst * (1 + Fraction(1, 1 << 55))


@pytest.mark.parametrize("mechanism", SMALL, ids=name)
def test_estimates_are_unbiased_by_enumeration(mechanism: BlockOracle):
    reports, given = law(mechanism)
    expected = given.T @ contributions(mechanism, reports)
    assert expected == pytest.approx(np.eye(mechanism.size), abs=1e-9)


@pytest.mark.parametrize("mechanism", SMALL, ids=name)
def test_single_variances_are_exact_by_enumeration(mechanism: BlockOracle):
    reports, given = law(mechanism)
    squares = given.T @ contributions(mechanism, reports) ** 2 - np.eye(mechanism.size)
    own, other = np.diag(squares), squares[~np.eye(mechanism.size, dtype=bool)]
    assert own == pytest.approx(mechanism.moments.own, rel=1e-9)
    assert other == pytest.approx(mechanism.moments.other, rel=1e-9)
    assert squares.mean() == pytest.approx(mechanism.average_error(), rel=1e-9)


@pytest.mark.parametrize("mechanism", [m for m in SMALL if m.kind == "ss"], ids=name)
def test_variances_of_sums_are_exact_for_subset_selection(mechanism: BlockOracle):
    weights = np.random.default_rng(2).normal(size=(3, mechanism.size))
    reports, given = law(mechanism)
    answers = contributions(mechanism, reports) @ weights.T
    for value in range(mechanism.size):
        exact = given[:, value] @ answers**2 - (given[:, value] @ answers) ** 2
        frequency = np.eye(mechanism.size)[value]
        assert mechanism.moments.combined(weights, frequency) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("mechanism", [m for m in SMALL if m.kind != "ss"], ids=name)
def test_variances_of_sums_are_exact_on_average_for_the_other_kinds(mechanism: BlockOracle):
    # Averaged over all values, only pairs of points are left, and in those every 2-design is alike: the
    # covariances of subset selection are exact for a uniform population where every point is a value.
    if mechanism.size < mechanism.m:
        pytest.skip("some points are no values")
    weights = np.random.default_rng(3).normal(size=(4, mechanism.size))
    reports, given = law(mechanism)
    answers = contributions(mechanism, reports) @ weights.T
    exact = np.mean([g @ answers**2 - (g @ answers) ** 2 for g in given.T], axis=0)
    uniform = np.full(mechanism.size, 1 / mechanism.size)
    assert mechanism.moments.combined(weights, uniform) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("mechanism", [m for m in SMALL if m.size == m.m], ids=name)
def test_estimates_over_all_points_sum_to_one(mechanism: BlockOracle):
    reports = mechanism.privatize(np.arange(mechanism.size).repeat(20), ReplayCoins(b"sum"))
    estimate = mechanism.estimate(mechanism.tally(reports))
    assert estimate.value.sum() == pytest.approx(1, abs=1e-12)
    # The sum is known, so it has no variance.
    assert mechanism.moments.combined(np.ones((1, mechanism.size)), estimate.value) == pytest.approx(0, abs=1e-9)


def test_sums_of_cells_cost_what_is_published():
    # m = 40, k = 13, epsilon = 1, 15 of the 40 points, 2000 respondents: 68.2e3, not 106.6e3.
    mechanism = SS(size=40, epsilon="1", subset=13)
    rows = np.zeros((1, 40))
    rows[0, :15] = 1
    zipf = 1 / np.arange(1, 41) / (1 / np.arange(1, 41)).sum()
    assert 2000 * mechanism.moments.combined(rows, zipf)[0] == pytest.approx(68.2e3, rel=0.01)
    assert 2000 * mechanism.moments.variance(zipf[:15]).sum() == pytest.approx(106.6e3, rel=0.01)


def brute_force(mechanism: CBR, cells: Array) -> Array:
    block = mechanism.points[: mechanism.k].astype(np.int64)
    points = np.arange(mechanism.m)
    return cells[(points[:, None] - block) % mechanism.m].sum(axis=1)


@pytest.mark.parametrize(("order", "dimension"), [(3, 3), (3, 4), (5, 3), (2, 5), (4, 3), (2, 8)], ids=lambda x: str(x))
@pytest.mark.parametrize("top", [2, 1000, 1 << 40, 1 << 61], ids=["counts", "more", "weights", "huge"])
def test_decoding_by_fft_is_brute_force(order: int, dimension: int, top: int):
    mechanism = CBR(size=5, epsilon="1", family="singer", order=order, dimension=dimension)
    cells = np.random.default_rng(top).integers(-(top // mechanism.m) - 1, top // mechanism.m + 2, mechanism.m)
    spectrum = blocks.certified_spectrum("singer", order, dimension)
    assert np.array_equal(cyclic_convolution(cells, spectrum, mechanism.k), brute_force(mechanism, cells))


def test_the_paper_decoder_agrees():
    # A dynamic programme over prefixes of points is replaced by its definition: orthogonal canonical vectors.
    # Up to the names of points and blocks, the incidence structures have the same sizes and intersections.
    q, t = 3, 3
    vectors = [u for u in product(range(q), repeat=t) if any(u) and next(x for x in u if x) == 1]
    paper = np.array([[sum(a * b for a, b in zip(u, v, strict=True)) % q == 0 for v in vectors] for u in vectors])
    mechanism = CBR(size=13, epsilon="1", family="singer", order=q, dimension=t)
    spectrum = blocks.certified_spectrum("singer", q, t)
    ours = np.array([cyclic_convolution(row, spectrum, mechanism.k) for row in np.eye(13, dtype=np.int64)])
    assert np.array_equal(paper.astype(int) @ paper.T, ours @ ours.T)


def test_rounding_is_checked_and_not_assumed():
    mechanism = CBR(size=13, epsilon="1", family="singer", order=3, dimension=3)
    spectrum = blocks.certified_spectrum("singer", 3, 3)
    with pytest.raises(Overflow, match="not exact"):
        cyclic_convolution(np.arange(13), spectrum * 1.1, mechanism.k)
    with pytest.raises(Overflow, match="not exact"):
        cyclic_convolution(np.arange(13), spectrum, mechanism.k + 1)


def test_a_corrupted_design_is_refused_when_estimating(monkeypatch: pytest.MonkeyPatch):
    mechanism = CBR(size=30, epsilon="1", family="singer", order=5, dimension=3)
    design = device.cyclic_design("singer", 5, 3)
    moved = bytearray(design.block)
    moved[0] ^= 0b101  # Point 0 leaves the block and point 2 enters it.
    monkeypatch.setattr(blocks, "cyclic_design", lambda *_: replace(design, block=bytes(moved)))
    blocks.certified_spectrum.cache_clear()
    tally = mechanism.tally(mechanism.privatize(np.arange(30), ReplayCoins(b"c")))
    with pytest.raises(InvalidSpec, match="meets the block"):
        mechanism.estimate(tally)


@pytest.mark.parametrize("least", [1, 2, 7, 25, 101, 303_479, 5_792_809])
def test_smooth_lengths_are_the_smallest(least: int):
    length = smooth_length(least)

    def smooth(n: int) -> bool:
        for p in (2, 3, 5):
            while n % p == 0:
                n //= p
        return n == 1

    assert smooth(length) and not any(smooth(n) for n in range(least, length))


def test_affine_counts_and_logs_agree():
    counted, logged = ABR(size=90, epsilon="1"), ABR(size=90, epsilon="1", state="log")
    values = np.random.default_rng(1).integers(90, size=500)
    weights = np.random.default_rng(2).integers(1, 50, size=500)
    reports = counted.privatize(values, ReplayCoins(b"log"))
    for w in (None, weights):
        halves = logged.tally(reports[:200], None if w is None else w[:200]) + logged.tally(
            reports[200:], None if w is None else w[200:]
        )
        whole = counted.estimate(counted.tally(reports, w))
        assert np.array_equal(logged.estimate(halves).value, whole.value)
        some = logged.estimate(halves, [5, 80, 5])
        assert np.array_equal(some.value, whole.value[[5, 80, 5]])
        assert np.array_equal(some.variance, whole.variance[[5, 80, 5]])


def test_affine_counts_are_window_sums_per_multiplier():
    mechanism = ABR(size=23, epsilon="1")
    reports = mechanism.privatize(np.arange(23).repeat(30), ReplayCoins(b"w"))
    table = np.zeros((mechanism.m // 2 + 1, mechanism.m), np.int64)
    np.add.at(table, (reports["w"].astype(int), reports["c"].astype(int)), 1)
    support = np.zeros(23, np.int64)
    for w, row in enumerate(table):
        windows = np.array([row[(x - np.arange(mechanism.k)) % mechanism.m].sum() for x in range(mechanism.m)])
        support += windows[w * np.arange(23) % mechanism.m]
    assert np.array_equal(mechanism.tally(reports).cells, support)


@pytest.mark.parametrize("mechanism", [SS(size=20, epsilon="1"), CBR(size=20, epsilon="1")], ids=name)
def test_weights_count_reports_more_than_once(mechanism: BlockOracle):
    reports = mechanism.privatize(np.arange(20), ReplayCoins(b"t"))
    weights = np.arange(1, 21)
    weighted: Estimate = mechanism.estimate(mechanism.tally(reports, weights))
    repeated: Estimate = mechanism.estimate(mechanism.tally(reports.repeat(weights, axis=0)))
    assert weighted.value == pytest.approx(repeated.value, abs=1e-12)
    assert (weighted.variance > repeated.variance).all()


def test_the_subset_kernel_and_its_twin_agree():
    rng = np.random.default_rng(8)
    words = rng.integers(0, WORD, size=(60, 5), dtype=np.uint64, endpoint=False)
    values, keep = rng.integers(13, size=60).astype(np.uint32), rng.integers(2, size=60).astype(np.uint8)
    fast = blocks.kernels.draw_subsets(values, keep, 13, 5, words)
    assert np.array_equal(fast, twin.draw_subsets(values, keep, 13, 5, words))


def test_reports_read_the_same_number_of_words_whatever_is_drawn():
    for decision in (0, WORD - 1):
        for mechanism, each in ((SS(size=9, epsilon="1", subset=4), 5), (CBR(size=9, epsilon="1"), 2)):
            coins = ScriptedCoins([decision] + [1 << 60] * (each - 1))
            mechanism.privatize_one(3, coins)
            with pytest.raises(IndexError):
                coins.word()


def test_threshold_edges():
    mechanism = CBR(size=13, epsilon="1", family="singer", order=3, dimension=3)  # the block is 0, 1, 3, 9
    edge = mechanism.include
    assert mechanism.privatize_one(5, ScriptedCoins([edge - 1, WORD - 1])) == bytes([(5 - 9) % 13])
    assert mechanism.privatize_one(5, ScriptedCoins([edge, 0])) == bytes([5 - 2])
    assert mechanism.privatize_one(5, ScriptedCoins([edge, WORD - 1])) == bytes([(5 - 12) % 13])


def chi_square(mechanism: BlockOracle, n: int) -> tuple[float, int]:
    """Pearson's statistic of n reports on value 1 against the law, and its degrees of freedom."""
    reports, given = law(mechanism)
    drawn = mechanism.privatize(np.full(n, 1), ReplayCoins(b"law"))
    labels = {reports[i].tobytes(): i for i in range(len(reports))}
    seen = np.bincount([labels[row.tobytes()] for row in drawn], minlength=len(reports))
    expected = n * given[:, 1]
    return float(((seen - expected) ** 2 / expected).sum()), len(reports) - 1


@pytest.mark.parametrize(
    "mechanism",
    [SS(size=7, epsilon="1", subset=3), CBR(size=9, epsilon="1"), ABR(size=7, epsilon="1")],
    ids=name,
)
def test_samples_fit_the_law(mechanism: BlockOracle):
    statistic, freedom = chi_square(mechanism, 20_000)
    # Wilson and Hilferty's normal approximation of chi-square; beyond 5 deviations is a false alarm of 3e-7.
    z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    assert abs(z) < 5


@pytest.mark.parametrize("runs", [600, pytest.param(2000, marks=pytest.mark.slow)])
def test_simulated_tallies_have_the_moments_of_real_ones(runs: int):
    mechanism = CBR(size=30, epsilon="1", family="singer", order=3, dimension=4)
    counts = np.round(2000 / np.arange(1, 31)).astype(int)
    n, rng = int(counts.sum()), np.random.default_rng(4)
    drawn = np.stack([mechanism.estimate(mechanism.simulate_tally(counts, rng)).value for _ in range(runs)])
    variance = mechanism.moments.variance(counts / n) / n
    z = (drawn.mean(axis=0) - counts / n) / np.sqrt(variance / runs)
    assert np.abs(z).max() < 5.5  # 30 normal deviates: a false alarm of 1e-6
    ratio = (((drawn - counts / n) ** 2).mean(axis=0) / variance).mean()
    # The mean of 30 ratios, each with deviation sqrt(2/runs), dependent or not deviates by at most as much.
    assert abs(ratio - 1) < 5.5 * math.sqrt(2 / runs)
    tally = mechanism.simulate_tally(counts, rng)
    assert isinstance(tally, Counts) and tally.n == n == tally.cells.sum()
