"""The client's scripts under /js: the bundle that a wheel carries, or in a source tree the modules it is made of."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from tacit.errors import TacitError

_BUNDLE = Path(__file__).parent / "bundle"
_MODULES = Path(__file__).parents[3] / "js" / "src"
_HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}


def is_fresh(bundle: Path = _BUNDLE, modules: Path = _MODULES) -> bool:
    """Whether there is a bundle that is not older than a module; an installed package has no modules beside it."""
    base = bundle / "tacit.js"
    if not base.is_file():
        return False
    made = base.stat().st_mtime
    return all(module.stat().st_mtime <= made for module in modules.glob("*.js"))


async def _script(request: Request) -> Response:
    """The base at /js/tacit.js, and beside it the modules of kinds that it loads when a document needs them."""
    name: str = request.path_params["name"]
    if is_fresh():
        response = await StaticFiles(directory=_BUNDLE).get_response(name, request.scope)
        response.headers.update(_HEADERS)
        return response
    if name != "tacit.js":
        return Response(status_code=404)
    # Browsers load modules by themselves: a page works without any build, with more requests.
    return Response('export * from "./src/browser.js";\n', media_type="text/javascript", headers=_HEADERS)


def script_routes(bundle: Path = _BUNDLE, modules: Path = _MODULES) -> list[BaseRoute]:
    """Everything under /js; refused where there is neither a bundle nor modules, for no survey could be answered."""
    if not (bundle / "tacit.js").is_file() and not (modules / "browser.js").is_file():
        raise TacitError(
            "this installation has no browser client, so that no survey page could be answered; install a wheel, "
            "which carries it, or run `make js` in the source tree"
        )
    beside: list[BaseRoute] = [Mount("/js/src", StaticFiles(directory=modules))] if modules.is_dir() else []
    return [Route("/js/{name:str}", _script), *beside]
