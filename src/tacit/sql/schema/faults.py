"""Error messages for private values outside of their domain: how many rows have which fault, and what to do about it.

The values themselves are private, so that no message ever shows one; counts and kinds of faults have to be enough.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tacit.device.domains.reals import as_number

# The keys are phrases that fit into "3 of 100 rows are ...".
_DO = {
    "missing (NULL or NaN)": "leave these rows out, or give them a value of their own, such as a label 'other'",
    "not numbers": "write them as numbers, or declare labels",
    "fractions": "round them before they are privatized, or cut them into buckets",
    "between the steps of the domain": "round them to a step",
    "none of its numbers": "list them too, or give a range",
    "none of its labels": "list them too, or map them to a label such as 'other'",
    "below": "widen the domain, or put them at its end",
    "above": "widen the domain, or put them at its end",
}


def is_missing(value: Any) -> bool:
    """Whether a value is NULL or NaN."""
    # NaN is the only value that differs from itself, whether it is Python's, numpy's, or Decimal's.
    return value is None or value != value


def number_fault(number: Fraction | None, low: Fraction, high: Fraction, *, whole: bool, rest: str) -> str:
    """The fault of a number outside of a domain [low, high]; `rest` names it if the number lies between the two."""
    if number is None:
        return "not numbers"
    if whole and number.denominator != 1:
        return "fractions"
    return "below" if number < low else "above" if number > high else rest


def explained(name: str, domain: str, faults: Sequence[str], rows: int) -> str:
    """The message: how many of `rows` have each fault, the most frequent first, and what to do about it."""
    counts = {fault: faults.count(fault) for fault in dict.fromkeys(faults)}
    words: list[str] = []
    for fault, count in sorted(counts.items(), key=lambda item: -item[1]):
        where = f"{fault} the domain" if fault in ("below", "above") else fault
        words.append(f"{count} of {rows} rows are {where}: {_DO[fault]}")
    return f"{name}: the domain is {domain}; " + "; ".join(words)


def fault_of(value: Any, low: Fraction, high: Fraction, *, whole: bool, rest: str) -> str:
    """The fault of one value outside of a domain of numbers; the result is a key of the table of remedies above."""
    if is_missing(value):
        return "missing (NULL or NaN)"
    return number_fault(as_number(value), low, high, whole=whole, rest=rest)
