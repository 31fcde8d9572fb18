"""A bar chart with error bars as one self-contained HTML page: inline SVG, no scripts, light and dark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_LEFT, _BAR, _GAP, _WIDTH, _RIGHT = 150, 22, 14, 560, 150


@dataclass(frozen=True)
class Bar:
    """One bar: the estimate, its interval and, where known, the truth."""

    label: str
    value: float
    low: float
    high: float
    truth: float | None = None


_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --bar: #4c78c9; --truth: #d1622b; --grid: #d8dee4;
  --page: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --bar: #6f9ceb; --truth: #f0883e; --grid: #30363d; --page: #0d1117; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
  max-width: 56rem; padding: 0 1rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; }
.soft { fill: var(--soft) !important; color: var(--soft); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
"""


def _ticks(top: float) -> list[float]:
    step = next((s for s in (0.01, 0.02, 0.05, 0.1, 0.2) if top / s <= 8), 0.25)
    return [i * step for i in range(int(top / step) + 1)]


def _svg(bars: Sequence[Bar], title: str) -> str:
    top = max(max(bar.high, bar.truth or 0) for bar in bars) * 1.02
    low = min(0.0, *(bar.low for bar in bars))
    height = len(bars) * (_BAR + _GAP) + 40

    def x(share: float) -> float:
        return _LEFT + (share - low) / (top - low) * _WIDTH

    parts = [
        f'<line x1="{x(t):.1f}" y1="8" x2="{x(t):.1f}" y2="{height - 30}" stroke="var(--grid)"/>'
        f'<text class="soft" x="{x(t):.1f}" y="{height - 12}" text-anchor="middle">{100 * t:.0f} %</text>'
        for t in _ticks(top)
    ]
    parts += [_bar(bar, 14 + i * (_BAR + _GAP), x) for i, bar in enumerate(bars)]
    size = f'viewBox="0 0 {_LEFT + _WIDTH + _RIGHT} {height}"'
    return f'<svg {size} role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'


def _bar(bar: Bar, y: float, x: Callable[[float], float]) -> str:
    middle, start, end = y + _BAR / 2, min(x(0), x(bar.value)), max(x(0), x(bar.value))
    whisker = "".join(
        f'<line x1="{x(edge):.1f}" y1="{middle - 5}" x2="{x(edge):.1f}" y2="{middle + 5}" '
        'stroke="var(--ink)" stroke-width="1.5"/>'
        for edge in (bar.low, bar.high)
    )
    truth = (
        ""
        if bar.truth is None
        else f'<line x1="{x(bar.truth):.1f}" y1="{y - 3}" x2="{x(bar.truth):.1f}" y2="{y + _BAR + 3}" '
        'stroke="var(--truth)" stroke-width="2.5"/>'
    )
    return (
        f'<text x="{_LEFT - 10}" y="{middle + 4}" text-anchor="end">{escape(bar.label)}</text>'
        f'<rect x="{start:.1f}" y="{y}" width="{end - start:.1f}" height="{_BAR}" fill="var(--bar)" rx="2"/>'
        f'<line x1="{x(bar.low):.1f}" y1="{middle}" x2="{x(bar.high):.1f}" y2="{middle}" '
        f'stroke="var(--ink)" stroke-width="1.5"/>{whisker}{truth}'
        f'<text class="soft" x="{max(x(bar.high), end) + 8:.1f}" y="{middle + 4}">'
        f"{100 * bar.value:.2f} % ± {50 * (bar.high - bar.low):.2f}</text>"
    )


def _table(bars: Sequence[Bar]) -> str:
    def cell(share: float | None) -> str:
        return "<td></td>" if share is None else f"<td>{100 * share:.2f} %</td>"

    rows = "".join(
        f"<tr><td>{escape(bar.label)}</td>{cell(bar.truth)}{cell(bar.value)}{cell(bar.low)}{cell(bar.high)}</tr>"
        for bar in bars
    )
    return (
        "<table><thead><tr><th>value</th><th>true share</th><th>estimate</th><th>95 % low</th><th>high</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
    )


def bar_chart_page(bars: Sequence[Bar], *, title: str, about: str) -> str:
    """The whole page: heading, what is shown, chart and the same numbers as a table."""
    legend = "Bars are estimates from noisy reports, whiskers their 95 % intervals" + (
        "; orange lines are the true shares, which no real collector would know." if bars[0].truth is not None else "."
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1><p>{escape(about)}</p>"
        f'{_svg(bars, title)}<p class="soft">{escape(legend)}</p>{_table(bars)}</html>\n'
    )
