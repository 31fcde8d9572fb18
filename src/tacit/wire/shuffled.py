"""The terms of a shuffled collection: who takes part, what each of them is, and what is claimed of them together.

Reports of such a collection are sealed by the device for shufflers, who mix them before the collector sees any. The
document pins who the parties are, by the keys that they sign with; the keys that reports are sealed for change from
session to session and are signed by these. Standard library only: clients read the terms too.
"""

import re
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Self, cast

from tacit.errors import InvalidSpec
from tacit.wire.fields import is_short_text, stated_fields, whole_number

ODD = (3, 5, 7, 9)
MODES: dict[str, tuple[int, ...]] = {
    "relay": (1,),
    "ss": tuple(range(2, 10)),
    "osh": ODD,
    "osh-z": ODD,
    "peos-dgk": ODD,
}
"""How reports are shuffled, and how many shufflers that takes.

relay: a relay hides addresses, one shuffler mixes. ss: shufflers one after the other, each takes off a layer. The
others share every report among all shufflers, of whom most have to be honest, so that their number is odd.
"""

MAX_REPORTS = 10**8
MAX_SPOT_CHECKS = 10**4
MAX_SESSION_DAYS = 3650
"""How long a session may stay open: shufflers hold shares for so long, should nobody close it."""
MAX_NAME = 100
MAX_URL = 200
MAX_DIGITS = 17

_LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_LOCAL = r"localhost|127\.0\.0\.1|\[::1\]"
_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
# The port that goes without saying is not written, so that one place has one address.
URL = (
    rf"(https://{_LABEL}(\.{_LABEL})*(:(?!443(/|$)){_PORT})?"
    rf"|http://({_LOCAL})(:(?!80(/|$)){_PORT})?)(/[A-Za-z0-9_-]+)*"
)
"""The address of a service in its one form, as a regular expression that JavaScript and JSON Schema read alike."""

DELTA = rf"[1-9](\.[0-9]{{0,{MAX_DIGITS - 1}}}[1-9])?e-([1-9]|[12][0-9]|30)"
"""A small probability in its one form, such as 1e-9 or 2.5e-10; below 1, as the exponent is negative."""

IDENTITY = "[0-9a-f]{64}"
"""An Ed25519 public key in hexadecimal."""

_WHERE = "document.shuffle"


@dataclass(frozen=True)
class Party:
    """Somebody who runs a role. What a role does not have is empty: the collector's address, the relay's identity."""

    name: str
    url: str = ""
    identity: str = ""
    """The Ed25519 public key that this party signs with, in hexadecimal."""

    @classmethod
    def from_json(cls, value: Any, where: str, known: tuple[str, ...]) -> Self:
        """Read a party that has these fields."""
        given = stated_fields(value, where, known)
        if not is_short_text(given["name"], MAX_NAME):
            raise InvalidSpec(f"{where}.name must be text of 1 to {MAX_NAME} characters")
        if "url" in known and not (is_short_text(given["url"], MAX_URL) and re.fullmatch(URL, given["url"])):
            raise InvalidSpec(
                f'{where}.url must be an address such as "https://shuffler.example" or "https://example.org/shuffler": '
                f"https, lower-case host, no user, no query, no slash at the end, at most {MAX_URL} characters; http "
                "is for localhost alone"
            )
        if "identity" in known and not (isinstance(given["identity"], str) and _is_key(given["identity"])):
            raise InvalidSpec(f"{where}.identity must be an Ed25519 public key, 64 lower-case hexadecimal digits")
        return cls(**given)

    def to_json(self) -> dict[str, str]:
        """The wire form: what the role has."""
        pairs = {"name": self.name, "url": self.url, "identity": self.identity}
        return {name: text for name, text in pairs.items() if text}

    @property
    def key(self) -> bytes:
        """The public key, 32 bytes; empty for a party that signs nothing."""
        return bytes.fromhex(self.identity)


def _is_key(text: str) -> bool:
    return re.fullmatch(IDENTITY, text) is not None


