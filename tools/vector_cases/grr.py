"""Cases of generalised randomised response."""

from typing import Any

CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "grr": [
        ("size_two", {"size": 2, "epsilon": "1"}, [0, 1]),
        ("size_not_power_of_two", {"size": 10, "epsilon": "1.0"}, [0, 3, 9]),
        ("size_256", {"size": 256, "epsilon": "2"}, [0, 255]),
        ("size_257", {"size": 257, "epsilon": "2"}, [0, 256]),
        ("size_65537", {"size": 65537, "epsilon": "8"}, [0, 65536]),
        ("size_24_bits", {"size": 1 << 24, "epsilon": "20"}, [0, (1 << 24) - 1]),
        ("smallest_epsilon", {"size": 5, "epsilon": "0.001"}, [0, 4]),
        ("largest_epsilon", {"size": 5, "epsilon": "32"}, [0, 4]),
        ("eighteen_decimals", {"size": 7, "epsilon": "0.123456789012345678"}, [0, 6]),
        ("share", {"size": 6, "epsilon": {"of": "1.50", "share": "2/6"}}, [0, 5]),
    ],
}

BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "grr": [
        ("epsilon_zero", {"spec": {"size": 5, "epsilon": "0"}}, "InvalidSpec"),
        ("epsilon_too_small", {"spec": {"size": 5, "epsilon": "0.0009"}}, "InvalidSpec"),
        ("epsilon_too_large", {"spec": {"size": 5, "epsilon": "32.000000000000000001"}}, "InvalidSpec"),
        ("epsilon_float", {"spec": {"size": 5, "epsilon": 1.5}}, "InvalidSpec"),
        ("epsilon_not_decimal", {"spec": {"size": 5, "epsilon": "1e0"}}, "InvalidSpec"),
        ("epsilon_missing", {"spec": {"size": 5}}, "InvalidSpec"),
        ("epsilon_unknown_object", {"spec": {"size": 5, "epsilon": {"of": "1", "times": 2}}}, "InvalidSpec"),
        ("share_above_one", {"spec": {"size": 5, "epsilon": {"of": "1", "share": "4/3"}}}, "InvalidSpec"),
        ("share_zero", {"spec": {"size": 5, "epsilon": {"of": "1", "share": "0/3"}}}, "InvalidSpec"),
        ("sampled_zero", {"spec": {"size": 5, "epsilon": {"of": "1", "sampled": 0}}}, "InvalidSpec"),
        ("epsilon_not_canonical", {"spec": {"size": 5, "epsilon": "1.0"}}, "InvalidSpec"),
        ("share_not_canonical", {"spec": {"size": 5, "epsilon": {"of": "1", "share": "2/6"}}}, "InvalidSpec"),
        ("size_small_as_text", {"spec": {"size": "5", "epsilon": "1"}}, "InvalidSpec"),
        ("amplified", {"spec": {"size": 12, "epsilon": {"of": "1", "sampled": 4}}}, "InvalidSpec"),
        (
            "budget_lost_in_rounding",
            {"spec": {"size": 16777213, "epsilon": {"of": "0.001", "share": "1/1000000"}}},
            "InvalidSpec",
        ),
        ("size_zero", {"spec": {"size": 0, "epsilon": "1"}}, "InvalidSpec"),
        ("size_one", {"spec": {"size": 1, "epsilon": "1"}}, "InvalidSpec"),
        ("size_negative", {"spec": {"size": -5, "epsilon": "1"}}, "InvalidSpec"),
        ("size_fraction", {"spec": {"size": 5.5, "epsilon": "1"}}, "InvalidSpec"),
        ("size_boolean", {"spec": {"size": True, "epsilon": "1"}}, "InvalidSpec"),
        ("size_null", {"spec": {"size": None, "epsilon": "1"}}, "InvalidSpec"),
        ("size_text", {"spec": {"size": "five", "epsilon": "1"}}, "InvalidSpec"),
        ("size_other_digits", {"spec": {"size": "\u0665", "epsilon": "1"}}, "InvalidSpec"),
        ("size_too_large", {"spec": {"size": (1 << 24) + 1, "epsilon": "1"}}, "InvalidSpec"),
        ("size_missing", {"spec": {"epsilon": "1"}}, "InvalidSpec"),
        ("unknown_field", {"spec": {"size": 5, "epsilon": "1", "colour": "red"}}, "InvalidSpec"),
        ("unknown_kind", {"spec": {"kind": "rot13", "size": 5, "epsilon": "1"}}, "InvalidSpec"),
        ("kind_of_the_language", {"spec": {"kind": "constructor", "size": 5, "epsilon": "1"}}, "InvalidSpec"),
        ("no_object", {"spec": "grr"}, "InvalidSpec"),
        ("value_out_of_domain", {"spec": {"size": 5, "epsilon": "1"}, "value": 5}, "InvalidValue"),
        ("value_negative", {"spec": {"size": 5, "epsilon": "1"}, "value": -1}, "InvalidValue"),
        ("value_fraction", {"spec": {"size": 5, "epsilon": "1"}, "value": 1.5}, "InvalidValue"),
        ("value_boolean", {"spec": {"size": 5, "epsilon": "1"}, "value": True}, "InvalidValue"),
        ("value_text", {"spec": {"size": 5, "epsilon": "1"}, "value": "1"}, "InvalidValue"),
        ("value_null", {"spec": {"size": 5, "epsilon": "1"}, "value": None}, "InvalidValue"),
        ("report_out_of_range", {"spec": {"size": 5, "epsilon": "1"}, "report": "05"}, "ReportRejected"),
        ("report_too_long", {"spec": {"size": 300, "epsilon": "1"}, "report": "050000"}, "ReportRejected"),
    ],
}
