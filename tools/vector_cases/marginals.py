"""Cases of several attributes: views of a few of them, and signs of Hadamard coefficients, inside `one_of`."""

from itertools import combinations
from typing import Any

from tacit.device.base import Device
from tacit.device.families.coefficients import Coefficients
from tacit.device.families.views import Views
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.hadamard import HRRDevice
from tacit.device.kinds.local_hash import OLHDevice
from tacit.device.kinds.unary import OUEDevice


def _views(
    sizes: tuple[int, ...], views: "list[tuple[int, ...]]", kinds: "dict[int, type[Any]]", weights: tuple[int, ...] = ()
) -> Views:
    mechanisms: tuple[Device, ...] = tuple(kind(size=cells, epsilon="1") for cells, kind in sorted(kinds.items()))
    return Views(sizes=sizes, views=tuple(views), mechanisms=mechanisms, weights=weights)


def _signs(sizes: tuple[int, ...], k: int, by_order: tuple[int, ...] = ()) -> Coefficients:
    return Coefficients(sizes=sizes, k=k, mechanisms=(GRRDevice(size=2, epsilon="1"),), by_order=by_order)


G, U, L, H = GRRDevice, OUEDevice, OLHDevice, HRRDevice
PAIRS = list(combinations(range(4), 2))

CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "one_of": [
        (
            "views_pairs",
            {"family": _views((2, 2, 2, 2), PAIRS, {4: G}), "payload_bytes": 1},
            [[0, 0, 0, 0], [1, 0, 1, 1]],
        ),
        (
            "views_mixed",
            {"family": _views((2, 3, 5), [(0, 1), (1, 2), (0, 2)], {6: G, 15: U, 10: L}), "payload_bytes": 5},
            [[0, 0, 0], [1, 2, 4], [0, 2, 3]],
        ),
        (
            "views_weights",
            {"family": _views((2, 3, 5), [(2,), (0, 1)], {5: H, 6: U}, (7, 1)), "payload_bytes": 1},
            [[0, 0, 0], [1, 2, 4]],
        ),
        ("views_attribute_in_none", {"family": _views((2, 3, 9), [(0, 1)], {6: G}), "payload_bytes": 1}, [[1, 2, 8]]),
        (
            "views_largest",
            {"family": _views((1 << 20, 1 << 20), [(0,), (0, 1)], {1 << 20: G, 1 << 40: L}), "payload_bytes": 5},
            [[0, 0], [(1 << 20) - 1, (1 << 20) - 1], [123456, 7]],
        ),
        (
            "coefficients_binary",
            {"family": _signs((2,) * 8, 3), "payload_bytes": 1},
            [[0] * 8, [1, 0, 1, 1, 0, 0, 1, 0]],
        ),
        ("coefficients_one", {"family": _signs((2,), 1), "payload_bytes": 1}, [[0], [1]]),
        ("coefficients_mixed", {"family": _signs((3, 4, 5), 2), "payload_bytes": 1}, [[0, 0, 0], [2, 3, 4], [1, 2, 3]]),
        ("coefficients_all", {"family": _signs((3, 2, 9), 3), "payload_bytes": 1}, [[2, 1, 8], [1, 0, 7]]),
        ("coefficients_weights", {"family": _signs((2,) * 5, 2, (3, 1)), "payload_bytes": 1}, [[1, 1, 0, 1, 0]]),
        (
            "coefficients_many",
            {"family": _signs((2,) * 20, 3, (13, 4, 1)), "payload_bytes": 1},
            [[1, 0] * 10, [1] * 20],
        ),
        ("coefficients_wide", {"family": _signs((1 << 12,), 1), "payload_bytes": 1}, [[0], [(1 << 12) - 1], [777]]),
    ],
}

VIEWS: dict[str, Any] = _views((2, 3, 5), [(0, 1), (1, 2)], {6: G, 15: G}).spec()
SIGNS: dict[str, Any] = _signs((3, 4, 5), 2).spec()
G6, G15 = VIEWS["mechanisms"]


