"""Every kind a device can answer, and the one entry point of a client: spec, value, coins in; report bytes out."""

from typing import Any, cast

from tacit.device.base import Device
from tacit.device.families.coefficients import Coefficients
from tacit.device.families.compose import AllOfDevice, OneOfDevice, Questions
from tacit.device.families.grid import Grid
from tacit.device.families.levels import Tree
from tacit.device.families.ticks import Ticks
from tacit.device.families.views import Views
from tacit.device.kinds.bit_flip import DBitFlipDevice
from tacit.device.kinds.blocks import ABRDevice, CBRDevice, SSDevice
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.hadamard import HRRDevice, HRRSignedDevice, HRRSubspaceDevice, HRRTDevice
from tacit.device.kinds.laplace import DiscreteLaplaceDevice, SHEDevice
from tacit.device.kinds.layered import LayeredMemoDevice
from tacit.device.kinds.local_hash import BLHDevice, FLHDevice, OLHDevice, RMPDevice
from tacit.device.kinds.mean import OneBitDevice
from tacit.device.kinds.memo import MemoizedDevice
from tacit.device.kinds.rappor import BasicRAPPORDevice, RAPPORDevice
from tacit.device.kinds.rounded import RoundedDevice
from tacit.device.kinds.sets import PaddedDevice, SetSizeDevice
from tacit.device.kinds.sketch import CMSDevice, HCMSDevice
from tacit.device.kinds.square_wave import SquareWaveDevice
from tacit.device.kinds.steps import TreeStepsDevice
from tacit.device.kinds.unary import OUEDevice, RUEDevice, SUEDevice, THEDevice
from tacit.device.nested import build
from tacit.device.numbers.coins import Coins
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
    SquareWaveDevice,
    DBitFlipDevice,
    RoundedDevice,
    OneOfDevice,
    AllOfDevice,
    MemoizedDevice,
    LayeredMemoDevice,
    TreeStepsDevice,
    PaddedDevice,
    SetSizeDevice,
)


FAMILIES: tuple[type[Any], ...] = (Questions, Tree, Grid, Views, Coefficients, Ticks)
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
