"""Documents with one to three random changes, from a seed: what a hostile or careless collector might publish."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

VECTORS = Path(__file__).resolve().parents[2] / "spec" / "vectors"
LIMIT = 1 << 53
VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], [1], [1, 2], {"kind": "grr"}, {"en": "text"}),
    *(0, 1, -1, 2, 3, 4, 8, 16, 100, 255, 256, 257, 1 << 16, 1 << 20, 1 << 24, 1 << 32, 1 << 40, LIMIT - 1, LIMIT),
    *(1.0, 2.0, 0.5, -0.0, 1e300, "", "0", "1", "01", "1.0", "0.5", "2", "32", "33", "1/2", "2/4", "9007199254740992"),
    *("18446744073709551616", "a", "A", "a" * 41, "a" * 64, "f" * 64, "é", "e\u0301", "\ud800", "x\n", " 1", "kind"),
    *("constructor", "__proto__", "toString", "select", "report", "pg_x", "single", "one_of", "all_of", "joint"),
    *("grr", "oue", "olh", "onebit", "memo", "padded", "questions", "tree", "*", "https://example.org", "log"),
    *({"of": "1", "share": "1/2"}, {"of": "1", "sampled": 2}, {"of": "1", "share": "1/2", "constructor": 1}),
)
BUDGETS: tuple[Any, ...] = ("0.001", "32", "4", {"of": "0.001", "share": "1/999999999"}, {"of": "32", "share": "1/1"})
TERMS: tuple[Any, ...] = (
    *("relay", "ss", "osh", "osh-z", "peos-dgk", "1e-9", "2.5e-10", "1e-30", "1e-31", "1E-9", "9.99e-1", "1e-09"),
    *("collector", "shuffler_1", "shuffler_2", "shuffler_10", ["collector", "shuffler_1"], [["relay", "shuffler_2"]]),
    *("http://localhost", "http://localhost:80", "https://a.example:443", "https://a.example:8443/x_1/Y-2"),
    *("http://[::1]:8000", "https://a.example/", "https://a.example/x/", "https://a-.example", "https://1.2.3.4"),
    *("https://a.example:65535", "https://a.example:65536", "https://u@a.example", "https://a.example?q", 10**8, 10**4),
    *({"name": "A", "url": "https://a.example"}, {"name": "A", "identity": "f" * 64}, {}),
)
"""What the terms of a shuffled collection hold, or almost."""
KEYS = ("constructor", "__proto__", "toString", "kind", "more", "size", "weights", "length", "en", "de", "spec")


@cache
def documents() -> list[Any]:
    """Good documents: those of the vectors, and one about every kind of mechanism. Nobody changes them."""
    read = json.loads((VECTORS / "documents.json").read_text(encoding="utf-8"))
    found = [case["document"] for case in read["good"] if len(case["document"]["questions"]) < 10]
    plain = found[0]
    for path in sorted(VECTORS.glob("*/*.json")):
        vector = json.loads(path.read_text(encoding="utf-8"))
        if not path.name.startswith("bad_"):
            found.append(_about(plain, vector["spec"]))
    return [document for document in found if document is not None and len(json.dumps(document)) < 4000]


def _about(plain: Any, spec: Any) -> Any:
    """A document with one question, or one per member, whose domains have as many answers as the mechanism needs."""
    family = spec.get("family", {}) if spec["kind"] == "one_of" else {}
    parts = spec.get("members") or (family.get("mechanisms") if family.get("kind") == "questions" else None)
    sizes = family.get("sizes") or [_size(part) for part in parts or [spec]]
    listed = spec["kind"] == "all_of" or family.get("kind") in ("questions", "views", "coefficients")
    if any(LIMIT <= size < 1 << 64 for size in sizes) or (listed and len(sizes) < 2):
        return None  # No domain here has such a size, and one question has no list of answers.
    domains = [_domain(size, spec["kind"] in ("padded", "set_size")) for size in sizes]
    questions = [plain["questions"][0] | {"name": f"q_{i}", "domain": domain} for i, domain in enumerate(domains)]
    policy = "single" if len(questions) == 1 else "joint" if "sizes" in family else spec["kind"]
    return plain | {"questions": questions, "policy": policy, "epsilon": spec["epsilon"], "mechanism": spec}


def _size(spec: Any) -> int:
    inner = spec.get("family") if spec["kind"] == "one_of" else spec
    if "size" in inner:
        return int(inner["size"])
    if spec["kind"] == "rounded":
        return _size(spec["inner"]) // 2 * (spec["top"] + 1)
    return spec["top"] + 1 if "top" in spec else _size(spec["inner"]) if "inner" in spec else 1 << 64


def _domain(size: int, sets: bool) -> Any:
    if sets:
        return {"kind": "items", "name": "basket", "labels": [f"item {i}" for i in range(size)], "most": None}
    if size == 1 << 64:
        return {"kind": "strings", "name": "word", "key": "k", "max_bytes": 20}
    return {"kind": "integers", "name": "number", "low": 0, "high": size - 1, "step": 1}


class Mutator:
    """Changes documents at random places, by numpy's generator."""

    def __init__(self, seed: int, pool: list[Any], values: tuple[Any, ...] = VALUES) -> None:
        self._rng = np.random.default_rng(seed)
        self._pool, self._values = pool, values

    def texts(self, count: int) -> Iterator[str]:
        """So many changed documents, as JSON."""
        for _ in range(count):
            document = json.loads(json.dumps(self._one(self._pool)))
            if not self._rng.integers(8):
                _spend(document, self._one(BUDGETS))
            for _ in range(1 + int(self._rng.integers(3)) // 2):
                document = self._changed(document)
            yield json.dumps(document)

    def _one(self, items: Any) -> Any:
        return items[int(self._rng.integers(len(items)))]

    def _value(self) -> Any:
        """A copy, for the next change may be inside of it."""
        return deepcopy(self._one(self._values))

    def _changed(self, document: Any) -> Any:
        """The document with one change, most often below its mechanism, its plan, its rows or its questions."""
        root = {"document": document}
        places = list(_places(root))
        deep = [place for place in places if len(place) > 2]
        *way, key = self._one(deep if deep and self._rng.integers(4) else places)
        parent = root
        for step in way:
            parent = parent[step]
        self._one(self._changes())(parent, key)
        return root["document"]

    def _changes(self) -> tuple[Callable[[Any, Any], None], ...]:
        return (
            self._replace,
            self._replace,
            self._replace,
            self._nudge,
            self._nudge,
            self._drop,
            self._add,
            self._graft,
        )

    def _replace(self, parent: Any, key: Any) -> None:
        parent[key] = self._value()

    def _nudge(self, parent: Any, key: Any) -> None:
        value = parent[key]
        if type(value) is int:
            parent[key] = self._one([value + 1, value - 1, 2 * value, -value, value // 2, float(value), str(value)])
        elif isinstance(value, str):
            parent[key] = self._one([value + "x", value.upper(), value[:-1], value + "\u0301", value + " ", value * 9])
        elif isinstance(value, list) and value:
            parent[key] = self._one([value[::-1], value[1:], [*value, value[0]], [*value, self._value()], [value]])

    def _drop(self, parent: Any, key: Any) -> None:
        if len(parent) > 1:
            del parent[key]

    def _add(self, parent: Any, key: Any) -> None:
        value = parent[key]
        if isinstance(value, dict):
            value[self._one(KEYS)] = self._value()
        elif isinstance(value, list):
            value.insert(0, self._value())

    def _graft(self, parent: Any, key: Any) -> None:
        """Put a part of another document here, the one of the same name if there is one."""
        other = {"document": json.loads(json.dumps(self._one(self._pool)))}
        named = [place for place in _places(other) if place[-1] == key]
        way = self._one(named) if named else self._one(list(_places(other)))
        part = other
        for step in way:
            part = part[step]
        parent[key] = part


def _spend(value: Any, budget: Any) -> None:
    """Put the same budget everywhere, for a budget in one place alone is refused for that reason."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key == "epsilon":
            value[key] = budget
        else:
            _spend(item, budget)


def _places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value below; of long lists, to the first items alone."""
    if way:
        yield way
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*way, key))
    elif isinstance(value, list):
        for i in range(min(len(value), 4)):
            yield from _places(value[i], (*way, i))
