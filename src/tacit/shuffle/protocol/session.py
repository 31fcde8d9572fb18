"""The session document: everything that parties and respondents of one shuffle agree on before it begins.

It never changes; its id is the SHA-256 of its canonical form. The collector and every shuffler sign it, and a client
takes part only if all r + 1 signatures are by the keys that it has pinned. It needs no numpy.
"""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations
from typing import Any, NoReturn, Self, cast

from tacit.device.numbers.canonical import canonical, digest
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.signing import Identity, check_signature
from tacit.shuffle.protocol.parties import hiders_needed, party_name, party_names
from tacit.shuffle.protocol.words import WordRule

RELAY, SS, OSH, OSH_Z, PEOS = "relay", "ss", "osh", "osh-z", "peos-dgk"
MODES = (RELAY, SS, OSH, OSH_Z, PEOS)
RESHARING = (OSH, OSH_Z, PEOS)
"""Modes in which shufflers hold shares; they need an honest majority."""

LABEL = "session"
DGK_SIZES = {"modulus_bits": 3072, "plain_bits": 64, "order_bits": 256}
"""Smaller keys are for tests of the arithmetic alone; no session takes them."""
MAX_SHUFFLERS = 9
"""With more, the number of rounds (126 for nine) is no longer practical."""
_HEX = re.compile(r"[0-9a-f]{64}")
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, kw_only=True)
class ShuffleParty:
    """Who runs a part of the shuffle: where it is, by which key it signs, and for which key one seals."""

    operator: str
    url: str
    identity: str
    """Ed25519 public key, in hexadecimal."""
    seal_key: str
    """X25519 public key, in hexadecimal."""

    def __post_init__(self) -> None:
        """Check the keys."""
        for name in ("identity", "seal_key"):
            if not _HEX.fullmatch(getattr(self, name)):
                _refuse(f"the {name} of {self.operator} must be 32 bytes in lower-case hexadecimal")
        if not self.operator or not self.url:
            _refuse("every party has an operator and a url")


