"""The additively homomorphic encryption of Damgård, Geisler and Krøigaard, with full decryption (mode peos-dgk).

n = p q with p - 1 = 2^l v_p u_p and q - 1 = 2^l v_q u_q. g has order 2^l v_p v_q, h has order v_p v_q;
Enc(m) = g^m h^rho mod n, and the product of ciphertexts encrypts the sum modulo 2^l. Whoever knows p and v_p raises a
ciphertext to v_p, which leaves an element of order 2^l, and reads m from it byte by byte (Pohlig and Hellman).

Where this differs from the literature, and why:

- v has 256 bits. Colliding powers of h give a factor of n in sqrt(v) steps; 160 bits would be 80-bit security.
- u_p and u_q are odd. Then g is no square modulo either prime, and its Jacobi symbol modulo n is +1, like that of h.
  With one odd and one even u the symbol of a ciphertext would show the lowest bit of its plaintext to everybody.
- A ciphertext is re-randomised whenever it leaves a party (`add`): otherwise c g^-m stays the same, and the collector
  with one shuffler could link rows before and after the shuffle.

Not hardened against timing: whoever decrypts does so in batches, away from the network.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from tacit.arrays import U8, U64, Mask
from tacit.core.extras import load
from tacit.device.numbers.canonical import canonical
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.stream import AesStream

_PRIME_ROUNDS = 40
_STATISTICAL_BITS = 128
_WINDOW = 256


@lru_cache(maxsize=1)
def _gmp() -> Any:
    return load("gmpy2")


@dataclass(frozen=True)
class DgkParameters:
    """Sizes in bits: of n, of plaintexts (l), and of the secret orders (v)."""

    modulus_bits: int = 3072
    plain_bits: int = 64
    order_bits: int = 256

    def __post_init__(self) -> None:
        """Refuse sizes that leave no room for the factors."""
        room = self.modulus_bits // 2 - self.plain_bits - self.order_bits
        if self.modulus_bits % 16 or self.plain_bits % 8 or self.plain_bits > 64 or room < 32:
            raise InvalidSpec(
                f"dgk: {self.modulus_bits} bits leave {room} for the free factors of a prime, must be at least 32; "
                "n is a multiple of 16 bits and plaintexts are whole bytes, at most 8"
            )


class _FixedBase:
    """Powers of one base by table: base^(j 256^i) for every byte j at every place i; a power is products alone."""

    def __init__(self, base: Any, modulus: Any, exponent_bytes: int) -> None:
        self._modulus, self._tables = modulus, list[list[Any]]()
        for _ in range(exponent_bytes):
            row = [_gmp().mpz(1)]
            for _ in range(_WINDOW - 1):
                row.append(row[-1] * base % modulus)
            self._tables.append(row)
            base = row[-1] * base % modulus

    def power(self, exponent: bytes) -> Any:
        """The base to a little-endian exponent."""
        result = _gmp().mpz(1)
        for row, byte in zip(self._tables, exponent, strict=False):
            # Not hardened against timing: zero bytes are skipped.
            if byte:
                result = result * row[byte] % self._modulus
        return result


class DgkPublicKey:
    """n, g, h: encrypts, adds, and checks what claims to be a ciphertext."""

    def __init__(self, n: int, g: int, h: int, parameters: DgkParameters) -> None:
        """Hold the key and check what can be checked without its factors."""
        gmp = _gmp()
        self.n, self.g, self.h, self.parameters = gmp.mpz(n), gmp.mpz(g), gmp.mpz(h), parameters
        right_size = self.n.bit_length() == parameters.modulus_bits
        if not right_size or self.n % 2 == 0 or not self.is_ciphertext(self.g) or not self.is_ciphertext(self.h):
            raise InvalidSpec("dgk: the public key has the wrong size, or its symbols would show plaintexts; refuse it")
        # Elements whose order is a power of two, such as 1 and n - 1: powers of such an h would randomise nothing.
        if any(gmp.powmod(base, 1 << parameters.plain_bits, self.n) == 1 for base in (self.g, self.h)):
            raise InvalidSpec(
                "dgk: g or h of the public key has a tiny order, so that rows could be followed; refuse it"
            )

    @property
    def width(self) -> int:
        """Bytes of a ciphertext."""
        return self.parameters.modulus_bits // 8

    @property
    def _plain_bytes(self) -> int:
        return self.parameters.plain_bits // 8

    @property
    def _random_bytes(self) -> int:
        # So many bits beyond the order of h that h^rho is uniform in its group up to 2^-128.
        return (2 * self.parameters.order_bits + _STATISTICAL_BITS) // 8

    @cached_property
    def _powers_of_g(self) -> _FixedBase:
        return _FixedBase(self.g, self.n, self._plain_bytes)

    @cached_property
    def _powers_of_h(self) -> _FixedBase:
        return _FixedBase(self.h, self.n, self._random_bytes)

    def is_ciphertext(self, c: Any) -> bool:
        """Whether a number may be a ciphertext, as far as anybody can tell: range, no factor of n, Jacobi symbol +1."""
        gmp = _gmp()
        return bool(0 < c < self.n and gmp.gcd(c, self.n) == 1 and gmp.jacobi(c, self.n) == 1)

    def encrypt(self, plaintext: int, coins: Coins) -> bytes:
        """A fresh ciphertext, big-endian, of fixed width: without the tables, which take longer to make than this."""
        gmp, random = _gmp(), coins.words(-(-self._random_bytes // 8))
        mask = gmp.powmod(self.h, int.from_bytes(random[: self._random_bytes], "little"), self.n)
        return self._written(gmp.powmod(self.g, plaintext % (1 << self.parameters.plain_bits), self.n) * mask % self.n)

    def encrypt_words(self, words: U64, stream: AesStream) -> U8:
        """Fresh ciphertexts of many words, one row each."""
        random = stream.rows(len(words), self._random_bytes)
        rows = [self._written(self._fresh(int(word), random[i].tobytes())) for i, word in enumerate(words)]
        return self._matrix(rows)

    def add_words(self, ciphertexts: U8, words: U64, stream: AesStream) -> U8:
        """Re-randomised ciphertexts of the sums, which cannot be linked to the inputs without the private key."""
        random = stream.rows(len(words), self._random_bytes)
        pairs = zip(ciphertexts, words.tolist(), random, strict=True)
        rows = [self._written(self.read(c.tobytes()) * self._fresh(s, rho.tobytes()) % self.n) for c, s, rho in pairs]
        return self._matrix(rows)

    def read(self, content: bytes) -> Any:
        """The number of a ciphertext as it arrived."""
        return _gmp().mpz(int.from_bytes(content, "big"))

    def check_rows(self, ciphertexts: U8, who: str) -> None:
        """Raise ProtocolViolation unless all rows may be ciphertexts."""
        numbers = (self.read(row.tobytes()) for row in ciphertexts)
        if ciphertexts.shape[1] != self.width or not all(self.is_ciphertext(c) for c in numbers):
            raise ProtocolViolation(f"{who}: it sent rows that are no ciphertexts; abort")

    def _fresh(self, plaintext: int, random: bytes) -> Any:
        # A sum may pass 2^l: g^(2^l) has the order of h and vanishes in the random power beside it.
        message = (plaintext % (1 << self.parameters.plain_bits)).to_bytes(self._plain_bytes, "little")
        return self._powers_of_g.power(message) * self._powers_of_h.power(random) % self.n

    def _written(self, c: Any) -> bytes:
        return int(c).to_bytes(self.width, "big")

    def _matrix(self, rows: list[bytes]) -> U8:
        return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), self.width)

    def to_json(self) -> dict[str, Any]:
        """The key as a session document has it."""
        numbers = {name: int(getattr(self, name)).to_bytes(self.width, "big").hex() for name in "ngh"}
        return {**numbers, **vars(self.parameters)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """A key from a session document; wrong fields and unusable keys are refused."""
        names = ("modulus_bits", "plain_bits", "order_bits")
        try:
            parameters = DgkParameters(**{name: document[name] for name in names})
            n, g, h = (int(document[name], 16) for name in "ngh")
            return cls(n, g, h, parameters)
        except (KeyError, TypeError, ValueError) as error:
            raise error if isinstance(error, InvalidSpec) else InvalidSpec("dgk: the key lacks fields") from None


def public_key_of(document: Mapping[str, Any]) -> DgkPublicKey:
    """The key in a session document; remembered with its tables, which take longer to make than a row to encrypt."""
    return _remembered(canonical(dict(document)))


@lru_cache(maxsize=4)
def _remembered(text: bytes) -> DgkPublicKey:
    return DgkPublicKey.from_json(json.loads(text))


class DgkPrivateKey:
    """The factors of n with their secret orders: decrypts."""

    def __init__(self, p: int, q: int, order_p: int, order_q: int, public: DgkPublicKey) -> None:
        """Hold the key."""
        mpz = _gmp().mpz
        self.p, self.q, self.order_p, self.order_q, self.public = mpz(p), mpz(q), mpz(order_p), mpz(order_q), public
        if self.p * self.q != public.n:
            raise InvalidSpec("dgk: the private key does not belong to the public one")

    def __repr__(self) -> str:
        return f"DgkPrivateKey({self.public.parameters})"

    @cached_property
    def _generator(self) -> Any:
        """An element of order 2^l modulo p, whose logarithm is the plaintext."""
        return _gmp().powmod(self.public.g, self.order_p, self.p)

    @cached_property
    def _digits(self) -> dict[Any, int]:
        """Elements of order 256 and their logarithms."""
        base = _gmp().powmod(self._generator, 1 << (self.public.parameters.plain_bits - 8), self.p)
        return {_gmp().powmod(base, digit, self.p): digit for digit in range(_WINDOW)}

    @cached_property
    def _inverses(self) -> list[list[Any]]:
        """generator^(-digit 256^i), for every byte i of a plaintext."""
        gmp, base = _gmp(), _gmp().invert(self._generator, self.p)
        rows: list[list[Any]] = []
        for _ in range(self.public.parameters.plain_bits // 8):
            rows.append([gmp.powmod(base, digit, self.p) for digit in range(_WINDOW)])
            base = gmp.powmod(base, _WINDOW, self.p)
        return rows

    def _is_in_group_of_q(self, c: Any) -> bool:
        power = self.order_q << self.public.parameters.plain_bits
        return _gmp().powmod(c, power, self.q) == 1

    def decrypt(self, content: bytes) -> int | None:
        """The plaintext of a ciphertext; None if it is none.

        A number outside the group of g and h is never decrypted, so that it cannot be used to ask about the key: modulo
        q by raising it to the order of that group, modulo p because its first digit is in no table.
        """
        c = self.public.read(content)
        if not self.public.is_ciphertext(c) or not self._is_in_group_of_q(c):
            return None
        gmp, bits = _gmp(), self.public.parameters.plain_bits
        rest, plaintext = gmp.powmod(c, self.order_p, self.p), 0
        for i in range(bits // 8):
            digit = self._digits.get(gmp.powmod(rest, 1 << (bits - 8 * (i + 1)), self.p))
            # Not in the group modulo p.
            if digit is None:
                return None
            plaintext |= digit << 8 * i
            rest = rest * self._inverses[i][digit] % self.p
        return plaintext

    def decrypt_rows(self, ciphertexts: U8) -> tuple[U64, Mask]:
        """The plaintexts of rows, and which rows were ciphertexts."""
        found = [self.decrypt(c.tobytes()) for c in ciphertexts]
        words = np.array([0 if word is None else word for word in found], np.uint64)
        return words, np.array([word is not None for word in found], np.bool_)

    def to_json(self) -> dict[str, Any]:
        """The whole key, secret; for the collector's own storage."""
        secret = {name: int(getattr(self, name)).to_bytes(self.public.width, "big").hex() for name in _SECRET}
        return {**self.public.to_json(), **secret}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """A key as it was stored."""
        p, q, order_p, order_q = (int(document[name], 16) for name in _SECRET)
        return cls(p, q, order_p, order_q, DgkPublicKey.from_json(document))


