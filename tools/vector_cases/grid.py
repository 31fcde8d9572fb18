"""Cases of products of hierarchies inside `one_of`, and of numbers rounded beside keys."""

from typing import Any

from tacit.device.base import Device
from tacit.device.families.grid import Grid
from tacit.device.families.levels import node_count
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.hadamard import HRRDevice
from tacit.device.kinds.local_hash import OLHDevice
from tacit.device.kinds.rounded import RoundedDevice
from tacit.device.kinds.unary import OUEDevice

G, U, L, H = GRRDevice, OUEDevice, OLHDevice, HRRDevice


def _grid(
    sizes: tuple[int, ...],
    fanouts: tuple[int, ...],
    members: "dict[tuple[int, ...], type[Any]]",
    weights: tuple[int, ...] = (),
) -> Grid:
    """A grid from heights and the kinds that ask for their nodes."""
    mechanisms: list[Device] = []
    for heights, kind in members.items():
        size = 1
        for each in zip(sizes, fanouts, heights, strict=True):
            size *= node_count(*each)
        mechanisms.append(kind(size=size, epsilon="1"))
    shape: dict[str, Any] = {"sizes": sizes, "fanouts": fanouts, "heights": tuple(members)}
    return Grid(**shape, mechanisms=tuple(mechanisms), weights=weights)


PAIR = _grid((3, 4), (2, 2), {(2, 1): G, (2, 0): G, (1, 2): G, (1, 0): U, (0, 0): H})
RAGGED = _grid((5, 7), (2, 3), {(3, 1): G, (2, 1): U, (0, 2): L, (0, 0): L}, (1, 30, 2, 7))
CUBE = _grid((3, 2, 5), (3, 2, 2), {(1, 1, 2): G, (0, 1, 3): G, (0, 0, 0): U})
FOUR = _grid((3, 2, 5, 4), (2, 2, 3, 4), {(2, 1, 2, 0): G, (1, 0, 1, 1): U, (0, 1, 0, 0): L, (0, 0, 0, 0): H})
EIGHT = _grid(
    (2, 3, 2, 5, 2, 2, 7, 32),
    (2, 3, 2, 2, 2, 2, 7, 2),
    {(1, 1, 1, 3, 1, 1, 1, 2): G, (1, 0, 1, 0, 1, 0, 1, 5): G, (0, 0, 0, 2, 0, 0, 0, 1): L, (0,) * 8: L},
)
FULL = _grid((32,) * 8, (32,) * 8, {(1,) * 6 + (0, 0): L, (0,) * 8: L})
LARGE = _grid((1 << 20, 1 << 20), (9973, 1 << 10), {(1, 1): H, (0, 0): L})
KEYS = Grid(
    sizes=(3, 11),
    fanouts=(2, 2),
    heights=((2, 0), (0, 0)),
    mechanisms=tuple(RoundedDevice(top=10, inner=G(size=size, epsilon="1")) for size in (2, 6)),
)

CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "one_of": [
        ("grid_pair", {"family": PAIR, "payload_bytes": 1}, [0, 1, 3, 4, 7, 11]),
        ("grid_ragged", {"family": RAGGED, "payload_bytes": 5}, [0, 6, 7, 20, 34]),
        ("grid_cube", {"family": CUBE, "payload_bytes": 4}, [0, 4, 5, 17, 29]),
        ("grid_four", {"family": FOUR, "payload_bytes": 5}, [0, 3, 4, 20, 61, 119]),
        ("grid_eight", {"family": EIGHT, "payload_bytes": 5}, [0, 31, 32, 12345, 53759]),
        ("grid_eight_large", {"family": FULL, "payload_bytes": 5}, [0, (1 << 35) + 7, (1 << 40) - 1]),
        ("grid_large", {"family": LARGE, "payload_bytes": 5}, [0, (1 << 20) - 1, 1 << 20, (1 << 40) - 1]),
        ("grid_rounded", {"family": KEYS, "payload_bytes": 1}, [0, 5, 10, 11, 32]),
    ],
    "rounded": [
        ("grr", {"top": 10, "inner": G(size=6, epsilon="1")}, [0, 5, 10, 11, 27, 32]),
        ("oue", {"top": 1, "inner": U(size=4, epsilon="0.5")}, [0, 1, 2, 3]),
        ("wide", {"top": (1 << 32) - 1, "inner": H(size=8, epsilon="1")}, [0, 1, (1 << 32) - 1, (1 << 34) - 1]),
        ("odd", {"top": 3, "inner": L(size=20, epsilon="2")}, [1, 2, 38]),
        ("looser", {"epsilon": "2", "top": 3, "inner": G(size=2, epsilon="1")}, [0, 3]),
    ],
}

