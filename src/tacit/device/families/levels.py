"""Levels of a tree over an ordered domain: each respondent reports the node above its value at one level.

Level 0 are the leaves; the nodes of height t cover fanout^t leaves each. Levels that are not asked, a last node that
covers fewer leaves, and a mechanism of its own for every level are all allowed. The signed Hadamard kind on levels of
fan-out 2 makes this the Haar transform; plain frequency oracles make it a hierarchical histogram.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from tacit.device.base import Device, as_integer
from tacit.device.families.family import Family, Levels, as_members
from tacit.errors import InvalidSpec, InvalidValue

MAX_LEVELS = 64
MAX_SIZE = 1 << 64
_JSON_LIMIT = 1 << 53


def node_count(size: int, fanout: int, height: int) -> int:
    """Nodes of a height that cover at least one leaf."""
    return -(-size // fanout**height)


@dataclass(frozen=True, kw_only=True)
class Tree(Family):
    """The family of levels: member i asks for the node of height `heights[i]` above the value."""

    kind: ClassVar[str] = "tree"
    unit: ClassVar[str] = "group"
    checks_batches: ClassVar[bool] = True

    size: int
    fanout: int
    heights: tuple[int, ...]
    mechanisms: tuple[Device, ...]
    weights: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the shape; without weights, all levels are drawn alike."""
        self._set("size", _large("size", self.size))
        self._set("fanout", _large("fanout", self.fanout))
        self._set("heights", _tuple("heights", self.heights))
        self._set("mechanisms", as_members(self.kind, self.mechanisms, MAX_LEVELS))
        self._set("weights", _tuple("weights", self.weights) or (1,) * len(self.mechanisms))
        if len(self.heights) != len(self.mechanisms):
            raise InvalidSpec("tree: heights and mechanisms must be as many, one of each per level")
        for height in self.heights:
            _whole("heights", height, 0, MAX_LEVELS)
        if list(self.heights) != sorted(set(self.heights), reverse=True):
            raise InvalidSpec("tree: heights must fall from level to level, the coarsest first")
        for height, mechanism in zip(self.heights, self.mechanisms, strict=True):
            self._check_level(height, mechanism)

    def _check_level(self, height: int, mechanism: Device) -> None:
        nodes, values = node_count(self.size, self.fanout, height), mechanism.stated_size
        if nodes < 2 or values != nodes:
            raise InvalidSpec(
                f"tree: the size of the mechanism of height {height} is {values}, "
                f"must be its {nodes} nodes, of which there must be at least two"
            )

    def __len__(self) -> int:
        """Number of levels."""
        return len(self.heights)

    def view(self, i: int) -> Callable[[Any], Any]:
        """The node above a leaf."""
        width = self.fanout ** self.heights[i]
        return lambda value: _above(indices_of(self.kind, value, self.size), width)

    def mechanism(self, i: int) -> Device:
        """The mechanism of a level."""
        return self.mechanisms[i]

    def answer_sizes(self) -> tuple[int, ...]:
        """The size of the only domain, as a tuple."""
        return (self.size,)

    def of_answers(self, answers: Sequence[int]) -> int:
        """The index of the answer."""
        return answers[0]

    @property
    def domain_size(self) -> int:
        """Number of leaves."""
        return self.size

    def check_value(self, value: Any) -> None:
        """Refuse what is no leaf."""
        indices_of(self.kind, value, self.size)

    def levels(self) -> Levels:
        """One tree, a level per member."""
        return Levels((self.size,), (self.fanout,), tuple((height,) for height in self.heights))

    def describe(self, *, spelled: bool = False, several: bool = False) -> str:
        """What the device does with the answer, in plain words for its owner."""
        del several
        if spelled:
            return (
                f"The device draws one of {len(self)} lengths and reports, with the whole epsilon, on the beginning of "
                "the answer of that length: one hash function, one noisy hash."
            )
        return (
            f"Neighbouring answers are grouped in {len(self)} levels, from coarse to fine. The device draws one level "
            "and reports, with the whole epsilon, on the group that holds the answer there."
        )


def indices_of(kind: str, value: Any, size: int) -> Any:
    """An index, or an array of indices; other values are refused by an error that does not show them."""
    if getattr(value, "ndim", 0):
        inside = value.dtype.kind in "iu" and (not value.size or (value.min() >= 0 and int(value.max()) < size))
        found = value if inside else None
    else:
        found = None if isinstance(value, str) else as_integer(value)
        found = found if found is not None and 0 <= found < size else None
    if found is None:
        raise InvalidValue(f"{kind}: the value is outside the domain, must be an integer from 0 to {size - 1}")
    return found


def _above(leaves: Any, width: int) -> Any:
    """The nodes of this width above leaves; widths beyond signed integers need unsigned leaves."""
    return (leaves.astype("uint64") if width >> 62 and getattr(leaves, "ndim", 0) else leaves) // width


def _tuple(name: str, given: Any) -> tuple[Any, ...]:
    if not isinstance(given, (list, tuple)):
        raise InvalidSpec(f"tree: {name} must be a list of integers, one per level")
    return tuple(cast("Sequence[Any]", given))


def _large(name: str, value: Any) -> int:
    """An integer from 2 to 2^64; from 2^53 on it is written as digit text."""
    number = as_integer(value) if isinstance(value, str) else value
    short = isinstance(value, str) and (number or 0) < _JSON_LIMIT
    _whole(name, None if short else number, 2, MAX_SIZE)
    return cast("int", number)


def _whole(name: str, value: Any, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise InvalidSpec(f"tree: {name} must be an integer from {low} to {high}")
