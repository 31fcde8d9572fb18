"""What people open or read holds no traps: CSV files run no formulas, and drafts say nothing that cannot be seen."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import MEAN, PLAIN, NoNoise, draft, plain_app

from tacit.catalog import CATALOG
from tacit.collector.answers.answer import answer, to_csv
from tacit.collector.answers.ask import records_csv
from tacit.collector.collections.parts import Total
from tacit.collector.collections.publish import Planner, create_draft, publish_document
from tacit.collector.safe_csv import csv_text, harmless
from tacit.errors import InvalidSpec
from tacit.wire.document import Collection

SOURCE = Path(__file__).parents[2] / "src" / "tacit"
PLANNER = Planner(CATALOG)
FORMULAS = [
    "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20x", "\ufe661", "\ufeff=1", 
    "\n=1", "\r=1", "\t=1",
    " =1", "\u00a0=1", "\u200b=1", "\u202e=1", "\x00=1", "\ufeff\n \uff1d1", "-inf", "+nan", "-1_000", "\u2212A1", "-",
]  # fmt: skip
HARMLESS = ["a=b", "", " ", "1", "-0.5", "+3", "-1e-7", "a\n=b", "'=1", "é", "昼食", "#", "a,b", 'say "x"', "x;y"]


@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_text_that_begins_like_a_formula_is_quoted(text: str):
    assert harmless(text) == "'" + text


@pytest.mark.parametrize("text", HARMLESS, ids=ascii)
def test_other_text_and_numbers_stay_as_they_are(text: str):
    assert harmless(text) == text


def test_what_is_written_is_read_back():
    rows: list[list[Any]] = [[*HARMLESS, *FORMULAS], [None, 1, -2.5, True, 1e-9, *range(35)], ["only"], ["a\rb"]]
    found = list(csv.reader(io.StringIO(csv_text(rows), newline="")))
    assert found[0] == [harmless(cell) for cell in rows[0]]
    assert found[1][:5] == ["", "1", "-2.5", "True", "1e-09"]
    assert found[2:] == [["only"], ["a\rb"]]


def test_no_cell_breaks_out_of_its_cell_whatever_the_separator():
    """A spreadsheet may split at semicolons, tabs or bars: such cells are quoted, so no part of them begins a cell."""
    text = csv_text([["a;=1", "a\t=1", "a|=1", "a\r=1", "a\n=1", 'a"=1']])
    assert re.sub(r'"([^"]|"")*"', "", text) == ",,,,,\n"


def test_every_export_uses_the_one_writer():
    writers = [path.name for path in SOURCE.rglob("*.py") if re.search(r"csv\.(writer|DictWriter)", path.read_text())]
    assert writers == []


def published(labels: list[str]) -> Any:
    """A document that was published before labels were looked at, in a running collector."""
    document = Planner((*CATALOG, NoNoise), (PLAIN, MEAN)).plan(draft())[0].to_json()
    document["questions"][0]["domain"]["labels"] = labels
    app = plain_app(MemoryStore())
    record = publish_document(app.collector.store, Collection.from_json(document, (*CATALOG, NoNoise)))
    return app.collector.find(record.id)


def test_answers_and_synthetic_records_are_exported_without_formulas():
    active = published(["\uff1dcmd", "\n=1", "plain "])
    tally = active.mechanism.tally(np.repeat([0, 1, 2], 5).astype(active.dtype))
    rows = list(csv.DictReader(io.StringIO(to_csv(answer(active, Total(tally), tasks=(PLAIN, MEAN))), newline="")))
    assert [row["value"] for row in rows] == ["'\uff1dcmd", "'\n=1", "plain "]
    text = records_csv({"columns": ["+a", "b"], "rows": [["\uff1dcmd", True], ["x", 3]]})
    assert text == "'+a,b\n'\uff1dcmd,true\nx,3\n"


BAD_LABELS = [
    "a\x00b", "a\u202eb", "\u2066a", "a\u200f", "a\x07", "a\tb", "a\nb", "\ufeffa", "a\u200bb", "a\u2028b",
    " a", "a ", "a\u00a0", " ",
]  # fmt: skip


@pytest.mark.parametrize("label", BAD_LABELS, ids=ascii)
@pytest.mark.parametrize("place", ["labels", "other", "ordered", "items", "attribute"])
def test_labels_that_hide_something_are_refused_before_publishing(label: str, place: str):
    domain: dict[str, Any] = {
        "labels": {"kind": "categories", "labels": ["good", label]},
        "other": {"kind": "categories", "labels": ["good", "fine"], "other": label},
        "ordered": {"kind": "ordered", "labels": [label, "good"]},
        "items": {"kind": "items", "labels": ["good", label, "x"]},
        "attribute": {"kind": "product", "attributes": [
            {"kind": "booleans", "name": "b"}, {"kind": "ordered", "name": "o", "labels": ["good", label]}]},
    }[place]  # fmt: skip
    task = {"task": "items"} if place == "items" else {}
    store = MemoryStore()
    with pytest.raises(InvalidSpec, match=r"question 'pet'.*(U\+[0-9A-F]{4} at character|blank).*remove it"):
        create_draft(store, PLANNER, draft(questions=[{"name": "pet", "text": "?", "domain": domain} | task]))
    assert store.collections() == []


@pytest.mark.parametrize("field", ["title", "about"])
def test_texts_with_hidden_characters_are_refused_and_several_lines_are_not(field: str):
    for text in ("a\x00", "a\u202eb", "\ufeffa", "a\x1b[31m"):
        with pytest.raises(InvalidSpec, match=rf"draft\.{field} \(en\) holds U\+"):
            PLANNER.plan(draft(**{field: text}))
    PLANNER.plan(draft(**{field: "Several\nlines, a mark \u200f and \u2067isolated\u2069 words \n"}))


def test_ordinary_labels_of_all_scripts_are_published():
    labels = ["naïve", "日本語", "עברית", "می‌خواهم", "👩‍👩‍👧", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "a  b", "=1", "50 %"]
    PLANNER.plan(draft(questions=[{"name": "pet", "text": "?", "domain": {"kind": "categories", "labels": labels}}]))


def test_documents_that_were_published_before_keep_loading():
    for labels in (["a\x00", "b"], ["\u202ea", "b "], [" a", "\ufeffb"]):
        assert published([*labels, "c"]).collection.questions[0].domain.decode(0) == labels[0]
