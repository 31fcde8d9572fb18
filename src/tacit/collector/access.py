"""Access: tokens that say what their bearer may do, invitations, and a note of every operator's action.

A token is 32 random bytes; only its SHA-256 is kept. Since a token is not a guessable secret, a plain hash is enough.
"""

import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import time
from typing import Any

from tacit.collector.active import ID
from tacit.collector.ingest import invitation_hash
from tacit.collector.ports import AuditEntry, Store, TokenRecord
from tacit.collector.problems import Problem
from tacit.errors import InvalidSpec

PREFIX = "tct_"
TOKEN = re.compile(r"tct_[A-Za-z0-9_-]{43}")
"""How a token is written; one that somebody else made must be as hard to guess."""
SCOPES = ("admin", "analyst", "reader", "reporter")
MAX_INVITATIONS = 100_000
_MAX_LABEL = 80
_MAX_DAY = 10**6
_DAY = 86_400

READ, WRITE, REPORT = "read", "write", "report"
"""What a route needs: to read a collection, to change things, or to report without a limit of rate."""

_ALLOWS = {
    "admin": {READ, WRITE, REPORT},
    "analyst": {READ},
    "reader": {READ},
    "reporter": {REPORT},
}


def today() -> int:
    """The Unix day."""
    return int(time()) // _DAY


def hash_token(token: str) -> bytes:
    """What is kept of a token."""
    return sha256(token.encode(errors="replace")).digest()


def token_id(record: TokenRecord) -> str:
    """The public name of a token: the beginning of its hash."""
    return record.hash.hex()[:16]


def new_token() -> str:
    """A fresh token."""
    return PREFIX + urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()


@dataclass(frozen=True)
class Bearer:
    """Whoever shows a valid token."""

    scope: str
    collection: str
    name: str
    key: str = ""
    """The public name of the token, by which the work that is done for it is limited."""

    def may(self, action: str, collection: str = "") -> bool:
        """Whether the scope allows the action, on this collection or (if empty) on everything."""
        if action not in _ALLOWS.get(self.scope, set()):
            return False
        return not self.collection or self.collection == collection


OWNER = Bearer("admin", "", "owner")
"""Whoever works on the folder of a collector directly, and needs no token for it."""


class Access:
    """Tokens, invitations and the audit log of a store."""

    def __init__(self, store: Store, day: Callable[[], int] = today) -> None:
        """Work on a store; `day` is the clock."""
        self._store, self._day = store, day

    def bearer(self, token: str) -> Bearer | None:
        """Whoever shows this token, if it exists and holds today."""
        wanted = hash_token(token)
        record = self._store.token(wanted)
        if record is None or not hmac.compare_digest(record.hash, wanted):
            return None
        if record.expires and self._day() >= record.expires:
            return None
        return Bearer(record.scope, record.collection, record.label or token_id(record), token_id(record))

    def check(self, token: str, action: str, collection: str = "") -> Bearer:
        """The bearer of a token that allows this, or a problem."""
        bearer = self.bearer(token) if token else None
        if bearer is None:
            raise Problem("unauthorized", "send a valid token as 'Authorization: Bearer tct_…'")
        if not bearer.may(action, collection):
            raise Problem("forbidden", f"a token with the scope '{bearer.scope}' does not allow this here")
        return bearer

    def create(self, scope: Any, *, collection: Any = "", label: Any = "", days: Any = 0) -> tuple[str, TokenRecord]:
        """A new token, which is shown this once, and what is kept of it."""
        if scope not in SCOPES:
            raise InvalidSpec(f"token: scope must be one of {', '.join(SCOPES)}")
        if not isinstance(collection, str) or (scope == "reader" and not collection):
            raise InvalidSpec("token: a reader's token is for one collection; name its id")
        if collection and (not ID.fullmatch(collection) or self._store.collection(collection) is None):
            raise Problem("not_found", "there is no such collection")
        if not isinstance(label, str) or len(label) > _MAX_LABEL or not label.isprintable():
            raise InvalidSpec(f"token: label must be at most {_MAX_LABEL} printable characters")
        if type(days) is not int or not 0 <= days <= _MAX_DAY:
            raise InvalidSpec(f"token: days must be an integer from 0 (never expires) to {_MAX_DAY}")
        token = new_token()
        record = TokenRecord(hash_token(token), scope, collection, label, self._day() + days if days else 0)
        self._store.add_token(record)
        return token, record

    def find(self, name: str) -> TokenRecord:
        """The token of a public name."""
        for record in self._store.tokens():
            if token_id(record) == name:
                return record
        raise Problem("not_found", "there is no such token")

    def revoke(self, name: str) -> None:
        """End a token at once; the last one that administers everything stays."""
        record = self.find(name)
        if self._admins() == [record]:
            raise Problem("conflict", "this is the last admin token for everything; make or rotate one first")
        self._store.revoke_token(record.hash)

    def tokens(self) -> list[TokenRecord]:
        """What is kept of every token, also of those that have run out."""
        return self._store.tokens()

    def _admins(self) -> list[TokenRecord]:
        """Tokens that hold today and may administer everything; one of a single collection cannot make others."""
        return [record for record in self._store.tokens() if self._is_admin(record)]

    def _is_admin(self, record: TokenRecord) -> bool:
        holds = not record.expires or self._day() < record.expires
        return record.scope == "admin" and not record.collection and holds

    def rotate(self, name: str) -> tuple[str, TokenRecord]:
        """Replace a token by a fresh one with the same rights; the old one ends at once."""
        old, token = self.find(name), new_token()
        fresh = TokenRecord(hash_token(token), old.scope, old.collection, old.label, old.expires)
        self._store.add_token(fresh)
        self._store.revoke_token(old.hash)
        return token, fresh

    def first_admin(self, chosen: str = "") -> str | None:
        """An admin token, if none holds: shown once, on the first start, or when the last one has run out.

        A chosen token becomes that first one and is not shown; where an admin token holds already, it changes nothing,
        since one that was revoked must not come back with the next start.
        """
        if chosen and not TOKEN.fullmatch(chosen):
            raise InvalidSpec("token: the first admin token must be tct_ and 43 characters of A-Z, a-z, 0-9, - and _")
        if self._admins():
            return None
        if not chosen:
            return self.create("admin", label="first start")[0]
        self._store.add_token(TokenRecord(hash_token(chosen), "admin", "", "first start", 0))
        return None

    def invite(self, collection: str, count: Any) -> list[str]:
        """Single-use invitations to a collection; they are shown this once."""
        if type(count) is not int or not 1 <= count <= MAX_INVITATIONS:
            raise InvalidSpec(f"invitations: count must be an integer from 1 to {MAX_INVITATIONS}")
        made = ["inv_" + secrets.token_urlsafe(16) for _ in range(count)]
        self._store.add_invitations(collection, [invitation_hash(invitation) for invitation in made])
        return made

    def note(self, bearer: Bearer, action: str, subject: str) -> None:
        """Write an operator's action into the audit log."""
        self._store.audit(AuditEntry(self._day(), bearer.name, action, subject))
