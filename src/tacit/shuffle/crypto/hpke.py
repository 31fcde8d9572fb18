"""Hybrid public key encryption (RFC 9180), base mode: seal bytes for the holder of an X25519 key.

One suite: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. The library offers single-shot sealing without
associated data and without the exporter, both of which Oblivious HTTP needs; the key schedule is therefore here, the
curve and the cipher are the library's. Sealed bytes are enc (32 bytes), ciphertext, tag (16 bytes).

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> key = HpkeKey.draw(ReplayCoins(b"key"))
    >>> sealed = seal(key.public, b"a word", info=b"session", coins=ReplayCoins(b"once"))
    >>> len(sealed) - len(b"a word") == OVERHEAD, key.open(sealed, info=b"session")
    (True, b'a word')
"""

import hmac
from functools import lru_cache
from typing import NoReturn, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, OpenFailed

KEM_ID, KDF_ID, AEAD_ID = 0x0020, 0x0001, 0x0001
ENC_BYTES = 32
TAG_BYTES = 16
OVERHEAD = ENC_BYTES + TAG_BYTES
"""By how much sealing makes a message longer."""

_KEM_SUITE = b"KEM" + KEM_ID.to_bytes(2, "big")
_SUITE = b"HPKE" + b"".join(part.to_bytes(2, "big") for part in (KEM_ID, KDF_ID, AEAD_ID))
_BASE_MODE = b"\x00"
_KEY_BYTES = 32
_NONCE_BYTES = 12
_HASH_BYTES = 32


def extract(salt: bytes, material: bytes) -> bytes:
    """HKDF-Extract with SHA-256 (RFC 5869)."""
    return hmac.digest(salt or bytes(_HASH_BYTES), material, "sha256")


