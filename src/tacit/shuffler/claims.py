"""What a shuffler checks of a certificate before it signs: browsers believe the signatures, and compute nothing.

A session does not say the mechanism, but all that its claim depends on: how many outcomes a report has, whether a seed
stands beside them, and the local epsilon. Clients compare these with the collection document.
"""

from tacit.device.base import Device
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.local_hash import OLHDevice
from tacit.errors import CertificateRefused
from tacit.shuffle.accounting.account import BLANKET, CLONES
from tacit.shuffle.accounting.fakes import counted_fakes
from tacit.shuffle.certificate import REPLACEMENT, Certificate
from tacit.shuffle.protocol.session import ShuffleSession
from tacit.shuffle.protocol.words import WordRule


def check_claim(session: ShuffleSession) -> None:
    """Compute the claim of a session again; CertificateRefused says which would hold if it is too small."""
    # Without amplification nothing is claimed but the local epsilon, which every client compares with the document.
    if not session.claims_amplification:
        return
    certificate = Certificate.from_json(session.certificate)
    mechanism = _stand_in(session.words, certificate.local_epsilon)
    _check_inputs(session, certificate, counted_fakes(mechanism, session.fakes) if session.fakes else 0)
    certificate.verify_claims(mechanism)


def _stand_in(words: WordRule, epsilon: str) -> Device:
    """A mechanism with these reports and this epsilon: the accountants tell it from no other that has them."""
    if words.seeded:
        # The size of the domain does not count: values that never collide are the worst case, and two are enough.
        return OLHDevice(size=words.outcomes, buckets=words.outcomes, epsilon=epsilon)
    return GRRDevice(size=words.outcomes, epsilon=epsilon)


def _check_inputs(session: ShuffleSession, certificate: Certificate, counted: int) -> None:
    # First the inputs, then the claim: a true claim about a larger crowd would be no smaller lie.
    wanted = {"n_min": session.n_min, "fragmented": False, "neighbours": REPLACEMENT}
    for name, value in wanted.items():
        if getattr(certificate, name) != value:
            raise CertificateRefused(f"certificate: {name} is {getattr(certificate, name)}, must be {value} here")
    if certificate.fakes > counted:
        raise CertificateRefused(
            f"certificate: fakes is {certificate.fakes}, must be at most {counted}: so many of the {session.fakes} of "
            "the session are uniform reports"
        )
    if certificate.accountant not in (BLANKET, CLONES):
        raise CertificateRefused(
            f"certificate: accountant is {certificate.accountant}, must be {BLANKET} or {CLONES} for sessions"
        )
