"""Templates, style sheets and scripts; the chart library is served out of its own installed package."""

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

_ENVIRONMENT = Environment(
    loader=PackageLoader("tacit.dashboard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)


def policy(ancestors: str = "'none'") -> str:
    """A content security policy: this origin alone, nothing inline; `ancestors` may show the page in a frame."""
    parts = ("default-src 'self'", "base-uri 'none'", "object-src 'none'", "form-action 'self'")
    return "; ".join((*parts, f"frame-ancestors {ancestors}"))


def page(
    name: str, *, status: int = 200, ancestors: str = "'none'", referrer: str = "same-origin", **values: Any
) -> Response:
    """A rendered template with the headers every page has.

    Without a referrer browsers do not say either where a form comes from, so pages with forms need one on this site.
    """
    headers = {
        "Content-Security-Policy": policy(ancestors),
        "Cache-Control": "no-store",
        "Referrer-Policy": referrer,
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(_ENVIRONMENT.get_template(name).render(**values), status_code=status, headers=headers)


def chart_script() -> Path:
    """The chart library's script inside the package that ships it."""
    package, name = _CHARTS
    return Path(str(files(package).joinpath(name)))


async def _charts(request: Request) -> Response:
    del request
    return FileResponse(chart_script(), media_type="text/javascript", headers={"Cache-Control": _DAY})


def asset_routes() -> list[BaseRoute]:
    """Everything under /static."""
    return [
        Route("/static/vendor/chart.js", _charts),
        Mount("/static", StaticFiles(directory=_HERE / "static"), name="static"),
    ]
