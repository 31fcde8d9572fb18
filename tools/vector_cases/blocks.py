"""Cases of the block responses: subset selection, cyclic and affine block response."""

from typing import Any

Good = tuple[str, dict[str, Any], list[Any]]
Bad = tuple[str, dict[str, Any], str]

_TINY = {"of": "0.001", "share": "1/999999999"}
_SS = {"size": 9, "epsilon": "1", "subset": 2}
_CBR = {"size": 9, "epsilon": "1", "family": "singer", "order": 3, "dimension": 3}
_ABR = {"size": 9, "epsilon": "1", "modulus": 11, "block": 3, "state": "counts"}


def _design(family: str, order: int, dimension: int, size: int, epsilon: str) -> dict[str, Any]:
    return {"size": size, "epsilon": epsilon, "family": family, "order": order, "dimension": dimension}


CASES: dict[str, list[Good]] = {
    "ss": [
        ("size_two", {"size": 2, "epsilon": "1"}, [0, 1]),
        ("subset_one", {"size": 4, "epsilon": "4"}, [0, 3]),
        ("subset_three", {"size": 10, "epsilon": "1"}, [0, 5, 9]),
        ("subset_most", {"size": 5, "epsilon": "1", "subset": 4}, [0, 2, 4]),
        ("one_word", {"size": 64, "epsilon": "1"}, [0, 63]),
        ("past_one_word", {"size": 65, "epsilon": "0.5"}, [0, 64]),
        ("smallest_epsilon", {"size": 33, "epsilon": "0.001"}, [0, 32]),
        ("largest_epsilon", {"size": 33, "epsilon": "32"}, [0, 32]),
        ("largest_size", {"size": 4096, "epsilon": "1"}, [0, 4095]),
        ("share", {"size": 20, "epsilon": {"of": "4", "share": "1/3"}}, [0, 19]),
        ("tiny_share", {"size": 20, "epsilon": _TINY}, [0, 19]),
    ],
    "cbr": [
        ("smallest", _design("singer", 2, 3, 7, "1"), [0, 3, 6]),
        ("plane", _design("singer", 3, 3, 13, "1"), [0, 5, 12]),
        ("space", _design("singer", 7, 4, 300, "2"), [0, 150, 299]),
        ("prime_power", _design("singer", 4, 4, 64, "1"), [0, 63]),
        ("prime_cube", _design("singer", 8, 3, 64, "2"), [0, 63]),
        ("paley_three", _design("paley", 3, 1, 2, "1"), [0, 1]),
        ("paley", _design("paley", 67, 1, 64, "0.5"), [0, 33, 63]),
        ("planned", {"size": 1024, "epsilon": "1"}, [0, 1023]),
        ("planned_instead_of_grr", {"size": 4, "epsilon": "1"}, [0, 3]),
        ("three_bytes", {"size": 66000, "epsilon": "4"}, [0, 65999]),
        ("smallest_epsilon", _design("paley", 67, 1, 64, "0.001"), [0, 63]),
        ("largest_epsilon", _design("singer", 3, 3, 13, "32"), [0, 12]),
        ("share", {"size": 20, "epsilon": {"of": "4", "share": "1/3"}}, [0, 19]),
    ],
    "abr": [
        ("size_two", {"size": 2, "epsilon": "1"}, [0, 1]),
        ("size_prime", {"size": 11, "epsilon": "1", "block": 3}, [0, 5, 10]),
        ("size_not_prime", {"size": 100, "epsilon": "1"}, [0, 50, 99]),
        ("larger_modulus", {"size": 100, "epsilon": "1", "modulus": 997}, [0, 99]),
        ("block_one", {"size": 30, "epsilon": "5"}, [0, 29]),
        ("two_bytes", {"size": 257, "epsilon": "1"}, [0, 256]),
        ("log", {"size": 70000, "epsilon": "2"}, [0, 69999]),
        ("product_beyond_53_bits", {"size": 1 << 30, "epsilon": "2"}, [0, 123456789, (1 << 30) - 1]),
        ("largest_size", {"size": (1 << 32) - 5, "epsilon": "3"}, [0, 1 << 31, (1 << 32) - 6]),
        ("smallest_epsilon", {"size": 100, "epsilon": "0.001"}, [0, 99]),
        ("largest_epsilon", {"size": 100, "epsilon": "32"}, [0, 99]),
        ("share", {"size": 20, "epsilon": {"of": "4", "share": "1/3"}}, [0, 19]),
    ],
}


