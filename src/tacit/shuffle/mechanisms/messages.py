"""Unary encodings whose ones are sent as messages of their own: fragmented SUE, and appended unary encoding.

    vector of a respondent     0 1 0 0 1 0
    messages to the shuffler     1     4        each travels alone, among the messages of everybody

A shuffler mixes messages, so that the server learns how often every location was sent and nothing about which messages
belong together. The proofs of Theorems 9.3.1 (Wang's dissertation) and of Balcer and Cheu are about exactly that. They
do *not* hold where whole vectors are shuffled: see docs/maths/shuffle-mechanisms.md for the counter-example.

Zeros are not sent. How many messages a respondent sends says nothing about the value: its law is the same for all.

These are no kinds of the catalogue: a document cannot publish them, because a report alone means nothing here. They are
frozen values all the same, whose tallies add.
"""

import re
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U8, U64
from tacit.core.cell_rule import CellRule
from tacit.core.mechanism import Oracle, Reports, code_dtype
from tacit.core.pure import PureOracle
from tacit.core.statistics.moments import Moments
from tacit.core.tally import Counts
from tacit.device.base import width_bytes
from tacit.device.kinds.unary import MAX_BITS, bit_planes, draw_bits
from tacit.device.numbers.canonical import shortest_decimal
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability, ceil_div
from tacit.errors import InvalidSpec, ReportRejected
from tacit.oracles.unary import SUE, unpack

# Cells of the table of respondents and locations that is looked at at a time.
_CHUNK_CELLS = 1 << 24
_RATE = re.compile(r"0(\.[0-9]{1,18})?")


class LocationMessages(Oracle):
    """What both encodings share: a message is one location, and a tally counts messages by location."""

    most_messages: ClassVar[int]
    """Messages about one location that a respondent sends at most."""

    @abstractmethod
    def _tables(self, indices: U64, coins: Coins) -> U8:
        """How many messages about each location (columns) every respondent (rows) sends."""

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One location."""
        return code_dtype(self.size)

    @property
    def report_bits(self) -> int:
        """ceil(log2 d), of every message."""
        return (self.size - 1).bit_length()

    @property
    def cell_rule(self) -> CellRule:
        """Messages about a location, from one respondent."""
        return CellRule(high=self.most_messages)

    @property
    @abstractmethod
    def messages_each(self) -> float:
        """Messages that a respondent sends on average."""

    def _one(self, locations: list[int]) -> bytes:
        """The messages of one respondent, end to end and in the order of the locations."""
        # Sorted, so that the place of a message among those of a respondent does not tell the true one.
        width = width_bytes(self.size)
        return b"".join(location.to_bytes(width, "little") for location in sorted(locations))

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        rows = max(1, _CHUNK_CELLS // self.size)
        parts = [self._messages(indices[start : start + rows], coins) for start in range(0, len(indices), rows)]
        return np.concatenate(parts)

    def _messages(self, indices: U64, coins: Coins) -> Reports:
        # Row by row, as devices send them; mixing the messages of all respondents is the shuffler's work.
        table = self._tables(indices, coins)
        places = np.tile(np.arange(self.size, dtype=self.report_dtype), len(table))
        return np.repeat(places, table.reshape(-1))

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """A location of the domain."""
        return reports < self.size

    def _check_layout(self, reports: Reports) -> Reports:
        # A vector of bits has two dimensions; it is told apart here because it would be counted without an error.
        if np.ndim(reports) > 1:
            raise ReportRejected(
                f"{self.kind}: these are whole vectors, must be one message per location; shuffled vectors do not have "
                "the stated central epsilon: send every location on its own, or plan sue or oue for whole reports"
            )
        return super()._check_layout(reports)

    def tally(
        self, reports: Reports, weights: npt.ArrayLike | None = None, *, respondents: int | None = None
    ) -> Counts:
        """Count messages of so many respondents, in any order; messages alone do not tell how many there were."""
        if weights is not None:
            raise ReportRejected(f"{self.kind}: messages belong to nobody, so that they cannot be weighted")
        if respondents is None or respondents < 0:
            raise ReportRejected(f"{self.kind}: state how many respondents sent these messages (respondents=...)")
        cells = self._count(self.check_reports(reports), None)
        # More messages than respondents can send are forged, or of another batch.
        if cells.max() > self.most_messages * respondents:
            raise ReportRejected(
                f"{self.kind}: a location has {int(cells.max())} messages, must be at most {self.most_messages} for "
                f"each of {respondents} respondents; nothing was counted"
            )
        return Counts(self, respondents, cells, cells, respondents, respondents)

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        return kernels.histogram(reports, self.size, weights)[0]

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Refused: a message on its own has no value that it is about."""
        del reports, value
        self._refuse("messages of one respondent are not known to belong together, so that they have no probability")

    def all_reports(self) -> Reports:
        """Refused, for the same reason."""
        self._refuse("there is no list of reports; what is shuffled are single messages")

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidSpec(f"{self.kind}: {why}")


