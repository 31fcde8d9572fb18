"""Write spec/vectors/documents.json: documents, their ids, answers, reports and batches, that every client must share.

Usage: python tools/make_document_vectors.py

Integers from 2^53 on are written as {"integer": digits}. A bad document is refused by every reader; what parsers of
JSON do not tell from a good one, or do not read, is given as text. A case of a document with rows has the row that goes
along, as it is given and complete in the batch, which then has no binary form. A case of a shuffled document has no
batch: its report is sealed for shufflers. A bad row marked "collector" is refused
by the collector; a client may leave it to that.
"""

import json
from pathlib import Path
from typing import Any

import shuffled_documents as shuffled
import token_documents as tokens
import windowed_documents as windowed

from tacit.device.families.compose import OneOfDevice
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.wire.batch import Batch, Block, batch_to_json, encode_batch
from tacit.wire.document import Collection

TARGET = Path(__file__).resolve().parents[1] / "spec" / "vectors" / "documents.json"
BATCH_ID = bytes(range(16))
WINDOW = 9
"""The window that batches of documents with windows name."""


def question(name: str, domain: dict[str, Any], task: str = "histogram") -> dict[str, Any]:
    return {"name": name, "text": {"en": f"What about {name}?"}, "domain": domain, "task": task}


def document(questions: list[dict[str, Any]], mechanism: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "title": {"en": "A title", "pt_br": "Um título \U0001f600"},
        "about": {"en": "What this is for.", "pt_br": "Para que serve."},
        "questions": questions,
        "policy": "single" if len(questions) == 1 else mechanism["kind"],
        "epsilon": mechanism["epsilon"],
        "mechanism": mechanism,
        "minimum_cohort": 100,
        "retention_days": 30,
        "origins": ["https://example.org"],
        "invitations": False,
        "plan": None,
        "rows": None,
    } | changes


COLOURS = question("colour", {"kind": "categories", "name": "colour", "labels": ["red", "café"], "other": "another"})
SMOKER = question("smoker", {"kind": "booleans", "name": "smoker"})
AGE = question("age", {"kind": "integers", "name": "age", "low": 0, "high": 120, "step": 1}, "mean")
WORD = question("word", {"kind": "strings", "name": "word", "key": "k", "max_bytes": 20})
INCOME = question(
    "income", {"kind": "buckets", "name": "income", "edges": ["0", "10.5"], "open_below": False, "open_above": True}
)

GRR = {"kind": "grr", "epsilon": "1", "size": 3}
HALF = {"of": "1", "share": "1/2"}
ONE_OF = {
    "kind": "one_of",
    "epsilon": "1",
    "payload_bytes": 4,
    "family": {
        "kind": "questions",
        "mechanisms": [GRR, {"kind": "onebit", "epsilon": "1", "top": 120}, {"kind": "oue", "epsilon": "1", "size": 2}],
        "weights": [1, 2, 1],
    },
}
ALL_OF = {
    "kind": "all_of",
    "epsilon": "1",
    "members": [GRR | {"epsilon": HALF}, {"kind": "oue", "epsilon": HALF, "size": 2}],
    "state": "joint",
}
YEARS = question("years", {"kind": "integers", "name": "years", "low": 0, "high": 4, "step": 1}, "marginals")
FLAGS = [question(f"flag_{i}", {"kind": "booleans", "name": f"flag_{i}"}, "marginals") for i in range(129)]
ATTRIBUTES = [COLOURS, SMOKER, YEARS]


def grr(size: int, epsilon: Any = "1") -> dict[str, Any]:
    return {"kind": "grr", "epsilon": epsilon, "size": size}


def one_of(family: dict[str, Any], epsilon: Any = "1", payload_bytes: int = 1) -> dict[str, Any]:
    return {"kind": "one_of", "epsilon": epsilon, "payload_bytes": payload_bytes, "family": family}


def grid(sizes: list[int], members: dict[tuple[int, ...], int], epsilon: Any = "1") -> dict[str, Any]:
    """One of a grid with fan-outs of two, from the heights of its members and the numbers of their nodes."""
    mechanisms = [grr(size, epsilon) for size in members.values()]
    shape = {"kind": "grid", "sizes": sizes, "fanouts": [2] * len(sizes), "heights": [list(one) for one in members]}
    return one_of(shape | {"mechanisms": mechanisms, "weights": [1] * len(members)}, epsilon)