def _one(family: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {"spec": {"epsilon": "1", "family": family | changed, "payload_bytes": 1}}


BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "one_of": [
        ("views_sizes_one_value", _one(VIEWS, sizes=[1, 3, 5]), "InvalidSpec"),
        ("views_sizes_text", _one(VIEWS, sizes=["2", 3, 5]), "InvalidSpec"),
        ("views_sizes_no_list", _one(VIEWS, sizes=3), "InvalidSpec"),
        ("views_sizes_empty", _one(VIEWS, sizes=[]), "InvalidSpec"),
        ("views_none", _one(VIEWS, views=[], mechanisms=[G6], weights=[]), "InvalidSpec"),
        ("views_empty_view", _one(VIEWS, views=[[], [1, 2]]), "InvalidSpec"),
        ("views_falling", _one(VIEWS, views=[[1, 0], [1, 2]]), "InvalidSpec"),
        ("views_attribute_twice", _one(VIEWS, views=[[0, 0], [1, 2]]), "InvalidSpec"),
        ("views_attribute_unknown", _one(VIEWS, views=[[0, 1], [1, 3]]), "InvalidSpec"),
        ("views_attribute_text", _one(VIEWS, views=[["0", 1], [1, 2]]), "InvalidSpec"),
        ("views_same_twice", _one(VIEWS, views=[[0, 1], [0, 1]], mechanisms=[G6]), "InvalidSpec"),
        ("views_mechanisms_falling", _one(VIEWS, mechanisms=[G15, G6]), "InvalidSpec"),
        ("views_mechanism_missing", _one(VIEWS, mechanisms=[G6]), "InvalidSpec"),
        ("views_mechanism_other_size", _one(VIEWS, mechanisms=[G6, G15 | {"size": 14}]), "InvalidSpec"),
        ("views_weights_too_few", _one(VIEWS, weights=[1]), "InvalidSpec"),
        ("views_unknown_field", _one(VIEWS, colour=1), "InvalidSpec"),
        ("views_value_too_short", _one(VIEWS) | {"value": [0, 1]}, "InvalidValue"),
        ("views_value_number", _one(VIEWS) | {"value": 3}, "InvalidValue"),
        ("views_value_text", _one(VIEWS) | {"value": ["0", 1, 2]}, "InvalidValue"),
        ("views_value_out_of_domain", _one(VIEWS) | {"value": [0, 1, 5]}, "InvalidValue"),
        ("views_value_negative", _one(VIEWS) | {"value": [0, -1, 4]}, "InvalidValue"),
        ("views_report_unknown_member", _one(VIEWS) | {"report": "0200000000"}, "ReportRejected"),
        ("views_report_cell_out_of_range", _one(VIEWS) | {"report": "0000000006"}, "ReportRejected"),
        ("coefficients_k_zero", _one(SIGNS, k=0, by_order=[]), "InvalidSpec"),
        ("coefficients_k_above_attributes", _one(SIGNS, k=4, by_order=[1, 1, 1, 1]), "InvalidSpec"),
        ("coefficients_k_text", _one(SIGNS, k="2"), "InvalidSpec"),
        ("coefficients_sizes_one_value", _one(SIGNS, sizes=[1, 4, 5]), "InvalidSpec"),
        ("coefficients_two_mechanisms", _one(SIGNS, mechanisms=SIGNS["mechanisms"] * 2), "InvalidSpec"),
        ("coefficients_three_signs", _one(SIGNS, mechanisms=[SIGNS["mechanisms"][0] | {"size": 3}]), "InvalidSpec"),
        ("coefficients_weights_too_few", _one(SIGNS, by_order=[1]), "InvalidSpec"),
        ("coefficients_weight_zero", _one(SIGNS, by_order=[0, 1]), "InvalidSpec"),
        ("coefficients_too_many", _one(SIGNS, sizes=[1 << 20, 1 << 20]), "InvalidSpec"),
        ("coefficients_value_too_long", _one(SIGNS) | {"value": [0, 0, 0, 0]}, "InvalidValue"),
        ("coefficients_value_out_of_domain", _one(SIGNS) | {"value": [3, 0, 0]}, "InvalidValue"),
        ("coefficients_report_unknown_member", _one(SIGNS) | {"report": "4000000000"}, "ReportRejected"),
        ("coefficients_report_no_sign", _one(SIGNS) | {"report": "0000000002"}, "ReportRejected"),
    ],
}
