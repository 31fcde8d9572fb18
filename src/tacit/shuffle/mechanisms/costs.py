"""Bytes that the shuffling protocols of Wang's dissertation send for every report (section 9.6.1, Table 9.3).

These are the sizes of the source's prototype: reports in 32 bytes under layers of 96 bytes for the sequential shuffle
(SS), and one ciphertext of 3072 bits beside shares of 64 bits for the oblivious one (PEOS). They are here to compare
with; other encryption has other sizes.
"""

from dataclasses import dataclass

from tacit.errors import InvalidSpec

_PAYLOAD, _LAYER = 32, 96
_CIPHERTEXT, _SHARE = 384, 8


@dataclass(frozen=True)
class ProtocolBytes:
    """Bytes for one report: what its respondent sends, a shuffler sends on average, and the server receives."""

    respondent: int
    shuffler: float | None
    """None where it is not derived: the rounds of resharing are only counted in order of magnitude."""
    server: int


def sequential_bytes(shufflers: int) -> ProtocolBytes:
    """Return the sizes of a chain of shufflers, each of which takes one layer off.

    The shuffler with k layers left to come sends 32 + 96 k bytes; the text's formula has k + 1, and calls the total of
    three shufflers what one sends.

    >>> sequential_bytes(3)
    ProtocolBytes(respondent=416, shuffler=224.0, server=128)
    """
    _check(shufflers)
    sent = [_PAYLOAD + _LAYER * left for left in range(1, shufflers + 1)]
    return ProtocolBytes(_PAYLOAD + _LAYER * (shufflers + 1), sum(sent) / shufflers, sent[0])


def oblivious_bytes(shufflers: int) -> ProtocolBytes:
    """Return the sizes of the oblivious shuffle: r shares from a respondent, of which the server receives r/2 + 1.

    >>> oblivious_bytes(7)
    ProtocolBytes(respondent=432, shuffler=None, server=408)
    """
    _check(shufflers)
    hiders = shufflers // 2 + 1
    return ProtocolBytes(_CIPHERTEXT + _SHARE * (shufflers - 1), None, _CIPHERTEXT + _SHARE * (hiders - 1))


def _check(shufflers: int) -> None:
    if shufflers < 1:
        raise InvalidSpec(f"shuffle: {shufflers} shufflers, must be at least 1")