def coefficients(sizes: list[int], k: int) -> dict[str, Any]:
    family = {"kind": "coefficients", "sizes": sizes, "k": k, "mechanisms": [grr(2)], "by_order": [2, 1][:k]}
    return one_of(family)


VIEWS = one_of({
    "kind": "views",
    "sizes": [3, 2, 5],
    "views": [[0, 1], [0, 2], [1, 2]],
    "mechanisms": [grr(6), grr(10), grr(15)],
    "weights": [1, 2, 3],
})  # fmt: skip
COEFFICIENTS = coefficients([3, 2, 5], 2)
GRID = grid([3, 2, 5], {(1, 1, 2): 4, (0, 1, 3): 3, (0, 0, 0): 30})
GRID_OF_FOUR = grid([3, 2, 5, 3], {(2, 0, 2, 0): 12, (0, 1, 3, 1): 6, (0, 0, 1, 2): 18})
SPLIT = {
    "kind": "all_of",
    "epsilon": "1",
    "members": [grid([3], {(1,): 2, (0,): 3}, HALF), grid([5], {(1,): 3, (0,): 5}, HALF)],
    "state": "log",
}
SALES: dict[str, Any] = {
    "table": "sales",
    "columns": [
        {"name": "amount", "type": "number"},
        {"name": "items", "type": "integer"},
        {"name": "city", "type": "text"},
        {"name": "online", "type": "boolean"},
        {"name": "day_1", "type": "date"},
    ],
}
SALE = {"amount": -0.5, "items": 3, "city": "caf\u00e9 \U0001f600", "online": False, "day_1": "2030-12-31"}
RAPPOR = {
    "kind": "rappor",
    "epsilon": "2",
    "zero": "",
    "one": "",
    "bits": 16,
    "cohorts": 4,
    "key": 7,
    "hashes": 2,
}
NUMBERS = one_of({
    "kind": "grid",
    "sizes": [121],
    "fanouts": [2],
    "heights": [[3], [0]],
    "mechanisms": [{"kind": "onebit", "epsilon": "1", "top": 15}, grr(121)],
    "weights": [1, 1],
})  # fmt: skip
MEMO = {"kind": "memo", "epsilon": "1", "inner": GRR, "most_values": 2, "step": 0}
OLH = {"kind": "olh", "epsilon": "1", "size": "18446744073709551616", "buckets": 4, "state": "log"}

ROUND = {
    "method": "svim",
    "k": 8,
    "respondents": 1000,
    "round": 2,
    "target": 100,
    "first": "a" * 64,
    "previous": "a" * 64,
}

ANSWERS = [{"colour": "red", "smoker": True, "years": 4}, {"colour": "caf\u00e9", "smoker": False, "years": 0}]

GOOD: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("one question", document([COLOURS], GRR), [{"colour": "red"}, {"colour": "cafe\u0301"}, {"colour": "blue"}]),
    ("a number", document([AGE], {"kind": "onebit", "epsilon": "0.5", "top": 120}), [{"age": 0}, {"age": "120"}]),
    ("buckets", document([INCOME], {"kind": "oue", "epsilon": "2", "size": 2}), [{"income": 10.5}, {"income": "1e3"}]),
    ("free text", document([WORD], OLH), [{"word": ""}, {"word": "caf\u00e9"}, {"word": "\U0001f600"}]),
    ("one of three", document([COLOURS, AGE, SMOKER], ONE_OF), [{"colour": "red", "age": 40, "smoker": True, "x": 1}]),
    ("all of two", document([COLOURS, SMOKER], ALL_OF, invitations=True), [{"colour": "café", "smoker": 0}]),
    ("memoised", document([COLOURS], MEMO, origins=["*"]), [{"colour": "another"}]),
    ("a second round", document([COLOURS], GRR, plan=ROUND), [{"colour": "red"}]),
    ("views together", document(ATTRIBUTES, VIEWS, policy="joint"), ANSWERS),
    ("coefficients together", document(ATTRIBUTES, COEFFICIENTS, policy="joint"), ANSWERS),
    ("a grid together", document(ATTRIBUTES, GRID, policy="joint"), ANSWERS),
    (
        "a grid of four together",
        document([*ATTRIBUTES, COLOURS | {"name": "car"}], GRID_OF_FOUR, policy="joint"),
        [given | {"car": "another"} for given in ANSWERS],
    ),
    (
        "128 questions together",
        document(FLAGS[:128], coefficients([2] * 128, 1), policy="joint"),
        [{f"flag_{i}": i % 3 == 0 for i in range(128)}],
    ),
    ("free text by RAPPOR", document([WORD], RAPPOR), [{"word": "caf\u00e9"}]),
    ("a grid over one number", document([AGE], NUMBERS), [{"age": 7}]),
]

