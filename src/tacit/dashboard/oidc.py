"""Sign-in through OpenID Connect: authorization code with PKCE, over Authlib; it ends with a token as any other.

    /dashboard/oidc/start       a fresh state, nonce and verifier into a cookie; off to the provider
    /dashboard/oidc/callback    the code is exchanged, the ID token verified, its groups become a scope and a team

The cookie of an attempt is Lax, as the provider sends the browser back from another site; that of the session stays
Strict. Browsers do not send a Strict cookie along a redirect that began elsewhere, so that the callback ends with a
page, which leads on by itself.
"""

import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hmac import compare_digest
from threading import Lock
from time import monotonic
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tacit.core.extras import load
from tacit.dashboard.sign_in import SignIn
from tacit.errors import TacitError

ATTEMPT = "tacit_sign_in"
"""Name of the cookie of an attempt."""

PATH = "/dashboard/oidc"
_ATTEMPT_SECONDS, _WAIT_SECONDS, _FRESH_SECONDS = 600, 10.0, 3600.0
_LEEWAY_SECONDS = 60
# No symmetric algorithm and not "none": the key set of a provider is public.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "Ed25519", "EdDSA"]
_MOST_GROUPS, _MOST_LABEL = 10_000, 60


class SignInFailed(TacitError):
    """The provider refused, or its ID token could not be verified."""


@dataclass(frozen=True)
class Attempt:
    """What a browser keeps between leaving for the provider and coming back."""

    state: str
    nonce: str
    verifier: str
    target: str

    def cookie(self) -> str:
        """The value of the cookie."""
        return urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    @classmethod
    def read(cls, cookie: str) -> "Attempt":
        """The attempt of a cookie; SignInFailed if it is none."""
        try:
            return cls(**json.loads(urlsafe_b64decode(cookie.encode())))
        except (ValueError, TypeError):
            raise SignInFailed("the sign-in took too long, or it was begun in another window; begin again") from None


@dataclass(frozen=True)
class Person:
    """Somebody whom the provider vouched for."""

    name: str
    groups: tuple[str, ...]


