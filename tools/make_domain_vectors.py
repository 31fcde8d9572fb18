"""Write spec/vectors/domains.json: answers and their indices, and refusals, that every implementation must share.

Usage: python tools/make_domain_vectors.py

Sizes and indices are decimal text, because they may exceed 2^53. Messages are part of the vectors.
"""

import json
from pathlib import Path
from typing import Any

from tacit.device.domains.product import domain_of
from tacit.errors import InvalidSpec, InvalidValue

TARGET = Path(__file__).resolve().parents[1] / "spec" / "vectors" / "domains.json"

COLOURS = {"kind": "categories", "name": "colour", "labels": ["red", "caf\u00e9", "\U0001f600"], "other": None}
BROWSER = {"kind": "categories", "name": "browser", "labels": ["Firefox", "Chrome"], "other": "another"}
SMOKER = {"kind": "booleans", "name": "smoker"}
YEAR = {"kind": "integers", "name": "year", "low": -10, "high": 20, "step": 5}
WIDE = {"kind": "integers", "name": "wide", "low": -(2**52), "high": 2**52 - 2, "step": 1}
TENTHS = {"kind": "buckets", "name": "x", "edges": ["0", "0.1", "0.3", "0.7", "1"]} | {
    "open_below": False,
    "open_above": False,
}
INCOME = {"kind": "buckets", "name": "income", "edges": ["-1.5", "0", "1000.25"]} | {
    "open_below": True,
    "open_above": True,
}
MOOD = {"kind": "ordered", "name": "mood", "labels": ["bad", "fair", "good"]}
FLAGS = {"kind": "bits", "name": "flags", "length": 4}
LONG = {"kind": "bits", "name": "long", "length": 64}
WORD = {"kind": "strings", "name": "word", "key": "2024-a", "max_bytes": 12}
QUERY = {"kind": "text", "name": "query", "alphabet": "bytes", "length": 8}
NAME = {"kind": "text", "name": "name", "alphabet": "lower", "length": 13}
CODE = {"kind": "text", "name": "code", "alphabet": "01\u00e9\U0001f600", "length": 2}
PLAIN = {"kind": "text", "name": "plain", "alphabet": "printable", "length": 9}
BASKET = {"kind": "items", "name": "basket", "labels": ["bread", "caf\u00e9", "milk"], "most": 2}
DRAWER = {"kind": "items", "name": "drawer", "labels": ["pen"], "most": None}
MAYBE_SMOKER = {"kind": "optional", "domain": SMOKER, "declined": "prefer not to say"}
MAYBE_YEAR = {"kind": "optional", "domain": YEAR, "declined": "keine Angabe"}
MAYBE_MOOD = {"kind": "optional", "domain": MOOD, "declined": "caf\u00e9"}
MAYBE_BROWSER = {"kind": "optional", "domain": BROWSER, "declined": "no answer"}
MAYBE_INCOME = {"kind": "optional", "domain": INCOME, "declined": "no answer"}
MAYBE_BASKET = {"kind": "optional", "domain": BASKET, "declined": "no answer"}
TABLE = {"kind": "product", "attributes": [SMOKER, YEAR, MOOD]}
HUGE = {"kind": "product", "attributes": [WORD, FLAGS, LONG]}

GOOD: list[tuple[dict[str, Any], list[Any]]] = [
    (COLOURS, ["red", "caf\u00e9", "cafe\u0301", "\U0001f600"]),
    (BROWSER, ["Firefox", "Chrome", "another", "Lynx", "", "\ud800"]),
    (SMOKER, [True, False, 1, 0, "true", "false"]),
    (YEAR, [-10, 20, "5", "+5", "-5.0", "1e1", ".5e1", 10.0, "00015"]),
    (WIDE, [-(2**52), 0, 2**52 - 2, "4.5035996273704940e15"]),
    (TENTHS, [0, 0.1, 0.3, 0.7, "0.3", "0.29999999999999999999", 0.2999999, "0.0", -0.0, "1e-7", 1e-7, ".999"]),
    (INCOME, [-1e300, "-1.5000001", "-1.5", -1.5, 0, 1000.25, "1000.249", 1e21, "1e999"]),
    (MOOD, ["bad", "good"]),
    (FLAGS, ["0110", "1111", [0, 1, 1, 0], [True, False, False, True]]),
    (LONG, ["0" * 63 + "1", "1" * 64]),
    (WORD, ["", "word", "caf\u00e9", "cafe\u0301", "\U0001f600\U0001f600\U0001f600", "\u2028\u0000"]),
    (QUERY, ["", "google", "caf\u00e9", "cafe\u0301", "\U0001f600\U0001f600", "\ufeffx", "\u2028", "\x01\x7f"]),
    (NAME, ["", "a", "isabella", "z" * 13]),
    (CODE, ["", "0", "10", "\u00e9\U0001f600", "e\u03010"]),
    (PLAIN, ["", " ", "a b~"]),
    (TABLE, [[True, 20, "good"], {"mood": "fair", "smoker": False, "year": "0"}]),
    (TABLE, [{"mood": "bad", "smoker": 1, "year": 5, "more": 7}]),
    (BASKET, [[], ["milk"], ["milk", "bread"], ["cafe\u0301", "bread"]]),
    (DRAWER, [[], ["pen"]]),
    (HUGE, [["word", "0001", "1" * 64]]),
    (MAYBE_SMOKER, [True, "false", None, "prefer not to say"]),
    (MAYBE_YEAR, [-10, "20", None, "keine Angabe"]),
    (MAYBE_MOOD, ["good", None, "caf\u00e9"]),
    (MAYBE_BROWSER, ["Lynx", "another", "no answer", None, ""]),
    (MAYBE_INCOME, ["0", 1e21, None]),
    (MAYBE_BASKET, [[], ["milk", "bread"], None, "no answer"]),
]  # fmt: skip