WITH_ROWS: list[tuple[str, dict[str, Any], list[tuple[dict[str, Any], Any]]]] = [
    (
        "rows",
        document([COLOURS], GRR, rows=SALES),
        [({"colour": "red"}, SALE), ({"colour": "blue"}, None), ({"colour": "blue"}, {"city": "", "items": None})],
    ),
    (
        "rows and a grid",
        document(ATTRIBUTES, GRID, policy="joint", rows=SALES),
        [(ANSWERS[0], {"amount": 12, "items": -(10**12)}), (ANSWERS[1], {"day_1": "0001-01-01", "online": True})],
    ),
    ("rows and a grid each", document([COLOURS, YEARS], SPLIT, rows=SALES), [(ANSWERS[0], SALE), (ANSWERS[1], {})]),
]

BAD_ROWS: list[tuple[Any, bool]] = [
    (5, False),
    ("maybe", False),
    ([], False),
    ({"price": 1}, False),
    (SALE | {"colour": "red"}, False),
    ({"amount": "121"}, False),
    ({"amount": True}, False),
    ({"amount": 1e13}, False),
    ({"items": 1.5}, False),
    ({"items": 10**13}, False),
    ({"city": 121}, False),
    ({"city": "x" * 257}, False),
    ({"city": "\ud800"}, False),
    ({"online": 0}, False),
    ({"online": "true"}, False),
    ({"day_1": "31.12.2030"}, False),
    ({"day_1": 20301231}, False),
    ({"day_1": ["2030-12-31"]}, False),
    ({"day_1": "2030-02-30"}, True),
    ({"day_1": "2030-W01-1"}, False),
]
"""Rows that the first document above refuses, and whether that is left to the collector."""

BAD_ANSWERS: list[tuple[int, Any]] = [
    (0, {}),
    (0, {"color": "red"}),
    (0, {"colour": None}),
    (1, {"age": 121}),
    (3, {"word": "x" * 21}),
    (4, {"colour": "red", "age": 40}),
    (5, {"colour": "red", "smoker": "maybe"}),
]

PLAIN = document([COLOURS], GRR)
PAIR = document([COLOURS, SMOKER], ALL_OF)

SOLD = document([COLOURS], GRR, rows=SALES)
TOGETHER = document(ATTRIBUTES, GRID, policy="joint")


def columns(*changed: Any) -> dict[str, Any]:
    return SOLD | {"rows": SALES | {"columns": list(changed)}}


