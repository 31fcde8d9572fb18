"""A certificate: which epsilon and delta shuffled reports keep, against whom, and all that it was computed from."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Any, cast

from tacit.device.base import Device
from tacit.device.families.compose import OneOfDevice
from tacit.device.kinds.local_hash import LocalHashDevice
from tacit.device.kinds.unary import UnaryDevice
from tacit.device.numbers.canonical import canonical, shortest_decimal
from tacit.errors import CertificateRefused, InvalidSpec
from tacit.shuffle.accounting.account import BLANKET, CLONES, ShuffledCrowd, local_decimal
from tacit.shuffle.accounting.cells import ANY_HASH
from tacit.shuffle.accounting.published import FORMS, PublishedForm
from tacit.shuffle.accounting.solve import rounded

VERSIONS: dict[str, int] = {BLANKET: 1, CLONES: 1} | dict.fromkeys(FORMS, 1)
"""The accountants that a certificate may name. A version changes when one of its claims could become larger."""

REPLACEMENT, REMOVAL = "replacement", "removal"
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,2})(\.[0-9]{1,60})?")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def decimal_text(value: Decimal) -> str:
    """A number as certificates write it: plain and shortest decimal text.

    >>> decimal_text(Decimal("1.50e-9"))
    '0.0000000015'
    """
    return shortest_decimal(format(value, "f"))


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was claimed, by which accountant and from what. Numbers are decimal text; nothing here is secret.

    Against the collector: `epsilon`. Against the collector and all other respondents, so that honest fakes alone hide
    the victim: `epsilon_others`. Against the collector and the shufflers: `local_epsilon`. The first two fail with
    probability `delta` at most, the last never does.
    """

    accountant: str
    version: int
    kind: str
    digest: str
    local_epsilon: str
    n_min: int
    fakes: int
    delta: str
    epsilon: str
    epsilon_others: str
    hashing: str = ""
    """For local hashing: "any", because nothing is assumed of how often two values collide; else nothing."""
    fragmented: bool = False
    """Whether every bit of a report is shuffled on its own."""
    neighbours: str = REPLACEMENT

    def __post_init__(self) -> None:
        """Refuse what no accountant could have issued."""
        for field in fields(self):
            self._check_field(field.name, getattr(self, field.name))
        if self.version != VERSIONS[self.accountant]:
            raise self._refusal(f"version is {self.version}, must be {VERSIONS[self.accountant]}; issue it again")
        if not 0 < Decimal(self.delta) < 1:
            raise self._refusal(f"delta is {self.delta}, must be between 0 and 1")
        if not Decimal(self.epsilon) <= Decimal(self.epsilon_others) <= Decimal(self.local_epsilon):
            raise self._refusal("epsilons must grow with what the adversary holds, up to the local one")

    def _check_field(self, name: str, value: Any) -> None:
        if name in ("version", "n_min", "fakes"):
            # Below 2^53, so that readers whose numbers are floats, as in JavaScript, see the same number.
            good, rule = type(value) is int and 0 <= value < 1 << 53, "a whole number of at least 0"
        elif name == "fragmented":
            good, rule = type(value) is bool, "true or false"
        elif name in _CHOICES:
            good, rule = value in _CHOICES[name], f"one of {', '.join(map(repr, _CHOICES[name]))}"
        else:
            pattern = _DECIMAL if name in ("delta", "epsilon", "epsilon_others", "local_epsilon") else _PATTERNS[name]
            good = isinstance(value, str) and pattern.fullmatch(value) is not None
            good = good and (pattern is not _DECIMAL or shortest_decimal(value) == value)
            rule = f"text of the form {pattern.pattern}, decimals as short as they can be"
        if not good:
            raise CertificateRefused(f"certificate: {name} is {str(value)[:40]!r}, must be {rule}")

    def _refusal(self, what: str) -> CertificateRefused:
        return CertificateRefused(f"certificate of {self.kind} {self.digest[:6]}: {what}")

    @property
    def triple(self) -> tuple[str, str, str]:
        """Epsilon against the collector; against it and all other respondents; against it and the shufflers."""
        return self.epsilon, self.epsilon_others, self.local_epsilon

    def to_json(self) -> dict[str, Any]:
        """Every field, ready for canonical JSON."""
        return asdict(self)

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        return canonical(self.to_json())

    @classmethod
    def from_json(cls, document: Any) -> "Certificate":
        """Read a certificate; every field must be stated, and no other."""
        names = {field.name for field in fields(cls)}
        if not isinstance(document, dict):
            raise CertificateRefused("certificate: must be an object")
        given = cast("dict[str, Any]", document)
        if given.keys() != names:
            wrong = ", ".join(sorted(given.keys() ^ names))
            raise CertificateRefused(f"certificate: these fields are missing or unknown: {wrong}")
        return cls(**given)

    def verify(self, mechanism: Device) -> None:
        """Compute the claims again for this mechanism; refuse the certificate if one of them is too small."""
        if (self.kind, self.digest) != (mechanism.kind, mechanism.digest):
            raise self._refusal(f"the mechanism is {mechanism.kind} {mechanism.digest[:6]}, must be the one certified")
        local = local_decimal(mechanism)
        if Decimal(self.local_epsilon) < local:
            raise self._refusal(f"local_epsilon is {self.local_epsilon}, must be at least {local}")
        if self.hashing != _hashing(mechanism):
            raise self._refusal(f"hashing is {self.hashing!r}, must be {_hashing(mechanism)!r} for {mechanism.kind}")
        if (self.neighbours == REMOVAL) != (self.accountant in FORMS and FORMS[self.accountant].removal):
            raise self._refusal(f"neighbours is {self.neighbours}, which {self.accountant} does not speak of")
        self.verify_claims(mechanism)

    def verify_claims(self, mechanism: Device) -> None:
        """Compute the claims alone, for a mechanism with the reports and the local epsilon of the certified one."""
        # All other respondents together know their own reports, so that the victim is alone with the fakes.
        claims = (("epsilon", self.epsilon, self.n_min), ("epsilon_others", self.epsilon_others, 1))
        for name, claim, n in claims:
            self._verify_claim(mechanism, name, Decimal(claim), n)

    def _verify_claim(self, mechanism: Device, name: str, claim: Decimal, n: int) -> None:
        # The local guarantee needs no crowd, so that a claim which is no smaller always holds.
        if claim >= local_decimal(mechanism):
            return
        least = _least(self, mechanism, n, claim)
        if least is not None:
            raise self._refusal(
                f"{name} is {claim}, must be at least {least} at delta {self.delta} with {n} honest respondents and "
                f"{self.fakes} fakes; issue it again"
            )