@dataclass(frozen=True, kw_only=True)
class ShuffleSession:
    """The document. `fakes` is the number of fake reports that the certificate counts on."""

    collection: str
    """Digest of the collection document."""
    mode: str
    collector: ShuffleParty
    shufflers: tuple[ShuffleParty, ...]
    words: WordRule
    n_min: int
    n_max: int
    fakes: int
    spot_checks: int
    closes: int
    """Seconds since 1970, UTC."""
    retention_seconds: int
    phase_seconds: int = 600
    """How long a phase may take before the session is aborted."""
    certificate: Mapping[str, Any]
    """What the accountant guarantees; `epsilon` is decimal text."""
    claims_amplification: bool = True
    """Whether respondents are promised more than the local epsilon."""
    together: tuple[tuple[str, ...], ...] = ()
    """Roles that one party runs together, such as ("collector", "shuffler_1")."""
    relay: Mapping[str, str] | None = None
    """Operator and url of a relay in front, if there is one."""
    dgk: Mapping[str, Any] | None = None
    """The collector's DGK key, in mode peos-dgk."""

    def __post_init__(self) -> None:
        """Refuse what cannot be run, and claims that nobody can keep."""
        for name in ("certificate", "relay", "dgk"):
            # Copies: whoever still holds the objects must not be able to change a document that has an id.
            object.__setattr__(self, name, deepcopy(getattr(self, name)))
        self._check_mode()
        self._check_numbers()
        self._check_roles()
        _check_certificate(self.certificate)
        canonical(self.document)

    def _check_mode(self) -> None:
        if self.mode not in MODES:
            _refuse(f"mode is {self.mode!r}, must be one of {', '.join(MODES)}")
        if self.mode in RESHARING:
            hiders_needed(self.shuffler_count)
        if not 1 <= self.shuffler_count <= MAX_SHUFFLERS or (self.mode == RELAY and self.shuffler_count != 1):
            _refuse(f"{self.shuffler_count} shufflers do not fit mode {self.mode}; relay has one, others at most 9")
        if (self.dgk is not None) != (self.mode == PEOS):
            _refuse("a dgk key belongs to mode peos-dgk, and to no other")
        if self.dgk is not None and {name: self.dgk.get(name) for name in DGK_SIZES} != DGK_SIZES:
            _refuse("the dgk key must have 3072 bits, plaintexts of 64 bits and orders of 256")
        if not _HEX.fullmatch(self.collection):
            _refuse("collection must be the digest of a collection document")

    def _check_numbers(self) -> None:
        if not 2 <= self.n_min <= self.n_max:
            _refuse(f"n_min is {self.n_min}; it must be at least 2 and at most n_max: nobody hides in a crowd of one")
        for name in ("fakes", "spot_checks", "closes", "retention_seconds"):
            if getattr(self, name) < 0:
                _refuse(f"{name} is {getattr(self, name)}, must not be negative")
        if self.n_min + self.spot_checks > self.n_max:
            _refuse(f"n_max is {self.n_max}, must be at least n_min and spot_checks together; raise it")
        if self.phase_seconds < 1:
            _refuse("phase_seconds must be at least 1")
        if self.mode in (OSH_Z, PEOS) and not self.spot_checks:
            _refuse(f"mode {self.mode} has rows that shufflers can shift unseen; it needs spot_checks")

    def _check_roles(self) -> None:
        # One key under two names would be one party that counts twice.
        keys = [party.identity for party in self.parties] + [party.seal_key for party in self.parties]
        if len(set(keys)) != len(keys):
            _refuse("every party must have keys of its own")
        known = [*party_names(self.shuffler_count), "relay"]
        for roles in self.together:
            if len(roles) < 2 or any(role not in known for role in roles):
                _refuse(f"together must list two or more of {', '.join(known)}")
        for one, other in combinations(self._operators().items(), 2):
            if one[1] == other[1] and not any({one[0], other[0]} <= set(roles) for roles in self.together):
                _refuse(f"{one[0]} and {other[0]} have the same operator; say so in together")
        # Some of these pairs could still not undo the shuffle; a respondent cannot be asked to work that out.
        if self.together and self.claims_amplification:
            _refuse("one party runs several roles, so that it can undo the shuffle: no amplification may be claimed")

    def _operators(self) -> dict[str, str]:
        operators = {party_name(i): party.operator for i, party in enumerate(self.parties)}
        return operators | ({"relay": self.relay["operator"]} if self.relay else {})

    @property
    def parties(self) -> tuple[ShuffleParty, ...]:
        """The collector, then the shufflers: a party by its number."""
        return (self.collector, *self.shufflers)

    @property
    def shuffler_count(self) -> int:
        """How many shufflers there are, r."""
        return len(self.shufflers)

    @property
    def honest(self) -> int:
        """How many honest shufflers the promise needs: a majority if they hold shares, one in a chain."""
        return hiders_needed(self.shuffler_count) if self.mode in RESHARING else 1

    @property
    def fakes_each(self) -> int:
        """Fake reports that every shuffler makes on its own, so that the honest ones make enough; 0 if made jointly."""
        return 0 if self.mode in (OSH_Z, PEOS) else -(-self.fakes // self.honest)

    @property
    def fake_rows(self) -> int:
        """Fake rows among all rows."""
        return self.fakes if self.mode in (OSH_Z, PEOS) else self.shuffler_count * self.fakes_each

    @property
    def document(self) -> dict[str, Any]:
        """The document as JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {
            "collector": dict(vars(self.collector)),
            "shufflers": [dict(vars(party)) for party in self.shufflers],
            "words": self.words.to_json(),
            "together": [list(roles) for roles in self.together],
        }

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal."""
        return digest(self.document)

    @property
    def id_bytes(self) -> bytes:
        """The id as bytes."""
        return bytes.fromhex(self.id)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """A document as it was published; unknown and missing fields are refused."""
        names = {field.name for field in fields(cls)}
        if set(document) != names:
            wrong = sorted(set(document) ^ names)
            _refuse(f"the fields {', '.join(wrong)} are unknown or missing")
        try:
            parts: dict[str, Any] = {
                "collector": ShuffleParty(**document["collector"]),
                "shufflers": tuple(ShuffleParty(**party) for party in document["shufflers"]),
                "words": WordRule(**document["words"]),
                "together": tuple(tuple(roles) for roles in document["together"]),
            }
            made = cls(**{**document, **parts})
            # One form alone: what reads as the same session under another text would be signed under it, too.
            if made.document != dict(document):
                raise TypeError
            return made
        except (TypeError, KeyError):
            raise InvalidSpec("session: a field has the wrong type or parts; see spec/shuffle.md") from None

    def sign(self, identity: Identity) -> str:
        """The signature of one party on this document."""
        return identity.sign(LABEL, self.document)


@dataclass(frozen=True, kw_only=True)
class SignedSession:
    """A session with the signatures of its parties, by name."""

    session: ShuffleSession
    signatures: Mapping[str, str]

    def verify(self, pinned: Mapping[str, bytes]) -> ShuffleSession:
        """The session, if the collector and every shuffler signed it by the keys that are pinned for them."""
        for number, name in enumerate(party_names(self.session.shuffler_count)):
            # Before any signature: a document may not bring its own keys.
            if pinned.get(name, b"").hex() != self.session.parties[number].identity:
                raise ProtocolViolation(f"session: the document names another key for {name} than the one pinned")
            if name not in self.signatures:
                raise ProtocolViolation(f"session: {name} has not signed; take part only if all parties have")
            check_signature(pinned, name, LABEL, self.session.document, self.signatures[name])
        return self.session

    def to_json(self) -> dict[str, Any]:
        """The session as it is published."""
        signatures = [{"by": name, "signature": text} for name, text in sorted(self.signatures.items())]
        return {"session": self.session.document, "signatures": signatures}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """A session as it was fetched; nothing is verified yet."""
        try:
            signatures: dict[str, Any] = {item["by"]: item["signature"] for item in document["signatures"]}
            if not all(isinstance(text, str) for pair in signatures.items() for text in pair):
                raise TypeError
            return cls(session=ShuffleSession.from_json(document["session"]), signatures=signatures)
        except (TypeError, KeyError):
            raise InvalidSpec("session: a signed session has a session and a list of signatures") from None


def pins(parties: Sequence[ShuffleParty]) -> dict[str, bytes]:
    """The identity keys of parties by name, the collector first: what a client pins when it trusts a document once."""
    return {party_name(i): bytes.fromhex(party.identity) for i, party in enumerate(parties)}


def _check_certificate(certificate: Any) -> None:
    pairs = cast("dict[str, Any]", certificate) if isinstance(certificate, dict) else dict[str, Any]()
    epsilon: Any = pairs.get("epsilon")
    if not isinstance(epsilon, str) or not _DECIMAL.fullmatch(epsilon):
        _refuse("the certificate is a JSON object whose epsilon is decimal text")


def _refuse(reason: str) -> NoReturn:
    raise InvalidSpec(f"session: {reason}")