BAD: list[tuple[str, Any]] = [
    ("null", None),
    ("a list", []),
    ("a field too many", PLAIN | {"colour": "red"}),
    ("a kind", PLAIN | {"kind": "collection"}),
    ("another version", PLAIN | {"version": 2}),
    ("no title", PLAIN | {"title": {}}),
    ("a title without language", PLAIN | {"title": "Title"}),
    ("an empty title", PLAIN | {"title": {"en": ""}}),
    ("a long title", PLAIN | {"title": {"en": "x" * 201}}),
    ("a bad language", PLAIN | {"title": {"english": "x"}}),
    ("text that is not NFC", PLAIN | {"title": {"en": "cafe\u0301"}}),
    ("no questions", PLAIN | {"questions": []}),
    ("questions that are no list", PLAIN | {"questions": {}}),
    ("a question too many", PLAIN | {"questions": [COLOURS, SMOKER]}),
    ("a question twice", PAIR | {"questions": [COLOURS, COLOURS]}),
    ("a question without text", PLAIN | {"questions": [COLOURS | {"text": {}}]}),
    ("a question with a bad name", PLAIN | {"questions": [COLOURS | {"name": "Colour"}]}),
    ("a question with a bad task", PLAIN | {"questions": [COLOURS | {"task": 1}]}),
    ("a question with a bad domain", PLAIN | {"questions": [COLOURS | {"domain": {"kind": "colours"}}]}),
    ("a question with a further field", PLAIN | {"questions": [COLOURS | {"more": 1}]}),
    ("a policy for several questions", PLAIN | {"policy": "all_of"}),
    ("a policy for one question", PAIR | {"policy": "single"}),
    ("an unknown policy", PAIR | {"policy": "some_of"}),
    ("another epsilon than the mechanism's", PLAIN | {"epsilon": "2"}),
    ("an epsilon that is not canonical", PLAIN | {"epsilon": "1.0"}),
    ("a mechanism that is not canonical", PLAIN | {"mechanism": GRR | {"epsilon": "1.0"}}),
    ("a mechanism of another size", PLAIN | {"mechanism": GRR | {"size": 4}}),
    ("a mechanism for two questions", PLAIN | {"mechanism": ALL_OF}),
    ("a mechanism for one question", PAIR | {"mechanism": GRR}),
    ("an unknown mechanism", PLAIN | {"mechanism": {"kind": "no_noise", "epsilon": "1"}}),
    ("no mechanism", {name: value for name, value in PLAIN.items() if name != "mechanism"}),
    ("a fraction", PLAIN | {"minimum_cohort": 0.5}),
    ("129 questions", document(FLAGS, coefficients([2] * 129, 1), policy="joint")),
    ("a policy of another mechanism", PAIR | {"policy": "one_of"}),
    ("one question together", PLAIN | {"policy": "joint"}),
    ("all of two together", PAIR | {"policy": "joint"}),
    ("one of three together", document([COLOURS, AGE, SMOKER], ONE_OF, policy="joint")),
    ("one mechanism together", TOGETHER | {"mechanism": GRR}),
    ("attributes in another order", TOGETHER | {"questions": [SMOKER, COLOURS, YEARS]}),
    ("fewer questions than attributes", TOGETHER | {"questions": [COLOURS, SMOKER]}),
    ("more questions than attributes", TOGETHER | {"questions": [*ATTRIBUTES, AGE]}),
    ("views of other sizes", document([COLOURS, SMOKER, AGE], VIEWS, policy="joint")),
    ("rows not stated", {name: value for name, value in PLAIN.items() if name != "rows"}),
    ("rows that are no object", PLAIN | {"rows": 1}),
    ("rows that are false", PLAIN | {"rows": False}),
    ("rows that are a list", PLAIN | {"rows": SALES["columns"]}),
    ("rows without a table", PLAIN | {"rows": {"columns": SALES["columns"]}}),
    ("rows without columns", PLAIN | {"rows": {"table": "sales"}}),
    ("rows with a further field", PLAIN | {"rows": SALES | {"more": 1}}),
    ("rows with a bad table", PLAIN | {"rows": SALES | {"table": "Sales"}}),
    ("no columns", columns()),
    ("columns that are no list", SOLD | {"rows": SALES | {"columns": {}}}),
    ("257 columns", columns(*({"name": f"column_{i}", "type": "text"} for i in range(257)))),
    ("a column in text", columns("amount")),
    ("a column without type", columns({"name": "amount"})),
    ("a column of an unknown type", columns({"name": "amount", "type": "money"})),
    ("a column of a type that objects have", columns({"name": "amount", "type": "constructor"})),
    ("a column with a bad name", columns({"name": "Amount", "type": "number"})),
    ("a column with a further field", columns({"name": "amount", "type": "number", "unit": "euro"})),
    ("a column twice", columns(*SALES["columns"][:1], *SALES["columns"][:1])),
    ("a column that is a question", columns({"name": "colour", "type": "text"})),
]

