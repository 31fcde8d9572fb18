"""LDPMiner, its improvements step by step up to SVIM, and itemsets on top of it, to compare with what a task offers.

`tacit simulate itemsets --method` runs them beside SVIM and SVSM.

Qin et al., CCS 2016; Wang's dissertation, sections 5.1.1 and 5.4.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tacit.device.numbers.budget import Share, as_budget
from tacit.errors import InvalidSpec
from tacit.tasks.itemsets.itemsets import Asking, Mining, best_rows, corrected, count, guess, measure, prune, svim, svsm
from tacit.tasks.plans import Diary, Steps

_ADAPTIVE = ("grr", "olh")


@dataclass(frozen=True)
class Ladder:
    """One step of the way from LDPMiner to SVIM: the oracles and padding lengths of its two phases."""

    first: tuple[str, ...]
    pads_first: bool
    """Whether the first phase pads to the 90th percentile of set sizes, measured by a group of 10 %, or to 1."""
    second: tuple[str, ...]
    pads_second: bool
    """Whether the second phase pads to the 90th percentile of candidates in a set, or to all of them."""
    corrects: bool = False


# Read downwards: each version changes one thing. v2 better oracles, v3 no padding when pruning, v4 the adaptive choice
# of oracle, v5 padding to the measured length, v6 the correction for large sets.
LADDER: dict[str, Ladder] = {
    "v1": Ladder(("blh",), True, ("sue",), False),
    "v2": Ladder(("olh",), True, ("olh",), False),
    "v3": Ladder(("olh",), False, ("olh",), False),
    "v4": Ladder(("olh",), False, _ADAPTIVE, False),
    "v5": Ladder(("olh",), False, _ADAPTIVE, True),
    "v6": Ladder(("olh",), False, _ADAPTIVE, True, corrects=True),
}
"""Figure 5.3: from LDPMiner with groups of respondents instead of a split epsilon (v1) to SVIM as printed (v6)."""


def ldp_miner(mining: Mining, length: int) -> Steps:
    """Run LDPMiner: the same respondents twice, half of epsilon each; simulation only.

    `length` is the 90th percentile of set sizes, taken as known. Binary local hashing, then symmetric unary encoding
    of the 2k best items, padded to 2k.
    """
    diary, half = Diary(), Share(_whole(mining), "1/2")
    # group=0 twice: both rounds ask the same people, so their budgets add up to epsilon.
    items = yield from prune(mining, diary, 1.0, length=length, kinds=("blh",), budget=half, group=0)
    if items is None:
        return diary.result((), None)
    counted = yield from count(
        mining, diary, 1.0, items, len(items), "items", kinds=("sue",), budget=half, group=0
    )  # fmt: skip
    return diary.result(*best_rows([] if counted is None else [counted], mining.k, diary))


def _whole(mining: Mining) -> str:
    text = as_budget(mining.epsilon).to_spec()
    if not isinstance(text, str):
        raise InvalidSpec("ldp_miner: epsilon is a share already, must be a whole one to be split")
    return text


def ladder(mining: Mining, name: str) -> Steps:
    """Run one step of the ladder, at full epsilon with disjoint groups."""
    diary = Diary()
    counted = yield from _climb(mining, LADDER[name], diary, 1.0)
    return diary.result(*best_rows([] if counted is None else [counted], mining.k, diary))


def _climb(mining: Mining, step: Ladder, diary: Diary, scale: float) -> Asking:
    """Ask the groups of one step: 10/40/50 % if the first phase pads, 50/10/40 % if the second does, else halves."""
    first, second = (0.4, 0.5) if step.pads_first else (0.5, 0.4) if step.pads_second else (0.5, 0.5)
    length = 1
    if step.pads_first:
        # Sizes of whole sets, cut at 2k: one value per size is a report's domain, which must stay small.
        most = min(mining.size, mining.wanted)
        sizes = yield from measure(mining, diary, 0.1 * scale, (), "items", most=most)
        length = sizes.length
    items = yield from prune(mining, diary, first * scale, length=length, kinds=step.first)
    if items is None:
        return None
    if not step.pads_second:
        return (yield from count(mining, diary, second * scale, items, len(items), "items", kinds=step.second))
    sizes = yield from measure(mining, diary, 0.1 * scale, items, "items")
    counted = yield from count(
        mining, diary, second * scale, items, sizes.length, "items", lengths=sizes, kinds=step.second
    )
    return corrected(counted, diary, "items") if counted and step.corrects else counted


def svsm_ldp_miner(mining: Mining) -> Steps:
    """Run SVSM with the phases of LDPMiner: half of the respondents for items, half for itemsets, padded to 2k."""
    diary = Diary()
    items = yield from _climb(mining, LADDER["v1"], diary, 0.5)
    parts = [] if items is None else [items]
    candidates = () if items is None else guess(mining, items)
    if candidates:
        sets = yield from count(mining, diary, 0.5, candidates, len(candidates), "itemsets", kinds=("sue",))
        parts += [] if sets is None else [sets]
    return diary.result(*best_rows(parts, mining.k, diary))


METHODS: dict[str, Callable[[Mining, int], Steps]] = {
    "svim": lambda mining, _: svim(mining),
    "svsm": lambda mining, _: svsm(mining),
    "ldpminer": ldp_miner,
    **{name: (lambda mining, _, name=name: ladder(mining, name)) for name in LADDER},
    "svsm-ldpminer": lambda mining, _: svsm_ldp_miner(mining),
}
"""Every plan by name; the second argument is the public 90th percentile of set sizes, which only `ldpminer` takes."""

ITEMSETS = ("svsm", "svsm-ldpminer")
"""Plans that look for itemsets; the others look for single items."""


def plan_steps(method: str, mining: Mining, *, length: int = 1) -> Steps:
    """Return the plan of a name; InvalidSpec lists the known ones if there is none."""
    if method not in METHODS:
        raise InvalidSpec(f"itemsets: method is {method[:40]!r}, must be one of {', '.join(METHODS)}")
    return METHODS[method](mining, length)
