"""Signing in: a token is checked once and kept in a cookie that no script can read."""

from typing import Protocol
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tacit.collector.addresses import authority
from tacit.collector.http_common import read_body
from tacit.collector.ports import CollectionRecord
from tacit.collector.problems import Problem
from tacit.collector.work import Work

COOKIE = "tacit_session"
"""Name of the cookie; its value is the token."""

_HOURS_12 = 12 * 60 * 60
_MAX_FORM_BYTES = 4096


class State(Protocol):
    """What the pages need of the collector."""

    def scope_of(self, token: str) -> str | None:
        """The scope of a token that holds today, or None."""
        ...

    def may(self, token: str, action: str, collection: str) -> bool:
        """Whether a token that holds today allows an action on a collection."""
        ...

    def owner(self, token: str) -> str:
        """Whose work it is that is done for a token: its key, or empty for everybody without one that holds."""
        ...

    @property
    def work(self) -> Work:
        """Where pages that take long to make are made."""
        ...

    def open_round(self, collection: str) -> str:
        """The round of an adaptive plan that takes reports now."""
        ...

    def record(self, collection: str) -> CollectionRecord | None:
        """A draft, published or closed collection."""
        ...

    def preview(self, collection: str) -> bytes:
        """The document that a draft would be published as; InvalidSpec says why it cannot be."""
        ...


def shown_token(request: Request) -> str:
    """The token of whoever is signed in, or holds a share link; empty for nobody."""
    return request.cookies.get(COOKIE, "") or request.query_params.get("share", "")


def scope(request: Request, state: State) -> str | None:
    """The scope of whoever is signed in, or holds a share link."""
    token = shown_token(request)
    return state.scope_of(token) if token else None


def may(request: Request, state: State, action: str, collection: str) -> bool:
    """Whether whoever is signed in, or holds a share link, may do this with a collection."""
    token = shown_token(request)
    return bool(token) and state.may(token, action, collection)


def refuse_foreign(request: Request, public_url: str) -> None:
    """Refuse a form that a page of another site has sent; browsers say so, and other clients send neither header."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_ours = site in ("none", "same-origin") if site else origin is None or _is_here(origin, request, public_url)
    if not is_ours:
        raise Problem("forbidden", "this form was sent by a page of another site; open the sign-in page itself")


def _is_here(origin: str, request: Request, public_url: str) -> bool:
    """Whether an origin is the public address, or the host of the request.

    A proxy that ends TLS changes the scheme of the request and not its host, so the scheme of the origin says which
    port is the default one.
    """
    try:
        there = urlsplit(origin)
    except ValueError:
        return False
    public = urlsplit(public_url)
    here = {authority(request.base_url.netloc, there.scheme), authority(public.netloc, public.scheme)}
    return authority(there.netloc, there.scheme) in here - {""}


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a small form; one that is too large or cannot be read has none."""
    data = await read_body(request.receive)
    if len(data) > _MAX_FORM_BYTES:
        return {}
    try:
        return dict(parse_qsl(data.decode("ascii"), max_num_fields=8))
    except ValueError:
        return {}


def local_path(given: str) -> str:
    """A path of this site to return to after signing in; addresses of other sites become the list."""
    parts = urlsplit(given)
    inside = not parts.scheme and not parts.netloc and given.startswith("/dashboard") and "\\" not in given
    return given if inside else "/dashboard"


def to_login(request: Request) -> Response:
    """Send somebody who is not signed in to the sign-in page, and back here afterwards.

    A share link that no longer holds is left out: its token would only stand in the way of the one to come.
    """
    wanted = [(name, value) for name, value in request.query_params.multi_items() if name != "share"]
    path, whole = quote(request.url.path), quote(f"{request.url.path}?{urlencode(wanted)}")
    # The form sends the address along with the token, and a form that is too large is not read.
    target = whole if wanted and len(whole) <= _MAX_FORM_BYTES // 2 else path
    return RedirectResponse(f"/dashboard/login?next={target}", status_code=303)


def signed_in(token: str, target: str, *, secure: bool) -> Response:
    """Keep the token in a cookie that only this site's own pages send along."""
    response = RedirectResponse(local_path(target), status_code=303)
    response.set_cookie(COOKIE, token, max_age=_HOURS_12, path="/", httponly=True, secure=secure, samesite="strict")
    return response


def signed_out() -> Response:
    """Forget the token."""
    response = RedirectResponse("/dashboard/login", status_code=303)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response
