"""Cases of Basic RAPPOR and RAPPOR."""

from typing import Any

Good = tuple[str, dict[str, Any], list[Any]]
Bad = tuple[str, dict[str, Any], str]

_WORD = 1 << 64
_LAYERS = {"zero": "0.25", "one": "0.75"}
_ONE_SHOT = {"zero": "", "one": ""}
_BASIC = {"size": 5, "epsilon": "1"}
_BLOOM = {"epsilon": "2", "bits": 16, "cohorts": 8, "key": 7, "hashes": 1}


def _bad_layers(spec: dict[str, Any]) -> list[Bad]:
    layered = spec | _LAYERS
    return [
        ("epsilon_zero", {"spec": layered | {"epsilon": "0"}}, "InvalidSpec"),
        ("zero_above_one", {"spec": spec | {"zero": "0.75", "one": "0.25"}}, "InvalidSpec"),
        ("zero_equals_one", {"spec": spec | {"zero": "0.5", "one": "0.50"}}, "InvalidSpec"),
        ("zero_alone", {"spec": spec | {"zero": "0.25", "one": ""}}, "InvalidSpec"),
        ("one_alone", {"spec": spec | {"zero": "", "one": "0.75"}}, "InvalidSpec"),
        ("one_above_one", {"spec": spec | {"zero": "0.25", "one": "1.1"}}, "InvalidSpec"),
        ("zero_float", {"spec": spec | {"zero": 0.25, "one": "0.75"}}, "InvalidSpec"),
        ("zero_ten_decimals", {"spec": spec | {"zero": "0.2500000000", "one": "0.75"}}, "InvalidSpec"),
        ("zero_missing", {"spec": spec | {"one": "0.75"}}, "InvalidSpec"),
        ("unknown_field", {"spec": layered | {"colour": "red"}}, "InvalidSpec"),
        ("value_negative", {"spec": layered, "value": -1}, "InvalidValue"),
    ]


CASES: dict[str, list[Good]] = {
    "brappor": [
        ("one_shot", _BASIC, [0, 4]),
        ("two_layers", _BASIC | _LAYERS, [0, 2, 4]),
        ("odd_decimals", {"size": 9, "epsilon": "3"} | {"zero": "0.333333333", "one": "0.900"}, [0, 8]),
        ("silent_zero_and_certain_one", {"size": 9, "epsilon": "2", "zero": "0", "one": "1"}, [0, 8]),
        ("size_two", {"size": 2, "epsilon": "1"} | _LAYERS, [0, 1]),
        ("size_64", {"size": 64, "epsilon": "1"} | _LAYERS, [0, 63]),
        ("size_65", {"size": 65, "epsilon": "1"} | _LAYERS, [0, 64]),
        ("share", {"size": 5, "epsilon": {"of": "4", "share": "1/3"}} | _LAYERS, [1]),
        ("smallest_epsilon", {"size": 5, "epsilon": "0.001"} | _LAYERS, [1]),
        ("largest_epsilon", {"size": 5, "epsilon": "32"} | _LAYERS, [1]),
    ],
    "rappor": [
        ("one_shot", _BLOOM, [0, 1 << 53, _WORD - 1]),
        (
            "public_client",
            _BLOOM | {"epsilon": "4.394449154672439", "hashes": 2, "cohorts": 64, "zero": "0.5", "one": "0.75"},
            [0, 12345, _WORD - 1],
        ),
        ("one_cohort", _BLOOM | _LAYERS | {"cohorts": 1}, [5]),
        ("cohorts_256", _BLOOM | {"cohorts": 256}, [5]),
        ("cohorts_257", _BLOOM | {"cohorts": 257}, [5]),
        ("bits_not_whole_bytes", _BLOOM | _LAYERS | {"bits": 70, "hashes": 3}, [5, 1 << 63]),
        ("bits_two", _BLOOM | {"bits": 2}, [5, 6]),
        ("many_hashes", _BLOOM | _LAYERS | {"bits": 128, "hashes": 16}, [5]),
        ("largest_key", _BLOOM | {"key": (1 << 32) - 1}, [5]),
    ],
}

BAD: dict[str, list[Bad]] = {
    "brappor": [
        *_bad_layers(_BASIC),
        ("size_one", {"spec": _BASIC | _LAYERS | {"size": 1}}, "InvalidSpec"),
        ("size_too_large", {"spec": _BASIC | _LAYERS | {"size": 65537}}, "InvalidSpec"),
        ("value_out_of_domain", {"spec": _BASIC | _ONE_SHOT, "value": 5}, "InvalidValue"),
        ("padding_bit", {"spec": _BASIC | _ONE_SHOT, "report": "20"}, "ReportRejected"),
        ("report_too_short", {"spec": _BASIC | _ONE_SHOT | {"size": 9}, "report": "00"}, "ReportRejected"),
    ],
    "rappor": [
        *_bad_layers(_BLOOM),
        ("hashes_zero", {"spec": _BLOOM | _ONE_SHOT | {"hashes": 0}}, "InvalidSpec"),
        ("hashes_too_many", {"spec": _BLOOM | _ONE_SHOT | {"hashes": 17, "bits": 64}}, "InvalidSpec"),
        ("bits_too_few", {"spec": _BLOOM | _ONE_SHOT | {"hashes": 2, "bits": 3}}, "InvalidSpec"),
        ("bits_too_many", {"spec": _BLOOM | _ONE_SHOT | {"bits": 65537}}, "InvalidSpec"),
        ("cohorts_zero", {"spec": _BLOOM | _ONE_SHOT | {"cohorts": 0}}, "InvalidSpec"),
        ("key_too_large", {"spec": _BLOOM | _ONE_SHOT | {"key": 1 << 32}}, "InvalidSpec"),
        ("value_out_of_64_bits", {"spec": _BLOOM | _ONE_SHOT, "value": _WORD}, "InvalidValue"),
        ("cohort_out_of_range", {"spec": _BLOOM | _ONE_SHOT, "report": "080000"}, "ReportRejected"),
        ("padding_bit", {"spec": _BLOOM | _ONE_SHOT | {"bits": 12}, "report": "000010"}, "ReportRejected"),
        ("report_too_short", {"spec": _BLOOM | _ONE_SHOT, "report": "0000"}, "ReportRejected"),
    ],
}
