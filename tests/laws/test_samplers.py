"""The law of `privatize_one`, proved by running its code on intervals of coin words instead of on words.

A coin word is replaced by an interval [low, high) of words. Every operation of the code on a word either has one
result for the whole interval or asks to split it, and then the code runs again on both parts. Any other operation
is a TypeError, so nothing escapes. A run that ends shows that a box of words gives one report; the boxes of all
runs cover all words exactly once, and their sizes are the probabilities. Bit-sliced words are taken bit by bit.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
import pytest

from tacit.catalog import CATALOG
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.pure import PureOracle
from tacit.device import rappor as rappor_module
from tacit.device import sketch as sketch_module
from tacit.device import unary as unary_module
from tacit.device.budget import Amplified, Epsilon, Share
from tacit.device.coins import Coins, ReplayCoins, ScriptedCoins
from tacit.device.exact import WORD, as_probability, uniform_spread
from tacit.device.grid import Grid
from tacit.device.grr import grr_draw, grr_odds, low_cell
from tacit.device.hadamard import distinct, independent, parity
from tacit.device.levels import Tree
from tacit.device.memo import Memory
from tacit.device.unary import bit_planes, draw_bits, draw_lanes
from tacit.errors import InvalidSpec
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.laplace import DiscreteLaplace
from tacit.numeric.mean import OneBit
from tacit.numeric.memo import Memoized
from tacit.numeric.rounded import Rounded
from tacit.oracles.blocks import ABR, CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR, HRRT, HRRSubspace
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.oracles.histogram_encoding import SHE
from tacit.oracles.local_hash import BLH, FLH, OLH, RMP
from tacit.oracles.rappor import RAPPOR, BasicRAPPOR
from tacit.oracles.sets import Padded, SampledGRR, SetSize
from tacit.oracles.sketch import CMS, HCMS
from tacit.oracles.unary import OUE, RUE, SUE, THE

Box = tuple[tuple[int, int], ...]
Law = dict[Any, Fraction]

EPSILONS: list[Any] = ["0.001", "1", "32", Share("1", "1/3")]
ID = str


class Split(Exception):
    """The code treats the words of one interval differently: ask for both parts."""

    def __init__(self, place: int, at: int) -> None:
        super().__init__(place, at)
        self.place, self.at = place, at


class Word:
    """All words of an interval at once, times a factor; only operations that are monotone in the word exist."""

    def __init__(self, place: int, low: int, high: int, factor: int = 1) -> None:
        self.place, self.low, self.high, self.factor = place, low, high, factor

    def _one(self, at: int) -> None:
        """Split at word `at`, unless the whole interval lies on one side of it."""
        if self.low < at < self.high:
            raise Split(self.place, at)

    def __lt__(self, threshold: int) -> bool:
        assert self.factor == 1
        self._one(threshold)
        return self.low < threshold

    def __ge__(self, threshold: int) -> bool:
        return not self < threshold

    def __mul__(self, factor: int) -> "Word":
        return Word(self.place, self.low, self.high, self.factor * factor)

    def __floordiv__(self, divisor: int) -> int:
        quotient = self.low * self.factor // divisor
        self._one(-(-(quotient + 1) * divisor // self.factor))
        return quotient

    def __rshift__(self, bits: int) -> int:
        return self // (1 << bits)

    def __bool__(self) -> bool:
        raise TypeError("the truth of a word was asked for")

    def __eq__(self, other: object) -> bool:
        raise TypeError("a word was compared for equality")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class IntervalCoins(Coins):
    """Coins whose words are the intervals of a box, and all words once the box is used up."""

    def __init__(self, box: Box) -> None:
        super().__init__()
        self.box = list(box)
        self.used = 0

    def _draw(self, size: int) -> bytes:
        raise TypeError("a sampler read raw bytes")

    def word(self) -> Any:
        """The next interval."""
        if self.used == len(self.box):
            self.box.append((0, WORD))
        self.used += 1
        return Word(self.used - 1, *self.box[self.used - 1])


def boxes(run: Callable[[Coins], Any], start: Box = ()) -> Iterator[tuple[Box, Any]]:
    """Disjoint boxes that cover `start`, each with the one outcome that all of its words have."""
    waiting = [start]
    while waiting:
        coins = IntervalCoins(waiting.pop())
        try:
            outcome = run(coins)
        except Split as split:
            low, high = coins.box[split.place]
            for part in ((low, split.at), (split.at, high)):
                waiting.append((*coins.box[: split.place], part, *coins.box[split.place + 1 :]))
        else:
            assert coins.used == len(coins.box), "the box holds words that were not used"
            yield tuple(coins.box), outcome


def law(run: Callable[[Coins], Any], start: Box = ()) -> Law:
    """The exact probability of every outcome, given that the first words lie in `start`.

    The words at both corners of every box go through the code as plain integers too.
    """
    found: Law = {}
    for box, outcome in boxes(run, start):
        for corner in ([low for low, _ in box], [high - 1 for _, high in box]):
            assert run(ScriptedCoins(corner)) == outcome
        widths = [high - low for low, high in start] + [WORD] * (len(box) - len(start))
        share = Fraction(prod(high - low for low, high in box), prod(widths))
        found[outcome] = found.get(outcome, Fraction(0)) + share
    return found


def laws_of(m: Mechanism, values: "list[Any]", start: Box = ()) -> "list[Law]":
    return [law(lambda coins, value=value: m.privatize_one(value, coins), start) for value in values]


def largest_ratio(laws: "list[Law]") -> Fraction:
    """The largest likelihood ratio of any report between any two values; the supports must agree."""
    assert all(found.keys() == laws[0].keys() for found in laws)
    return max(max(f[y] for f in laws) / min(f[y] for f in laws) for y in laws[0])


def check_law(m: Mechanism, laws: "list[Law]", values: "list[Any]", *, exact: bool = True) -> None:
    """Sums, odds and `log_prob` of the laws that the code has."""
    ratio, bound = largest_ratio(laws), Fraction(m.odds, WORD)
    assert all(sum(found.values()) == 1 for found in laws)
    assert ratio <= m.realised_odds() <= bound
    assert ratio.numerator * WORD <= m.odds * ratio.denominator
    assert ratio == m.realised_odds() or not exact
    check_log_prob(m, laws, values)


def check_log_prob(m: Mechanism, laws: "list[Law]", values: "list[Any]", share: Fraction = Fraction(1)) -> None:
    """exp(log_prob) is the probability; `share` is that of the start all laws are conditional on."""
    for found, value in zip(laws, values, strict=True):
        reports = m.decode(b"".join(found))
        assert m.valid(reports).all()
        stated = np.exp(m.log_prob(reports, value))
        real = np.array([float(chance * share) for chance in found.values()])
        # The complement of a rounded probability near one is what log_prob of bits has left at large epsilons.
        complement = 4e-16 * float(m.odds / WORD) ** 0.5 if with_complements(m) else 0.0
        assert np.allclose(stated, real, rtol=1e-12 + complement * len(stated).bit_length(), atol=0)


def with_complements(m: Any) -> bool:
    return m.kind in ("sue", "oue", "rue", "the", "brappor", "rappor", "cms", "one_of", "all_of", "memo")


def check_complete(m: Mechanism, laws: "list[Law]") -> None:
    """The reports that the code makes are those that `all_reports` lists."""
    assert sorted(laws[0]) == sorted(report.tobytes() for report in m.all_reports())


def check_unbiased(m: Oracle, laws: "list[Law]") -> None:
    """The mean of the estimate is the one-hot vector: exact probabilities, estimates in floating point."""
    for value, found in enumerate(laws):
        estimates = np.array([m.estimate(m.tally(m.decode(report))).value for report in found])
        chances = np.array([float(chance) for chance in found.values()])
        error = chances @ estimates - np.eye(m.size)[value]
        assert np.abs(error).max() <= 1e-13 * np.abs(estimates).max() * len(found)


def mean(found: Law, number: Callable[[Any], Any]) -> Fraction:
    """The exact mean of a number of the report."""
    return sum((chance * number(report) for report, chance in found.items()), Fraction(0))


def has_bit(at: int) -> Callable[[bytes], int]:
    return lambda report: report[at >> 3] >> (at & 7) & 1


def below(m: Any) -> "list[Any]":
    return list(range(m.size))


# The machine itself.


def test_intervals_find_every_break_point():
    assert law(lambda c: c.below(5)) == {True: Fraction(5, WORD), False: Fraction(WORD - 5, WORD)}
    thirds = law(lambda c: c.uniform(3))
    assert [thirds[i] * WORD for i in range(3)] == [WORD // 3 + 1, WORD // 3, WORD // 3]
    twisted = law(lambda c: c.uniform(4) in (0, 3))
    assert twisted == {True: Fraction(1, 2), False: Fraction(1, 2)}


def test_an_operation_that_is_not_understood_is_an_error():
    for run in (
        lambda c: c.word() + 1,
        lambda c: c.word() & 1,
        lambda c: c.word() == 3,
        lambda c: not c.word(),
        lambda c: c.words(1),
    ):
        with pytest.raises(TypeError):
            law(run)


@pytest.mark.parametrize("m", [1, 2, 3, 10, 100])
def test_uniform_is_as_even_as_its_spread_says(m: int):
    shares = [chance * WORD for chance in law(lambda c: c.uniform(m)).values()]
    assert set(shares) <= {WORD // m, -(-WORD // m)}
    assert len(shares) == m
    assert max(shares) / min(shares) <= uniform_spread(m)


# Kinds of fixed cost.

EXACT: dict[str, Callable[[Any], Any]] = {
    "grr": lambda e: GRR(size=4, epsilon=e),
    "hrr": lambda e: HRR(size=3, epsilon=e),
    "hrr_all_rows": lambda e: HRR(size=4, epsilon=e, skip_zero=False),
    "hrr_t": lambda e: HRRT(size=4, epsilon=e, coefficients=2),
    "hrr_subspace": lambda e: HRRSubspace(size=4, epsilon=e, coefficients=2),
    "hrr_signed": lambda e: HRRSigned(size=5, epsilon=e),
    "hrr_signed_one_node": lambda e: HRRSigned(size=2, epsilon=e),
    "hrr_signed_full": lambda e: HRRSigned(size=8, epsilon=e),
    "flh": lambda e: FLH(size=4, epsilon=e, pool=3, key=7, buckets=3),
    "rmp": lambda e: RMP(size=4, epsilon=e, pool=3, key=7),
    "hcms": lambda e: HCMS(size=4, epsilon=e, rows=3, width=4, key=7),
    "hcms_all": lambda e: HCMS(size=4, epsilon=e, rows=2, width=2, key=7, skip_zero=False),
    "she": lambda e: SHE(size=2, epsilon=e, grid=2, bound=1),
    "she_wide": lambda e: SHE(size=2, epsilon=e, grid=4, bound=3),
    "onebit": lambda e: OneBit(top=3, epsilon=e),
    "dlap": lambda e: DiscreteLaplace(top=3, epsilon=e),
    "dlap_one": lambda e: DiscreteLaplace(top=1, epsilon=e),
    "dlap_bound": lambda e: DiscreteLaplace(top=4, bound=1, epsilon=e),
    "dbitflip": lambda e: DBitFlip(size=3, sampled=2, epsilon=e),
    "dbitflip_one": lambda e: DBitFlip(size=3, sampled=1, epsilon=e),
    "dbitflip_all": lambda e: DBitFlip(size=2, sampled=2, epsilon=e),
    "rounded": lambda e: Rounded(top=3, inner=GRR(size=4, epsilon=e)),
    "rounded_one": lambda e: Rounded(top=2, inner=HRR(size=2, epsilon=e)),
}
"""Kinds whose `realised_odds` is the exact largest ratio."""

BOUNDED: dict[str, Callable[[Any], Any]] = {
    "ss": lambda e: SS(size=4, epsilon=e, subset=2),
    "ss_one": lambda e: SS(size=3, epsilon=e, subset=1),
    "ss_most": lambda e: SS(size=4, epsilon=e, subset=3),
    "cbr_singer": lambda e: CBR(size=5, epsilon=e, family="singer", order=2, dimension=3),
    "cbr_paley": lambda e: CBR(size=11, epsilon=e, family="paley", order=11, dimension=1),
    "abr": lambda e: ABR(size=5, epsilon=e, block=2),
    "abr_padded": lambda e: ABR(size=4, epsilon=e, modulus=7, block=3),
}
"""Kinds that state a bound: uneven draws depend on the value there."""

FIXED = {**EXACT, **BOUNDED}
OVER_KEYS = ("flh", "rmp", "hcms", "hcms_all")
"""Estimators that are unbiased over random public keys, not for one key."""


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("name", FIXED)
def test_fixed_cost_kinds_have_the_law_they_state(name: str, epsilon: Any):
    m = FIXED[name](epsilon)
    laws = laws_of(m, below(m))
    check_law(m, laws, below(m), exact=name in EXACT)
    check_complete(m, laws)
    if isinstance(m, Oracle) and name not in (*OVER_KEYS, "dbitflip", "dbitflip_one"):
        check_unbiased(m, laws)


@pytest.mark.parametrize("name", FIXED)
def test_every_value_takes_the_same_number_of_words(name: str):
    m = FIXED[name]("1")
    sizes = {len(box) for v in below(m) for box, _ in boxes(lambda c, v=v: m.privatize_one(v, c))}
    assert len(sizes) == 1
    assert m.coin_words in (None, *sizes)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_bounds_are_tight_to_a_part_in_two_to_the_fifty(name: str, epsilon: str):
    m = BOUNDED[name](epsilon)
    assert m.realised_odds() / largest_ratio(laws_of(m, below(m))) <= 1 + Fraction(1, 1 << 50)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
def test_support_probabilities_are_p_and_q_exactly(epsilon: Any):
    m = GRR(size=4, epsilon=epsilon)
    for v, found in enumerate(laws_of(m, below(m))):
        assert [found[bytes([y])] for y in range(4)] == [m.p if y == v else m.q for y in range(4)]


@pytest.mark.parametrize("name", ["ss", "cbr_singer", "cbr_paley", "abr", "abr_padded"])
def test_blocks_contain_the_value_with_probability_p_exactly(name: str):
    m: PureOracle = BOUNDED[name]("1")
    for v, found in enumerate(laws_of(m, below(m))):
        inside = {y: bool(m.log_prob(m.decode(y), v)[0] == m.log_prob(m.all_reports(), v).max()) for y in found}
        assert mean(found, lambda y, inside=inside: inside[y]) == m.p


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
def test_numbers_are_unbiased_in_rationals(epsilon: Any):
    one = OneBit(top=3, epsilon=epsilon)
    for v, found in enumerate(laws_of(one, below(one))):
        assert (mean(found, lambda y: y[0]) * WORD - one.low) / one.slope == v
    she = SHE(size=2, epsilon=epsilon, grid=2, bound=1)
    for v, found in enumerate(laws_of(she, below(she))):
        codes = [mean(found, lambda y, i=i: y[i]) for i in range(2)]
        assert codes == [she.mean_own if i == v else she.mean_other for i in range(2)]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
def test_laplace_tables_decode_without_bias(epsilon: Any):
    m = DiscreteLaplace(top=3, bound=1, epsilon=epsilon)
    scale = float(np.abs(m.decoded).max())
    for v, found in enumerate(laws_of(m, below(m))):
        assert abs(sum(float(chance) * m.decoded[y[0]] for y, chance in found.items()) - v) <= 1e-12 * scale


@pytest.mark.parametrize("sampled", [1, 2, 3])
def test_dbitflip_bits_are_set_with_p_and_q_whatever_was_sampled(sampled: int):
    m = DBitFlip(size=3, sampled=sampled, epsilon="1")
    for v, found in enumerate(laws_of(m, below(m))):
        for buckets in combinations(range(3), sampled):
            held = {y: c for y, c in found.items() if tuple(y[:sampled]) == buckets}
            for i, bucket in enumerate(buckets):
                rate = mean(held, lambda y, i=i: y[-1] >> i & 1) / sum(held.values())
                assert rate == (m.p if bucket == v else m.q)


@pytest.mark.parametrize("sampled", [2, 7, 1000, 1 << 20])
def test_an_amplified_epsilon_realises_at_most_its_amplified_odds(sampled: int):
    """The draw alone: that a document may use it is for padding and sampling to decide."""
    budget = Amplified("1", sampled)
    low = low_cell(budget.odds, 4)
    laws = [law(lambda c, v=v: grr_draw(v, 4, low, c)) for v in range(4)]
    assert all(sum(found.values()) == 1 for found in laws)
    assert largest_ratio(laws) == grr_odds(4, low) <= Fraction(budget.odds, WORD)
    assert budget.odds == sampled * (Epsilon("1").odds - WORD) + WORD


# Hash functions: what the first word chooses is the same for every value.


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("make", [lambda e: BLH(size=1 << 64, epsilon=e), lambda e: OLH(size=5, buckets=3, epsilon=e)])
def test_local_hashing_for_single_seeds(make: Callable[[Any], Any], epsilon: Any):
    m = make(epsilon)
    values = [0, 1, 2, 3, 4, m.size - 1]
    for seed in (0, 1, 12345, (1 << 32) - 1):
        laws = laws_of(m, values, ((seed << 32, seed + 1 << 32),))
        assert all(report[:4] == seed.to_bytes(4, "little") for found in laws for report in found)
        assert all(sum(found.values()) == 1 for found in laws)
        assert max(max(f.values()) for f in laws) == m.p
        assert largest_ratio(laws) <= m.realised_odds() <= Fraction(m.odds, WORD)
        check_log_prob(m, laws, values, Fraction(1, 1 << 32))
    assert any(largest_ratio(laws_of(m, values, ((s << 32, s + 1 << 32),))) == m.realised_odds() for s in range(5))


# What is drawn without looking at the value.


@pytest.mark.parametrize(("count", "below_"), [(1, 2), (1, 5), (2, 3), (2, 5), (3, 4), (3, 5), (4, 4)])
def test_floyd_draws_every_subset_alike(count: int, below_: int):
    found = law(lambda c: tuple(distinct(count, below_, c)))
    assert sorted(found) == list(combinations(range(below_), count))
    assert max(found.values()) / min(found.values()) - 1 < Fraction(1, 1 << 58)


@pytest.mark.parametrize(("count", "order"), [(1, 2), (1, 8), (2, 4), (2, 8), (3, 8)])
def test_independent_rows_are_uniform_over_independent_tuples(count: int, order: int):
    found = law(lambda c: tuple(independent(count, order, c)))
    expected = [
        rows
        for rows in product(range(1, order), repeat=count)
        if all(xor_of(part) for size in range(1, count + 1) for part in combinations(rows, size))
    ]
    assert sorted(found) == expected
    assert max(found.values()) / min(found.values()) - 1 < Fraction(1, 1 << 58)


def xor_of(rows: "tuple[int, ...]") -> int:
    total = 0
    for row in rows:
        total ^= row
    return total


@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_signed_rows_are_unbiased_with_the_stated_variance_in_rationals(size: int, epsilon: Any):
    """All rows are drawn alike, so a report (row, sign) is worth its entry over `keep`: mean +-1, square 1/keep^2."""
    m = HRRSigned(size=size, epsilon=epsilon)
    for v, found in enumerate(laws_of(m, below(m))):
        for row, sign in product(range(m.order), (0, 1)):
            words = WORD - m.low if sign == parity(row & v >> 1) ^ v & 1 else m.low
            assert found[bytes([2 * row + sign])] == Fraction(words, m.order * WORD)
        for u in range(m.nodes):
            worth = {y: (-1) ** (y[0] & 1) * (-1) ** parity(y[0] >> 1 & u) / m.keep for y in found}
            truth = (1 - 2 * (v & 1)) * (v >> 1 == u)
            assert mean(found, lambda y, worth=worth: worth[y]) == truth
            variance = mean(found, lambda y, worth=worth: worth[y] ** 2) - truth**2
            assert variance == 1 / m.keep**2 - (v >> 1 == u)


def test_hrr_t_reports_the_signs_of_its_rows():
    m = HRRT(size=4, epsilon="1", coefficients=2)
    for v, found in enumerate(laws_of(m, below(m))):
        true = {y: sum(parity(y[i] & v) << i for i in range(2)) for y in found}
        kept = mean(found, lambda y, true=true: y[-1] == true[y])
        assert kept == as_probability(WORD - 3 * m.low)


# Bit-sliced lanes. The code treats every bit position of its words alike and apart from the others, so that the
# bits of a lane are the binary digits, from the top, of one uniform number per lane.


class LaneWord:
    """A word whose bits are revealed only where the code masks it; complement and XOR are remembered."""

    def __init__(self, coins: "LaneCoins", number: int, flip: int = 0) -> None:
        self.coins, self.number, self.flip = coins, number, flip

    def __invert__(self) -> "LaneWord":
        return LaneWord(self.coins, self.number, ~self.flip)

    def __rxor__(self, other: int) -> "LaneWord":
        return LaneWord(self.coins, self.number, self.flip ^ other)

    def __rand__(self, mask: int) -> int:
        known = 0
        for lane in range(mask.bit_length()):
            if mask >> lane & 1:
                known |= self.coins.bit(self.number, lane) << lane
        return (known ^ self.flip) & mask


class LaneCoins(Coins):
    """Fair bits by (word, lane), given as a list of the bits in the order in which they are first looked at."""

    def __init__(self, bits: "list[int]") -> None:
        super().__init__()
        self.bits, self.seen, self.words_used = bits, dict[tuple[int, int], int](), 0

    def _draw(self, size: int) -> bytes:
        raise TypeError("a sampler read raw bytes")

    def word(self) -> Any:
        """A word nobody has looked at."""
        self.words_used += 1
        return LaneWord(self, self.words_used)

    def bit(self, number: int, lane: int) -> int:
        """One bit of one word; a list that is too short goes on with zeros, and the caller sees how far."""
        if (number, lane) not in self.seen:
            if len(self.seen) == len(self.bits):
                self.bits.append(0)
            self.seen[number, lane] = self.bits[len(self.seen)]
        return self.seen[number, lane]


def lane_law(run: Callable[[Coins], Any], *, with_words: bool = False) -> Law:
    """The exact probability of every outcome of bit-sliced code, by counting through all bits it looks at."""
    found: Law = {}
    bits: list[int] = []
    while True:
        coins = LaneCoins(bits)
        outcome = run(coins)
        key = (outcome, coins.words_used) if with_words else outcome
        bits = coins.bits[: len(coins.seen)]
        found[key] = found.get(key, Fraction(0)) + Fraction(1, 1 << len(bits))
        while bits and bits[-1]:
            bits.pop()
        if not bits:
            return found
        bits[-1] = 1


SOME_THRESHOLDS = [1, 2, 3 << 62, WORD // 2, WORD - 1, 0x123456789ABCDEF1, WORD // 3]


@pytest.mark.parametrize("threshold", SOME_THRESHOLDS, ids=hex)
def test_a_lane_is_set_by_exactly_as_many_words_as_its_threshold(threshold: int):
    for lane, planes in ((1, bit_planes(threshold, 0)), (0, bit_planes(0, threshold))):
        found = lane_law(lambda c, lane=lane, planes=planes: draw_lanes(1, planes, lane, c))
        assert found == {1: Fraction(threshold, WORD), 0: Fraction(WORD - threshold, WORD)}


def test_lanes_are_independent_over_all_sequences_of_short_words():
    """Three lanes, every pair of thresholds of three bits, every sequence of three words."""
    sequences = list(product(range(8), repeat=3))
    for t1, t0, lane in product(range(1, 8), range(1, 8), range(8)):
        planes = [(t1 >> j & 1, t0 >> j & 1) for j in (2, 1, 0)]
        limits = [t1 if lane >> i & 1 else t0 for i in range(3)]
        for words in sequences[(t1 + t0 + lane) % 4 :: 4]:
            numbers = [sum((words[r] >> i & 1) << 2 - r for r in range(3)) for i in range(3)]
            expected = sum((number < limit) << i for i, (number, limit) in enumerate(zip(numbers, limits, strict=True)))
            assert draw_lanes(7, planes, lane, ScriptedCoins(list(words))) == expected


def test_lanes_that_do_not_exist_are_never_set_and_never_waited_for():
    for words in product(range(8), repeat=2):
        planes = [(1, 0), (0, 1)]
        both = draw_lanes(3, planes, 1, ScriptedCoins(list(words)))
        assert both == draw_lanes(7, planes, 1, ScriptedCoins(list(words))) & 3


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 130])
def test_every_block_of_lanes_has_words_of_its_own(size: int):
    """Bit i of a report is column i mod 64 of the words of block i // 64, compared with its threshold."""
    t1, t0 = 0xC000000000000001, 0x3FFFFFFFFFFFFFFF
    planes = bit_planes(t1, t0)
    for turn in range(20):
        ones, stream = 1 << turn * 7 % size, ReplayCoins(b"block%d" % turn)
        report = int.from_bytes(draw_bits(size, ones, planes, stream), "little")
        again = ReplayCoins(b"block%d" % turn)
        for start in range(0, size, 64):
            open_ = set(range(start, min(size, start + 64)))
            for j in range(63, -1, -1):
                word = again.word()
                for i in sorted(open_):
                    threshold, drawn = (t1 if ones >> i & 1 else t0) >> j & 1, word >> i - start & 1
                    if threshold != drawn:
                        assert report >> i & 1 == (drawn < threshold)
                        open_.remove(i)
                if not open_:
                    break
            assert not any(report >> i & 1 for i in open_)
        assert stream.word() == again.word()
        assert report >> size == 0


