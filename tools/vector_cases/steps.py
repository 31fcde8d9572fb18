"""Cases of trees over time: first reports, and reports of devices with a history."""

from typing import Any

_GOOD: dict[str, Any] = {
    "epsilon": "1",
    "fanout": 4,
    "levels": 2,
    "count": 15,
    "changes": 2,
    "thresholds": [2, 2],
    "weights": [1, 1],
    "one_way": False,
}


def _bad(**fields: Any) -> dict[str, Any]:
    return _GOOD | fields


CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "tree_steps": [
        ("first_nodes", {"epsilon": "1", "fanout": 2, "levels": 3}, [0, 1]),
        ("one_way", {"epsilon": "1", "fanout": 4, "levels": 2, "one_way": True}, [0, 1, [0, 1], [1, 1], [1, 0, 1]]),
        ("two_changes", {"epsilon": "1", "fanout": 4, "levels": 2, "changes": 2}, [1, [0, 1], [1, 0], [1, 0, 1]]),
        ("uneven_classes", {"epsilon": "0.5", "fanout": 16, "levels": 1, "changes": 8}, [[1, 0] * 4, [0] * 15]),
        ("most_changes", {"epsilon": "4", "fanout": 16, "levels": 2, "changes": 32}, [[1, 0] * 7, [1] * 15]),
        ("stated", _bad(changes=3, thresholds=[1, 3], weights=[5, 1]), [1]),
        ("fewer_windows", _bad(count=9), [1, [1, 0]]),
        ("largest_epsilon", {"epsilon": "32", "fanout": 3, "levels": 2, "changes": 2}, [0, 1]),
        ("smallest_epsilon", {"epsilon": "0.001", "fanout": 3, "levels": 2, "changes": 2}, [[1, 0]]),
    ],
}  # fmt: skip

BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "tree_steps": [
        ("fanout_one", {"spec": _bad(fanout=1)}, "InvalidSpec"),
        ("too_large", {"spec": _bad(fanout=16, levels=5)}, "InvalidSpec"),
        ("count_too_large", {"spec": _bad(count=16)}, "InvalidSpec"),
        ("count_too_small", {"spec": _bad(count=3)}, "InvalidSpec"),
        ("one_way_changes", {"spec": _bad(one_way=True)}, "InvalidSpec"),
        ("one_way_number", {"spec": _bad(one_way=1)}, "InvalidSpec"),
        ("changes_too_many", {"spec": _bad(changes=33)}, "InvalidSpec"),
        ("threshold_above", {"spec": _bad(thresholds=[3, 2])}, "InvalidSpec"),
        ("threshold_zero", {"spec": _bad(thresholds=[0, 2])}, "InvalidSpec"),
        ("thresholds_missing", {"spec": _bad(thresholds=[])}, "InvalidSpec"),
        ("weights_short", {"spec": _bad(weights=[1])}, "InvalidSpec"),
        ("weights_large", {"spec": _bad(weights=[1 << 32, 1])}, "InvalidSpec"),
        ("weights_zero", {"spec": _bad(weights=[0, 1])}, "InvalidSpec"),
        ("value", {"spec": _bad(), "value": 2}, "InvalidValue"),
        ("value_empty", {"spec": _bad(), "value": []}, "InvalidValue"),
        ("value_in_history", {"spec": _bad(), "value": [0, 2]}, "InvalidValue"),
        ("value_too_long", {"spec": _bad(), "value": [0] * 16}, "InvalidValue"),
        ("report_level", {"spec": _bad(), "report": "04"}, "ReportRejected"),
    ],
}
