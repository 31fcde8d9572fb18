"""Cyclic difference sets, the blocks of cyclic block response, and the sizes of other block designs.

A report of a block mechanism is a block B of k among m points; it has probability e^epsilon * c if
it contains the respondent's value and c otherwise. In a cyclic design the blocks are the m
translates of one set S, so a report is one integer below m. Privacy holds for ANY set S. Purity,
that is unbiasedness of the simple estimator, needs S to be a difference set: every non-zero shift
of S meets S in exactly lambda points. `certify` proves that.

Reference: Feldman, Nelson, Nguyen and Talwar, "Private frequency estimation via projective
geometry", ICML 2022; Singer, "A theorem in finite projective geometry", 1938; Paley, 1933.
"""

from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from math import isqrt
from operator import not_
from typing import Literal

from tacit.device.numbers.fields import next_prime, prime_power, prime_powers, primitive_polynomial
from tacit.errors import InvalidSpec

Family = Literal["grr", "singer", "paley"]
Design = tuple[Family, int, int]
"""The family and the integers q and t that say which design of it."""

# A device keeps m bits and a server transforms m floats: beyond this neither is reasonable.
MAX_MODULUS = 2**26

# A smaller modulus is preferred as long as it costs at most this factor of the best average error.
_TOLERANCE = 1.03

_ASCII_BITS = bytes.maketrans(b"\0\1", b"01")


@dataclass(frozen=True, slots=True)
class Cyclic:
    """A set S of k residues modulo m whose m translates are the blocks of a 2-design.

    `block` is S as a bitmap: point i is bit i % 8, least significant first, of byte i // 8.
    A Paley design has q = modulus and t = 1.

    >>> singer(3, 3).points()
    (0, 1, 3, 9)
    >>> 9 in singer(3, 3)
    True
    """

    family: Literal["singer", "paley"]
    q: int
    t: int
    modulus: int
    k: int
    lam: int
    block: bytes = field(repr=False)

    def __contains__(self, point: int) -> bool:
        """Tell whether a point of 0..modulus-1 is in S."""
        return bool(self.block[point >> 3] >> (point & 7) & 1)

    def points(self) -> tuple[int, ...]:
        """Return S in increasing order."""
        return tuple(point for point in range(self.modulus) if point in self)


def shape(family: Family, q: int, t: int) -> tuple[int, int, int]:
    """Return (m, k, lambda) of a cyclic design without building it; GRR is S = {0} on q points."""
    if family == "grr":
        return q, 1, 0
    if family == "paley":
        return q, (q - 1) // 2, (q - 3) // 4
    return _subspaces(q, t), _subspaces(q, t - 1), _subspaces(q, t - 2)


def _subspaces(q: int, t: int) -> int:
    """Count the one-dimensional subspaces of F_q^t."""
    return (q**t - 1) // (q - 1)


def singer(q: int, t: int) -> Cyclic:
    """Build the points of a hyperplane in the projective geometry PG(t-1, q), in cyclic order.

    With q = p^e, let x^n - sum c_j x^j be the first primitive polynomial of degree n = e t over F_p
    (`primitive_polynomial` defines "first") and s the sequence
        s_{i+n} = sum_j c_j s_{i+j} mod p,   s_0 = ... = s_{n-2} = 0,  s_{n-1} = 1.
    Then S = { i in [0, m) : s_i = s_{i+m} = ... = s_{i+(e-1)m} = 0 }. For a prime q only s_i counts.

    Why: with alpha a root, s_i = Tr(gamma alpha^i) for some gamma, Tr being the trace to F_p. The
    powers 1, alpha^m, ..., alpha^((e-1)m) are a basis of F_q over F_p, so the e values vanish
    together exactly when the relative trace of gamma alpha^i, an element of F_q, is zero.
    """
    # The bounds on q and t come first: counting the points of a huge design would take for ever.
    if not (2 <= q <= isqrt(MAX_MODULUS) and 3 <= t <= 26 and shape("singer", q, t)[0] <= MAX_MODULUS):
        raise InvalidSpec(
            f"singer: (q, t) is ({q}, {t}), must be a prime power and at least 3, "
            f"with at most {MAX_MODULUS} points in all"
        )
    modulus, k, lam = shape("singer", q, t)
    p, e = prime_power(q)
    sequence = _recurrence(p, primitive_polynomial(p, e * t, q), e * modulus)
    bits = -1
    for start in range(0, e * modulus, modulus):
        bits &= _bits(bytes(map(not_, sequence[start : start + modulus])))
    return Cyclic("singer", q, t, modulus, k, lam, _bitmap(bits, modulus))


def _recurrence(p: int, coefficients: tuple[int, ...], length: int) -> "array[int]":
    """Return the first terms of the linear recurring sequence that starts 0, ..., 0, 1.

    Raising x^n = sum c_j x^j to the power P = p^h gives s_{i+nP} = sum c_j s_{i+jP}, because
    coefficients in F_p do not change. With the largest P that the known terms allow, many terms
    come out of one pass over slices instead of one at a time.
    """
    degree = len(coefficients)
    taps = [(j, c) for j, c in enumerate(coefficients) if c]
    reach = degree - taps[-1][0]
    sequence = array("H", [0] * (degree - 1) + [1])
    step = 1
    while len(sequence) < length:
        if len(sequence) >= degree * step * p:
            step *= p
        known = len(sequence)
        # Longer passes would leave the processor's cache.
        more = min(reach * step, length - known, 4096)
        terms = [0] * more
        for j, c in taps:
            start = known - (degree - j) * step
            earlier = sequence[start : start + more]
            terms = [total + c * term for total, term in zip(terms, earlier, strict=True)]
        sequence.extend([total % p for total in terms])
    return sequence


