"""Coin words of a batch: which words each report gets, when reports need different numbers of them.

A device draws its member with one word and then takes the words that the member needs, so where a report starts in
the stream depends on all reports before it:

    word      0 | 1   2 | 3 | 4 | 5 | 6   7   8 | 9 | ...
    report    ----0----   --1--   ------2------   --3-
    use       M   a   b   M   a   M   a   b   c   M         M draws the member, a b c are handed to its mechanism

`sweep` finds the starts without drawing any report of a member whose cost is fixed: the member that *would* be drawn
is computed for every word of a window at once, and the starts are followed from one to the next as in a linked list.
The words of all reports of one member are then gathered and handed to its batch sampler.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64, U8, U64
from tacit.device.numbers.coins import Coins
from tacit.kernels import expand_keys, follow, follow_lanes
from tacit.kernels.window import WindowCoins, WindowEnd

_WINDOW_WORDS = 1 << 18
_MOST_ONES = 1 << 20
"""True bits that are looked up at a time: those of all unary members, of which a report needs one."""
_FIRST_GUESS = 16
"""Words per report that are looked at first where a member's cost is not fixed; too few only cost another look."""

VARIES = -1
"""The cost of a member whose reports take as many words as their coins happen to need."""


class GivenCoins(Coins):
    """Words that were drawn for one member out of a batch; asking for more is a fault of the caller."""

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        """Hold the words."""
        super().__init__()
        self._buffer = np.ascontiguousarray(words, "<u8").tobytes()

    def _draw(self, size: int) -> bytes:
        raise IndexError(f"coins: {size} bytes more than a member declares in coin_words were asked for")


@dataclass(frozen=True, eq=False)
class Sweep:
    """Consecutive reports of a batch whose words all lie in one window."""

    first: int
    """The place in the batch of the first of them."""
    members: I64
    """The member that each report answers."""
    starts: I64
    """Where in the window each report's own words start, behind the one that drew the member."""
    window: U64
    drawn: dict[int, bytes]
    """Payloads of the reports whose cost varies, by place in the batch: they had to be drawn to learn their cost."""
    payloads: U8 | None = None
    """The same as rows, zeros for the others, where the kernel drew them: all members of varying cost are unary."""

    def coins(self, places: I64, cost: int) -> GivenCoins:
        """The words of some of these reports, `cost` each, in the order of the reports."""
        return GivenCoins(self.window[self.starts[places][:, None] + np.arange(cost)])


Choose = Callable[[U64], I64]
"""Members that words draw."""
DrawOne = Callable[[int, int, Coins], bytes]
"""The payload of report (place in the batch) about a member, from these coins."""


@dataclass(frozen=True, eq=False)
class UnaryMembers:
    """Members of varying cost that draw one noisy bit per value, so that the kernel can follow them."""

    table: U64
    """A row (column, size, t1, t0) for every member; rows of the others are not read."""
    ones: "Callable[[int, int], npt.NDArray[np.int32]]"
    """The true bits of the reports from one place of the batch up to another: a row each, a column per unary member."""
    columns: int
    width: int
    """Bytes of a payload."""

    @property
    def guess(self) -> int:
        """About the words of the widest: a little over seven for every 64 bits."""
        return 8 * -(-int(self.table[:, 1].max()) // 64)


def sweep(
    coins: Coins, n: int, costs: I64, choose: Choose, draw_one: DrawOne, unary: UnaryMembers | None = None
) -> Iterator[Sweep]:
    """The coin words of n reports, window by window; consumes exactly the words that n devices would.

    `costs[m]` is the number of words of a report about member m, or `VARIES`. Reports of the latter are drawn while the
    starts are followed: by the kernel where all of them are unary, else one by one, by the device reference.
    """
    guess = _FIRST_GUESS if unary is None else unary.guess
    each = 1 + int(np.where(costs == VARIES, guess, costs).max())
    alike = bool((costs == costs[0]).all()) and costs[0] != VARIES
    done, most = 0, max(_WINDOW_WORDS, each)
    while done < n:
        count = min(most // each, n - done)
        words = np.frombuffer(coins.peek(each * count, expand_keys), "<u8")
        if alike:
            found, used = _evenly(words, done, each, choose), len(words)
        else:
            found, used = _follow(words, done, n, costs, choose, draw_one, unary)
        coins.skip(used)
        # Where not even one report fits (its cost varies, and is above the guess), a larger window is tried.
        each, most = (each, most) if len(found.members) else (2 * each, 2 * most)
        done += len(found.members)
        yield found


def _evenly(words: U64, first: int, each: int, choose: Choose) -> Sweep:
    """The reports of a window where all members cost the same, so that starts need not be followed."""
    return Sweep(first, choose(words[::each]), np.arange(1, len(words), each), words, {})


def _follow(
    words: U64, first: int, n: int, costs: I64, choose: Choose, draw_one: DrawOne, unary: UnaryMembers | None
) -> tuple[Sweep, int]:
    """The reports from `first` on that fit into a window, and how many of its words they use."""
    chosen = choose(words)
    if not (costs == VARIES).any():
        places, used = follow(1 + costs[chosen], n - first)
        return Sweep(first, chosen[places - 1], places, words, {}), used
    if unary is None:
        return _follow_one_by_one(words, first, n, costs, chosen, draw_one)
    # Every report needs two words at least, one for its member and one of its own.
    most = min(n - first, max(1, len(words) // 2), max(1, _MOST_ONES // unary.columns))
    steps = np.where(costs == VARIES, 0, 1 + costs)[chosen]
    ones = unary.ones(first, first + most)
    places, payloads, used = follow_lanes(words, steps, chosen, unary.table, ones, unary.width)
    return Sweep(first, chosen[places - 1], places, words, {}, payloads), used


def _follow_one_by_one(words: U64, first: int, n: int, costs: I64, chosen: I64, draw_one: DrawOne) -> tuple[Sweep, int]:
    """The same by the device reference, which draws every report of varying cost to learn where the next one starts."""
    member_at: list[int] = chosen.tolist()
    cost_at: list[int] = costs[chosen].tolist()
    window = WindowCoins(words)
    drawn: dict[int, bytes] = {}
    starts: list[int] = []
    at, report = 0, first
    while report < n and at < len(words):
        cost = cost_at[at]
        if cost == VARIES:
            window.place = at + 1
            try:
                drawn[report] = draw_one(report, member_at[at], window)
            except WindowEnd:
                break
            cost = window.place - at - 1
        if at + 1 + cost > len(words):
            break
        starts.append(at + 1)
        at, report = at + 1 + cost, report + 1
    places = np.array(starts, np.int64)
    return Sweep(first, chosen[places - 1], places, words, drawn), at
