"""Who may upload: without admission anybody can, often, and can surround one person with made-up reports.

Tokens are 32 bytes. A shuffler is given their SHA-256 by the collector (letters `admissions`) and sees a token when it
is spent, in the transaction of its upload. With invitations, a token is the hash that the collector keeps of an
invitation, so that the collector knows whom it invited, but not which slot or report is whose.
"""

from hashlib import sha256
from typing import Protocol

from tacit.shuffler.party_database import PartyDatabase

TOKEN_BYTES = 32


def admission_hash(token: bytes) -> bytes:
    """What a shuffler is given of a token."""
    return sha256(b"tacit admission\x00" + token).digest()


class Admission(Protocol):
    """Decides about a token inside the transaction that stores its upload."""

    def spend(self, db: PartyDatabase, session: int, token: bytes) -> bool:
        """Whether a token admits to a session (by its row key); it never does so again."""
        ...


class Invitations:
    """Tokens that the collector announced by their hashes, each good for one upload."""

    def spend(self, db: PartyDatabase, session: int, token: bytes) -> bool:
        """Spend a token that was announced and not spent before."""
        text = "UPDATE admissions SET spent = 1 WHERE session = ? AND hash = ? AND spent = 0"
        return db.change(text, session, admission_hash(token)) == 1
