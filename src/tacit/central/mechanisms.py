"""Mechanisms for the count of a group in closed form: RR, EXP, LAP, GM, EM, UM. Not local.

Every probability is an exact fraction, so that privacy can be checked without a float. Kulkarni, dissertation,
sections 6.5 and 6.6.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

from tacit.central.count import Alpha, CountMechanism, as_alpha, check_n
from tacit.errors import InvalidSpec

# Precision of square roots of alpha, which are not rational in general.
_ROOT_BITS = 32


def _mechanism(name: str, n: int, alpha: Fraction, probability: "Callable[[int, int], Fraction]") -> CountMechanism:
    """The mechanism that releases i with `probability(i, j)` when the truth is j."""
    columns = tuple(tuple(probability(i, j) for i in range(n + 1)) for j in range(n + 1))
    return CountMechanism(name, alpha, columns)


def _powers(base: Fraction, count: int) -> list[Fraction]:
    return [base**k for k in range(count + 1)]


def rr(n: int, alpha: Alpha) -> CountMechanism:
    """RR: randomised response, the only sensible mechanism for a group of one. Not local. Section 6.5.1.

    >>> float(rr(1, "0.5").columns[0][0])
    0.6666666666666666
    """
    if check_n(n) != 1:
        raise InvalidSpec(f"rr: n is {n}, must be 1; use gm or em for groups")
    a = as_alpha(alpha)
    return _mechanism("rr", 1, a, lambda i, j: (1 if i == j else a) / (1 + a))


def um(n: int, alpha: Alpha) -> CountMechanism:
    """UM: the uniform mechanism, anything from 0 to n whatever the truth. Not local. The baseline that scores 1."""
    size = check_n(n) + 1
    return _mechanism("um", size - 1, as_alpha(alpha), lambda _i, _j: Fraction(1, size))


def gm(n: int, alpha: Alpha) -> CountMechanism:
    """GM: the truth plus two-sided geometric noise, clamped to 0 .. n. Not local. Definition 14, section 6.6.1.

    The one mechanism of least L0 without properties. It piles probability on 0 and n.
    """
    n, a = check_n(n), as_alpha(alpha)
    powers = _powers(a, n)
    # What is clamped to an end is the whole tail: (1 - a)/(1 + a) times 1 + a + a^2 + ... = 1/(1 + a).
    end, inner = 1 / (1 + a), (1 - a) / (1 + a)
    return _mechanism("gm", n, a, lambda i, j: (end if i in (0, n) else inner) * powers[abs(i - j)])


def em(n: int, alpha: Alpha) -> CountMechanism:
    """EM: the explicit fair mechanism, right with the same probability whatever the truth. Not local. Section 6.6.2.

    Has every property, and the least L0 of all fair mechanisms. The text's constant is for even n only.
    """
    n, a = check_n(n), as_alpha(alpha)
    powers = _powers(a, n)
    truth = fair_probability(n, a)

    # Every column holds the same powers: alpha^k twice for k = 1, 2, ... Up to the nearer edge the two lie on either
    # side of the truth; beyond it they follow one another on the side that is left. So all columns have one sum.
    def probability(i: int, j: int) -> Fraction:
        away, edge = abs(i - j), min(j, n - j)
        return truth * powers[away if away < edge else (away + edge + 1) // 2]

    return _mechanism("em", n, a, probability)


def fair_probability(n: int, alpha: Fraction) -> Fraction:
    """Return the probability of the truth under EM: one over the sum of its powers of alpha.

    >>> fair_probability(3, Fraction(9, 10)), fair_probability(4, Fraction(9, 10))
    (Fraction(100, 361), Fraction(50, 221))
    """
    if n % 2:
        return (1 - alpha) / ((1 + alpha) * (1 - alpha ** ((n + 1) // 2)))
    return (1 - alpha) / (1 + alpha - 2 * alpha ** (n // 2 + 1))


def exp(n: int, alpha: Alpha) -> CountMechanism:
    """EXP: the exponential mechanism with quality -|i - j|. Not local. A baseline: it spends less than epsilon."""
    n, a = check_n(n), as_alpha(alpha)
    # The normaliser may change by another factor between neighbours, so only half of epsilon is in the exponent.
    powers = _powers(_root(a), n)
    totals = [sum((powers[abs(i - j)] for i in range(n + 1)), Fraction(0)) for j in range(n + 1)]
    return _mechanism("exp", n, a, lambda i, j: powers[abs(i - j)] / totals[j])


def lap(n: int, alpha: Alpha) -> CountMechanism:
    """LAP: the truth plus Laplace noise, rounded and clamped to 0 .. n. Not local. A baseline.

    Noise beyond k - 1/2 has probability r^(2k-1)/2 with r = e^(-epsilon/2), so that the cells are rational in r.
    """
    n, a = check_n(n), as_alpha(alpha)
    root = _root(a)
    odd = [root * power / 2 for power in _powers(root**2, n + 1)]  # odd[k]: noise above k + 1/2

    def probability(i: int, j: int) -> Fraction:
        away, at_end = abs(i - j), i in (0, n)
        if not away:
            return 1 - (odd[0] if at_end else 2 * odd[0])
        return odd[away - 1] - (0 if at_end else odd[away])

    return _mechanism("lap", n, a, probability)


def _root(alpha: Fraction) -> Fraction:
    """The square root of alpha, rounded up to 32 bits: towards more privacy."""
    scaled = -(-(alpha.numerator << 2 * _ROOT_BITS) // alpha.denominator)
    root = isqrt(scaled - 1) + 1
    return Fraction(root, 1 << _ROOT_BITS)
