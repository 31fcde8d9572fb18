"""Cases of the count sketches."""

from typing import Any

Good = tuple[str, dict[str, Any], list[Any]]
Bad = tuple[str, dict[str, Any], str]

_WORD = 1 << 64
_SMALL = {"size": 100, "epsilon": "1", "rows": 5, "width": 8, "key": 7}

_GOOD: list[Good] = [
    ("small", _SMALL, [0, 50, 99]),
    ("one_row", _SMALL | {"rows": 1}, [0, 99]),
    ("rows_256", _SMALL | {"rows": 256}, [3]),
    ("rows_257", _SMALL | {"rows": 257}, [3]),
    ("width_two", _SMALL | {"width": 2}, [3, 4]),
    ("width_128", _SMALL | {"width": 128, "epsilon": "4"}, [3, 4]),
    ("most_rows", _SMALL | {"rows": 1 << 20, "width": 64}, [3]),
    ("size_64_bits", _SMALL | {"size": _WORD}, [0, 1 << 53, _WORD - 1]),
    ("largest_key", _SMALL | {"key": (1 << 32) - 1}, [3]),
    ("smallest_epsilon", _SMALL | {"epsilon": "0.001"}, [3]),
    ("largest_epsilon", _SMALL | {"epsilon": "32"}, [3]),
    ("share", _SMALL | {"epsilon": {"of": "4", "share": "1/3"}}, [3]),
]


def _bad(**extra: Any) -> list[Bad]:
    small = _SMALL | extra
    return [
        ("epsilon_zero", {"spec": small | {"epsilon": "0"}}, "InvalidSpec"),
        ("size_one", {"spec": small | {"size": 1}}, "InvalidSpec"),
        ("size_above_64_bits", {"spec": small | {"size": str(_WORD + 1)}}, "InvalidSpec"),
        ("rows_zero", {"spec": small | {"rows": 0}}, "InvalidSpec"),
        ("rows_too_many", {"spec": small | {"rows": (1 << 20) + 1}}, "InvalidSpec"),
        ("width_one", {"spec": small | {"width": 1}}, "InvalidSpec"),
        ("width_not_power_of_two", {"spec": small | {"width": 12}}, "InvalidSpec"),
        ("width_too_large", {"spec": small | {"width": 1 << 21}}, "InvalidSpec"),
        ("cells_too_many", {"spec": small | {"rows": 1 << 20, "width": 128}}, "InvalidSpec"),
        ("key_too_large", {"spec": small | {"key": 1 << 32}}, "InvalidSpec"),
        ("unknown_field", {"spec": small | {"colour": "red"}}, "InvalidSpec"),
        ("value_out_of_domain", {"spec": small, "value": 100}, "InvalidValue"),
        ("value_out_of_64_bits", {"spec": small | {"size": str(_WORD)}, "value": _WORD}, "InvalidValue"),
    ]


CASES: dict[str, list[Good]] = {
    "cms": [*_GOOD, ("width_most", _SMALL | {"width": 1 << 16}, [3])],
    "hcms": [*_GOOD, ("with_coefficient_zero", _SMALL | {"skip_zero": False}, [0, 50, 99])],
}

_HCMS = _SMALL | {"skip_zero": True}

BAD: dict[str, list[Bad]] = {
    "cms": [
        *_bad(),
        ("row_out_of_range", {"spec": _SMALL, "report": "0500"}, "ReportRejected"),
        ("padding_bit", {"spec": _SMALL | {"width": 4}, "report": "0010"}, "ReportRejected"),
        ("report_too_short", {"spec": _SMALL, "report": "05"}, "ReportRejected"),
    ],
    "hcms": [
        *_bad(skip_zero=True),
        ("skip_zero_number", {"spec": _SMALL | {"skip_zero": 1}}, "InvalidSpec"),
        ("code_out_of_range", {"spec": _HCMS, "report": "50"}, "ReportRejected"),
        ("coefficient_zero", {"spec": _HCMS, "report": "11"}, "ReportRejected"),
        ("report_too_long", {"spec": _HCMS, "report": "0200"}, "ReportRejected"),
    ],
}