@dataclass(frozen=True)
class ShuffleTerms:
    """The `shuffle` field of a document, checked; its fields are the wire form."""

    mode: str
    """One of `MODES`."""
    collector: Party
    shufflers: tuple[Party, ...]
    """In the order in which they work, where that matters."""
    relay: Party | None
    minimum: int
    """The number of reports that must have come in before anything is released."""
    maximum: int
    """The largest number of reports of one session."""
    fakes: int
    """The number of fake reports that the shufflers add, all together."""
    spot_checks: int
    """How many known reports are sent along, to see whether shufflers replace any."""
    delta: str
    """The probability with which the claim for shuffled reports may fail, in scientific form."""
    together: tuple[tuple[str, ...], ...] = ()
    """Groups of roles that one party runs; where there are any, the document claims no amplification."""

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read the terms; InvalidSpec says which rule they break."""
        given = stated_fields(value, _WHERE, tuple(field.name for field in fields(cls)))
        mode, relay = given["mode"], given["relay"]
        if not isinstance(mode, str) or mode not in MODES:
            raise InvalidSpec(f"{_WHERE}.mode must be one of {', '.join(MODES)}")
        if relay is None and mode == "relay":
            raise InvalidSpec(f'{_WHERE}.relay must be stated in mode "relay": without one the shuffler sees addresses')
        minimum = whole_number(given["minimum"], f"{_WHERE}.minimum", 2, MAX_REPORTS)
        made = cls(
            mode=mode,
            collector=Party.from_json(given["collector"], f"{_WHERE}.collector", ("name", "identity")),
            shufflers=_shufflers(given["shufflers"], mode),
            relay=None if relay is None else Party.from_json(relay, f"{_WHERE}.relay", ("name", "url")),
            minimum=minimum,
            maximum=whole_number(given["maximum"], f"{_WHERE}.maximum", minimum, MAX_REPORTS),
            fakes=whole_number(given["fakes"], f"{_WHERE}.fakes", 0, MAX_REPORTS),
            spot_checks=whole_number(given["spot_checks"], f"{_WHERE}.spot_checks", 0, MAX_SPOT_CHECKS),
            delta=_delta(given["delta"]),
        )
        made._check_different()
        # Last, for which roles there are follows from everything else.
        return replace(made, together=_together(given["together"], made.roles))

    def _check_different(self) -> None:
        """One party in two places of the list would be a shuffler less than the document says."""
        for name in ("name", "url", "identity"):
            texts = [getattr(party, name) for party in self.shufflers]
            if len(set(texts)) < len(texts):
                raise InvalidSpec(f"{_WHERE}.shufflers: every {name} must differ from the others")
        if self.collector.identity in (party.identity for party in self.shufflers):
            raise InvalidSpec(f"{_WHERE}: the collector has the identity of a shuffler; each role has a key of its own")

    @property
    def parties(self) -> tuple[Party, ...]:
        """Everybody who runs a role, in the order of `roles`."""
        return (self.collector, *(() if self.relay is None else (self.relay,)), *self.shufflers)

    @property
    def roles(self) -> tuple[str, ...]:
        """The names of all roles, sorted: collector, relay if there is one, shuffler_1 and so on."""
        relay = () if self.relay is None else ("relay",)
        return ("collector", *relay, *(f"shuffler_{i}" for i in range(1, len(self.shufflers) + 1)))

    @property
    def delta_fraction(self) -> Fraction:
        """The exact number that `delta` writes."""
        return Fraction(self.delta)

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        return {field.name: _written(getattr(self, field.name)) for field in fields(self)}


def _written(value: Any) -> Any:
    if isinstance(value, Party):
        return value.to_json()
    return [_written(item) for item in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def _shufflers(value: Any, mode: str) -> tuple[Party, ...]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    counts = MODES[mode]
    if len(items) not in counts:
        raise InvalidSpec(
            f'{_WHERE}.shufflers must be a list of {" or ".join(map(str, counts))} parties in mode "{mode}"'
        )
    known = ("name", "url", "identity")
    return tuple(Party.from_json(item, f"{_WHERE}.shufflers[{i}]", known) for i, item in enumerate(items))


def _delta(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(DELTA, value):
        raise InvalidSpec(
            f'{_WHERE}.delta must be a probability in scientific form such as "1e-9" or "2.5e-10": exponent -1 to -30, '
            f"at most {MAX_DIGITS} decimals, no zero at the end"
        )
    return value


def _together(value: Any, roles: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Groups of roles in their one form: each sorted, none in two groups, groups in the order of their first roles."""
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [0]
    groups: list[list[Any]] = [item if isinstance(item, list) else [] for item in items]
    if not all(len(group) > 1 for group in groups):
        raise InvalidSpec(f"{_WHERE}.together must be a list of groups, each of two or more roles that one party runs")
    # Names before their order: values of other types cannot all be compared.
    named = [role for group in groups for role in group]
    if not all(isinstance(role, str) and role in roles for role in named):
        raise InvalidSpec(f"{_WHERE}.together: a role must be one of {', '.join(roles)}")
    if len(set(named)) < len(named):
        raise InvalidSpec(f"{_WHERE}.together: a role must be in one group alone; join groups that share one")
    if groups != sorted(sorted(group) for group in groups):
        raise InvalidSpec(f"{_WHERE}.together: roles must be sorted in every group, and groups by their first roles")
    return tuple(tuple(group) for group in groups)
