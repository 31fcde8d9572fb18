"""A yes/no state over time within one epsilon for life: a tree over windows, of which a device follows one level.

The device draws a level once and reports a sign when a node of it ends: did the state change in it? Its changes are
multiplied by a pattern of signs that is drawn once as well, and all else is fair coins (docs/maths/tree_steps.md).
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, pairwise
from math import comb
from typing import Any, ClassVar, cast

from tacit.device.base import Device, as_integer
from tacit.device.kinds.memo import KEY_BYTES, MemoCoins
from tacit.device.kinds.unary import unary_odds, zero_threshold
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability, ceil_div, tighten, uniform_spread
from tacit.device.numbers.hashing import labelled
from tacit.errors import InvalidSpec, InvalidValue

MAX_CHANGES = 32
MAX_NODES = 1 << 16
MAX_WEIGHT = 1 << 32
_STATES = b"LDP-STEP-1"
_HALF = WORD // 2


@cache
def pattern_count(changes: int, least: int) -> int:
    """How many patterns of so many signs have at least `least` plus signs."""
    return sum(comb(changes, plus) for plus in range(max(least, 0), changes + 1))


@cache
def plus_words(odds: int, changes: int, least: int) -> int:
    """Words of 2^64 that draw a pattern of at least `least` plus signs; rounded down, so that fewer do."""
    many = pattern_count(changes, least)
    others = (1 << changes) - many
    tight = tighten(odds, uniform_spread(many, others))
    return WORD * many * tight // (many * tight + others * WORD)


@cache
def pattern_gap(odds: int, changes: int, least: int) -> Fraction:
    """The mean of every sign of a pattern: what one change moves the mean of its node's reports by."""
    many, words = pattern_count(changes, least), plus_words(odds, changes, least)
    agree = sum(comb(changes, plus) * (2 * plus - changes) for plus in range(least, changes + 1))
    mean, others = Fraction(agree, changes * many), (1 << changes) - many
    # All patterns together have mean zero, so that those outside have the opposite sum.
    return as_probability(words) * mean - as_probability(WORD - words) * mean * many / others


@cache
def pattern_pair(odds: int, changes: int, least: int) -> Fraction:
    """The mean product of two signs of a pattern: negative where patterns of too few plus signs are favoured."""
    if changes == 1:
        return Fraction(0)
    many, words = pattern_count(changes, least), plus_words(odds, changes, least)
    products = sum(comb(changes, plus) * ((2 * plus - changes) ** 2 - changes) for plus in range(least, changes + 1))
    mean, others = Fraction(products, changes * (changes - 1) * many), (1 << changes) - many
    # As in `pattern_gap`: over all patterns together this mean is zero, too.
    return as_probability(words) * mean - as_probability(WORD - words) * mean * many / others


@cache
def best_threshold(odds: int, changes: int) -> int:
    """The least number of plus signs for which the mean of a sign is largest; the smallest such number."""
    return max(range(1, changes + 1), key=lambda least: (pattern_gap(odds, changes, least), -least))


def ranked_pattern(rank: int, changes: int, least: int) -> int:
    """The pattern of this rank among those of at least `least` plus signs, as an integer; bit i is sign i."""
    pattern = 0
    for place in reversed(range(changes)):
        without = pattern_count(place, least)
        if rank >= without:
            rank, least, pattern = rank - without, least - 1, pattern | 1 << place
    return pattern


@dataclass
class StepMemory:
    """What a device keeps between reports: its secret, and a keyed hash of the states that it answered from.

    No state is stored: the application says what the states were, and the hash refuses another story than before.
    """

    secret: bytes = field(repr=False)
    campaign: str
    nodes: int = 0
    """How many nodes the hash is about."""
    tag: bytes = b""

    def __post_init__(self) -> None:
        """A short secret could be guessed, and then the level and every sign."""
        if len(self.secret) != KEY_BYTES:
            raise InvalidSpec(f"tree_steps: the secret has {len(self.secret)} bytes, must have {KEY_BYTES} random ones")

    def once(self, parameters: bytes) -> MemoCoins:
        """The coins that are drawn once: for the level and for the pattern."""
        return MemoCoins(self.secret, self.campaign, parameters, b"once")

    def hashed(self, parameters: bytes, states: "Sequence[int]") -> bytes:
        """The keyed hash of these states."""
        told = labelled(_STATES, self.campaign.encode(), parameters, bytes(states))
        return hmac.digest(self.secret, told, "sha256")

    def extend(self, parameters: bytes, states: "Sequence[int]") -> None:
        """Note the states of a further node; they must go on from those that were answered from."""
        before = self.hashed(parameters, states[: self.nodes])
        if len(states) <= self.nodes or (self.nodes and not hmac.compare_digest(before, self.tag)):
            raise InvalidValue(
                "tree_steps: the states do not go on from those that this device reported on; "
                "state them again as they were, with one more node at least"
            )
        self.nodes, self.tag = len(states), self.hashed(parameters, states)


