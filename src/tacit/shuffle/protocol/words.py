"""Reports as 64-bit words, so that every word is a report and nobody can tell a fake by its form.

A fake report is a uniform word. If some words were no report, the collector would see which rows are fakes; therefore
all 2^64 words decode: a code is the word modulo the number of codes, and a seeded report has its seed in the upper
32 bits and its bucket in the lower 32, modulo the number of buckets. A client draws uniformly among the words of its
report, so that a word says nothing beyond the report. This half needs the standard library alone.

    >>> from tacit.device.kinds.grr import GRRDevice
    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> grr = GRRDevice(size=10, epsilon="1")
    >>> word = encode_word(grr, b"\\x07", ReplayCoins(b"word"))
    >>> word % 10, decode_word(grr, word)
    (7, b'\\x07')
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.device.base import Device, width_bytes
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.local_hash import LocalHashDevice
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, ReportRejected

WORD_BYTES = 8
_SEED_BYTES = 4


@dataclass(frozen=True)
class WordRule:
    """How a word becomes a report: `outcomes` codes, beside a 32-bit seed if `seeded`."""

    outcomes: int
    seeded: bool

    @property
    def bits(self) -> int:
        """Bits of the word that hold the code."""
        return 32 if self.seeded else 64

    @property
    def code_bytes(self) -> int:
        """Bytes of the code in a report."""
        return width_bytes(self.outcomes)

    @property
    def report_bytes(self) -> int:
        """Bytes of a report."""
        return self.code_bytes + (_SEED_BYTES if self.seeded else 0)

    @property
    def fake_share(self) -> Fraction:
        """The weight of an exactly uniform report in the law of a uniform word: count fakes by it, rounded down.

        The law is this share times the uniform law, plus something for the codes that have one word more.
        """
        return Fraction((1 << self.bits) // self.outcomes * self.outcomes, 1 << self.bits)

    def to_json(self) -> dict[str, Any]:
        """The rule as a session document has it."""
        return {"outcomes": self.outcomes, "seeded": self.seeded}


def why_not(mechanism: Device) -> str:
    """Why the reports of a mechanism are not shuffled as words, or nothing if they are."""
    if isinstance(mechanism, (GRRDevice, LocalHashDevice)):
        return ""
    return (
        f"{mechanism.kind}: reports do not fit into one 64-bit word of which every value is a report; "
        "shuffle grr, olh or blh, and bit vectors bit by bit, each as a report of its own"
    )


def fits(mechanism: Device) -> bool:
    """Whether reports of a mechanism can be shuffled as words."""
    return not why_not(mechanism)


def rule_of(mechanism: Device) -> WordRule:
    """The rule for the words of a mechanism; InvalidSpec says why there is none."""
    if isinstance(mechanism, GRRDevice):
        return WordRule(mechanism.size, seeded=False)
    if isinstance(mechanism, LocalHashDevice):
        return WordRule(mechanism.g, seeded=True)
    raise InvalidSpec(why_not(mechanism))


def encode_word(mechanism: Device, report: bytes, coins: Coins) -> int:
    """A uniform draw among the words that decode to a report.

    Coin words are drawn until their upper bits are below the number of such words, so that none is favoured; the
    expected number of coin words is below two. What is drawn depends on the report alone, never on the value.
    """
    rule = rule_of(mechanism)
    if len(report) != rule.report_bytes:
        raise ReportRejected(f"{mechanism.kind}: a report has {rule.report_bytes} bytes; this one does not")
    seed = int.from_bytes(report[:_SEED_BYTES], "little") if rule.seeded else 0
    code = int.from_bytes(report[-rule.code_bytes :], "little")
    if code >= rule.outcomes:
        raise ReportRejected(f"{mechanism.kind}: a code must be below {rule.outcomes}; this one is not")
    # Codes below 2^bits mod outcomes have one word more than the others.
    count = ((1 << rule.bits) - code - 1) // rule.outcomes + 1
    shift = 64 - (count - 1).bit_length()
    # Rejected rather than scaled: here an uneven word would tell real reports from fakes.
    while (place := coins.word() >> shift) >= count:
        pass
    return seed << 32 | (place * rule.outcomes + code)


def decode_word(mechanism: Device, word: int) -> bytes:
    """The report of a word; every word has one."""
    rule = rule_of(mechanism)
    seed = (word >> 32).to_bytes(_SEED_BYTES, "little") if rule.seeded else b""
    return seed + (word % (1 << rule.bits) % rule.outcomes).to_bytes(rule.code_bytes, "little")
