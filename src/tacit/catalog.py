"""The one explicit tuple of kinds, and parsing of specs. Nothing registers itself by being imported."""

from typing import Any

from tacit.core.mechanism import Mechanism
from tacit.device.kinds import find_kind
from tacit.oracles.blocks import ABR, CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR, HRRT, HRRSubspace
from tacit.oracles.local_hash import BLH, FLH, OLH, RMP
from tacit.oracles.rappor import RAPPOR, BasicRAPPOR
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
    SS,
    CBR,
    ABR,
    BasicRAPPOR,
    RAPPOR,
    CMS,
    HCMS,
)


def parse(spec: dict[str, Any], catalog: tuple[type[Mechanism], ...] = CATALOG) -> Mechanism:
    """The mechanism of a wire spec; every field must be stated."""
    kind = find_kind(spec, catalog)
    mechanism = kind.from_spec(spec)
    assert isinstance(mechanism, Mechanism)
    return mechanism
