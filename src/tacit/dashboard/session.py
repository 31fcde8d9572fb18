"""Signing in: a token is checked once and kept in a cookie that no script can read."""

from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tacit.collector.ports import CollectionRecord

COOKIE = "tacit_session"
"""Name of the cookie; its value is the token."""

_HOURS_12 = 12 * 60 * 60
_MAX_FORM_BYTES = 4096


class State(Protocol):
    """What the pages need of the collector."""

    def scope_of(self, token: str) -> str | None:
        """The scope of a token that holds today, or None."""
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


def scope(request: Request, state: State) -> str | None:
    """The scope of whoever is signed in, or holds a share link."""
    token = request.cookies.get(COOKIE, "") or request.query_params.get("share", "")
    return state.scope_of(token) if token else None


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a small form; one that is too large or cannot be read has none."""
    data = b""
    async for part in request.stream():
        data += part
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
    """Send somebody who is not signed in to the sign-in page, and back here afterwards."""
    return RedirectResponse(f"/dashboard/login?next={request.url.path}", status_code=303)


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
