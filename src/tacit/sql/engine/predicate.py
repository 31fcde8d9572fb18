"""Conditions that mix public and private columns: rows fall into parts, and every part asks for one private region.

For every row the public comparisons are known, so that the condition reduces to one on private columns alone:

    WHERE (day = 1 OR age < 30) AND city = 'b'        public: day; private: age, city

    code 0 (day <> 1)   rows where mask 0 holds   region: age < 30 AND city = 'b'
    code 1 (day = 1)    rows where mask 1 holds   region: city = 'b'

NOT is pushed down to comparisons first (De Morgan). What remains is built by AND and OR alone, which are monotone, so
that a comparison that is unknown in SQL's three-valued logic, because its column is NULL, may count as false.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from tacit.arrays import Mask
from tacit.errors import InvalidQuery
from tacit.sql.engine.public import RowEvaluator
from tacit.sql.engine.scores import Scores
from tacit.sql.parse.syntax import (
    Among,
    Both,
    ColumnRef,
    Compare,
    Condition,
    Constant,
    Either,
    Expression,
    Missing,
    Negation,
    TruthLiteral,
    columns_in,
    place_in,
)
from tacit.sql.schema.regions import Region, Spans, as_spans, everything, nothing, slab
from tacit.sql.schema.schema import Dimension, Schema

# Every subset of the public conditions may need a region of its own: 2^10 at most, of which those that occur count.
MAX_PUBLIC = 10
MAX_PARTS = 64
# Planning for a workload goes through all subsets of up to so many public conditions.
_FEW_PUBLIC = 4
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Known:
    """A condition on public columns alone: the index of its bit in the rows' codes."""

    place: int


@dataclass(frozen=True)
class Joined:
    """AND (`every`) or OR of other formulas."""

    every: bool
    items: "tuple[Formula, ...]"


Formula = Known | Region | Joined


@dataclass(frozen=True, eq=False)
class MaskedRegion:
    """A part: some rows (None: all), and the private region, or scores, that are asked of them."""

    mask: Mask | None
    region: Region | Scores
    """A region counts 1 inside and 0 outside; scores count a private number inside."""

    @property
    def is_known(self) -> bool:
        """Whether no report is needed, because the region holds all values or none."""
        return self.region.is_full or self.region.is_empty


def pushed(item: Condition, *, negated: bool = False) -> Condition:
    """Negation normal form: the same condition with NOT at comparisons only."""
    match item:
        case Negation(inner):
            return pushed(inner, negated=not negated)
        case Both(items) | Either(items):
            parts = tuple(pushed(part, negated=negated) for part in items)
            return Both(parts) if isinstance(item, Both) != negated else Either(parts)
        case TruthLiteral(value):
            return TruthLiteral(value != negated)
        case Compare(sign, left, right):
            return Compare(_OPPOSITE[sign], left, right) if negated else item
        case _:
            return Negation(item) if negated else item


def _any_of(codes: npt.NDArray[np.int64], some: list[int]) -> Mask:
    """The mask of rows whose code is one of these."""
    return codes == some[0] if len(some) == 1 else np.isin(codes, some)


