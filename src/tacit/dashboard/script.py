"""The JavaScript client under /js: the bundle of a wheel, or the single modules in a source tree."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from tacit.errors import TacitError

_BUNDLE = Path(__file__).parent / "bundle"
_EMBED = Path(__file__).parent / "static" / "survey" / "embed.js"
_MODULES = Path(__file__).parents[3] / "js" / "src"
_DOORS = {"tacit.js": "browser.js", "tacit-telemetry.js": "telemetry.js"}
# no-cache: browsers revalidate, so that a respondent never runs an old client against a new collector.
# Pages of all sites may import it: it holds no secret, and what they may send is decided by the collection.
_HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "*"}


def is_fresh(bundle: Path = _BUNDLE, modules: Path = _MODULES) -> bool:
    """Return whether the bundle exists and is not older than any module; an installed package has no modules."""
    base = bundle / "tacit.js"
    if not base.is_file():
        return False
    built = base.stat().st_mtime
    return all(module.stat().st_mtime <= built for module in modules.rglob("*.js"))


class _Modules(StaticFiles):
    """The single modules of a source tree, with the headers of the bundle."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


async def _script(request: Request) -> Response:
    """Serve /js/tacit.js, the kit for applications, and the modules of kinds that a document needs."""
    name: str = request.path_params["name"]
    if is_fresh():
        response = await StaticFiles(directory=_BUNDLE).get_response(name, request.scope)
        response.headers.update(_HEADERS)
        return response
    if name not in _DOORS:
        return Response(status_code=404)
    # Browsers load modules by themselves: a page works without any build, with more requests.
    return Response(f'export * from "./src/{_DOORS[name]}";\n', media_type="text/javascript", headers=_HEADERS)


async def _embed(request: Request) -> Response:
    """Serve what makes a frame as high as the survey in it."""
    del request
    return FileResponse(_EMBED, media_type="text/javascript", headers=_HEADERS)


def script_routes(bundle: Path = _BUNDLE, modules: Path = _MODULES) -> list[BaseRoute]:
    """Return the routes of everything under /js; refused without a bundle and modules, as no survey would work."""
    if not (bundle / "tacit.js").is_file() and not (modules / "browser.js").is_file():
        raise TacitError(
            "this installation has no browser client, so that no survey page could be answered; install a wheel, "
            "which carries it, or run `make js` in the source tree"
        )
    beside: list[BaseRoute] = [Mount("/js/src", _Modules(directory=modules))] if modules.is_dir() else []
    return [Route("/js/embed.js", _embed), Route("/js/{name:str}", _script), *beside]