def paley(m: int) -> Cyclic:
    """Build the non-zero squares modulo a prime m = 3 mod 4: blocks of half the points, for small epsilon."""
    if not 3 <= m <= MAX_MODULUS or m % 4 != 3 or next_prime(m) != m:
        raise InvalidSpec(f"paley: m is {m}, must be a prime of the form 4i + 3 and at most {MAX_MODULUS}")
    flags = bytearray(m)
    square = 0
    for odd in range(1, m, 2):
        # Consecutive squares differ by consecutive odd numbers.
        square = (square + odd) % m
        flags[square] = 1
    modulus, k, lam = shape("paley", m, 1)
    return Cyclic("paley", m, 1, modulus, k, lam, _bitmap(_bits(bytes(flags)), m))


def _bits(flags: bytes) -> int:
    """Return the integer whose bit i is flags[i], each flag being 0 or 1."""
    return int(flags[::-1].translate(_ASCII_BITS), 2)


def _bitmap(bits: int, modulus: int) -> bytes:
    """Return the low bits of an integer as bytes, least significant first."""
    return bits.to_bytes((modulus + 7) // 8, "little")


def certify(design: Cyclic) -> None:
    """Prove by counting that S has k points and meets each of its shifts in lambda; raise if not.

    Takes of the order of m^2 / 64 steps: a second at m = 10^5. `tacit.oracles.certify` does it by FFT.
    """
    m = design.modulus
    name = f"{design.family}({design.q}, {design.t})"
    bits = int.from_bytes(design.block, "little")
    if len(design.block) != (m + 7) // 8 or bits >> m:
        raise InvalidSpec(f"{name}: the bitmap does not have exactly {m} bits; build the design again")
    points = bits.bit_count()
    if points != design.k:
        raise InvalidSpec(f"{name}: the block has {points} points, must have {design.k}; build it again")
    twice = bits << m | bits
    # Shifts by s and by m - s overlap equally, so half of them suffice.
    for shift in range(1, m // 2 + 1):
        overlap = (twice >> shift & bits).bit_count()
        if overlap != design.lam:
            raise InvalidSpec(
                f"{name}: shift {shift} meets the block in {overlap} points, must be {design.lam}; build it again"
            )


def block_rates(m: int, k: int, odds: float) -> tuple[float, float]:
    """Return (p, q), how often a block supports the true and any other point, at odds = e^epsilon."""
    p = k * odds / (k * odds + m - k)
    return p, (k - p) / (m - 1)


def average_error(p: float, q: float, size: int) -> float:
    """Return M, n times the mean squared error of a frequency averaged over the domain.

    For a pure mechanism M = q(1-q)/(p-q)^2 + (1-p-q)/(d(p-q)), d = size, whatever the data are.
    """
    return q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (size * (p - q))


def design_error(design: Design, size: int, odds: float) -> float:
    """Return M of a cyclic design of which the first `size` points are values."""
    m, k, _ = shape(*design)
    return average_error(*block_rates(m, k, odds), size)


def best_block_size(m: int, size: int, odds: float) -> int:
    """Return the k with the least average error among blocks of k of m points, size <= m in use.

    The real minimiser is m / (e^epsilon + 1) when all points are in use; its integer neighbours
    are compared. Serves subset selection (m = size) and affine block response (m = next prime).
    """
    near = int(m / (odds + 1))
    candidates = [k for k in range(near - 1, near + 3) if 1 <= k < m]
    return min(candidates, key=lambda k: average_error(*block_rates(m, k, odds), size))


@lru_cache(maxsize=256)
def best_cyclic(size: int, odds: float, *, limit: int = MAX_MODULUS) -> Design:
    """Choose (family, q, t): the fewest points whose average error is within 3 % of the best.

    Compares GRR on `size` points, the next Paley design and, for every prime power q, the Singer
    design with the smallest t >= 3, none with more than `limit` points. Floats are good enough
    here: the choice is made once and its integers are written into the collection document.

    >>> best_cyclic(1024, 2.718281828459045)
    ('singer', 3, 7)
    """
    if not 2 <= size <= limit:
        raise InvalidSpec(f"best_cyclic: size is {size}, must be from 2 to {limit}")
    # There are about a thousand: their shapes, powers of large numbers, are computed once each.
    designs: list[Design] = [("grr", size, 1), *proper_designs(size, isqrt(limit))]
    shapes = {design: shape(*design) for design in designs}
    errors = {
        design: average_error(*block_rates(m, k, odds), size) for design, (m, k, _) in shapes.items() if m <= limit
    }
    bound = _TOLERANCE * min(errors.values())
    good = [design for design, error in errors.items() if error <= bound]
    return min(good, key=lambda design: (shapes[design][0], errors[design]))


def proper_designs(size: int, max_order: int) -> list[Design]:
    """List the next Paley design and, for every prime power q up to max_order, the next Singer design.

    "Next" is the smallest one with at least `size` points.
    """
    prime = next_prime(max(size, 7))
    while prime % 4 != 3:
        prime = next_prime(prime + 1)
    return [("paley", prime, 1), *(("singer", q, _dimension(q, size)) for q in _orders(max_order))]


_orders = lru_cache(maxsize=4)(prime_powers)
"""Prime powers up to a limit: there are two limits, that of all designs and that of cyclic ones."""


def _dimension(q: int, size: int) -> int:
    """Return the smallest t >= 3 whose Singer design has at least `size` points."""
    t, points = 3, q * q + q + 1
    while points < size:
        t, points = t + 1, points * q + 1
    return t
