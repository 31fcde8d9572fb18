"""Domains out of what people declare (a list of labels, a range, a domain itself), or out of the values themselves.

A domain that is read off the values tells them: which rare label occurred, how long the longest word is. It is good
enough to try things out, and the finding is marked as a simulation.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from tacit.device.domains.domain import Booleans, Categories, Domain, Ordered
from tacit.device.domains.items import Items
from tacit.device.domains.reals import Buckets, Integers, as_number
from tacit.device.domains.text import Text
from tacit.errors import InvalidSpec, InvalidValue
from tacit.library.columns import Column, plain
from tacit.library.text import as_date, text_of

MOST_DAYS = 1 << 16
BINS = 32
"""Buckets that floats are cut into where neither bins nor a domain is declared."""


_WITH_MISSING = ("histogram", "marginals")
"""The functions that take `missing=`."""


@dataclass(frozen=True)
class Scope:
    """A domain, the labels that answers show for its indices, and whether somebody declared it."""

    domain: Domain
    declared: bool
    labels: tuple[Any, ...] = ()
    """As they were declared, such as dates; empty where the domain's own labels are shown."""
    missing: str | None = None
    """The answer that missing values stand for."""

    def label(self, index: int) -> Any:
        """The label of an index."""
        return self.labels[index] if self.labels else self.domain.decode(index)

    def all_labels(self) -> list[Any]:
        """All labels in their order."""
        return list(self.labels) or self.domain.all_labels()

    def filled(self, value: Any) -> Any:
        """A value as the domain reads it: missing ones by their answer, dates and numbers by their label."""
        value = self.missing if value is None else value
        return text_of(value) if isinstance(self.domain, Ordered) else as_date(value)


def check_missing(who: str, missing: str | None, column: Column | None) -> None:
    """Refuse missing values that have no answer of their own, and a column without any value."""
    if column is None:
        return
    if not column.items:
        raise InvalidValue(f"{who}: there are no values; give one per respondent")
    if column.missing and missing is None:
        # Only labels can have one more answer; a number or a set that nobody gave is left out.
        other = ", or give them an answer of their own: missing='no answer'" if who in _WITH_MISSING else ""
        raise InvalidValue(
            f"{who}: {column.missing} of {len(column.items)} values are missing (None or NaN); leave them out{other}"
        )


def advice(domain: Domain, kinds: Collection[type[Any]] = ()) -> str:
    """What to do about values that a domain does not have, whose types are these."""
    if isinstance(domain, (Integers, Buckets)):
        if any(issubclass(kind, str) for kind in kinds):
            return "text is no number: convert it, such as values.astype(float), or count labels with tacit.histogram"
        if any(issubclass(kind, date) for kind in kinds):
            return "dates need dates as ends: tacit.ranges or tacit.quantiles with low='2024-01-01', high='2024-12-31'"
        return "clip them to the range, leave them out, or declare a wider range with low=… and high=…"
    if isinstance(domain, Categories):
        return (
            "leave them out, list their labels too (domain=[…]), or give them one answer together: "
            "domain=tacit.Categories(name, labels, other='another')"
        )
    if isinstance(domain, Text):
        return (
            f"this alphabet is {_spelled(domain)}: spell values like that, such as values.str.lower(), leave them out, "
            "or declare more: alphabet='printable' or 'bytes', length=…"
        )
    return "leave them out, or declare a domain that holds them: domain=…"


def _spelled(domain: Text) -> str:
    """An alphabet as one would write it."""
    known = {"lower": "'lower', a to z", "printable": "'printable', ASCII", "bytes": "'bytes', lengths count bytes"}
    return known.get(domain.alphabet, f"'{domain.alphabet[:30]}'")


