"""Cases of Hadamard randomised response."""

from typing import Any

Good = tuple[str, dict[str, Any], list[Any]]
Bad = tuple[str, dict[str, Any], str]


def _good(**extra: Any) -> list[Good]:
    return [
        ("size_two", {"size": 2, "epsilon": "1"} | extra, [0, 1]),
        ("size_power_of_two", {"size": 64, "epsilon": "1"} | extra, [0, 31, 63]),
        ("size_not_power_of_two", {"size": 100, "epsilon": "1"} | extra, [0, 50, 99]),
        ("size_257", {"size": 257, "epsilon": "2"} | extra, [0, 256]),
        ("largest_size", {"size": 1 << 30, "epsilon": "4"} | extra, [0, 123456789, (1 << 30) - 1]),
        ("smallest_epsilon", {"size": 100, "epsilon": "0.001"} | extra, [0, 99]),
        ("largest_epsilon", {"size": 100, "epsilon": "32"} | extra, [0, 99]),
        ("share", {"size": 100, "epsilon": {"of": "4", "share": "1/3"}} | extra, [0, 99]),
    ]


def _many() -> list[Good]:
    return [
        *_good(),
        *((f"coefficients_{t}", {"size": 200, "epsilon": "3", "coefficients": t}, [0, 77, 199]) for t in range(1, 7)),
        ("coefficients_all", {"size": 60, "epsilon": "3", "coefficients": 6}, [0, 7, 33, 59]),
    ]


def _bad(**extra: Any) -> list[Bad]:
    small = {"size": 5, "epsilon": "1"} | extra
    return [
        ("epsilon_zero", {"spec": small | {"epsilon": "0"}}, "InvalidSpec"),
        ("epsilon_float", {"spec": small | {"epsilon": 0.5}}, "InvalidSpec"),
        ("size_one", {"spec": small | {"size": 1}}, "InvalidSpec"),
        ("size_above_order", {"spec": small | {"size": (1 << 30) + 1}}, "InvalidSpec"),
        ("unknown_field", {"spec": small | {"colour": "red"}}, "InvalidSpec"),
        ("value_out_of_domain", {"spec": small, "value": 5}, "InvalidValue"),
    ]


def _bad_many() -> list[Bad]:
    two = {"size": 100, "epsilon": "1", "coefficients": 2}
    return [
        *_bad(coefficients=1),
        ("coefficients_seven", {"spec": two | {"coefficients": 7}}, "InvalidSpec"),
        ("coefficients_beyond_order", {"spec": two | {"size": 5, "coefficients": 4}}, "InvalidSpec"),
        ("coefficients_missing", {"spec": {"size": 100, "epsilon": "1"}}, "InvalidSpec"),
        ("row_zero", {"spec": two, "report": "000100"}, "ReportRejected"),
        ("row_out_of_range", {"spec": two, "report": "018000"}, "ReportRejected"),
        ("rows_equal", {"spec": two, "report": "010100"}, "ReportRejected"),
        ("pattern_out_of_range", {"spec": two, "report": "010204"}, "ReportRejected"),
    ]


_SMALL = {"size": 5, "epsilon": "1", "skip_zero": True}

CASES: dict[str, list[Good]] = {
    "hrr": [
        *_good(),
        ("with_row_zero", {"size": 6, "epsilon": "1", "skip_zero": False}, [0, 1, 2, 3, 4, 5]),
    ],
    "hrr_t": _many(),
    "hrr_subspace": _many(),
    "hrr_signed": [
        *_good(),
        ("size_three", {"size": 3, "epsilon": "1"}, [0, 1, 2]),
        ("size_four", {"size": 4, "epsilon": "1"}, [0, 1, 2, 3]),
        ("size_odd", {"size": 11, "epsilon": "1"}, [0, 7, 10]),
        ("two_bytes", {"size": 258, "epsilon": "2"}, [0, 255, 256, 257]),
    ],
}

BAD: dict[str, list[Bad]] = {
    "hrr": [
        *_bad(skip_zero=True),
        ("skip_zero_text", {"spec": _SMALL | {"skip_zero": "no"}}, "InvalidSpec"),
        ("row_zero", {"spec": _SMALL, "report": "01"}, "ReportRejected"),
        ("row_out_of_range", {"spec": _SMALL, "report": "10"}, "ReportRejected"),
    ],
    "hrr_t": _bad_many(),
    "hrr_subspace": [
        *_bad_many(),
        (
            "rows_dependent",
            {"spec": {"size": 100, "epsilon": "1", "coefficients": 3}, "report": "01020300"},
            "ReportRejected",
        ),
    ],
    "hrr_signed": [
        *_bad(),
        ("skip_zero", {"spec": {"size": 5, "epsilon": "1", "skip_zero": False}}, "InvalidSpec"),
        ("size_missing", {"spec": {"epsilon": "1"}}, "InvalidSpec"),
        ("value_negative", {"spec": {"size": 5, "epsilon": "1"}, "value": -1}, "InvalidValue"),
        ("value_boolean", {"spec": {"size": 5, "epsilon": "1"}, "value": True}, "InvalidValue"),
        ("value_text", {"spec": {"size": 5, "epsilon": "1"}, "value": "1"}, "InvalidValue"),
        ("row_out_of_range", {"spec": {"size": 5, "epsilon": "1"}, "report": "08"}, "ReportRejected"),
        ("report_too_long", {"spec": {"size": 257, "epsilon": "1"}, "report": "000000"}, "ReportRejected"),
    ],
}
