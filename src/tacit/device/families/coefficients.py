"""Hadamard coefficients of several attributes: each respondent reports one sign.

Every attribute is written in binary, ceil(log2 size) bits. A coefficient is a set of at most k attributes with a
non-zero mask on the bits of each; its sign is the parity of the masked bits. Those of up to k attributes are exactly
what any table over k of them needs (INP-HT; Cormode, Kulkarni and Srivastava, SIGMOD 2018). They are ranked: by the
number of attributes, then by the attributes, then by the masks; none is ever listed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations
from typing import Any, ClassVar

from tacit.device.base import Device
from tacit.device.families.compose import MAX_MEMBERS
from tacit.device.families.family import Family, as_members
from tacit.device.families.views import attribute_of, check_sizes
from tacit.errors import InvalidSpec

Masks = tuple[tuple[int, int], ...]
"""A coefficient: attributes, rising, each with a mask on its bits that is not zero."""


@dataclass(frozen=True, kw_only=True)
class Coefficients(Family):
    """The family of coefficients of one to k attributes; `by_order[j - 1]` is the weight of each of those of j."""

    kind: ClassVar[str] = "coefficients"
    together: ClassVar[bool] = True
    unit: ClassVar[str] = "sign"
    checks_batches: ClassVar[bool] = True

    sizes: tuple[int, ...]
    k: int
    mechanisms: tuple[Device, ...]
    by_order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the shape; without weights, all coefficients are drawn alike."""
        self._set("sizes", check_sizes(self.kind, self.sizes))
        if type(self.k) is not int or not 1 <= self.k <= len(self.sizes):
            raise InvalidSpec(f"coefficients: k must be an integer from 1 to the {len(self.sizes)} attributes")
        self._set("mechanisms", as_members(self.kind, self.mechanisms, 1))
        if self.mechanisms[0].stated_size != 2:
            raise InvalidSpec("coefficients: mechanisms must hold one over two values, for the sign")
        if not isinstance(self.by_order, (list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec("coefficients: by_order must be a list of integers, one per number of attributes")
        self._set("by_order", tuple(self.by_order) or (1,) * self.k)
        if len(self.by_order) != self.k or not all(type(w) is int and w >= 1 for w in self.by_order):
            raise InvalidSpec("coefficients: by_order must hold one positive integer per number of attributes")
        if len(self) > MAX_MEMBERS:
            raise InvalidSpec(
                f"coefficients: {len(self)} coefficients are more than {MAX_MEMBERS}; lower k, or ask for views (calm)"
            )

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """Non-zero masks of every attribute: 2^bits - 1."""
        return tuple((1 << (size - 1).bit_length()) - 1 for size in self.sizes)

    @cached_property
    def _ways(self) -> list[list[int]]:
        """Coefficients of j attributes among those from a on: row a, column j."""
        ways = [[1] + [0] * self.k]
        for masks in reversed(self.masks):
            below = ways[-1]
            ways.append([1] + [below[j] + masks * below[j - 1] for j in range(1, self.k + 1)])
        return ways[::-1]

    @cached_property
    def orders(self) -> tuple[int, ...]:
        """How many coefficients have one, two, ... k attributes."""
        return tuple(self._ways[0][1:])

    def __len__(self) -> int:
        """Number of coefficients."""
        return sum(self.orders)

    @property
    def weights(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] - computed, no field
        """The weight of every coefficient."""
        return self._weights

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        return tuple(w for w, count in zip(self.by_order, self.orders, strict=True) for _ in range(count))

    def member(self, i: int) -> Masks:
        """The coefficient of a rank: walk along the attributes, skipping as many ranks as each choice stands for."""
        ends = list(accumulate(self.orders))
        left = next(j for j, end in enumerate(ends, 1) if i < end)
        rest = i - (ends[left - 1] - self.orders[left - 1])
        found: list[tuple[int, int]] = []
        for attribute, masks in enumerate(self.masks):
            if not left:
                break
            each = self._ways[attribute + 1][left - 1]
            if rest < masks * each:
                found.append((attribute, 1 + rest // each))
                rest, left = rest % each, left - 1
            else:
                rest -= masks * each
        return tuple(found)

    def rank(self, member: Masks) -> int:
        """The rank of a coefficient, the inverse of `member`."""
        left = len(member)
        rank, chosen = sum(self.orders[: left - 1]), dict(member)
        for attribute, masks in enumerate(self.masks):
            if not left:
                break
            each = self._ways[attribute + 1][left - 1]
            if attribute in chosen:
                rank, left = rank + (chosen[attribute] - 1) * each, left - 1
            else:
                rank += masks * each
        return rank

    def check_value(self, value: Any) -> None:
        """Check all answers at once: which one is wrong must not depend on which coefficient is drawn."""
        for attribute in range(len(self.sizes)):
            attribute_of(self.kind, value, attribute, self.sizes)

    def answer_sizes(self) -> tuple[int, ...]:
        """How many answers every attribute has."""
        return self.sizes

    def view(self, i: int) -> Callable[[Any], Any]:
        """The parity of the masked bits of a list of answers: 0 is a sign of plus one."""
        member = self.member(i)

        def parity(value: Any) -> Any:
            ones: Any = 0
            for attribute, mask in member:
                answer = attribute_of(self.kind, value, attribute, self.sizes)
                for bit in range(mask.bit_length()):
                    if mask >> bit & 1:
                        ones = ones + (answer >> bit & 1)
            return ones & 1

        return parity

    def mechanism(self, i: int) -> Device:
        """The mechanism of every sign."""
        del i
        return self.mechanisms[0]

    def tables(self) -> list[tuple[int, ...]]:
        """All sets of k attributes."""
        return list(combinations(range(len(self.sizes)), self.k))

    def describe(self, *, spelled: bool = False, several: bool = False) -> str:
        """What the device does with the answers, in plain words for its owner."""
        del spelled, several
        return (
            f"The device draws one of {len(self):,} signs. Each is made, by a public rule, of the answers to at most "
            f"{self.k} questions: plus or minus. The device reports that one sign, with the whole epsilon."
        )