BAD_VALUES: list[tuple[dict[str, Any], list[Any]]] = [
    (COLOURS, ["blue", "", "Red", "red ", None, 0, True, ["red"], "\ud800"]),
    (BROWSER, [None, 1, ["Firefox"]]),
    (SMOKER, ["yes", "True", "", 2, -1, None, [], {}, 0.5]),
    (YEAR, [-11, 21, 25, -15, 1, "1", 5.5, "", " 5", "5 ", "0x5", "1_0", "\u0665", "1" * 41]),
    (YEAR, ["NaN", "Infinity", None, True, [5]]),
    (WIDE, [2**52 - 1, "4503599627370496", "-4503599627370497", "0.5"]),
    (TENTHS, [1, "1", 1.5, -0.1, "-1e-9", "-1e-999", "1e999", "abc", "", "1,5", ".", "1.", None, True, {}, "1e1000"]),
    (INCOME, ["", "-", "Infinity", None, False]),
    (MOOD, ["better", "GOOD", None, 1]),
    (FLAGS, ["011", "01100", "0120", "", " 110", [0, 1, 1], [0, 1, 1, 2], [0, 1, 1, "0"], [0, 1, 1, None], 6, None]),
    (WORD, ["thirteen byte", "\U0001f600\U0001f600\U0001f600!", "\ud800", "a\udc00", None, 7, ["word"]]),
    (QUERY, ["123456789", "a\0", "\0", "\ud800", "\U0001f600\U0001f600!", "x" * 10_000, None, 7, ["a"], True]),
    (NAME, ["Isabella", "a b", "z" * 14, "caf\u00e9", "a\0", "\U0001f600", 0]),
    (CODE, ["2", "e", "\u0301", "000"]),
    (TABLE, [[True, 20], [True, 20, "good", 1], [True, 21, "good"], ["maybe", 20, "good"]]),
    (BASKET, [["milk", "milk"], ["caf\u00e9", "cafe\u0301"], ["tea"], ["milk", 1], ["milk", None], [["milk"]], [""]]),
    (BASKET, ["milk", None, 1, {}, {"milk": 1}, ["milk", "bread", "caf\u00e9"]]),
    (TABLE, [{"smoker": 1, "year": 0}, {}, "table", None, 7]),
    (MAYBE_SMOKER, ["yes", 2, "Prefer not to say", [None]]),
    (MAYBE_YEAR, [1, "no answer", ""]),
    (MAYBE_MOOD, ["cafe\u0301", 3, False]),
    (MAYBE_BASKET, [["no answer"], [None], "milk", {}]),
]  # fmt: skip

