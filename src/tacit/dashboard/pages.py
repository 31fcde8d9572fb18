"""Routes of the pages. Everything a page shows beyond its frame is fetched from the collector's JSON endpoints."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

import segno
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tacit.catalog import CATALOG
from tacit.central.heatmap import heat_map
from tacit.collector.active import Catalog, read_document
from tacit.collector.ports import CollectionRecord
from tacit.dashboard.assets import asset_routes, page, policy
from tacit.dashboard.privacy import HELD, WEAK, facts, surest, texts
from tacit.dashboard.script import script_routes
from tacit.dashboard.session import State, local_path, read_form, scope, signed_in, signed_out, to_login
from tacit.dashboard.tools import read_wish, tools
from tacit.device.exact import WORD
from tacit.errors import TacitError
from tacit.post.methods import METHODS

_HEX = frozenset("0123456789abcdef")
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
    """A page for people who followed a wrong link; programs get the problem document that they get everywhere else."""
    if request.url.path == "/dashboard/":
        return RedirectResponse("/dashboard", status_code=307)
    if "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    return _missing()


def _is_id(text: str) -> bool:
    return len(text) == 64 and set(text) <= _HEX


def _wished(request: Request) -> tuple[dict[str, str], list[str]]:
    """What the page of tools is asked for: single values, and the properties."""
    query = request.query_params
    known = ("n", "alpha", "objective", "mechanism")
    return {name: query[name] for name in known if name in query}, query.getlist("property")


@dataclass(frozen=True)
class Pages:
    """The handlers, over what the collector offers."""

    state: State
    catalog: Catalog = CATALOG
    public_url: str = ""
    """Where respondents find the collector; empty for wherever a request came in."""

    def site(self, request: Request) -> str:
        """The address of the collector, without a slash at its end; what is printed on paper must not be guessed."""
        return self.public_url or str(request.base_url).rstrip("/")

    def _address(self, request: Request, collection: str) -> str:
        return f"{self.site(request)}/c/{collection}"

    def dashboard_page(self, template: str) -> Callable[[Request], Response]:
        """A page that needs a signed-in operator and no collection."""

        def handler(request: Request) -> Response:
            found = scope(request, self.state)
            return page(template, scope=found, site=self.site(request)) if found else to_login(request)

        return handler

    async def login(self, request: Request) -> Response:
        """The sign-in form, and what it sends."""
        if request.method == "GET":
            if await run_in_threadpool(scope, request, self.state):
                return RedirectResponse("/dashboard", status_code=303)
            return page("login.html", failed=False, target=local_path(request.query_params.get("next", "")))
        form = await read_form(request)
        token, target = form.get("token", "").strip(), local_path(form.get("next", ""))
        if not token or await run_in_threadpool(self.state.scope_of, token) is None:
            return page("login.html", status=401, failed=True, target=target)
        return signed_in(token, target, secure=self._is_secure(request))

    def _is_secure(self, request: Request) -> bool:
        """Whether the browser is connected by TLS: directly, or through the proxy of the public address."""
        public = urlsplit(self.public_url)
        return request.url.scheme == "https" or (public.scheme == "https" and public.netloc == request.url.netloc)

    def logout(self, request: Request) -> Response:
        """Forget the token."""
        del request
        return signed_out()

    def collection(self, request: Request) -> Response:
        """One collection: counts, charts, links; a draft is shown in the builder."""
        found = scope(request, self.state)
        if not found:
            return to_login(request)
        record = self.state.record(request.path_params["id"])
        if record is None:
            return page("missing.html", status=404)
        template = "builder.html" if record.state == "draft" else "collection.html"
        address, site = self._address(request, record.id), self.site(request)
        methods = json.dumps([method.to_row() for method in METHODS])
        return page(
            template, scope=found, id=record.id, state=record.state, address=address, site=site, methods=methods
        )

    def survey(self, request: Request) -> Response:
        """The question form of a collection; drafts only as a preview for whoever is signed in."""
        record = self.state.record(request.path_params["id"])
        if record is None or (record.state == "draft" and scope(request, self.state) != "admin"):
            return _missing()
        document = self._document(record)
        following = self.state.open_round(record.id) if record.state == "closed" and document["plan"] else ""
        if following not in ("", record.id):
            return RedirectResponse(f"/c/{following}", 303)
        ancestors = " ".join(["'self'", *document.get("origins", [])])
        title = texts(document["title"], "en")
        return page("survey.html", id=record.id, state=record.state, title=title, ancestors=ancestors)

    def preview(self, request: Request) -> Response:
        """The document that a draft would be published as."""
        record = self.state.record(request.path_params["id"])
        if record is None or record.state != "draft" or scope(request, self.state) != "admin":
            return _missing()
        headers = {"Cache-Control": "no-store"}
        return Response(self.state.preview(record.id), media_type="application/json", headers=headers)

    def privacy(self, request: Request) -> Response:
        """What is sent, with which exact probabilities, what is stored and for how long."""
        record = self.state.record(request.path_params["id"])
        if record is None or record.state == "draft":
            return _missing()
        collection = read_document(record.document, self.catalog)
        mechanism = collection.mechanism
        odds = Fraction(mechanism.odds, WORD)
        return page(
            "privacy.html",
            collection=collection,
            id=record.id,
            state=record.state,
            title=texts(collection.title, "en"),
            facts=facts(collection),
            declared=float(mechanism.budget.declared),
            realised=mechanism.realised_epsilon(),
            surest=surest(odds),
            weak=odds >= WEAK,
            held=HELD,
        )

    def qr_code(self, request: Request) -> Response:
        """The address of the survey as a QR code."""
        if not _is_id(request.path_params["id"]):
            return _missing()
        image = io.BytesIO()
        code = segno.make(self._address(request, request.path_params["id"]), error="m")
        code.save(image, kind="svg", scale=4, border=4, light="#ffffff", nl=False)
        headers = {"Content-Security-Policy": policy()}
        return Response(image.getvalue(), media_type="image/svg+xml", headers=headers)

    def tools(self, request: Request) -> Response:
        """Mechanisms of the central model, designed and shown; not local."""
        found = scope(request, self.state)
        if not found:
            return to_login(request)
        return page("tools.html", scope=found, **tools(*_wished(request)))

    def matrix(self, request: Request) -> Response:
        """The heat map of a mechanism of the central model; not local."""
        if not scope(request, self.state):
            return _missing()
        try:
            picture = heat_map(read_wish(*_wished(request)).make())
        except TacitError:
            return _missing()
        # The picture carries its own style, which holds inside it alone.
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(picture, media_type="image/svg+xml", headers=headers)

    def _document(self, record: CollectionRecord) -> "dict[str, Any]":
        if record.state != "draft":
            return json.loads(record.document)
        try:
            return json.loads(self.state.preview(record.id))
        except TacitError:
            return {"title": {"en": "Draft"}}


def routes(state: State, *, catalog: Catalog = CATALOG, public_url: str = "") -> list[BaseRoute]:
    """All pages and their assets, for the collector's application to mount."""
    pages = Pages(state, catalog, public_url)
    return [
        Route("/", _home),
        *(Route(f"/dashboard{path}", pages.dashboard_page(template)) for path, template in _PAGES.items()),
        Route("/dashboard/login", pages.login, methods=["GET", "POST"]),
        Route("/dashboard/logout", pages.logout, methods=["POST"]),
        Route("/dashboard/tools", pages.tools),
        Route("/dashboard/tools/matrix.svg", pages.matrix),
        Route("/dashboard/collections/{id}", pages.collection),
        Route("/c/{id}", pages.survey),
        Route("/c/{id}/preview.json", pages.preview),
        Route("/c/{id}/privacy", pages.privacy),
        Route("/c/{id}/qr.svg", pages.qr_code),
        *script_routes(),
        *asset_routes(),
        *(Route(f"{start}/{{path:path}}", _nowhere) for start in ("/dashboard", "/c")),
    ]
