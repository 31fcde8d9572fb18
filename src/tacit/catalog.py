"""The one explicit tuple of kinds, and parsing of specs. Nothing registers itself by being imported."""

from typing import Any, cast

from tacit.core.compose import AllOf, OneOf
from tacit.core.mechanism import Mechanism
from tacit.device.catalog import device_of
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.laplace import DiscreteLaplace
from tacit.numeric.layered import LayeredMemo
from tacit.numeric.mean import OneBit
from tacit.numeric.memo import Memoized
from tacit.numeric.rounded import Rounded
from tacit.numeric.square_wave import SquareWave
from tacit.numeric.steps import TreeSteps
from tacit.oracles.blocks import ABR, CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR, HRRT, HRRSubspace
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.oracles.histogram_encoding import SHE
from tacit.oracles.local_hash import BLH, FLH, OLH, RMP
from tacit.oracles.rappor import RAPPOR, BasicRAPPOR
from tacit.oracles.sets import Padded, SetSize
from tacit.oracles.sketch import CMS, HCMS
from tacit.oracles.unary import OUE, RUE, SUE, THE

CATALOG: tuple[type[Mechanism], ...] = (
    GRR,
    SUE,
    OUE,
    RUE,
    THE,
    BLH,
    OLH,
    FLH,
    RMP,
    HRR,
    HRRT,
    HRRSubspace,
    HRRSigned,
    SS,
    CBR,
    ABR,
    BasicRAPPOR,
    RAPPOR,
    CMS,
    HCMS,
    SHE,
    OneBit,
    DiscreteLaplace,
    SquareWave,
    DBitFlip,
    Rounded,
    OneOf,
    AllOf,
    Memoized,
    LayeredMemo,
    TreeSteps,
    Padded,
    SetSize,
)


def parse(spec: Any, catalog: tuple[type[Mechanism], ...] = CATALOG) -> Mechanism:
    """The mechanism of a wire spec, nested specs included; every field must be stated."""
    return cast("Mechanism", device_of(spec, catalog))
