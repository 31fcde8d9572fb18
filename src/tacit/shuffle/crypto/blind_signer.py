"""Blind RSA signatures (RFC 9474), the signer's half: a private key that signs what it cannot read.

`cryptography` makes the key; it has no signature without padding, so the one private operation is here, on gmpy2's
`powmod_sec`, whose running time and memory accesses do not depend on the exponent. Bases are blinded by the signer too,
so that nobody chooses what the key is applied to, and every result is checked before it leaves: one wrong half of the
Chinese remainders would give away a factor. Verifying and asking are `tacit.device.numbers.blind_rsa`.
"""

import secrets
from functools import lru_cache
from math import gcd
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from tacit.core.extras import load
from tacit.device.numbers.blind_rsa import BlindKey
from tacit.errors import InvalidSpec, ProtocolViolation

TOKEN_BITS = 2048
"""The size of keys for tokens of type 0x0002 (RFC 9578, section 8.2.2)."""
_EXPONENT = 65537


class BlindSigner:
    """A private RSA key that is used for blind signatures and for nothing else."""

    def __init__(self, private: rsa.RSAPrivateKey) -> None:
        """Hold a key; the numbers of a key that cannot be right are refused by `cryptography` when it is loaded."""
        self._private = private
        self._numbers = private.private_numbers()
        public = self._numbers.public_numbers
        self.public = BlindKey(modulus=public.n, exponent=public.e)

    def __repr__(self) -> str:
        return f"BlindSigner(bits={self.public.modulus.bit_length()})"

    @classmethod
    def draw(cls, bits: int = TOKEN_BITS) -> Self:
        """A new key, from the operating system's entropy."""
        return cls(rsa.generate_private_key(public_exponent=_EXPONENT, key_size=bits))

    @classmethod
    def load(cls, data: bytes) -> Self:
        """The key of these bytes, which `dump` wrote."""
        try:
            private = load_der_private_key(data, None)
        except ValueError as error:
            raise InvalidSpec("blind RSA: these bytes are no private key; take those that were written") from error
        if not isinstance(private, rsa.RSAPrivateKey):
            raise InvalidSpec("blind RSA: the private key is of another kind, must be RSA")
        return cls(private)

    def dump(self) -> bytes:
        """The private key, in DER (PKCS #8): a secret."""
        return self._private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, blinded: bytes) -> bytes:
        """Sign a blinded message (RFC 9474, section 4.3)."""
        key = self.public
        number = int.from_bytes(blinded, "big")
        if len(blinded) != key.width or number >= key.modulus or gcd(number, key.modulus) != 1:
            raise ProtocolViolation(
                f"blind RSA: a blinded message is a unit modulo n in {key.width} bytes; this is none, blind it again"
            )
        factor = self._factor()
        base = number * pow(factor, key.exponent, key.modulus) % key.modulus
        answer = self._apply(base) * pow(factor, -1, key.modulus) % key.modulus
        if pow(answer, key.exponent, key.modulus) != number:
            # What went wrong must not be seen: a faulty signature reveals the key (RFC 9474, section 4.3, step 4).
            raise ArithmeticError("blind RSA: the signature came out wrong; nothing was sent")
        return answer.to_bytes(key.width, "big")

    def _factor(self) -> int:
        """A uniform unit modulo n."""
        while True:
            factor = secrets.randbelow(self.public.modulus)
            if gcd(factor, self.public.modulus) == 1:
                return factor

    def _apply(self, base: int) -> int:
        """The private operation, by Chinese remainders (RFC 8017, section 5.1.2)."""
        numbers = self._numbers
        first = _secret_power(base % numbers.p, numbers.dmp1, numbers.p)
        second = _secret_power(base % numbers.q, numbers.dmq1, numbers.q)
        return second + numbers.q * ((first - second) * numbers.iqmp % numbers.p)


@lru_cache(maxsize=1)
def _gmp() -> Any:
    return load("gmpy2")


def _secret_power(base: int, exponent: int, modulus: int) -> int:
    """A power whose exponent is a secret."""
    return int(_gmp().powmod_sec(base, exponent, modulus))
