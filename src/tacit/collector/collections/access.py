"""Access control: bearer tokens with scopes, single-use invitations, and the audit log.

A token is 32 random bytes, and only its SHA-256 is stored. A plain hash is enough: unlike a password, a token of 256
random bits cannot be guessed, so that neither salt nor key stretching would add anything.
"""

import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from tacit.collector.collections.active import ID
from tacit.collector.ports import AuditEntry, Store, TokenRecord
from tacit.errors import InvalidSpec
from tacit.hosting.clock import today
from tacit.hosting.problems import Problem
from tacit.wire.batch import invitation_hash

PREFIX = "tct_"
TOKEN = re.compile(r"tct_[A-Za-z0-9_-]{43}")
"""The syntax of a token; one that an operator chooses must have it too, so that it is as hard to guess."""
TEAM = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
"""The syntax of a team's name. There is no list of teams: one exists when a token or a collection names it."""
SCOPES = ("admin", "analyst", "reader", "reporter")
SIGNED_IN = " (signed in)"
"""How the labels of tokens end that were made by signing in."""
# In one request; all of them are returned in one response.
MAX_INVITATIONS = 100_000
_MAX_LABEL = 80
_MAX_DAY = 10**6

READ, WRITE, REPORT = "read", "write", "report"
"""Actions that routes require: read a collection, change anything, or report without a rate limit."""

_ALLOWS = {
    "admin": {READ, WRITE, REPORT},
    "analyst": {READ},
    "reader": {READ},
    "reporter": {REPORT},
}


def hash_token(token: str) -> bytes:
    """The hash that is stored of a token."""
    return sha256(token.encode(errors="replace")).digest()


def token_id(record: TokenRecord) -> str:
    """The public id of a token: the first 16 hexadecimal digits of its hash."""
    return record.hash.hex()[:16]


def new_token() -> str:
    """A fresh random token."""
    return PREFIX + urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()


def check_team(team: Any) -> str:
    """The name of a team, or the empty one; InvalidSpec for anything else."""
    if not isinstance(team, str) or (team and not TEAM.fullmatch(team)):
        raise InvalidSpec("team: must be 1 to 40 characters of a-z, 0-9 and -, and begin with no -")
    return team


def _of_no_team(collection: str) -> str | None:
    del collection
    return None


@dataclass(frozen=True)
class Bearer:
    """The identity behind a valid token: its scope, and the collection and team it is limited to (empty: all)."""

    scope: str
    collection: str
    name: str
    key: str = ""
    """The public id of the token, by which expensive work is limited."""
    team: str = ""
    team_of: Callable[[str], str | None] = field(default=_of_no_team, compare=False, repr=False)
    """The team of a collection; None if there is no such collection."""

    def may(self, action: str, collection: str = "") -> bool:
        """Whether the token allows an action on a collection; empty means an action on no single collection.

        Whoever acts on no single collection for the token of a team keeps to `team`: lists and makes nothing of others.
        """
        if action not in _ALLOWS.get(self.scope, set()):
            return False
        if self.collection and self.collection != collection:
            return False
        # A collection that does not exist is refused as one of another team is, so that nothing can be told from it.
        return not self.team or not collection or self.team_of(collection) == self.team

    def within(self, team: Any) -> str:
        """The team that something new shall belong to: as asked for or, if nothing is asked for, the token's own."""
        wanted = check_team(team) or self.team
        if self.team and wanted != self.team:
            raise Problem("forbidden", f"the token is for the team '{self.team}', and makes nothing for another")
        return wanted


OWNER = Bearer("admin", "", "owner")
"""The operator at the command line, who has access to the database itself and needs no token."""