SETTINGS: list[tuple[str, Any]] = [
    ("no cohort", PLAIN | {"minimum_cohort": 0}),
    ("a cohort in text", PLAIN | {"minimum_cohort": "100"}),
    ("no retention", PLAIN | {"retention_days": 0}),
    ("an origin with a path", PLAIN | {"origins": ["https://example.org/page"]}),
    ("origins that are no list", PLAIN | {"origins": "*"}),
    ("invitations that are no boolean", PLAIN | {"invitations": 1}),
    ("a plan that is no object", PLAIN | {"plan": 1}),
    ("a round without its first document", PLAIN | {"plan": ROUND | {"first": ""}}),
    ("a first round that follows another", PLAIN | {"plan": ROUND | {"round": 1}}),
    ("round zero", PLAIN | {"plan": ROUND | {"round": 0, "first": "", "previous": ""}}),
    ("a plan with a further field", PLAIN | {"plan": ROUND | {"more": 1}}),
    ("rows in a plan", SOLD | {"plan": ROUND}),
    ("a column called report", columns({"name": "report", "type": "text"})),
    ("a column called member", columns({"name": "member", "type": "integer"})),
    ("a plan whose first document is an object", PLAIN | {"plan": ROUND | {"first": {}}}),
    ("a plan whose first document is a list", PLAIN | {"plan": ROUND | {"first": ["a" * 64]}}),
    ("a plan whose first document is no id", PLAIN | {"plan": ROUND | {"first": "A" * 64}}),
    ("a plan of no method", PLAIN | {"plan": ROUND | {"method": "SVIM"}}),
    ("a plan for nobody", PLAIN | {"plan": ROUND | {"respondents": 0}}),
    ("a table that SQL reserves", PLAIN | {"rows": SALES | {"table": "select"}}),
    ("a column of the catalogue", columns({"name": "pg_amount", "type": "number"})),
    ("a column whose type is a list", columns({"name": "amount", "type": ["number"]})),
    ("a question that SQL reserves beside rows", SOLD | {"questions": [COLOURS | {"name": "user"}]}),
]

SET = {"kind": "padded", "epsilon": "1", "size": 300, "candidates": [], "inner": grr(302), "length": 2}
BASKET = {"kind": "items", "name": "basket", "labels": [f"item {i}" for i in range(300)], "most": None}
BOTH = {"kind": "questions", "mechanisms": [SET, grr(3)], "weights": [1, 1]}
TREE = {"kind": "tree", "size": 4, "fanout": 2, "heights": [1, 0], "mechanisms": [grr(2), grr(4)], "weights": [1, 1]}
FOUR = question("four", {"kind": "integers", "name": "four", "low": 0, "high": 3, "step": 1})

UNFIT: list[tuple[str, Any]] = [
    ("a set too wide for its payload", document([question("basket", BASKET), COLOURS], one_of(BOTH))),
    ("levels of a tree as questions", document([SMOKER, FOUR], one_of(TREE))),
    ("all answers to one question of free text", document([WORD], ALL_OF | {"members": ALL_OF["members"][:1]})),
    ("a mechanism with a constructor", PLAIN | {"mechanism": GRR | {"constructor": 1}}),
    ("a family with a constructor", TOGETHER | {"mechanism": GRID | {"family": GRID["family"] | {"constructor": 1}}}),
    ("a mechanism with a prototype", PLAIN | {"mechanism": GRR | {"__proto__": {}}}),
    ("a title in no language", PLAIN | {"title": {"en": "x", "__proto__": "y"}}),
]
"""Mechanisms that look as if they fitted, and keys that objects of JavaScript have."""

UNSHUFFLED = {
    "rows": SOLD,
    "rounds": document([COLOURS], GRR, plan=ROUND),
    "pairs of answers": PAIR,
    "questions together": TOGETHER,
    "sums": document([AGE], {"kind": "onebit", "epsilon": "0.5", "top": 120}),
    "bits": document([COLOURS], {"kind": "oue", "epsilon": "1", "size": 3}),
    "hashes of one bit": document([COLOURS], {"kind": "blh", "epsilon": "1", "size": 3}),
    "repeated answers": document([COLOURS], MEMO),
}
"""What shufflers cannot take."""

UNWINDOWED = {name: UNSHUFFLED[name] for name in ("rows", "rounds", "pairs of answers", "repeated answers")}
"""What is not asked again and again."""

TEXTS: list[tuple[str, str]] = [
    ("a version with a point", json.dumps(PLAIN | {"version": 1.0})),
    ("a size with a point", json.dumps(PLAIN | {"mechanism": GRR | {"size": 3.0}})),
    ("a cohort with an exponent", json.dumps(PLAIN).replace('"minimum_cohort": 100', '"minimum_cohort": 1E2')),
    ("a document that is cut off", json.dumps(PLAIN)[:-1]),
    ("no number", json.dumps(PLAIN | {"minimum_cohort": float("nan")})),
]
"""Documents that a parser of JSON may not tell from good ones, or cannot read."""