SPEC: dict[str, Any] = PAIR.spec()
ONE: dict[str, Any] = {"epsilon": "1", "family": SPEC, "payload_bytes": 1}
NINE: dict[str, Any] = {
    "kind": "grid",
    "sizes": [2] * 9,
    "fanouts": [2] * 9,
    "heights": [[1] * 8 + [0]],
    "mechanisms": [G(size=2, epsilon="1").spec()],
    "weights": [1],
}
INNER: dict[str, Any] = G(size=6, epsilon="1").spec()
ROUNDED: dict[str, Any] = {"epsilon": "1", "top": 10, "inner": INNER}


def _spec(**changed: Any) -> dict[str, Any]:
    return {"spec": ONE | {"family": SPEC | changed}}


def _value(value: Any) -> dict[str, Any]:
    return {"spec": ONE, "value": value}


def _heights(*changed: list[Any]) -> dict[str, Any]:
    return _spec(heights=[*changed, *SPEC["heights"][len(changed) :]])


BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "one_of": [
        ("grid_sizes_no_list", _spec(sizes=12), "InvalidSpec"),
        ("grid_sizes_of_one", _spec(sizes=[1, 4]), "InvalidSpec"),
        ("grid_sizes_text", _spec(sizes=["3", 4]), "InvalidSpec"),
        ("grid_sizes_boolean", _spec(sizes=[True, 4]), "InvalidSpec"),
        ("grid_sizes_other", _spec(sizes=[4, 3]), "InvalidSpec"),
        ("grid_sizes_too_large", _spec(sizes=[1 << 21, 1 << 20]), "InvalidSpec"),
        ("grid_too_few_fanouts", _spec(fanouts=[2]), "InvalidSpec"),
        ("grid_fanout_of_one", _spec(fanouts=[2, 1]), "InvalidSpec"),
        ("grid_more_attributes_than_heights", _spec(sizes=[3, 4, 2, 2], fanouts=[2, 2, 2, 2]), "InvalidSpec"),
        ("grid_nine_attributes", {"spec": ONE | {"family": NINE}}, "InvalidSpec"),
        ("grid_no_attributes", _spec(sizes=[], fanouts=[]), "InvalidSpec"),
        ("grid_heights_flat", _spec(heights=[2, 2, 1, 1, 0]), "InvalidSpec"),
        ("grid_heights_too_few", _spec(heights=SPEC["heights"][:4]), "InvalidSpec"),
        ("grid_heights_of_one_attribute", _heights([2]), "InvalidSpec"),
        ("grid_heights_negative", _heights([2, -1]), "InvalidSpec"),
        ("grid_heights_fraction", _heights([2, 1.5]), "InvalidSpec"),
        ("grid_heights_above_the_root", _heights([3, 1]), "InvalidSpec"),
        ("grid_heights_of_both_roots", _heights([2, 2]), "InvalidSpec"),
        ("grid_heights_equal", _heights([2, 0]), "InvalidSpec"),
        ("grid_heights_rise", _spec(heights=[[2, 0], [2, 1], *SPEC["heights"][2:]]), "InvalidSpec"),
        ("grid_mechanisms_swapped", _spec(mechanisms=SPEC["mechanisms"][::-1]), "InvalidSpec"),
        ("grid_weights_no_list", _spec(weights=2), "InvalidSpec"),
        ("grid_weight_zero", _spec(weights=[0, 1, 1, 1, 1]), "InvalidSpec"),
        ("grid_field_missing", {"spec": ONE | {"family": {k: SPEC[k] for k in SPEC if k != "sizes"}}}, "InvalidSpec"),
        ("grid_value_beyond", _value(12), "InvalidValue"),
        ("grid_value_negative", _value(-1), "InvalidValue"),
        ("grid_value_list", _value([1, 1]), "InvalidValue"),
        ("grid_value_text", _value("1"), "InvalidValue"),
    ],
    "rounded": [
        ("top_zero", {"spec": ROUNDED | {"top": 0}}, "InvalidSpec"),
        ("top_too_large", {"spec": ROUNDED | {"top": 1 << 32}}, "InvalidSpec"),
        ("inner_odd", {"spec": ROUNDED | {"inner": INNER | {"size": 5}}}, "InvalidSpec"),
        (
            "inner_of_a_number",
            {"spec": ROUNDED | {"inner": {"kind": "onebit", "epsilon": "1", "top": 3}}},
            "InvalidSpec",
        ),
        ("inner_missing", {"spec": {"epsilon": "1", "top": 10}}, "InvalidSpec"),
        ("inner_text", {"spec": ROUNDED | {"inner": "grr"}}, "InvalidSpec"),
        ("epsilon_below_inner", {"spec": ROUNDED | {"epsilon": "0.5"}}, "InvalidSpec"),
        ("value_beyond", {"spec": ROUNDED, "value": 33}, "InvalidValue"),
        ("value_text", {"spec": ROUNDED, "value": "3"}, "InvalidValue"),
        ("value_fraction", {"spec": ROUNDED, "value": 1.5}, "InvalidValue"),
    ],
}
