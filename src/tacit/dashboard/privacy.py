"""The facts of the privacy page: mechanism, exact probabilities and realised epsilon of every question."""

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any

from tacit.core.mechanism import Mechanism
from tacit.core.pure import PureOracle
from tacit.device.base import Device
from tacit.device.compose import OneOfDevice
from tacit.device.domain import Bits, Domain
from tacit.device.exact import WORD
from tacit.device.levels import Tree
from tacit.device.sets import PaddedDevice, SetSizeDevice
from tacit.device.text import Text
from tacit.numeric.mean import OneBit
from tacit.wire.document import Collection, Question


@dataclass(frozen=True)
class Chance:
    """One exact probability."""

    what: str
    exact: Fraction

    @property
    def decimal(self) -> str:
        """Rounded to six digits."""
        return f"{float(self.exact):.6f}"


@dataclass(frozen=True)
class Facts:
    """What one question's mechanism does, in exact numbers."""

    question: Question
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


def tree_of(device: Device) -> Tree | None:
    """The tree whose levels a device draws from, if it does."""
    family = device.family if isinstance(device, OneOfDevice) else None
    return family if isinstance(family, Tree) else None


def chances(device: Device) -> tuple[Chance, ...]:
    """The probabilities that define a mechanism; empty for kinds with other rules, whose page of maths says them."""
    if tree := tree_of(device):
        levels = [(level.value_count, chances(level)) for level in tree.mechanisms]
        return tuple(
            Chance(f"among {nodes:,} groups {one.what}".replace("answer", "group"), one.exact)
            for nodes, found in levels
            for one in found
        )
    if isinstance(device, PaddedDevice | SetSizeDevice):
        what = "drawn entry" if isinstance(device, PaddedDevice) else "respondent's own number"
        inner = (Chance(one.what.replace("respondent's own answer", what), one.exact) for one in chances(device.inner))
        return tuple(Chance(one.what.replace("any one other answer", "any other one"), one.exact) for one in inner)
    if isinstance(device, PureOracle):
        own = "the report supports the respondent's own answer"
        return Chance(own, device.p), Chance("the report supports any one other answer", device.q)
    if isinstance(device, OneBit):
        low, high = Fraction(device.low, WORD), Fraction(device.threshold(device.top), WORD)
        return Chance("the bit is set at the lowest number", low), Chance("the bit is set at the highest number", high)
    return ()


def _first_line(device: Device, domain: Domain) -> str:
    tree = tree_of(device)
    if isinstance(device, PaddedDevice):
        return (
            f"The list is filled up with blanks to {device.length} entries, one entry is drawn at random, and the "
            f"device reports on that one. {_asked(device)}"
        )
    if isinstance(device, SetSizeDevice):
        return (
            f"The device reports how many entries are on the list; {device.most} or more count alike. {_asked(device)}"
        )
    if tree and isinstance(domain, Text | Bits):
        return (
            f"The device draws one of {len(tree)} lengths and reports, with the whole epsilon, on the beginning of the "
            "answer of that length: one hash function, one noisy hash."
        )
    if tree:
        return (
            f"Neighbouring answers are grouped in {len(tree)} levels, from coarse to fine. The device draws one level "
            "and reports, with the whole epsilon, on the group that holds the answer there."
        )
    return (type(device).__doc__ or device.kind).strip().splitlines()[0]


def _asked(device: PaddedDevice | SetSizeDevice) -> str:
    if not device.candidates:
        return "Every thing on the public list may be an entry."
    return f"Only {len(device.candidates):,} things or combinations of the public list count as entries in this round."


def facts(collection: Collection) -> list[Facts]:
    """One entry per question, in order."""
    return [_facts(*pair) for pair in zip(collection.questions, collection.members, strict=True)]


def _facts(question: Question, device: Device) -> Facts:
    return Facts(
        question=question,
        kind=device.kind,
        spelled_out=_first_line(device, question.domain),
        values=question.domain.size,
        declared=_declared(device),
        realised=device.realised_epsilon(),
        odds=device.realised_odds(),
        bits=device.report_bits if isinstance(device, Mechanism) else None,
        chances=chances(device),
    )


def _declared(device: Device) -> float:
    return float(device.budget.declared)


def guess(epsilon: float) -> str:
    """How sure somebody can become at most who thought an answer as likely as not, in percent."""
    return f"{100 / (1 + exp(-epsilon)):.0f}"


def texts(value: Any, language: str) -> str:
    """Text in a language, or in the first one there is."""
    return value.get(language) or next(iter(value.values()))
