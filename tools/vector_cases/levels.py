"""Cases of one level of a tree per respondent: hierarchical histograms and Haar levels inside `one_of`."""

from typing import Any

from tacit.device.base import Device
from tacit.device.families.levels import Tree, node_count
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.hadamard import HRRDevice, HRRSignedDevice
from tacit.device.kinds.local_hash import OLHDevice
from tacit.device.kinds.unary import OUEDevice


def _plain(size: int, fanout: int, levels: "dict[int, type[Any]]", weights: tuple[int, ...] = ()) -> Tree:
    """A tree from heights and the kinds that ask for their nodes."""
    mechanisms: list[Device] = [
        kind(size=node_count(size, fanout, height), epsilon="1") for height, kind in levels.items()
    ]
    return Tree(size=size, fanout=fanout, heights=tuple(levels), mechanisms=tuple(mechanisms), weights=weights)


def _haar(size: int, weights: tuple[int, ...] = ()) -> Tree:
    """Every level of the Haar transform: the halves of the nodes of height t are the nodes of height t - 1."""
    heights = range((size - 1).bit_length() - 1, -1, -1)
    return _plain(size, 2, dict.fromkeys(heights, HRRSignedDevice), weights)


G, U, L, H = GRRDevice, OUEDevice, OLHDevice, HRRDevice

CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "one_of": [
        ("tree_equal_kinds", {"family": _plain(8, 2, {2: G, 1: G, 0: G}), "payload_bytes": 1}, [0, 3, 7]),
        ("tree_mixed_kinds", {"family": _plain(10, 2, {3: G, 2: U, 1: L, 0: H}), "payload_bytes": 5}, [0, 1, 5, 8, 9]),
        ("tree_ragged", {"family": _plain(10, 3, {2: G, 1: U, 0: H}), "payload_bytes": 1}, [0, 2, 3, 8, 9]),
        ("tree_without_a_level", {"family": _plain(10, 3, {2: G, 0: U}), "payload_bytes": 2}, [0, 8, 9]),
        ("tree_without_leaves", {"family": _plain(11, 3, {2: G, 1: H}), "payload_bytes": 1}, [0, 8, 9, 10]),
        ("tree_weights", {"family": _plain(10, 3, {2: G, 1: U, 0: H}, (1, 1000, 7)), "payload_bytes": 1}, [0, 4, 9]),
        ("tree_of_one_level", {"family": _plain(5, 1 << 40, {0: U}), "payload_bytes": 1}, [0, 4]),
        (
            "tree_largest",
            {"family": _plain(1 << 40, 1 << 20, {1: H, 0: L}), "payload_bytes": 5},
            [0, (1 << 20) - 1, 1 << 20, (1 << 40) - 1],
        ),
        (
            "tree_fanout_no_power_of_two",
            {"family": _plain(1 << 40, 9_973, {3: G, 2: L, 1: L, 0: L}), "payload_bytes": 5},
            [0, 9_973**3 - 1, 9_973**3, (1 << 40) - 1],
        ),
        (
            "tree_prefixes_of_64_bits",
            {"family": _plain(1 << 64, 2, {54: L, 32: L, 11: L, 0: L}), "payload_bytes": 5},
            [0, (1 << 32) - 1, 1 << 53, 0x0123456789ABCDEF, (1 << 64) - 1],
        ),
        (
            "tree_prefixes_of_text",
            {"family": _plain(27**13, 27, {10: L, 7: L, 3: L, 0: L}, (1, 1, 1, 2)), "payload_bytes": 5},
            [0, 27**10 - 1, 27**10, 3**38, 27**13 - 1],
        ),
        (
            "tree_widest_fanout",
            {"family": _plain(1 << 64, 1 << 63, {1: G, 0: L}), "payload_bytes": 5},
            [0, (1 << 63) - 1, 1 << 63],
        ),
        ("tree_haar_2", {"family": _haar(2), "payload_bytes": 1}, [0, 1]),
        ("tree_haar_8", {"family": _haar(8), "payload_bytes": 1}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("tree_haar_11", {"family": _haar(11), "payload_bytes": 1}, [0, 5, 7, 8, 10]),
        ("tree_haar_weights", {"family": _haar(11, (5, 1, 1, 9)), "payload_bytes": 1}, [0, 10]),
        ("tree_haar_wide", {"family": _haar(1 << 30), "payload_bytes": 4}, [0, 123456789, (1 << 30) - 1]),
    ],
}

