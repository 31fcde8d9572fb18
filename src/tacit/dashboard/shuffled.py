"""The facts about a shuffled collection: who takes part, whom one has to trust, and what is kept against whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tacit.core.extras import need
from tacit.wire.document import Collection
from tacit.wire.shuffled import Party, ShuffleTerms

_WAYS = {
    "relay": "A relay passes sealed reports on to one shuffler, which mixes them.",
    "ss": "Reports are sealed in layers; every shuffler takes off its own, mixes all reports and passes them on.",
    "osh": "Sealed reports are split into shares, one for every shuffler; together they mix what nobody sees whole.",
    "osh-z": "Sealed reports are split into shares, one for every shuffler; they mix them and draw fakes together.",
    "peos-dgk": "Reports are split into shares, one of them encrypted for the collector; the shufflers mix them.",
}
_CHAINS = ("relay", "ss")


@dataclass(frozen=True)
class PartyFacts:
    """Somebody who runs a role."""

    role: str
    name: str
    url: str
    identity: str
    """Empty for a relay, which signs nothing."""


@dataclass(frozen=True)
class ShuffleFacts:
    """What the privacy page says of a shuffled collection."""

    way: str
    terms: ShuffleTerms
    parties: tuple[PartyFacts, ...]
    trusted: str
    """Whom respondents have to trust for more than the local epsilon, in words."""
    together: str
    """The roles that one party runs, in words; empty if none runs two."""
    triple: tuple[str, str, str]
    """Epsilon against the collector; against it and all other respondents; against it and the shufflers."""
    accountant: str


def shuffle_facts(collection: Collection) -> ShuffleFacts | None:
    """The facts of a shuffled collection; None for any other."""
    terms = collection.shuffle
    if terms is None:
        return None
    need("shuffle")
    from tacit.wire.sessions import certificate_of

    certificate = certificate_of(collection)
    return ShuffleFacts(
        way=_WAYS[terms.mode],
        terms=terms,
        parties=_parties(terms),
        trusted=_trusted(terms),
        together="; ".join(" and ".join(map(_spoken, group)) for group in terms.together),
        triple=certificate.triple,
        accountant=certificate.accountant,
    )


def _spoken(role: str) -> str:
    return f"the {role}" if "_" not in role else role.replace("_", " ")


def _parties(terms: ShuffleTerms) -> tuple[PartyFacts, ...]:
    relay = () if terms.relay is None else (_party("Relay", terms.relay),)
    shufflers = (_party(f"Shuffler {i}", party) for i, party in enumerate(terms.shufflers, 1))
    return (_party("Collector", terms.collector), *relay, *shufflers)


def _party(role: str, party: Party) -> PartyFacts:
    return PartyFacts(role, party.name, party.url, party.identity)


def _trusted(terms: ShuffleTerms) -> str:
    count = len(terms.shufflers)
    if terms.mode == "relay":
        return "the shuffler does not work together with the collector, nor with the relay"
    if terms.mode in _CHAINS:
        return f"at least one of the {count} shufflers does not work together with the collector"
    return f"at least {(count + 1) // 2} of the {count} shufflers do not work together with the collector"


def party_origins(document: Mapping[str, Any]) -> list[str]:
    """The origins that the page of a document sends sealed reports to, and asks about them; none if not shuffled."""
    terms: Mapping[str, Any] = document.get("shuffle") or {"shufflers": [], "relay": None}
    relay: Any = terms["relay"]
    # Origins alone: a policy that names paths would break where a party moves below its address.
    parts = [urlsplit(str(party["url"])) for party in [*terms["shufflers"], *([relay] if relay else [])]]
    return list(dict.fromkeys(f"{part.scheme}://{part.netloc}" for part in parts))
