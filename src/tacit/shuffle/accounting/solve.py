"""From delta at every epsilon to the epsilon of a delta: a search, then a claim that is checked where it is made."""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import inf, log, sqrt

Curve = Callable[[float], float]

_DIGITS = 4
_CLOSE = 1e-5
_SPARE = 1 + 1e-9
"""Claims are made with this much to spare, so that other roundings of the same arithmetic do not refuse them."""
_NEARLY = 0.999
"""A claim that saves less of the local epsilon than this is not worth a delta."""


def rounded(value: float, digits: int = _DIGITS, *, down: bool = False) -> Decimal:
    """The nearest decimal of so many significant digits that is not below the value; with `down`, not above.

    >>> rounded(0.169770), rounded(2.0), rounded(0.169770, down=True)
    (Decimal('0.1698'), Decimal('2.000'), Decimal('0.1697'))
    """
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1) if value else Decimal(1)
    return exact.quantize(unit, rounding=ROUND_FLOOR if down else ROUND_CEILING)


def crossing(curve: Curve, target: float, low: float, high: float, start: float) -> tuple[float, float]:
    """About where a falling curve reaches the target between low and high, and the slope of its logarithm there.

    The curve is above the target at low and at or below it at high. A secant that leaves the bracket is replaced by
    its middle, so that it always converges; a curve that ends in zero does no harm.
    """
    points: list[tuple[float, float]] = []
    at = start if low < start < high else _middle(low, high)
    for _ in range(80):
        height = curve(at)
        excess = log(height / target) if height > 0 else -inf
        low, high = (at, high) if excess > 0 else (low, at)
        points = [*points[-1:], (at, excess)]
        new = _secant(points, low, high)
        if abs(new - at) <= _CLOSE * at or high - low <= _CLOSE * high:
            return new, _slope(points)
        at = new
    return high, 0.0


def _slope(points: "list[tuple[float, float]]") -> float:
    (u, f), (v, g) = points[0], points[-1]
    return (g - f) / (v - u) if u != v and min(f, g) > -inf else 0.0


def _middle(low: float, high: float) -> float:
    """Between two ends: their geometric mean, as their orders of magnitude may differ."""
    return sqrt(max(low, high / 1024) * high)


def _secant(points: "list[tuple[float, float]]", low: float, high: float) -> float:
    if len(points) == 1 and points[0][1] > -inf:
        # Logarithms of tails fall about as the square of epsilon, which gives a first step.
        at, excess = points[0]
        step = at * (1 + max(-0.5, min(1.0, excess / 40)))
        return step if low < step < high else _middle(low, high)
    slope = _slope(points)
    step = points[-1][0] - points[-1][1] / slope if slope else low
    if low < step < high:
        return step
    return _middle(low, high)


def smallest_claim(fine: Curve, coarse: Curve, delta: float, local: float, start: float) -> Decimal | None:
    """The least epsilon of four digits at which `fine` is at most delta; None if only the local one will do.

    `coarse` is an upper bound of `fine` that costs less; it is searched first.
    """
    # At epsilon zero delta is near start/10: only a delta of that size could be kept without any epsilon.
    if delta > start / 1000 and coarse(0.0) * _SPARE <= delta:
        return Decimal(0)
    if coarse(_NEARLY * local) > delta:
        return None
    near, slope = crossing(coarse, delta, 0.0, local, start)
    # The two curves are nearly parallel: one value of the fine one and the slope of the coarse one give its crossing.
    height = fine(near)
    claim = rounded(near - log(height / delta) / slope if slope and height > 0 else near)
    # The claim itself is checked, and raised by one unit of its last digit until it holds.
    for _ in range(20):
        if claim >= Decimal(local):
            return None
        if fine(float(claim)) * _SPARE <= delta:
            return claim
        claim += Decimal(1).scaleb(claim.adjusted() - _DIGITS + 1)
    return None
