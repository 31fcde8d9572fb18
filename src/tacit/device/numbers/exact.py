"""Exact numbers: e^x by an integer series, roots, and thresholds over 2^64. No floats.

All bounds are rounded so that a realised likelihood ratio can only be *below* the declared one: odds are
rounded down here, and the probability of the rarer outcome is rounded up wherever a threshold is made.
"""

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

WORD = 1 << 64
"""One coin word is uniform on [0, WORD); a probability is an integer number of words."""

_GUARD_BITS = 96


def ceil_div(a: int, b: int) -> int:
    """The smallest integer not below a/b."""
    return -(-a // b)


def exp_floor(x: Fraction) -> int:
    """floor(e^x * 2^64) for 0 <= x <= 64, up to an error below one unit that is always downwards.

    The Taylor series of e^(x/2^s) is summed in fixed point, every term rounded down, and squared s times,
    every square rounded down. So the result never exceeds e^x * 2^64; the guard bits make it the floor for
    all practical x. The JavaScript twin runs the same integer steps.
    """
    halvings = (x.numerator // x.denominator).bit_length() + 1
    bits = 64 + _GUARD_BITS + 2 * halvings
    one = 1 << bits
    scaled = (x.numerator << bits) // (x.denominator << halvings)
    total, term, k = one, one, 1
    while term:
        term = (term * scaled >> bits) // k
        total += term
        k += 1
    for _ in range(halvings):
        total = total * total >> bits
    return total >> (bits - 64)


def root_floor(odds: int, degree: int) -> int:
    """floor((odds/2^64)^(1/degree) * 2^64): the odds of one of `degree` equal shares."""
    target = odds << (64 * (degree - 1))
    guess = 1 << (target.bit_length() // degree + 1)
    while True:  # Newton from above decreases until it reaches the floor.
        better = ((degree - 1) * guess + target // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


def tighten(odds: int, spread: Fraction) -> int:
    """Odds left for a mechanism whose uniform draws already favour some outcome by the factor `spread`."""
    return odds * spread.denominator // spread.numerator


def uniform_spread(*moduli: int) -> Fraction:
    """Largest ratio of two outcome probabilities of uniform(m) = (word*m) >> 64, multiplied over the moduli."""
    spread = Fraction(1)
    for m in moduli:
        spread *= Fraction(ceil_div(WORD, m), WORD // m)
    return spread


def log_upper(ratio: Fraction, digits: int = 30) -> Decimal:
    """ln(ratio), rounded up to `digits` decimals: a declared epsilon of no more decimals stays an upper bound."""
    with localcontext() as context:
        context.prec = digits + 40
        value = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        return value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)


def as_probability(words: int) -> Fraction:
    """The exact probability of an event that covers `words` of the 2^64 coin words."""
    return Fraction(words, WORD)
