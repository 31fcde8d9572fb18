"""Cases of one thing to tick per respondent, inside `one_of`."""

from typing import Any

from tacit.device.base import Device
from tacit.device.families.compose import OneOfDevice, Questions
from tacit.device.families.ticks import Ticks
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.unary import OUEDevice
from tacit.device.numbers.budget import Share


def _one(size: int, mechanism: Device) -> dict[str, Any]:
    return {"family": Ticks(size=size, mechanisms=(mechanism,)), "payload_bytes": 1}


YES_OR_NO = GRRDevice(size=2, epsilon="1")
AT_A_SHARE = GRRDevice(size=2, epsilon=Share("1", "1/2"))
OF_THREE = _one(3, YES_OR_NO)
MIXED = Questions(mechanisms=(GRRDevice(size=4, epsilon="1"), OneOfDevice(**OF_THREE)))

CASES: dict[str, list[tuple[str, dict[str, Any], list[Any]]]] = {
    "one_of": [
        ("ticks_of_three", OF_THREE, [[], [0], [2], [0, 2], [0, 1, 2]]),
        ("ticks_of_one", _one(1, YES_OR_NO), [[], [0]]),
        ("ticks_of_many", _one(300, GRRDevice(size=2, epsilon="0.5")), [[], [299], list(range(0, 300, 7))]),
        ("ticks_in_any_order", OF_THREE, [[2, 0]]),
        ("ticks_at_a_share", _one(5, AT_A_SHARE), [[], [1, 4]]),
        ("ticks_through_oue", _one(4, OUEDevice(size=2, epsilon="1")), [[], [3]]),
        ("ticks_among_questions", {"family": MIXED, "payload_bytes": 5}, [[0, []], [3, [1]], [2, [0, 1, 2]]]),
    ],
}

FAMILY: dict[str, Any] = Ticks(size=3, mechanisms=(YES_OR_NO,)).spec()
ONE: dict[str, Any] = {"epsilon": "1", "family": FAMILY, "payload_bytes": 1}


def _grr(size: int = 2, epsilon: str = "1") -> dict[str, Any]:
    return {"kind": "grr", "size": size, "epsilon": epsilon}


def _spec(**changed: Any) -> dict[str, Any]:
    return {"spec": ONE | {"family": FAMILY | changed}}


def _value(value: Any) -> dict[str, Any]:
    return {"spec": ONE, "value": value}


BAD: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "one_of": [
        ("ticks_size_zero", _spec(size=0), "InvalidSpec"),
        ("ticks_size_text", _spec(size="3"), "InvalidSpec"),
        ("ticks_size_boolean", _spec(size=True), "InvalidSpec"),
        ("ticks_size_too_large", _spec(size=(1 << 20) + 1), "InvalidSpec"),
        ("ticks_size_missing", {"spec": ONE | {"family": {"kind": "ticks", "mechanisms": [_grr()]}}}, "InvalidSpec"),
        ("ticks_weights", _spec(weights=[1, 1, 1]), "InvalidSpec"),
        ("ticks_mechanisms_empty", _spec(mechanisms=[]), "InvalidSpec"),
        ("ticks_mechanisms_one_per_item", _spec(mechanisms=[_grr()] * 3), "InvalidSpec"),
        ("ticks_mechanism_of_three_values", _spec(mechanisms=[_grr(3)]), "InvalidSpec"),
        ("ticks_mechanism_no_object", _spec(mechanisms=["grr"]), "InvalidSpec"),
        ("ticks_mechanism_of_a_larger_epsilon", _spec(mechanisms=[_grr(2, "2")]), "InvalidSpec"),
        ("ticks_value_beyond_the_last", _value([3]), "InvalidValue"),
        ("ticks_value_negative", _value([-1]), "InvalidValue"),
        ("ticks_value_twice", _value([1, 1]), "InvalidValue"),
        ("ticks_value_integer", _value(1), "InvalidValue"),
        ("ticks_value_text", _value("01"), "InvalidValue"),
        ("ticks_value_of_text", _value(["1"]), "InvalidValue"),
        ("ticks_value_null", _value(None), "InvalidValue"),
        ("ticks_value_boolean", _value([True]), "InvalidValue"),
        ("ticks_value_fraction", _value([0.5]), "InvalidValue"),
        ("ticks_value_object", _value({"0": 1}), "InvalidValue"),
        ("ticks_report_unknown_item", {"spec": ONE, "report": "0300000000"}, "ReportRejected"),
        ("ticks_report_of_no_answer", {"spec": ONE, "report": "0000000002"}, "ReportRejected"),
    ],
}
