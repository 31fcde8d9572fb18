"""The vectors of the shuffle model are what the code makes, and open with the keys that they give."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.client.sealed.sealing import seal_report
from tacit.device.catalog import device_of
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import CertificateRefused, InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.protocol.leaves import took_part
from tacit.shuffle.protocol.sealing import ShuffleUpload, hop_info, open_part, seal_upload, word_info
from tacit.shuffle.protocol.session import RESHARING, SignedSession
from tacit.shuffle.protocol.status import says_aborted
from tacit.shuffle.protocol.words import decode_word, encode_word
from tacit.wire.document import Collection
from tacit.wire.sessions import check_session

ROOT = Path(__file__).resolve().parents[3]
VECTORS: dict[str, Any] = json.loads((ROOT / "spec/vectors/shuffle.json").read_text())
SESSIONS: dict[str, Any] = json.loads((ROOT / "spec/vectors/sessions.json").read_text())
COLLECTIONS = {case["name"]: Collection.from_json(case["document"]) for case in SESSIONS["good"]}


def test_the_files_are_what_the_code_makes():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        tool = importlib.import_module("make_shuffle_vectors")
    finally:
        sys.path.remove(str(ROOT / "tools"))
    for name, make in tool.FILES.items():
        stored = json.loads((ROOT / "spec/vectors" / name).read_text())
        assert stored == make(), f"run tools/make_shuffle_vectors.py: {name}"


def test_words():
    for case in VECTORS["words"]:
        device, coins = device_of(case["spec"]), ReplayCoins(bytes.fromhex(case["coins"]))
        assert str(encode_word(device, bytes.fromhex(case["report"]), coins)) == case["word"]
        assert decode_word(device, int(case["word"])).hex() == case["report"]
    for case in VECTORS["decoded"]:
        assert decode_word(device_of(case["spec"]), int(case["word"])).hex() == case["report"]


@pytest.mark.parametrize("case", VECTORS["uploads"], ids=lambda case: case["mode"])
def test_uploads_have_these_bytes_and_open_to_the_word(case: dict[str, Any]):
    session = SignedSession.from_json(case["signed"]).verify({k: bytes.fromhex(v) for k, v in case["pinned"].items()})
    assert session.id == case["id"]
    upload = seal_upload(session, int(case["word"]), ReplayCoins(bytes.fromhex(case["coins"])))
    assert upload == ShuffleUpload.from_bytes(session, bytes.fromhex(case["body"]))
    keys = [HpkeKey(bytes.fromhex(key)) for key in case["private_keys"]]
    if session.mode in RESHARING:
        shares = [open_part(session, i, keys[i], upload.slot, part) for i, part in enumerate(upload.parts, start=1)]
        row = bytes(len(shares[0]))
        for share in shares:
            mixed = bytes(a ^ b for a, b in zip(row[:56], share[:56], strict=True))
            added = (int.from_bytes(row[56:], "little") + int.from_bytes(share[56:], "little")) % (1 << 64)
            row = mixed + added.to_bytes(8, "little")[: len(share) - 56]
        extra = int.from_bytes(row[56:], "little")
        word = (int.from_bytes(keys[0].open(row[:56], info=word_info(session)), "little") + extra) % (1 << 64)
    else:
        onion = upload.parts[0]
        for i in range(1, session.shuffler_count + 1):
            onion = keys[i].open(onion, info=hop_info(session, i))
        word = int.from_bytes(keys[0].open(onion, info=word_info(session)), "little")
    assert str(word) == case["word"]


@pytest.mark.parametrize("case", VECTORS["refused_sessions"], ids=lambda case: case["name"])
def test_sessions_that_are_not_signed_by_all_are_refused(case: dict[str, Any]):
    with pytest.raises(ProtocolViolation):
        SignedSession.from_json(case["signed"]).verify({k: bytes.fromhex(v) for k, v in case["pinned"].items()})


def test_statuses():
    assert {case["aborted"] for case in VECTORS["statuses"]} == {True, False}
    for case in VECTORS["statuses"]:
        told = says_aborted(case["reply"], case["session"], bytes.fromhex(case["identity"]))
        assert told == case["aborted"], case["name"]


def test_proofs():
    for case in VECTORS["proofs"]:
        assert all(took_part(case["root"], len(case["slots"]), proof) for proof in case["proofs"])


@pytest.mark.parametrize("case", SESSIONS["good"], ids=lambda case: case["name"])
def test_sessions_agree_with_their_documents_and_reports_are_sealed_to_these_bytes(case: dict[str, Any]):
    collection = COLLECTIONS[case["name"]]
    session = check_session(collection, case["published"]).session
    assert session.id == case["id"]
    coins = ReplayCoins(bytes.fromhex(case["coins"]))
    assert seal_report(session, collection.mechanism, bytes.fromhex(case["report"]), coins).to_json() == case["sealed"]


@pytest.mark.parametrize("case", SESSIONS["bad"], ids=lambda case: case["name"])
def test_sessions_that_the_document_does_not_allow_are_refused(case: dict[str, Any]):
    with pytest.raises((InvalidSpec, ProtocolViolation)):
        check_session(COLLECTIONS[case["document"]], case["published"])


def test_a_claim_that_is_too_small_is_found_by_the_accountant():
    (case,) = SESSIONS["bad_for_accountants"]
    with pytest.raises(CertificateRefused, match="must be at least"):
        check_session(COLLECTIONS[case["document"]], case["published"])