def expand(secret: bytes, info: bytes, length: int) -> bytes:
    """HKDF-Expand with SHA-256 (RFC 5869)."""
    if not 0 < length <= 255 * _HASH_BYTES:
        raise InvalidSpec(f"hkdf: {length} bytes were asked for, must be from 1 to {255 * _HASH_BYTES}")
    block, blocks = b"", b""
    for i in range(1, -(-length // _HASH_BYTES) + 1):
        block = hmac.digest(secret, block + info + bytes([i]), "sha256")
        blocks += block
    return blocks[:length]


def _labelled_extract(suite: bytes, salt: bytes, label: bytes, material: bytes) -> bytes:
    return extract(salt, b"HPKE-v1" + suite + label + material)


def _labelled_expand(suite: bytes, secret: bytes, label: bytes, info: bytes, length: int) -> bytes:
    return expand(secret, length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, length)


_NO_ID_HASH = _labelled_extract(_SUITE, b"", b"psk_id_hash", b"")


@lru_cache(maxsize=64)
def _schedule_context(info: bytes) -> bytes:
    # Rows of a session share one info, so that a collector hashes it once and not for each of a million rows.
    return _BASE_MODE + _NO_ID_HASH + _labelled_extract(_SUITE, b"", b"info_hash", info)


def _shared_secret(exchanged: bytes, enc: bytes, public: bytes) -> bytes:
    secret = _labelled_extract(_KEM_SUITE, b"", b"eae_prk", exchanged)
    return _labelled_expand(_KEM_SUITE, secret, b"shared_secret", enc + public, _HASH_BYTES)


class HpkeContext:
    """What both sides share after the key exchange: a cipher, a counter of messages, and an exporter."""

    def __init__(self, shared_secret: bytes, info: bytes) -> None:
        """Run the key schedule (section 5.1)."""
        self.shared_secret = shared_secret
        self._context = _schedule_context(info)
        self._secret = _labelled_extract(_SUITE, shared_secret, b"secret", b"")
        self.key = _labelled_expand(_SUITE, self._secret, b"key", self._context, 16)
        self.base_nonce = _labelled_expand(_SUITE, self._secret, b"base_nonce", self._context, _NONCE_BYTES)
        self._cipher = AESGCM(self.key)
        self._sequence = 0

    @property
    def exporter_secret(self) -> bytes:
        """What exported secrets are derived from."""
        return _labelled_expand(_SUITE, self._secret, b"exp", self._context, _HASH_BYTES)

    def export(self, context: bytes, length: int) -> bytes:
        """A secret for another use, which only the two sides know (section 5.3)."""
        return _labelled_expand(_SUITE, self.exporter_secret, b"sec", context, length)

    def _next_nonce(self) -> bytes:
        # A nonce is never used twice: the counter only grows, and no protocol here comes near 2^64 messages.
        mixed = int.from_bytes(self.base_nonce, "big") ^ self._sequence
        self._sequence += 1
        return mixed.to_bytes(_NONCE_BYTES, "big")


class SealingContext(HpkeContext):
    """The sender's side: seals several messages in order. `enc` travels in front of them."""

    def __init__(self, public: bytes, info: bytes, *, ephemeral: bytes) -> None:
        """Exchange keys with the holder of `public`; `ephemeral` is 32 random bytes that are used once."""
        own = X25519PrivateKey.from_private_bytes(ephemeral)
        self.enc = own.public_key().public_bytes_raw()
        try:
            exchanged = own.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise InvalidSpec("hpke: the public key is not 32 bytes of a usable X25519 key; take it again from its "
                              "owner") from None  # fmt: skip
        super().__init__(_shared_secret(exchanged, self.enc, bytes(public)), info)

    def seal(self, plaintext: bytes, aad: bytes = b"") -> bytes:
        """Seal the next message of this context; the nonce counts up."""
        return self._cipher.encrypt(self._next_nonce(), plaintext, aad)


class OpeningContext(HpkeContext):
    """The receiver's side: opens the messages in the order in which they were sealed."""

    def open(self, ciphertext: bytes, aad: bytes = b"") -> bytes:
        """The next message, or OpenFailed; after a failure the same place can be tried again."""
        try:
            plaintext = self._cipher.decrypt(self._next_nonce(), ciphertext, aad)
        # Too short or not authentic: the caller need not know which, and may try the same place again.
        except (InvalidTag, ValueError):
            self._sequence -= 1
            _refuse()
        return plaintext


class HpkeKey:
    """A private X25519 key and its public half."""

    def __init__(self, private: bytes) -> None:
        """Hold 32 secret bytes."""
        if len(private) != _KEY_BYTES:
            raise InvalidSpec(f"hpke: a private key has {_KEY_BYTES} bytes, not {len(private)}")
        self.private = bytes(private)
        self._key = X25519PrivateKey.from_private_bytes(self.private)
        self.public = self._key.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return f"HpkeKey(public={self.public.hex()})"

    @classmethod
    def draw(cls, coins: Coins) -> Self:
        """Draw a new key pair."""
        return cls(coins.words(_KEY_BYTES // 8))

    @classmethod
    def derive(cls, material: bytes) -> Self:
        """The key that RFC 9180 derives from secret bytes (DeriveKeyPair, section 7.1.3)."""
        secret = _labelled_extract(_KEM_SUITE, b"", b"dkp_prk", material)
        return cls(_labelled_expand(_KEM_SUITE, secret, b"sk", b"", _KEY_BYTES))

    def context(self, enc: bytes, info: bytes) -> OpeningContext:
        """The receiver's context for messages that came with `enc`."""
        try:
            # The library refuses points of low order, whose shared secret would be known to everybody.
            exchanged = self._key.exchange(X25519PublicKey.from_public_bytes(enc))
        except ValueError:
            _refuse()
        return OpeningContext(_shared_secret(exchanged, bytes(enc), self.public), info)

    def open(self, sealed: bytes, *, info: bytes, aad: bytes = b"") -> bytes:
        """What `seal` sealed, or OpenFailed."""
        # Too short to hold a key and a tag; the library would complain about the key alone.
        if len(sealed) < OVERHEAD:
            _refuse()
        return self.context(sealed[:ENC_BYTES], info).open(sealed[ENC_BYTES:], aad)


def seal(public: bytes, plaintext: bytes, *, info: bytes, aad: bytes = b"", coins: Coins) -> bytes:
    """Seal one message for the holder of `public`; four coin words make the key that is used once."""
    context = SealingContext(public, info, ephemeral=coins.words(_KEY_BYTES // 8))
    return context.enc + context.seal(plaintext, aad)


def _refuse() -> NoReturn:
    raise OpenFailed(
        "hpke: sealed bytes do not open; they were altered, or sealed for another key or purpose"
    ) from None
