"""One page of what papers print beside what was found: a table and a plot for every source."""

from html import escape
from math import log10
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 260, 58, 40, 12
COLOURS = ("#0b6e99", "#c2541d", "#3d8b3d", "#7a4fb5", "#9a7b00", "#b0306a", "#4a5a6a", "#008b8b")

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1c2430;background:#fff}
section{margin:2.5rem 0;display:grid;gap:1rem}
table{width:max-content;border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.85rem}
th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #d5dbe3}
th:first-child,td:first-child{text-align:left}
.found{font-weight:600}.soft{color:#5a6675}figure{margin:0;overflow-x:auto}
svg text{font:11px system-ui,sans-serif;fill:currentColor}
@media (prefers-color-scheme:dark){body{background:#12161c;color:#e6eaf0}th,td{border-color:#333c48}}
@media (prefers-color-scheme:dark){.soft{color:#9aa7b6}}
"""


def page(notes: list[dict[str, Any]]) -> str:
    """The whole page."""
    sections = "\n".join(_section(note) for note in sorted(notes, key=lambda note: note["source"]))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Printed and found</title><style>{STYLE}</style><h1>Printed and found</h1>"
        "<p>Every number that a test compares with a table or figure of the literature: as printed (hollow marks, "
        "plain figures) and as found by this software (filled marks and lines, bold figures).</p>"
        f"{sections}</html>"
    )


def _section(note: dict[str, Any]) -> str:
    tolerance = f"<p class=soft>{escape(note['tolerance'])}</p>" if note["tolerance"] else ""
    return (
        f"<section><h2>{escape(note['source'])}</h2>{tolerance}<figure>{_plot(note)}</figure>{_table(note)}"
        f"<p class=soft>{escape(note['test'])}</p></section>"
    )


def _table(note: dict[str, Any]) -> str:
    names = list(dict.fromkeys([*note["printed"], *note["found"]]))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for i, x in enumerate(note["x"]):
        cells = "".join(f"<td>{_cell(note, name, i)}</td>" for name in names)
        rows.append(f"<tr><td>{escape(x)}</td>{cells}</tr>")
    return f"<table><tr><th>{escape(note['axis'])}</th>{head}</tr>{''.join(rows)}</table>"


def _cell(note: dict[str, Any], name: str, i: int) -> str:
    printed, found = (note[kind].get(name, [None] * (i + 1))[i] for kind in ("printed", "found"))
    parts = [] if printed is None else [f"{printed:.4g}"]
    return " ".join([*parts, *([] if found is None else [f"<span class=found>{found:.4g}</span>"])])


def _plot(note: dict[str, Any]) -> str:
    values = [v for kind in ("printed", "found") for series in note[kind].values() for v in series if v is not None]
    if note["logarithmic"]:
        values = [v for v in values if v > 0]
    if len(note["x"]) < 2 or not values:
        return ""
    scale = log10 if note["logarithmic"] else float
    low, high = scale(min(values)), scale(max(values))
    low = low if note["logarithmic"] else min(low, 0.0)
    span = (high - low) or 1.0

    def at(i: int, value: float) -> tuple[float, float]:
        x = LEFT + i * (WIDTH - LEFT - 12) / (len(note["x"]) - 1)
        return x, HEIGHT - BOTTOM - (scale(value) - low) / span * (HEIGHT - BOTTOM - TOP)

    names = list(dict.fromkeys([*note["printed"], *note["found"]]))
    marks = "".join(_series(note, name, COLOURS[i % len(COLOURS)], at) for i, name in enumerate(names))
    legend = "".join(
        f'<text x="{LEFT + 8 + 130 * (i % 4)}" y="{HEIGHT + 16 + 15 * (i // 4)}" '
        f'style="fill:{COLOURS[i % len(COLOURS)]}">'
        f"● {escape(name)}</text>"
        for i, name in enumerate(names)
    )
    box = f"0 0 {WIDTH} {HEIGHT + 20 + 15 * (len(names) // 4)}"
    return (
        f'<svg role="img" aria-label="{escape(note["source"])}" viewBox="{box}" '
        f'width="{WIDTH}">{_axes(note, low, span, at)}{marks}{legend}</svg>'
    )


def _axes(note: dict[str, Any], low: float, span: float, at: Any) -> str:
    lines = []
    for step in range(5):
        level = low + span * step / 4
        value = 10**level if note["logarithmic"] else level
        y = HEIGHT - BOTTOM - step / 4 * (HEIGHT - BOTTOM - TOP)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y}" y2="{y}" stroke="currentColor" opacity=".15"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{value:.3g}</text>')
    every = max(1, len(note["x"]) // 10)
    for i, x in enumerate(note["x"]):
        if i % every == 0:
            place = at(i, 10**low if note["logarithmic"] else low)[0]
            lines.append(f'<text x="{place}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(x)}</text>')
    lines.append(f'<text x="{LEFT}" y="{HEIGHT - 8}">{escape(note["axis"])}, {escape(note["unit"])}</text>')
    return "".join(lines)


def _series(note: dict[str, Any], name: str, colour: str, at: Any) -> str:
    drawn = []
    found = [(i, v) for i, v in enumerate(note["found"].get(name, [])) if _drawable(note, v)]
    points = " ".join("{:.1f},{:.1f}".format(*at(i, v)) for i, v in found)
    drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    drawn += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*at(i, v), colour) for i, v in found]
    for i, v in enumerate(note["printed"].get(name, [])):
        if _drawable(note, v):
            drawn.append('<circle cx="{:.1f}" cy="{:.1f}" r="5" fill="none" stroke="{}"/>'.format(*at(i, v), colour))
    return "".join(drawn)


def _drawable(note: dict[str, Any], value: float | None) -> bool:
    return value is not None and (value > 0 or not note["logarithmic"])
