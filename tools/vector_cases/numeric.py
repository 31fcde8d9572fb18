"""Cases of Laplace noise, means by one bit, sampled bits and memoisation."""

from typing import Any

_NUMBER = {"top": 10, "epsilon": "1"}
_FLIP = {"size": 6, "sampled": 2, "epsilon": "1"}


def _memo(inner: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"inner": inner, "most_values": 3} | fields


def _bad_memo(**fields: Any) -> dict[str, Any]:
    """A good spec, all fields stated, with some of them replaced."""
    return {"epsilon": "1", "inner": {"kind": "grr", "size": 4, "epsilon": "1"}, "most_values": 2, "step": 0} | fields


def _layered(size: int, *, first: Any = "1") -> dict[str, Any]:
    return {"inner": {"kind": "grr", "size": size, "epsilon": "2"}, "first": first, "most_values": 2}


def _layered_over(kind: str, **fields: Any) -> dict[str, Any]:
    return {"inner": {"kind": kind, "epsilon": "2"} | fields, "first": "1", "most_values": 2}


_ROWS: dict[str, Any] = {"kind": "hrr", "size": 4, "epsilon": "2", "skip_zero": True}


def _bad_layered(**fields: Any) -> dict[str, Any]:
    inner = {"kind": "grr", "size": 4, "epsilon": "2"}
    return {"epsilon": "2", "first": "1", "inner": inner, "most_values": 2, "step": 0} | fields


CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "she": [
        ("one_byte", {"size": 4, "epsilon": "1"}, [0, 3]),
        ("two_bytes", {"size": 3, "epsilon": "0.5"}, [0, 2]),
        ("smallest_grid", {"size": 5, "epsilon": "1", "grid": 2, "bound": 1}, [0, 4]),
        ("share", {"size": 4, "epsilon": {"of": "2", "share": "1/3"}, "grid": 4}, [1]),
        ("smallest_epsilon", {"size": 2, "epsilon": "0.001"}, [0, 1]),
        ("largest_epsilon", {"size": 3, "epsilon": "32"}, [0, 2]),
        ("wide", {"size": 2, "epsilon": "8", "grid": 2, "bound": 60}, [0, 1]),  # Tails below one word.
    ],
    "onebit": [
        ("one_step", {"top": 1, "epsilon": "1"}, [0, 1]),
        ("ten_steps", _NUMBER, [0, 5, 10]),
        ("thirty_two_bits", {"top": (1 << 32) - 1, "epsilon": "2"}, [0, (1 << 32) - 1]),
        ("smallest_epsilon", {"top": 7, "epsilon": "0.001"}, [0, 7]),
        ("largest_epsilon", {"top": 7, "epsilon": "32"}, [0, 3, 7]),
    ],
    "dlap": [
        ("one_step", {"top": 1, "epsilon": "1"}, [0, 1]),
        ("ten_steps", _NUMBER, [0, 5, 10]),
        ("bound", {"top": 10, "bound": 7, "epsilon": "1"}, [0, 5, 10]),
        ("two_bytes", {"top": 1000, "epsilon": "0.1"}, [0, 1000]),
        ("tightened", {"top": 4096, "epsilon": "32"}, [0, 4096]),
    ],
    "sw": [
        ("two_numbers", {"size": 2, "epsilon": "1"}, [0, 1]),
        ("sixteen_numbers", {"size": 16, "epsilon": "1"}, [0, 5, 15]),
        ("width", {"size": 10, "width": 3, "epsilon": "2"}, [0, 9]),
        ("randomised_response", {"size": 8, "width": 1, "epsilon": "4"}, [0, 7]),
        ("two_bytes", {"size": 1000, "epsilon": "0.5"}, [0, 999]),
        ("smallest_epsilon", {"size": 7, "epsilon": "0.001"}, [0, 6]),
        ("largest_epsilon", {"size": 7, "epsilon": "32"}, [0, 3, 6]),
        ("share", {"size": 16, "epsilon": {"of": "2", "share": "1/3"}}, [4]),
    ],
    "dbitflip": [
        ("one_bucket", {"size": 6, "sampled": 1, "epsilon": "1"}, [0, 5]),
        ("two_buckets", _FLIP, [0, 5]),
        ("all_buckets", {"size": 9, "sampled": 9, "epsilon": "2"}, [0, 8]),
        ("wide_numbers", {"size": 70_000, "sampled": 12, "epsilon": "4"}, [0, 69_999]),
        ("largest_epsilon", {"size": 4, "sampled": 2, "epsilon": "32"}, [0, 3]),
    ],
    "layered": [
        ("two_values", _layered(2), [0, 1]),
        ("four_values", _layered(4), [0, 3]),
        ("two_bytes", _layered(300, first={"of": "2", "share": "1/3"}), [0, 299]),
        ("nearly_one_layer", _layered(3, first="1.999"), [0, 2]),
        ("smallest_first", _layered(5, first="0.001"), [4]),
        ("rows", _layered_over("hrr", size=5, skip_zero=True), [0, 3, 4]),
        ("rows_of_many", _layered_over("hrr", size=70_000, skip_zero=False), [0, 69_999]),
        ("numbers", _layered_over("onebit", top=1000), [0, 400, 1000]),
        ("numbers_in_steps", _layered_over("onebit", top=(1 << 32) - 1) | {"step": 65_537}, [0, 1 << 31]),
    ],
    "memo": [
        ("grr", _memo({"kind": "grr", "size": 4, "epsilon": "1"}), [0, 3]),
        ("oue", _memo({"kind": "oue", "size": 70, "epsilon": "1"}), [0, 69]),
        ("onebit", _memo({"kind": "onebit"} | _NUMBER), [0, 5, 10]),
        ("onebit_step", _memo({"kind": "onebit"} | _NUMBER, step=5), [0, 3, 10]),
        ("dbitflip", _memo({"kind": "dbitflip"} | _FLIP, most_values=7), [0, 2, 5]),
    ],
}