class Access:
    """Tokens, invitations and the audit log of a store."""

    def __init__(self, store: Store, day: Callable[[], int] = today) -> None:
        """Work on a store; `day` returns the Unix day."""
        self._store, self._day = store, day

    def bearer(self, token: str) -> Bearer | None:
        """The bearer of a token, or None if it does not exist or has expired."""
        wanted = hash_token(token)
        record = self._store.token(wanted)
        # The database looked the hash up by equality already; the constant-time comparison guards against stores that
        # match loosely. Timing tells nothing of use: an attacker cannot choose hashes.
        if record is None or not hmac.compare_digest(record.hash, wanted):
            return None
        if record.expires and self._day() >= record.expires:
            return None
        name = record.label or token_id(record)
        return Bearer(record.scope, record.collection, name, token_id(record), record.team, self._team_of)

    def _team_of(self, collection: str) -> str | None:
        record = self._store.collection(collection) if ID.fullmatch(collection) else None
        return None if record is None else record.team

    def check(self, token: str, action: str, collection: str = "") -> Bearer:
        """The bearer of a token that allows an action; Problem `unauthorized` or `forbidden` otherwise."""
        bearer = self.bearer(token) if token else None
        if bearer is None:
            raise Problem("unauthorized", "send a valid token as 'Authorization: Bearer tct_…'")
        if not bearer.may(action, collection):
            raise Problem("forbidden", f"a token with the scope '{bearer.scope}' does not allow this here")
        return bearer

    def create(
        self, scope: Any, *, collection: Any = "", label: Any = "", days: Any = 0, team: Any = "", by: Bearer = OWNER
    ) -> tuple[str, TokenRecord]:
        """Create a token, in the name of `by`; returns the secret, which cannot be shown again, and its record."""
        if scope not in SCOPES:
            raise InvalidSpec(f"token: scope must be one of {', '.join(SCOPES)}")
        if not isinstance(collection, str) or (scope == "reader" and not collection):
            raise InvalidSpec(
                "token: a reader's token is for one collection; name its id (--collection ID), or take the "
                "scope analyst, which reads all"
            )
        team = by.within(team)
        if collection and (found := self._team_of(collection)) != (team or found or ""):
            raise Problem("not_found", "there is no such collection")
        if not isinstance(label, str) or len(label) > _MAX_LABEL or not label.isprintable():
            raise InvalidSpec(f"token: label must be at most {_MAX_LABEL} printable characters")
        if type(days) is not int or not 0 <= days <= _MAX_DAY:
            raise InvalidSpec(f"token: days must be an integer from 0 (never expires) to {_MAX_DAY}")
        token = new_token()
        record = TokenRecord(hash_token(token), scope, collection, label, self._day() + days if days else 0, team)
        self._store.add_token(record)
        return token, record

    def find(self, name: str, by: Bearer = OWNER) -> TokenRecord:
        """The record of a token by its public id; Problem `not_found` if `by` can see none."""
        for record in self.tokens(by):
            if token_id(record) == name:
                return record
        raise Problem("not_found", "there is no such token")

    def revoke(self, name: str, by: Bearer = OWNER) -> None:
        """Revoke a token at once; Problem `conflict` for the last valid admin token, which would lock everybody out."""
        record = self.find(name, by)
        if self._admins() == [record]:
            raise Problem("conflict", "this is the last admin token for everything; make or rotate one first")
        self._store.revoke_token(record.hash)

    def tokens(self, by: Bearer = OWNER) -> list[TokenRecord]:
        """The records of all tokens, or of those of the bearer's team; expired ones included."""
        return [record for record in self._store.tokens() if by.team in ("", record.team)]

    def _admins(self) -> list[TokenRecord]:
        """Valid admin tokens that are limited neither to one collection nor to one team."""
        return [record for record in self._store.tokens() if self._is_admin(record)]

    def _is_admin(self, record: TokenRecord) -> bool:
        holds = not record.expires or self._day() < record.expires
        return record.scope == "admin" and not record.collection and not record.team and holds

    def rotate(self, name: str, by: Bearer = OWNER) -> tuple[str, TokenRecord]:
        """Replace a token by a fresh one with the same rights; the old one is revoked at once."""
        # Added before the old one is revoked: a crash in between leaves two valid tokens, and not none.
        old, token = self.find(name, by), new_token()
        fresh = replace(old, hash=hash_token(token))
        self._store.add_token(fresh)
        self._store.revoke_token(old.hash)
        return token, fresh

    def sign_in(self, name: str, scope: str, team: str) -> str:
        """Create a token for a user authenticated by an OpenID provider, and remove the user's expired ones."""
        for record in self._store.tokens():
            if record.label.endswith(SIGNED_IN) and record.expires <= self._day():
                self._store.revoke_token(record.hash)
        # Two days, of which the first is not whole: a session of some hours must not end at midnight.
        token, record = self.create(scope, label=name + SIGNED_IN, days=2, team=team)
        self.note(Bearer(scope, "", record.label, team=team), "sign in", token_id(record))
        return token

    def sign_out(self, token: str) -> None:
        """Remove a token that was made by signing in; others stay, as they may be in use elsewhere."""
        record = self._store.token(hash_token(token)) if token else None
        if record is not None and record.label.endswith(SIGNED_IN):
            self._store.revoke_token(record.hash)

    def first_admin(self, chosen: str = "") -> str | None:
        """Create an admin token if there is no valid one (first start, or the last one expired); returns the secret.

        With a `chosen` token that one is added, and None is returned, as the operator knows it. If there is a valid
        admin token already nothing happens: a chosen token that was revoked must not come back with every restart.
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
        """Create single-use invitations to a collection; they cannot be shown again."""
        if type(count) is not int or not 1 <= count <= MAX_INVITATIONS:
            raise InvalidSpec(f"invitations: count must be an integer from 1 to {MAX_INVITATIONS}")
        # 128 random bits: far fewer guesses are possible while a collection is open.
        invitations = ["inv_" + secrets.token_urlsafe(16) for _ in range(count)]
        self._store.add_invitations(collection, [invitation_hash(invitation) for invitation in invitations])
        return invitations

    def note(self, bearer: Bearer, action: str, subject: str) -> None:
        """Write an operator's action into the audit log, where the team that it is about can read it."""
        team = bearer.team or self._team_of(subject) or ""
        self._store.audit(AuditEntry(self._day(), bearer.name, action, subject, team))

    def audit_log(self, by: Bearer, most: int) -> list[AuditEntry]:
        """The latest actions, newest first: all, or those about the bearer's team."""
        return self._store.audit_log(most, by.team)
