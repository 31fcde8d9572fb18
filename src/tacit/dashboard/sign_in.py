"""Who may sign in through an OpenID Connect provider, and as what: groups of a directory become scopes and teams."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tacit.collector.collections.access import check_team
from tacit.errors import InvalidSpec

GRANTED = ("admin", "analyst")
"""Scopes that a group can have: the others are for one collection, or for programs."""

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True)
class GroupRule:
    """What members of a group may do: a scope, for a team or for all collections."""

    group: str
    scope: str
    team: str = ""

    @classmethod
    def parse(cls, text: str) -> "GroupRule":
        """Read NAME=SCOPE or NAME=SCOPE:TEAM; names of groups may hold anything but white space at their ends."""
        # From the right: directories have groups such as `cn=staff,dc=example`.
        group, equals, granted = text.rpartition("=")
        scope, _, team = granted.partition(":")
        if not equals or not group.strip() or scope not in GRANTED:
            raise InvalidSpec(f"oidc: a group is NAME=SCOPE or NAME=SCOPE:TEAM with a scope of {', '.join(GRANTED)}")
        return cls(group.strip(), scope, check_team(team))


@dataclass(frozen=True)
class SignIn:
    """A provider, how this collector is known to it, and what its groups may do."""

    issuer: str
    client_id: str
    rules: tuple[GroupRule, ...]
    client_secret: str = field(default="", repr=False)
    """Empty for a client without one, which the proof of the code exchange (PKCE) has to do for."""
    claim: str = "groups"
    scopes: str = "openid profile email"
    name: str = "single sign-on"
    """What the button on the sign-in page says."""

    def __post_init__(self) -> None:
        """Refuse a provider that cannot be trusted, and one that nobody could sign in with."""
        address = urlsplit(self.issuer)
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in _LOOPBACK):
            raise InvalidSpec("oidc: the issuer must be an https address; its answers decide who is an admin")
        if not self.client_id or not self.rules:
            raise InvalidSpec("oidc: a client id and at least one group are needed, such as --oidc-group staff=analyst")
        if "openid" not in self.scopes.split():
            raise InvalidSpec("oidc: the scopes must contain openid")

    def rule_for(self, groups: Sequence[str]) -> GroupRule | None:
        """The first rule, in the order in which they were given, that one of the groups has; None if none does."""
        return next((rule for rule in self.rules if rule.group in groups), None)