class PrivateConditions:
    """The regions of conditions on private columns alone."""

    def __init__(self, schema: Schema) -> None:
        """Hold the schema; no rows are looked at."""
        self._schema = schema
        self._sizes = schema.kept_sizes

    def joined(self, item: Condition) -> Region:
        """The region of AND and OR, in negation normal form, of conditions on single private columns."""
        match item:
            case Both(items):
                return reduce(lambda a, b: a & b, map(self.joined, items), everything(self._sizes))
            case Either(items):
                return reduce(lambda a, b: a | b, map(self.joined, items), nothing(self._sizes))
            case TruthLiteral(value):
                return everything(self._sizes) if value else nothing(self._sizes)
            case _:
                return self.region(item, next(columns_in(item)))

    def region(self, item: Condition, name: str) -> Region:
        """The region of one condition on a private column alone."""
        place = self._schema.dimension(name)
        assert place is not None
        dimension = self._schema.dimensions[place]
        if isinstance(item, Negation):
            return ~self.region(item.item, name)
        if isinstance(item, Compare):
            return self._compare(item, dimension, place)
        if isinstance(item, Among) and isinstance(item.item, ColumnRef):
            found = [span for value in dict.fromkeys(item.values) for span in _spans(dimension, "=", value)]
            return self._slab(place, as_spans(found))
        # Private values are never NULL: a report always stands for a value of the domain.
        if isinstance(item, Missing):
            return nothing(self._sizes)
        raise InvalidQuery(
            f"sql: {name} is private, compare it with =, <>, <, >, BETWEEN or IN", code="0A000", position=place_in(item)
        )

    def _compare(self, item: Compare, dimension: Dimension, place: int) -> Region:
        return self._slab(place, _spans(dimension, *_oriented(item, dimension.name)))

    def _slab(self, place: int, spans: Spans) -> Region:
        if place not in self._schema.kept:
            return everything(self._sizes) if spans else nothing(self._sizes)
        return slab(self._sizes, self._schema.kept.index(place), spans)


@dataclass(frozen=True)
class OrderedRange:
    """A condition that asks for some values of one ordered private column, and nothing else of private ones."""

    name: str
    size: int
    """How many values the column has."""
    spans: Spans
    public: Condition
    """What the condition says of public columns."""


def ordered_range(schema: Schema, condition: Condition) -> OrderedRange | None:
    """The condition as a range of one ordered private column under a public condition; None if it is anything else."""
    items = _all_of(pushed(condition))
    private = [item for item in items if any(schema.dimension(name) is not None for name in columns_in(item))]
    names = {name for item in private for name in columns_in(item)}
    place = schema.dimension(next(iter(names))) if len(names) == 1 else None
    if place is None or place not in schema.kept or not schema.dimensions[place].is_ordinal:
        return None
    region = PrivateConditions(schema).joined(Both(tuple(private)))
    if region.is_full or region.is_empty:
        return None
    # The column is the only one that is restricted, so that one box holds the region.
    (box,) = region.boxes
    public = Both(tuple(item for item in items if item not in private))
    return OrderedRange(next(iter(names)), schema.dimensions[place].size, box[schema.kept.index(place)], public)


def _all_of(item: Condition) -> list[Condition]:
    """The operands of AND, nested ones too."""
    return [part for one in item.items for part in _all_of(one)] if isinstance(item, Both) else [item]


