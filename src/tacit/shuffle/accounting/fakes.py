"""Fake reports that shufflers add: how many of them may be counted on.

A fake is a uniform 64-bit word, and every word is some report: a value for randomised response (word mod d), a seed and
a bucket for local hashing (upper half, lower half mod g). Divisions leave a remainder, so a uniform word is a uniform
report only with probability 1 - d/2^64, or 1 - g/2^32; the rest of the time it is taken to help nobody.
"""

from tacit.core.statistics.binomial import least_significant
from tacit.device.base import Device
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.local_hash import LocalHashDevice
from tacit.errors import InvalidSpec

UNCOUNTED = 2.0**-80
"""The probability that fewer fakes are uniform than are counted; every delta with fakes contains it."""


def spoiled_share(mechanism: Device) -> float:
    """The probability that a uniform word is not a uniform report of this mechanism, at most."""
    if isinstance(mechanism, GRRDevice):
        return mechanism.size / 2.0**64
    if isinstance(mechanism, LocalHashDevice):
        return mechanism.g / 2.0**32
    raise InvalidSpec(f"{mechanism.kind}: uniform words are no reports of this kind; fakes need grr, olh or blh")


def counted_fakes(mechanism: Device, drawn: int) -> int:
    """How many of the drawn words count as uniform reports: all but the most that can be spoilt, save for 2^-80.

    >>> from tacit import GRR, OLH
    >>> counted_fakes(GRR(size=1024, epsilon="4"), 5_000), counted_fakes(OLH(size=1024, epsilon="6"), 5_000)
    (4999, 4994)
    """
    if drawn < 0:
        raise InvalidSpec(f"fakes: there are {drawn}, must be at least 0")
    spoilt = least_significant(drawn, spoiled_share(mechanism), UNCOUNTED) - 1
    return max(0, drawn - spoilt)


def drawn_fakes(mechanism: Device, counted: int) -> int:
    """How many words must be drawn so that `counted` of them count."""
    drawn = counted
    # A few more words spoil hardly more of them: one or two steps.
    while counted_fakes(mechanism, drawn) < counted:
        drawn += counted - counted_fakes(mechanism, drawn)
    return drawn
