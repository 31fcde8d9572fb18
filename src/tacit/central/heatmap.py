"""A picture of a count mechanism: its matrix as a heat map, one self-contained SVG. Not local."""

from html import escape

from tacit.central import MODEL
from tacit.central.count import CountMechanism

# Margins for the axis labels and the title, and the side of the square, in SVG units.
_LEFT, _TOP, _SIDE = 64, 56, 520
_NUMBERED = 12
"""Up to this n every cell carries its number; beyond it cells are too small to read."""

_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1b1f24}.soft{fill:#59636e}.cell{fill:#2f5fb3}.page{fill:#fff}"
    ".light{fill:#fff}.frame{fill:none;stroke:#d8dee4}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9198a1}.cell{fill:#6f9ceb}.page{fill:#0d1117}"
    ".light{fill:#0d1117}.frame{stroke:#30363d}}"
)


def heat_map(mechanism: CountMechanism) -> str:
    """Return the matrix as SVG: columns are true counts, rows what is released, darker is likelier.

    >>> from tacit.central.mechanisms import em
    >>> heat_map(em(4, "0.9")).count('class="cell"')
    25
    """
    size = mechanism.n + 1
    title = f"{mechanism.name}, n = {mechanism.n}, alpha = {float(mechanism.alpha):.6g}"
    width, height = _LEFT + _SIDE + 16, _TOP + _SIDE + 64
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}"><style>{_STYLE}</style><rect class="page" width="{width}" height="{height}"/>'
        f'<text x="{_LEFT}" y="22">{escape(title)}</text><text class="soft" x="{_LEFT}" y="40">{escape(MODEL)}</text>'
        f'{_cells(mechanism, _SIDE / size)}{_axes(size)}<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_SIDE}" '
        f'height="{_SIDE}"/></svg>\n'
    )


def _cells(mechanism: CountMechanism, side: float) -> str:
    matrix = mechanism.matrix
    # Shades are relative to the largest entry: with many outputs all probabilities are small.
    darkest = float(matrix.max())
    parts: list[str] = []
    for i, row in enumerate(matrix.tolist()):
        for j, p in enumerate(row):
            x, y, shade = _LEFT + j * side, _TOP + i * side, p / darkest
            parts.append(
                f'<rect class="cell" x="{x:.2f}" y="{y:.2f}" width="{side:.2f}" height="{side:.2f}" '
                f'fill-opacity="{shade:.3f}"><title>Pr[{i} | {j}] = {p:.6g}</title></rect>'
            )
            if mechanism.n <= _NUMBERED:
                # On dark cells the number is written in the colour of the page.
                colour = ' class="light"' if shade > 0.8 else ""
                place = f'x="{x + side / 2:.1f}" y="{y + side / 2 + 4:.1f}" text-anchor="middle"'
                parts.append(f"<text{colour} {place}>{_short(p)}</text>")
    return "".join(parts)


def _short(p: float) -> str:
    """Two decimals without the leading zero: .05; a probability of 1 stays 1."""
    return f"{p:.2f}".removeprefix("0")


def _axes(size: int) -> str:
    """Tick labels, at most 16 per axis so that they do not overlap, and the names of the axes."""
    side, every = _SIDE / size, max(1, -(-size // 16))
    below, middle = _TOP + _SIDE, _SIDE / 2
    ticks = "".join(
        f'<text class="soft" x="{_LEFT + (k + 0.5) * side:.1f}" y="{below + 18}" text-anchor="middle">{k}</text>'
        f'<text class="soft" x="{_LEFT - 8}" y="{_TOP + (k + 0.5) * side + 4:.1f}" text-anchor="end">{k}</text>'
        for k in range(0, size, every)
    )
    return (
        f'{ticks}<text x="{_LEFT + middle}" y="{below + 42}" text-anchor="middle">true count</text>'
        f'<text x="18" y="{_TOP + middle}" text-anchor="middle" '
        f'transform="rotate(-90 18 {_TOP + middle})">released</text>'
    )