class FragmentedUnary(LocationMessages, SUE):
    """Symmetric unary encoding sent location by location: SH-RAP, and SH-RAP_R at twice the local epsilon.

    Reports: messages of ceil(log2 d) bits, 1 - q + (d - 1) q of them on average. Cost: as SUE.
    Privacy: `epsilon` is the local one, as of SUE; the central one holds for shuffled messages alone.
    Variance: n q(1 - q)/(1 - 2q)^2 for every frequency, where q is the probability that a bit flips.
    Reference: Wang's dissertation, section 9.3.1, with messages by location, which its proof needs.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> m = FragmentedUnary(size=6, epsilon="4")
    >>> m.privatize([2, 2, 5], ReplayCoins(b"three")).tolist()
    [0, 2, 2, 5]
    """

    kind: ClassVar[str] = "shuffled_sue"
    most_messages: ClassVar[int] = 1

    def _tables(self, indices: U64, coins: Coins) -> U8:
        return unpack(
            kernels.draw_bits(indices.astype(np.int32)[:, None], self.size, [self.thresholds], coins), self.size
        )

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """The messages of one respondent: the locations of the ones of SUE's noisy bits."""
        noisy = int.from_bytes(super().privatize_one(value, coins), "little")
        return self._one([location for location in range(self.size) if noisy >> location & 1])

    @property
    def messages_each(self) -> float:
        """One with probability p, and d - 1 with probability q each."""
        return float(self.p + (self.size - 1) * self.q)


@dataclass(frozen=True, kw_only=True)
class AppendedUnary(LocationMessages, PureOracle):
    """Appended unary encoding (AUE): the true location always, and every location once more with probability `rate`.

    **Not local**: the true value is always among the messages, so that whoever can tell which messages belong together
    learns nearly everything. `epsilon` is the central one, for shuffled messages.

    Reports: 1 + d rate messages of ceil(log2 d) bits on average. Cost: about 7.3 coin words per 64 locations.
    Privacy: central alone, and only where rate (1 - rate) n is large enough: use `aue` to plan it.
    Variance: n rate (1 - rate), for every frequency.
    Reference: Balcer and Cheu, ITC 2020; Wang's dissertation, section 9.3.4, whose variance lacks the 1/n.

    >>> AppendedUnary(size=8, epsilon="1", rate="0.25").variance_at_zero
    0.1875
    """

    kind: ClassVar[str] = "appended_ue"
    most_messages: ClassVar[int] = 2

    size: int
    rate: str

    def _check(self) -> None:
        self._size(MAX_BITS, "one location per value; use solh for larger domains")
        if not isinstance(self.rate, str) or not _RATE.fullmatch(self.rate) or not Fraction(self.rate):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec('appended_ue: rate must be decimal text between 0 and 1, such as "0.25"')
        self._set("rate", shortest_decimal(self.rate))

    @cached_property
    def threshold(self) -> int:
        """Words that append a location; rounded towards one half, which is more noise."""
        # Noise has variance rate (1 - rate), which is largest at one half.
        words = Fraction(self.rate) * WORD
        up = Fraction(self.rate) <= Fraction(1, 2)
        return ceil_div(words.numerator, words.denominator) if up else words.numerator // words.denominator

    @cached_property
    def p(self) -> Fraction:
        """Expected messages about the respondent's own location: one, and an appended one."""
        return 1 + self.q

    @cached_property
    def q(self) -> Fraction:
        """Expected messages about any other location."""
        return as_probability(self.threshold)

    @cached_property
    def moments(self) -> Moments:
        """Appended messages are drawn alike and independently at every location, whatever the value is."""
        noise = float(self.q * (1 - self.q))
        return Moments(own=noise, other=noise)

    def realised_odds(self) -> Fraction:
        """Refused: there is no finite one."""
        self._refuse("is not local: the true location is always sent, and only shuffled messages protect it")

    @property
    def messages_each(self) -> float:
        """The true one, and an appended one per location with probability `rate`."""
        return float(1 + self.size * self.q)

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """The messages of one respondent."""
        index = self._index(value, self.size)
        noise = int.from_bytes(draw_bits(self.size, 0, bit_planes(self.threshold, self.threshold), coins), "little")
        return self._one([index, *(location for location in range(self.size) if noise >> location & 1)])

    def _tables(self, indices: U64, coins: Coins) -> U8:
        true = indices.astype(np.int32)[:, None]
        table = unpack(kernels.draw_bits(true, self.size, [(self.threshold, self.threshold)], coins), self.size)
        # Both thresholds are the same, so that the noise does not know the value; that is added here.
        table[np.arange(len(indices)), true[:, 0]] += 1
        return table

    exact_simulation = True

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw the tally at once: the true counts, and a binomial number of appended messages at every location."""
        true = np.asarray(counts, np.int64)
        n = int(true.sum())
        cells = true + rng.binomial(n, float(self.q), self.size)
        return Counts(self, n, cells, cells, n, n)