class Provider:
    """The provider of a collector, which describes itself at a well-known address."""

    def __init__(self, settings: SignIn) -> None:
        """Nothing is asked of the provider before somebody signs in."""
        self.settings = settings
        self._lock, self._known, self._since = Lock(), cast("dict[str, Any]", {}), 0.0

    def begin(self, redirect: str, target: str) -> tuple[str, Attempt]:
        """The authorization URL for the browser, and the attempt that its callback must match."""
        attempt = Attempt(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48), target)
        url, _ = self._client(redirect).create_authorization_url(
            self._endpoint("authorization_endpoint"), state=attempt.state, nonce=attempt.nonce,
            code_verifier=attempt.verifier,
        )  # fmt: skip
        return url, attempt

    def finish(self, redirect: str, attempt: Attempt, query: Mapping[str, str]) -> Person:
        """Who has come back; SignInFailed if that cannot be verified."""
        # Before anything else: without it a page of somebody else could sign a browser in under its own account.
        if not compare_digest(query.get("state", "").encode(), attempt.state.encode()):
            raise SignInFailed("the answer does not belong to this sign-in; begin again")
        if "code" not in query:
            raise SignInFailed(f"the provider refused: {query.get('error', 'no code')[:80]}")
        client = self._client(redirect)
        endpoint = self._endpoint("token_endpoint")
        try:
            tokens = client.fetch_token(endpoint, code=query["code"], code_verifier=attempt.verifier)
        except Exception as error:
            # Authlib and requests have trees of their own. Their texts may quote the request, and so are not shown.
            raise SignInFailed(f"the provider did not exchange the code: {type(error).__name__}") from None
        claims = self._verified(str(tokens.get("id_token", "")), attempt.nonce)
        return self._person(claims if self.settings.claim in claims else claims | self._asked(client, claims["sub"]))

    def _client(self, redirect: str) -> Any:
        module = load("authlib.integrations.requests_client")
        settings = self.settings
        # A client without a secret names itself in the body; one with a secret proves itself in a header.
        method = "client_secret_basic" if settings.client_secret else "none"
        return module.OAuth2Session(
            settings.client_id, settings.client_secret or None, token_endpoint_auth_method=method,
            scope=settings.scopes, redirect_uri=redirect, code_challenge_method="S256", default_timeout=_WAIT_SECONDS,
        )  # fmt: skip

    def _endpoint(self, name: str) -> str:
        found = self._description().get(name)
        if not isinstance(found, str):
            raise SignInFailed(f"the provider does not state its {name}")
        return found

    def _description(self) -> dict[str, Any]:
        """What the provider says about itself, an hour old at the most."""
        with self._lock:
            if not self._known or monotonic() - self._since > _FRESH_SECONDS:
                found = self._fetch(f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
                # A description under another name would move the trust to another provider (mix-up attack).
                if found.get("issuer") != self.settings.issuer:
                    raise SignInFailed("the provider calls itself by another name than --oidc-issuer")
                self._known, self._since = found, monotonic()
            return self._known

    def _fetch(self, url: str, client: Any = None) -> dict[str, Any]:
        try:
            reply = (client or load("requests")).get(url, timeout=_WAIT_SECONDS)
            reply.raise_for_status()
            found: Any = reply.json()
        except Exception as error:
            raise SignInFailed(f"the provider cannot be reached: {type(error).__name__}") from None
        if not isinstance(found, dict):
            raise SignInFailed("the provider answers something else than JSON objects")
        return cast("dict[str, Any]", found)

    def _verified(self, id_token: str, nonce: str) -> dict[str, Any]:
        """The claims of an ID token, after signature, issuer, audience, time and nonce were checked."""
        jwk, jwt = load("joserfc.jwk"), load("joserfc.jwt")
        settings = self.settings
        wanted = {"iss": settings.issuer, "aud": settings.client_id, "nonce": nonce}
        rules = {name: {"essential": True, "value": value} for name, value in wanted.items()}
        rules |= {name: {"essential": True} for name in ("exp", "iat", "sub")}
        # Fetched each time, as sign-ins are rare and keys change.
        keys = self._fetch(self._endpoint("jwks_uri"))
        try:
            claims = jwt.decode(id_token, jwk.KeySet.import_key_set(keys), algorithms=_ALGORITHMS).claims
            jwt.JWTClaimsRegistry(leeway=_LEEWAY_SECONDS, **rules).validate(claims)
        except Exception as error:
            raise SignInFailed(f"the ID token is not valid: {type(error).__name__}") from None
        audience = claims["aud"]
        if isinstance(audience, list) and len(cast("list[Any]", audience)) > 1:
            if claims.get("azp") != settings.client_id:
                raise SignInFailed("the ID token was made for another client")
        return claims

    def _asked(self, client: Any, subject: str) -> dict[str, Any]:
        """The claims of the provider's userinfo endpoint; empty if it has none."""
        place = self._description().get("userinfo_endpoint")
        if not isinstance(place, str):
            return {}
        found = self._fetch(place, client)
        if found.get("sub") != subject:
            raise SignInFailed("the provider told about somebody else")
        return found

    def _person(self, claims: Mapping[str, Any]) -> Person:
        names = (claims.get(name) for name in ("email", "preferred_username", "name", "sub"))
        name = next(found for found in names if isinstance(found, str) and found)
        groups = claims.get(self.settings.claim, [])
        # Some providers state a single group as a text.
        listed = [groups] if isinstance(groups, str) else cast("list[Any]", groups if isinstance(groups, list) else [])
        shown = "".join(character for character in name if character.isprintable())[:_MOST_LABEL]
        return Person(shown, tuple(group for group in listed[:_MOST_GROUPS] if isinstance(group, str)))


def leave(url: str, attempt: Attempt, *, secure: bool) -> Response:
    """Send a browser to the provider, with the attempt in a cookie."""
    response = RedirectResponse(url, status_code=303, headers={"Cache-Control": "no-store"})
    response.set_cookie(
        ATTEMPT, attempt.cookie(), max_age=_ATTEMPT_SECONDS, path=PATH, httponly=True, secure=secure, samesite="lax"
    )
    return response


def attempt_of(request: Request) -> Attempt:
    """The attempt that a browser has brought back; SignInFailed if there is none."""
    return Attempt.read(request.cookies.get(ATTEMPT, ""))


def forget_attempt(response: Response) -> Response:
    """Let the browser forget the attempt: it is good for one answer."""
    response.delete_cookie(ATTEMPT, path=PATH, httponly=True, samesite="lax")
    return response