def _common(small: dict[str, Any]) -> list[Bad]:
    return [
        ("epsilon_zero", {"spec": small | {"epsilon": "0"}}, "InvalidSpec"),
        ("size_one", {"spec": small | {"size": 1}}, "InvalidSpec"),
        ("size_huge", {"spec": small | {"size": 1 << 33}}, "InvalidSpec"),
        ("unknown_field", {"spec": small | {"colour": "red"}}, "InvalidSpec"),
        ("field_missing", {"spec": {"size": 9, "epsilon": "1"}}, "InvalidSpec"),
        ("value_out_of_domain", {"spec": small, "value": 9}, "InvalidValue"),
        ("value_negative", {"spec": small, "value": -1}, "InvalidValue"),
    ]


BAD: dict[str, list[Bad]] = {
    "ss": [
        *_common(_SS),
        ("size_too_large", {"spec": _SS | {"size": 4097}}, "InvalidSpec"),
        ("subset_whole", {"spec": _SS | {"subset": 9}}, "InvalidSpec"),
        ("subset_negative", {"spec": _SS | {"subset": -1}}, "InvalidSpec"),
        ("too_few_points", {"spec": _SS, "report": "0100"}, "ReportRejected"),
        ("too_many_points", {"spec": _SS, "report": "0700"}, "ReportRejected"),
        ("point_beyond_domain", {"spec": _SS, "report": "0102"}, "ReportRejected"),
        ("report_too_short", {"spec": _SS, "report": "03"}, "ReportRejected"),
    ],
    "cbr": [
        *_common(_CBR),
        ("family_unknown", {"spec": _CBR | {"family": "fano"}}, "InvalidSpec"),
        ("order_no_prime_power", {"spec": _CBR | {"order": 6}}, "InvalidSpec"),
        ("dimension_two", {"spec": _CBR | {"dimension": 2}}, "InvalidSpec"),
        ("too_few_points", {"spec": _CBR | {"size": 14}}, "InvalidSpec"),
        ("too_many_points", {"spec": _CBR | {"order": 53, "dimension": 5}}, "InvalidSpec"),
        ("far_too_many_points", {"spec": _CBR | {"order": 8191, "dimension": 26}}, "InvalidSpec"),
        ("paley_not_prime", {"spec": _CBR | {"family": "paley", "order": 15, "dimension": 1}}, "InvalidSpec"),
        (
            "paley_one_mod_four",
            {"spec": _CBR | {"family": "paley", "order": 13, "dimension": 1}},
            "InvalidSpec",
        ),
        ("paley_dimension", {"spec": _CBR | {"family": "paley", "order": 11}}, "InvalidSpec"),
        ("residue_out_of_range", {"spec": _CBR, "report": "0d"}, "ReportRejected"),
    ],
    "abr": [
        *_common(_ABR),
        ("modulus_not_prime", {"spec": _ABR | {"modulus": 15}}, "InvalidSpec"),
        ("modulus_below_size", {"spec": _ABR | {"modulus": 7}}, "InvalidSpec"),
        ("modulus_33_bits", {"spec": _ABR | {"modulus": 4294967311}}, "InvalidSpec"),
        ("block_whole", {"spec": _ABR | {"block": 11}}, "InvalidSpec"),
        ("state_unknown", {"spec": _ABR | {"state": "heap"}}, "InvalidSpec"),
        (
            "epsilon_below_unevenness",
            {"spec": _ABR | {"epsilon": _TINY, "modulus": 4294967291, "block": 2147483645}},
            "InvalidSpec",
        ),
        ("multiplier_zero", {"spec": _ABR, "report": "0003"}, "ReportRejected"),
        ("multiplier_of_other_half", {"spec": _ABR, "report": "0603"}, "ReportRejected"),
        ("shift_out_of_range", {"spec": _ABR, "report": "010b"}, "ReportRejected"),
    ],
}
