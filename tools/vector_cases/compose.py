"""Cases of composed mechanisms: one of several questions, and all of them."""

from typing import Any

from tacit.device.base import Device
from tacit.device.families.compose import Questions
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.hadamard import HRRDevice
from tacit.device.kinds.local_hash import OLHDevice
from tacit.device.kinds.unary import OUEDevice
from tacit.device.numbers.budget import Share


def _family(*mechanisms: Device, weights: tuple[int, ...] = ()) -> Questions:
    return Questions(mechanisms=mechanisms, weights=weights)


GRR3, OUE11 = GRRDevice(size=3, epsilon="1"), OUEDevice(size=11, epsilon="1")
OLH_WIDE = OLHDevice(size=1 << 64, epsilon="1")
HALF, THIRD = Share("2", "1/2"), Share("2", "1/3")

CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "one_of": [
        ("equal_members", {"family": _family(GRR3, GRR3), "payload_bytes": 1}, [[0, 2], [1, 1]]),
        ("different_widths", {"family": _family(GRR3, OUE11), "payload_bytes": 2}, [[0, 10], [2, 0]]),
        ("weights", {"family": _family(GRR3, OUE11, GRR3, weights=(1, 1000, 7)), "payload_bytes": 2}, [[0, 5, 2]]),
        ("largest_weights", {"family": _family(GRR3, GRR3, weights=(1, (1 << 32) - 1)), "payload_bytes": 1}, [[0, 1]]),
        ("values_of_64_bits", {"family": _family(OLH_WIDE, GRR3), "payload_bytes": 5}, [[(1 << 64) - 1, 0], [0, 2]]),
        (
            "smaller_epsilons",
            {"epsilon": "2", "family": _family(GRR3, GRRDevice(size=2, epsilon=HALF)), "payload_bytes": 1},
            [[0, 1]],
        ),
    ],
    "all_of": [
        (
            "joint",
            {"epsilon": "2", "members": (GRRDevice(size=3, epsilon=HALF), OUEDevice(size=2, epsilon=HALF))}
            | {"state": "joint"},
            [[0, 1], [2, 0]],
        ),
        (
            "log",
            {"epsilon": "2", "members": (OLHDevice(size=1 << 60, epsilon=HALF), HRRDevice(size=300, epsilon=HALF))}
            | {"state": "log"},
            [[1 << 59, 299], [0, 0]],
        ),
        (
            "members",
            {"epsilon": "2", "members": (GRRDevice(size=4, epsilon=THIRD),) * 3, "state": "members"},
            [[0, 1, 3]],
        ),
        ("unspent", {"epsilon": "2.5", "members": (GRRDevice(size=4, epsilon="0.5"),), "state": "joint"}, [[3]]),
    ],
}

G3: dict[str, Any] = {"kind": "grr", "epsilon": "1", "size": 3}
LIST: dict[str, Any] = {"kind": "all_of", "epsilon": "1", "members": [G3 | {"epsilon": "0.5"}] * 2, "state": "joint"}
SET: dict[str, Any] = {
    "kind": "padded",
    "epsilon": "1",
    "size": 300,
    "candidates": [],
    "inner": G3 | {"size": 302},
    "length": 2,
}
FAMILY: dict[str, Any] = {"kind": "questions", "mechanisms": [G3, G3], "weights": [1, 1]}
ONE: dict[str, Any] = {"epsilon": "1", "family": FAMILY, "payload_bytes": 1}
ALL: dict[str, Any] = {"epsilon": "2", "members": [G3, G3], "state": "joint"}
AMPLIFIED: dict[str, Any] = G3 | {"epsilon": {"of": "1", "sampled": 2}}

BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "one_of": [
        ("family_missing", {"spec": {"epsilon": "1", "payload_bytes": 1}}, "InvalidSpec"),
        ("family_null", {"spec": ONE | {"family": None}}, "InvalidSpec"),
        ("family_is_a_mechanism", {"spec": ONE | {"family": G3}}, "InvalidSpec"),
        ("family_unknown", {"spec": ONE | {"family": FAMILY | {"kind": "tree"}}}, "InvalidSpec"),
        ("family_unknown_field", {"spec": ONE | {"family": FAMILY | {"colour": 1}}}, "InvalidSpec"),
        ("family_empty", {"spec": ONE | {"family": FAMILY | {"mechanisms": [], "weights": []}}}, "InvalidSpec"),
        ("member_bad", {"spec": ONE | {"family": FAMILY | {"mechanisms": [G3, G3 | {"size": 1}]}}}, "InvalidSpec"),
        ("member_no_object", {"spec": ONE | {"family": FAMILY | {"mechanisms": [G3, "grr"]}}}, "InvalidSpec"),
        ("member_beyond_epsilon", {"spec": ONE | {"epsilon": "0.9"}}, "InvalidSpec"),
        ("member_amplified", {"spec": ONE | {"family": FAMILY | {"mechanisms": [G3, AMPLIFIED]}}}, "InvalidSpec"),
        ("weights_too_few", {"spec": ONE | {"family": FAMILY | {"weights": [1]}}}, "InvalidSpec"),
        ("weights_no_list", {"spec": ONE | {"family": FAMILY | {"weights": 2}}}, "InvalidSpec"),
        ("weight_zero", {"spec": ONE | {"family": FAMILY | {"weights": [0, 1]}}}, "InvalidSpec"),
        ("weight_boolean", {"spec": ONE | {"family": FAMILY | {"weights": [True, 1]}}}, "InvalidSpec"),
        ("weights_too_large", {"spec": ONE | {"family": FAMILY | {"weights": [1 << 32, 1]}}}, "InvalidSpec"),
        ("payload_zero", {"spec": ONE | {"payload_bytes": 0}}, "InvalidSpec"),
        (
            "payload_too_narrow",
            {"spec": ONE | {"family": FAMILY | {"mechanisms": [G3 | {"size": 300}] * 2}}},
            "InvalidSpec",
        ),
        (
            "payload_too_narrow_for_a_list",
            {"spec": ONE | {"family": FAMILY | {"mechanisms": [G3, LIST]}}},
            "InvalidSpec",
        ),
        ("payload_too_narrow_for_a_set", {"spec": ONE | {"family": FAMILY | {"mechanisms": [G3, SET]}}}, "InvalidSpec"),
        ("value_too_short", {"spec": ONE, "value": [0]}, "InvalidValue"),
        ("value_no_list", {"spec": ONE, "value": 0}, "InvalidValue"),
        ("value_text", {"spec": ONE, "value": "01"}, "InvalidValue"),
        ("value_out_of_domain", {"spec": ONE, "value": [3, 3]}, "InvalidValue"),
        # Whichever member is drawn, one of these has a wrong answer to the other.
        ("value_first_out_of_domain", {"spec": ONE, "value": [3, 0]}, "InvalidValue"),
        ("value_last_out_of_domain", {"spec": ONE, "value": [0, 3]}, "InvalidValue"),
        ("report_unknown_member", {"spec": ONE, "report": "0200000000"}, "ReportRejected"),
        ("report_out_of_range", {"spec": ONE, "report": "0100000003"}, "ReportRejected"),
        ("report_too_short", {"spec": ONE, "report": "01000000"}, "ReportRejected"),
    ],
    "all_of": [
        ("members_missing", {"spec": {"epsilon": "2", "state": "joint"}}, "InvalidSpec"),
        ("members_empty", {"spec": ALL | {"members": []}}, "InvalidSpec"),
        ("members_no_list", {"spec": ALL | {"members": G3}}, "InvalidSpec"),
        ("member_unknown", {"spec": ALL | {"members": [{"kind": "rot13"}]}}, "InvalidSpec"),
        ("member_amplified", {"spec": ALL | {"members": [AMPLIFIED]}}, "InvalidSpec"),
        ("epsilon_overspent", {"spec": ALL | {"epsilon": "1.999999999999999999"}}, "InvalidSpec"),
        ("state_missing", {"spec": {"epsilon": "2", "members": [G3, G3]}}, "InvalidSpec"),
        ("state_empty", {"spec": ALL | {"state": ""}}, "InvalidSpec"),
        ("state_unknown", {"spec": ALL | {"state": "rows"}}, "InvalidSpec"),
        ("value_too_long", {"spec": ALL, "value": [0, 0, 0]}, "InvalidValue"),
        ("value_second_out_of_domain", {"spec": ALL, "value": [0, 3]}, "InvalidValue"),
        ("value_null", {"spec": ALL, "value": None}, "InvalidValue"),
        ("report_out_of_range", {"spec": ALL, "report": "0003"}, "ReportRejected"),
        ("report_too_short", {"spec": ALL, "report": "00"}, "ReportRejected"),
    ],
}
