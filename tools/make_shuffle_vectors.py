"""Write the vectors of the shuffle model: numbers of RFC 9180 and RFC 9458, and messages with fixed ephemeral keys.

Usage: python tools/make_shuffle_vectors.py [--check]

With --check nothing is written and the exit status is 1 if a file differs from what the code makes today.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from session_vectors import sessions

from tacit.device.catalog import device_of
from tacit.device.numbers.coins import ReplayCoins
from tacit.shuffle.crypto.bhttp import BinaryRequest, BinaryResponse
from tacit.shuffle.crypto.hpke import HpkeKey, SealingContext, seal
from tacit.shuffle.crypto.ohttp import Gateway, encapsulate, write_keys
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffle.protocol.relayed import answer_message
from tacit.shuffle.protocol.roster import Roster
from tacit.shuffle.protocol.sealing import seal_upload
from tacit.shuffle.protocol.status import signed_status
from tacit.shuffle.protocol.words import decode_word, encode_word

FOLDER = Path(__file__).resolve().parents[1] / "spec" / "vectors"

# RFC 9180, appendix A.1.1 (base setup), A.1.1.1 (encryptions) and A.1.1.2 (exported values), digit by digit.
RFC_SETUP = {
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "ikm_e": "7268600d403fce431561aef583ee1613527cff655c1343f29812e66706df3234",
    "sk_e": "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
    "pk_e": "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
    "ikm_r": "6db9df30aa07dd42ee5e8181afdb977e538f5e1fec8a06223f33f7013e525037",
    "sk_r": "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
    "pk_r": "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
    "enc": "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
    "shared_secret": "fe0e18c9f024ce43799ae393c7e8fe8fce9d218875e8227b0187c04e7d2ea1fc",
    "key": "4531685d41d65f03dc48f6b8302c05b0",
    "base_nonce": "56d890e5accaaf011cff4b7d",
    "exporter_secret": "45ff1c2e220db587171952c0592d5f5ebe103f1561a2614e38f2ffd47e99e3f8",
}
RFC_PLAINTEXT = "4265617574792069732074727574682c20747275746820626561757479"
RFC_SEALS = {
    0: "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
    1: "af2d7e9ac9ae7e270f46ba1f975be53c09f8d875bdc8535458c2494e8a6eab251c03d0c22a56b8ca42c2063b84",
    2: "498dfcabd92e8acedc281e85af1cb4e3e31c7dc394a1ca20e173cb72516491588d96a19ad4a683518973dcc180",
    4: "583bd32bc67a5994bb8ceaca813d369bca7b2a42408cddef5e22f880b631215a09fc0012bc69fccaa251c0246d",
    255: "7175db9717964058640a3a11fb9007941a5d1757fda1a6935c805c21af32505bf106deefec4a49ac38d71c9e0a",
    256: "957f9800542b0b8891badb026d79cc54597cb2d225b54c00c5238c25d05c30e3fbeda97d2e0e1aba483a2df9f2",
}
RFC_EXPORTS = {
    "": "3853fe2b4035195a573ffc53856e77058e15d9ea064de3e59f4961d0095250ee",
    "00": "2e8f0b54673c7029649d4eb9d5e33bf1872cf76d623ff164ac185da9e88c21a5",
    "54657374436f6e74657874": "e9e43065102c3836401bed8c3c3c75ae46be1639869391d62c61f1ec7af54931",
}
# RFC 9458, appendix A, digit by digit.
RFC_OHTTP = {
    "sk_r": "3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a",
    "key_config": "01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003",
    "request": "00034745540568747470730b6578616d706c652e636f6d012f",
    "sk_e": "bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73",
    "pk_e": "4b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472",
    "info": "6d6573736167652f626874747020726571756573740001002000010001",
    "encapsulated_request": (
        "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472"
        "6374e469135906992e1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525"
    ),
    "response": "0140c8",
    "response_nonce": "c789e7151fcba46158ca84b04464910d",
    "encapsulated_response": "c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd",
}
MESSAGES: list[tuple[str, bytes, bytes, bytes]] = [
    ("a word of eight bytes", b"session", b"", bytes(range(8))),
    ("nothing at all", b"", b"", b""),
    ("with associated data", b"session", b"slot", b"share"),
    ("longer than a block", b"i" * 100, b"a" * 33, b"p" * 100),
]
WORD_SPECS: list[dict[str, Any]] = [
    {"kind": "grr", "epsilon": "1", "size": 10},
    {"kind": "grr", "epsilon": "6", "size": 1000},
    {"kind": "olh", "epsilon": "3", "size": 1099511627776, "buckets": 21, "state": "log"},
    {"kind": "blh", "epsilon": "1", "size": 9},
]


def rfc_case() -> dict[str, Any]:
    """Appendix A.1 as one case."""
    seals = [
        {"sequence": place, "aad": f"Count-{place}".encode().hex(), "pt": RFC_PLAINTEXT, "ct": sealed}
        for place, sealed in RFC_SEALS.items()
    ]
    exports = [{"context": context, "length": 32, "value": value} for context, value in RFC_EXPORTS.items()]
    return {"name": "RFC 9180, appendix A.1.1", **RFC_SETUP, "seals": seals, "exports": exports}


def own_case(name: str, info: bytes, aad: bytes, plaintext: bytes) -> dict[str, Any]:
    """One message sealed with a known ephemeral key."""
    receiver, once = HpkeKey.draw(ReplayCoins(b"receiver")), HpkeKey.draw(ReplayCoins(b"once"))
    context = SealingContext(receiver.public, info, ephemeral=once.private)
    sealed = seal(receiver.public, plaintext, info=info, aad=aad, coins=ReplayCoins(b"once"))
    return {
        "name": name,
        "sk_e": once.private.hex(),
        "sk_r": receiver.private.hex(),
        "pk_r": receiver.public.hex(),
        "enc": context.enc.hex(),
        "info": info.hex(),
        "aad": aad.hex(),
        "pt": plaintext.hex(),
        "ct": sealed[32:].hex(),
        "sealed": sealed.hex(),
        "export": {"context": b"tacit".hex(), "length": 40, "value": context.export(b"tacit", 40).hex()},
    }


def refused() -> list[dict[str, str]]:
    """Sealed bytes that must not open."""
    case = own_case(*MESSAGES[2])
    sealed = bytearray.fromhex(case["sealed"])
    sealed[-1] ^= 1
    low = bytes(32).hex() + case["ct"]
    base = {name: case[name] for name in ("sk_r", "info", "aad")}
    return [
        {"name": "an altered tag", **base, "sealed": sealed.hex()},
        {"name": "another info", **base, "info": "00", "sealed": case["sealed"]},
        {"name": "other associated data", **base, "aad": "00", "sealed": case["sealed"]},
        {"name": "too short", **base, "sealed": case["sealed"][: 2 * 47]},
        {"name": "a point of low order", **base, "sealed": low},
    ]


def hpke() -> dict[str, Any]:
    """Everything of hpke.json."""
    suite = {"kem": 0x0020, "kdf": 0x0001, "aead": 0x0001}
    return {
        "suite": suite,
        "contexts": [rfc_case()],
        "single": [own_case(*case) for case in MESSAGES],
        "refused": refused(),
    }


def ohttp() -> dict[str, Any]:
    """Everything of ohttp.json: the example of the RFC, and a padded request and response of this project."""
    gateway = Gateway(7, HpkeKey.draw(ReplayCoins(b"receiver")))
    request = BinaryRequest("POST", "https", "shuffler.example", "/uploads", {"content-type": "text/plain"}, b"upload")
    sent, _ = encapsulate(gateway.config, request.to_bytes(), ReplayCoins(b"once"))
    response = BinaryResponse(202).to_bytes()
    sealed = gateway.open(sent)[1].seal(response, ReplayCoins(b"nonce"))
    own = {
        "sk_r": HpkeKey.draw(ReplayCoins(b"receiver")).private.hex(),
        "keys": write_keys([gateway.config]).hex(),
        "sk_e": HpkeKey.draw(ReplayCoins(b"once")).private.hex(),
        "request": request.to_bytes().hex(),
        "encapsulated_request": sent.hex(),
        "response": response.hex(),
        "response_nonce": ReplayCoins(b"nonce").words(2).hex(),
        "encapsulated_response": sealed.hex(),
        "question": BinaryRequest("GET", "https", "shuffler", "/s/x/status").to_bytes(multiple=256).hex(),
        "answers": [
            {"status": status, "content": content, "message": answer_message(status, content.encode()).hex()}
            for status, content in ((200, '{"state":"ABORTED"}'), (200, "x" * 3000), (404, ""))
        ],
    }
    return {"rfc": {"name": "RFC 9458, appendix A", **RFC_OHTTP}, "own": own}


def word_cases() -> list[dict[str, Any]]:
    """Reports, coins, and the words that are drawn from them."""
    cases: list[dict[str, Any]] = []
    for spec in WORD_SPECS:
        mechanism = device_of(spec)
        for value in (0, 3):
            seed = f"{spec['kind']} {value}".encode()
            report = mechanism.privatize_one(value, ReplayCoins(seed))
            word = encode_word(mechanism, report, ReplayCoins(seed + b" word"))
            coins = (seed + b" word").hex()
            cases.append({"spec": mechanism.spec(), "report": report.hex(), "coins": coins, "word": str(word)})
    return cases


def decoded_cases() -> list[dict[str, Any]]:
    """Words at the edges, and their reports."""
    words = [0, 1, (1 << 32) - 1, 1 << 32, (1 << 63) + 12345, (1 << 64) - 1]
    devices = [device_of(spec) for spec in WORD_SPECS]
    return [
        {"spec": device.spec(), "word": str(word), "report": decode_word(device, word).hex()}
        for device in devices
        for word in words
    ]


def upload_case(mode: str, shufflers: int) -> dict[str, Any]:
    """A signed session, all private keys, and an upload whose coins are known."""
    made = rehearse(ReplayCoins(mode.encode()), mode=mode, shufflers=shufflers, fakes=10)
    upload = seal_upload(made.session, 12345678901234567890, ReplayCoins(b"upload"))
    return {
        "mode": mode,
        "signed": made.signed.to_json(),
        "pinned": {name: key.hex() for name, key in made.pinned.items()},
        "id": made.session.id,
        "private_keys": [key.private.hex() for key in made.keys],
        "word": "12345678901234567890",
        "coins": b"upload".hex(),
        "slot": upload.slot.hex(),
        "parts": [part.hex() for part in upload.parts],
        "body": upload.to_bytes().hex(),
    }


def refused_sessions() -> list[dict[str, Any]]:
    """Signed sessions in which a client must not take part."""
    made = rehearse(ReplayCoins(b"osh"), fakes=10)
    good, pinned = made.signed.to_json(), {name: key.hex() for name, key in made.pinned.items()}
    altered = {**good, "session": {**good["session"], "n_min": 3}}
    missing = {**good, "signatures": good["signatures"][:-1]}
    wrong = {**good, "signatures": [{**good["signatures"][1], "by": "collector"}, *good["signatures"][1:]]}
    other = {**pinned, "shuffler_2": pinned["shuffler_1"]}
    return [
        {"name": "another number", "signed": altered, "pinned": pinned},
        {"name": "a missing signature", "signed": missing, "pinned": pinned},
        {"name": "a signature of somebody else", "signed": wrong, "pinned": pinned},
        {"name": "another pinned key", "signed": good, "pinned": other},
    ]


def proof_case(size: int) -> dict[str, Any]:
    """A roster, its root, and the proof of every slot."""
    roster = Roster.of(ReplayCoins(bytes([i])).words(2) for i in range(size))
    slots = [slot.hex() for slot in roster.slots]
    return {"slots": slots, "root": roster.root, "proofs": [roster.proof(slot) for slot in roster.slots]}


def statuses() -> list[dict[str, Any]]:
    """What shufflers say of a session, and whether a client counts it as an abort by the pinned identity."""
    pinned, other = (Identity.draw(ReplayCoins(name)) for name in (b"pinned", b"other"))
    session = "5e" * 32
    good = signed_status(pinned, session, "ABORTED", had_sent=False)
    late = signed_status(pinned, session, "ABORTED", had_sent=True)
    plain = {name: value for name, value in good.items() if name != "signature"}
    cases: list[tuple[str, Any]] = [
        ("aborted", good),
        ("with counts beside", {**good, "uploads": 3, "is_open": False, "reason": "too few"}),
        ("its rows had left it", late),
        ("a late one that was altered", {**late, "had_sent": False}),
        ("still collecting", signed_status(pinned, session, "COLLECTING", had_sent=False)),
        ("of another session", {**signed_status(pinned, "5f" * 32, "ABORTED", had_sent=False), "session": session}),
        ("by somebody else", signed_status(other, session, "ABORTED", had_sent=False)),
        ("for another purpose", {**plain, "signature": pinned.sign("session", plain)}),
        ("not signed", plain),
        ("capital digits", {**good, "signature": good["signature"].upper()}),
        ("nothing", None),
    ]
    accepted = ("aborted", "with counts beside")
    return [
        {
            "name": name,
            "identity": pinned.public.hex(),
            "session": session,
            "reply": reply,
            "aborted": name in accepted,
        }
        for name, reply in cases
    ]


def shuffle() -> dict[str, Any]:
    """Everything of shuffle.json: what a client of a shuffled collection must be able to do."""
    modes = [("osh", 3), ("osh", 5), ("osh-z", 3), ("ss", 3), ("relay", 1)]
    return {
        "words": word_cases(),
        "decoded": decoded_cases(),
        "uploads": [upload_case(*mode) for mode in modes],
        "refused_sessions": refused_sessions(),
        "proofs": [proof_case(size) for size in (1, 2, 5, 8)],
        "statuses": statuses(),
    }


FILES = {"hpke.json": hpke, "ohttp.json": ohttp, "shuffle.json": shuffle, "sessions.json": sessions}


def main() -> int:
    """Write the files, or compare them."""
    stale = False
    for name, make in FILES.items():
        text = json.dumps(make(), indent=1) + "\n"
        path = FOLDER / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path.name} is not what the code makes; run tools/make_shuffle_vectors.py")
            stale = True
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