TINY = {"of": "0.001", "share": "1/999999999"}

BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "she": [
        ("grid_odd", {"spec": {"size": 4, "epsilon": "1", "grid": 3, "bound": 5}}, "InvalidSpec"),
        ("bound_too_wide", {"spec": {"size": 4, "epsilon": "1", "grid": 8, "bound": 32764}}, "InvalidSpec"),
        ("size_too_large", {"spec": {"size": 16385, "epsilon": "1", "grid": 8, "bound": 5}}, "InvalidSpec"),
        ("bound_missing", {"spec": {"size": 4, "epsilon": "1", "grid": 8}}, "InvalidSpec"),
        ("value", {"spec": {"size": 4, "epsilon": "1", "grid": 8, "bound": 5}, "value": 4}, "InvalidValue"),
        (
            "report_out_of_range",
            {"spec": {"size": 2, "epsilon": "1", "grid": 2, "bound": 2}, "report": "0607"},
            "ReportRejected",
        ),
    ],
    "onebit": [
        ("top_zero", {"spec": {"top": 0, "epsilon": "1"}}, "InvalidSpec"),
        ("top_too_large", {"spec": {"top": 1 << 32, "epsilon": "1"}}, "InvalidSpec"),
        ("epsilon_too_small_for_the_grid", {"spec": {"top": (1 << 32) - 1, "epsilon": TINY}}, "InvalidSpec"),
        ("value", {"spec": _NUMBER, "value": 11}, "InvalidValue"),
        ("value_fraction", {"spec": _NUMBER, "value": 0.5}, "InvalidValue"),
        ("report_out_of_range", {"spec": _NUMBER, "report": "02"}, "ReportRejected"),
    ],
    "dlap": [
        ("too_wide", {"spec": {"top": 1, "bound": 5, "epsilon": "32"}}, "InvalidSpec"),
        ("top_zero", {"spec": {"top": 0, "bound": 0, "epsilon": "1"}}, "InvalidSpec"),
        ("bound_negative", {"spec": {"top": 5, "bound": -1, "epsilon": "1"}}, "InvalidSpec"),
        ("value", {"spec": _NUMBER | {"bound": 0}, "value": 11}, "InvalidValue"),
        ("report_out_of_range", {"spec": _NUMBER | {"bound": 0}, "report": "0b"}, "ReportRejected"),
    ],
    "sw": [
        ("size_one", {"spec": {"size": 1, "width": 1, "epsilon": "1"}}, "InvalidSpec"),
        ("size_too_large", {"spec": {"size": (1 << 16) + 1, "width": 1, "epsilon": "1"}}, "InvalidSpec"),
        ("width_even", {"spec": {"size": 16, "width": 8, "epsilon": "1"}}, "InvalidSpec"),
        ("width_missing", {"spec": {"size": 16, "epsilon": "1"}}, "InvalidSpec"),
        ("width_too_wide", {"spec": {"size": 16, "width": 35, "epsilon": "1"}}, "InvalidSpec"),
        ("epsilon_too_small", {"spec": {"size": 1 << 16, "width": (1 << 17) + 1, "epsilon": TINY}}, "InvalidSpec"),
        ("value", {"spec": {"size": 16, "width": 9, "epsilon": "1"}, "value": 16}, "InvalidValue"),
        ("report_out_of_range", {"spec": {"size": 16, "width": 9, "epsilon": "1"}, "report": "18"}, "ReportRejected"),
    ],
    "dbitflip": [
        ("sampled_zero", {"spec": {"size": 5, "sampled": 0, "epsilon": "1"}}, "InvalidSpec"),
        ("more_sampled_than_buckets", {"spec": {"size": 5, "sampled": 6, "epsilon": "1"}}, "InvalidSpec"),
        ("sampled_too_many", {"spec": {"size": 500, "sampled": 65, "epsilon": "1"}}, "InvalidSpec"),
        ("value", {"spec": _FLIP, "value": 6}, "InvalidValue"),
        ("report_not_increasing", {"spec": _FLIP, "report": "030300"}, "ReportRejected"),
        ("report_out_of_range", {"spec": _FLIP, "report": "010600"}, "ReportRejected"),
        ("report_spare_bit", {"spec": _FLIP, "report": "010204"}, "ReportRejected"),
    ],
    "layered": [
        ("inner_kind", {"spec": _bad_layered(inner={"kind": "oue", "size": 4, "epsilon": "2"})}, "InvalidSpec"),
        ("first_not_below", {"spec": _bad_layered(first="2")}, "InvalidSpec"),
        ("first_amplified", {"spec": _bad_layered(first={"of": "0.1", "sampled": 2})}, "InvalidSpec"),
        ("first_missing", {"spec": {k: v for k, v in _bad_layered().items() if k != "first"}}, "InvalidSpec"),
        ("first_not_canonical", {"spec": _bad_layered(first="1.0")}, "InvalidSpec"),
        ("epsilon_below_inner", {"spec": _bad_layered(epsilon="1.5")}, "InvalidSpec"),
        ("step_without_numbers", {"spec": _bad_layered(step=1)}, "InvalidSpec"),
        ("value", {"spec": _bad_layered(), "value": 4}, "InvalidValue"),
        ("value_of_rows", {"spec": _bad_layered(inner=_ROWS), "value": 4}, "InvalidValue"),
        ("step_of_rows", {"spec": _bad_layered(inner=_ROWS, step=2)}, "InvalidSpec"),
        (
            "first_of_numbers",
            {"spec": _bad_layered(inner={"kind": "onebit", "top": 4, "epsilon": "1"}, step=4)},
            "InvalidSpec",
        ),
        ("report_out_of_range", {"spec": _bad_layered(), "report": "04"}, "ReportRejected"),
        ("row_never_drawn", {"spec": _bad_layered(inner=_ROWS), "report": "01"}, "ReportRejected"),
    ],
    "memo": [
        ("inner_kind", {"spec": _bad_memo(inner={"kind": "blh", "size": 4, "epsilon": "1"})}, "InvalidSpec"),
        ("inner_field_missing", {"spec": _bad_memo(inner={"kind": "grr", "epsilon": "1"})}, "InvalidSpec"),
        ("inner_text", {"spec": _bad_memo(inner="grr")}, "InvalidSpec"),
        ("epsilon_below_inner", {"spec": _bad_memo(epsilon="0.999")}, "InvalidSpec"),
        ("most_values_zero", {"spec": _bad_memo(most_values=0)}, "InvalidSpec"),
        ("step_without_numbers", {"spec": _bad_memo(step=2)}, "InvalidSpec"),
        ("step_no_divisor", {"spec": _bad_memo(inner={"kind": "onebit"} | _NUMBER, step=3)}, "InvalidSpec"),
        ("value", {"spec": _bad_memo(), "value": 4}, "InvalidValue"),
        ("value_of_dbitflip", {"spec": _bad_memo(inner={"kind": "dbitflip"} | _FLIP), "value": 6}, "InvalidValue"),
        ("report_out_of_range", {"spec": _bad_memo(), "report": "04"}, "ReportRejected"),
    ],
}
