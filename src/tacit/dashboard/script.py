"""The client's script at /js/tacit.js: the bundle where `make js` made one, else the modules it would be made of."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

_BUNDLE = Path(__file__).parent / "static" / "tacit.js"
_MODULES = Path(__file__).parents[3] / "js" / "src"
_HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}


async def _script(request: Request) -> Response:
    del request
    if _BUNDLE.is_file():
        return FileResponse(_BUNDLE, media_type="text/javascript", headers=_HEADERS)
    # Browsers load modules by themselves: a page works without any build, with more requests.
    return Response('export * from "./src/browser.js";\n', media_type="text/javascript", headers=_HEADERS)


def script_routes() -> list[BaseRoute]:
    """Everything under /js."""
    modules: list[BaseRoute] = [Mount("/js/src", StaticFiles(directory=_MODULES))] if _MODULES.is_dir() else []
    return [Route("/js/tacit.js", _script), *modules]
