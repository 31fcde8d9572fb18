"""Routes and handlers of the pages. Data is fetched by the pages' scripts from the collector's JSON endpoints.

Handlers that read the store run in the thread pool of Starlette; pages that may take long to compute go through the
collector's work queue (`_later`), which limits how much one token can have in progress.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import segno
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from tacit.catalog import CATALOG
from tacit.central.heatmap import heat_map
from tacit.collector.collections.access import READ, WRITE
from tacit.collector.collections.active import Catalog, read_document
from tacit.collector.http.work import answered
from tacit.collector.ports import CollectionRecord
from tacit.core.extras import is_installed
from tacit.dashboard.assets import asset_routes, page, policy
from tacit.dashboard.oidc import PATH, Provider, SignInFailed, attempt_of, forget_attempt, leave
from tacit.dashboard.privacy import HELD, WEAK, Facts, facts, over_time, surest, texts
from tacit.dashboard.script import script_routes
from tacit.dashboard.session import (
    COOKIE,
    PageState,
    local_path,
    may,
    read_form,
    refuse_foreign,
    scope,
    shown_token,
    signed_in,
    signed_out,
    team,
    to_login,
)
from tacit.dashboard.shuffled import party_origins, shuffle_facts
from tacit.dashboard.sign_in import SignIn
from tacit.dashboard.tools import read_wish, tools
from tacit.device.numbers.exact import WORD
from tacit.errors import TacitError
from tacit.hosting.addresses import authority
from tacit.post.frequencies.methods import METHODS
from tacit.wire.document import Collection

# Pages of the dashboard that are about no single collection, by path.
_PAGES = {
    "": "collections.html",
    "/new": "builder.html",
    "/query": "query.html",
    "/tokens": "tokens.html",
    "/audit": "audit.html",
}


def _home(request: Request) -> Response:
    del request
    return RedirectResponse("/dashboard", status_code=303)


def _missing() -> Response:
    return page("missing.html", status=404)


def _nowhere(request: Request) -> Response:
    """The answer to an unknown path: a page for browsers, the usual problem document for programs."""
    if request.url.path == "/dashboard/":
        return RedirectResponse("/dashboard", status_code=307)
    # PARTIAL: some route has this path, but not for this method.
    if any(route.matches(request.scope)[0] == Match.PARTIAL for route in request.app.routes):
        raise HTTPException(405)
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    return _missing()


class _Nowhere:
    """The fallback route. Not a function: Starlette restricts those to GET, so POST would get 405 instead of 404."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _nowhere(Request(scope))(scope, receive, send)


@lru_cache(maxsize=32)
def _facts(document: bytes, catalog: Catalog) -> tuple[Collection, list[Facts]]:
    """A published collection and the facts of its privacy page; cached, as published documents never change."""
    collection = read_document(document, catalog)
    return collection, facts(collection)


@lru_cache(maxsize=256)
def _code(address: str) -> bytes:
    """An address as a QR code."""
    image = io.BytesIO()
    segno.make(address, error="m").save(image, kind="svg", scale=4, border=4, light="#ffffff", nl=False)
    return image.getvalue()


def _tool_query(request: Request) -> tuple[dict[str, str], list[str]]:
    """The query parameters of the page of tools: single values, and the list of properties."""
    query = request.query_params
    known = ("n", "alpha", "objective", "mechanism")
    return {name: query[name] for name in known if name in query}, query.getlist("property")


