"""A comparison as one page of HTML that needs nothing else: a table that sorts, and the rows as JSON inside it."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_COLUMNS = (
    ("epsilon", "epsilon"), ("method", "method"), ("error", "error"), ("error_se", "±"), ("relative", "of the pick"),
    ("forecast", "forecast"), ("bias", "bias"), ("coverage", "coverage"), ("bits", "bits"), ("seconds", "seconds"),
    ("about", "about"),
)  # fmt: skip
"""Fields of a row and the headings of their columns."""

_TEXTS = ("method", "about")
"""Columns that are read, not compared by their size."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --ground: #fff; --line: #ddd; --pick: #e8f1fb; --better: #a33; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --ground: #16181c; --line: #3a3f47; --pick: #1f3350; --better: #ff9a8f; }
}
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
body { color: var(--ink); background: var(--ground); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
h1 { overflow-wrap: anywhere; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
td:last-child { white-space: normal; min-width: 16rem; }
th button { font: inherit; font-weight: 600; border: 0; padding: 0; color: inherit; background: none; cursor: pointer; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.text { text-align: left; }
.pick { background: var(--pick); font-weight: 600; }
.better { color: var(--better); }
.scroll { overflow-x: auto; }
"""

# Sorting is the only script: numbers by value, missing ones last, texts by letter; a second click turns the order.
_SCRIPT = """
const body = document.querySelector("tbody");
document.querySelectorAll("th button").forEach((button, place) => {
  let rising = false;
  button.addEventListener("click", () => {
    rising = !rising;
    const key = (row) => row.cells[place].dataset.value;
    const rows = [...body.rows].sort((a, b) => {
      if ((key(a) === "") !== (key(b) === "")) return key(a) === "" ? 1 : -1;
      const order = isNaN(key(a)) || isNaN(key(b)) ? key(a).localeCompare(key(b)) : key(a) - key(b);
      return rising ? order : -order;
    });
    body.append(...rows);
    document.querySelectorAll("th").forEach((head) => head.removeAttribute("aria-sort"));
    button.parentElement.setAttribute("aria-sort", rising ? "ascending" : "descending");
  });
});
"""


def render_page(rows: Sequence[Mapping[str, Any]], title: str, error: str) -> str:
    """Return the page; `error` says in words what the error of the task is."""
    heads = "".join(_head(name, head) for name, head in _COLUMNS)
    lines = "\n".join(_line(row) for row in rows)
    # "</" would end the script element early.
    data = json.dumps(list(rows), allow_nan=False).replace("</", "<\\/")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>
<body><h1>{escape(title)}</h1>
<p>Error: {escape(error)}. All methods saw the same respondents and the same draws; ± is the standard error of the mean
over the draws. The shaded method is what is answered by default; what has less error than it is in red.</p>
<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>
{lines}
</tbody></table></div>
<script type="application/json" id="rows">{data}</script><script>{_SCRIPT}</script></body></html>
"""


def _head(name: str, head: str) -> str:
    kind = ' class="text"' if name in _TEXTS else ""
    return f'<th scope="col"{kind}><button>{escape(head)}</button></th>'


def _line(row: Mapping[str, Any]) -> str:
    cells = "".join(_cell(name, row.get(name)) for name, _ in _COLUMNS)
    relative = row.get("relative")
    better = relative is not None and relative < 1
    kind = "pick" if row["pick"] else "better" if better else ""
    return f'<tr class="{kind}">{cells}</tr>'


def _cell(name: str, value: Any) -> str:
    text = name in _TEXTS
    shown = "" if value is None else str(value) if text or name in ("bits", "epsilon") else f"{value:.4g}"
    kind = ' class="text"' if text else ""
    return f'<td{kind} data-value="{escape(str("" if value is None else value))}">{escape(shown)}</td>'
