"""Cases of the unary encodings."""

from typing import Any

Good = tuple[str, dict[str, Any], list[Any]]
Bad = tuple[str, dict[str, Any], str]


def _good(**extra: Any) -> list[Good]:
    """Sizes around bytes and blocks of 64 lanes, and the ends of the range of epsilon."""
    sizes = {"size_two": 2, "size_eight": 8, "size_not_power_of_two": 13, "size_64": 64, "size_65": 65}
    cases: list[Good] = [
        (name, {"size": size, "epsilon": "1"} | extra, [0, size // 2, size - 1]) for name, size in sizes.items()
    ]
    return [
        *cases,
        ("size_1000", {"size": 1000, "epsilon": "2.5"} | extra, [0, 63, 64, 999]),
        ("smallest_epsilon", {"size": 70, "epsilon": "0.001"} | extra, [0, 69]),
        ("largest_epsilon", {"size": 70, "epsilon": "32"} | extra, [0, 69]),
        ("share", {"size": 70, "epsilon": {"of": "4", "share": "1/3"}} | extra, [0, 69]),
    ]


def _bad(**extra: Any) -> list[Bad]:
    small = {"size": 5, "epsilon": "1"} | extra
    return [
        ("epsilon_zero", {"spec": small | {"epsilon": "0"}}, "InvalidSpec"),
        ("epsilon_float", {"spec": small | {"epsilon": 0.5}}, "InvalidSpec"),
        ("size_one", {"spec": small | {"size": 1}}, "InvalidSpec"),
        ("size_above_bits", {"spec": small | {"size": (1 << 16) + 1}}, "InvalidSpec"),
        ("unknown_field", {"spec": small | {"buckets": 2}}, "InvalidSpec"),
        ("value_out_of_domain", {"spec": small, "value": 5}, "InvalidValue"),
        ("bit_beyond_domain", {"spec": small, "report": "20"}, "ReportRejected"),
        ("report_too_long", {"spec": small | {"size": 16}, "report": "000000"}, "ReportRejected"),
    ]


_THE = {"size": 5, "epsilon": "1"}

CASES: dict[str, list[Good]] = {
    "sue": _good(),
    "oue": [*_good(), ("largest_size", {"size": 1 << 16, "epsilon": "3"}, [40000])],
    "rue": _good(),
    "the": [
        *_good(theta="0.75"),
        ("theta_half", {"size": 20, "epsilon": "1", "theta": "0.5"}, [0, 19]),
        ("theta_one", {"size": 20, "epsilon": "1", "theta": "1.000"}, [0, 19]),
        ("theta_nine_decimals", {"size": 20, "epsilon": "5.5", "theta": "0.612345678"}, [0, 19]),
    ],
}

BAD: dict[str, list[Bad]] = {
    "sue": _bad(),
    "oue": _bad(),
    "rue": _bad(),
    "the": [
        *_bad(theta="0.75"),
        ("theta_below_half", {"spec": _THE | {"theta": "0.499999999"}}, "InvalidSpec"),
        ("theta_above_one", {"spec": _THE | {"theta": "1.000000001"}}, "InvalidSpec"),
        ("theta_ten_decimals", {"spec": _THE | {"theta": "0.7500000001"}}, "InvalidSpec"),
        ("theta_exponent", {"spec": _THE | {"theta": "75e-2"}}, "InvalidSpec"),
        ("theta_float", {"spec": _THE | {"theta": 0.75}}, "InvalidSpec"),
        ("theta_text", {"spec": _THE | {"theta": "three quarters"}}, "InvalidSpec"),
        ("theta_missing", {"spec": _THE}, "InvalidSpec"),
    ],
}
