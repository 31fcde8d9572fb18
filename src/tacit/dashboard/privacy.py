"""The facts of the privacy page: mechanism, exact probabilities and realised epsilon of every question."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, prod
from typing import Any

from tacit.core.mechanism import Mechanism
from tacit.core.pure import PureOracle
from tacit.device.base import Device
from tacit.device.domains.domain import Bits, Domain
from tacit.device.domains.optional import answered
from tacit.device.domains.text import Text
from tacit.device.kinds.sets import PaddedDevice, SetSizeDevice
from tacit.device.numbers.exact import WORD
from tacit.device.windows.guarantee import always_words, guarantee_words
from tacit.numeric.mean import OneBit
from tacit.wire.document import Collection, Question

HELD = {
    "integer": "a whole number",
    "number": "a number",
    "text": "text",
    "boolean": "yes or no",
    "date": "a date",
}
"""What a public column holds, in words."""


WEAK = 19
"""From this likelihood ratio on the noise is called weak: a report may turn 50 % into 95 %."""


@dataclass(frozen=True)
class Chance:
    """One exact probability."""

    what: str
    exact: Fraction
    apart: Fraction = Fraction(1)
    """How far the probability that stands beside it is off; both are shown with so many digits that they differ."""

    @property
    def decimal(self) -> str:
        """Rounded to six digits, or to as many as it takes to be neither 0 nor 1; beyond twelve a bound is said.

        >>> Chance("", Fraction(1, 3)).decimal, Chance("", Fraction(8_886_110, 8_886_111)).decimal
        ('0.333333', '0.99999989')
        >>> Chance("", Fraction(1, 10**15)).decimal
        'less than 0.000000000001'
        """
        digits = max(_digits(min(self.exact, 1 - self.exact)), _digits(self.apart))
        least = Fraction(1, 10**digits)
        if self.exact in (0, 1) or least <= self.exact <= 1 - least:
            return _rounded(self.exact, digits)
        few = self.exact < least
        return f"{'less' if few else 'more'} than {_rounded(least if few else 1 - least, digits)}"


_FEWEST_DIGITS, _MOST_DIGITS = 6, 12


def _digits(size: Fraction) -> int:
    """Digits after the point that show two significant ones, within the limits; zero needs none."""
    digits = _FEWEST_DIGITS
    while digits < _MOST_DIGITS and 0 < size * 10**digits < 10:
        digits += 1
    return digits


def _rounded(share: Fraction, digits: int) -> str:
    """A number from 0 to 1 with so many digits after the point."""
    whole, rest = divmod(round(share * 10**digits), 10**digits)
    return f"{whole}.{rest:0{digits}d}"


def _pair(first: tuple[str, Fraction], second: tuple[str, Fraction]) -> tuple[Chance, Chance]:
    """Two probabilities that a reader compares."""
    apart = abs(first[1] - second[1])
    return Chance(*first, apart), Chance(*second, apart)


@dataclass(frozen=True)
class Facts:
    """What the mechanism of one question, or of questions asked together, does in exact numbers."""

    name: str
    title: str
    counted: str
    """What `values` counts."""
    kind: str
    spelled_out: str
    values: int
    declared: float
    realised: float
    odds: Fraction
    bits: int | None
    chances: tuple[Chance, ...]

    @property
    def odds_decimal(self) -> str:
        """The largest likelihood ratio, rounded up to six digits."""
        return f"{float(self.odds):.6f}"


def _members_chances(device: Device, unit: str) -> tuple[Chance, ...]:
    """The probabilities of a family's members, which speak of groups of answers, combinations of them, or signs."""
    if unit == "sign":
        own, other = (one.exact for one in chances(device.parts[0]))
        return _pair(("the report says the right sign", own), ("the report says the other sign", other))
    if unit == "tick":
        own, other = (one.exact for one in chances(device.parts[0]))
        return _pair(("the report says truly whether the drawn thing is ticked", own), ("it says the opposite", other))
    # Members over as many groups or combinations are alike, so they are named once.
    by_size = {member.value_count: member for member in device.parts}
    return tuple(
        replace(one, what=f"among {size:,} {unit}s {one.what}".replace("answer", unit))
        for size, member in sorted(by_size.items())
        for one in chances(member)
    )


