"""Free text of a declared alphabet and length, whose index keeps prefixes: heavy hitters are found in this domain."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from unicodedata import normalize

from tacit.device.domains.domain import Attribute, is_text, spec_text
from tacit.errors import InvalidSpec, InvalidValue

LOWER = "abcdefghijklmnopqrstuvwxyz"
PRINTABLE = "".join(map(chr, range(32, 127)))
ALPHABETS: dict[str, str] = {"lower": LOWER, "printable": PRINTABLE, "bytes": "".join(map(chr, range(1, 256)))}
"""Alphabets that have a name; "bytes" are the bytes of UTF-8, written here as the characters with these numbers."""

_MOST = 1 << 64
_MAX_ALPHABET_BYTES = 1 << 14


@dataclass(frozen=True)
class Text(Attribute):
    """Text of at most `length` symbols of an alphabet; shorter texts are padded with an end symbol, which is digit 0.

    The alphabet is "lower" (a to z), "printable" (ASCII from space to tilde), "bytes" (any text, as UTF-8; the length
    then counts bytes), or the characters themselves in order of their code points, each once. The index is the text
    read as a number with one digit per symbol, first symbol most significant, so that the first digits of an index
    are the beginning of its text. All indices must fit into 64 bits: 13 letters, 9 printable characters, 8 bytes.

    >>> word = Text("word", "lower", 3)
    >>> word.size == 27**3, word.encode("cab"), word.decode(word.encode("ca"))
    (True, 2216, 'ca')
    """

    kind: ClassVar[str] = "text"

    alphabet: str
    length: int

    def _check(self) -> None:
        self._set("alphabet", spec_text(self.alphabet, self.name, "alphabet", _MAX_ALPHABET_BYTES))
        if self.alphabet not in ALPHABETS and not self._in_order(self.alphabet):
            names = ", ".join(ALPHABETS)
            rule = "characters in order of their code points, each once, without NUL"
            raise InvalidSpec(f"{self.name}: alphabet must be one of {names}, or {rule}")
        fits = self.most_symbols(self.fanout)
        if type(self.length) is not int or not 1 <= self.length <= fits:
            rule = f"must be an integer from 1 to {fits}: more of its {self.fanout} symbols do not fit into 64 bits"
            raise InvalidSpec(f"{self.name}: length {rule}")

    @staticmethod
    def _in_order(characters: str) -> bool:
        return "\0" not in characters and list(characters) == sorted(set(characters))

    @staticmethod
    def most_symbols(fanout: int) -> int:
        """The longest texts over this many symbols whose indices fit into 64 bits."""
        return next(length for length in range(64, 0, -1) if fanout**length <= _MOST)

    @cached_property
    def symbols(self) -> str:
        """The end symbol, as NUL, and the characters of the alphabet: digit d stands for the character at place d."""
        return "\0" + ALPHABETS.get(self.alphabet, self.alphabet)

    @property
    def is_bytes(self) -> bool:
        """Whether the symbols are bytes of UTF-8."""
        return self.alphabet == "bytes"

    @property
    def fanout(self) -> int:
        """How many symbols there are, the end symbol included."""
        return len(self.symbols)

    @property
    def size(self) -> int:
        """All sequences of symbols, those that go on after the end included."""
        return self.fanout**self.length

    @cached_property
    def _digits(self) -> dict[str, int]:
        return {symbol: digit for digit, symbol in enumerate(self.symbols)}

    def encode(self, value: Any) -> int:
        """The index of a text, in normal form NFC."""
        text = normalize("NFC", value) if is_text(value) else "\0"
        spelt = text.encode().decode("latin-1") if self.is_bytes else text
        digits = [self._digits.get(symbol, 0) for symbol in spelt]
        if len(digits) > self.length or 0 in digits:
            unit = "bytes of UTF-8 without NUL" if self.is_bytes else "characters of its alphabet"
            raise InvalidValue(
                f"{self.name}: the value is outside the domain, must be text of at most {self.length} {unit}"
            )
        index = 0
        for digit in digits:
            index = index * self.fanout + digit
        return index * self.fanout ** (self.length - len(digits))

    def _spelt(self, prefix: int, digits: int) -> str:
        """The symbols of the first `digits` digits of an index."""
        found: list[str] = []
        for _ in range(digits):
            prefix, digit = divmod(prefix, self.fanout)
            found.append(self.symbols[digit])
        return "".join(reversed(found))

    def _label(self, index: int) -> str:
        return self.beginning(index, self.length)

    def beginning(self, prefix: int, digits: int) -> str:
        """The text of the first digits of an index; a sequence that is no text is shown with replacement characters."""
        spelt = self._spelt(prefix, digits).rstrip("\0")
        return spelt.encode("latin-1").decode("utf-8", "replace") if self.is_bytes else spelt

    def is_prefix(self, prefix: int, digits: int) -> bool:
        """Whether some text begins with these digits: nothing follows an end, and bytes are those of UTF-8."""
        spelt = self._spelt(prefix, digits)
        text = spelt.rstrip("\0")
        if "\0" in text:
            return False
        room = self.length - digits if len(text) == len(spelt) else 0
        return not self.is_bytes or _begins_utf8(text.encode("latin-1"), room)


def _begins_utf8(data: bytes, room: int) -> bool:
    """Whether at most `room` bytes more complete the last character; the smallest or the largest ones do if any do."""
    ends = [byte * count for byte in (b"\x80", b"\xbf") for count in range(min(room, 3) + 1)]
    return any(_is_utf8(data + end) for end in ends)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
