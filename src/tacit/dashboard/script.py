"""The client's script at /js/tacit.js: the bundle of `make js` unless it is stale, else the modules it is made of."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

_BUNDLE = Path(__file__).parent / "static" / "tacit.js"
_MODULES = Path(__file__).parents[3] / "js" / "src"
_HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}


def is_fresh(bundle: Path = _BUNDLE, modules: Path = _MODULES) -> bool:
    """Whether there is a bundle that is not older than a module; an installed package has no modules beside it."""
    if not bundle.is_file():
        return False
    made = bundle.stat().st_mtime
    return all(module.stat().st_mtime <= made for module in modules.glob("*.js"))


async def _script(request: Request) -> Response:
    del request
    if is_fresh():
        return FileResponse(_BUNDLE, media_type="text/javascript", headers=_HEADERS)
    # Browsers load modules by themselves: a page works without any build, with more requests.
    return Response('export * from "./src/browser.js";\n', media_type="text/javascript", headers=_HEADERS)


def script_routes() -> list[BaseRoute]:
    """Everything under /js."""
    modules: list[BaseRoute] = [Mount("/js/src", StaticFiles(directory=_MODULES))] if _MODULES.is_dir() else []
    return [Route("/js/tacit.js", _script), *modules]
