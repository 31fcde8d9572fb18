"""Padding and sampling, sizes of sets, and the domain of sets: exact privacy, exact moments, bad input."""

from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from tacit.catalog import parse
from tacit.core.sets import Sets, contained_itemsets
from tacit.device.catalog import device_of
from tacit.device.domains.items import Items
from tacit.device.domains.product import Product, domain_of
from tacit.device.kinds.sets import PaddedDevice, SampledGRRDevice
from tacit.device.numbers.budget import Amplified, Share
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD, ceil_div
from tacit.errors import InvalidSpec, InvalidValue, SpecMismatch
from tacit.oracles.blocks import CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import BLH, OLH
from tacit.oracles.sets import Padded, SampledGRR, SetSize, uniform_each
from tacit.oracles.unary import OUE, SUE
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_unbiased, assert_variance

Law = dict[bytes, Fraction]


def subsets(size: int) -> list[tuple[int, ...]]:
    return [one for length in range(size + 1) for one in combinations(range(size), length)]


def amplified(size: int, length: int, epsilon: str = "1", candidates: Any = ()) -> Padded:
    return Padded.amplified(epsilon=epsilon, size=size, candidates=candidates, length=length)


def randomised(size: int, length: int, epsilon: str) -> Any:
    """Randomised response at an amplified epsilon, as a document writes it."""
    return {"kind": "grr", "size": size, "epsilon": {"of": epsilon, "sampled": length}}


def cell_words(places: int) -> list[int]:
    """Exactly how many words fall on every place of uniform(places)."""
    edges = [ceil_div(i * WORD, places) for i in range(places + 1)]
    return [b - a for a, b in pairwise(edges)]


def exact_law(m: Any, value: tuple[int, ...]) -> list[Fraction]:
    """The exact probability of every report of randomised response behind padding and sampling."""
    p, q = m.inner.p, m.inner.q
    held = [i for i, one in enumerate(m.candidates or [(i,) for i in range(m.size)]) if set(one) <= set(value)]
    words = [0] * m.inner.size
    cells = cell_words(max(len(held), m.length))
    elements = [*held, *range(m.choices, m.choices + len(cells) - len(held))]
    for element, cell in zip(elements, cells, strict=True):
        words[element] += cell
    assert sum(words) == WORD
    return [q + (p - q) * Fraction(w, WORD) for w in words]


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "4", "32"])
@pytest.mark.parametrize(("size", "length"), [(1, 1), (2, 3), (3, 2), (4, 2), (4, 5), (5, 3), (3, 7), (4, 1)])
def test_the_whole_is_exactly_private_over_all_sets(size: int, length: int, epsilon: str) -> None:
    """Every set, the empty one and those beyond the length included, against every other one, in exact arithmetic."""
    m = amplified(size, length, epsilon)
    laws = [exact_law(m, value) for value in subsets(size)]
    assert all(sum(law) == 1 for law in laws)
    worst = max(max(law[y] for law in laws) / min(law[y] for law in laws) for y in range(m.inner.size))
    assert worst == m.realised_odds() <= Fraction(m.odds, WORD)
    assert m.holds()
    for value, law in zip(subsets(size), laws, strict=True):
        assert np.allclose(np.exp(m.log_prob(m.all_reports(), value)), [float(x) for x in law], rtol=1e-12, atol=0)


def test_the_inner_oracle_spends_the_amplified_epsilon() -> None:
    m = amplified(10, 10)
    assert abs(m.inner.realised_epsilon() - 2.8998) < 1e-3  # ln(10 (e - 1) + 1), Table 5.1: 2.90
    assert 1 - 1e-12 < m.realised_epsilon() <= 1


def test_one_shared_dummy_would_void_the_guarantee_and_cannot_be_built() -> None:
    """With one dummy for all, sampling it at full probability loses epsilon' (1.49 instead of 1 for l = 2)."""
    with pytest.raises(InvalidSpec, match="must be for 5"):
        Padded(epsilon="1", size=3, length=2, inner=randomised(4, 2, "1"))


@pytest.mark.parametrize("candidates", [((0,), (0, 1), (2,)), ((0, 1, 2),), ((1,), (1, 2), (2,))])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_itemsets_are_exactly_private(candidates: Any, length: int) -> None:
    m = amplified(3, length, candidates=candidates)
    laws = [exact_law(m, value) for value in subsets(3)]
    worst = max(max(law[y] for law in laws) / min(law[y] for law in laws) for y in range(m.inner.size))
    assert worst <= m.realised_odds() <= Fraction(m.odds, WORD)


