"""Cases of padding and sampling, and of the number of candidates in a set."""

from typing import Any


def _grr(size: int, epsilon: Any = "1") -> dict[str, Any]:
    return {"kind": "grr", "size": size, "epsilon": epsilon}


def _amplified(size: int, sampled: int, of: str = "1") -> dict[str, Any]:
    return _grr(size, {"of": of, "sampled": sampled})


def _padded(size: int, length: int, inner: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"epsilon": "1", "size": size, "length": length, "inner": inner} | fields


def _olh(size: int, epsilon: Any = "1") -> dict[str, Any]:
    return {"kind": "olh", "size": size, "epsilon": epsilon, "buckets": 4, "state": "counts"}


PAIRS = [[0], [0, 3], [2, 3], [3]]
HALF = {"of": "2", "share": "1/2"}

CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "padded": [
        ("amplified", _padded(8, 4, _amplified(12, 4)), [[], [7], [0, 2, 5, 7], [0, 1, 2, 3, 4, 5, 6, 7]]),
        ("uneven_length", _padded(5, 3, _amplified(8, 3)), [[], [4], [0, 2], [0, 1, 2, 3, 4]]),
        ("length_one", _padded(300, 1, _amplified(301, 1)), [[], [299], [0, 7, 299]]),
        ("itemsets", _padded(4, 2, _amplified(6, 2), candidates=PAIRS), [[], [0, 3], [1], [0, 1, 2, 3]]),
        ("one_item", _padded(1, 1, _amplified(2, 1)), [[], [0]]),
        ("plain_randomised_response", _padded(8, 4, _grr(12)), [[], [3, 5]]),
        ("olh", _padded(50_000, 5, _olh(50_005) | {"state": "log"}), [[], [1, 2, 49_999], list(range(9))]),
        ("oue", _padded(70, 4, {"kind": "oue", "size": 74, "epsilon": "1"}), [[], [0, 69]]),
        ("sue", _padded(3, 2, {"kind": "sue", "size": 5, "epsilon": "1"}), [[], [0, 1, 2]]),
        ("blh", _padded(9, 3, {"kind": "blh", "size": 12, "epsilon": HALF}, epsilon=HALF), [[], [8]]),
        ("largest_epsilon", _padded(3, 7, _amplified(10, 7, "32"), epsilon="32"), [[], [0, 1, 2]]),
        ("smallest_epsilon", _padded(3, 5, _amplified(8, 5, "0.001"), epsilon="0.001"), [[], [0, 1, 2]]),
        ("unspent", _padded(3, 2, _amplified(5, 2, "0.5"), epsilon="2"), [[1]]),
        ("any_order", _padded(8, 4, _amplified(12, 4)), [[7, 0, 3]]),
    ],
    "set_size": [
        ("items", {"epsilon": "1", "size": 6, "inner": _grr(7)}, [[], [5], [0, 1, 2, 3, 4, 5]]),
        ("at_most", {"epsilon": "1", "size": 900, "most": 3, "inner": _grr(4)}, [[], [0, 1], [0, 1, 2, 3, 4]]),
        ("itemsets", {"epsilon": "1", "size": 4, "candidates": PAIRS, "inner": _olh(5)}, [[], [0, 3], [0, 1, 2, 3]]),
    ],
}

GOOD: dict[str, Any] = _padded(4, 2, _amplified(6, 2), candidates=[])
OF_PAIRS: dict[str, Any] = GOOD | {"candidates": PAIRS}
SIZE: dict[str, Any] = {"epsilon": "1", "size": 4, "candidates": [], "most": 2, "inner": _grr(3)}

BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "padded": [
        ("inner_missing", {"spec": {"epsilon": "1", "size": 4, "candidates": [], "length": 2}}, "InvalidSpec"),
        ("inner_kind", {"spec": GOOD | {"inner": {"kind": "hrr", "size": 6, "epsilon": "1"}}}, "InvalidSpec"),
        ("inner_padded", {"spec": GOOD | {"inner": {"kind": "padded"} | GOOD}}, "InvalidSpec"),
        ("inner_text", {"spec": GOOD | {"inner": "grr"}}, "InvalidSpec"),
        ("one_shared_dummy", {"spec": GOOD | {"inner": _amplified(5, 2)}}, "InvalidSpec"),
        ("amplified_for_another_length", {"spec": GOOD | {"inner": _amplified(6, 3)}}, "InvalidSpec"),
        ("amplified_olh", {"spec": GOOD | {"inner": _olh(6, {"of": "1", "sampled": 2})}}, "InvalidSpec"),
        (
            "amplified_oue",
            {"spec": GOOD | {"inner": {"kind": "oue", "size": 6, "epsilon": {"of": "1", "sampled": 2}}}},
            "InvalidSpec",
        ),
        ("amplified_itself", {"spec": GOOD | {"epsilon": {"of": "1", "sampled": 2}}}, "InvalidSpec"),
        ("inner_beyond_epsilon", {"spec": GOOD | {"inner": _amplified(6, 2, "1.1")}}, "InvalidSpec"),
        ("inner_field_unknown", {"spec": GOOD | {"inner": _amplified(6, 2) | {"colour": 1}}}, "InvalidSpec"),
        ("length_zero", {"spec": GOOD | {"length": 0}}, "InvalidSpec"),
        ("size_zero", {"spec": GOOD | {"size": 0}}, "InvalidSpec"),
        ("candidates_no_list", {"spec": GOOD | {"candidates": 4}}, "InvalidSpec"),
        ("candidate_no_list", {"spec": OF_PAIRS | {"candidates": [0, 1, 2, 3]}}, "InvalidSpec"),
        ("candidate_empty", {"spec": OF_PAIRS | {"candidates": [[], [0], [1], [2]]}}, "InvalidSpec"),
        ("candidate_unsorted", {"spec": OF_PAIRS | {"candidates": [[0], [3, 0], [2, 3], [3]]}}, "InvalidSpec"),
        ("candidate_outside", {"spec": OF_PAIRS | {"candidates": [[0], [0, 4], [2, 3], [3]]}}, "InvalidSpec"),
        ("candidate_fraction", {"spec": OF_PAIRS | {"candidates": [[0], [0.5], [2, 3], [3]]}}, "InvalidSpec"),
        ("candidate_boolean", {"spec": OF_PAIRS | {"candidates": [[False], [0, 3], [2, 3], [3]]}}, "InvalidSpec"),
        ("candidates_unsorted", {"spec": OF_PAIRS | {"candidates": [[0, 3], [0], [2, 3], [3]]}}, "InvalidSpec"),
        ("candidates_repeated", {"spec": OF_PAIRS | {"candidates": [[0], [0], [2, 3], [3]]}}, "InvalidSpec"),
        ("value_number", {"spec": GOOD, "value": 1}, "InvalidValue"),
        ("value_text", {"spec": GOOD, "value": "01"}, "InvalidValue"),
        ("value_null", {"spec": GOOD, "value": None}, "InvalidValue"),
        ("value_object", {"spec": GOOD, "value": {"0": 1}}, "InvalidValue"),
        ("item_outside", {"spec": GOOD, "value": [0, 4]}, "InvalidValue"),
        ("item_negative", {"spec": GOOD, "value": [-1]}, "InvalidValue"),
        ("item_repeated", {"spec": GOOD, "value": [2, 1, 2]}, "InvalidValue"),
        ("item_text", {"spec": GOOD, "value": ["1"]}, "InvalidValue"),
        ("item_nested", {"spec": GOOD, "value": [[1]]}, "InvalidValue"),
        ("report_out_of_range", {"spec": GOOD, "report": "06"}, "ReportRejected"),
    ],
    "set_size": [
        ("amplified", {"spec": SIZE | {"inner": _amplified(3, 2)}}, "InvalidSpec"),
        ("inner_size", {"spec": SIZE | {"inner": _grr(4)}}, "InvalidSpec"),
        ("most_beyond_candidates", {"spec": SIZE | {"most": 5, "inner": _grr(6)}}, "InvalidSpec"),
        ("inner_beyond_epsilon", {"spec": SIZE | {"inner": _grr(3, "2")}}, "InvalidSpec"),
        ("item_repeated", {"spec": SIZE, "value": [0, 0]}, "InvalidValue"),
        ("report_out_of_range", {"spec": SIZE, "report": "03"}, "ReportRejected"),
    ],
}