def name_scope(
    who: str, name: str, declared: Any, column: Column | None, missing: str | None, *, ordered: bool
) -> Scope:
    """The scope of a question with labels: declared, or read off the values."""
    check_missing(who, missing, column)
    if isinstance(declared, Domain):
        return Scope(declared, True, missing=missing)
    # The type stands for its two values, as in a data frame.
    if declared is bool:
        declared = (False, True)
    if declared is not None:
        return _listed_scope(who, name, _labels(who, declared), missing, declared=True, ordered=ordered)
    if column is None:
        raise InvalidSpec(f"{who}: domain is missing; declare the answers before anybody is asked: domain=['a', 'b']")
    found, in_order = _found(who, column)
    # Types too: 0 and 1 equal False and True, and are shown as the numbers they are.
    if found == [False, True] and type(found[0]) is bool and missing is None:
        return Scope(Booleans(name), False)
    return _listed_scope(who, name, found, missing, declared=False, ordered=ordered or in_order)


def _labels(who: str, declared: Any) -> list[Any]:
    if isinstance(declared, (str, bytes)) or not isinstance(declared, Iterable):
        raise InvalidSpec(
            f"{who}: domain must be a list of labels such as ['a', 'b'], or a domain such as tacit.Categories"
        )
    if isinstance(declared, (set, frozenset)):
        raise InvalidSpec(f"{who}: domain is a set, which has no order that lasts; write domain=sorted(labels)")
    return [as_date(plain(item)) for item in cast("Iterable[Any]", declared)]


def _listed_scope(
    who: str, name: str, labels: list[Any], missing: str | None, *, declared: bool, ordered: bool
) -> Scope:
    """Labels as a domain, with one more for missing values where they have an answer of their own."""
    known = [*labels, *([] if missing is None or missing in labels else [missing])]
    if len(known) < 2:
        raise InvalidSpec(f"{who}: there is one answer only, which says nothing; declare all there may be: domain=[…]")
    texts = [text_of(label) for label in known]
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise InvalidSpec(f"{who}: a label is of type {type(wrong).__name__}, must be text, a whole number or a date")
    return Scope((Ordered if ordered else Categories)(name, tuple(texts)), declared, tuple(known), missing)


def _found(who: str, column: Column) -> tuple[list[Any], bool]:
    """The different values in order, and whether that order means something."""
    if column.categories:
        return list(column.categories), column.is_ordered
    held = {as_date(item) for item in column.items if item is not None}
    kinds: set[type[Any]] = {type(item) for item in held}
    if float in kinds:
        raise InvalidValue(
            f"{who}: values are numbers with fractions, which have no list of answers; take tacit.mean or tacit.ranges "
            "with low, high and bins, or round them"
        )
    # Both truth values, although one may not occur: a domain of one value says nothing.
    if kinds == {bool}:
        return [False, True], False
    if not kinds <= {int, bool} and not all(issubclass(kind, date) for kind in kinds) and kinds != {str}:
        raise InvalidValue(
            f"{who}: values are of types {', '.join(sorted(k.__name__ for k in kinds)) or 'nothing'}, must all be "
            "text, whole numbers, booleans or dates"
        )
    if any(issubclass(kind, date) for kind in kinds):
        # Days and moments do not compare with each other; written out they are in order.
        return sorted(held, key=text_of), True
    return sorted(held), kinds != {str}


def number_scope(
    who: str, name: str, declared: Any, column: Column | None, *, low: Any, high: Any, bins: int | None
) -> Scope:
    """The scope of a question with ordered answers: whole numbers, buckets of numbers, days, or labels in order."""
    if declared is not None:
        return name_scope(who, name, declared, column, None, ordered=True)
    check_missing(who, None, column)
    known = low is not None and high is not None
    if not known and column is not None and (column.categories or any(isinstance(x, str) for x in column.items)):
        return _ordered_labels(who, name, column)
    ends = read_ends(who, column, low, high)
    if isinstance(as_date(ends[0]), date):
        return _days(who, name, as_date(ends[0]), as_date(ends[1]), known)
    low_number, high_number = (end_number(who, end) for end in ends)
    if bins is None and low_number.denominator == high_number.denominator == 1 and not _fractions(column):
        return Scope(Integers(name, int(low_number), int(high_number)), known)
    # A number of buckets decides the error, so that it is nothing to choose silently once the ends are declared.
    if bins is None and known:
        raise InvalidSpec(f"{who}: numbers with fractions are counted in buckets; write bins=50, or round them")
    return Scope(buckets(who, name, low_number, high_number, BINS if bins is None else bins), known)


