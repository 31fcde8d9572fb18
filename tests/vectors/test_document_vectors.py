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


@pytest.mark.parametrize("vector", VECTORS["good"], ids=lambda vector: vector["name"])
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


def test_the_file_is_what_the_script_makes() -> None:
    script = runpy.run_path(str(ROOT / "tools" / "make_document_vectors.py"))
    assert script["make"]() == script["TARGET"].read_text(encoding="utf-8")
