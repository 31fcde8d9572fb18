"""Chapter 6 of Wang's dissertation, worked out a second time: errors of FC, AM, FT and CALM, Algorithm 2, designs.

Errors are those against the respondents' own tables, the respondents being fixed: a group of n/t of them has the
sampling error of a random part, t/n less 1/n, not that of n/t people drawn from a population, as the literature has it.
"""

from itertools import combinations
from math import ceil, comb, exp

import numpy as np
import pytest

from tacit.simulate.marginals import simulate_tally, true_table
from tacit.tasks.marginals.calm import noise_error, select_views, views_of
from tacit.tasks.marginals.covering import balanced_views, cover_design, lower_bound
from tacit.tasks.marginals.methods import adaptive_oracle, ask, make_method
from tacit.tasks.marginals.plan import choose_marginals, expected_sse

pytestmark = pytest.mark.papers
N = 1 << 16


def noise(epsilon: float) -> float:
    """c = 4 e^eps/(e^eps - 1)^2."""
    return 4 * exp(epsilon) / (exp(epsilon) - 1) ** 2


def sign_variance(epsilon: float, cells: int) -> float:
    """Of one respondent's term for a coefficient of a table with evenly spread answers; 1 of it is the sign itself.

    GRR keeps a sign with p - q, so 1/(p - q)^2. OUE adds noise c to every cell, and 1 more to that of the answer.
    """
    e = exp(epsilon)
    return ((e + cells - 1) / (e - 1)) ** 2 if cells < 3 * e + 2 else cells * noise(epsilon) + 2


def from_views(epsilon: float, s: int, views: int, behind: dict[int, int], k: int = 3) -> float:
    """Squared error of a table of k: a coefficient of j attributes is known from behind[j] views of s attributes."""
    one = sign_variance(epsilon, 2**s)
    return sum(comb(k, j) * (one * views / there - 1) for j, there in behind.items()) / 2**k / N


@pytest.mark.slow_cases("0.6", "0.2", "2")
@pytest.mark.parametrize("epsilon", ["0.2", "0.6", "1", "2"])
def test_predicted_errors(epsilon: str):
    """Eight binary attributes, tables of three, 2^16 respondents, evenly spread answers; groups as expected.

    FC: 256 cells of OUE, of which the known total saves an eighth. FT: 92 coefficients, the empty one known. AM: all
    56 tables, made to agree. CALM: 28 pairs, or 14 sets of four that cover all triples.
    """
    e = float(epsilon)
    c, question = noise(e), ask([2] * 8, 3, epsilon, N)
    small = {1: 7, 2: 1}, 2, 28
    behind, s, views = ({1: 7, 2: 3, 3: 1}, 4, 14) if epsilon == "2" else small
    wanted = {
        "fc": 7 / 8 * (256 * c + 1) / N,
        "ft": 7 / 8 * (92 * (c + 1) - 1) / N,
        "am": from_views(e, 3, 56, {1: 21, 2: 6, 3: 1}),
        "calm": from_views(e, s, views, behind),
    }
    found = {name: expected_sse(make_method(name, question), question)[0] for name in wanted}
    assert found == pytest.approx(wanted, rel=1e-5)
    assert wanted["ft"] <= 7 / 8 * 92 * (c + 1) / N
    planned = {o.method: o.raw_sse for o in choose_marginals(sizes=[2] * 8, k=3, epsilon=epsilon, n=N).options}
    assert [planned[name] for name in ("fc", "calm")] == pytest.approx([wanted["fc"], wanted["calm"]], rel=1e-5)


@pytest.mark.parametrize("epsilon", ["0.4", "2"])
def test_tables_of_their_own_respondents(epsilon: str):
    """AM as printed: (G/n)(s1 + 7 s0) of noise and (G - 1)/n (1 - sum f^2) of sampling.

    56 tables in 12 collections: the mean of 672 squared errors of 7 degrees has a deviation of sqrt(2/7/672) = 2.1 %,
    and 12 % are a false alarm in less than 1e-7. At epsilon 2 equation (6.2) is 41 % below: 448 times the noise of a
    rare cell is 0.0022 of 0.0038, the noise of what is not rare another 0.0008, and sampling 0.0007.
    """
    rng, sizes, n = np.random.default_rng(1), [2] * 8, N
    records = (rng.random((n, 8)) < 0.5).astype(np.int64)
    mechanism = make_method("am", ask(sizes, 3, epsilon, n))
    oracle = adaptive_oracle(8, ask(sizes, 3, epsilon, n).budget)
    p, q = float(oracle.p), float(oracle.q)  # type: ignore[attr-defined]
    s0, s1 = q * (1 - q) / (p - q) ** 2, p * (1 - p) / (p - q) ** 2
    wanted = 56 * (s1 + 7 * s0) / n + 55 / n * 7 / 8
    truth = [true_table(records, sizes, table).ravel() for table in combinations(range(8), 3)]
    errors = list[float]()
    for _ in range(12):
        found = mechanism.estimate(simulate_tally(mechanism, records, sizes, rng))
        errors += [float(np.sum((e.value - true) ** 2)) for e, true in zip(found, truth, strict=True)]  # type: ignore[call-overload]
    assert np.mean(errors) == pytest.approx(wanted, rel=0.12)


