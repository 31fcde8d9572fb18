"""The queries that are understood, as plain values: nothing of the text of a query goes further than this."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A number, text or truth value."""

    value: int | float | str | bool


@dataclass(frozen=True)
class Arithmetic:
    """A sum, difference, product or quotient."""

    sign: str
    left: "Expression"
    right: "Expression"


Expression = Column | Constant | Arithmetic


@dataclass(frozen=True)
class Compare:
    """`=`, `<>`, `<`, `<=`, `>` or `>=`."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Among:
    """`IN` a list of constants."""

    item: Expression
    values: tuple[Constant, ...]


@dataclass(frozen=True)
class Missing:
    """`IS NULL`."""

    item: Expression


@dataclass(frozen=True)
class Like:
    """`LIKE` a pattern."""

    item: Expression
    pattern: str
    ignore_case: bool = False


@dataclass(frozen=True)
class Truth:
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True)
class Both:
    """`AND`."""

    items: "tuple[Condition, ...]"


@dataclass(frozen=True)
class Either:
    """`OR`."""

    items: "tuple[Condition, ...]"


@dataclass(frozen=True)
class Negation:
    """`NOT`."""

    item: "Condition"


Condition = Compare | Among | Missing | Like | Truth | Both | Either | Negation


@dataclass(frozen=True)
class Aggregate:
    """count, sum, avg, var_pop, var_samp, stddev_pop, stddev_samp or quantile of rows that meet a condition."""

    function: str
    argument: Expression | None
    condition: Condition
    text: str
    share: float = 0.5
    """Of a quantile: the share of rows that lie at or below it."""


@dataclass(frozen=True)
class Output:
    """A column of the answer: a group's column or an aggregate, and its name."""

    name: str
    item: Column | Aggregate


@dataclass(frozen=True)
class Order:
    """A column of the answer by its place, and the direction."""

    place: int
    descending: bool


@dataclass(frozen=True)
class Select:
    """A whole query."""

    outputs: tuple[Output, ...]
    condition: Condition
    groups: tuple[Column, ...]
    order: tuple[Order, ...]
    limit: int | None
    offset: int
    explain: bool = False

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates, in order."""
        return tuple(output.item for output in self.outputs if isinstance(output.item, Aggregate))


def columns_in(item: "Expression | Condition | None") -> Iterator[str]:
    """The names of all columns of an expression or a condition."""
    match item:
        case Column(name):
            yield name
        case Arithmetic(_, left, right) | Compare(_, left, right):
            yield from columns_in(left)
            yield from columns_in(right)
        case Among(inner, _) | Missing(inner) | Like(inner, _, _):
            yield from columns_in(inner)
        case Both(items) | Either(items):
            for each in items:
                yield from columns_in(each)
        case Negation(inner):
            yield from columns_in(inner)
        case _:
            return
