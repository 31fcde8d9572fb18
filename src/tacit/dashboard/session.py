"""Sessions of the dashboard: the token itself in an HttpOnly cookie, and protection against cross-site requests.

There is no session table: every request checks the token again, so that revoking it ends the session at once.
"""

from typing import Protocol
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tacit.collector.collections.origins import Origins
from tacit.collector.ports import CollectionRecord
from tacit.collector.work import Work
from tacit.hosting.addresses import authority
from tacit.hosting.problems import Problem
from tacit.hosting.responses import read_body

COOKIE = "tacit_session"
"""Name of the cookie; its value is the token."""

_HOURS_12 = 12 * 60 * 60
# The only form is the sign-in form: a token and an address.
_MAX_FORM_BYTES = 4096


class PageState(Protocol):
    """What the pages need of the collector."""

    def scope_of(self, token: str) -> str | None:
        """Return the scope of a valid token, or None."""
        ...

    def may(self, token: str, action: str, collection: str) -> bool:
        """Return whether a valid token allows an action on a collection."""
        ...

    def owner(self, token: str) -> str:
        """Return the key under which work for a token is limited; requests without a valid one share the empty key."""
        ...

    @property
    def work(self) -> Work:
        """The work queue, for pages that may take long to compute."""
        ...

    @property
    def origins(self) -> Origins:
        """The sites that may show a collection in a frame."""
        ...

    def team_of(self, token: str) -> str:
        """Return the team that a valid token is limited to; empty for none."""
        ...

    def sign_in(self, name: str, scope: str, team: str) -> str:
        """Return a token for somebody whom a provider has vouched for."""
        ...

    def sign_out(self, token: str) -> None:
        """End a token that was made by signing in; others stay."""
        ...

    def open_round(self, collection: str) -> str:
        """Return the id of the round of an adaptive plan that takes reports now."""
        ...

    def record(self, collection: str) -> CollectionRecord | None:
        """Return a draft, published or closed collection, or None."""
        ...

    def preview(self, collection: str) -> bytes:
        """Return the document that a draft would be published as; InvalidSpec says why it cannot be."""
        ...


def shown_token(request: Request) -> str:
    """Return the token of the cookie, or of a share link; empty without either."""
    return request.cookies.get(COOKIE, "") or request.query_params.get("share", "")


def scope(request: Request, state: PageState) -> str | None:
    """Return the scope of the cookie's or share link's token, or None if there is no valid one."""
    token = shown_token(request)
    return state.scope_of(token) if token else None


def team(request: Request, state: PageState) -> str:
    """Return the team of the cookie's or share link's token; empty for none."""
    return state.team_of(shown_token(request))


def may(request: Request, state: PageState, action: str, collection: str) -> bool:
    """Return whether the cookie's or share link's token allows an action on a collection."""
    token = shown_token(request)
    return bool(token) and state.may(token, action, collection)


def refuse_foreign(request: Request, public_url: str) -> None:
    """Refuse a form that a page of another site has sent (cross-site request forgery).

    Browsers state the sender in Sec-Fetch-Site or Origin; programs send neither header and carry no cookie by accident.
    """
    # Sec-Fetch-Site cannot be forged by a page's script; Origin is for browsers that do not send it yet.
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
    """Return the fields of a small form; none if it is too large or cannot be parsed."""
    data = await read_body(request.receive)
    if len(data) > _MAX_FORM_BYTES:
        return {}
    try:
        return dict(parse_qsl(data.decode("ascii"), max_num_fields=8))
    except ValueError:
        return {}


def local_path(address: str) -> str:
    """Return the address if it is a path of the dashboard, else the dashboard itself: no redirects to other sites."""
    parts = urlsplit(address)
    # Browsers read a backslash as a slash, which urlsplit does not.
    inside = not parts.scheme and not parts.netloc and address.startswith("/dashboard") and "\\" not in address
    return address if inside else "/dashboard"


def to_login(request: Request) -> Response:
    """Redirect to the sign-in page, which leads back here afterwards.

    An invalid share token is dropped from the address.
    """
    wanted = [(name, value) for name, value in request.query_params.multi_items() if name != "share"]
    path, whole = quote(request.url.path), quote(f"{request.url.path}?{urlencode(wanted)}")
    # The form sends the address along with the token, and a form that is too large is not read.
    target = whole if wanted and len(whole) <= _MAX_FORM_BYTES // 2 else path
    return RedirectResponse(f"/dashboard/login?next={target}", status_code=303)


def signed_in(token: str, response: Response, *, secure: bool) -> Response:
    """Store the token in a cookie that scripts cannot read and that requests from other sites do not carry."""
    response.set_cookie(COOKIE, token, max_age=_HOURS_12, path="/", httponly=True, secure=secure, samesite="strict")
    return response


def signed_out() -> Response:
    """Delete the cookie and go to the sign-in page."""
    response = RedirectResponse("/dashboard/login", status_code=303)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response
