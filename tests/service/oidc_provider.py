"""A small OpenID Connect provider: authorization code with PKCE, confidential or public clients, and faults to order.

It checks what a provider has to check (RFC 6749, RFC 7636, OpenID Connect Core 3.1): client, redirect address, one use
of a code, S256 of the verifier. Whoever comes is the person of `claims`, without being asked for a password.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tacit.hosting.serving import in_thread

SECRET = "a secret of the client"
PERSON = {"sub": "1", "email": "ada@example.org", "groups": ["staff"]}


@dataclass
class TinyProvider:
    """The provider, and what it shall say."""

    redirect: str = ""
    """The only redirect address of the client; must be set before somebody comes."""
    client_id: str = "tacit"
    claims: dict[str, Any] = field(
        default_factory=lambda: {"sub": "1", "email": "ada@example.org", "groups": ["staff"]}
    )
    userinfo: dict[str, Any] = field(default_factory=dict[str, Any])
    altered: dict[str, Any] = field(default_factory=dict[str, Any])
    """Claims of the ID token that are other than they should be."""
    foreign_key: bool = False
    """Sign with a key that is not in the key set."""
    public: bool = False
    """The client has no secret."""
    url: str = ""
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, "dict[str, str]"])
    exchanged: int = 0

    def __post_init__(self) -> None:
        self.key, self.other = (RSAKey.generate_key(2048, {"kid": "one"}) for _ in range(2))

    def routes(self) -> list[Route]:
        return [
            Route("/.well-known/openid-configuration", self.describe),
            Route("/authorize", self.authorize),
            Route("/token", self.token, methods=["POST"]),
            Route("/keys", self.keys),
            Route("/person", self.person),
        ]

    async def describe(self, request: Request) -> Response:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        if self.userinfo:
            names["userinfo_endpoint"] = "person"
        return JSONResponse({"issuer": self.url} | {name: f"{self.url}/{path}" for name, path in names.items()})

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        known = asked.get("client_id") == self.client_id and asked.get("redirect_uri") == self.redirect
        if not known or asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256":
            return Response("not a request of my client", 400)
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        return RedirectResponse(f"{self.redirect}?{urlencode({'code': code, 'state': asked['state']})}", 302)

    async def token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        # A code is good for one exchange.
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != proof or form.get("redirect_uri") != self.redirect:
            return JSONResponse({"error": "invalid_grant"}, 400)
        held = base64.b64encode(f"{self.client_id}:{SECRET}".encode()).decode()
        given = request.headers.get("authorization", "")
        if not (form.get("client_id") == self.client_id if self.public else given == f"Basic {held}"):
            return JSONResponse({"error": "invalid_client"}, 401)
        self.exchanged += 1
        return JSONResponse({"access_token": "at", "token_type": "Bearer", "id_token": self.id_token(asked["nonce"])})

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        usual = {"iss": self.url, "aud": self.client_id, "nonce": nonce, "iat": now, "exp": now + 300}
        key = self.other if self.foreign_key else self.key
        return jwt.encode({"alg": "RS256", "kid": "one"}, usual | self.claims | self.altered, key)

    async def keys(self, request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def person(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer at":
            return Response(status_code=401)
        return JSONResponse(self.userinfo)


@contextmanager
def providing(provider: TinyProvider) -> Generator[TinyProvider]:
    """Serve a provider on a free port of this machine."""
    site = Starlette(routes=provider.routes())

    def make(port: int) -> uvicorn.Server:
        return uvicorn.Server(uvicorn.Config(site, "127.0.0.1", port, log_level="warning", lifespan="off"))

    with in_thread(make, "127.0.0.1") as (url, _):
        provider.url = url
        yield provider