@pytest.mark.parametrize("make", [SUE, OUE])
@pytest.mark.parametrize(("size", "length"), [(2, 2), (3, 2), (2, 4), (1, 2), (2, 3), (1, 5)])
def test_bits_are_private_at_the_plain_epsilon_and_no_better_with_enough_items(
    make: Any, size: int, length: int
) -> None:
    m = Padded(epsilon="1", size=size, length=length, inner=make(size=size + length, epsilon="1"))
    logs = np.array([m.log_prob(m.all_reports(), value) for value in subsets(size)])
    worst = float(np.max(logs.max(axis=0) - logs.min(axis=0)))
    assert worst <= m.realised_epsilon() + 1e-9
    assert m.realised_odds() <= m.inner.realised_odds() <= Fraction(m.odds, WORD)
    assert abs(worst - m.realised_epsilon()) < 1e-9
    assert (m.realised_odds() == m.inner.realised_odds()) == (size >= length)


def test_hashes_get_no_amplification() -> None:
    """A report may speak for all elements of one set and for none of another: the ratio is the inner one."""
    m = Padded(epsilon="1", size=6, length=2, inner=OLH(size=8, epsilon="1"))
    reports = np.concatenate([m.inner.reports_of_seed(seed) for seed in range(300)])
    logs = np.array([m.log_prob(reports, value) for value in subsets(6)])
    worst = float(np.max(logs.max(axis=0) - logs.min(axis=0)))
    assert abs(worst - m.realised_epsilon()) < 1e-9
    for kind in (OLH, OUE, SUE, BLH):
        with pytest.raises(InvalidSpec, match="amplified"):
            kind(size=8, epsilon=Amplified("1", 2))


def test_an_amplified_epsilon_is_only_good_inside() -> None:
    spec = {"kind": "grr", "size": 6, "epsilon": {"of": "1", "sampled": 2}}
    with pytest.raises(InvalidSpec, match="amplified"):
        device_of(spec)
    inside = amplified(4, 2).spec()
    assert inside["inner"] == spec
    assert isinstance(device_of(inside), PaddedDevice)
    assert isinstance(parse(inside), Padded)
    assert isinstance(parse(inside).inner, SampledGRR)  # pyright: ignore[reportAttributeAccessIssue]
    assert SampledGRRDevice.kind == "grr"


INNER = {
    "amplified": lambda: randomised(9, 3, "2"),
    "grr": lambda: GRR(size=9, epsilon="2"),
    "olh": lambda: OLH(size=9, epsilon="2"),
    "blh": lambda: BLH(size=9, epsilon="2"),
    "oue": lambda: OUE(size=9, epsilon="2"),
    "ss": lambda: SS(size=9, epsilon="2"),
    "cbr": lambda: CBR(size=9, epsilon="2"),
}


def padded(name: str) -> Padded:
    return Padded(epsilon="2", size=6, length=3, inner=INNER[name]())


@pytest.mark.parametrize("name", INNER)
def test_a_batch_makes_the_bytes_of_the_loop(name: str) -> None:
    m, sets = padded(name), [*subsets(6), *reversed(subsets(6))]
    batch, coins = m.privatize(sets, ReplayCoins(b"sets")), ReplayCoins(b"sets")
    assert batch.tobytes() == b"".join(m.privatize_one(one, coins) for one in sets)
    again = m.privatize(Sets.of(sets), ReplayCoins(b"sets"))
    assert again.tobytes() == batch.tobytes()


def test_itemsets_of_a_batch_are_those_of_the_loop() -> None:
    candidates = ((0,), (0, 1), (0, 2, 5), (1, 3), (4,), (5,))
    m = Padded(epsilon="1", size=6, candidates=candidates, length=2, inner=OLH(size=8, epsilon="1"))
    held = contained_itemsets(Sets.of(subsets(6)), candidates, 6).tolist()
    assert held == [list(m.contained(one)) for one in subsets(6)]
    coins = ReplayCoins(b"x")
    assert m.privatize(subsets(6), ReplayCoins(b"x")).tobytes() == b"".join(
        m.privatize_one(one, coins) for one in subsets(6)
    )


@pytest.mark.parametrize("name", ["amplified", "grr", "oue", "ss"])
def test_estimates_are_exactly_unbiased_up_to_the_length_and_low_beyond(name: str) -> None:
    """Over all reports: the mean contribution to x is 1 if x is held and the set fits, l/|v| if it is larger."""
    m = padded(name)
    reports = m.all_reports()
    single = np.array([m.estimate(m.tally(reports[i : i + 1])).value for i in range(len(reports))])
    for value in subsets(6):
        mean = np.exp(m.log_prob(reports, value)) @ single
        expected = np.zeros(6)
        expected[list(value)] = min(1.0, 3 / max(1, len(value)))
        assert np.allclose(mean, expected, atol=1e-9)


