"""Coins of a window: words that were drawn ahead, of which reports take as many as they need."""

from tacit.arrays import U64
from tacit.device.numbers.coins import Coins


class WindowEnd(Exception):
    """A report needs words beyond the window; it is drawn again from the next one, from the same words."""


class WindowCoins(Coins):
    """The words of a window, read from any place of it; reading past its end gives up on the report."""

    def __init__(self, words: U64) -> None:
        """Hold the words as integers too: single words are read most."""
        super().__init__()
        self._buffer = words.tobytes()
        self._integers: list[int] = words.tolist()

    @property
    def place(self) -> int:
        """The number of the word that is read next."""
        return self._position >> 3

    @place.setter
    def place(self, place: int) -> None:
        self._position = place << 3

    def word(self) -> int:
        """Consume one word; `Coins.word` would make a bytes object of every one."""
        place = self._position >> 3
        if place == len(self._integers):
            raise WindowEnd
        self._position += 8
        return self._integers[place]

    def _draw(self, size: int) -> bytes:
        raise WindowEnd