class Conditions:
    """Splits conditions into parts, for one schema and one piece of public rows."""

    def __init__(self, schema: Schema, public: RowEvaluator) -> None:
        """Hold schema and rows; columns are read when a condition names them."""
        self._schema = schema
        self._public = public
        self._sizes = schema.kept_sizes
        self._private = PrivateConditions(schema)

    def parts(self, condition: Condition) -> list[MaskedRegion]:
        """Disjoint sets of rows with their regions; rows whose region is empty are left out."""
        known: list[Condition] = []
        formula = self._formula(pushed(condition), known)
        if not known:
            return [MaskedRegion(None, self._region(formula, 0))]
        if len(known) > MAX_PUBLIC:
            raise InvalidQuery(
                f"sql: {len(known)} public conditions are mixed with private ones by OR, must be at most {MAX_PUBLIC}",
                code="54001",
            )
        # Bit i of a row's code: public condition i holds in that row.
        codes = np.zeros(self._public.rows.n, np.int64)
        for i, item in enumerate(known):
            codes |= self._public.mask(item).astype(np.int64) << i
        # Codes that lead to the same region are one part: its terms are then summed once.
        asked: dict[Region, list[int]] = {}
        for code in np.flatnonzero(np.bincount(codes)).tolist():
            asked.setdefault(self._region(formula, code), []).append(code)
        if len(asked) > MAX_PARTS:
            raise InvalidQuery(
                f"sql: public conditions under OR ask for {len(asked)} different sets of private values, must be at "
                f"most {MAX_PARTS}; ask for its parts one by one",
                code="54001",
            )
        return [MaskedRegion(_any_of(codes, some), region) for region, some in asked.items() if not region.is_empty]

    def regions(self, condition: Condition) -> list[Region]:
        """The regions that a condition may ask for, for planning a workload before there are rows.

        The public conditions are evaluated too, so that a type error shows at once.
        """
        known: list[Condition] = []
        formula = self._formula(pushed(condition), known)
        for item in known:
            self._public.mask(item)
        # Of many public conditions only the codes with all, or all but one of them true are looked at.
        every = (1 << len(known)) - 1
        codes = range(every + 1) if len(known) <= _FEW_PUBLIC else [every, *(every ^ 1 << i for i in range(len(known)))]
        return list(dict.fromkeys(self._region(formula, code) for code in codes))

    def _formula(self, item: Condition, known: list[Condition]) -> Formula:
        names = set(columns_in(item))
        private = {name for name in names if self._schema.dimension(name) is not None}
        if isinstance(item, TruthLiteral):
            return everything(self._sizes) if item.value else nothing(self._sizes)
        if not private:
            known.append(item)
            return Known(len(known) - 1)
        if isinstance(item, (Both, Either)):
            return self._joined(item, known)
        if len(names) > 1:
            raise InvalidQuery(
                f"sql: {sorted(private)[0]} is private, compare it with constants, not with columns",
                code="0A000",
                position=place_in(item),
            )
        return self._private.region(item, next(iter(private)))

    def _joined(self, item: "Both | Either", known: list[Condition]) -> Joined:
        """AND or OR; its public operands become one condition, so that they take one bit of the code and not many."""
        kind = type(item)
        public = tuple(i for i in item.items if not self._names_private(i) and not isinstance(i, TruthLiteral))
        others = [i for i in item.items if i not in public]
        formulas = [self._formula(i, known) for i in others]
        if public:
            formulas.append(self._formula(public[0] if len(public) == 1 else kind(public), known))
        return Joined(kind is Both, tuple(formulas))

    def _names_private(self, item: Condition) -> bool:
        return any(self._schema.dimension(name) is not None for name in columns_in(item))

    def _region(self, formula: Formula, code: int) -> Region:
        """The private region that is left of a formula once the public conditions are known."""
        if isinstance(formula, Known):
            return everything(self._sizes) if code >> formula.place & 1 else nothing(self._sizes)
        if isinstance(formula, Region):
            return formula
        parts = [self._region(item, code) for item in formula.items]
        return reduce(lambda a, b: a & b if formula.every else a | b, parts)


def one_value(schema: Schema, place: int, index: int) -> Region:
    """The region of one value of a private column; everything if the column has only one value."""
    if place not in schema.kept:
        return everything(schema.kept_sizes)
    return slab(schema.kept_sizes, schema.kept.index(place), ((index, index),))


def _spans(dimension: Dimension, sign: str, constant: Constant) -> Spans:
    """The values of a private column that satisfy a comparison; errors point to the constant in the text."""
    try:
        return dimension.spans(sign, constant.value)
    except InvalidQuery as error:
        raise error.at(constant.position) from None


def _oriented(item: Compare, name: str) -> tuple[str, Constant]:
    """Sign and constant of a comparison, mirrored where the constant stands first: 30 > age is age < 30."""
    left: Expression = item.left
    right: Expression = item.right
    if isinstance(left, ColumnRef) and isinstance(right, Constant):
        return item.sign, right
    if isinstance(right, ColumnRef) and isinstance(left, Constant):
        return _MIRRORED[item.sign], left
    raise InvalidQuery(
        f"sql: {name} is private, compare it with a constant; no arithmetic with it is answered",
        code="0A000",
        position=place_in(item),
    )
