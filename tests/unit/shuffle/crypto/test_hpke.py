"""HPKE: the numbers of RFC 9180, the library's own HPKE in both directions, and what must not open."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, OpenFailed
from tacit.shuffle.crypto.hpke import OVERHEAD, HpkeKey, SealingContext, expand, extract, seal

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[4] / "spec/vectors/hpke.json").read_text())
RFC = VECTORS["contexts"][0]


def raw(case: dict[str, Any], *names: str) -> list[bytes]:
    return [bytes.fromhex(case[name]) for name in names]


def test_hkdf_gives_the_numbers_of_rfc_5869():
    secret = extract(bytes(range(13)), b"\x0b" * 22)
    assert secret.hex() == "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"
    assert expand(secret, bytes(range(0xF0, 0xFA)), 42).hex() == (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )
    with pytest.raises(InvalidSpec, match="8160"):
        expand(secret, b"", 8161)


def test_keys_of_the_rfc_are_derived():
    for side in "er":
        material, private, public = raw(RFC, f"ikm_{side}", f"sk_{side}", f"pk_{side}")
        key = HpkeKey.derive(material)
        assert (key.private, key.public) == (private, public)
        assert private.hex() not in repr(key)


def test_the_key_schedule_of_the_rfc():
    public, info, ephemeral = raw(RFC, "pk_r", "info", "sk_e")
    context = SealingContext(public, info, ephemeral=ephemeral)
    names = ("enc", "shared_secret", "key", "base_nonce", "exporter_secret")
    assert [getattr(context, name).hex() for name in names] == [RFC[name] for name in names]


def test_messages_and_exports_of_the_rfc_in_order():
    public, info, ephemeral, private = raw(RFC, "pk_r", "info", "sk_e", "sk_r")
    sender = SealingContext(public, info, ephemeral=ephemeral)
    receiver = HpkeKey(private).context(sender.enc, info)
    wanted = {case["sequence"]: case for case in RFC["seals"]}
    plaintext = bytes.fromhex(RFC["seals"][0]["pt"])
    for place in range(257):
        aad = f"Count-{place}".encode()
        sealed = sender.seal(plaintext, aad)
        if place in wanted:
            assert (sealed.hex(), aad.hex()) == (wanted[place]["ct"], wanted[place]["aad"])
        assert receiver.open(sealed, aad) == plaintext
    for case in RFC["exports"]:
        for side in (sender, receiver):
            assert side.export(bytes.fromhex(case["context"]), case["length"]).hex() == case["value"]


@pytest.mark.parametrize("case", VECTORS["single"], ids=lambda case: case["name"])
def test_sealed_messages_have_the_bytes_of_the_vectors(case: dict[str, Any]):
    public, private, info, aad, plaintext, ephemeral = raw(case, "pk_r", "sk_r", "info", "aad", "pt", "sk_e")
    context = SealingContext(public, info, ephemeral=ephemeral)
    sealed = context.enc + context.seal(plaintext, aad)
    assert sealed.hex() == case["sealed"] == case["enc"] + case["ct"]
    assert len(sealed) == len(plaintext) + OVERHEAD
    assert HpkeKey(private).open(sealed, info=info, aad=aad) == plaintext
    assert context.export(bytes.fromhex(case["export"]["context"]), 40).hex() == case["export"]["value"]


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["name"])
def test_what_must_not_open_does_not(case: dict[str, Any]):
    private, sealed, info, aad = raw(case, "sk_r", "sealed", "info", "aad")
    with pytest.raises(OpenFailed, match="altered"):
        HpkeKey(private).open(sealed, info=info, aad=aad)


def test_the_library_opens_what_is_sealed_here_and_the_other_way_round():
    hpke = pytest.importorskip("cryptography.hazmat.primitives.hpke")
    suite = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
    key = HpkeKey.draw(ReplayCoins(b"both"))
    sealed = seal(key.public, b"there", info=b"i", coins=ReplayCoins(b"e"))
    assert suite.decrypt(sealed, X25519PrivateKey.from_private_bytes(key.private), b"i") == b"there"
    back = suite.encrypt(b"and back", X25519PublicKey.from_public_bytes(key.public), b"i")
    assert key.open(back, info=b"i") == b"and back"


def test_two_seals_of_one_message_differ():
    key, coins = HpkeKey.draw(ReplayCoins(b"k")), ReplayCoins(b"stream")
    first, second = (seal(key.public, b"x", info=b"", coins=coins) for _ in range(2))
    assert first[:32] != second[:32] and first != second


def test_a_receiver_can_try_a_place_again_after_a_failure():
    key = HpkeKey.draw(ReplayCoins(b"k"))
    sender = SealingContext(key.public, b"", ephemeral=bytes(range(32)))
    receiver = key.context(sender.enc, b"")
    sealed = sender.seal(b"x")
    with pytest.raises(OpenFailed):
        receiver.open(sealed[:-1] + bytes([sealed[-1] ^ 1]))
    assert receiver.open(sealed) == b"x"


def test_unusable_keys_are_refused():
    with pytest.raises(InvalidSpec, match="32 bytes, not 31"):
        HpkeKey(bytes(31))
    for public in (bytes(32), bytes(31)):
        with pytest.raises(InvalidSpec, match="usable X25519"):
            seal(public, b"", info=b"", coins=ReplayCoins(b""))
