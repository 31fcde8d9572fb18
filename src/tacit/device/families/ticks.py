"""Things to tick: each respondent reports whether one thing of a list, drawn for it, is among those it ticked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.device.base import Device
from tacit.device.domains.items import places_of
from tacit.device.families.compose import MAX_MEMBERS
from tacit.device.families.family import Family, as_members
from tacit.errors import InvalidSpec


@dataclass(frozen=True, kw_only=True)
class Ticks(Family):
    """The family of ticks: member i asks whether item i is in the set, 1 for yes.

    A value is a set of items; the one mechanism in `mechanisms` is over two values and serves every item.
    """

    kind: ClassVar[str] = "ticks"
    unit: ClassVar[str] = "tick"
    holds_sets: ClassVar[bool] = True
    checks_batches: ClassVar[bool] = True

    size: int
    mechanisms: tuple[Device, ...]

    def __post_init__(self) -> None:
        """Check the number of items and the mechanism of each."""
        if type(self.size) is not int or not 1 <= self.size <= MAX_MEMBERS:
            raise InvalidSpec(f"ticks: size must be an integer from 1 to {MAX_MEMBERS}")
        self._set("mechanisms", as_members(self.kind, self.mechanisms, 1))
        if self.mechanisms[0].stated_size != 2:
            raise InvalidSpec("ticks: mechanisms must hold one over two values, for ticked or not")

    def __len__(self) -> int:
        """Number of items."""
        return self.size

    @property
    def weights(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] - computed, no field
        """All items are drawn alike."""
        return (1,) * self.size

    def view(self, i: int) -> Callable[[Any], Any]:
        """Whether an item is in a set, or its row in an array of 0 and 1 with a row per item."""
        return lambda value: value[i] if getattr(value, "ndim", 0) else int(i in self._items(value))

    def _items(self, value: Any) -> tuple[int, ...]:
        return places_of(self.kind, value, self.size)

    def check_value(self, value: Any) -> None:
        """Refuse what is no set of items; an array of 0 and 1 was made of checked sets."""
        if not getattr(value, "ndim", 0):
            self._items(value)

    def mechanism(self, i: int) -> Device:
        """The mechanism of every item."""
        del i
        return self.mechanisms[0]

    def answer_sizes(self) -> tuple[int, ...]:
        """Two answers per item."""
        return (2,) * self.size

    def of_answers(self, answers: Sequence[int]) -> tuple[int, ...]:
        """The set of the items that are answered with 1."""
        return tuple(place for place, answer in enumerate(answers) if answer)

    @property
    def domain_size(self) -> int:
        """Number of items, which is the size of a domain of sets."""
        return self.size

    def describe(self, *, spelled: bool = False, several: bool = False) -> str:
        """What the device does with the answer, in plain words for its owner."""
        del spelled, several
        return (
            f"The device draws one of the {self.size:,} things on the list and reports, with all of epsilon, whether "
            "that one is ticked. It says nothing about the others."
        )
