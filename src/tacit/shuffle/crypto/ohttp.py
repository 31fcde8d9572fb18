"""Oblivious HTTP (RFC 9458): a relay sees who asks but not what, the gateway sees what is asked but not by whom.

One suite, that of `hpke`. A gateway's key is in the signed session document or pinned beside it, never fetched per
client: a key of one's own would be a name. Whoever runs a gateway keeps the `enc` of requests to drop replays, and
gives every request a response of the same size.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> gateway = Gateway(1, HpkeKey.draw(ReplayCoins(b"gateway")))
    >>> sent, waiting = encapsulate(gateway.config, b"request", ReplayCoins(b"client"))
    >>> request, answer = gateway.open(sent)
    >>> request, waiting.open(answer.seal(b"response", ReplayCoins(b"nonce")))
    (b'request', b'response')
"""

from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, OpenFailed
from tacit.shuffle.crypto.hpke import (
    AEAD_ID,
    ENC_BYTES,
    KDF_ID,
    KEM_ID,
    TAG_BYTES,
    HpkeContext,
    HpkeKey,
    SealingContext,
    expand,
    extract,
)  # fmt: skip

REQUEST_TYPE = "message/ohttp-req"
RESPONSE_TYPE = "message/ohttp-res"
KEYS_TYPE = "application/ohttp-keys"
_REQUEST_LABEL = b"message/bhttp request"
_RESPONSE_LABEL = b"message/bhttp response"
_SUITE = KDF_ID.to_bytes(2, "big") + AEAD_ID.to_bytes(2, "big")
_HEADER_BYTES = 7
_SECRET_BYTES = 16
_NONCE_BYTES = 12
OVERHEAD = _HEADER_BYTES + ENC_BYTES + TAG_BYTES
"""By how much encapsulation makes a request longer."""


@dataclass(frozen=True)
class KeyConfig:
    """A gateway's public key and its number."""

    key_id: int
    public: bytes

    @property
    def header(self) -> bytes:
        """What an encapsulated request begins with."""
        return bytes([self.key_id]) + KEM_ID.to_bytes(2, "big") + _SUITE

    def to_bytes(self) -> bytes:
        """One key configuration (section 3.1)."""
        start = bytes([self.key_id]) + KEM_ID.to_bytes(2, "big") + self.public
        return start + len(_SUITE).to_bytes(2, "big") + _SUITE

    @classmethod
    def from_bytes(cls, content: bytes) -> "KeyConfig":
        """A key configuration; InvalidSpec if it has another key exchange or does not offer the suite."""
        edge = 3 + ENC_BYTES
        offered = content[edge + 2 :]
        suites = {offered[i : i + 4] for i in range(0, len(offered), 4)}
        right_size = len(content) > edge + 2 and int.from_bytes(content[edge : edge + 2], "big") == len(offered)
        if not right_size or int.from_bytes(content[1:3], "big") != KEM_ID or _SUITE not in suites:
            raise InvalidSpec(
                "ohttp: a key must be X25519 with HKDF-SHA256 and AES-128-GCM; ask the gateway's operator"
            )
        return cls(content[0], content[3:edge])


def write_keys(configs: list[KeyConfig]) -> bytes:
    """The body of application/ohttp-keys: configurations, each after its length."""
    encoded = [config.to_bytes() for config in configs]
    return b"".join(len(item).to_bytes(2, "big") + item for item in encoded)


def read_keys(content: bytes) -> list[KeyConfig]:
    """The configurations of application/ohttp-keys that can be used here."""
    configs: list[KeyConfig] = []
    while content:
        size = int.from_bytes(content[:2], "big")
        item, content = content[2 : 2 + size], content[2 + size :]
        if len(item) != size or not size:
            raise InvalidSpec("ohttp: the list of keys is cut off; fetch it again")
        # Keys for other suites are for other clients.
        try:
            configs.append(KeyConfig.from_bytes(item))
        except InvalidSpec:
            continue
    return configs


class _Exchange:
    """What client and gateway share about one request: the keys of its response (section 4.4)."""

    def __init__(self, context: HpkeContext, enc: bytes) -> None:
        self._secret, self._enc = context.export(_RESPONSE_LABEL, _SECRET_BYTES), enc

    def _cipher(self, nonce: bytes) -> tuple[AESGCM, bytes]:
        # The nonce makes the keys of a response fresh even if a request is replayed and answered again.
        secret = extract(self._enc + nonce, self._secret)
        return AESGCM(expand(secret, b"key", _SECRET_BYTES)), expand(secret, b"nonce", _NONCE_BYTES)


class ResponseSealer(_Exchange):
    """The gateway's side: answers one request, once."""

    def seal(self, response: bytes, coins: Coins) -> bytes:
        """The encapsulated response; two coin words are its nonce."""
        nonce = coins.words(_SECRET_BYTES // 8)
        cipher, place = self._cipher(nonce)
        return nonce + cipher.encrypt(place, response, b"")


class ResponseOpener(_Exchange):
    """The client's side: opens the answer to its request."""

    def open(self, sealed: bytes) -> bytes:
        """The response, or OpenFailed."""
        cipher, place = self._cipher(sealed[:_SECRET_BYTES])
        try:
            return cipher.decrypt(place, sealed[_SECRET_BYTES:], b"")
        except (InvalidTag, ValueError):
            raise OpenFailed("ohttp: the response does not open; it was altered, or answers another request") from None


def encapsulate(config: KeyConfig, request: bytes, coins: Coins) -> tuple[bytes, ResponseOpener]:
    """An encapsulated request, and what opens its response; four coin words are the key that is used once."""
    info = _REQUEST_LABEL + b"\x00" + config.header
    context = SealingContext(config.public, info, ephemeral=coins.words(ENC_BYTES // 8))
    return config.header + context.enc + context.seal(request), ResponseOpener(context, context.enc)


class Gateway:
    """A gateway's private key under its number."""

    def __init__(self, key_id: int, key: HpkeKey) -> None:
        """Hold the key."""
        self.config, self._key = KeyConfig(key_id, key.public), key

    def open(self, sealed: bytes) -> tuple[bytes, ResponseSealer]:
        """The request inside, and what seals its response; OpenFailed for another key, suite or altered bytes."""
        # The header is authenticated as part of the info, so that a relay cannot move a request to another key.
        header, enc = sealed[:_HEADER_BYTES], request_enc(sealed)
        if header != self.config.header or len(sealed) < OVERHEAD:
            raise OpenFailed("ohttp: the request is for another key or suite, or too short")
        context = self._key.context(enc, _REQUEST_LABEL + b"\x00" + header)
        return context.open(sealed[_HEADER_BYTES + ENC_BYTES :]), ResponseSealer(context, enc)


def request_enc(sealed: bytes) -> bytes:
    """The part of an encapsulated request that is never the same twice: what a gateway remembers to drop replays."""
    return sealed[_HEADER_BYTES : _HEADER_BYTES + ENC_BYTES]
