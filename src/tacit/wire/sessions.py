"""Session documents of shuffled collections: making one from the collection's document, and verifying one in a client.

A document names the parties and the terms once and for all. A session adds what is made afresh: keys to seal for, a
close time, the certificate, and the signatures of all parties by the identities that the document pins. Unlike the rest
of this room it needs the extra `shuffle` and numpy; clients load it for shuffled documents alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from tacit.device.base import Device
from tacit.errors import CertificateRefused, InvalidSpec, ProtocolViolation
from tacit.shuffle.accounting.account import BLANKET, CLONES
from tacit.shuffle.accounting.fakes import counted_fakes
from tacit.shuffle.certificate import Certificate, certify, decimal_text
from tacit.shuffle.protocol.parties import hiders_needed, party_name
from tacit.shuffle.protocol.session import RESHARING, ShuffleParty, ShuffleSession, SignedSession
from tacit.shuffle.protocol.words import rule_of
from tacit.wire.document import Collection
from tacit.wire.shuffled import ShuffleTerms

_JOINT_FAKES = ("osh-z", "peos-dgk")
"""Modes in which all shufflers draw every fake together."""
_DAY_SECONDS = 86_400


def terms_of(collection: Collection) -> ShuffleTerms:
    """The terms of a shuffled collection; InvalidSpec for another one."""
    if collection.shuffle is None:
        raise InvalidSpec(f"collection {collection.id}: it is not shuffled, so it has no sessions")
    return collection.shuffle


def pinned_keys(terms: ShuffleTerms) -> dict[str, bytes]:
    """The identities that a document pins, by the names of parties in sessions."""
    parties = (terms.collector, *terms.shufflers)
    return {party_name(number): party.key for number, party in enumerate(parties)}


def honest_fakes(terms: ShuffleTerms) -> int:
    """How many of the fakes are drawn by shufflers whom the promise takes to be honest: what a session counts on.

    Where every shuffler draws its own, that is the same number each.
    """
    if terms.mode in _JOINT_FAKES:
        return terms.fakes
    count = len(terms.shufflers)
    honest = hiders_needed(count) if terms.mode in RESHARING else 1
    return honest * (terms.fakes // count)


def check_fakes(terms: ShuffleTerms) -> None:
    """Refuse a number of fakes that shufflers cannot share evenly: the document would state what nobody draws."""
    count = len(terms.shufflers)
    if terms.mode not in _JOINT_FAKES and terms.fakes % count:
        more = -(-terms.fakes // count) * count
        raise InvalidSpec(
            f"draft.shuffle.fakes is {terms.fakes}, must be a multiple of {count} in mode {terms.mode}: each of the "
            f"{count} shufflers draws the same number; take {more}"
        )


def certificate_of(collection: Collection) -> Certificate:
    """The certificate of a collection: what its shuffled reports keep, or the local epsilon if roles are together."""
    terms, mechanism = terms_of(collection), collection.mechanism
    drawn = honest_fakes(terms)
    fakes = counted_fakes(mechanism, drawn) if drawn else 0
    return _issued(mechanism, terms.minimum, terms.delta, fakes, bool(terms.together))


@lru_cache(maxsize=64)
def _issued(mechanism: Device, n_min: int, delta: str, fakes: int, together: bool) -> Certificate:
    certificate = certify(mechanism, n_min=n_min, delta=delta, fakes=fakes)
    local = certificate.local_epsilon
    # Whoever runs two roles can undo the shuffle, so that nothing but the local epsilon is claimed.
    return replace(certificate, epsilon=local, epsilon_others=local) if together else certificate


def make_session(
    collection: Collection,
    *,
    url: str,
    seal_keys: Sequence[str],
    closes: int,
    phase_seconds: int = 600,
    dgk: Mapping[str, Any] | None = None,
) -> ShuffleSession:
    """The session of a collection; `url` is the collector's own address, `seal_keys` begin with the collector's key."""
    terms = terms_of(collection)
    check_fakes(terms)
    return ShuffleSession(
        **_agreed(collection),
        collector=_party(terms, 0, url, seal_keys[0]),
        shufflers=tuple(_party(terms, i, "", key) for i, key in enumerate(seal_keys) if i),
        closes=closes,
        phase_seconds=phase_seconds,
        certificate=certificate_of(collection).to_json(),
        dgk=dgk,
    )


def _party(terms: ShuffleTerms, number: int, url: str, seal_key: str) -> ShuffleParty:
    party = (terms.collector, *terms.shufflers)[number]
    return ShuffleParty(operator=party.name, url=url or party.url, identity=party.identity, seal_key=seal_key)


def _agreed(collection: Collection) -> dict[str, Any]:
    """The fields of a session that follow from the document."""
    terms = terms_of(collection)
    return {
        "collection": collection.id,
        "mode": terms.mode,
        "words": rule_of(collection.mechanism),
        "n_min": terms.minimum,
        "n_max": terms.maximum,
        "fakes": honest_fakes(terms),
        "spot_checks": terms.spot_checks,
        "retention_seconds": collection.retention_days * _DAY_SECONDS,
        "claims_amplification": not terms.together,
        "together": terms.together,
        "relay": None if terms.relay is None else {"operator": terms.relay.name, "url": terms.relay.url},
    }


@dataclass(frozen=True)
class AgreedSession:
    """A session that was verified against the document of its collection, and what it keeps."""

    session: ShuffleSession
    certificate: Certificate


def check_session(collection: Collection, published: Any) -> AgreedSession:
    """Verify a session as it was fetched: signatures, agreement with the document, and the certificate.

    ProtocolViolation for a session that this document does not allow, CertificateRefused for a claim that is too small.
    """
    signed = SignedSession.from_json(published)
    session = signed.verify(pinned_keys(terms_of(collection)))
    _check_agreement(collection, session)
    if session.dgk is not None:
        # Here, so that a key that shows plaintexts, or a missing library, is found before anything is drawn.
        from tacit.shuffle.crypto.dgk import public_key_of

        public_key_of(session.dgk)
    return AgreedSession(session, check_certificate(collection, session.certificate))


def _check_agreement(collection: Collection, session: ShuffleSession) -> None:
    terms = terms_of(collection)
    # Nothing is taken from the session that the document could have said: its signers are not the respondent's choice.
    for name, value in _agreed(collection).items():
        if getattr(session, name) != value:
            raise ProtocolViolation(
                f"session: {name} is not what the document of collection {collection.id} says; do not take part"
            )
    for number, party in enumerate((terms.collector, *terms.shufflers)):
        stated = session.parties[number]
        # The document has no address of the collector, which only shufflers write to.
        place = (stated.operator, stated.url if number else "")
        if place != (party.name, party.url):
            raise ProtocolViolation(f"session: {party_name(number)} is another party than in the document")


def check_certificate(collection: Collection, stated: Any) -> Certificate:
    """The certificate of a session, computed again; CertificateRefused if it claims more than its inputs keep."""
    # First the inputs, then the claim: a true claim about a larger crowd would be no smaller lie.
    certificate, terms = Certificate.from_json(stated), terms_of(collection)
    drawn = honest_fakes(terms)
    wanted = {
        "n_min": terms.minimum,
        "fakes": counted_fakes(collection.mechanism, drawn) if drawn else 0,
        "delta": decimal_text(Decimal(terms.delta)),
        "fragmented": False,
    }
    for name, value in wanted.items():
        if getattr(certificate, name) != value:
            raise CertificateRefused(f"certificate: {name} is not {value}, which the document says; do not take part")
    if certificate.accountant not in (BLANKET, CLONES):
        raise CertificateRefused(f"certificate: {certificate.accountant} is no accountant of sessions; stay away")
    if terms.together and certificate.epsilon != certificate.local_epsilon:
        raise CertificateRefused("certificate: one party runs several roles, so that only the local epsilon holds")
    _verified(certificate, collection.mechanism)
    return certificate


@lru_cache(maxsize=64)
def _verified(certificate: Certificate, mechanism: Device) -> None:
    # Remembered, as the accountant takes up to seconds and one program may hold many respondents.
    certificate.verify(mechanism)
