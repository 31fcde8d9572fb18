"""Proofs that cyclic block designs are balanced, for any practical size, by one Fourier transform.

The estimates of cyclic block response are unbiased because the block is a difference set; that is checked once per
process before anything is estimated.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidSpec


def block_indicator(block: bytes, modulus: int) -> NDArray[np.uint8]:
    """Unpack the bitmap of a cyclic design into one 0 or 1 per point."""
    return np.unpackbits(np.frombuffer(block, dtype=np.uint8), count=modulus, bitorder="little")


def certify_cyclic(indicator: NDArray[np.uint8], k: int, lam: int) -> None:
    """Prove that a set of residues has k points and meets each of its shifts in lam; raise if not.

    All overlaps at once are the cyclic autocorrelation of the indicator. They are integers, so
    rounding the transform is exact as long as it stays clearly nearer to one integer than to the
    next, which is checked and not assumed.
    """
    if not np.isin(indicator, (0, 1)).all():
        raise InvalidSpec("certify_cyclic: the indicator has entries other than 0 and 1")
    points = int(np.count_nonzero(indicator))
    if points != k:
        raise InvalidSpec(f"certify_cyclic: the block has {points} points, must have {k}; build it again")
    # Wiener-Khinchin: the autocorrelation is the inverse transform of the squared magnitude of the spectrum.
    spectrum = np.fft.rfft(indicator.astype(np.float64))
    raw = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, indicator.size)
    overlaps = np.rint(raw)
    if np.abs(raw - overlaps).max() >= 0.1:
        raise InvalidSpec(f"certify_cyclic: {indicator.size} points are too many for this precision")
    wrong = np.flatnonzero(overlaps[1:] != lam)
    if wrong.size:
        shift = int(wrong[0]) + 1
        raise InvalidSpec(
            f"certify_cyclic: shift {shift} meets the block in {int(overlaps[shift])} points, must be {lam};"
            " build it again"
        )
