"""Every kind a device can answer, and the one entry point of a client: spec, value, coins in; report bytes out."""

from typing import Any, cast

from tacit.device.base import Device
from tacit.device.bit_flip import DBitFlipDevice
from tacit.device.blocks import ABRDevice, CBRDevice, SSDevice
from tacit.device.coefficients import Coefficients
from tacit.device.coins import Coins
from tacit.device.compose import AllOfDevice, OneOfDevice, Questions
from tacit.device.grid import Grid
from tacit.device.grr import GRRDevice
from tacit.device.hadamard import HRRDevice, HRRSignedDevice, HRRSubspaceDevice, HRRTDevice
from tacit.device.laplace import DiscreteLaplaceDevice, SHEDevice
from tacit.device.levels import Tree
from tacit.device.local_hash import BLHDevice, FLHDevice, OLHDevice, RMPDevice
from tacit.device.mean import OneBitDevice
from tacit.device.memo import MemoizedDevice
from tacit.device.nested import build
from tacit.device.rappor import BasicRAPPORDevice, RAPPORDevice
from tacit.device.rounded import RoundedDevice
from tacit.device.sets import PaddedDevice, SetSizeDevice
from tacit.device.sketch import CMSDevice, HCMSDevice
from tacit.device.unary import OUEDevice, RUEDevice, SUEDevice, THEDevice
from tacit.device.views import Views
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
    HRRSignedDevice,
    SSDevice,
    CBRDevice,
    ABRDevice,
    BasicRAPPORDevice,
    RAPPORDevice,
    CMSDevice,
    HCMSDevice,
    SHEDevice,
    OneBitDevice,
    DiscreteLaplaceDevice,
    DBitFlipDevice,
    RoundedDevice,
    OneOfDevice,
    AllOfDevice,
    MemoizedDevice,
    PaddedDevice,
    SetSizeDevice,
)


FAMILIES: tuple[type[Any], ...] = (Questions, Tree, Grid, Views, Coefficients)
"""Families of questions of which one is answered: parts of a spec, not kinds of their own."""


def find_kind(spec: Any, kinds: "tuple[type[Any], ...]") -> type[Any]:
    """The class of a spec, or InvalidSpec naming what is known."""
    name: Any = cast("dict[str, Any]", spec).get("kind") if isinstance(spec, dict) else None
    for kind in kinds:
        if kind.kind == name:
            return kind
    known = ", ".join(kind.kind for kind in kinds)
    raise InvalidSpec(f"spec: kind is {str(name)[:40]!r}, must be one of {known}")


def device_of(spec: Any, kinds: "tuple[type[Device], ...]" = KINDS) -> Device:
    """The mechanism of a wire spec, nested specs included; every field must be stated."""
    find_kind(spec, kinds)
    return build(spec, lambda part: find_kind(part, (*kinds, *FAMILIES)))


def privatize_one(spec: dict[str, Any], value: Any, coins: Coins) -> bytes:
    """The noisy report of one respondent: everything that ever leaves the device."""
    return device_of(spec).privatize_one(value, coins)