def population() -> Sets:
    rng = np.random.default_rng(4)
    return Sets.of(sorted(set(rng.choice(6, rng.integers(0, 4), replace=False).tolist())) for _ in range(300))


@pytest.mark.parametrize("name", ["amplified", "olh", "oue"])
@pytest.mark.slow_cases("amplified", "olh")
def test_variance_is_the_corrected_one(name: str) -> None:
    """l^2 n other + l n_x (own - other) + n_x (l - 1); the first term alone is off by more than a third here.

    False-alarm probability 1e-7 per assertion, and a variance wrong by 1.3 would be rejected.
    """
    m, sets, rng = padded(name), population(), np.random.default_rng(1)
    truth = sets.counts(6) / len(sets)
    coins = SimulationCoins(8)
    if name == "oue":
        runs = [m.estimate(m.simulate_sets(sets, rng)).value for _ in range(910)]
    else:
        runs = [m.estimate(m.tally(m.privatize(sets, coins))).value for _ in range(910)]
    moments, n = m.inner.moments, len(sets)
    variance = (9 * moments.other + 3 * truth * (moments.own - moments.other) + 2 * truth) / n
    errors = np.array(runs) - truth
    assert_unbiased(errors[:, :-1], variance[:-1])
    for item in range(2):
        assert_variance(errors[:, item], variance[item])
    stated = np.mean([m.estimate(m.simulate_sets(sets, rng)).variance for _ in range(100)], axis=0)
    assert np.allclose(stated, variance, rtol=0.05)


def test_the_checked_example_of_the_variance() -> None:
    """n = 4000, d = 20, l = 4, epsilon 1 with OLH: 4 l^2 n E/(E - 1)^2 + n_x (2l - 1), with g = 4 in place of E + 1."""
    m = Padded(epsilon="1", size=20, length=4, inner=OLH(size=24, epsilon="1"))
    e = np.e
    exact = 16 * 4000 * 4 * e / (e - 1) ** 2 + 1000 * 7
    moments = m.inner.moments
    found = 16 * 4000 * moments.other + 4 * 1000 * (moments.own - moments.other) + 1000 * 3
    assert abs(found / exact - 1) < 0.01


def test_simulated_sets_have_the_law_of_reports() -> None:
    """Aggregate simulation against real reports, mean and variance (false-alarm probability 1e-7 each)."""
    m, sets, rng = padded("amplified"), population(), np.random.default_rng(3)
    truth = sets.counts(6) / len(sets)
    runs = np.array([m.estimate(m.simulate_sets(sets, rng)).value for _ in range(910)]) - truth
    moments = m.inner.moments
    variance = (9 * moments.other + 3 * truth * (moments.own - moments.other) + 2 * truth) / len(sets)
    assert_unbiased(runs[:, :-1], variance[:-1])
    assert_variance(runs[:, 0], variance[0])


def test_sums_of_cells_have_at_least_their_variance() -> None:
    """What is held together is not known: the stated variance of sums is a bound, exact for single cells."""
    m, sets, rng = padded("amplified"), population(), np.random.default_rng(5)
    rows = np.array([[1.0, 1, 0, 0, 0, 0], [1, -1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 1, 0, 0, 0]])
    estimates = [m.estimate(m.simulate_sets(sets, rng)) for _ in range(800)]
    real = np.var([rows @ e.value for e in estimates], axis=0)
    stated = np.mean([e.combine(rows).variance for e in estimates], axis=0)
    # Five standard errors of a variance over 800 runs.
    assert np.all(stated > real * (1 - 5 * np.sqrt(2 / 800)))
    assert stated[3] < real[3] * (1 + 5 * np.sqrt(2 / 800))


def test_tallies_are_not_mixed_with_the_inner_oracles() -> None:
    m = padded("grr")
    with pytest.raises(SpecMismatch):
        m.estimate(m.inner.tally(m.inner.all_reports()))
    with pytest.raises(InvalidSpec, match="simulate_sets"):
        m.simulate_tally([1, 2], np.random.default_rng(1))
    with pytest.raises(InvalidSpec, match="dummies"):
        m.estimate(m.tally(m.all_reports()), [6])
    assert m.estimate(m.tally(m.all_reports()), [2, 5]).labels == [2, 5]


