"""Findings as text for a terminal and as HTML for a notebook."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

WIDTH = 79
MOST_ROWS = 12
"""Rows that are shown; of more, the first ones and a line that counts the others."""
MOST_HTML_ROWS = 40
_WIDEST_LABEL = 28
OUTSIDE = (
    "shares are unbiased, so that noise may carry them below 0 % or above 100 %; their intervals are cut to what is "
    "possible"
)


@dataclass(frozen=True)
class Shown:
    """What there is to show: rows of labels, value, and both ends of its 95 % interval."""

    title: str
    names: tuple[str, ...]
    unit: str
    rows: Sequence[tuple[Any, ...]]
    notes: tuple[str, ...]

    @property
    def header(self) -> list[str]:
        """The heads of the columns."""
        return [*(_cut(name) for name in self.names), self.unit, "95 % interval"]

    def cells(self, row: tuple[Any, ...]) -> list[str]:
        """A row as text."""
        *labels, value, low, high = row
        ends = [self.number(self._possible(end)) for end in (low, high)]
        return [*(_cut(label_text(label)) for label in labels), self.number(value), " to ".join(ends)]

    def _possible(self, end: Any) -> Any:
        """An end of an interval, of a share cut to what a share can be; `interval()` has it as it was computed."""
        return min(1.0, max(0.0, end)) if self.unit == "share" and isinstance(end, float) else end

    def said(self, rows: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
        """The notes, with one about shares that noise has carried out of the possible range, if any such is shown."""
        shares = [row[-3] for row in rows if self.unit == "share" and isinstance(row[-3], float)]
        return (OUTSIDE, *self.notes) if any(share < 0 or share > 1 for share in shares) else self.notes

    def number(self, value: Any) -> str:
        """A number with the digits that are worth reading; labels and dates as they are."""
        if value is None or (isinstance(value, float) and value != value):
            return "-"
        if isinstance(value, str) or not hasattr(value, "__float__"):
            return label_text(value)
        return f"{100 * value:.2f} %" if self.unit == "share" else f"{value:,.5g}"


def label_text(label: Any) -> str:
    """A label in words: the items of a set with plus signs, true and false as in documents."""
    if label is None:
        return ""
    if isinstance(label, (list, tuple)):
        return " + ".join(map(label_text, label))  # pyright: ignore[reportUnknownArgumentType]
    return str(label).lower() if isinstance(label, bool) else str(label)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_LABEL else text[: _WIDEST_LABEL - 1] + "…"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of an aligned table: first column left, the rest right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [line(header), "  ".join("-" * w for w in widths), *map(line, rows)]


def text_of_finding(shown: Shown) -> str:
    """The finding as lines of at most 79 characters, as long as its labels allow."""
    rows = [shown.cells(row) for row in shown.rows[:MOST_ROWS]]
    notes = shown.said(shown.rows[:MOST_ROWS])
    lines = [shown.title, *(aligned(shown.header, rows) if rows else ["(nothing)"])]
    left = len(shown.rows) - len(rows)
    lines += [f"… and {left:,} more; to_pandas() has all"] if left else []
    return "\n".join([*lines, *(fill(note, WIDTH) for note in notes)])


def _style(place: int) -> str:
    """The first column left, the rest right, without the lines and stripes that notebooks add."""
    return f"text-align:{'right' if place else 'left'};padding:.15em .8em;border:0;background:none"


_BAR = "display:inline-block;height:.7em;background:#4f7cac;border-radius:2px;vertical-align:baseline"


def html_of(shown: Shown) -> str:
    """The finding as an HTML table with a bar per share; colours of text and ground are the notebook's own."""
    rows = shown.rows[:MOST_HTML_ROWS]
    # Bars are relative to the longest one; only shares have a zero to start from.
    top = max([0.0, *(float(row[-3]) for row in rows)]) if shown.unit == "share" and rows else 0.0
    body = "".join(_html_row(shown, row, top) for row in rows)
    head = "".join(f'<th style="{_style(i)}">{escape(name)}</th>' for i, name in enumerate(shown.header))
    left = len(shown.rows) - len(rows)
    notes = [*([f"… and {left:,} more; to_pandas() has all"] if left else []), *shown.said(rows)]
    said = "".join(f'<p style="margin:.3em 0;max-width:48em;opacity:.75">{escape(note)}</p>' for note in notes)
    title = f'<p style="margin:.3em 0"><b>{escape(shown.title)}</b></p>'
    table = (
        f'<table style="border-collapse:collapse"><thead><tr>{head}<th></th></tr></thead><tbody>{body}</tbody></table>'
    )
    return f"<div>{title}{table}{said}</div>"


def _html_row(shown: Shown, row: tuple[Any, ...], top: float) -> str:
    cells = "".join(f'<td style="{_style(i)}">{escape(cell)}</td>' for i, cell in enumerate(shown.cells(row)))
    share = max(0.0, float(row[-3])) / top if top > 0 else 0.0
    drawn = f'<span style="{_BAR};width:{8 * share:.2f}em"></span>'
    bar = f'<td style="border:0;background:none;text-align:left">{drawn}</td>'
    return f"<tr>{cells}{bar if top > 0 else '<td></td>'}</tr>"