_CHOICES: dict[str, tuple[str, ...]] = {
    "accountant": tuple(VERSIONS),
    "hashing": ("", ANY_HASH),
    "neighbours": (REPLACEMENT, REMOVAL),
}
_PATTERNS = {"kind": re.compile(r"[a-z_]{1,40}"), "digest": _DIGEST}


def _hashing(mechanism: Device) -> str:
    """What a certificate says of hashing: nothing, for kinds that do not hash by seeds."""
    return ANY_HASH if isinstance(mechanism, LocalHashDevice) else ""


def _least(given: Certificate, mechanism: Device, n: int, claim: Decimal) -> Decimal | None:
    """The least epsilon that could have been claimed, if it is above the claim; None if the claim holds."""
    delta = float(given.delta)
    if given.accountant in FORMS:
        least = _published(FORMS[given.accountant], mechanism, n, delta, given.fakes, given.fragmented)
        return None if least <= claim else least
    _refuse_fragments(given.accountant, given.fragmented)
    crowd = ShuffledCrowd(mechanism, n, given.fakes, accountant=given.accountant)
    return None if crowd.holds(claim, delta) else crowd.epsilon_or_local(delta)


def _published(form: PublishedForm, mechanism: Device, n: int, delta: float, fakes: int, fragmented: bool) -> Decimal:
    """The epsilon of a published form, rounded up; the local one for a victim whom nothing hides."""
    local = local_decimal(mechanism)
    if n <= 1 and not fakes:
        return local
    return min(local, rounded(form.of(mechanism, n=n, delta=delta, fakes=fakes, fragmented=fragmented)))


def _refuse_fragments(accountant: str, fragmented: bool) -> None:
    if fragmented:
        raise InvalidSpec(
            f"{accountant}: holds for whole reports; where bits are shuffled one by one use published_rap or "
            "published_rap_r"
        )


def certify(
    mechanism: Device,
    *,
    n_min: int,
    delta: Decimal | str,
    fakes: int = 0,
    accountant: str = "",
    fragmented: bool = False,
) -> Certificate:
    """Issue a certificate for at least `n_min` honest respondents and `fakes` honest fakes that count.

    Without an accountant the certified one is taken, and for unary bits that are shuffled one by one the published one.

    >>> from tacit import GRR
    >>> certificate = certify(GRR(size=1024, epsilon="4"), n_min=100_000, delta="1e-9")
    >>> certificate.triple
    ('0.03532', '4', '4')
    """
    if fragmented and not accountant and isinstance(mechanism, UnaryDevice):
        accountant = "published_rap"
    exact, local = Decimal(delta), local_decimal(mechanism)
    if accountant in FORMS:
        claims = [_published(FORMS[accountant], mechanism, n, float(exact), fakes, fragmented) for n in (n_min, 1)]
    else:
        _refuse_fragments(accountant or BLANKET, fragmented)
        crowds = [ShuffledCrowd(mechanism, n, fakes, accountant=accountant) for n in (n_min, 1)]
        accountant = crowds[0].accountant
        claims = [min(local, crowd.epsilon_or_local(float(exact))) for crowd in crowds]
    return Certificate(
        accountant=accountant,
        version=VERSIONS[accountant],
        kind=mechanism.kind,
        digest=mechanism.digest,
        local_epsilon=decimal_text(local),
        n_min=n_min,
        fakes=fakes,
        delta=decimal_text(exact),
        # More respondents never hide anybody less, so that what holds with the fakes alone holds among n_min as well.
        epsilon=decimal_text(min(claims)),
        epsilon_others=decimal_text(claims[1]),
        hashing=_hashing(mechanism),
        fragmented=fragmented,
        neighbours=REMOVAL if accountant in FORMS and FORMS[accountant].removal else REPLACEMENT,
    )


def certify_members(
    mechanism: OneOfDevice, *, n_min: Sequence[int], delta: Decimal | str, fakes: Sequence[int] = ()
) -> tuple[Certificate, ...]:
    """Issue one certificate per member of a family, each for the least size of its own group, in their order.

    Which member a respondent answers is in the report, so that groups do not hide each other.
    """
    count = len(mechanism.family)
    if len(n_min) != count or (fakes and len(fakes) != count):
        raise InvalidSpec(f"one_of: {len(n_min)} group sizes are given, must be one for each of {count} members")
    each = zip(range(count), n_min, fakes or [0] * count, strict=True)
    return tuple(certify(mechanism.family.mechanism(i), n_min=n, delta=delta, fakes=more) for i, n, more in each)


def worst_member(certificates: Sequence[Certificate]) -> Certificate:
    """The certificate of the group that is hidden least: what holds for a respondent of any group."""
    return max(certificates, key=lambda each: Decimal(each.epsilon))
