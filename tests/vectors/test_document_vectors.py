"""The golden vectors of documents, as every client reads them."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from tacit import errors
from tacit.device.numbers.coins import ReplayCoins
from tacit.wire.batch import batch_from_json, decode_batch
from tacit.wire.document import Collection
from tacit.wire.rows import Rows

ROOT = Path(__file__).parents[2]
VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (ROOT / "spec" / "vectors" / "documents.json").read_text(encoding="utf-8")
)


VERSION_1 = {
    "one question": "1d35f178f0aa1c2779d64886028920b534e45e0c5ada7107aef75210a3ef6741",
    "a number": "bd30bd3de0958a8f068dd4e6af88b2e5198d1051393c6d4176a7c4f59e0d16b6",
    "buckets": "609f480ba9ea781669a2f65daeff46ddb75d7f43d49b91a492b2fcbfcaf08a9d",
    "free text": "67f9eaffcd1e78f0ff0caf264adea120dd0eaa5f551154a63b8e1d47533a4ef1",
    "one of three": "1728255d9f5e4edda608cb9367ad05feda371a2d66724e2bb36fab5fd5f22bc5",
    "all of two": "0cc0f53330d30afac922d003fdffc0549158ff190b638728261abb0ffe6eedea",
    "memoised": "9bafcc642aabb84cc76cd24e48256652ad12fd1cceb8e3f93491304dfd18234b",
    "a second round": "bca0dc675c54e0131e084e5ad21ce89967dbf178cb1a80114f9badfb9c6cbe06",
    "views together": "e3f844b6348688d260d805addba4e47a3168d2b0ca45e54e11282032878fb462",
    "coefficients together": "e6c5e62a2eaada458f6400a99d2997fde3e023724830fdf4d84fce099c9df20a",
    "a grid together": "352dd5f092b29d7f35bb914201bf1a134179a40452dc5b51eb42d2ac73cabf62",
    "a grid of four together": "042faadca81f81f4013152c7502157cdc36b1c2b2156b2d1103a7b06402aeac0",
    "128 questions together": "d279199ca88465c70361c785010572a3baf9898b8bc6cc6d22e1cd2cbd09d743",
    "free text by RAPPOR": "18151520a146a0c6e487bf21d9ff5c683fc59911d7f59986459156dd61e5d793",
    "a grid over one number": "be71bce110f14705bc8919ee6dccb74733f4a6d567c299d88bf7c38e7c71cbae",
    "rows": "2d280459083915ff324ea572f32e51ff0517be33b31a7edada64a157f8919320",
    "rows and a grid": "e518cb9a9cc75dbaba6e0abc9c3de793e7b96a6d95c94cac4de7dd2588f008ae",
    "rows and a grid each": "c45048b8c0d8f6dbef5c16e80e10195066abf910dd35f09871674097175f90dd",
}
"""Ids of documents from before there was a version 2, written down by hand: a digest pins every byte of a document."""


def test_documents_of_version_1_are_what_they_were() -> None:
    found = {vector["name"]: vector for vector in VECTORS["good"] if vector["document"]["version"] == 1}
    assert {name: vector["id"] for name, vector in found.items()} == VERSION_1
    for name, vector in found.items():
        collection = Collection.from_text(json.dumps(vector["document"]))
        assert (collection.version, collection.shuffle, collection.roles_apart) == (1, None, False)
        assert collection.to_json() == vector["document"]
        assert list(collection.to_json()) == list(vector["document"])
        assert collection.id == VERSION_1[name]


def decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(decoded(item) for item in value)
    return int(value["integer"]) if isinstance(value, dict) else value


@pytest.mark.parametrize("vector", VECTORS["good"], ids=lambda vector: vector["name"])
def test_documents_have_the_published_ids_and_reports(vector: dict[str, Any]) -> None:
    collection = Collection.from_json(vector["document"])
    assert collection.id == vector["id"]
    for case in vector["cases"]:
        value = collection.encode(case["answers"])
        assert value == decoded(case["value"])
        report = collection.mechanism.privatize_one(value, ReplayCoins(bytes.fromhex(case["seed"])))
        assert report.hex() == case["report"]


SENT = [vector for vector in VECTORS["good"] if not vector["document"].get("shuffle")]


@pytest.mark.parametrize("vector", SENT, ids=lambda vector: vector["name"])
def test_the_binary_batch_and_its_twin_say_the_same(vector: dict[str, Any]) -> None:
    for case in vector["cases"]:
        (twin,) = case["batch_json"]["reports"]
        if "row" in twin:
            assert "batch" not in case
            continue
        widths = [len(twin["report"]) // 2] * (twin["member"] + 1)
        binary = decode_batch(bytes.fromhex(case["batch"]), widths)
        assert binary == batch_from_json(case["batch_json"], widths)
        assert case["report"].endswith(twin["report"])


@pytest.mark.parametrize("vector", VECTORS["bad_documents"], ids=lambda vector: vector["name"])
def test_bad_documents_are_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(getattr(errors, vector["error"])):
        Collection.from_json(vector["document"])


@pytest.mark.parametrize("vector", VECTORS["bad_texts"], ids=lambda vector: vector["name"])
def test_texts_that_are_no_documents_are_refused(vector: dict[str, Any]) -> None:
    for text in (vector["text"], vector["text"].encode()):
        with pytest.raises(getattr(errors, vector["error"])):
            Collection.from_text(text)


def test_the_text_of_a_good_document_is_read_as_utf_8_and_nothing_else() -> None:
    text = json.dumps(VECTORS["good"][0]["document"], ensure_ascii=False)
    for good in (text, text.encode(), text.encode("utf-8-sig")):
        assert Collection.from_text(good).id == VECTORS["good"][0]["id"]
    for bad in (text.encode("utf-16"), text.encode("latin-1", "replace"), b"[" * 100_000):
        with pytest.raises(errors.InvalidSpec):
            Collection.from_text(bad)


def test_bad_answers_are_refused_and_never_shown() -> None:
    documents = {vector["name"]: vector["document"] for vector in VECTORS["good"]}
    for vector in VECTORS["bad_answers"]:
        with pytest.raises(getattr(errors, vector["error"])) as caught:
            Collection.from_json(documents[vector["document"]]).encode(vector["answers"])
        assert "maybe" not in str(caught.value)
        assert "121" not in str(caught.value)


def rows_of(vector: dict[str, Any]) -> Rows:
    rows = Collection.from_json(vector["document"]).rows
    assert rows is not None
    return rows


@pytest.mark.parametrize("vector", [v for v in VECTORS["good"] if v["document"]["rows"]], ids=lambda v: v["name"])
def test_rows_are_completed_in_the_order_of_the_columns(vector: dict[str, Any]) -> None:
    for case in vector["cases"]:
        (twin,) = case["batch_json"]["reports"]
        complete = rows_of(vector).check_row(case["row"] or {})
        assert list(complete.items()) == list(twin["row"].items())
        assert case["report"].endswith(twin["report"])


def test_bad_rows_are_refused_and_never_shown() -> None:
    vectors = {vector["name"]: vector for vector in VECTORS["good"]}
    for vector in VECTORS["bad_rows"]:
        with pytest.raises(getattr(errors, vector["error"])) as caught:
            rows_of(vectors[vector["document"]]).check_row(vector["row"])
        assert not any(word in str(caught.value) for word in ("maybe", "121", "31.12.", "red"))


def test_the_file_is_what_the_script_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    script = runpy.run_path(str(ROOT / "tools" / "make_document_vectors.py"))
    assert script["make"]() == script["TARGET"].read_text(encoding="utf-8")
