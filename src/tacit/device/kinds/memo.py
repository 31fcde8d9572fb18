"""Memoisation: the same answer gets the same report for ever, from coins derived of one secret on the device.

No value is stored, and no report but the last. What repetition still reveals, a change of the answer above
all, is stated by `longitudinal` and derived in docs/maths/memo.md.
"""

import hmac
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, log
from typing import Any, ClassVar, cast

from tacit.device.base import Device
from tacit.device.kinds.bit_flip import DBitFlipDevice
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.mean import OneBitDevice, alpha_round, checked_step
from tacit.device.kinds.unary import OUEDevice, RUEDevice, SUEDevice
from tacit.device.numbers.budget import Budget
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.device.numbers.hashing import labelled
from tacit.errors import InvalidSpec

KEY_BYTES = 32
_LABEL, _SEEN = b"LDP-MEMO-1", b"LDP-MEMO-SEEN-1"


class MemoCoins(Coins):
    """Coins of one value: HMAC-SHA256 under the secret of label, campaign, parameters, value key and counter.

    `parameters` is the digest of everything the mechanism depends on: equal coins in two mechanisms would
    void the guarantees of both.
    """

    secure = True

    def __init__(self, key: bytes, campaign: str, parameters: bytes, value_key: bytes) -> None:
        """Start the stream of this value at counter 0."""
        super().__init__()
        self._key = bytes(key)
        self._parts = campaign.encode(), parameters, value_key
        self._counter = 0

    def _draw(self, size: int) -> bytes:
        start = self._counter
        self._counter += -(-size // 32)
        return b"".join(self._block(i) for i in range(start, self._counter))

    def _block(self, counter: int) -> bytes:
        """Four words of one digest; they are big-endian there and little-endian in a stream of coins."""
        message = labelled(_LABEL, *self._parts) + counter.to_bytes(8, "big")
        block = hmac.digest(self._key, message, "sha256")
        return b"".join(block[i : i + 8][::-1] for i in range(0, 32, 8))


@dataclass
class Memory:
    """What a device keeps between reports: its secret, keyed hashes of answered values, the last report.

    One memory serves one mechanism of one campaign. The secret is 32 random bytes, made once and never sent.
    Whoever takes it can test guesses of past answers; a device that loses it makes a new release.
    """

    secret: bytes = field(repr=False)
    campaign: str
    seen: "list[bytes]" = field(default_factory=list[bytes])
    last: bytes = b""
    mechanism: bytes = b""
    """Digest of the mechanism this memory belongs to; noted at its first report."""

    def __post_init__(self) -> None:
        """A short secret could be guessed, and then every answer."""
        if len(self.secret) != KEY_BYTES:
            raise InvalidSpec(f"memo: the secret has {len(self.secret)} bytes, must have {KEY_BYTES} random ones")

    def belongs_to(self, parameters: bytes) -> None:
        """Note the mechanism, or refuse another one: its last report would be passed off as this one's."""
        if self.mechanism and self.mechanism != parameters:
            raise InvalidSpec("memo: this memory belongs to another mechanism; keep one memory for each")
        self.mechanism = parameters

    def coins(self, parameters: bytes, value_key: bytes) -> MemoCoins:
        """The coins of one value, the same ones every time: this is what makes its report never change."""
        return MemoCoins(self.secret, self.campaign, parameters, value_key)

    def admit(self, parameters: bytes, value_key: bytes, most: int) -> bool:
        """Whether this value may be answered: seen before, or still below the cap and then noted."""
        # Under the secret, as a plain hash of one of a few values is found by trying all of them.
        tag = hmac.digest(self.secret, labelled(_SEEN, self.campaign.encode(), parameters, value_key), "sha256")
        if tag in self.seen:
            return True
        if len(self.seen) >= most:
            return False
        self.seen.append(tag)
        return True


@dataclass(frozen=True, kw_only=True)
class MemoizedDevice(Device):
    """A mechanism whose answer to the same value never changes, for at most `most_values` different values.

    `step` rounds numbers of `onebit` to its multiples first (see `alpha_round`); by default to 0 or top.
    """

    kind: ClassVar[str] = "memo"
    inner_kinds: ClassVar[tuple[type[Device], ...]] = (
        GRRDevice,
        SUEDevice,
        OUEDevice,
        RUEDevice,
        OneBitDevice,
        DBitFlipDevice,
    )

    epsilon: Budget | str = ""
    inner: Device
    most_values: int
    step: int = 0

    def __post_init__(self) -> None:
        """The budget is what each new value may cost: by default that of the inner mechanism."""
        self._set("inner", self._built(self.inner))
        if self.epsilon == "":
            self._set("epsilon", self.inner.epsilon)
        super().__post_init__()

    def _built(self, inner: Any) -> Device:
        """The inner mechanism from its spec, or as it is given."""
        name = str(_spec(inner).get("kind"))[:40]
        for kind in self.inner_kinds:
            if kind.kind == name:
                return inner if isinstance(inner, kind) else kind.from_spec(_spec(inner))
        known = ", ".join(kind.kind for kind in self.inner_kinds)
        raise InvalidSpec(f"{self.kind}: the inner kind is {name!r}, must be one of {known}")

    def _check(self) -> None:
        self._integer("most_values", 1, 1 << 16)
        if self.inner.odds > self.odds:
            raise InvalidSpec(f"{self.kind}: epsilon is below that of the inner mechanism, what each new value costs")
        if not isinstance(self.inner, OneBitDevice):
            self._integer("step", 0, 0, "rounding is for numbers, such as those of onebit")
            return
        if self.step == 0:
            self._set("step", self.inner.top)
        checked_step(self._integer("step", 1, self.inner.top), self.inner.top)

    @property
    def parameters(self) -> bytes:
        """The digest that separates the coins of this mechanism from those of any other."""
        return bytes.fromhex(self.digest)

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio of any number of reports on one value that never changes."""
        return self.inner.realised_odds()

    @property
    def keyed_by_value(self) -> bool:
        """Whether different values have different keys, whatever the secret is.

        Where the secret decides which values share a key (numbers that are rounded, buckets that are not sampled), two
        sequences that repeat in the same pattern need not repeat their keys in the same pattern.
        """
        inner = self.inner
        if isinstance(inner, DBitFlipDevice):
            return inner.sampled >= inner.size - 1  # At most one bucket is not sampled, and "none" is its key.
        return not isinstance(inner, OneBitDevice) or self.step == 1

    def guarantees(self) -> "list[tuple[str, Fraction, Fraction]]":
        """One value for ever; where `keyed_by_value`, also `most_values` values in the same pattern of repetition.

        Beyond these no finite number holds: see `longitudinal`.
        """
        one, bound, most = self.realised_odds(), Fraction(self.odds, WORD), self.most_values
        always = [("one value, any number of reports", one, bound)]
        if not self.keyed_by_value:
            return always
        return [*always, (f"{most} values, between equal patterns of repetition", one**most, bound**most)]

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """The first report of a new device, whose secret is the next four coin words."""
        return self.report(value, Memory(coins.words(KEY_BYTES // 8), ""))

    def report(self, value: Any, memory: Memory, coins: Coins | None = None) -> bytes:
        """The report of a device with a memory: what this value always gets; beyond the cap, the last one.

        `coins` are for kinds that add fresh noise to it.
        """
        del coins
        memory.belongs_to(self.parameters)
        # No value has the key "once": those of values are decimal digits or "none".
        once = self.draw_once(memory.coins(self.parameters, b"once"))
        value_key = self.value_key(once, value)
        report = self._answer(once, value, memory.coins(self.parameters, value_key))
        # Beyond the cap the last report is repeated: silence would tell that there is a further value.
        if memory.admit(self.parameters, value_key, self.most_values):
            memory.last = report
        return memory.last

    def draw_once(self, coins: Coins) -> "tuple[int, ...]":
        """What a device draws once and keeps: its buckets, the point at which it rounds, or nothing."""
        if isinstance(self.inner, DBitFlipDevice):
            return tuple(self.inner.draw_buckets(coins))
        return (coins.uniform(self.step),) if isinstance(self.inner, OneBitDevice) else ()

    def value_key(self, once: "tuple[int, ...]", value: Any) -> bytes:
        """What decides the report on a value: the value itself, or what sampling or rounding leaves of it."""
        if isinstance(self.inner, DBitFlipDevice):
            return self.inner.memo_key(list(once), value)
        return str(self._rounded(once, value)).encode()

    def _rounded(self, once: "tuple[int, ...]", value: Any) -> int:
        index = self._index(value, self.size)
        return alpha_round(index, once[0], self.step) if isinstance(self.inner, OneBitDevice) else index

    def _answer(self, once: "tuple[int, ...]", value: Any, coins: Coins) -> bytes:
        """The report on a value from the coins of its key."""
        if isinstance(self.inner, DBitFlipDevice):
            return self.inner.answer(list(once), value, coins)
        return self.inner.privatize_one(self._rounded(once, value), coins)

    @property
    def size(self) -> int:
        """Number of values of the inner domain."""
        return getattr(self.inner, "size")  # noqa: B009 - all inner kinds have a size


def _spec(inner: Any) -> "dict[str, Any]":
    """The spec of a mechanism that is given as itself or as its spec."""
    if isinstance(inner, Device):
        return inner.spec()
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}


@dataclass(frozen=True)
class Guarantee:
    """What a sequence of memoised reports reveals at most, between which sequences, as an epsilon."""

    name: str
    between: str
    epsilon: float


def longitudinal(
    epsilon: float, distinct: int, *, flip: float = 0.0, edits: int = 1, keyed_by_value: bool = True
) -> "list[Guarantee]":
    """The guarantees of memoised reports on up to `distinct` different values, each report epsilon-private.

    `flip` is the probability that a device flips a one-bit report with fresh coins before sending it (0:
    none), `edits` the number of times at which one sequence of keys must be changed to repeat in the pattern of the
    other, whatever the secret is. Without `flip` only the first two are finite, and for a mechanism that is not
    `keyed_by_value` (dBitFlip, rounded numbers) only the first: equal patterns of values need not be equal patterns of
    keys.

    >>> [round(g.epsilon, 3) for g in longitudinal(1.0, 2)]
    [1.0, 2.0, inf, inf]
    >>> [round(g.epsilon, 3) for g in longitudinal(1.0, 2, keyed_by_value=False)]
    [1.0, inf, inf, inf]
    >>> [round(g.epsilon, 3) for g in longitudinal(1.0, 2, flip=0.2)]
    [1.0, 2.0, 3.386, 1.386]
    """
    fresh = log((1 - flip) / flip) if 0 < flip < 0.5 else inf
    same, different = distinct * epsilon, distinct * epsilon + edits * fresh
    return [
        Guarantee("constant", "two values that never change, any number of reports", epsilon),
        Guarantee(
            "same pattern",
            f"sequences of {distinct} values that change at the same times",
            same if keyed_by_value else different,
        ),
        Guarantee(
            "different patterns",
            f"sequences whose patterns agree after {edits} edits; a changed report proves a changed value",
            different,
        ),
        Guarantee("one time", "sequences that differ at one time only", fresh),
    ]