_SECRET = ("p", "q", "order_p", "order_q")


def draw_dgk_key(coins: Coins, parameters: DgkParameters | None = None) -> DgkPrivateKey:
    """A new key; 3072 bits take about a second."""
    sizes, gmp = parameters or DgkParameters(), _gmp()
    # The orders stay secret: with v_p or v_q, n is factored at once.
    order_p, order_q = (_prime(coins, sizes.order_bits) for _ in range(2))
    p, free_p = _structured_prime(coins, sizes, order_p)
    q, free_q = _structured_prime(coins, sizes, order_q)
    if p == q or order_p == order_q:
        return draw_dgk_key(coins, sizes)
    g = [_generator_of(coins, sizes, *parts) for parts in ((p, order_p, free_p), (q, order_q, free_q))]
    h = [_element(coins, prime, free << sizes.plain_bits) for prime, free in ((p, free_p), (q, free_q))]
    # Chinese remainders: the number that is one thing modulo p and another modulo q.
    step = p * gmp.invert(p, q)
    joined = [(at_p + (at_q - at_p) * step) % (p * q) for at_p, at_q in (g, h)]
    return DgkPrivateKey(p, q, order_p, order_q, DgkPublicKey(p * q, joined[0], joined[1], sizes))


def _bits(coins: Coins, bits: int) -> int:
    return int.from_bytes(coins.words(-(-bits // 64)), "little") & ((1 << bits) - 1)


def _prime(coins: Coins, bits: int) -> Any:
    while True:
        candidate = _gmp().mpz(_bits(coins, bits) | 1 << (bits - 1) | 1)
        if _gmp().is_prime(candidate, _PRIME_ROUNDS):
            return candidate


def _structured_prime(coins: Coins, sizes: DgkParameters, order: Any) -> tuple[Any, Any]:
    """A prime 2^l v u + 1 with the two top bits set, so that n has its full size, and its odd factor u."""
    half, step = sizes.modulus_bits // 2, order << sizes.plain_bits
    least, most = -(-(3 << (half - 2)) // step), ((1 << half) - 2) // step
    while True:
        # An odd factor, so that 2^l is the exact power of two in p - 1 and g is no square modulo p.
        free = _gmp().mpz(least + _bits(coins, int(most - least).bit_length())) | 1
        candidate = step * free + 1
        if free <= most and _gmp().is_prime(candidate, _PRIME_ROUNDS):
            return candidate, free


def _element(coins: Coins, prime: Any, power: Any) -> Any:
    """A random element to a power, other than one."""
    while True:
        drawn = _gmp().mpz(_bits(coins, prime.bit_length()))
        element = _gmp().powmod(drawn, power, prime)
        if 1 < drawn < prime and element != 1:
            return element


def _generator_of(coins: Coins, sizes: DgkParameters, prime: Any, order: Any, free: Any) -> Any:
    """An element of order exactly 2^l v modulo a prime."""
    gmp = _gmp()
    while True:
        element = _element(coins, prime, free)
        # Rejected if its order lacks a factor two, or all of v.
        full = gmp.powmod(element, order << (sizes.plain_bits - 1), prime) != 1
        if full and gmp.powmod(element, 1 << sizes.plain_bits, prime) != 1:
            return element