@dataclass(frozen=True)
class Pages:
    """The handlers, over what the collector offers."""

    state: PageState
    catalog: Catalog = CATALOG
    public_url: str = ""
    """The public address of the collector; empty for the address that a request was sent to."""
    provider: Provider | None = None
    """Who vouches for people that have no token, if somebody does."""

    def site(self, request: Request) -> str:
        """Return the address of the collector without a trailing slash, for links and QR codes."""
        return self.public_url or str(request.base_url).rstrip("/")

    def _address(self, request: Request, collection: str) -> str:
        return f"{self.site(request)}/c/{collection}"

    def dashboard_page(self, template: str) -> Callable[[Request], Response]:
        """Return the handler of a page that needs a signed-in operator and no collection."""

        def handler(request: Request) -> Response:
            granted = scope(request, self.state)
            if not granted:
                return to_login(request)
            return page(template, scope=granted, team=team(request, self.state), site=self.site(request))

        return handler

    async def login(self, request: Request) -> Response:
        """Show the sign-in form (GET), or check the token it sends (POST)."""
        if request.method == "GET":
            if await run_in_threadpool(scope, request, self.state):
                return RedirectResponse("/dashboard", status_code=303)
            return self._entrance(local_path(request.query_params.get("next", "")))
        refuse_foreign(request, self.public_url)
        form = await read_form(request)
        token, target = form.get("token", "").strip(), local_path(form.get("next", ""))
        if not token or await run_in_threadpool(self.state.scope_of, token) is None:
            return self._entrance(target, why="This token is not known here, or it has expired.")
        return signed_in(token, RedirectResponse(target, status_code=303), secure=self._is_secure(request))

    def _entrance(self, target: str, why: str = "", status: int = 401) -> Response:
        """The sign-in page, and why it is shown again."""
        provider = "" if self.provider is None else self.provider.settings.name
        return page("login.html", status=status if why else 200, why=why, target=target, provider=provider)

    async def oidc_start(self, request: Request) -> Response:
        """Send a browser to the provider."""
        target = local_path(request.query_params.get("next", ""))

        def respond() -> Response:
            assert self.provider is not None
            try:
                url, attempt = self.provider.begin(f"{self.site(request)}{PATH}/callback", target)
            except SignInFailed as error:
                return self._entrance(target, f"Nobody can sign in this way now: {error}.", 503)
            return leave(url, attempt, secure=self._is_secure(request))

        return await self._later(request, respond)

    async def oidc_callback(self, request: Request) -> Response:
        """Take back a browser that the provider has sent."""

        def respond() -> Response:
            try:
                return forget_attempt(self._welcome(request))
            except SignInFailed as error:
                return forget_attempt(self._entrance("/dashboard", f"You were not signed in: {error}."))

        return await self._later(request, respond)

    def _welcome(self, request: Request) -> Response:
        """Make a token for the user that the provider authenticated, and redirect to the page that was asked for."""
        assert self.provider is not None
        attempt = attempt_of(request)
        person = self.provider.finish(f"{self.site(request)}{PATH}/callback", attempt, request.query_params)
        rule = self.provider.settings.rule_for(person.groups)
        if rule is None:
            raise SignInFailed(f"{person.name} is in no group that may use this collector; ask its operator")
        token = self.state.sign_in(person.name, rule.scope, rule.team)
        response = page("signed_in.html", target=local_path(attempt.target))
        return signed_in(token, response, secure=self._is_secure(request))

    def _is_secure(self, request: Request) -> bool:
        """Whether the browser is connected by TLS: directly, or through the proxy of the public address."""
        public = urlsplit(self.public_url)
        here, there = (authority(netloc, "https") for netloc in (request.url.netloc, public.netloc))
        return request.url.scheme == "https" or (public.scheme == "https" and here == there)

    def logout(self, request: Request) -> Response:
        """Delete the cookie; forms of other sites are refused, so that they cannot sign anybody out."""
        refuse_foreign(request, self.public_url)
        self.state.sign_out(request.cookies.get(COOKIE, ""))
        return signed_out()

    def collection(self, request: Request) -> Response:
        """Show one collection: counts, charts, links; a draft is shown in the builder."""
        granted = scope(request, self.state)
        if not granted:
            return to_login(request)
        record = self.state.record(request.path_params["id"])
        if record is None or not may(request, self.state, READ, record.id):
            return _missing()
        # A collection that the token may not read looks like one that does not exist.
        template = "builder.html" if record.state == "draft" else "collection.html"
        address, site = self._address(request, record.id), self.site(request)
        methods = json.dumps([method.to_row() for method in METHODS])
        return page(
            template, scope=granted, team=team(request, self.state), id=record.id, state=record.state, address=address,
            site=site, methods=methods, parquet=is_installed("pyarrow"),
        )  # fmt: skip

    async def survey(self, request: Request) -> Response:
        """Show the form of a collection; drafts only as a preview for whoever may change them."""
        record = await run_in_threadpool(self._shown, request)
        if record is None:
            return _missing()
        if record.state != "draft":
            return await run_in_threadpool(self._survey, record, json.loads(record.document))
        return await self._later(request, lambda: self._survey(record, self._draft(record)))

    def _shown(self, request: Request) -> CollectionRecord | None:
        """The collection of the path, or None; a draft only for whoever may change it."""
        record = self.state.record(request.path_params["id"])
        if record is None or record.state != "draft" or may(request, self.state, WRITE, record.id):
            return record
        return None

    async def _later(self, request: Request, make: Callable[[], Response]) -> Response:
        """Make a page in the work queue, within the limits of its token; requests without one share a limit."""
        owner = await run_in_threadpool(self.state.owner, shown_token(request))
        return await answered(self.state.work.submit(owner, make), request.receive)

    def _survey(self, record: CollectionRecord, document: "dict[str, Any]") -> Response:
        """The form, framed only by the document's origins; a closed round of a plan redirects to the open one."""
        if document.get("windows"):
            collection = read_document(json.dumps(document).encode(), self.catalog)
            title = texts(collection.title, "en")
            return page("windows.html", id=record.id, title=title, words=over_time(collection), referrer="no-referrer")
        following = self.state.open_round(record.id) if record.state == "closed" and document["plan"] else ""
        if following not in ("", record.id):
            return RedirectResponse(f"/c/{following}", 303)
        # Sites that may embed the survey are those whose scripts may send reports.
        ancestors = " ".join(["'self'", *document.get("origins", []), *self.state.origins.added(record.id)])
        title = texts(document["title"], "en")
        return page(
            "survey.html",
            id=record.id,
            state=record.state,
            title=title,
            ancestors=ancestors,
            peers=party_origins(document),
            referrer="no-referrer",
        )

    async def preview(self, request: Request) -> Response:
        """Return the document that a draft would be published as."""
        record = await run_in_threadpool(self._shown, request)
        if record is None or record.state != "draft":
            return _missing()
        headers = {"Cache-Control": "no-store"}

        def respond() -> Response:
            return Response(self.state.preview(record.id), media_type="application/json", headers=headers)

        return await self._later(request, respond)

    async def privacy(self, request: Request) -> Response:
        """Show what is sent, with which exact probabilities, what is stored and for how long."""
        record = await run_in_threadpool(self.state.record, request.path_params["id"])
        if record is None or record.state == "draft":
            return _missing()
        return await self._later(request, lambda: self._privacy(record))

    def _privacy(self, record: CollectionRecord) -> Response:
        collection, shown = _facts(record.document, self.catalog)
        mechanism = collection.mechanism
        odds = Fraction(mechanism.odds, WORD)
        return page(
            "privacy.html",
            collection=collection,
            id=record.id,
            state=record.state,
            title=texts(collection.title, "en"),
            facts=shown,
            shuffled=shuffle_facts(collection),
            declared=float(mechanism.budget.declared),
            realised=mechanism.realised_epsilon(),
            surest=surest(odds),
            weak=odds >= WEAK,
            held=HELD,
            over_time=over_time(collection),
            referrer="no-referrer",
        )

    async def qr_code(self, request: Request) -> Response:
        """Return the address of the survey as a QR code."""
        record = await run_in_threadpool(self.state.record, request.path_params["id"])
        if record is None or record.state == "draft":
            return _missing()
        address = self._address(request, record.id)

        def respond() -> Response:
            return Response(_code(address), media_type="image/svg+xml", headers={"Content-Security-Policy": policy()})

        return await self._later(request, respond)

    async def tools(self, request: Request) -> Response:
        """Show and design mechanisms of the central model; not local."""
        granted = await run_in_threadpool(scope, request, self.state)
        if not granted:
            return to_login(request)
        own = await run_in_threadpool(team, request, self.state)
        return await self._later(
            request, lambda: page("tools.html", scope=granted, team=own, **tools(*_tool_query(request)))
        )

    async def matrix(self, request: Request) -> Response:
        """Return the heat map of a mechanism of the central model; not local."""
        if not await run_in_threadpool(scope, request, self.state):
            return _missing()
        return await self._later(request, lambda: self._matrix(request))

    def _matrix(self, request: Request) -> Response:
        try:
            picture = heat_map(read_wish(*_tool_query(request)).make())
        except TacitError:
            return _missing()
        # The picture carries its own style sheet, which only this response allows.
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(picture, media_type="image/svg+xml", headers=headers)

    def _draft(self, record: CollectionRecord) -> "dict[str, Any]":
        """The document of a draft, or a placeholder with a title where the draft is not complete yet."""
        try:
            return json.loads(self.state.preview(record.id))
        except TacitError:
            return {"title": {"en": "Draft"}}