@dataclass(frozen=True, kw_only=True)
class TreeStepsDevice(Device):
    """Signs about the changes of a yes/no state, one level of a tree over windows (T-STEP, T-TREE).

    `count` is the number of windows; t ends a node of level h if fanout^h divides t + 1. `changes` is how often
    a state may change before the device takes it for constant; `one_way` states only ever switch on. `thresholds` and
    `weights` are per level.
    """

    kind: ClassVar[str] = "tree_steps"

    fanout: int
    levels: int
    count: int = 0
    changes: int = 1
    thresholds: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    one_way: bool = False

    def _check(self) -> None:
        self._integer("fanout", 2, 16)
        self._integer("levels", 1, 16)
        if self.fanout**self.levels > MAX_NODES:
            raise InvalidSpec(f"tree_steps: fanout^levels must be at most {MAX_NODES}; take fewer levels")
        self._set("count", self.count or self.fanout**self.levels - 1)
        self._integer("count", self.fanout ** (self.levels - 1), self.fanout**self.levels - 1, "take other levels")
        if not isinstance(self.one_way, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec("tree_steps: one_way must be true or false")
        self._integer("changes", 1, 1 if self.one_way else MAX_CHANGES, "a one-way state changes once")
        best = tuple(best_threshold(self.odds, self.patterned(level)) for level in range(self.levels))
        self._set("thresholds", self._listed("thresholds") or best)
        self._set("weights", self._listed("weights") or (1,) * self.levels)
        if any(self.thresholds[level] > self.patterned(level) for level in range(self.levels)):
            raise InvalidSpec("tree_steps: a threshold is above the number of changes of its level")
        if sum(self.weights) > MAX_WEIGHT:
            raise InvalidSpec(f"tree_steps: weights must add up to at most {MAX_WEIGHT}")

    def _listed(self, name: str) -> "tuple[int, ...]":
        """A field with a positive integer per level; empty where it was left out."""
        given: Any = getattr(self, name)
        if not isinstance(given, (list, tuple)):
            raise InvalidSpec(f"tree_steps: {name} must be a list of positive integers, one per level")
        numbers = tuple(cast("list[Any]", given))
        if numbers and (len(numbers) != self.levels or not all(type(n) is int and n >= 1 for n in numbers)):
            raise InvalidSpec(f"tree_steps: {name} must be {self.levels} positive integers, one per level")
        return numbers

    def nodes(self, level: int) -> int:
        """How many nodes of a level end within all windows."""
        return self.count // self.fanout**level

    def patterned(self, level: int) -> int:
        """How many changes a device of this level may report: no more than it has nodes."""
        return min(self.changes, self.nodes(level))

    def ended(self, level: int, window: int) -> int:
        """How many nodes of a level have ended with this window."""
        return (window + 1) // self.fanout**level

    def is_due(self, level: int, window: int) -> bool:
        """Whether a device of this level reports on this window: a node ends with it."""
        return 0 <= window < self.count and (window + 1) % self.fanout**level == 0

    @property
    def parameters(self) -> bytes:
        """The digest that separates the coins of this mechanism from those of any other."""
        return bytes.fromhex(self.digest)

    @property
    def value_count(self) -> int:
        """A state is off or on."""
        return 2

    @cached_property
    def zero_words(self) -> int:
        """One-way states: words that set the bit of a node without a change; half of all words set it with one."""
        return zero_threshold(_HALF, self.odds)

    def inside_words(self, level: int) -> int:
        """Words that draw a pattern with at least as many plus signs as the threshold of the level."""
        return plus_words(self.odds, self.patterned(level), self.thresholds[level])

    def gap(self, level: int) -> Fraction:
        """By how much a change moves the mean report of its node: of signs, or of bits where states are one-way."""
        if self.one_way:
            return as_probability(_HALF - self.zero_words)
        return pattern_gap(self.odds, self.patterned(level), self.thresholds[level])

    def realised_odds(self) -> Fraction:
        """The likelihood ratio of everything that a device ever sends, between any two sequences of states.

        That of the likeliest pattern to the rarest, which is reached as soon as a level has nodes enough.
        """
        if self.one_way:
            several = any(self.nodes(level) > 1 for level in range(self.levels))
            return unary_odds(_HALF, self.zero_words) if several else self._single_odds()
        return max(self._pattern_odds(level) for level in range(self.levels))

    def _single_odds(self) -> Fraction:
        q = as_probability(self.zero_words)
        return max(Fraction(1, 2) / q, (1 - q) * 2)

    def _pattern_odds(self, level: int) -> Fraction:
        changes, words = self.patterned(level), self.inside_words(level)
        many = pattern_count(changes, self.thresholds[level])
        return Fraction(words * ceil_div(WORD, many), (WORD - words) * (WORD // ((1 << changes) - many)))

    def guarantees(self) -> "list[tuple[str, Fraction, Fraction]]":
        """One, for life."""
        return [("all reports of a device, however its state changes", self.realised_odds(), self.declared_odds)]

    def draw_once(self, coins: Coins) -> tuple[int, int]:
        """The level of a device, and its pattern of signs (0 where states are one-way): bit i set for a plus."""
        drawn, sums = coins.uniform(sum(self.weights)), list(accumulate(self.weights))
        level = next(h for h, end in enumerate(sums) if drawn < end)
        if self.one_way:
            return level, 0
        changes, least = self.patterned(level), self.thresholds[level]
        if coins.below(self.inside_words(level)):
            return level, ranked_pattern(coins.uniform(pattern_count(changes, least)), changes, least)
        # Patterns with fewer plus signs are those that have enough minus signs.
        others = (1 << changes) - pattern_count(changes, least)
        minus = ranked_pattern(coins.uniform(others), changes, changes - least + 1)
        return level, (1 << changes) - 1 - minus

    def level_of(self, memory: StepMemory) -> int:
        """The level that a device follows for life."""
        return self.draw_once(memory.once(self.parameters))[0]

    def report(self, states: "Sequence[int]", memory: StepMemory, coins: Coins) -> bytes:
        """The report on the last node; `states` has the state at the end of every node of the level so far."""
        level, pattern = self.draw_once(memory.once(self.parameters))
        told = self._states(states)
        if len(told) > self.nodes(level):
            raise InvalidValue(f"tree_steps: a device of level {level} has at most {self.nodes(level)} nodes")
        memory.extend(self.parameters, told)
        return bytes([2 * level + self._bit(told, self.patterned(level), pattern, coins)])

    def _bit(self, states: "Sequence[int]", changes: int, pattern: int, coins: Coins) -> int:
        """Whether the report on the last node is a plus (or, for a one-way state, a set bit)."""
        steps = [after - before for before, after in pairwise((0, *states))]
        earlier = sum(map(abs, steps[:-1]))
        # Changes beyond those that are covered count as none: this is what makes epsilon hold for life.
        step = steps[-1] if earlier < changes else 0
        if self.one_way:
            return int(coins.below(_HALF if step else self.zero_words))
        if step == 0:
            return int(coins.below(_HALF))
        sign = pattern >> earlier & 1
        return sign if step > 0 else 1 - sign

    def _states(self, value: Any) -> "tuple[int, ...]":
        listed: list[Any] = list(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else [value]
        states = [None if isinstance(state, str) else as_integer(state) for state in listed]
        if not states or not all(state in (0, 1) for state in states):
            raise InvalidValue("tree_steps: a state is outside the domain, must be 0 (off) or 1 (on), one per node")
        return tuple(cast("list[int]", states))

    def check_value(self, value: Any) -> None:
        """Refuse what is no list of states, without showing it."""
        self._states(value)

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """The report of a new device, whose secret is the next four coin words, on a state or on several in a row."""
        return self.report(self._states(value), StepMemory(coins.words(KEY_BYTES // 8), ""), coins)
