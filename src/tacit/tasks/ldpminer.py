"""LDPMiner, its improvements step by step up to SVIM, and itemsets on top of it: baselines to compare with.

Qin et al., CCS 2016; Wang's dissertation, sections 5.1.1 and 5.4.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.device.budget import Share, as_budget
from tacit.errors import InvalidSpec
from tacit.tasks.itemsets import Asking, Mining, best_rows, corrected, count, guess, measure, prune, svim, svsm
from tacit.tasks.plans import Diary, Steps

_ADAPTIVE = ("grr", "olh")


@dataclass(frozen=True)
class Ladder:
    """One step of the way from LDPMiner to SVIM: oracles and padding lengths of the two phases."""

    first: tuple[str, ...]
    pads_first: bool
    """Whether the first phase pads to the 90th percentile of set sizes, which a group of 10 % finds out, or to 1."""
    second: tuple[str, ...]
    pads_second: bool
    """Whether the second phase pads to the 90th percentile of candidates in a set, or to all of them."""
    corrects: bool = False


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
    """LDPMiner: the same respondents twice, half of epsilon each; simulation only.

    `length` is the 90th percentile of set sizes, taken as known. Binary local hashing, then symmetric unary encoding
    of the 2k best items, padded to 2k.
    """
    diary, half = Diary(), Share(_whole(mining), "1/2")
    items = yield from prune(mining, diary, 1.0, length=length, kinds=("blh",), budget=half, group=0)
    if items is None:
        return diary.result((), None)
    found = yield from count(
        mining, diary, 1.0, items, len(items), "items", kinds=("sue",), budget=half, group=0
    )  # fmt: skip
    return diary.result(*best_rows([] if found is None else [found], mining.k, diary))


def _whole(mining: Mining) -> str:
    text = as_budget(mining.epsilon).to_spec()
    if not isinstance(text, str):
        raise InvalidSpec("ldp_miner: epsilon is a share already, must be a whole one to be split")
    return text


def ladder(mining: Mining, name: str) -> Steps:
    """One step of the ladder, at full epsilon with disjoint groups."""
    diary = Diary()
    found = yield from _climb(mining, LADDER[name], diary, 1.0)
    return diary.result(*best_rows([] if found is None else [found], mining.k, diary))


def _climb(mining: Mining, step: Ladder, diary: Diary, scale: float) -> Asking:
    """The groups of one step: 10/40/50 % if the first phase pads, 50/10/40 % if the second does, else halves."""
    first, second = (0.4, 0.5) if step.pads_first else (0.5, 0.4) if step.pads_second else (0.5, 0.5)
    length = 1
    if step.pads_first:
        most = min(mining.size, mining.wanted)
        sizes = yield from measure(mining, diary, 0.1 * scale, (), "items", most=most)
        length = sizes.length
    items = yield from prune(mining, diary, first * scale, length=length, kinds=step.first)
    if items is None:
        return None
    if not step.pads_second:
        return (yield from count(mining, diary, second * scale, items, len(items), "items", kinds=step.second))
    sizes = yield from measure(mining, diary, 0.1 * scale, items, "items")
    found = yield from count(
        mining, diary, second * scale, items, sizes.length, "items", lengths=sizes, kinds=step.second
    )
    return corrected(found, diary, "items") if found and step.corrects else found


def svsm_ldp_miner(mining: Mining) -> Steps:
    """SVSM with the phases of LDPMiner: half of the respondents for items, half for itemsets, padded to 2k."""
    diary = Diary()
    found = yield from _climb(mining, LADDER["v1"], diary, 0.5)
    parts = [] if found is None else [found]
    candidates = () if found is None else guess(mining, found)
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
    """The plan of a name, or InvalidSpec naming what is known."""
    if method not in METHODS:
        raise InvalidSpec(f"itemsets: method is {method[:40]!r}, must be one of {', '.join(METHODS)}")
    return METHODS[method](mining, length)


OUTLINES: dict[str, tuple[tuple[str, float], ...]] = {
    "svim": (("items", 0.5), ("sizes", 0.1), ("counts", 0.4)),
    "svsm": (
        ("items", 0.25),
        ("sizes", 0.05),
        ("counts", 0.2),
        ("itemsets_sizes", 0.1),
        ("itemsets_counts", 0.4),
    ),
}
"""Rounds of the plans that a collector runs, with their shares, where there are more items than candidates."""


def plan_spec(method: str, mining: Mining) -> dict[str, Any]:
    """A plan as plain data; `plan_of` reads it back."""
    epsilon = as_budget(mining.epsilon).to_spec()
    return {
        "kind": method, "epsilon": epsilon, "size": mining.size, "k": mining.k, "respondents": mining.respondents
    }  # fmt: skip


def plan_of(spec: dict[str, Any]) -> Steps:
    """A fresh generator of a plan; replay stored tallies into it to resume."""
    fields = {name: value for name, value in spec.items() if name != "kind"}
    if spec.get("kind") not in OUTLINES or fields.keys() != {"epsilon", "size", "k", "respondents"}:
        raise InvalidSpec(f"plan: kind must be one of {', '.join(OUTLINES)}, with epsilon, size, k and respondents")
    return plan_steps(spec["kind"], Mining(**fields))
