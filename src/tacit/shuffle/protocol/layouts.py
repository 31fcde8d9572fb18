"""Rows of shares: which words of a row are added by exclusive or, and which modulo 2^64.

A row is a few little-endian 64-bit words. Both additions make the words a group, and any r - 1 of r shares are uniform.
This half splits one row at a time and needs the standard library alone; `shares` has the same for arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.device.numbers.coins import Coins

_WORD = 1 << 64


@dataclass(frozen=True)
class RowLayout:
    """`xored` words, then `added` words."""

    xored: int
    added: int

    @property
    def words(self) -> int:
        """Words of a row."""
        return self.xored + self.added

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return 8 * self.words

    def split(self, row: bytes, parts: int, coins: Coins) -> list[bytes]:
        """Shares of a row: all but the last are coins.

        >>> from tacit.device.numbers.coins import ReplayCoins
        >>> layout = RowLayout(1, 1)
        >>> shares = layout.split(bytes(range(16)), 3, ReplayCoins(b"shares"))
        >>> layout.join(shares) == bytes(range(16)), layout.join(shares[:2]) == bytes(range(16))
        (True, False)
        """
        # The same order of coins as in `shares`, so that both halves make the same bytes.
        drawn = [coins.words(self.words) for _ in range(parts - 1)]
        last = row
        for share in drawn:
            last = self._combined(last, share, -1)
        return [*drawn, last]

    def join(self, shares: Sequence[bytes]) -> bytes:
        """The row of all its shares."""
        row = bytes(self.width)
        for share in shares:
            row = self._combined(row, share, 1)
        return row

    def _combined(self, row: bytes, share: bytes, sign: int) -> bytes:
        edge = 8 * self.xored
        mixed = int.from_bytes(row[:edge], "little") ^ int.from_bytes(share[:edge], "little")
        pairs = [(_word(row, i), _word(share, i)) for i in range(edge, self.width, 8)]
        sums = [((one + sign * other) % _WORD).to_bytes(8, "little") for one, other in pairs]
        return mixed.to_bytes(edge, "little") + b"".join(sums)


def _word(row: bytes, place: int) -> int:
    return int.from_bytes(row[place : place + 8], "little")


SEALED_WORDS = 7
"""A word that is sealed for the collector: 32 bytes of a key, 8 of the word, 16 of a tag."""

LAYOUTS = {
    "osh": RowLayout(SEALED_WORDS, 0),
    "osh-z": RowLayout(SEALED_WORDS, 1),
    "peos-dgk": RowLayout(0, 1),
}
"""The rows of every mode that reshares."""
