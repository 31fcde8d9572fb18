"""Small number theory: primes, prime powers and primitive polynomials over a prime field.

Everything is exact, deterministic and the same in `js/src/numbers/designs.js`, because a device derives
its block design from nothing but the integers q and t of the collection document.
"""

from itertools import count

from tacit.errors import InvalidSpec

# These bases decide primality of every integer below 3.1 * 10^23 (Sorenson and Webster, 2015).
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_WITNESS_LIMIT = 318_665_857_834_031_151_167_461


def is_prime(n: int) -> bool:
    """Tell whether n is prime, by the Miller-Rabin test on bases that leave no doubt."""
    if n >= _WITNESS_LIMIT:
        raise InvalidSpec(f"is_prime: n is {n}, must be below {_WITNESS_LIMIT}")
    if n < 2:
        return False
    for base in _WITNESSES:
        if n % base == 0:
            return n == base
    twos = (n - 1 & 1 - n).bit_length() - 1
    return all(_passes(n, base, twos) for base in _WITNESSES)


def _passes(n: int, base: int, twos: int) -> bool:
    """Tell whether n, with n - 1 = odd * 2^twos, looks prime to this base."""
    power = pow(base, (n - 1) >> twos, n)
    if power in (1, n - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % n
        if power == n - 1:
            return True
    return False


def next_prime(n: int) -> int:
    """Return the smallest prime that is at least n."""
    return next(candidate for candidate in count(max(n, 2)) if is_prime(candidate))


def factor(n: int) -> dict[int, int]:
    """Return the prime factorisation of n >= 1 as {prime: exponent}, by trial division.

    Takes at most sqrt(n) / 2 steps. Designs never factor a number above 2^26: see the argument q of
    `primitive_polynomial`.
    """
    if n < 1:
        raise InvalidSpec(f"factor: n is {n}, must be at least 1")
    found: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            found[divisor] = found.get(divisor, 0) + 1
            n //= divisor
        divisor += 1 if divisor == 2 else 2
    if n > 1:
        found[n] = found.get(n, 0) + 1
    return found


def prime_power(q: int) -> tuple[int, int]:
    """Return (p, e) with q = p^e and p prime; refuse every other q."""
    factors = list(factor(q).items()) if q > 1 else []
    if len(factors) != 1:
        raise InvalidSpec(f"prime_power: q is {q}, must be a prime power; no other field exists")
    return factors[0]


def prime_powers(limit: int) -> list[int]:
    """Return every prime power that is at most limit, in increasing order."""
    sieve = bytearray([1]) * (limit + 1)
    powers: list[int] = []
    for p in range(2, limit + 1):
        if sieve[p]:
            sieve[p * p :: p] = bytes(len(range(p * p, limit + 1, p)))
            power = p
            while power <= limit:
                powers.append(power)
                power *= p
    return sorted(powers)


def primitive_polynomial(p: int, degree: int, q: int) -> tuple[int, ...]:
    """Return (c_0 .. c_{n-1}) such that x^n - sum c_j x^j is primitive over F_p, n = degree >= 2.

    The answer is the first one in counting order: vectors are tried in increasing order of the
    integer c_0 + c_1 p + c_2 p^2 + ..., so c_0 runs fastest. Integers up to p are never primitive
    (x^n = c_0 has order at most n(p - 1)), so counting starts at p + 1.

    q is a power of p whose exponent divides n. It only splits p^n - 1 = (q - 1) * m into two
    factors that are small enough for trial division.
    """
    order = p**degree - 1
    primes = sorted(set(factor(q - 1)) | set(factor(order // (q - 1))))
    for number in range(p + 1, p**degree):
        coefficients = _digits(number, p, degree)
        if _root_has_order(coefficients, p, order, primes):
            return coefficients
    raise AssertionError("a primitive polynomial exists for every prime and every degree")


def _digits(number: int, base: int, length: int) -> tuple[int, ...]:
    """Write number in the given base, least significant digit first."""
    digits: list[int] = []
    for _ in range(length):
        number, digit = divmod(number, base)
        digits.append(digit)
    return tuple(digits)


def _root_has_order(coefficients: tuple[int, ...], p: int, order: int, primes: list[int]) -> bool:
    """Tell whether x has exactly this multiplicative order modulo the polynomial."""
    # The product of all roots must generate F_p*. This costs one digit and settles most cases.
    norm = coefficients[0] * (-1) ** (len(coefficients) + 1) % p
    if norm == 0 or any(pow(norm, (p - 1) // r, p) == 1 for r in primes if (p - 1) % r == 0):
        return False
    one = [1] + [0] * (len(coefficients) - 1)
    if _power_of_x(order, coefficients, p) != one:
        return False
    return all(_power_of_x(order // r, coefficients, p) != one for r in primes)


def _power_of_x(exponent: int, coefficients: tuple[int, ...], p: int) -> list[int]:
    """Return x^exponent modulo the polynomial as a list of its n coefficients."""
    degree = len(coefficients)
    taps = [(j, c) for j, c in enumerate(coefficients) if c]
    value = [1] + [0] * (degree - 1)
    for bit in f"{exponent:b}":
        wide = [0] * (2 * degree)
        # Squaring, and for a one bit a further multiplication by x, which is a shift by one place.
        for i, a in enumerate(value, start=int(bit)):
            if a:
                for j, b in enumerate(value):
                    wide[i + j] += a * b
        for top in range(2 * degree - 1, degree - 1, -1):
            lead = wide[top] % p
            for j, c in taps:
                wide[top - degree + j] += lead * c
        value = [a % p for a in wide[:degree]]
    return value
