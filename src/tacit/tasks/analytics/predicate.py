"""Conditions that mix public and private columns: rows fall into parts, and each part into a region of private values.

NOT is pushed down to comparisons first. What remains is built from comparisons by AND and OR alone, so that a public
comparison that is unknown, because its column is missing, counts as false wherever it stands.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery
from tacit.tasks.analytics.public import Public
from tacit.tasks.analytics.regions import Region, Spans, as_spans, everything, nothing, slab
from tacit.tasks.analytics.schema import Dimension, Schema
from tacit.tasks.analytics.scores import Scores
from tacit.tasks.analytics.syntax import (
    Among,
    Both,
    Column,
    Compare,
    Condition,
    Constant,
    Either,
    Expression,
    Missing,
    Negation,
    Truth,
    columns_in,
)

Mask = npt.NDArray[np.bool_]
MAX_PUBLIC = 10
MAX_PARTS = 64
_FEW_PUBLIC = 4
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Known:
    """A condition on public columns alone, by its place in a list."""

    place: int


@dataclass(frozen=True)
class Joined:
    """AND or OR of other formulas."""

    every: bool
    items: "tuple[Formula, ...]"


Formula = Known | Region | Joined


@dataclass(frozen=True, eq=False)
class Part:
    """Rows, all of them where the mask is None, and the private values that are asked of them."""

    mask: Mask | None
    region: Region | Scores
    """Private values that count 1, or that count differently."""

    @property
    def is_known(self) -> bool:
        """Whether nothing has to be estimated."""
        return self.region.is_full or self.region.is_empty


def pushed(item: Condition, *, negated: bool = False) -> Condition:
    """The same condition with NOT at comparisons only."""
    match item:
        case Negation(inner):
            return pushed(inner, negated=not negated)
        case Both(items) | Either(items):
            parts = tuple(pushed(part, negated=negated) for part in items)
            return Both(parts) if isinstance(item, Both) != negated else Either(parts)
        case Truth(value):
            return Truth(value != negated)
        case Compare(sign, left, right):
            return Compare(_OPPOSITE[sign], left, right) if negated else item
        case _:
            return Negation(item) if negated else item


def _any_of(codes: npt.NDArray[np.int64], some: list[int]) -> Mask:
    """Rows whose code is one of some."""
    return codes == some[0] if len(some) == 1 else np.isin(codes, some)


class Conditions:
    """Turns conditions into parts, given the schema and the public rows."""

    def __init__(self, schema: Schema, public: Public) -> None:
        """Nothing is read yet."""
        self._schema = schema
        self._public = public
        self._sizes = schema.kept_sizes

    def parts(self, condition: Condition) -> list[Part]:
        """Disjoint sets of rows that are asked for something, each with its region."""
        known: list[Condition] = []
        formula = self._formula(pushed(condition), known)
        if not known:
            return [Part(None, self._region(formula, 0))]
        if len(known) > MAX_PUBLIC:
            raise InvalidQuery(
                f"sql: {len(known)} public conditions are mixed with private ones by OR, must be at most {MAX_PUBLIC}"
            )
        codes = np.zeros(self._public.rows.n, np.int64)
        for i, item in enumerate(known):
            codes |= self._public.mask(item).astype(np.int64) << i
        asked: dict[Region, list[int]] = {}
        for code in np.flatnonzero(np.bincount(codes)).tolist():
            asked.setdefault(self._region(formula, code), []).append(code)
        if len(asked) > MAX_PARTS:
            raise InvalidQuery(
                f"sql: public conditions under OR ask for {len(asked)} different sets of private values, must be at "
                f"most {MAX_PARTS}; ask for its parts one by one"
            )
        return [Part(_any_of(codes, some), region) for region, some in asked.items() if not region.is_empty]

    def regions(self, condition: Condition) -> list[Region]:
        """The regions that a condition asks for, whichever public conditions hold; types are checked on the rows."""
        known: list[Condition] = []
        formula = self._formula(pushed(condition), known)
        for item in known:
            self._public.mask(item)
        # Of many public conditions, all or all but one are taken to hold.
        every = (1 << len(known)) - 1
        codes = range(every + 1) if len(known) <= _FEW_PUBLIC else [every, *(every ^ 1 << i for i in range(len(known)))]
        return list(dict.fromkeys(self._region(formula, code) for code in codes))

    def _formula(self, item: Condition, known: list[Condition]) -> Formula:
        names = set(columns_in(item))
        private = {name for name in names if self._schema.dimension(name) is not None}
        if isinstance(item, Truth):
            return everything(self._sizes) if item.value else nothing(self._sizes)
        if not private:
            known.append(item)
            return Known(len(known) - 1)
        if isinstance(item, (Both, Either)):
            return self._joined(item, known)
        if len(names) > 1:
            raise InvalidQuery(f"sql: {sorted(private)[0]} is private, compare it with constants, not with columns")
        return self._private(item, next(iter(private)))

    def _joined(self, item: "Both | Either", known: list[Condition]) -> Joined:
        """Public items side by side are one condition, which is looked at once."""
        kind = type(item)
        public = tuple(i for i in item.items if not self._names_private(i) and not isinstance(i, Truth))
        others = [i for i in item.items if i not in public]
        formulas = [self._formula(i, known) for i in others]
        if public:
            formulas.append(self._formula(public[0] if len(public) == 1 else kind(public), known))
        return Joined(kind is Both, tuple(formulas))

    def _names_private(self, item: Condition) -> bool:
        return any(self._schema.dimension(name) is not None for name in columns_in(item))

    def _region(self, formula: Formula, code: int) -> Region:
        if isinstance(formula, Known):
            return everything(self._sizes) if code >> formula.place & 1 else nothing(self._sizes)
        if isinstance(formula, Region):
            return formula
        parts = [self._region(item, code) for item in formula.items]
        return reduce(lambda a, b: a & b if formula.every else a | b, parts)

    def _private(self, item: Condition, name: str) -> Region:
        place = self._schema.dimension(name)
        assert place is not None
        dimension = self._schema.dimensions[place]
        if isinstance(item, Negation):
            return ~self._private(item.item, name)
        if isinstance(item, Compare):
            return self._compare(item, dimension, place)
        if isinstance(item, Among) and isinstance(item.item, Column):
            values = dict.fromkeys(constant.value for constant in item.values)
            found = [span for value in values for span in dimension.spans("=", value)]
            return self._slab(place, as_spans(found))
        if isinstance(item, Missing):
            return nothing(self._sizes)
        raise InvalidQuery(f"sql: {name} is private, compare it with =, <>, <, >, BETWEEN or IN")

    def _compare(self, item: Compare, dimension: Dimension, place: int) -> Region:
        return self._slab(place, dimension.spans(*_oriented(item, dimension.name)))

    def _slab(self, place: int, spans: Spans) -> Region:
        if place not in self._schema.kept:
            return everything(self._sizes) if spans else nothing(self._sizes)
        return slab(self._sizes, self._schema.kept.index(place), spans)


def one_value(schema: Schema, place: int, index: int) -> Region:
    """One value of a private column."""
    if place not in schema.kept:
        return everything(schema.kept_sizes)
    return slab(schema.kept_sizes, schema.kept.index(place), ((index, index),))


def _oriented(item: Compare, name: str) -> tuple[str, int | float | str | bool]:
    """Sign and constant of a comparison, as if its column stood first."""
    left: Expression = item.left
    right: Expression = item.right
    if isinstance(left, Column) and isinstance(right, Constant):
        return item.sign, right.value
    if isinstance(right, Column) and isinstance(left, Constant):
        return _MIRRORED[item.sign], left.value
    raise InvalidQuery(f"sql: {name} is private, compare it with a constant; no arithmetic with it is answered")