UNARY: dict[str, Callable[[Any], Any]] = {
    "sue": lambda e: SUE(size=2, epsilon=e),
    "oue": lambda e: OUE(size=2, epsilon=e),
    "rue": lambda e: RUE(size=2, epsilon=e),
    "the": lambda e: THE(size=2, epsilon=e),
    "brappor": lambda e: BasicRAPPOR(size=2, epsilon=e),
}


@pytest.mark.parametrize("epsilon", ["0.001", "1"])
@pytest.mark.parametrize("name", ["oue", "the"])
def test_two_lanes_to_the_last_of_64_bits(name: str, epsilon: str):
    m = UNARY[name](epsilon)
    laws = [lane_law(lambda c, v=v: m.privatize_one(v, c)) for v in range(2)]
    check_law(m, laws, [0, 1])
    check_complete(m, laws)
    for v, found in enumerate(laws):
        assert [mean(found, has_bit(i)) for i in range(2)] == [m.p if i == v else m.q for i in range(2)]


def lane_by_lane(size: int, ones: int, planes: "list[tuple[int, int]]", coins: Coins) -> bytes:
    """`draw_bits` as the tests above prove it: one word per lane, below its threshold."""
    t1, t0 = (sum(plane[which] << 63 - j for j, plane in enumerate(planes)) for which in (0, 1))
    bits = sum(coins.below(t1 if ones >> i & 1 else t0) << i for i in range(size))
    return bits.to_bytes(-(-size // 8), "little")


@pytest.fixture
def proven_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the lane sampler as proved, so that kinds built on it can be explored as a whole."""
    for module in (unary_module, rappor_module, sketch_module):
        monkeypatch.setattr(module, "draw_bits", lane_by_lane)


LANES: dict[str, Callable[[Any], Any]] = {
    "sue": lambda e: SUE(size=3, epsilon=e),
    "oue": lambda e: OUE(size=3, epsilon=e),
    "rue": lambda e: RUE(size=3, epsilon=e),
    "the": lambda e: THE(size=3, epsilon=e),
    "the_half": lambda e: THE(size=3, epsilon=e, theta="0.5"),
    "the_one": lambda e: THE(size=3, epsilon=e, theta="1"),
    "brappor": lambda e: BasicRAPPOR(size=3, epsilon=e),
    "cms": lambda e: CMS(size=4, epsilon=e, rows=3, width=4, key=7),
}


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("name", LANES)
def test_unary_kinds_have_the_law_they_state(name: str, epsilon: Any):
    m = LANES[name](epsilon)
    laws = laws_of(m, below(m))
    check_law(m, laws, below(m))
    check_complete(m, laws)
    if name != "cms":
        check_unbiased(m, laws)
        for v, found in enumerate(laws):
            assert [mean(found, has_bit(i)) for i in range(3)] == [m.p if i == v else m.q for i in range(3)]


LAYERED: dict[str, Callable[[Any], Any]] = {
    "brappor": lambda e: BasicRAPPOR(size=3, epsilon=e, zero="0.25", one="0.75"),
    "brappor_edges": lambda e: BasicRAPPOR(size=2, epsilon=e, zero="0", one="1"),
    "rappor": lambda e: RAPPOR(bits=3, cohorts=3, key=7, epsilon=e, zero="0.1", one="0.6"),
    "rappor_two_hashes": lambda e: RAPPOR(bits=4, cohorts=1, key=7, hashes=2, epsilon=e, zero="0.5", one="0.75"),
    "rappor_one_shot": lambda e: RAPPOR(bits=4, cohorts=2, key=7, hashes=2, epsilon=e),
}


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("name", LAYERED)
def test_both_layers_of_rappor(name: str, epsilon: Any):
    """One report is bounded by `one_report_odds`; Bloom filters of two values may share bits, then it is less."""
    m: Any = LAYERED[name](epsilon)
    values = list(range(m.size)) if isinstance(m, BasicRAPPOR) else [0, 1, 5, (1 << 64) - 1]
    laws = laws_of(m, values)
    assert all(sum(found.values()) == 1 for found in laws)
    assert largest_ratio(laws) <= m.one_report_odds() <= m.realised_odds() <= Fraction(m.odds, WORD)
    for _, realised, declared in m.guarantees():
        assert realised <= declared
    check_log_prob(m, laws, values)
    check_complete(m, laws)
    if isinstance(m, BasicRAPPOR):
        assert largest_ratio(laws) == m.one_report_odds()
        check_unbiased(m, laws)


@pytest.mark.usefixtures("proven_lanes")
def test_permanent_bits_of_rappor_bound_any_number_of_reports():
    """Three reports from the same permanent bits stay below `realised_odds` and above those of one report."""
    m = BasicRAPPOR(size=2, epsilon="1", zero="0.25", one="0.75")
    joint: list[Law] = []
    for v in range(2):
        permanent = law(lambda c, v=v: draw_permanent(m, v, c))
        found: Law = {}
        for bits, chance in permanent.items():
            single = law(lambda c, bits=bits: lane_by_lane(2, bits, bit_planes(*m.instant), c))
            for reports in product(single, repeat=3):
                share = chance * prod(single[y] for y in reports)
                found[reports] = found.get(reports, Fraction(0)) + share
        joint.append(found)
    assert m.one_report_odds() < largest_ratio(joint) < m.realised_odds()


def draw_permanent(m: BasicRAPPOR, value: int, coins: Coins) -> int:
    return int.from_bytes(lane_by_lane(m.size, 1 << value, bit_planes(*m.thresholds), coins), "little")


# Composition and memoisation.


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", ["0.001", "1", "32"])
def test_one_of_has_the_law_it_states(epsilon: str):
    family = Questions(
        mechanisms=(GRR(size=3, epsilon=epsilon), OUE(size=2, epsilon="0.5" if epsilon != "0.001" else epsilon)),
        weights=(2, 1),
    )
    m = OneOf(family=family)
    values = list(product(range(3), range(2)))
    laws = laws_of(m, values)
    check_law(m, laws, values)
    check_complete(m, laws)
    for found in laws:
        drawn = [mean(found, lambda y, i=i: y[0] == i) for i in range(2)]
        assert [float(chance) for chance in drawn] == [m.probability(i) for i in range(2)]
        assert sum(drawn) == 1


def plain_tree(epsilon: Any) -> Tree:
    """Ten leaves below 4 and 2 nodes: ragged at both levels, with kinds of their own."""
    return Tree(
        size=10, fanout=3, heights=(2, 1), mechanisms=(GRR(size=2, epsilon=epsilon), HRR(size=4, epsilon=epsilon))
    )


def signed_tree(epsilon: Any) -> Tree:
    """All Haar levels over five leaves."""
    levels = tuple(HRRSigned(size=size, epsilon=epsilon) for size in (2, 3, 5))
    return Tree(size=5, fanout=2, heights=(2, 1, 0), mechanisms=levels, weights=(3, 1, 2))


def pair_grid(epsilon: Any) -> Grid:
    """Two ragged attributes, one of them summed over for the first member."""
    members = (GRR(size=2, epsilon=epsilon), HRR(size=6, epsilon=epsilon))
    return Grid(sizes=(3, 4), fanouts=(2, 3), heights=((2, 1), (0, 1)), mechanisms=members, weights=(2, 3))


@pytest.mark.parametrize("epsilon", ["0.001", "1", "32", Share("1", "1/3")], ids=ID)
@pytest.mark.parametrize("make", [plain_tree, signed_tree, pair_grid])
def test_one_level_of_a_tree_has_the_law_it_states(make: Callable[[Any], Tree | Grid], epsilon: Any):
    tree = make(epsilon)
    m, values = OneOf(family=tree), list(range(tree.size))
    laws = laws_of(m, values)
    check_law(m, laws, values)
    check_complete(m, laws)


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", ["0.003", "1", "32"])
def test_all_of_has_the_law_it_states(epsilon: str):
    thirds = [Share(epsilon, "1/3")] * 3
    m = AllOf(
        epsilon=epsilon,
        members=(GRR(size=2, epsilon=thirds[0]), HRR(size=2, epsilon=thirds[1]), OUE(size=2, epsilon=thirds[2])),
    )
    values = list(product(range(2), repeat=3))
    laws = laws_of(m, values)
    assert largest_ratio(laws) == m.realised_odds()
    assert m.realised_odds() <= prod(Fraction(member.odds, WORD) for member in m.members)
    assert m.holds()
    assert all(sum(found.values()) == 1 for found in laws)
    check_log_prob(m, laws, values)
    marginal: Law = {}
    for report, chance in laws[-1].items():
        marginal[report[0]] = marginal.get(report[0], Fraction(0)) + chance
    assert marginal == {y[0]: c for y, c in laws_of(m.members[0], [1])[0].items()}


MEMOISED: dict[str, Callable[[Any], Any]] = {
    "grr": lambda e: GRR(size=3, epsilon=e),
    "sue": lambda e: SUE(size=2, epsilon=e),
    "rue": lambda e: RUE(size=2, epsilon=e),
    "onebit": lambda e: OneBit(top=4, epsilon=e),
    "dbitflip": lambda e: DBitFlip(size=3, sampled=2, epsilon=e),
}


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", ["0.001", "1", "32"])
@pytest.mark.parametrize("name", MEMOISED)
def test_the_first_memoised_report_has_the_inner_law(name: str, epsilon: str, monkeypatch: pytest.MonkeyPatch):
    """With HMAC taken as a random function, streams of different keys are independent words."""
    m = Memoized(inner=MEMOISED[name](epsilon), most_values=2)
    keys: list[bytes] = []

    def first_report(value: int, coins: Coins) -> bytes:
        asked: list[bytes] = []
        monkeypatch.setattr(Memory, "coins", lambda _, parameters, key: asked.append(parameters + key) or coins)
        report = m.report(value, Memory(bytes(32), ""))
        assert len(set(asked)) == len(asked)
        keys.extend(asked)
        return report

    laws = [law(lambda c, v=v: first_report(v, c)) for v in below(m)]
    check_law(m, laws, below(m), exact=name != "onebit")
    check_complete(m, laws)
    assert all(key.startswith(m.parameters) for key in keys)
    if name == "onebit":
        assert largest_ratio(laws) == m.realised_odds()


def test_a_memoised_report_is_the_inner_one_with_coins_of_its_own_secret():
    m = Memoized(inner=GRR(size=3, epsilon="1"), most_values=2)
    secret = ReplayCoins(b"memo").words(4)
    coins = Memory(secret, "").coins(m.parameters, b"2")
    assert m.privatize_one(2, ReplayCoins(b"memo")) == m.inner.privatize_one(2, coins)


SETS: dict[str, Callable[[str], Any]] = {
    "padded": lambda e: Padded(epsilon=e, size=3, length=2, inner=SampledGRR(size=5, epsilon=Amplified(e, 2))),
    "padded_uneven": lambda e: Padded(epsilon=e, size=2, length=3, inner=SampledGRR(size=5, epsilon=Amplified(e, 3))),
    "padded_itemsets": lambda e: Padded(
        epsilon=e, size=3, candidates=((0, 1), (2,)), length=1, inner=SampledGRR(size=3, epsilon=Amplified(e, 1))
    ),
    "padded_plain": lambda e: Padded(epsilon=e, size=3, length=2, inner=GRR(size=5, epsilon=e)),
    "set_size": lambda e: SetSize(epsilon=e, size=3, most=2, inner=GRR(size=3, epsilon=e)),
}


@pytest.mark.parametrize("epsilon", ["0.001", "1", "32"])
@pytest.mark.parametrize("name", SETS)
def test_reports_on_sets_have_the_law_they_state(name: str, epsilon: str):
    """All sets, the empty one and those beyond the length included."""
    m = SETS[name](epsilon)
    values = [one for length in range(m.size + 1) for one in combinations(range(m.size), length)]
    laws = laws_of(m, values)
    check_law(m, laws, values)
    check_complete(m, laws)


def test_every_kind_of_the_catalogue_is_proved_here():
    made = [make("1") for part in (FIXED, LANES, LAYERED) for make in part.values()]
    proved = {m.kind for m in made} | {"blh", "olh", "one_of", "all_of", "memo", "padded", "set_size"}
    assert proved == {kind.kind for kind in CATALOG}


def test_bound_kinds_refuse_what_they_cannot_realise():
    with pytest.raises(InvalidSpec, match="too small"):
        ABR(size=1 << 31, epsilon=Share("0.001", "1/999999999"))