BAD_SPECS: list[Any] = [
    None,
    "booleans",
    [],
    {},
    {"kind": "constructor", "name": "x"},
    {"kind": "booleans"},
    {"kind": "booleans", "name": ""},
    {"kind": "booleans", "name": None},
    {"kind": "booleans", "name": "x" * 65},
    {"kind": "booleans", "name": "\u00e9" * 33},
    {"kind": "booleans", "name": "\ud800"},
    {"kind": "booleans", "name": "x", "colour": "red", "age": 1},
    BROWSER | {"labels": []},
    BROWSER | {"labels": "Firefox"},
    BROWSER | {"labels": ["a", "a"]},
    BROWSER | {"labels": ["e\u0301", "\u00e9"]},
    BROWSER | {"labels": ["a", ""]},
    BROWSER | {"labels": ["a", 1]},
    BROWSER | {"labels": ["a" * 257]},
    BROWSER | {"other": "Chrome"},
    BROWSER | {"other": ""},
    BROWSER | {"other": 1},
    {"kind": "ordered", "name": "x", "labels": ["a"], "other": "b"},
    YEAR | {"step": 4},
    YEAR | {"step": 0},
    YEAR | {"step": "5"},
    YEAR | {"high": -15},
    YEAR | {"low": 0.5},
    YEAR | {"high": True},
    YEAR | {"high": 2**53},
    WIDE | {"high": 2**52 - 1},
    {"kind": "integers", "name": "x", "low": 0, "high": 1},
    TENTHS | {"edges": ["0"]},
    TENTHS | {"edges": []},
    INCOME | {"edges": []},
    TENTHS | {"edges": "01"},
    TENTHS | {"edges": ["0", "0.0"]},
    TENTHS | {"edges": ["1", "0"]},
    TENTHS | {"edges": [0.5, 1.5]},
    TENTHS | {"edges": ["0", "1e3"]},
    TENTHS | {"edges": ["0", "+1"]},
    TENTHS | {"edges": ["0", None]},
    TENTHS | {"edges": ["0", "1" * 16]},
    TENTHS | {"edges": ["0", "1.0"]},
    TENTHS | {"edges": [0, 1]},
    {"kind": "ordered", "name": "cafe\u0301", "labels": ["cafe\u0301"]},
    {"kind": "product", "attributes": [TENTHS | {"edges": ["-0", "1"]}]},
    TENTHS | {"open_below": 1},
    TENTHS | {"open_above": None},
    MAYBE_SMOKER | {"declined": ""},
    MAYBE_SMOKER | {"declined": None},
    MAYBE_SMOKER | {"declined": "x" * 257},
    MAYBE_SMOKER | {"domain": "booleans"},
    MAYBE_SMOKER | {"domain": None},
    MAYBE_SMOKER | {"domain": NAME},
    MAYBE_SMOKER | {"domain": FLAGS},
    MAYBE_SMOKER | {"domain": MAYBE_SMOKER},
    MAYBE_SMOKER | {"domain": TABLE},
    MAYBE_SMOKER | {"domain": {"kind": "booleans"}},
    MAYBE_SMOKER | {"name": "smoker"},
    MAYBE_MOOD | {"declined": "fair"},
    MAYBE_BROWSER | {"declined": "another"},
    MAYBE_BASKET | {"declined": "milk"},
    MAYBE_YEAR | {"domain": YEAR | {"high": 2**21, "low": 0, "step": 1}},
    {"kind": "product", "attributes": [MAYBE_SMOKER]},
    FLAGS | {"length": 0},
    FLAGS | {"length": 65},
    FLAGS | {"length": "4"},
    WORD | {"key": ""},
    WORD | {"max_bytes": 0},
    WORD | {"max_bytes": 65537},
    QUERY | {"length": 9},
    QUERY | {"length": 0},
    NAME | {"length": 14},
    NAME | {"length": "13"},
    NAME | {"alphabet": ""},
    NAME | {"alphabet": "ba"},
    NAME | {"alphabet": "aab"},
    NAME | {"alphabet": "\0a"},
    NAME | {"alphabet": "UPPER"},
    NAME | {"alphabet": 26},
    PLAIN | {"length": 10},
    CODE | {"length": 65},
    BASKET | {"most": 0},
    BASKET | {"most": 4},
    BASKET | {"most": "2"},
    BASKET | {"labels": []},
    BASKET | {"labels": ["a", "a"]},
    BASKET | {"name": ""},
    {"kind": "product", "attributes": [BASKET]},
    {"kind": "product", "attributes": []},
    {"kind": "product", "attributes": {}},
    {"kind": "product", "attributes": [SMOKER, SMOKER]},
    {"kind": "product", "attributes": [TABLE]},
    {"kind": "product", "attributes": ["smoker"]},
    {"kind": "product", "attributes": [{"kind": "booleans"}]},
]


def text(index: Any) -> str:
    """An index, or the indices of a set of items, as text."""
    return ",".join(map(str, index)) if isinstance(index, tuple) else str(index)


def good(spec: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    """A domain, its labels where they are few, and the indices of some answers."""
    domain = domain_of(spec)
    labels = domain.all_labels() if domain.size <= 64 else None
    cases = [[value, text(domain.encode(value))] for value in values]
    return {"spec": domain.spec(), "digest": domain.digest, "size": str(domain.size)} | {
        "labels": labels,
        "cases": cases,
    }


def refusal(spec: dict[str, Any], value: Any) -> dict[str, Any]:
    """The message a value is refused with."""
    try:
        domain_of(spec).encode(value)
    except InvalidValue as error:
        return {"spec": spec, "value": value, "error": "InvalidValue", "message": str(error)}
    raise AssertionError(f"{spec['kind']} accepts {value!r}")


def bad_spec(spec: Any) -> dict[str, Any]:
    """The message a spec is refused with."""
    try:
        domain_of(spec)
    except InvalidSpec as error:
        return {"spec": spec, "error": "InvalidSpec", "message": str(error)}
    raise AssertionError(f"accepted: {spec!r}")


def make() -> str:
    """The file, one case a line."""
    sections = {
        "good": [good(spec, values) for spec, values in GOOD],
        "bad_values": [refusal(spec, value) for spec, values in BAD_VALUES for value in values],
        "bad_specs": [bad_spec(spec) for spec in BAD_SPECS],
    }
    lines = {name: ",\n".join("  " + json.dumps(case) for case in cases) for name, cases in sections.items()}
    return "{\n" + ",\n".join(f'"{name}": [\n{text}\n]' for name, text in lines.items()) + "\n}\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(make(), encoding="utf-8")
