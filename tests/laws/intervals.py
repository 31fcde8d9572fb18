"""The law of `privatize_one`, proved by running its code on intervals of coin words instead of on words.

A coin word is replaced by an interval [low, high) of words. Every operation of the code on a word either has one
result for the whole interval or asks to split it, and then the code runs again on both parts. Any other operation
is a TypeError, so nothing escapes. A run that ends shows that a box of words gives one report; the boxes of all
runs cover all words exactly once, and their sizes are the probabilities. Bit-sliced words are taken bit by bit.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from tacit.core.mechanism import Mechanism, Oracle
from tacit.device.numbers.budget import Share
from tacit.device.numbers.coins import Coins, ScriptedCoins
from tacit.device.numbers.exact import WORD

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
    """All words of an interval at once, times a factor, less a number; only monotone operations on the word exist."""

    def __init__(self, place: int, low: int, high: int, factor: int = 1, less: int = 0) -> None:
        self.place, self.low, self.high, self.factor, self.less = place, low, high, factor, less

    def _one(self, at: int) -> None:
        """Split at word `at`, unless the whole interval lies on one side of it."""
        if self.low < at < self.high:
            raise Split(self.place, at)

    def __lt__(self, threshold: int) -> bool:
        assert (self.factor, self.less) == (1, 0)
        self._one(threshold)
        return self.low < threshold

    def __ge__(self, threshold: int) -> bool:
        return not self < threshold

    def __mul__(self, factor: int) -> "Word":
        return Word(self.place, self.low, self.high, self.factor * factor, self.less * factor)

    def __sub__(self, number: int) -> "Word":
        return Word(self.place, self.low, self.high, self.factor, self.less + number)

    def __floordiv__(self, divisor: int) -> int:
        quotient = (self.low * self.factor - self.less) // divisor
        self._one(-(-((quotient + 1) * divisor + self.less) // self.factor))
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


def lane_by_lane(size: int, ones: int, planes: "list[tuple[int, int]]", coins: Coins) -> bytes:
    """`draw_bits` as the tests above prove it: one word per lane, below its threshold."""
    t1, t0 = (sum(plane[which] << 63 - j for j, plane in enumerate(planes)) for which in (0, 1))
    bits = sum(coins.below(t1 if ones >> i & 1 else t0) << i for i in range(size))
    return bits.to_bytes(-(-size // 8), "little")