def test_sizes_of_sets() -> None:
    m = SetSize(epsilon="1", size=6, candidates=((0,), (0, 1), (5,)), inner=GRR(size=4, epsilon="1"))
    for value in subsets(6):
        number = sum(set(one) <= set(value) for one in m.candidates)
        assert np.array_equal(m.log_prob(m.all_reports(), value), m.inner.log_prob(m.all_reports(), number))
    assert m.realised_odds() == m.inner.realised_odds()
    capped = SetSize(epsilon="1", size=6, most=2, inner=GRR(size=3, epsilon="1"))
    coins, loop = ReplayCoins(b"s"), ReplayCoins(b"s")
    batch = capped.privatize(subsets(6), coins)
    assert batch.tobytes() == b"".join(capped.privatize_one(one, loop) for one in subsets(6))
    everything = capped.simulate_sets(subsets(6), np.random.default_rng(1))
    assert everything.n == 64
    assert len(capped.estimate(everything)) == 3


@pytest.mark.parametrize("value", [3, "01", None, {0: 1}, [0, 0], [6], [-1], ["1"], [True], [[1]], b"\x01", [0.5]])
def test_bad_sets_are_refused_without_being_shown(value: Any) -> None:
    for m in (padded("amplified"), SetSize(epsilon="1", size=6, inner=GRR(size=7, epsilon="1"))):
        with pytest.raises(InvalidValue) as caught:
            m.privatize_one(value, ReplayCoins(b""))
        assert "different integers from 0 to 5" in str(caught.value)
        with pytest.raises(InvalidValue):
            m.check_value(value)


@pytest.mark.parametrize("values", [[[0, 0]], [[6]], [[-1]], [["a"]], 3, "ab", [3], [[True]]])
def test_bad_batches_are_refused(values: Any) -> None:
    with pytest.raises(InvalidValue):
        padded("amplified").privatize(values, ReplayCoins(b""))


def test_budgets_of_inner_and_outer_must_agree() -> None:
    with pytest.raises(InvalidSpec, match="epsilon is below"):
        Padded(epsilon="1", size=6, length=3, inner=GRR(size=9, epsilon="2"))
    with pytest.raises(InvalidSpec, match="of as many elements"):
        Padded(epsilon="2", size=6, length=3, inner=randomised(9, 4, "2"))
    half = Share("2", "1/2")
    assert Padded(epsilon=half, size=6, length=3, inner=BLH(size=9, epsilon=half)).holds()


def test_uniform_each_is_the_device_draw() -> None:
    coins, moduli = ReplayCoins(b"u"), np.arange(1, 200)
    drawn = np.frombuffer(ReplayCoins(b"u").words(len(moduli)), "<u8")
    assert uniform_each(drawn, moduli).tolist() == [coins.uniform(int(m)) for m in moduli]


def test_many_sets_at_once() -> None:
    sets = Sets.of([[2, 0], [], [1], [3, 1, 2]])
    assert (len(sets), sets.lengths.tolist()) == (4, [2, 0, 1, 3])
    assert sets.take(np.array([3, 0, 0, 1])).tolist() == [[1, 2, 3], [0, 2], [0, 2], []]
    assert sets.slice(1, 3).tolist() == [[], [1]]
    assert [part.tolist() for part in sets.chunks(3)] == [[[0, 2], [], [1]], [[1, 2, 3]]]
    assert sets.counts(5).tolist() == [1, 2, 2, 1, 0]
    assert Sets.of([]).tolist() == []


def test_items_are_encoded_as_sorted_places() -> None:
    basket = Items("basket", ("bread", "milk", "eggs"), most=2)
    assert basket.size == 3
    assert basket.encode(["eggs", "bread"]) == (0, 2)
    assert basket.encode([]) == basket.encode(set()) == ()
    assert domain_of(basket.spec()) == basket
    assert basket.decode(1) == "milk"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (["milk", "milk"], "must name an item once"),
        (["secret"], "must hold declared items only"),
        ([7], "must hold declared items only"),
        (["milk", "bread", "eggs"], "must have at most 2 items"),
        ("milk", "must be a list of declared items"),
        ({"milk": 1}, "must be a list of declared items"),
        (None, "must be a list of declared items"),
    ],
)
def test_other_items_are_refused_without_being_shown(value: Any, rule: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Items("basket", ("bread", "milk", "eggs"), most=2).encode(value)
    assert str(caught.value) == f"basket: the value is outside the domain, {rule}"


def test_a_set_is_no_attribute_of_a_product() -> None:
    with pytest.raises(InvalidSpec, match="sets do not nest"):
        Product((Items("basket", ("bread", "milk")),))  # pyright: ignore[reportArgumentType]