TREE: dict[str, Any] = _plain(11, 3, {2: G, 1: G}).spec()
ONE: dict[str, Any] = {"epsilon": "1", "family": TREE, "payload_bytes": 1}
G2, G4 = TREE["mechanisms"]
ONEBIT: dict[str, Any] = {"kind": "onebit", "epsilon": "1", "top": 3}
MEMO: dict[str, Any] = {"kind": "memo", "epsilon": "1", "inner": G4, "most_values": 2, "step": 0}


def _spec(**changed: Any) -> dict[str, Any]:
    return {"spec": ONE | {"family": TREE | changed}}


def _value(value: Any) -> dict[str, Any]:
    return {"spec": ONE, "value": value}


BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "one_of": [
        ("family_of_no_kind", {"spec": ONE | {"family": TREE | {"kind": "forest"}}}, "InvalidSpec"),
        ("tree_size_one", _spec(size=1), "InvalidSpec"),
        ("tree_size_text", _spec(size="11"), "InvalidSpec"),
        ("tree_size_fraction", _spec(size=10.5), "InvalidSpec"),
        ("tree_size_of_other_nodes", _spec(size=13), "InvalidSpec"),
        ("tree_size_too_large", _spec(size=str((1 << 64) + 1)), "InvalidSpec"),
        ("tree_fanout_one", _spec(fanout=1), "InvalidSpec"),
        ("tree_fanout_boolean", _spec(fanout=True), "InvalidSpec"),
        ("tree_fanout_missing", {"spec": ONE | {"family": {k: TREE[k] for k in TREE if k != "fanout"}}}, "InvalidSpec"),
        ("tree_unknown_field", _spec(colour=1), "InvalidSpec"),
        ("tree_heights_no_list", _spec(heights=2), "InvalidSpec"),
        ("tree_heights_text", _spec(heights=["2", "1"]), "InvalidSpec"),
        ("tree_heights_null", _spec(heights=[None, 1]), "InvalidSpec"),
        ("tree_heights_boolean", _spec(heights=[2, True]), "InvalidSpec"),
        ("tree_heights_negative", _spec(heights=[2, -1]), "InvalidSpec"),
        ("tree_heights_fraction", _spec(heights=[2, 1.5]), "InvalidSpec"),
        ("tree_heights_huge", _spec(heights=[1 << 50, 1]), "InvalidSpec"),
        ("tree_heights_too_few", _spec(heights=[2]), "InvalidSpec"),
        ("tree_heights_rise", _spec(heights=[1, 2], mechanisms=[G4, G2]), "InvalidSpec"),
        ("tree_heights_repeat", _spec(heights=[1, 1], mechanisms=[G4, G4]), "InvalidSpec"),
        ("tree_of_the_root", _spec(heights=[3, 1]), "InvalidSpec"),
        ("tree_empty", _spec(heights=[], mechanisms=[], weights=[]), "InvalidSpec"),
        ("tree_mechanisms_swapped", _spec(mechanisms=[G4, G2]), "InvalidSpec"),
        ("tree_mechanism_too_wide", _spec(mechanisms=[G2, G4 | {"size": 5}]), "InvalidSpec"),
        ("tree_mechanism_no_object", _spec(mechanisms=[G2, "grr"]), "InvalidSpec"),
        ("tree_mechanism_of_a_number", _spec(mechanisms=[G2, ONEBIT]), "InvalidSpec"),
        ("tree_mechanism_memoised", _spec(mechanisms=[G2, MEMO]), "InvalidSpec"),
        ("tree_weights_no_list", _spec(weights=2), "InvalidSpec"),
        ("tree_weights_too_few", _spec(weights=[1]), "InvalidSpec"),
        ("tree_weight_zero", _spec(weights=[0, 1]), "InvalidSpec"),
        ("tree_value_beyond_the_last_leaf", _value(11), "InvalidValue"),
        ("tree_value_negative", _value(-1), "InvalidValue"),
        ("tree_value_huge", _value(1 << 70), "InvalidValue"),
        ("tree_value_fraction", _value(1.5), "InvalidValue"),
        ("tree_value_boolean", _value(True), "InvalidValue"),
        ("tree_value_text", _value("1"), "InvalidValue"),
        ("tree_value_null", _value(None), "InvalidValue"),
        ("tree_value_list", _value([1]), "InvalidValue"),
        ("tree_value_object", _value({"leaf": 1}), "InvalidValue"),
        ("tree_report_unknown_member", {"spec": ONE, "report": "0200000000"}, "ReportRejected"),
        ("tree_report_node_out_of_range", {"spec": ONE, "report": "0000000002"}, "ReportRejected"),
    ],
}