def routes(
    state: PageState, *, catalog: Catalog = CATALOG, public_url: str = "", sign_in: SignIn | None = None
) -> list[BaseRoute]:
    """Return the routes of all pages and their assets, for the collector's application to mount."""
    pages = Pages(state, catalog, public_url, None if sign_in is None else Provider(sign_in))
    by_provider = [Route(f"{PATH}/start", pages.oidc_start), Route(f"{PATH}/callback", pages.oidc_callback)]
    return [
        Route("/", _home),
        *(Route(f"/dashboard{path}", pages.dashboard_page(template)) for path, template in _PAGES.items()),
        Route("/dashboard/login", pages.login, methods=["GET", "POST"]),
        Route("/dashboard/logout", pages.logout, methods=["POST"]),
        *(by_provider if sign_in else []),
        Route("/dashboard/tools", pages.tools),
        Route("/dashboard/tools/matrix.svg", pages.matrix),
        Route("/dashboard/collections/{id}", pages.collection),
        Route("/c/{id}", pages.survey),
        Route("/c/{id}/preview.json", pages.preview),
        Route("/c/{id}/privacy", pages.privacy),
        Route("/c/{id}/qr.svg", pages.qr_code),
        *script_routes(),
        *asset_routes(),
        # Last, since routes are tried in order and these match everything below their start.
        *(Route(f"{start}/{{path:path}}", _Nowhere()) for start in ("/dashboard", "/c", "")),
    ]
