"""Products of hierarchies over a few ordered attributes: each respondent reports one node per attribute.

The value is the index of a combination of answers, the first attribute its most significant digit (see
`device.domains.product`). Member i asks for the combination of the nodes of height `heights[i][a]` above the answer to
attribute a; the root of an attribute, at which all its answers are one node, makes the member a margin of the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, cast

from tacit.device.base import Device
from tacit.device.families.family import Family, Levels, as_members
from tacit.device.families.levels import indices_of, node_count
from tacit.errors import InvalidSpec

MAX_ATTRIBUTES = 8
MAX_MEMBERS = 1 << 12
MAX_SIZE = 1 << 40
MAX_HEIGHT = 40


@dataclass(frozen=True, kw_only=True)
class Grid(Family):
    """The family of combined levels: member i asks for the nodes of heights `heights[i]`, one per attribute."""

    kind: ClassVar[str] = "grid"
    together: ClassVar[bool] = True
    unit: ClassVar[str] = "combination"
    checks_batches: ClassVar[bool] = True

    sizes: tuple[int, ...]
    fanouts: tuple[int, ...]
    heights: tuple[tuple[int, ...], ...]
    mechanisms: tuple[Device, ...]
    weights: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the shape; without weights, all members are drawn alike."""
        self._set("sizes", _integers("sizes", self.sizes, 2, MAX_SIZE))
        self._set("fanouts", _integers("fanouts", self.fanouts, 2, MAX_SIZE))
        if not 1 <= len(self.sizes) <= MAX_ATTRIBUTES or len(self.sizes) != len(self.fanouts):
            raise InvalidSpec(
                f"grid: sizes and fanouts must be as many, one of each per attribute, at most {MAX_ATTRIBUTES}"
            )
        if self.size > MAX_SIZE:
            raise InvalidSpec(f"grid: sizes have {self.size} combinations, must be at most {MAX_SIZE}")
        self._set("mechanisms", as_members(self.kind, self.mechanisms, MAX_MEMBERS))
        self._set("weights", _listed("weights", self.weights) or (1,) * len(self.mechanisms))
        self._check_members()

    def _check_members(self) -> None:
        heights = tuple(_integers("heights", item, 0, MAX_HEIGHT) for item in _listed("heights", self.heights))
        self._set("heights", heights)
        if len(heights) != len(self.mechanisms) or any(len(item) != len(self.sizes) for item in heights):
            raise InvalidSpec("grid: heights must be a list per mechanism with a height per attribute")
        if list(heights) != sorted(set(heights), reverse=True):
            raise InvalidSpec("grid: heights must fall from member to member, compared attribute by attribute")
        for i, mechanism in enumerate(self.mechanisms):
            shape = zip(self.sizes, self.fanouts, heights[i], strict=True)
            if any(height and node_count(size, fanout, height - 1) == 1 for size, fanout, height in shape):
                raise InvalidSpec(
                    "grid: a height is above the root of its attribute, at which all answers are one node"
                )
            nodes = prod(self.nodes(i))
            if nodes < 2 or mechanism.value_count != nodes:
                raise InvalidSpec(
                    f"grid: the mechanism of heights {list(heights[i])} is for {mechanism.value_count} values, "
                    f"must be for its {nodes} nodes, of which there must be at least two"
                )

    @property
    def size(self) -> int:
        """Number of combinations of answers."""
        return prod(self.sizes)

    def nodes(self, i: int) -> tuple[int, ...]:
        """How many nodes each attribute has for member i."""
        shape = zip(self.sizes, self.fanouts, self.heights[i], strict=True)
        return tuple(node_count(size, fanout, height) for size, fanout, height in shape)

    def __len__(self) -> int:
        """Number of members."""
        return len(self.heights)

    def of_answers(self, answers: Sequence[int]) -> int:
        """What a device is given: the index of the combination of answers."""
        index = 0
        for answer, size in zip(answers, self.sizes, strict=True):
            index = index * size + answer
        return index

    def view(self, i: int) -> Callable[[Any], Any]:
        """The combination of nodes above a combination of answers."""
        widths = [fanout**height for fanout, height in zip(self.fanouts, self.heights[i], strict=True)]
        shape = tuple(zip(self.sizes, self.nodes(i), widths, strict=True))

        def above(value: Any) -> Any:
            rest, index, place = indices_of(self.kind, value, self.size), 0, 1
            for size, nodes, width in reversed(shape):
                index = index + rest % size // width * place
                rest, place = rest // size, place * nodes
            return index

        return above

    def mechanism(self, i: int) -> Device:
        """The mechanism of member i."""
        return self.mechanisms[i]

    def answer_sizes(self) -> tuple[int, ...]:
        """How many answers every attribute has."""
        return self.sizes

    @property
    def domain_size(self) -> int:
        """Number of combinations of answers."""
        return self.size

    def check_value(self, value: Any) -> None:
        """Refuse what is the index of no combination."""
        indices_of(self.kind, value, self.size)

    def levels(self) -> Levels:
        """A tree over every attribute, combined levels of them per member."""
        return Levels(self.sizes, self.fanouts, self.heights)

    def tables(self) -> list[tuple[int, ...]]:
        """The attributes of which a member reports more than the root, each set once."""
        found = (tuple(a for a, count in enumerate(self.nodes(i)) if count > 1) for i in range(len(self)))
        return list(dict.fromkeys(found))

    def describe(self, *, spelled: bool = False, several: bool = False) -> str:
        """What the device does with the answers, in plain words for its owner."""
        del spelled
        if several:
            return (
                f"The device draws one of {len(self):,} ways to look at the answers: which questions count, and how "
                "coarsely neighbouring answers are grouped. It reports, with the whole epsilon, on the combination "
                "that holds them."
            )
        return (
            f"Neighbouring answers are grouped in {len(self):,} ways, from coarse to fine. The device draws one of "
            "them and reports, with all of this epsilon, on the group that holds the answer there."
        )


def _listed(name: str, given: Any) -> tuple[Any, ...]:
    if not isinstance(given, (list, tuple)):
        raise InvalidSpec(f"grid: {name} must be a list")
    return tuple(cast("Sequence[Any]", given))


def _integers(name: str, given: Any, low: int, high: int) -> tuple[int, ...]:
    items = _listed(name, given)
    if not all(type(item) is int and low <= item <= high for item in items):
        raise InvalidSpec(f"grid: {name} must be lists of integers from {low} to {high}, one per attribute")
    return items
