"""Views of several attributes: each respondent reports its combination of answers to a few of them.

A view is a set of attributes. Its cells are the combinations of their answers, in mixed radix with the first attribute
as the most significant digit. Frequency oracles over such cells make this all k-way marginals, the views of CALM, or
the whole table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, cast

from tacit.device.base import Device, as_integer
from tacit.device.families.compose import answers_of
from tacit.device.families.family import Family, Levels, as_members
from tacit.errors import InvalidSpec, InvalidValue

MAX_ATTRIBUTES = 1024
MAX_VIEWS = 1 << 16
MAX_CELLS = 1 << 40


def check_sizes(kind: str, sizes: Any) -> tuple[int, ...]:
    """Numbers of answers of the attributes; an attribute with one answer carries nothing and is dropped by tasks."""
    found = tuple(cast("Sequence[Any]", sizes)) if isinstance(sizes, (list, tuple)) else ()
    if not 1 <= len(found) <= MAX_ATTRIBUTES:
        raise InvalidSpec(f"{kind}: sizes must be a list of 1 to {MAX_ATTRIBUTES} integers, one per attribute")
    if not all(type(size) is int and 2 <= size <= MAX_CELLS for size in found):
        raise InvalidSpec(
            f"{kind}: sizes must be integers from 2 to {MAX_CELLS}; drop an attribute with one value, it says nothing"
        )
    return found


def attribute_of(kind: str, value: Any, attribute: int, sizes: Sequence[int]) -> Any:
    """One answer out of a list, or a row of a batch; other values are refused by an error that does not show them."""
    answer, size = answers_of(kind, value, len(sizes))[attribute], sizes[attribute]
    if getattr(answer, "ndim", 0):
        inside = answer.dtype.kind in "iu" and (not answer.size or (answer.min() >= 0 and answer.max() < size))
        found = answer if inside else None
    else:
        found = None if isinstance(answer, str) else as_integer(answer)
        found = found if found is not None and 0 <= found < size else None
    if found is None:
        raise InvalidValue(
            f"{kind}: the answer to attribute {attribute} is outside its domain, must be 0 to {size - 1}"
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Views(Family):
    """The family of views: member i asks for the cell of `views[i]`.

    Views with as many cells share a mechanism, so `mechanisms` holds one for every number of cells, the smallest
    first. An attribute may be in no view; what is asked about it is then not known.
    """

    kind: ClassVar[str] = "views"
    together: ClassVar[bool] = True
    unit: ClassVar[str] = "combination"
    checks_batches: ClassVar[bool] = True

    sizes: tuple[int, ...]
    views: tuple[tuple[int, ...], ...]
    mechanisms: tuple[Device, ...]
    weights: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the shape; without weights, all views are drawn alike."""
        self._set("sizes", check_sizes(self.kind, self.sizes))
        self._set("views", _views(self.views, len(self.sizes)))
        self._set("mechanisms", as_members(self.kind, self.mechanisms, MAX_VIEWS))
        if not isinstance(self.weights, (list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec("views: weights must be a list of positive integers, one per view")
        self._set("weights", tuple(self.weights) or (1,) * len(self.views))
        cells = sorted({self.cells(i) for i in range(len(self.views))})
        if cells[-1] > MAX_CELLS:
            raise InvalidSpec(f"views: a view has more than {MAX_CELLS} cells; ask for fewer attributes together")
        if [mechanism.stated_size for mechanism in self.mechanisms] != cells:
            raise InvalidSpec(
                f"views: the sizes of the mechanisms must be {cells[:8]}, the numbers of cells of the views, rising"
            )

    def __len__(self) -> int:
        """Number of views."""
        return len(self.views)

    def cells(self, i: int) -> int:
        """Number of cells of a view."""
        return prod(self.sizes[attribute] for attribute in self.views[i])

    @cached_property
    def _by_cells(self) -> dict[int, Device]:
        return {mechanism.value_count: mechanism for mechanism in self.mechanisms}

    def check_value(self, value: Any) -> None:
        """Check all answers at once: which one is wrong must not depend on which view is drawn."""
        for attribute in range(len(self.sizes)):
            attribute_of(self.kind, value, attribute, self.sizes)

    def answer_sizes(self) -> tuple[int, ...]:
        """How many answers every attribute has."""
        return self.sizes

    def view(self, i: int) -> Callable[[Any], Any]:
        """The cell of a list of answers, or of an array whose first axis is the attribute."""

        def cell(value: Any) -> Any:
            found: Any = 0
            for attribute in self.views[i]:
                found = found * self.sizes[attribute] + attribute_of(self.kind, value, attribute, self.sizes)
            return found

        return cell

    def mechanism(self, i: int) -> Device:
        """The mechanism of a view."""
        return self._by_cells[self.cells(i)]

    def levels(self) -> Levels:
        """Trees of one level: an attribute of a view is reported as it is, any other as its root."""
        attributes = range(len(self.sizes))
        heights = tuple(tuple(int(a not in view) for a in attributes) for view in self.views)
        return Levels(self.sizes, self.sizes, heights)

    def tables(self) -> list[tuple[int, ...]]:
        """The views."""
        return list(self.views)

    def describe(self, *, spelled: bool = False, several: bool = False) -> str:
        """What the device does with the answers, in plain words for its owner."""
        del spelled, several
        return (
            f"The device draws one of {len(self):,} lists of at most {max(map(len, self.views))} questions and "
            "reports, with the whole epsilon, on the combination of the answers to these. It says nothing about the "
            "other questions."
        )


def _views(given: Any, attributes: int) -> tuple[tuple[int, ...], ...]:
    """Different sets of attributes, each rising."""
    views = tuple(cast("Sequence[Any]", given)) if isinstance(given, (list, tuple)) else ()
    if not 1 <= len(views) <= MAX_VIEWS:
        raise InvalidSpec(f"views: views must be a list of 1 to {MAX_VIEWS} lists of attributes")
    found: list[tuple[int, ...]] = []
    for view in views:
        members = tuple(cast("Sequence[Any]", view)) if isinstance(view, (list, tuple)) else ()
        plain = members and all(type(member) is int and 0 <= member < attributes for member in members)
        if not plain or list(members) != sorted(set(members)):
            raise InvalidSpec(f"views: a view must be a rising list of attributes below {attributes}")
        found.append(members)
    if len(set(found)) < len(found):
        raise InvalidSpec("views: a view is listed twice; give it a larger weight instead")
    return tuple(found)