def chances(device: Device) -> tuple[Chance, ...]:
    """The probabilities that define a mechanism; empty for kinds with other rules, whose page of maths says them."""
    family = device.drawn_from
    if family is not None and family.unit:
        return _members_chances(device, family.unit)
    if isinstance(device, PaddedDevice | SetSizeDevice):
        what = "drawn entry" if isinstance(device, PaddedDevice) else "respondent's own number"
        other = "any one other answer", "any other one"
        return tuple(
            replace(one, what=one.what.replace("respondent's own answer", what).replace(*other))
            for one in chances(device.inner)
        )
    if isinstance(device, PureOracle):
        own = "the report supports the respondent's own answer"
        return _pair((own, device.p), ("the report supports any one other answer", device.q))
    if isinstance(device, OneBit):
        low, high = Fraction(device.low, WORD), Fraction(device.threshold(device.top), WORD)
        return _pair(("the bit is set at the lowest number", low), ("the bit is set at the highest number", high))
    return ()


def _first_line(device: Device, domain: Domain) -> str:
    if isinstance(device, PaddedDevice):
        return (
            f"The list is filled up with blanks to {device.length} entries, one entry is drawn at random, and the "
            f"device reports on that one. {_asked(device)}"
        )
    if isinstance(device, SetSizeDevice):
        return (
            f"The device reports how many entries are on the list; {device.most} or more count alike. {_asked(device)}"
        )
    if device.drawn_from is not None:
        return device.drawn_from.describe(spelled=isinstance(domain, Text | Bits))
    return (type(device).__doc__ or device.kind).strip().splitlines()[0]


def _asked(device: PaddedDevice | SetSizeDevice) -> str:
    if not device.candidates:
        return "Every thing on the public list may be an entry."
    return f"Only {len(device.candidates):,} things or combinations of the public list count as entries in this round."


def facts(collection: Collection) -> list[Facts]:
    """One entry per question, in order; one for all of them where they are asked together."""
    if collection.policy != "joint":
        return [_of_question(*pair) for pair in zip(collection.questions, collection.members, strict=True)]
    device = collection.mechanism
    combinations = prod(question.domain.size for question in collection.questions)
    title = f"All {len(collection.questions)} questions together"
    words = device.drawn_from.describe(several=True)
    return [_facts(device, "all", title, "Combinations of answers", combinations, words)]


def _of_question(question: Question, device: Device) -> Facts:
    counted = "Things on the list" if answered(question.domain).kind == "items" else "Possible answers"
    words = _first_line(device, question.domain)
    return _facts(device, question.name, texts(question.text, "en"), counted, question.domain.size, words)


def _facts(device: Device, name: str, title: str, counted: str, values: int, words: str) -> Facts:
    return Facts(
        name=name,
        title=title,
        counted=counted,
        kind=device.kind,
        spelled_out=words,
        values=values,
        declared=_declared(device),
        realised=device.realised_epsilon(),
        odds=device.realised_odds(),
        bits=device.report_bits if isinstance(device, Mechanism) else None,
        chances=chances(device),
    )


def _declared(device: Device) -> float:
    return float(device.budget.declared)


def surest(odds: Fraction) -> str:
    """How sure somebody can become at most who took an answer for a coin toss, 50 %, in percent.

    With the likelihood ratio R, Bayes' rule gives R/(1 + R). It is rounded up, so that "at most" is true, and never to
    100. The twin of `surest` in static/odds.js.

    >>> surest(Fraction(3)), surest(Fraction(54_598, 1000)), surest(Fraction(9_000_000))
    ('75.0', '98.3', '99.99999')
    """
    doubt = 100 / (1 + odds)
    digits = 1
    while doubt * 10**digits < 1:
        digits += 1
    left = 10 ** (digits + 2) - floor(doubt * 10**digits)
    return f"{left // 10**digits}.{left % 10**digits:0{digits}d}"


def texts(value: Any, language: str) -> str:
    """Text in a language, or in the first one there is."""
    return value.get(language) or next(iter(value.values()))


def over_time(collection: Collection) -> list[str]:
    """What all reports of a device together keep, in words; empty for a question that is asked once."""
    if collection.windows is None or collection.account is None:
        return []
    epsilon = Fraction(collection.mechanism.budget.declared)
    return [*guarantee_words(collection.windows, epsilon), *always_words(collection.windows, collection.account)]
