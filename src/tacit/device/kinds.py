"""Every kind a device can answer, and the one entry point of a client: spec, value, coins in; report bytes out."""

from typing import Any, cast

from tacit.device.base import Device
from tacit.device.blocks import ABRDevice, CBRDevice, SSDevice
from tacit.device.coins import Coins
from tacit.device.grr import GRRDevice
from tacit.device.hadamard import HRRDevice, HRRSubspaceDevice, HRRTDevice
from tacit.device.local_hash import BLHDevice, FLHDevice, OLHDevice, RMPDevice
from tacit.device.rappor import BasicRAPPORDevice, RAPPORDevice
from tacit.device.sketch import CMSDevice, HCMSDevice
from tacit.device.unary import OUEDevice, RUEDevice, SUEDevice, THEDevice
from tacit.errors import InvalidSpec

KINDS: tuple[type[Device], ...] = (
    GRRDevice,
    SUEDevice,
    OUEDevice,
    RUEDevice,
    THEDevice,
    BLHDevice,
    OLHDevice,
    FLHDevice,
    RMPDevice,
    HRRDevice,
    HRRTDevice,
    HRRSubspaceDevice,
    SSDevice,
    CBRDevice,
    ABRDevice,
    BasicRAPPORDevice,
    RAPPORDevice,
    CMSDevice,
    HCMSDevice,
)


def find_kind(spec: Any, kinds: "tuple[type[Device], ...]") -> type[Device]:
    """The class of a spec, or InvalidSpec naming what is known."""
    name: Any = cast("dict[str, Any]", spec).get("kind") if isinstance(spec, dict) else None
    for kind in kinds:
        if kind.kind == name:
            return kind
    known = ", ".join(kind.kind for kind in kinds)
    raise InvalidSpec(f"spec: kind is {str(name)[:40]!r}, must be one of {known}")


def device_of(spec: dict[str, Any]) -> Device:
    """The device half of a wire spec."""
    return find_kind(spec, KINDS).from_spec(spec)


def privatize_one(spec: dict[str, Any], value: Any, coins: Coins) -> bytes:
    """The noisy report of one respondent: everything that ever leaves the device."""
    return device_of(spec).privatize_one(value, coins)
