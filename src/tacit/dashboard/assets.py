"""Templates, style sheets and scripts; the chart library is served from the installed package that ships it."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

_HERE = Path(__file__).parent
_CHARTS = ("chartkick", "django/static/chartkick/Chart.bundle.js")
_DAY = "public, max-age=86400"

# Strict: a template that names a missing variable fails in tests instead of showing nothing to a respondent.
_ENVIRONMENT = Environment(
    loader=PackageLoader("tacit.dashboard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)


def policy(ancestors: str = "'none'", peers: Sequence[str] = ()) -> str:
    """Return a content security policy: this origin alone, nothing inline.

    `ancestors` may show the page in a frame; `peers` are origins that its scripts may talk to besides this one.
    """
    parts = ("default-src 'self'", "base-uri 'none'", "object-src 'none'", "form-action 'self'")
    peered = (" ".join(("connect-src 'self'", *peers)),) if peers else ()
    return "; ".join((*parts, *peered, f"frame-ancestors {ancestors}"))


def page(
    name: str,
    *,
    status: int = 200,
    ancestors: str = "'none'",
    peers: Sequence[str] = (),
    referrer: str = "same-origin",
    **values: Any,
) -> Response:
    """Return a rendered template with the headers that every page has.

    Under the policy "no-referrer" browsers send `Origin: null` with forms, which would look like another site's form;
    pages with forms therefore keep "same-origin".
    """
    # no-store: pages of a signed-in operator must not come out of a cache after signing out.
    headers = {
        "Content-Security-Policy": policy(ancestors, peers),
        "Cache-Control": "no-store",
        "Referrer-Policy": referrer,
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(_ENVIRONMENT.get_template(name).render(**values), status_code=status, headers=headers)


def chart_script() -> Path:
    """Return the path of the chart library's script inside the package that ships it."""
    package, name = _CHARTS
    return Path(str(files(package).joinpath(name)))


async def _charts(request: Request) -> Response:
    del request
    return FileResponse(chart_script(), media_type="text/javascript", headers={"Cache-Control": _DAY})


def asset_routes() -> list[BaseRoute]:
    """Return the routes of everything under /static."""
    return [
        Route("/static/vendor/chart.js", _charts),
        Mount("/static", StaticFiles(directory=_HERE / "static"), name="static"),
    ]