def _ordered_labels(who: str, name: str, column: Column) -> Scope:
    if not column.is_ordered:
        raise InvalidSpec(
            f"{who}: labels have no order of their own; declare it: domain=['never', 'sometimes', 'often']"
        )
    return _listed_scope(who, name, list(column.categories), None, declared=False, ordered=True)


def _fractions(column: Column | None) -> bool:
    return column is not None and any(isinstance(item, float) for item in column.items)


def read_ends(who: str, column: Column | None, low: Any, high: Any) -> tuple[Any, Any]:
    """The declared ends; one that is not is read off the values."""
    check_missing(who, None, column)
    if column is None and (low is None or high is None):
        raise InvalidSpec(f"{who}: low and high are missing; declare them before anybody is asked: low=0, high=100")
    low, high = _day(low), _day(high)
    if low is not None and high is not None:
        return low, high
    held = [as_date(item) for item in (column.items if column else ()) if item is not None]
    if any(isinstance(item, datetime) for item in held):
        raise InvalidValue(f"{who}: values have a time of day; take their days, such as values.dt.date")
    try:
        return (min(held) if low is None else low), (max(held) if high is None else high)
    except (ValueError, TypeError):
        raise InvalidValue(f"{who}: values must be numbers or dates, all of one type, and at least one") from None


def _day(end: Any) -> Any:
    """An end that is written as a day, such as 2024-01-31, as that day."""
    try:
        return date.fromisoformat(end) if isinstance(end, str) and len(end) == len("2024-01-31") else end
    except ValueError:
        return end


def end_number(who: str, end: Any) -> Fraction:
    """An end as an exact number."""
    number = as_number(end.item() if hasattr(end, "item") else end)
    if number is None:
        raise InvalidSpec(f"{who}: low and high must be finite numbers or dates, such as low=0, high=100")
    return number


def _days(who: str, name: str, first: date, last: Any, declared: bool) -> Scope:
    """Every day of a range, as labels in order."""
    if not isinstance(last, date) or not 0 < (last - first).days < MOST_DAYS:
        raise InvalidSpec(
            f"{who}: low and high must be two dates, the first before the second, {MOST_DAYS} days at most"
        )
    days = [first + timedelta(i) for i in range((last - first).days + 1)]
    return _listed_scope(who, name, days, None, declared=declared, ordered=True)


def decimal_text(number: Fraction, decimals: int) -> str:
    """A number rounded to so many decimals, as plain text."""
    return format(Decimal(round(number * 10**decimals)).scaleb(-decimals), "f")


def buckets(who: str, name: str, low: Fraction, high: Fraction, bins: int) -> Buckets:
    """So many buckets of equal width, and one for the upper end and what lies above."""
    if not low < high or type(bins) is not int or not 1 <= bins <= 1 << 16:
        raise InvalidSpec(f"{who}: bins must be a whole number from 1 to 65536, and low below high")
    width = (high - low) / bins
    # Enough decimals to tell edges apart, and few enough to be read.
    decimals = next(places for places in range(19) if width * 10**places >= 100)
    return Buckets(name, tuple(decimal_text(low + i * width, decimals) for i in range(bins + 1)), open_above=True)


def item_scope(who: str, name: str, declared: Any, column: Column | None) -> Scope:
    """The scope of sets of items: declared, or all items that occur."""
    if isinstance(declared, Items):
        return Scope(declared, True)
    if declared is not None:
        return Scope(Items(name, tuple(text_of(item) for item in _labels(who, declared))), True)
    if column is None:
        raise InvalidSpec(
            f"{who}: domain is missing; declare the items before anybody is asked: domain=['bread', 'milk']"
        )
    held = {text_of(item) for one in column.items for item in as_items(who, one)}
    return Scope(Items(name, tuple(sorted(held))), False)


def as_items(who: str, value: Any) -> list[Any]:
    """The items of one respondent."""
    if value is None or isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        raise InvalidValue(f"{who}: every value must be a list of items, such as [['bread', 'milk'], []]")
    return list(cast("Iterable[Any]", value))
