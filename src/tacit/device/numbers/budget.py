"""Privacy budgets: a declared epsilon, a share of one, or one amplified by padding and sampling.

A budget is text on the wire (``"1.5"``) or a small object (``{"of": "1.5", "share": "1/3"}``); its `odds`
are derived on every device from that text and never transmitted, so a document cannot claim one epsilon
and sample at another.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isfinite, ulp
from numbers import Real
from typing import Any

from tacit.device.numbers.canonical import shortest_decimal
from tacit.device.numbers.exact import WORD, exp_floor
from tacit.errors import InvalidSpec

_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{1,18})?")
LOWEST, HIGHEST = Fraction(1, 1000), Fraction(32)
"""The range of a declared epsilon."""


@lru_cache(maxsize=4096)
def _exp(x: Fraction) -> int:
    return exp_floor(x)


def _short(number: Any) -> str:
    """The shortest decimal of a number; the rest that float arithmetic leaves is dropped, so that 0.1 + 0.2 is 0.3."""
    # Four units in the last place hold the rounding of a few sums and products; 1/3 is no short decimal and stays.
    near = f"{number:.12g}" if isinstance(number, float) and isfinite(number) else ""
    return near if near and abs(float(near) - number) <= 4 * ulp(number) else str(number)


def _decimal_text(given: Any) -> str:
    """The text of a declared number: text as it is, a float (numpy's too) as its shortest decimal."""
    if isinstance(given, str):
        return given.strip()
    # Documents cannot say numbers: what is read from one must be the canonical text, see `nested.rebuild`.
    # A truth value is a number to Python, and hardly ever meant as one.
    if not isinstance(given, bool) and isinstance(given, (Real, Decimal)):
        return format(given, "f") if isinstance(given, Decimal) else _short(given)
    raise InvalidSpec(f'epsilon is of type {type(given).__name__}, must be a number such as 0.5, or its text, "0.5"')


@dataclass(frozen=True)
class Epsilon:
    """A declared epsilon, kept as canonical decimal text between 0.001 and 32; made of text or of a number.

    >>> Epsilon("1.0"), Epsilon(0.5)
    (Epsilon(text='1'), Epsilon(text='0.5'))
    """

    text: str

    def __post_init__(self) -> None:
        """Canonicalise, or refuse with the rule."""
        text = _decimal_text(self.text)
        if not _DECIMAL.fullmatch(text):
            raise InvalidSpec(
                f"epsilon is {text[:40]!r}, must be a number from 0.001 to 32, such as 0.5, with at most 18 decimals"
            )
        if not LOWEST <= Fraction(text) <= HIGHEST:
            raise InvalidSpec(f"epsilon is {text}, must be between 0.001 and 32")
        object.__setattr__(self, "text", shortest_decimal(text))

    @property
    def declared(self) -> Fraction:
        """The declared epsilon as an exact number."""
        return Fraction(self.text)

    @cached_property
    def odds(self) -> int:
        """floor(e^epsilon * 2^64): no realised likelihood ratio may exceed odds/2^64."""
        return _exp(self.declared)

    def to_spec(self) -> Any:
        """The wire form."""
        return self.text


@dataclass(frozen=True)
class Share:
    """A share of an epsilon: what one of several reports of the same respondent may spend.

    >>> Share("1", "1/3").declared
    Fraction(1, 3)
    """

    of: "Epsilon | str | float"
    share: str

    def __post_init__(self) -> None:
        """Accept text for the whole, and shares in (0, 1] written as a fraction such as "1/3"."""
        object.__setattr__(self, "of", as_epsilon(self.of))
        if not isinstance(self.share, str) or not re.fullmatch(  # pyright: ignore[reportUnnecessaryIsInstance]
            r"[1-9][0-9]{0,8}/[1-9][0-9]{0,8}", self.share
        ):
            raise InvalidSpec('share must be text such as "1/3"; a fraction keeps the budget exact')
        fraction = Fraction(self.share)
        if fraction > 1:
            raise InvalidSpec(f"share is {self.share}, must not exceed 1; shares of one respondent add up to 1")
        object.__setattr__(self, "share", f"{fraction.numerator}/{fraction.denominator}")

    @property
    def declared(self) -> Fraction:
        """The epsilon this share may spend."""
        return as_epsilon(self.of).declared * Fraction(self.share)

    @cached_property
    def odds(self) -> int:
        """floor(e^(share * epsilon) * 2^64)."""
        return _exp(self.declared)

    def to_spec(self) -> Any:
        """The wire form."""
        return {"of": as_epsilon(self.of).to_spec(), "share": self.share}


@dataclass(frozen=True)
class Amplified:
    """Epsilon for a report on one of `sampled` padded items: e^eps' = sampled * (e^eps - 1) + 1.

    Valid only for GRR over a domain with `sampled` distinct dummies (Wang's dissertation, Theorem 5.2.1): it is refused
    by every mechanism but the one that `PaddedDevice` builds inside itself.
    """

    of: "Epsilon | str | float"
    sampled: int

    def __post_init__(self) -> None:
        """Accept text for the declared epsilon and a positive sample size."""
        object.__setattr__(self, "of", as_epsilon(self.of))
        if type(self.sampled) is not int or not 1 <= self.sampled <= 1 << 20:
            raise InvalidSpec("sampled must be an integer from 1 to 2^20, the number of padded items")

    @property
    def declared(self) -> Fraction:
        """The epsilon of the whole protocol; the oracle inside may spend more, see `odds`."""
        return as_epsilon(self.of).declared

    @cached_property
    def odds(self) -> int:
        """Amplified odds sampled * (E - 1) + 1, over 2^64."""
        return self.sampled * (as_epsilon(self.of).odds - WORD) + WORD

    def to_spec(self) -> Any:
        """The wire form."""
        return {"of": as_epsilon(self.of).to_spec(), "sampled": self.sampled}


Budget = Epsilon | Share | Amplified


Declared = Budget | str | float
"""What a budget is made of: one itself, decimal text, or a number, of which the shortest decimal counts."""


def as_epsilon(value: "Epsilon | str | float") -> Epsilon:
    """Epsilon from its text or from a number; an Epsilon passes through."""
    return value if isinstance(value, Epsilon) else Epsilon(_decimal_text(value))


def as_budget(value: Any) -> Budget:
    """A budget from its wire form, from decimal text, from a number, or a budget itself."""
    if isinstance(value, (Epsilon, Share, Amplified)):
        return value
    if isinstance(value, dict):
        fields: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        if fields.keys() == {"of", "share"}:
            return Share(fields["of"], fields["share"])
        if fields.keys() == {"of", "sampled"}:
            return Amplified(fields["of"], fields["sampled"])
        raise InvalidSpec('epsilon is an object, must have the fields "of" and one of "share" and "sampled"')
    return Epsilon(value)