def test_printed_multiples():
    """Equations (6.1) to (6.3) at m = 8, k = 3, and the numbers of tables and coefficients."""
    assert [2**8, 2**3 * comb(8, 3), sum(comb(8, j) for j in range(4))] == [256, 448, 93]
    assert sum(comb(16, j) for j in range(7)) == 14_893
    assert [comb(32, 8), sum(comb(32, j) for j in range(1, 9))] == [10_518_300, 15_033_172]
    # Eight attributes of three answers need 1,788 coefficients, which take 11 bits and one for the sign.
    assert sum(comb(8, j) * 3**j for j in (1, 2, 3)) == 1788
    choice = choose_marginals(sizes=[3] * 8, k=3, epsilon="1", n=10**6, methods=("inp_ht",))
    assert choice.pick.report_bits == 12


def steps(first: float, last: float) -> list[float]:
    return [round(x, 1) for x in np.arange(first, last + 0.05, 0.2)]


GOLDEN = [
    (16, 8, 3, {(28, 2): steps(0.2, 1.4), (56, 3): [1.6, 1.8], (14, 4): [2.0]}),
    (16, 16, 3, {(65, 2): steps(0.2, 1.6), (65, 3): [1.8, 2.0]}),
    (18, 16, 3, {(120, 2): steps(0.2, 1.0), (262, 3): [1.2, 1.4], (140, 4): [1.6, 1.8, 2.0]}),
    (18, 16, 6, {(120, 2): steps(0.2, 1.4), (262, 3): [1.6, 1.8], (262, 4): [2.0]}),
    (18, 32, 8, {(262, 2): steps(0.2, 1.6), (262, 3): [2.0]}),
]


@pytest.mark.parametrize(("log_n", "m", "k", "wanted"), GOLDEN)
def test_views_of_algorithm_2(log_n: int, m: int, k: int, wanted: dict[tuple[int, int], list[float]]):
    """With 140 views instead of 262 where they cover all triples; every attribute is in some view."""
    for (count, size), epsilons in wanted.items():
        plans = [select_views(n=2**log_n, sizes=[2] * m, epsilon=e, k=k) for e in epsilons]
        assert {(plan.count, plan.size) for plan in plans} == {(count, size)}, epsilons
        views = views_of(plans[0], m, k)
        uses = np.bincount(np.ravel(views), minlength=m)
        assert len(set(views)) == count and {len(set(view)) for view in views} == {size}
        assert uses.min() >= 1


def test_noise_of_views_of_different_sizes():
    """L is the mean number of cells over all sets of s attributes: e_s(d)/C(m, s)."""
    sizes, e = [2, 3, 5, 7, 2, 4], exp(1.3)
    for s in (1, 2, 3, 4):
        cells = float(np.mean([np.prod(chosen) for chosen in combinations(sizes, s)]))
        wanted = min(4 * e, cells - 2 + e) / (e - 1) ** 2 * cells / s * 6 / 5000
        assert noise_error(5000, sizes, 1.3, s) == pytest.approx(wanted, rel=1e-12)


DESIGNS = {(8, 4, 3): 14, (16, 4, 3): 140, (32, 4, 3): 1240, (16, 4, 2): 20, (16, 3, 2): 43, (8, 4, 2): 6,
           (7, 3, 3): 35, (9, 3, 2): 12, (10, 4, 2): 9}  # fmt: skip


@pytest.mark.parametrize(("m", "s", "k"), DESIGNS)
def test_covering_designs(m: int, s: int, k: int):
    """Complete by enumeration, and of the sizes that are known: the last two within 2 of the least (greedy)."""
    blocks = cover_design(m, s, k)
    covered = {chosen for block in blocks for chosen in combinations(sorted(block), k)}
    assert covered == set(combinations(range(m), k))
    assert len(blocks) <= DESIGNS[m, s, k] + (2 if (m, s, k) in ((9, 3, 2), (10, 4, 2)) else 0)
    bound = 1
    for i in reversed(range(k)):
        bound = ceil((m - i) * bound / (s - i))
    assert lower_bound(m, s, k) == bound <= len(blocks)


def test_the_example_of_six_views():
    """{1,2,3,4}, {1,5,6,7}, ... cover all 28 pairs of eight attributes."""
    views = [(1, 2, 3, 4), (1, 5, 6, 7), (2, 3, 5, 8), (4, 6, 7, 8), (2, 3, 6, 7), (1, 4, 5, 8)]
    assert len({pair for view in views for pair in combinations(view, 2)}) == 28 == comb(8, 2)


@pytest.mark.parametrize(("m", "s", "k", "count"), [
    (16, 2, 3, 65), (32, 2, 3, 65), (16, 3, 3, 262), (32, 3, 6, 262), (7, 3, 4, 5),
    (16, 3, 6, 262), (16, 4, 6, 262)])  # fmt: skip
def test_views_that_do_not_cover_use_all_attributes_alike(m: int, s: int, k: int, count: int):
    views = balanced_views(m, s, k, count)
    uses = np.bincount(np.ravel(views), minlength=m)
    assert len(set(views)) == count
    assert uses.min() >= max(1, count * s // m - 1) and uses.max() <= count * s / m + 3


@pytest.mark.parametrize(("n", "m"), [(10_000, 16), (5000, 16), (2000, 8)])
def test_few_respondents_are_still_asked_about_every_attribute(n: int, m: int):
    """An attribute in no view is answered as uniform, so each must be in one at least."""
    views = views_of(select_views(n=n, sizes=[2] * m, epsilon=1.0, k=2), m, 2)
    assert set(np.ravel(views).tolist()) == set(range(m))
