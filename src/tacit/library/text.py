"""Labels of values: how whole numbers, booleans and dates are written. Standard library only: devices use it too."""

from datetime import date, datetime, time
from typing import Any


def as_date(value: Any) -> Any:
    """A day from a moment at midnight, which is how dates arrive from pandas; everything else as it is."""
    return value.date() if isinstance(value, datetime) and value.time() == time() else value


def text_of(value: Any) -> Any:
    """The label of a value: text as it is, whole numbers, booleans and dates written out; else the value itself."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, date):
        return as_date(value).isoformat()
    # Scalars of numpy, which items and rows of arrays are made of.
    return text_of(value.item()) if hasattr(value, "item") and not isinstance(value, str) else value