def plain(value: Any) -> Any:
    """A value in JSON."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return {"integer": str(value)} if value >= 1 << 53 else value


def block_of(collection: Collection, report: bytes) -> Block:
    """A report of `one_of` begins with its member, which a batch states beside the report."""
    if isinstance(collection.mechanism, OneOfDevice):
        return Block(int.from_bytes(report[:4], "little"), 1, report[4:])
    return Block(0, 1, report)


def answered(collection: Collection, answers: dict[str, Any], seed: bytes, row: Any = None) -> dict[str, Any]:
    """A case: answers, their value, and the report and batch from known coins."""
    value = collection.encode(answers)
    report = collection.mechanism.privatize_one(value, ReplayCoins(seed))
    block = block_of(collection, report)
    batch = Batch(collection.id, BATCH_ID, (block,), None if collection.windows is None else WINDOW)
    widths = [len(block.payload)] * (block.member + 1)
    case = {"answers": answers, "value": plain(value), "seed": seed.hex(), "report": report.hex()}
    if collection.shuffle is not None:
        return case
    twin = batch_to_json(batch, widths)
    if collection.rows is None:
        return case | {"batch": encode_batch(batch).hex(), "batch_json": twin}
    twin["reports"][0]["row"] = collection.rows.check_row({} if row is None else row)
    return case | {"row": row, "batch_json": twin}


def good(name: str, value: dict[str, Any], answers: list[dict[str, Any]]) -> dict[str, Any]:
    collection = Collection.from_json(value)
    cases = [answered(collection, given, bytes([i])) for i, given in enumerate(answers)]
    return {"name": name, "document": value, "id": collection.id, "cases": cases}


def with_rows(name: str, value: dict[str, Any], given: list[tuple[dict[str, Any], Any]]) -> dict[str, Any]:
    collection = Collection.from_json(value)
    cases = [answered(collection, answers, bytes([i]), row) for i, (answers, row) in enumerate(given)]
    return {"name": name, "document": value, "id": collection.id, "cases": cases}


def bad(name: str, value: Any) -> dict[str, Any]:
    try:
        Collection.from_json(value)
    except InvalidSpec:
        return {"name": name, "document": value, "error": "InvalidSpec"}
    raise AssertionError(f"accepted: {name}")


def bad_text(name: str, text: str) -> dict[str, Any]:
    try:
        Collection.from_text(text)
    except InvalidSpec:
        return {"name": name, "text": text, "error": "InvalidSpec"}
    raise AssertionError(f"accepted: {name}")


def bad_answers(place: int, answers: Any) -> dict[str, Any]:
    try:
        Collection.from_json(GOOD[place][1]).encode(answers)
    except InvalidValue:
        return {"document": GOOD[place][0], "answers": answers, "error": "InvalidValue"}
    raise AssertionError(f"accepted: {answers}")


def bad_row(row: Any, collector: bool) -> dict[str, Any]:
    name, value, _ = WITH_ROWS[0]
    rows = Collection.from_json(value).rows
    assert rows is not None
    try:
        rows.check_row(row)
    except InvalidValue:
        return {"document": name, "row": row, "error": "InvalidValue", "collector": collector}
    raise AssertionError(f"accepted: {row}")


def make() -> str:
    """The file, one case a line."""
    newer = [*shuffled.good(PLAIN, document([WORD], OLH)), *windowed.good(PLAIN), *tokens.good(PLAIN)]
    worse = [*shuffled.bad(PLAIN, UNSHUFFLED), *windowed.bad(PLAIN, UNWINDOWED)]
    worse += tokens.bad(PLAIN, UNSHUFFLED["rounds"])
    sections = {
        "good": [good(*case) for case in (*GOOD, *newer)] + [with_rows(*case) for case in WITH_ROWS],
        "bad_documents": [bad(*case) for case in (*BAD, *SETTINGS, *UNFIT, *worse)],
        "bad_texts": [bad_text(*case) for case in TEXTS],
        "bad_answers": [bad_answers(*case) for case in BAD_ANSWERS],
        "bad_rows": [bad_row(*case) for case in BAD_ROWS],
    }
    lines = {name: ",\n".join("  " + json.dumps(case) for case in cases) for name, cases in sections.items()}
    return "{\n" + ",\n".join(f'"{name}": [\n{text}\n]' for name, text in lines.items()) + "\n}\n"


if __name__ == "__main__":
    TARGET.write_text(make(), encoding="utf-8")
